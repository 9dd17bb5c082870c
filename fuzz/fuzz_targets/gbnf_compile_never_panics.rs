#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| schemac_fuzz::check("gbnf_compile_never_panics", data));
