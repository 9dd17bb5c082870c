//! A model of random weights through the whole adapter.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::{Content, Value};
use candle_core::{Device, Tensor};
use candle_transformers::models::quantized_llama::ModelWeights;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use self::tiny_model::{shapes, text, tokens};
use super::{CacheLimits, GgufModel, Message, PromptEncoder, requantize};
use crate::error::ErrorKind;
use crate::ids::TokenId;
use crate::runtime::Model;
use crate::vocab::{LoadOptions, Loaded};

#[path = "../../../tests/support/tiny_model.rs"]
mod tiny_model;

/// A file that is removed in the end.
struct TestFile(PathBuf);

impl AsRef<Path> for TestFile {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        // It may be gone, or never have been made.
        drop(fs::remove_file(&self.0));
    }
}

fn path(name: &str) -> TestFile {
    TestFile(std::env::temp_dir().join(format!("schemac-{}-{name}", std::process::id())))
}

/// Returns a model file, with some of its metadata replaced.
fn file(name: &str, replaced: &[(&str, Value)]) -> TestFile {
    let path = path(name);
    fs::write(&path, tiny_model::bytes(replaced)).unwrap();
    path
}

fn id(name: &str) -> TokenId {
    TokenId::new(tiny_model::id(name))
}

fn load(path: &TestFile) -> GgufModel {
    GgufModel::load(path, &Device::Cpu).unwrap()
}

fn close(a: &[f32], b: &[f32], tolerance: f32) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= tolerance)
}

#[test]
fn logits_depend_on_the_history_alone_not_on_how_it_was_fed() {
    let path = file("history.gguf", &[]);
    let history: Vec<TokenId> = (0..40).map(|i| TokenId::new(i * 7 % 90)).collect();
    let mut other = history.clone();
    other[20] = TokenId::new(3);
    let mut fed = load(&path);
    assert_eq!(fed.context_length(), 64);
    for tokens in
        [&history[..5], &history[..6], &history[..20], &other[..21], &history[..40], &other]
    {
        let fresh = load(&path).run(tokens).unwrap().to_vec();
        assert_eq!(fresh.len(), tiny_model::tokens().len());
        assert!(close(fed.run(tokens).unwrap(), &fresh, 1e-4), "{} tokens", tokens.len());
    }
    let a = fed.run(&history[..39]).unwrap().to_vec();
    assert!(!close(fed.run(&other[..39]).unwrap(), &a, 1e-2), "the history matters");
}

/// The tiny model with quantised weights.
fn quantised(name: &str) -> TestFile {
    let source = file(&format!("{name}-source.gguf"), &[]);
    let target = path(&format!("{name}.gguf"));
    requantize(&source, &target, GgmlDType::Q8_0).unwrap();
    target
}

#[test]
fn logits_are_those_of_candle_s_own_network() {
    for path in [file("ours.gguf", &[]), quantised("ours-q8")] {
        let mut reader = fs::File::open(&path).unwrap();
        let content = Content::read(&mut reader).unwrap();
        let mut reference = ModelWeights::from_gguf(content, &mut reader, &Device::Cpu).unwrap();
        let mut model = load(&path);
        let history: Vec<TokenId> = (0..30).map(|i| TokenId::new(i * 11 % 90)).collect();
        // The first ten at a time, then one after another.
        for (from, to) in std::iter::once((0, 10)).chain((10..30).map(|at| (at, at + 1))) {
            let ids: Vec<u32> = history[from..to].iter().map(|token| token.get()).collect();
            let ids = Tensor::new(ids, &Device::Cpu).unwrap().unsqueeze(0).unwrap();
            let wanted = reference.forward(&ids, from).unwrap().flatten_all().unwrap();
            let wanted: Vec<f32> = wanted.to_vec1().unwrap();
            let largest = wanted.iter().fold(0.0_f32, |most, logit| most.max(logit.abs()));
            let found = model.run(&history[..to]).unwrap();
            assert!(close(found, &wanted, largest * 1e-4), "after {to} tokens");
        }
    }
}

