use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use super::*;
use crate::engine::Compiler;

fn schema(i: usize) -> String {
    format!(r#"{{"enum": ["a{i}", "b{i}", "c{i}"]}}"#)
}

fn cached(cache: &Arc<GrammarCache>) -> Compiler {
    Compiler::new(Vocabulary::embedded()).cache(Arc::clone(cache))
}

/// A folder that is not there yet, and that the test deletes.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("schemac-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn eight_threads_that_ask_for_one_grammar_compile_it_once() {
    let cache = Arc::new(GrammarCache::new(64 << 20));
    let vocabulary = Vocabulary::embedded();
    let key = Key::of(&vocabulary, &[b"one"]);
    let (calls, barrier) = (AtomicUsize::new(0), Barrier::new(8));
    let found: Vec<_> = thread::scope(|scope| {
        let ask = || {
            barrier.wait();
            cache
                .get_or_compile(key, &vocabulary, &Limits::default(), || {
                    calls.fetch_add(1, Ordering::Relaxed);
                    // Long enough for the others to arrive.
                    thread::sleep(std::time::Duration::from_millis(50));
                    Compiler::new(Vocabulary::embedded()).compile_regex("a+")
                })
                .unwrap()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(calls.into_inner(), 1);
    assert!(found.iter().all(|automaton| Arc::ptr_eq(automaton, &found[0])));
    let stats = cache.stats();
    assert_eq!((stats.compiled, stats.hits, stats.entries), (1, 7, 1));
}

#[test]
fn many_threads_over_many_grammars_get_each_its_own() {
    let cache = Arc::new(GrammarCache::new(64 << 20));
    thread::scope(|scope| {
        for turn in 0..4 {
            let compiler = cached(&cache);
            scope.spawn(move || {
                for i in (0..40).map(|i| (i * 7 + turn * 11) % 40) {
                    let automaton = compiler.compile_schema(&schema(i)).unwrap();
                    let mut matcher = crate::token::Matcher::new(automaton);
                    matcher.accept_bytes(format!("\"c{i}\"").as_bytes()).unwrap();
                    assert!(matcher.is_accepting().unwrap());
                }
            });
        }
    });
    let stats = cache.stats();
    assert_eq!((stats.compiled, stats.hits, stats.entries), (40, 120, 40));
}

#[test]
fn a_request_waits_for_no_work_on_the_grammar_that_it_finds() {
    let cache = Arc::new(GrammarCache::new(64 << 20));
    let compiler = cached(&cache);
    let grammar = compiler.compile_schema(&schema(0)).unwrap();
    let (sender, found) = std::sync::mpsc::channel();
    // As another thread's mask does, this keeps the grammar from growing meanwhile.
    let in_time = grammar.automaton().with_grammar(|_| {
        thread::spawn(move || sender.send(compiler.compile_schema(&schema(0)).is_ok()));
        found.recv_timeout(std::time::Duration::from_secs(60))
    });
    assert_eq!(in_time, Ok(true));
}

#[test]
fn an_error_is_shared_like_a_grammar() {
    let cache = Arc::new(GrammarCache::new(64 << 20));
    let compiler = cached(&cache);
    let text = r#"{"type": "string", "minLength": 2, "maxLength": 1}"#;
    let first = compiler.compile_schema(text).unwrap_err();
    let second = compiler.compile_schema(text).unwrap_err();
    assert_eq!(first.kind(), second.kind());
    assert_eq!((cache.stats().compiled, cache.stats().hits), (1, 1));
}

#[test]
fn whatever_decides_the_result_is_part_of_the_key() {
    use crate::frontend::json_schema::{JsonOptions, Whitespace};
    let cache = Arc::new(GrammarCache::new(64 << 20));
    let text = r#"{"type": "object"}"#;
    let plain = cached(&cache);
    let compact =
        cached(&cache).json_options(JsonOptions::default().whitespace(Whitespace::Compact));
    let mut limits = Limits::default();
    limits.states += 1;
    let bounded = cached(&cache).limits(limits);
    let ending = plain.ending_with([crate::TokenId::new(7)]).unwrap();
    let all = [&plain, &compact, &bounded, &ending];
    let automata: Vec<_> = all.iter().map(|c| c.compile_schema(text).unwrap()).collect();
    for (i, automaton) in automata.iter().enumerate() {
        assert!(automata[..i].iter().all(|other| !Arc::ptr_eq(other, automaton)));
    }
    // The same text as another kind of grammar.
    plain.compile_regex("x").unwrap();
    assert_eq!(plain.compile_gbnf("x").unwrap_err().kind().name(), "syntax");
    assert_eq!(cache.stats().hits, 0);
}

#[test]
fn the_least_recently_used_goes_first_and_the_bytes_keep_to_the_bound() {
    let one = {
        let cache = Arc::new(GrammarCache::new(usize::MAX));
        cached(&cache).compile_schema(&schema(0)).unwrap();
        cache.stats().bytes
    };
    let cache = Arc::new(GrammarCache::new(one * 7 / 2));
    let compiler = cached(&cache);
    for i in [0, 1, 2, 0, 3] {
        compiler.compile_schema(&schema(i)).unwrap();
        assert!(cache.stats().bytes <= one * 7 / 2);
    }
    assert_eq!((cache.stats().entries, cache.stats().evicted), (3, 1));
    // 1 went, so that 0, 2 and 3 are found.
    for i in [0, 2, 3] {
        compiler.compile_schema(&schema(i)).unwrap();
    }
    assert_eq!((cache.stats().compiled, cache.stats().hits), (4, 4));
    compiler.compile_schema(&schema(1)).unwrap();
    assert_eq!(cache.stats().compiled, 5);
}

#[test]
fn a_grammar_that_grows_is_weighed_again() {
    let cache = Arc::new(GrammarCache::new(usize::MAX));
    let compiler = cached(&cache);
    let automaton = compiler.compile_schema(r#"{"type": "string"}"#).unwrap();
    let before = cache.stats().bytes;
    let mut matcher = crate::token::Matcher::new(automaton);
    for &byte in br#""abc""# {
        matcher.mask().unwrap();
        matcher.accept_bytes(&[byte]).unwrap();
    }
    compiler.compile_schema(r#"{"type": "string"}"#).unwrap();
    assert!(cache.stats().bytes > before, "{before} then {}", cache.stats().bytes);
}

#[test]
fn a_grammar_larger_than_the_cache_is_compiled_and_not_kept() {
    let cache = Arc::new(GrammarCache::new(10));
    let compiler = cached(&cache);
    compiler.compile_schema(&schema(0)).unwrap();
    assert_eq!((cache.stats().entries, cache.stats().bytes), (0, 0));
}

#[test]
fn a_compile_that_panics_blocks_nobody_and_leaves_nothing() {
    let cache = GrammarCache::new(64 << 20);
    let vocabulary = Vocabulary::embedded();
    let key = Key::of(&vocabulary, &[b"one"]);
    let limits = Limits::default();
    let compile = || Compiler::new(Vocabulary::embedded()).compile_regex("a");
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            let failing = AssertUnwindSafe(|| {
                cache.get_or_compile(key, &vocabulary, &limits, || {
                    barrier.wait();
                    thread::sleep(std::time::Duration::from_millis(50));
                    panic!("on purpose")
                })
            });
            assert!(catch_unwind(failing).is_err());
        });
        barrier.wait();
        // Waits for the one that panics, and then compiles.
        cache.get_or_compile(key, &vocabulary, &limits, compile).unwrap();
    });
    assert_eq!((cache.stats().compiled, cache.stats().entries), (1, 1));
    let other = Key::of(&vocabulary, &[b"other"]);
    let failing =
        AssertUnwindSafe(|| cache.get_or_compile(other, &vocabulary, &limits, || panic!("again")));
    assert!(catch_unwind(failing).is_err());
    assert_eq!(cache.stats().entries, 1);
}

