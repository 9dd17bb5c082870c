//! Published tokenizers, against the `tokenizers` crate. The files are looked for in the folder
//! `tokenizers` of `SCHEMAC_SHARED`, or of `shared` beside the repository; a missing one is said
//! and skipped.

use std::path::PathBuf;
use std::time::Instant;

use crate::vocab::{LoadOptions, Loaded, load};

fn shared(name: &str) -> Option<Loaded> {
    let shared = std::env::var_os("SCHEMAC_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    let path = shared.join("tokenizers").join(name);
    if !path.exists() {
        println!("skipped: `{}` is not at hand", path.display());
        return None;
    }
    let start = Instant::now();
    let loaded = load(&path, &LoadOptions::default()).unwrap();
    println!("{name}: loaded in {:?}", start.elapsed());
    Some(loaded)
}

fn check(loaded: &Loaded, ids: usize, ends: &[&str]) {
    let start = Instant::now();
    let report = loaded.self_check().unwrap();
    println!("{report}\nchecked in {:?}", start.elapsed());
    assert!(report.decoder_compared);
    assert!(report.is_consistent(), "{report}");
    assert_eq!(report.ids, ids);
    let names: Vec<_> = report.end_tokens.iter().map(|token| token.name.as_str()).collect();
    assert_eq!(names, ends);
}

#[test]
fn llama_3_agrees_with_its_tokenizer() {
    let Some(loaded) = shared("llama3_1") else { return };
    check(&loaded, 128_256, &["<|eot_id|>"]);
    let report = loaded.describe();
    assert_eq!((report.not_utf8_alone, report.special_tokens.len()), (1_352, 256));
    assert_eq!(report.longest.unwrap().bytes, 128);
}

#[test]
fn qwen_3_agrees_with_its_tokenizer() {
    let Some(loaded) = shared("qwen3") else { return };
    check(&loaded, 151_669, &["<|im_end|>"]);
    let vocabulary = loaded.vocabulary();
    let think = vocabulary.encode_greedy(b"<think>").unwrap();
    assert_eq!(think.len(), 1, "added tokens that are not special are text");
}

#[test]
fn llama_2_agrees_with_its_tokenizer() {
    let Some(loaded) = shared("llama2") else { return };
    check(&loaded, 32_000, &["</s>"]);
    assert!(loaded.text_rules().strip_leading_space && loaded.text_rules().prepend_space);
    let tokens = loaded.encoder().encode("{\"a\"").unwrap();
    assert_eq!(loaded.vocabulary().bytes(tokens[0])[0], b'{', "no space is prepended");
}

/// A GGUF model is too large to keep: name one in `SCHEMAC_GGUF` to check it.
#[test]
fn a_gguf_model_agrees_with_its_tokenizer() {
    let Some(path) = std::env::var_os("SCHEMAC_GGUF") else {
        println!("skipped: `SCHEMAC_GGUF` names no model");
        return;
    };
    let loaded = load(path, &LoadOptions::default()).unwrap();
    let report = loaded.self_check().unwrap();
    println!("{report}");
    assert!(report.is_consistent(), "{report}");
}
