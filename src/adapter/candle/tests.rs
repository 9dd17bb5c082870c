//! A model of random weights through the whole adapter.

use std::fs;
use std::path::{Path, PathBuf};

use candle_core::Device;
use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::{Content, Value};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use self::tiny_model::{shapes, text, tokens};
use super::{GgufModel, Message, PromptEncoder, requantize};
use crate::error::ErrorKind;
use crate::ids::TokenId;
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

#[test]
fn histories_that_the_model_cannot_take_are_errors() {
    let mut model = load(&file("bounds.gguf", &[]));
    let unknown = TokenId::from_index(tokens().len()).unwrap();
    for tokens in [vec![], vec![TokenId::new(1); 65], vec![unknown]] {
        let error = model.run(&tokens).unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Model, "{}", error.message());
    }
    assert!(model.run(&[TokenId::new(1); 64]).is_ok());
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
