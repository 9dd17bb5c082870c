//! Memory over many generations, in a process of its own: it levels off, because what sequences share
//! depends on the grammar alone.
//!
//! `SCHEMAC_GENERATIONS` sets the number of generations; `cargo test --test memory -- --nocapture`
//! prints the resident memory after each tenth of them.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

use std::num::NonZeroUsize;
use std::sync::Arc;

use schemac::frontend::json_schema::{JsonOptions, compile};
use schemac::runtime::{ConstrainedSampler, Policy, RandomModel};
use schemac::token::TokenAutomaton;
use schemac::{Limits, Vocabulary};

/// Generations, unless the environment says otherwise.
const GENERATIONS: u64 = 500;

/// Returns the resident memory of this process in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// An object of 40 optional members of all types, which takes other members too.
fn schema() -> String {
    let kinds = [
        r#"{"type": "string"}"#,
        r#"{"type": "integer", "minimum": 0, "maximum": 9999}"#,
        r#"{"type": "array", "items": {"type": "boolean"}, "maxItems": 5}"#,
        r#"{"enum": ["red", "green", "blue", null]}"#,
        r#"{"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}"#,
    ];
    let members: Vec<String> =
        (0..40).map(|i| format!("\"key_{i:02}\": {}", kinds[i % kinds.len()])).collect();
    format!(r#"{{"type": "object", "properties": {{{}}}}}"#, members.join(", "))
}

#[test]
fn resident_memory_levels_off_over_many_generations() {
    let count =
        std::env::var("SCHEMAC_GENERATIONS").map_or(GENERATIONS, |count| count.parse().unwrap());
    let limits = Limits::default();
    let grammar = compile(&schema(), &JsonOptions::default(), &limits).unwrap();
    let vocabulary = Vocabulary::embedded();
    let automaton = Arc::new(TokenAutomaton::new(grammar, vocabulary.clone(), limits).unwrap());
    let mut model = RandomModel::new(&vocabulary, 0);
    let mut sizes = vec![resident()];
    let mut tokens = 0;
    for seed in 0..count {
        model.reseed(seed);
        let policy = Policy::sample(1.0).seed(seed).max_tokens(NonZeroUsize::new(300).unwrap());
        let mut sampler = ConstrainedSampler::new(automaton.clone(), policy).unwrap();
        sampler.generate(&mut model).unwrap();
        tokens += sampler.tokens().len();
        if (seed + 1) % (count / 10) == 0 {
            sizes.push(resident());
            println!(
                "{} generations, {tokens} tokens: {} KiB, {:?}",
                seed + 1,
                resident(),
                automaton.stats()
            );
        }
    }
    // The second half adds less than a tenth of what the first took, and 4 MiB for the allocator.
    let (half, end) = (sizes[sizes.len() / 2], sizes[sizes.len() - 1]);
    assert!(end <= half + (half - sizes[0]) / 10 + 4_096, "{sizes:?}");
}
