//! Broken and malicious files: refused, never a panic, never much memory.

use rand::{Rng, SeedableRng};

use super::fixtures::{
    GgufWriter, added, byte_level_gguf, byte_level_json, sentence_piece_gguf, sentence_piece_json,
    unigram_json,
};
use crate::error::ErrorKind;
use crate::vocab::{LoadOptions, Loaded};

fn load(file: &[u8]) -> Result<Loaded, crate::Error> {
    Loaded::from_bytes(file.to_vec(), &LoadOptions::default())
}

fn files() -> Vec<Vec<u8>> {
    let json = [byte_level_json(), sentence_piece_json(), unigram_json()];
    let ranks = b"YQ== 0\nYg== 1\nPHw= 2\n".to_vec();
    json.iter()
        .map(|file| file.to_string().into_bytes())
        .chain([byte_level_gguf().finish(), sentence_piece_gguf().finish(), ranks])
        .collect()
}

#[test]
fn every_truncation_is_refused_or_read() {
    for file in files() {
        // All short ones, and a sample of the others.
        for len in (0..file.len().min(300)).chain((300..file.len()).step_by(97)) {
            if load(&file[..len]).is_ok() {
                assert!(!file.starts_with(b"GGUF"), "a GGUF file cut at {len} was accepted");
            }
        }
    }
}

#[test]
fn random_damage_never_panics() {
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(2);
    let mut refused = 0;
    for file in files() {
        for _ in 0..400 {
            let mut file = file.clone();
            for _ in 0..random.random_range(1..8) {
                let at = random.random_range(0..file.len());
                file[at] = match random.random_range(0..3) {
                    0 => random.random(),
                    1 => 0xff,
                    _ => file[random.random_range(0..file.len())],
                };
            }
            refused += usize::from(load(&file).is_err());
        }
    }
    assert!(refused > 0);
}

#[test]
fn absurd_lengths_in_gguf_files_are_refused_at_once() {
    let huge = u64::MAX.to_le_bytes();
    let large = (1_u64 << 40).to_le_bytes();
    let array = |kind: u32, len: [u8; 8]| [kind.to_le_bytes().as_slice(), &len].concat();
    let key = "tokenizer.ggml.tokens";
    let files = [
        GgufWriter::new().raw("x", 8, &huge).finish(),
        GgufWriter::new().raw("x", 8, &large).finish(),
        GgufWriter::new().raw("x", 9, &array(8, huge)).finish(),
        GgufWriter::new().raw("x", 9, &array(9, large)).finish(),
        GgufWriter::new().raw("x", 9, &array(0, large)).finish(),
        GgufWriter::new().raw(key, 9, &array(8, huge)).finish(),
        GgufWriter::new().raw(key, 9, &array(8, large)).finish(),
        GgufWriter::new().raw("tokenizer.ggml.scores", 9, &array(6, large)).finish(),
        GgufWriter::new().raw("x", 13, &[]).finish(),
        GgufWriter::new().raw("x", u32::MAX, &[]).finish(),
        GgufWriter::new().raw(&"k".repeat(70_000), 0, &[0]).finish(),
        // A header that announces entries without end.
        [b"GGUF".as_slice(), &3_u32.to_le_bytes(), &huge, &huge].concat(),
        [b"GGUF".as_slice(), &1_u32.to_le_bytes(), &[0; 16]].concat(),
        [b"GGUF".as_slice(), &3_u32.to_be_bytes(), &[0; 16]].concat(),
        b"GGUF".to_vec(),
    ];
    for file in files {
        assert_eq!(load(&file).unwrap_err().kind(), &ErrorKind::Vocabulary);
    }
}

#[test]
fn arrays_nested_a_hundred_thousand_deep_need_no_stack() {
    let level = [9_u32.to_le_bytes().as_slice(), &1_u64.to_le_bytes()].concat();
    let nested = level.repeat(100_000);
    let open = GgufWriter::new().raw("x", 9, &nested).finish();
    assert_eq!(load(&open).unwrap_err().kind(), &ErrorKind::Vocabulary);
    let end = [0_u32.to_le_bytes().as_slice(), &0_u64.to_le_bytes()].concat();
    let mut file = byte_level_gguf().raw("x", 9, &[nested, end].concat()).finish();
    assert!(load(&file).is_ok());
    file.pop();
    assert!(load(&file).is_err());
}

#[test]
fn json_cannot_ask_for_a_huge_table() {
    let mut file = byte_level_json();
    file["added_tokens"] = serde_json::json!([added(u32::MAX, "<|im_end|>", true)]);
    let error = load(file.to_string().as_bytes()).unwrap_err();
    assert!(error.message().contains("larger than the whole file"), "{error}");
    let tekken = r#"{"config":{"pattern":"","default_vocab_size":99999999999,"default_num_special_tokens":99999999},"vocab":[]}"#;
    assert_eq!(load(tekken.as_bytes()).unwrap_err().kind(), &ErrorKind::Vocabulary);
    let ranks = b"YQ== 18446744073709551615\n";
    assert_eq!(load(ranks).unwrap_err().kind(), &ErrorKind::Vocabulary);
}

#[test]
fn deep_json_is_refused() {
    for open in ["[", "{\"a\":"] {
        let deep = open.repeat(200_000);
        let error = load(format!("{{\"model\": {{\"vocab\": {deep}").as_bytes()).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Vocabulary);
        let error = load(format!("{{\"decoder\": {deep}").as_bytes()).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Vocabulary);
    }
}

#[test]
fn foreign_files_are_refused() {
    for text in ["", " ", "{}", "{\"a\": 1}", "[]", "null", "hello", "\u{feff}{}", "\0\0\0\0"] {
        assert_eq!(load(text.as_bytes()).unwrap_err().kind(), &ErrorKind::Vocabulary, "{text:?}");
    }
    let missing = crate::vocab::load("no/such/tokenizer.json", &LoadOptions::default());
    assert_eq!(missing.unwrap_err().kind(), &ErrorKind::Io);
}