#[test]
fn quantised_rows_are_the_same_bits_however_they_are_asked_for() {
    let path = quantised("bits");
    let alone = |history: &[TokenId]| load(&path).run(history).unwrap().to_vec();
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let mut model = load(&path)
        .remembering(CacheLimits::default().sequences(NonZeroUsize::new(3).unwrap()).bytes(50_000));
    let prompt: Vec<TokenId> = (0..9).map(|i| TokenId::new(i * 5 % 90)).collect();
    model.set_prompt(prompt.clone());
    let mut rows = Vec::new();
    for round in 0..20 {
        let mut sequences: Vec<Vec<TokenId>> = Vec::new();
        for _ in 0..random.random_range(1..6) {
            let len = random.random_range(0..12);
            sequences.push((0..len).map(|_| TokenId::new(random.random_range(0..3))).collect());
        }
        let histories: Vec<_> =
            sequences.iter().map(|tokens| [&prompt[..], tokens].concat()).collect();
        let slices: Vec<_> = sequences.iter().map(Vec::as_slice).collect();
        model.logits_each(&slices, &mut rows).unwrap();
        assert_eq!(rows.len(), sequences.len());
        for (row, history) in rows.iter().zip(&histories) {
            assert_eq!(*row, alone(history), "round {round}");
        }
        let from = sequences[0].len() / 2;
        model.logits_along(&sequences[0], from, &mut rows).unwrap();
        assert_eq!(rows.len(), sequences[0].len() + 1 - from);
        for (more, row) in rows.iter().enumerate() {
            assert_eq!(*row, alone(&histories[0][..prompt.len() + from + more]), "round {round}");
        }
    }
    let mut clone = model.clone();
    clone.logits(&[], &mut rows[0]).unwrap();
    assert_eq!(rows[0], alone(&prompt), "a clone has the prompt");
}

#[test]
fn histories_that_the_model_cannot_take_are_errors() {
    let mut model = load(&file("bounds.gguf", &[]));
    let unknown = TokenId::from_index(tokens().len()).unwrap();
    for tokens in [vec![], vec![TokenId::new(1); 65], vec![unknown]] {
        let error = model.run(&tokens).unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Model, "{}", error.message());
    }
    assert!(model.run(&[TokenId::new(1); 64]).is_ok());
    // Without a prompt there is nothing that the first token comes after.
    let mut rows = Vec::new();
    assert!(model.logits_along(&[TokenId::new(1)], 0, &mut rows).is_err());
    assert!(model.logits_along(&[TokenId::new(1)], 1, &mut rows).is_ok());
    assert!(model.logits_each(&[&[TokenId::new(1)], &[]], &mut rows).is_err());
}

#[test]
fn a_requantised_model_is_nearly_the_same_model() {
    let source = file("source.gguf", &[]);
    let target = path("target.gguf");
    requantize(&source, &target, GgmlDType::Q8_0).unwrap();
    let content = |path: &TestFile| Content::read(&mut fs::File::open(path).unwrap()).unwrap();
    let (before, after) = (content(&source), content(&target));
    assert_eq!(after.metadata.len(), before.metadata.len() - 1);
    assert!(!after.metadata.contains_key("general.file_type"));
    for (name, info) in &after.tensor_infos {
        assert_eq!(info.shape, before.tensor_infos[name].shape);
        let vector = info.shape.rank() == 1;
        assert_eq!(
            info.ggml_dtype,
            if vector { GgmlDType::F32 } else { GgmlDType::Q8_0 },
            "{name}"
        );
    }
    let history: Vec<TokenId> = (0..10).map(TokenId::new).collect();
    let wanted = load(&source).run(&history).unwrap().to_vec();
    let largest = wanted.iter().fold(0.0_f32, |most, logit| most.max(logit.abs()));
    assert!(close(load(&target).run(&history).unwrap(), &wanted, largest / 10.0));
    assert!(!target.0.with_added_extension("part").exists());
}

