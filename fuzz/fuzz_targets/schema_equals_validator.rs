#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| schemac_fuzz::check("schema_equals_validator", data));
