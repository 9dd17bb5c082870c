use super::fixtures::{byte_level_gguf, ids, sentence_piece_gguf};
use crate::error::ErrorKind;
use crate::ids::TokenId;
use crate::vocab::{
    GgufTokenType, GgufTokenizerModel, LoadOptions, Loaded, TextRules, Token, VocabularyKind,
};

fn loaded(file: Vec<u8>) -> Loaded {
    Loaded::from_bytes(file, &LoadOptions::default()).unwrap()
}

#[test]
fn byte_level_metadata_becomes_a_vocabulary() {
    let loaded = loaded(byte_level_gguf().finish());
    assert_eq!(loaded.kind(), VocabularyKind::Gguf);
    assert_eq!(loaded.text_rules(), TextRules::default());
    let vocabulary = loaded.vocabulary();
    assert_eq!(vocabulary.bytes(TokenId::new(10)), b"\n");
    assert_eq!(vocabulary.bytes(TokenId::new(257)), b" ab");
    assert_eq!(vocabulary.token(TokenId::new(259)), Token::Special("<|im_end|>".into()));
    assert_eq!(vocabulary.bytes(TokenId::new(260)), b"<tool>");
    assert_eq!(vocabulary.token(TokenId::new(261)), Token::Unused);
    assert_eq!(vocabulary.end_tokens(), ids([259]));
    let gguf = loaded.gguf().unwrap();
    assert_eq!(gguf.model, GgufTokenizerModel::Gpt2);
    assert_eq!(gguf.pre.as_deref(), Some("smollm"));
    assert_eq!(gguf.merges.len(), 3);
    assert_eq!(gguf.padding, None, "2^32 - 1 stands for none");
    assert_eq!(gguf.chat_template.as_deref(), Some("{{ messages }}"));
}

#[test]
fn sentence_piece_metadata_becomes_a_vocabulary() {
    let loaded = loaded(sentence_piece_gguf().finish());
    let vocabulary = loaded.vocabulary();
    assert_eq!(vocabulary.token(TokenId::new(0)), Token::Special("<unk>".into()));
    assert_eq!(vocabulary.bytes(TokenId::new(3 + 0xff)), b"\xff");
    assert_eq!(vocabulary.bytes(TokenId::new(263)), b" ab");
    assert_eq!(vocabulary.bytes(TokenId::new(267)), b"<tag>");
    assert_eq!(vocabulary.end_tokens(), ids([2]));
    assert_eq!(loaded.text_rules(), TextRules { strip_leading_space: true, prepend_space: true });
    let gguf = loaded.gguf().unwrap();
    assert_eq!((gguf.bos, gguf.add_bos), (Some(TokenId::new(1)), Some(true)));

    let bare = loaded_without_prefix();
    assert_eq!(bare.text_rules(), TextRules::default());
}

fn loaded_without_prefix() -> Loaded {
    loaded(sentence_piece_gguf().flag("tokenizer.ggml.add_space_prefix", false).finish())
}

#[test]
fn sentence_piece_text_is_merged_by_score() {
    let loaded = loaded(sentence_piece_gguf().finish());
    let encoder = loaded.encoder();
    let [space, a, ab, space_ab, spaces, tag] = [259, 260, 262, 263, 265, 267].map(TokenId::new);
    assert_eq!(encoder.encode("aab ab").unwrap(), [a, ab, space_ab]);
    // `ab` scores best, then ` ab`, and only then two spaces.
    assert_eq!(encoder.encode("  ab").unwrap(), [space, space_ab]);
    assert_eq!(encoder.encode("  a").unwrap(), [spaces, a]);
    assert_eq!(encoder.encode("<tag>ab").unwrap(), [tag, ab]);
    assert_eq!(encoder.encode("</s>").unwrap().len(), 4, "the name of a special token is text");
    assert_eq!(encoder.encode("▁").unwrap(), ids([3 + 0xe2, 3 + 0x96, 3 + 0x81]));
    assert_eq!(encoder.encode_prompt("ab</s>ab").unwrap(), [space_ab, TokenId::new(2), space_ab]);
    assert_eq!(loaded_without_prefix().encoder().encode_prompt("ab").unwrap(), [ab]);
    assert!(loaded.self_check().unwrap().is_consistent());
}

