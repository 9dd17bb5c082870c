#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| schemac_fuzz::check("artifact_load_never_panics", data));