#[test]
fn a_grammar_comes_back_from_the_folder_with_its_masks() {
    let folder = Folder::new("comes-back");
    let cache = Arc::new(GrammarCache::new(64 << 20).folder(&folder.0, 64 << 20));
    let automaton = cached(&cache).compile_schema(&schema(1)).unwrap();
    let matcher = crate::token::Matcher::new(Arc::clone(&automaton));
    let mask = matcher.mask().unwrap();
    let grown = automaton.stats().local_masks;
    assert!(grown > 0);
    cache.flush();

    let cache = Arc::new(GrammarCache::new(64 << 20).folder(&folder.0, 64 << 20));
    let compiler = cached(&cache);
    let again = compiler.compile_schema(&schema(1)).unwrap();
    assert_eq!((cache.stats().loaded, cache.stats().compiled), (1, 0));
    assert_eq!(again.stats().local_masks, grown);
    assert!(Arc::ptr_eq(again.vocabulary(), compiler.vocabulary()), "the vocabulary is shared");
    assert_eq!(crate::token::Matcher::new(again).mask().unwrap(), mask);
}

#[test]
fn what_leaves_the_memory_goes_to_the_folder() {
    let folder = Folder::new("leaves");
    let cache = Arc::new(GrammarCache::new(10).folder(&folder.0, 64 << 20));
    cached(&cache).compile_schema(&schema(1)).unwrap();
    cached(&cache).compile_schema(&schema(1)).unwrap();
    assert_eq!((cache.stats().compiled, cache.stats().loaded), (1, 1));
}