#[cfg(feature = "tokenizers")]
#[test]
fn smollm_text_is_split_at_every_digit() {
    let loaded = loaded(byte_level_gguf().finish());
    let encoder = loaded.encoder();
    let one_two = ids([u32::from(b'1'), u32::from(b'2')]);
    assert_eq!(encoder.encode("12").unwrap(), one_two, "although `12` is a merge");
    assert_eq!(encoder.encode("ab ab").unwrap(), ids([256, 257]));
    assert_eq!(encoder.encode_prompt("ab<|im_end|>").unwrap(), ids([256, 259]), "no added space");
    let report = loaded.self_check().unwrap();
    assert!(report.decoder_compared && report.is_consistent(), "{report}");
}

#[cfg(feature = "tokenizers")]
#[test]
fn unknown_pre_tokenizers_are_refused_by_name_when_encoding() {
    let loaded = loaded(byte_level_gguf().text("tokenizer.ggml.pre", "newest").finish());
    let error = loaded.encoder().encode("x").unwrap_err();
    let feature = "tokenizer.ggml.pre newest".into();
    assert_eq!(error.kind(), &ErrorKind::UnsupportedFeature { feature });
    assert!(loaded.vocabulary().encode_greedy(b"x").is_some(), "the vocabulary is of use without");
}

#[cfg(feature = "tokenizers")]
#[test]
fn unigram_metadata_is_encoded_by_score() {
    let loaded = loaded(sentence_piece_gguf().text("tokenizer.ggml.model", "t5").finish());
    let encoder = loaded.encoder();
    assert_eq!(encoder.encode("ab ab").unwrap(), ids([262, 263]));
    assert_eq!(encoder.encode_prompt("ab</s>").unwrap(), ids([263, 2]));
    let report = loaded.self_check().unwrap();
    assert!(report.is_consistent(), "{report}");
}

#[test]
fn types_are_guessed_where_the_file_has_none() {
    let tokens = ["<unk>", "</s>", "<0x41>", "▁a"].map(String::from);
    let file = super::fixtures::GgufWriter::new()
        .text("tokenizer.ggml.model", "llama")
        .texts("tokenizer.ggml.tokens", &tokens)
        .id("tokenizer.ggml.unknown_token_id", 0)
        .id("tokenizer.ggml.eos_token_id", 1)
        .finish();
    let loaded = loaded(file);
    use GgufTokenType::{Byte, Control, Normal};
    assert_eq!(loaded.gguf().unwrap().types, [Control, Control, Byte, Normal]);
    assert_eq!(loaded.vocabulary().bytes(TokenId::new(2)), b"A");
}

#[test]
fn files_without_a_supported_tokenizer_are_refused() {
    let refused = |file: Vec<u8>| Loaded::from_bytes(file, &LoadOptions::default()).unwrap_err();
    let bert = byte_level_gguf().text("tokenizer.ggml.model", "bert").finish();
    let feature = "tokenizer.ggml.model bert".into();
    assert_eq!(refused(bert).kind(), &ErrorKind::UnsupportedFeature { feature });

    let wrong = [
        ("no tokenizer", super::fixtures::GgufWriter::new().finish()),
        ("too few types", byte_level_gguf().numbers("tokenizer.ggml.token_type", &[1]).finish()),
        (
            "a strange type",
            sentence_piece_gguf().numbers("tokenizer.ggml.token_type", &[9; 268]).finish(),
        ),
        ("an id outside", byte_level_gguf().id("tokenizer.ggml.eot_token_id", 262).finish()),
        ("a text for an id", byte_level_gguf().text("tokenizer.ggml.eos_token_id", "x").finish()),
    ];
    for (name, file) in wrong {
        assert_eq!(refused(file).kind(), &ErrorKind::Vocabulary, "{name}");
    }
    let special = LoadOptions::default().special_token("<x>", TokenId::new(0));
    let error = Loaded::from_bytes(byte_level_gguf().finish(), &special).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::InvalidOption);
}
