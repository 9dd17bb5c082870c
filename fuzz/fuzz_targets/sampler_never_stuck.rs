#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| schemac_fuzz::check("sampler_never_stuck", data));
