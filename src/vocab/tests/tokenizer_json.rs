use serde_json::json;

use super::fixtures::{added, byte_level_json, from_json, ids, sentence_piece_json, unigram_json};
use crate::error::ErrorKind;
use crate::ids::TokenId;
use crate::vocab::{LoadOptions, Loaded, TextRules, Token, VocabularyKind, load};

const fn id(id: u32) -> TokenId {
    TokenId::new(id)
}

#[test]
fn byte_level_tokens_are_their_mapped_bytes() {
    let loaded = from_json(&byte_level_json());
    let vocabulary = loaded.vocabulary();
    assert_eq!(loaded.kind(), VocabularyKind::TokenizerJson);
    for byte in 0..=255_u8 {
        assert_eq!(vocabulary.bytes(id(byte.into())), [byte]);
    }
    assert_eq!(vocabulary.bytes(id(257)), b" ab");
    assert_eq!(vocabulary.token(id(258)), Token::Unused, "holes stay");
    assert_eq!(vocabulary.token(id(260)), Token::Special("<|im_end|>".into()));
    assert_eq!(vocabulary.bytes(id(261)), b"<think>", "added text that is not special is text");
    assert_eq!(vocabulary.len(), 264, "the largest id plus one");
    assert_eq!(vocabulary.end_tokens(), ids([260]), "by its well-known name");
    assert_eq!(loaded.text_rules(), TextRules { strip_leading_space: false, prepend_space: true });
    assert_eq!(vocabulary.bytes(id(263)), "éé".as_bytes());
    assert_eq!(loaded.reinterpreted(), ids([263]));
}

#[test]
fn sentence_piece_tokens_keep_their_space() {
    let loaded = from_json(&sentence_piece_json());
    let vocabulary = loaded.vocabulary();
    assert_eq!(vocabulary.token(id(0)), Token::Special("<unk>".into()));
    assert_eq!(vocabulary.bytes(id(3 + 0xe2)), b"\xe2");
    assert_eq!(vocabulary.bytes(id(3 + 256 + 4)), b" ab");
    assert_eq!(vocabulary.bytes(id(3 + 256 + 6)), b"  ");
    assert_eq!(loaded.text_rules(), TextRules { strip_leading_space: true, prepend_space: true });
    assert_eq!(vocabulary.end_tokens(), ids([2]));

    let unigram = from_json(&unigram_json());
    assert_eq!(unigram.vocabulary().bytes(id(7)), b" ab");
    assert_eq!(unigram.vocabulary().token(id(0)), Token::Special("<unk>".into()));
    assert_eq!(unigram.text_rules(), TextRules { strip_leading_space: true, prepend_space: true });
}

#[test]
fn an_unknown_token_that_is_not_added_is_special_all_the_same() {
    let mut file = sentence_piece_json();
    file["added_tokens"] = json!([added(2, "</s>", true)]);
    assert_eq!(from_json(&file).vocabulary().token(id(0)), Token::Special("<unk>".into()));
    let mut file = unigram_json();
    file["added_tokens"] = json!([added(2, "</s>", true)]);
    file["model"]["unk_id"] = json!(1);
    let vocabulary = from_json(&file);
    assert_eq!(vocabulary.vocabulary().token(id(1)), Token::Special("<s>".into()));
}

#[test]
fn word_piece_and_word_level_are_refused_by_their_decoders() {
    let file = |model: &str, decoder: serde_json::Value| {
        json!({
            "added_tokens": [added(1, "</s>", true)],
            "decoder": decoder,
            "model": {"type": model, "vocab": {"a": 0}, "unk_token": "[UNK]"},
        })
    };
    let refused = [
        (file("WordPiece", json!({"type": "WordPiece", "prefix": "##"})), "decoder WordPiece"),
        (file("WordLevel", json!(null)), "decoder no decoder"),
    ];
    for (file, feature) in refused {
        let file = file.to_string().into_bytes();
        let error = Loaded::from_bytes(file, &LoadOptions::default()).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::UnsupportedFeature { feature: feature.into() });
    }
}