#[test]
fn a_corrupted_file_is_compiled_again_and_replaced() {
    let folder = Folder::new("corrupted");
    let cache = Arc::new(GrammarCache::new(10).folder(&folder.0, 64 << 20));
    cached(&cache).compile_schema(&schema(1)).unwrap();
    let [file] = &folder.files()[..] else { panic!("one file") };
    let whole = fs::read(file).unwrap();
    for broken in [&whole[..whole.len() / 2], b"", b"not an artifact at all"] {
        fs::write(file, broken).unwrap();
        cached(&cache).compile_schema(&schema(1)).unwrap();
        assert_eq!(fs::read(file).unwrap().len(), whole.len());
    }
    assert_eq!((cache.stats().compiled, cache.stats().loaded), (4, 0));
}

#[test]
fn the_folder_keeps_to_its_quota() {
    let folder = Folder::new("quota");
    let size = {
        let cache = Arc::new(GrammarCache::new(10).folder(&folder.0, u64::MAX));
        cached(&cache).compile_schema(&schema(0)).unwrap();
        fs::metadata(&folder.files()[0]).unwrap().len()
    };
    let cache = Arc::new(GrammarCache::new(10).folder(&folder.0, size * 5 / 2));
    for i in 0..6 {
        cached(&cache).compile_schema(&schema(i)).unwrap();
        assert!(folder.files().len() <= 2);
    }
    let none = Arc::new(GrammarCache::new(10).folder(&folder.0, size / 2));
    cached(&none).compile_schema(&schema(9)).unwrap();
    assert!(folder.files().len() <= 2, "what is larger than the quota is not written");
}

#[test]
fn a_folder_that_cannot_be_written_costs_nothing_but_time() {
    let folder = Folder::new("unwritable");
    fs::write(&folder.0, "a file where the folder should be").unwrap();
    let cache = Arc::new(GrammarCache::new(10).folder(&folder.0, 64 << 20));
    cached(&cache).compile_schema(&schema(1)).unwrap();
    assert_eq!(cache.stats().compiled, 1);
    fs::remove_file(&folder.0).unwrap();
}
