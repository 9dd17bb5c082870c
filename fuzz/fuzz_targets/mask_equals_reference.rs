#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| schemac_fuzz::check("mask_equals_reference", data));
