//! Precomputing a regular language by schemac, against the index of outlines-core: the same regular
//! expression to both, times, bytes in memory and bytes when stored out. The masks are compared along
//! random texts.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use outlines_core::json_schema::regex_from_str;
use outlines_core::prelude::Index;
use schemac::token::{Matcher, PrecomputeOptions};
use schemac::{TokenId, artifact};

use crate::engines::outlines::Outlines;
use crate::engines::schemac::Schemac;

/// Languages from a few states to some hundred. Schemas become the expression that outlines-core makes
/// of them.
const LANGUAGES: [(&str, Language); 7] = [
    ("yes or no", Language::Regex("yes|no")),
    ("date", Language::Regex(r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])")),
    ("hexadecimal, 64 digits", Language::Regex("[0-9a-f]{64}")),
    ("words", Language::Regex("([a-z]+ )*[a-z]+")),
    ("JSON string", Language::Schema(r#"{"type":"string"}"#)),
    ("string of 40 at most", Language::Schema(r#"{"type":"string","maxLength":40}"#)),
    (
        "object of four members",
        Language::Schema(
            r#"{"type":"object","properties":{"id":{"type":"integer"},"name":{"type":"string"},
            "kind":{"enum":["red","green","blue"]},"on":{"type":"boolean"}},
            "required":["id","name","kind","on"]}"#,
        ),
    ),
];

#[derive(Clone, Copy)]
enum Language {
    Regex(&'static str),
    Schema(&'static str),
}

/// Bytes that are allocated. Freed ones count from the next call on.
fn allocated() -> usize {
    // SAFETY: a call that only reads the allocator's statistics.
    let info = unsafe { libc::mallinfo2() };
    info.uordblks + info.hblkhd
}

/// Prints the table.
pub(crate) fn compare(vocabulary: &Path) {
    let ours = Schemac::new(vocabulary, false);
    let theirs = Outlines::new(vocabulary);
    println!(
        "| language | states | schemac ms | index ms | ratio | schemac stored kB | index stored kB | ratio | schemac memory kB | index memory kB | ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for (name, language) in LANGUAGES {
        let regex = match language {
            Language::Regex(regex) => regex.to_owned(),
            Language::Schema(schema) => regex_from_str(schema, None, None).expect("a regex"),
        };
        let before = allocated();
        let start = Instant::now();
        let automaton = ours.compiler.compile_regex(&regex).expect("a grammar");
        let report =
            automaton.precompute(&PrecomputeOptions::default(), &mut |_, _| {}).expect("masks");
        let our_time = start.elapsed().as_secs_f64() * 1e3;
        let our_memory = allocated() - before;
        assert!(report.complete, "{name}: all masks are there");
        let stored = artifact::to_bytes_over_vocabulary(&automaton).expect("an artifact").len();

        let before = allocated();
        let start = Instant::now();
        let index = theirs.index(&regex).expect("an index");
        let their_time = start.elapsed().as_secs_f64() * 1e3;
        let their_memory = allocated() - before;
        let config = bincode::config::standard();
        let their_stored = bincode::encode_to_vec(&index, config).expect("bytes").len();

        let agreement = compare_masks(&Matcher::new(Arc::clone(&automaton)), &index);
        let kb = |bytes: usize| bytes as f64 / 1024.0;
        println!(
            "| {name} | {} | {our_time:.2} | {their_time:.0} | {:.0} | {:.1} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {agreement} |",
            report.states,
            their_time / our_time,
            kb(stored),
            kb(their_stored),
            their_stored as f64 / stored as f64,
            kb(our_memory),
            kb(their_memory),
            their_memory as f64 / our_memory as f64,
        );
    }
}

/// Compares the masks along a text of tokens that are taken in turn from those that both allow, and says
/// on how many tokens they differ.
fn compare_masks(start: &Matcher, index: &Index) -> String {
    let mut matcher = start.clone();
    let mut state = index.initial_state();
    let ends = matcher.automaton().vocabulary().end_tokens().to_vec();
    let (mut only_ours, mut only_theirs) = (0, 0);
    for step in 0..12_usize {
        let mask = matcher.mask().expect("a mask");
        let ours: BTreeSet<TokenId> = mask.iter().filter(|token| !ends.contains(token)).collect();
        let theirs = index.allowed_tokens(&state).unwrap_or_default();
        let theirs: BTreeSet<TokenId> =
            theirs.into_iter().map(TokenId::new).filter(|token| !ends.contains(token)).collect();
        only_ours += ours.difference(&theirs).count();
        only_theirs += theirs.difference(&ours).count();
        let both: Vec<TokenId> = ours.intersection(&theirs).copied().collect();
        let Some(&token) = both.get(step.wrapping_mul(7_919) % both.len().max(1)) else { break };
        matcher.accept(token).expect("a legal token");
        state = index.next_state(&state, &token.get()).expect("a legal token");
    }
    match (only_ours, only_theirs) {
        (0, 0) => "same".into(),
        _ => format!("{only_ours} tokens by schemac only, {only_theirs} by the index only"),
    }
}
