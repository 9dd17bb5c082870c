//! A GGUF model of random weights and a byte-level tokenizer, small enough to be made for each test.

use candle_core::quantized::gguf_file::{Value, write};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// `'!'..='~'`, space and newline as byte-level BPE spells them, two merged tokens, two special ones.
pub(crate) fn tokens() -> Vec<String> {
    let bytes = (b'!'..=b'~').map(|byte| char::from(byte).to_string());
    let others = ["\u{120}", "\u{10a}", "he", "{\"", "<s>", "</s>"].map(str::to_owned);
    bytes.chain(others).collect()
}

/// The id of a token.
pub(crate) fn id(name: &str) -> u32 {
    tokens().iter().position(|token| token == name).unwrap().try_into().unwrap()
}

/// A text of the metadata.
pub(crate) fn text(value: &str) -> Value {
    Value::String(value.to_owned())
}

fn metadata() -> Vec<(&'static str, Value)> {
    let special = |token: &String| token.len() > 2 && token.ends_with('>');
    let types =
        tokens().iter().map(|token| Value::I32(if special(token) { 3 } else { 1 })).collect();
    vec![
        ("general.architecture", text("llama")),
        ("general.file_type", Value::U32(0)),
        ("general.alignment", Value::U32(32)),
        ("llama.block_count", Value::U32(2)),
        ("llama.context_length", Value::U32(64)),
        ("llama.embedding_length", Value::U32(64)),
        ("llama.attention.head_count", Value::U32(4)),
        ("llama.attention.head_count_kv", Value::U32(2)),
        ("llama.attention.layer_norm_rms_epsilon", Value::F32(1e-5)),
        ("llama.rope.dimension_count", Value::U32(16)),
        ("tokenizer.ggml.model", text("gpt2")),
        ("tokenizer.ggml.pre", text("smollm")),
        ("tokenizer.ggml.tokens", Value::Array(tokens().iter().map(|token| text(token)).collect())),
        ("tokenizer.ggml.token_type", Value::Array(types)),
        ("tokenizer.ggml.merges", Value::Array(vec![text("h e"), text("{ \"")])),
        ("tokenizer.ggml.bos_token_id", Value::U32(id("<s>"))),
        ("tokenizer.ggml.eos_token_id", Value::U32(id("</s>"))),
        ("tokenizer.ggml.add_bos_token", Value::Bool(true)),
        (
            "tokenizer.chat_template",
            text(
                "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}",
            ),
        ),
    ]
}

/// The tensors and their dimensions.
pub(crate) fn shapes() -> Vec<(String, Vec<usize>)> {
    let mut shapes = vec![
        ("token_embd.weight".to_owned(), vec![tokens().len(), 64]),
        ("output_norm.weight".to_owned(), vec![64]),
    ];
    for block in 0..2 {
        for (name, shape) in [
            ("attn_norm", vec![64]),
            ("attn_q", vec![64, 64]),
            ("attn_k", vec![32, 64]),
            ("attn_v", vec![32, 64]),
            ("attn_output", vec![64, 64]),
            ("ffn_norm", vec![64]),
            ("ffn_gate", vec![96, 64]),
            ("ffn_up", vec![96, 64]),
            ("ffn_down", vec![64, 96]),
        ] {
            shapes.push((format!("blk.{block}.{name}.weight"), shape));
        }
    }
    // Candle goes on without it: a file that is cut off here must be noticed.
    shapes.push(("output.weight".to_owned(), vec![tokens().len(), 64]));
    shapes
}

/// Returns the file, with some of its metadata replaced.
pub(crate) fn bytes(replaced: &[(&str, Value)]) -> Vec<u8> {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let tensors: Vec<(String, QTensor)> = shapes()
        .into_iter()
        .map(|(name, shape)| {
            let count: usize = shape.iter().product();
            let values = (0..count).map(|_| random.random_range(-1.0_f32..1.0)).collect();
            let tensor = Tensor::from_vec(values, shape, &Device::Cpu).unwrap();
            (name, QTensor::quantize(&tensor, GgmlDType::F32).unwrap())
        })
        .collect();
    let mut metadata = metadata();
    for (key, value) in &mut metadata {
        if let Some((_, new)) = replaced.iter().find(|(name, _)| name == key) {
            *value = new.clone();
        }
    }
    let metadata: Vec<_> = metadata.iter().map(|(key, value)| (*key, value)).collect();
    let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let mut bytes = std::io::Cursor::new(Vec::new());
    write(&mut bytes, &metadata, &tensors).unwrap();
    bytes.into_inner()
}
