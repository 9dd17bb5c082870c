//! Small tokenizer files of every kind.

use serde_json::{Map, Value, json};

use crate::ids::TokenId;
use crate::vocab::bytes::mapped_char;
use crate::vocab::{LoadOptions, Loaded};

pub(super) fn ids<const N: usize>(ids: [u32; N]) -> [TokenId; N] {
    ids.map(TokenId::new)
}

pub(super) fn from_json(file: &Value) -> Loaded {
    Loaded::from_bytes(file.to_string().into_bytes(), &LoadOptions::default()).unwrap()
}

/// Returns the characters of GPT-2's byte map for `text`.
pub(super) fn mapped(text: &str) -> String {
    text.bytes().map(mapped_char).collect()
}

pub(super) fn added(id: u32, content: &str, special: bool) -> Value {
    json!({
        "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
        "normalized": false, "special": special,
    })
}

fn bpe(vocab: Map<String, Value>, merges: &[[String; 2]], byte_fallback: bool) -> Value {
    json!({
        "type": "BPE", "dropout": null, "unk_token": byte_fallback.then_some("<unk>"),
        "continuing_subword_prefix": null, "end_of_word_suffix": null, "fuse_unk": byte_fallback,
        "byte_fallback": byte_fallback, "vocab": vocab, "merges": merges,
    })
}

/// Byte-level BPE: all bytes, two merges, a hole, and added tokens of both sorts.
pub(super) fn byte_level_json() -> Value {
    let mut vocab: Map<String, Value> =
        (0..=255_u8).map(|byte| (mapped_char(byte).to_string(), byte.into())).collect();
    vocab.insert("ab".into(), 256.into());
    vocab.insert(mapped(" ab"), 257.into());
    // As published files with holes do: the `tokenizers` crate numbers added tokens itself unless
    // the model has them.
    for (id, text) in [(260, "<|im_end|>"), (261, "<think>"), (263, "éé")] {
        vocab.insert(text.into(), id.into());
    }
    let stage = json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true});
    json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": [
            added(260, "<|im_end|>", true),
            added(261, "<think>", false),
            added(263, "éé", false),
        ],
        "normalizer": {"type": "NFC"}, "pre_tokenizer": stage, "post_processor": null, "decoder": stage,
        "model": bpe(vocab, &[["a".into(), "b".into()], [mapped(" "), "ab".into()]], false),
    })
}

/// SentencePiece pieces: special tokens, all bytes, then text.
fn pieces() -> Vec<String> {
    let head = ["<unk>", "<s>", "</s>"].map(String::from);
    let bytes = (0..=255_u8).map(|byte| format!("<0x{byte:02X}>"));
    let text = ["▁", "a", "b", "ab", "▁ab", "é", "▁▁", "A"].map(String::from);
    head.into_iter().chain(bytes).chain(text).collect()
}

fn special_tokens() -> Value {
    json!([added(0, "<unk>", true), added(1, "<s>", true), added(2, "</s>", true)])
}

/// SentencePiece-style BPE, laid out as Llama 2's file.
pub(super) fn sentence_piece_json() -> Value {
    let vocab = (0_u32..).zip(pieces()).map(|(id, piece)| (piece, id.into())).collect();
    let merges = [["a", "b"], ["▁", "ab"], ["▁", "▁"]].map(|pair| pair.map(String::from));
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": special_tokens(),
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        ]},
        "pre_tokenizer": null, "post_processor": null,
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"},
            {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        ]},
        "model": bpe(vocab, &merges, true),
    })
}

/// Unigram with a metaspace pre-tokenizer and decoder.
pub(super) fn unigram_json() -> Value {
    let scores = (0_u32..).map(|id| -f64::from(id) / 8.0);
    let vocab: Vec<_> =
        pieces().into_iter().filter(|piece| !piece.starts_with("<0x")).zip(scores).collect();
    let metaspace =
        json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true});
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": special_tokens(),
        "normalizer": null, "pre_tokenizer": metaspace, "post_processor": null, "decoder": metaspace,
        "model": {"type": "Unigram", "unk_id": 0, "vocab": vocab, "byte_fallback": false},
    })
}

/// Writes GGUF metadata.
pub(super) struct GgufWriter {
    entries: u64,
    body: Vec<u8>,
}

impl GgufWriter {
    pub(super) const fn new() -> Self {
        Self { entries: 0, body: Vec::new() }
    }

    fn key(&mut self, key: &str, kind: u32) -> &mut Self {
        self.entries += 1;
        self.string(key);
        self.body.extend(kind.to_le_bytes());
        self
    }