#[test]
fn prompts_are_encoded_by_the_file_s_own_tokenizer_and_template() {
    let loaded = |path: &TestFile| {
        Loaded::from_bytes(fs::read(path).unwrap(), &LoadOptions::default()).unwrap()
    };
    let prompts = PromptEncoder::new(&loaded(&file("prompt.gguf", &[]))).unwrap();
    assert!(prompts.has_template());
    let ids = |names: &[&str]| names.iter().map(|name| id(name)).collect::<Vec<_>>();
    assert_eq!(prompts.text("he {\"").unwrap(), ids(&["<s>", "he", "\u{120}", "{\""]));
    assert_eq!(prompts.text("</s>a").unwrap(), ids(&["<s>", "</s>", "a"]));
    assert_eq!(prompts.text("").unwrap(), ids(&["<s>"]));
    assert_eq!(prompts.chat(&[Message::user("he")]).unwrap(), ids(&["<s>", "he", "</s>"]));
    let plain = [("tokenizer.ggml.add_bos_token", Value::Bool(false))];
    let prompts = PromptEncoder::new(&loaded(&file("plain.gguf", &plain))).unwrap();
    assert_eq!(prompts.text("he").unwrap(), ids(&["he"]));
    assert_eq!(prompts.text("").unwrap(), ids(&["<s>"]), "a model must start from something");
}

#[test]
fn foreign_truncated_and_contradictory_files_are_refused() {
    let refused = |path: &TestFile| {
        let error = GgufModel::load(path, &Device::Cpu).unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Model, "{}", error.message());
        error.message().to_owned()
    };
    let whole = fs::read(file("whole.gguf", &[])).unwrap();
    let path = file("refused.gguf", &[]);
    let cut = whole.len() - 64;
    for len in (0..cut).step_by(whole.len() / 100).chain([cut]) {
        fs::write(&path, &whole[..len]).unwrap();
        refused(&path);
    }
    let huge = Value::U32(u32::MAX);
    for (key, value) in [
        ("llama.block_count", huge.clone()),
        ("llama.block_count", Value::U32(3)),
        ("llama.embedding_length", huge.clone()),
        ("llama.embedding_length", Value::U32(0)),
        ("llama.attention.head_count", Value::U32(0)),
        ("llama.attention.head_count", text("4")),
        ("llama.attention.head_count_kv", Value::U32(0)),
        ("llama.attention.head_count_kv", Value::U32(3)),
        ("llama.attention.head_count_kv", huge.clone()),
        ("llama.rope.dimension_count", huge),
        ("llama.rope.dimension_count", Value::U32(15)),
        ("llama.rope.dimension_count", Value::U32(8)),
        ("general.alignment", Value::U32(0)),
    ] {
        refused(&file("refused.gguf", &[(key, value)]));
    }
    let message = refused(&file("refused.gguf", &[("general.architecture", text("mamba"))]));
    assert!(message.contains("`mamba`"), "{message}");
    let missing = GgufModel::load(self::path("missing.gguf"), &Device::Cpu).unwrap_err();
    assert_eq!(*missing.kind(), ErrorKind::Io);
}

#[test]
fn damaged_headers_are_refused_or_harmless() {
    let source = file("damaged.gguf", &[]);
    let whole = fs::read(&source).unwrap();
    let weights: usize =
        shapes().iter().map(|(_, shape)| shape.iter().product::<usize>() * 4).sum();
    let header = whole.len() - weights;
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let mut refused = 0;
    for _ in 0..1_500 {
        let mut damaged = whole.clone();
        for _ in 0..random.random_range(1..4) {
            let at = random.random_range(0..header);
            damaged[at] = [0, 1, 0x7f, 0x80, 0xff, random.random()][random.random_range(0..6)];
        }
        fs::write(&source, &damaged).unwrap();
        match GgufModel::load(&source, &Device::Cpu) {
            Ok(mut model) => drop(model.run(&[TokenId::new(1), TokenId::new(2)])),
            Err(error) => {
                assert_eq!(*error.kind(), ErrorKind::Model, "{}", error.message());
                refused += 1;
            }
        }
    }
    assert!(refused > 300, "{refused} refused");
}
