//! Integration tests, one binary: each module is one area.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails by panicking"
)]

#[cfg(feature = "candle")]
mod adapter;
mod artifact;
mod cli;
mod decoding;
mod fuzz_regressions;
mod gbnf;
mod generate;
mod json_numbers;
mod json_options;
mod json_schema;
mod keywords;
mod layering;
mod layout;
mod masks;
mod numbers;
mod proofs;
mod random_schemas;
mod readme;
mod sampler;
mod schema_masks;
mod schemas;
#[path = "../support/mod.rs"]
mod support;