    fn string(&mut self, text: &str) {
        self.body.extend((text.len() as u64).to_le_bytes());
        self.body.extend(text.as_bytes());
    }

    pub(super) fn text(mut self, key: &str, value: &str) -> Self {
        self.key(key, 8).string(value);
        self
    }

    pub(super) fn id(mut self, key: &str, value: u32) -> Self {
        self.key(key, 4).body.extend(value.to_le_bytes());
        self
    }

    pub(super) fn flag(mut self, key: &str, value: bool) -> Self {
        self.key(key, 7).body.push(value.into());
        self
    }

    fn array(&mut self, key: &str, kind: u32, len: usize) {
        self.key(key, 9).body.extend(kind.to_le_bytes());
        self.body.extend((len as u64).to_le_bytes());
    }

    pub(super) fn texts(mut self, key: &str, values: &[String]) -> Self {
        self.array(key, 8, values.len());
        values.iter().for_each(|value| self.string(value));
        self
    }

    pub(super) fn numbers(mut self, key: &str, values: &[i32]) -> Self {
        self.array(key, 5, values.len());
        values.iter().for_each(|value| self.body.extend(value.to_le_bytes()));
        self
    }

    pub(super) fn floats(mut self, key: &str, values: &[f32]) -> Self {
        self.array(key, 6, values.len());
        values.iter().for_each(|value| self.body.extend(value.to_le_bytes()));
        self
    }

    /// An entry of any kind, whose value is `value` as it is.
    pub(super) fn raw(mut self, key: &str, kind: u32, value: &[u8]) -> Self {
        self.key(key, kind).body.extend(value);
        self
    }

    pub(super) fn finish(self) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(3_u32.to_le_bytes());
        file.extend(0_u64.to_le_bytes());
        file.extend(self.entries.to_le_bytes());
        file.extend(self.body);
        file
    }
}

/// A byte-level GGUF tokenizer with SmolLM's pre-tokenizer, and metadata of other kinds between.
pub(super) fn byte_level_gguf() -> GgufWriter {
    let mut tokens: Vec<String> = (0..=255).map(|byte| mapped_char(byte).to_string()).collect();
    let text = ["ab", "Ġab", "12", "<|im_end|>", "<tool>", "[unused]"].map(String::from);
    tokens.extend(text);
    let mut types = vec![1; 259];
    types.extend([3, 4, 5]);
    // Arrays within arrays: [[1, 2], []] of bytes, which must be passed.
    let nested: Vec<u8> = [9_u32.to_le_bytes().as_slice(), &2_u64.to_le_bytes()]
        .into_iter()
        .chain([0_u32.to_le_bytes().as_slice(), &2_u64.to_le_bytes(), &[1, 2]])
        .chain([0_u32.to_le_bytes().as_slice(), &0_u64.to_le_bytes()])
        .flatten()
        .copied()
        .collect();
    GgufWriter::new()
        .text("general.architecture", "llama")
        .raw("some.nested", 9, &nested)
        .raw("some.double", 12, &1.5_f64.to_le_bytes())
        .text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.ggml.pre", "smollm")
        .texts("tokenizer.ggml.tokens", &tokens)
        .texts("some.texts", &tokens)
        .numbers("tokenizer.ggml.token_type", &types)
        .texts("tokenizer.ggml.merges", &["a b", "Ġ ab", "1 2"].map(String::from))
        .id("tokenizer.ggml.eos_token_id", 259)
        .id("tokenizer.ggml.padding_token_id", u32::MAX)
        .text("tokenizer.chat_template", "{{ messages }}")
}

/// A SentencePiece GGUF tokenizer with a user-defined token.
pub(super) fn sentence_piece_gguf() -> GgufWriter {
    let mut tokens = pieces();
    tokens.push("<tag>".into());
    let mut types = vec![2, 3, 3];
    types.extend([6; 256]);
    types.extend([1; 8]);
    types.push(4);
    let mut scores = vec![0.0; tokens.len() - 9];
    // In the order of the pieces: ▁ a b ab ▁ab é ▁▁ A <tag>.
    scores.extend([-5.0, -6.0, -7.0, -1.0, -2.0, -8.0, -3.0, -9.0, 0.0]);
    GgufWriter::new()
        .text("tokenizer.ggml.model", "llama")
        .texts("tokenizer.ggml.tokens", &tokens)
        .floats("tokenizer.ggml.scores", &scores)
        .numbers("tokenizer.ggml.token_type", &types)
        .id("tokenizer.ggml.bos_token_id", 1)
        .id("tokenizer.ggml.eos_token_id", 2)
        .flag("tokenizer.ggml.add_bos_token", true)
}
