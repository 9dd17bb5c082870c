//! Published tokenizers, against the `tokenizers` crate. The files are looked for in the folder
//! `tokenizers` of `SCHEMAC_SHARED`, or of `shared` beside the repository; a missing one is said
//! and skipped.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rand::{Rng, SeedableRng};
use serde_json::Value;

use super::fixtures::GgufWriter;
use crate::ids::TokenId;
use crate::vocab::self_check::PROBES;
use crate::vocab::{LoadOptions, Loaded, load};

fn folder(name: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("SCHEMAC_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    let path = shared.join("tokenizers").join(name);
    if !path.exists() {
        println!("skipped: `{}` is not at hand", path.display());
        return None;
    }
    Some(path)
}

fn shared_json(name: &str) -> Option<Value> {
    let bytes = std::fs::read(folder(name)?.join("tokenizer.json")).unwrap();
    Some(serde_json::from_slice(&bytes).unwrap())
}

fn shared(name: &str) -> Option<Loaded> {
    let path = folder(name)?;
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

/// Texts of every kind, also of tokens with ids below `ids` in a random order.
fn texts(loaded: &Loaded, ids: usize) -> Vec<String> {
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(3);
    let vocabulary = loaded.vocabulary();
    let mut texts: Vec<String> = PROBES.iter().map(|(_, text)| (*text).to_owned()).collect();
    texts.push("<s></s><|endoftext|><0x0A><unk>[INST]<|im_end|>".to_owned());
    // Random tokens one after another: words in unusual places, white space of all sorts.
    for _ in 0..100 {
        let tokens: Vec<_> = (0..random.random_range(1..12))
            .filter_map(|_| TokenId::from_index(random.random_range(0..ids)))
            .collect();
        texts.extend(String::from_utf8(vocabulary.decode(&tokens)));
    }
    texts.extend((0..100).map(|_| {
        let mut piece = || {
            ["a", "B", "ß", "日", "1", " ", "  ", "\n", "\r\n", "'s", "\t", ".", "{\"", "🎉"]
                [random.random_range(0..14)]
        };
        (0..20).map(|_| piece()).collect()
    }));
    texts
}

fn check_same(one: &Loaded, other: &Loaded, ids: usize) {
    for text in texts(one, ids) {
        let expected = one.encoder().propose(&text).unwrap();
        assert_eq!(other.encoder().propose(&text).unwrap(), expected, "{text:?}");
    }
}

#[test]
fn rank_files_are_encoded_as_the_tokenizers_that_were_made_of_them() {
    for (name, ranks) in [("llama3_1", 128_000), ("qwen3", 151_643)] {
        let Some(loaded) = shared(name) else { continue };
        let vocabulary = loaded.vocabulary();
        let mut file = String::new();
        let ids = vocabulary.ids();
        for id in ids.take(ranks) {
            writeln!(file, "{} {}", STANDARD.encode(vocabulary.bytes(id)), id.get()).unwrap();
        }
        let end = vocabulary.end_tokens()[0];
        let options = LoadOptions::default().special_token("<|im_end|>", end);
        let rank_file = Loaded::from_bytes(file.into_bytes(), &options).unwrap();
        check_same(&loaded, &rank_file, ranks);
    }
}

#[test]
fn byte_level_gguf_files_are_encoded_as_their_tokenizers() {
    for (name, pre) in [("llama3_1", "llama-bpe"), ("qwen3", "qwen2")] {
        let (Some(loaded), Some(file)) = (shared(name), shared_json(name)) else { continue };
        let tokens = spellings(&file, loaded.vocabulary().len());
        let merges: Vec<String> =
            file["model"]["merges"].as_array().unwrap().iter().map(merge).collect();
        let special = |id| loaded.vocabulary().special_name(id).is_some();
        let types: Vec<i32> =
            loaded.vocabulary().ids().map(|id| if special(id) { 3 } else { 1 }).collect();
        let gguf = GgufWriter::new()
            .text("tokenizer.ggml.model", "gpt2")
            .text("tokenizer.ggml.pre", pre)
            .texts("tokenizer.ggml.tokens", &tokens)
            .texts("tokenizer.ggml.merges", &merges)
            .numbers("tokenizer.ggml.token_type", &types)
            .id("tokenizer.ggml.eos_token_id", loaded.vocabulary().end_tokens()[0].get());
        let gguf = Loaded::from_bytes(gguf.finish(), &LoadOptions::default()).unwrap();
        assert_eq!(gguf.vocabulary().fingerprint(), loaded.vocabulary().fingerprint());
        check_same(&loaded, &gguf, merges.len().min(128_000));
    }
}

#[test]
fn sentence_piece_gguf_files_are_encoded_as_their_tokenizers() {
    let (Some(loaded), Some(file)) = (shared("llama2"), shared_json("llama2")) else { return };
    let tokens = spellings(&file, loaded.vocabulary().len());
    // The order of the merges is that of the scores of what they make.
    let merges = file["model"]["merges"].as_array().unwrap();
    let order: HashMap<String, usize> = merges
        .iter()
        .enumerate()
        .map(|(place, pair)| (merge(pair).replace(' ', ""), place))
        .collect();
    let score = |token: &String| -(order.get(token).map_or(1e6, |&place| place as f32));
    let scores: Vec<f32> = tokens.iter().map(score).collect();
    let mut types = vec![2, 3, 3];
    types.extend([6; 256]);
    types.resize(32_000, 1);
    let gguf = GgufWriter::new()
        .text("tokenizer.ggml.model", "llama")
        .texts("tokenizer.ggml.tokens", &tokens)
        .floats("tokenizer.ggml.scores", &scores)
        .numbers("tokenizer.ggml.token_type", &types)
        .id("tokenizer.ggml.eos_token_id", 2);
    let gguf = Loaded::from_bytes(gguf.finish(), &LoadOptions::default()).unwrap();
    assert_eq!(gguf.vocabulary().fingerprint(), loaded.vocabulary().fingerprint());
    check_same(&loaded, &gguf, 32_000);
    let prompt = "<s>[INST] Hi, who are you? [/INST]";
    let expected = loaded.encoder().encode_prompt(prompt).unwrap();
    assert_eq!(gguf.encoder().encode_prompt(prompt).unwrap(), expected);
}

/// Returns the strings of all ids as the file spells them.
fn spellings(file: &Value, len: usize) -> Vec<String> {
    let mut tokens = vec![String::new(); len];
    let mut set = |id: &Value, text: &str| {
        tokens[usize::try_from(id.as_u64().unwrap()).unwrap()] = text.to_owned();
    };
    for (text, id) in file["model"]["vocab"].as_object().unwrap() {
        set(id, text);
    }
    for added in file["added_tokens"].as_array().unwrap() {
        set(&added["id"], added["content"].as_str().unwrap());
    }
    tokens
}

fn merge(merge: &Value) -> String {
    match merge {
        Value::String(text) => text.clone(),
        pair => format!("{} {}", pair[0].as_str().unwrap(), pair[1].as_str().unwrap()),
    }
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