/// Files in a folder of their own, removed at the end.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, String)]) -> Self {
        let path = std::env::temp_dir().join(format!("schemac-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        for (file, text) in files {
            std::fs::write(path.join(file), text).unwrap();
        }
        Self(path)
    }

    fn end_tokens(&self, options: &LoadOptions) -> Vec<u32> {
        let loaded = load(&self.0, options).unwrap();
        loaded.vocabulary().end_tokens().iter().map(|id| id.get()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn end_tokens_come_from_the_files_beside_and_the_caller_comes_first() {
    let tokenizer = || ("tokenizer.json", byte_level_json().to_string());
    let config = |eos: &str| ("tokenizer_config.json", format!(r#"{{"eos_token": {eos}}}"#));
    let generation =
        |ids: &str| ("generation_config.json", format!(r#"{{"eos_token_id": {ids}}}"#));
    let default = LoadOptions::default();

    let plain = Folder::new("plain", &[tokenizer(), config(r#""<think>""#)]);
    assert_eq!(plain.end_tokens(&default), [261]);
    assert_eq!(plain.end_tokens(&LoadOptions::default().end_token("ab")), [256]);
    assert_eq!(plain.end_tokens(&LoadOptions::default().end_token(id(7))), [7]);

    let object = Folder::new("object", &[tokenizer(), config(r#"{"content": "<think>"}"#)]);
    assert_eq!(object.end_tokens(&default), [261]);

    let both = Folder::new("both", &[tokenizer(), config(r#""<think>""#), generation("[260, 0]")]);
    assert_eq!(both.end_tokens(&default), [0, 260, 261]);

    let one = Folder::new("one", &[tokenizer(), config("null"), generation("256")]);
    assert_eq!(one.end_tokens(&default), [256]);

    for (name, files) in [
        ("unknown", [tokenizer(), config(r#""<nope>""#)]),
        ("outside", [tokenizer(), generation("264")]),
        ("malformed", [tokenizer(), generation(r#""x""#)]),
        ("number", [tokenizer(), config("5")]),
        ("broken", [tokenizer(), ("tokenizer_config.json", "{".into())]),
    ] {
        let error = load(&Folder::new(name, &files).0, &default).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Vocabulary, "{name}");
    }
}

#[test]
fn a_missing_end_token_is_an_error_that_says_what_to_do() {
    let mut file = byte_level_json();
    file["added_tokens"] = json!([]);
    let file = file.to_string().into_bytes();
    let error = Loaded::from_bytes(file.clone(), &LoadOptions::default()).unwrap_err();
    assert!(error.message().contains("LoadOptions::end_token"));
    assert!(Loaded::from_bytes(file, &LoadOptions::default().end_token("ab")).is_ok());
}

#[cfg(feature = "tokenizers")]
#[test]
fn grammar_text_is_encoded_as_it_is() {
    for (file, text) in [
        (byte_level_json(), "ab  ab e\u{301} <|im_end|> <think>"),
        (sentence_piece_json(), "ab  ab é </s> €"),
        (unigram_json(), "ab a  é bA"),
    ] {
        let loaded = from_json(&file);
        let tokens = loaded.encoder().encode(text).unwrap();
        assert_eq!(loaded.vocabulary().decode(&tokens), text.as_bytes());
        let proposed = loaded.encoder().propose(text).unwrap();
        assert_eq!(proposed, Some(tokens), "by the tokenizer, not by the fallback");
    }
}

#[cfg(feature = "tokenizers")]
#[test]
fn prompts_are_encoded_as_the_tokenizer_does() {
    let byte_level = from_json(&byte_level_json());
    // The prepended space makes ` ab`, and the name of a special token is that token.
    let tokens = byte_level.encoder().encode_prompt("ab<|im_end|>").unwrap();
    assert_eq!(tokens, ids([257, 260]));
    let sentence_piece = from_json(&sentence_piece_json());
    assert_eq!(sentence_piece.encoder().encode_prompt("ab</s>").unwrap(), ids([263, 2]));
}

#[cfg(feature = "tokenizers")]
#[test]
fn text_without_tokens_is_unspellable() {
    let unigram = from_json(&unigram_json());
    assert_eq!(unigram.encoder().encode("aZ").unwrap_err().kind(), &ErrorKind::Unspellable);
}

#[cfg(feature = "tokenizers")]
#[test]
fn self_check_finds_the_tokens_that_decode_otherwise() {
    let report = from_json(&byte_level_json()).self_check().unwrap();
    assert!(report.decoder_compared);
    let mismatches: Vec<_> = report.mismatches.iter().map(|mismatch| mismatch.id.get()).collect();
    assert_eq!(mismatches, [263], "the added éé, which the decoder writes as E9 E9");
    assert!(!report.is_consistent());

    let mut file = byte_level_json();
    file["added_tokens"] = json!([added(260, "<|im_end|>", true), added(261, "<think>", false)]);
    file["model"]["vocab"].as_object_mut().unwrap().remove("éé");
    let report = from_json(&file).self_check().unwrap();
    assert!(report.is_consistent(), "{report}");

    let report = from_json(&sentence_piece_json()).self_check().unwrap();
    assert!(report.is_consistent(), "{report}");
    assert_eq!(report.duplicates, 4, "`<0x20>`, `<0x41>`, `<0x61>` and `<0x62>` are also pieces");
}

#[cfg(feature = "tokenizers")]
#[test]
fn files_on_which_the_foreign_crate_panics_are_errors() {
    let mut file = byte_level_json();
    // Merging `b` after removing this prefix slices past its end.
    file["model"]["continuing_subword_prefix"] = json!("#####");
    let loaded = from_json(&file);
    for error in [
        loaded.encoder().encode("ab").unwrap_err(),
        loaded.encoder().encode_prompt("ab").unwrap_err(),
        loaded.self_check().unwrap_err(),
    ] {
        assert_eq!(error.kind(), &ErrorKind::Vocabulary);
    }
    for charsmap in ["", "AAAA", "/////w==", "!"] {
        file["normalizer"] = json!({"type": "Precompiled", "precompiled_charsmap": charsmap});
        let file = file.to_string().into_bytes();
        assert!(Loaded::from_bytes(file, &LoadOptions::default()).is_err(), "{charsmap}");
    }
}

#[cfg(feature = "tokenizers")]
#[test]
fn the_metaspace_itself_is_spelled_in_bytes() {
    let loaded = from_json(&sentence_piece_json());
    let tokens = loaded.encoder().encode("a▁b").unwrap();
    assert_eq!(loaded.vocabulary().decode(&tokens), "a▁b".as_bytes());
}
