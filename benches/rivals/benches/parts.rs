//! The inner parts one by one, by Criterion: `cargo bench --bench parts` in this folder.
//!
//! `TOKENIZER` names a `tokenizer.json`; without, the embedded vocabulary is taken, which is smaller
//! than that of any model.

use std::env;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use schemac::token::{PrecomputeOptions, TokenAutomaton};
use schemac::vocab::{LoadOptions, load};
use schemac::{Compiler, Limits, Matcher, TokenId, Vocabulary, artifact};

/// A state for each way in which a mask is made: what it is, a grammar, and the text that leads there.
const STATES: [(&str, &str, &str); 7] = [
    ("few live bytes", "(true|false|null)", ""),
    ("a JSON string", r#""([^"\\\x00-\x1f]|\\["\\/bfnrt])*""#, "\"a"),
    ("a JSON string of 40 at most", r#""([^"\\\x00-\x1f]|\\["\\/bfnrt]){0,40}""#, "\"abc"),
    ("any text up to a word", "[^<]*(<[^/][^<]*)*</end>", "a"),
    ("a slug", "[a-z0-9]+(-[a-z0-9]+)*", "a"),
    ("words of a line", r"(\S+\s+){0,49}\S+", "a b"),
    ("digits", "[0-9]{1,20}", "1"),
];

const SCHEMA: &str = r#"{"type":"object","properties":{"name":{"type":"string"},
    "age":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}}}}"#;

fn vocabulary() -> Arc<Vocabulary> {
    match env::var_os("TOKENIZER") {
        Some(path) => {
            let loaded = load(&PathBuf::from(path), &LoadOptions::default()).expect("a tokenizer");
            Arc::clone(loaded.vocabulary())
        }
        None => Vocabulary::embedded(),
    }
}

fn cold_masks(criterion: &mut Criterion) {
    let compiler = Compiler::new(vocabulary());
    let mut group = criterion.benchmark_group("cold mask");
    for (name, regex, text) in STATES {
        let fresh = || {
            let mut matcher = Matcher::new(compiler.compile_regex(regex).expect("a regex"));
            matcher.accept_bytes(text.as_bytes()).expect("a text of the regex");
            matcher
        };
        // The tables of the vocabulary are made once.
        let _ = fresh().mask();
        group.bench_function(name, |bencher| {
            bencher.iter_batched(fresh, |matcher| matcher.mask(), BatchSize::SmallInput);
        });
    }
    group.finish();
}

fn known_masks(criterion: &mut Criterion) {
    let compiler = Compiler::new(vocabulary());
    let mut matcher = Matcher::new(compiler.compile_schema(SCHEMA).expect("a schema"));
    matcher.accept_bytes(br#"{"name":"Ada"#).expect("a text of the schema");
    let mask = matcher.mask().expect("a mask");
    let token = mask.iter().nth(7).expect("a legal token");
    criterion.bench_function("known mask", |b| b.iter(|| black_box(&matcher).mask()));
    criterion.bench_function("accept", |bencher| {
        bencher.iter_batched_ref(
            || matcher.clone(),
            |matcher| matcher.accept(black_box(token)),
            BatchSize::SmallInput,
        );
    });
    let mut words = vec![0; mask.width().div_ceil(64)];
    criterion.bench_function("words of a mask", |b| b.iter(|| mask.write_words(&mut words)));
    let mut row = vec![0.5_f32; mask.width()];
    criterion.bench_function("apply, f32", |b| b.iter(|| mask.apply(black_box(&mut row))));
    let mut halves = vec![0x3c00_u16; mask.width()];
    criterion.bench_function("apply, f16", |b| b.iter(|| mask.apply_f16(black_box(&mut halves))));
    let few = schemac::TokenMask::from_ids(mask.width(), vec![TokenId::new(7), token]);
    criterion.bench_function("argmax of two", |b| b.iter(|| few.argmax(black_box(&row))));
}

fn loading(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("load");
    group.sample_size(10);
    if let Some(path) = env::var_os("TOKENIZER") {
        let path = PathBuf::from(path);
        let options = LoadOptions::default();
        group.bench_function("a tokenizer with its encoder", |b| b.iter(|| load(&path, &options)));
    }
    let vocabulary = vocabulary();
    let limits = Limits::default();
    let automaton: Arc<TokenAutomaton> =
        Compiler::new(Arc::clone(&vocabulary)).compile_schema(SCHEMA).expect("a schema");
    automaton.precompute(&PrecomputeOptions::default(), &mut |_, _| {}).expect("masks");
    let whole = artifact::to_bytes(&automaton).expect("an artifact");
    let over = artifact::to_bytes_over_vocabulary(&automaton).expect("an artifact");
    println!(
        "the artifact has {} bytes, {} of them without the vocabulary",
        whole.len(),
        over.len()
    );
    group.bench_function("an artifact", |b| b.iter(|| artifact::from_bytes(&whole, &limits)));
    group.bench_function("an artifact over its vocabulary", |b| {
        b.iter(|| artifact::from_bytes_over(&over, &vocabulary, &limits));
    });
    group.finish();
}

criterion_group!(parts, cold_masks, known_masks, loading);
criterion_main!(parts);
