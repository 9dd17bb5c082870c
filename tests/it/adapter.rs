//! `schemac generate --model` with a model of random weights: what it prints, and its exit codes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use candle_core::quantized::gguf_file::Value;

use crate::schemas::{shipped, validator};

#[path = "../support/tiny_model.rs"]
mod tiny_model;

/// Writes a model file for one test; other metadata may replace its own.
fn model(name: &str, replaced: &[(&str, Value)]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, tiny_model::bytes(replaced)).unwrap();
    path
}

fn generate(model: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_schemac"))
        .args(["generate", "--model", model.to_str().unwrap()])
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("RAYON_NUM_THREADS", "1")
        .output()
        .unwrap()
}

/// Returns what was printed, with its exit code.
fn outcome(output: &Output) -> (i32, String) {
    let text = [output.stdout.as_slice(), &output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[test]
fn a_model_without_sense_is_held_to_every_shipped_schema() {
    let long = Value::U32(1_024);
    let model = model("tiny.gguf", &[("llama.context_length", long)]);
    for (name, schema) in shipped() {
        let validator = validator(&schema);
        let path = format!("schemas/{name}.json");
        let args = ["--schema", &path, "--prompt", "he", "--count", "2", "--max-tokens", "600"];
        let (code, text) = outcome(&generate(&model, &args));
        assert_eq!(code, 0, "{name}: {text}");
        let documents = serde_json::Deserializer::from_str(&text).into_iter();
        let documents: Vec<serde_json::Value> = documents.map(Result::unwrap).collect();
        assert_eq!(documents.len(), 2, "{name}: {text}");
        assert!(documents.iter().all(|document| validator.is_valid(document)), "{name}: {text}");
    }
}

#[test]
fn the_context_bounds_prompt_and_output_together() {
    let model = model("context.gguf", &[]);
    // 50 of 64 tokens are the prompt; the rest is enough for the shortest output.
    let prompt = "x".repeat(48);
    let args = ["--regex", "a{3,}", "--prompt", &prompt, "--temperature", "0"];
    let (code, text) = outcome(&generate(&model, &args));
    assert_eq!(code, 0, "{text}");
    assert!(text.trim_end().len() < 15 && text.trim_end().len() >= 3, "{text:?}");
    for prompt in ["x".repeat(62), "x".repeat(63), "x".repeat(500)] {
        let (code, text) = outcome(&generate(&model, &["--regex", "a{3,}", "--prompt", &prompt]));
        assert!(matches!(code, 2 | 5), "{code}: {text}");
        assert!(text.contains("token"), "{text}");
    }
}

#[test]
fn what_is_no_model_is_refused_with_the_reason() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let whole = tiny_model::bytes(&[]);
    let truncated = folder.join("truncated.gguf");
    std::fs::write(&truncated, &whole[..whole.len() - 64]).unwrap();
    let foreign = model("foreign.gguf", &[("general.architecture", tiny_model::text("mamba"))]);
    let wordless = model(
        "wordless.gguf",
        &[("tokenizer.ggml.tokens", Value::Array(vec![tiny_model::text("</s>")]))],
    );
    let artifact = folder.join("embedded.schemac");
    let compiled = Command::new(env!("CARGO_BIN_EXE_schemac"))
        .args(["compile", "--regex", "a{3,}", "--lazy", "-o", artifact.to_str().unwrap()])
        .output();
    assert!(compiled.unwrap().status.success());
    let whole = model("whole.gguf", &[]);
    let regex = ["--regex", "a{3,}"];
    for (model, args, part) in [
        (folder.join("missing.gguf"), &regex[..], "missing.gguf"),
        (PathBuf::from("README.md"), &regex[..], "error[vocabulary]"),
        (truncated, &regex[..], "output.weight"),
        (foreign, &regex[..], "`mamba`"),
        (wordless, &regex[..], "error[vocabulary]"),
        (whole, &[artifact.to_str().unwrap()][..], "error[artifact]"),
    ] {
        let (code, text) = outcome(&generate(&model, args));
        assert_eq!(code, 4, "{}: {text}", model.display());
        assert!(text.contains(part), "{}: {text}", model.display());
    }
}
