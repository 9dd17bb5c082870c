//! Masks along texts of schemas equal the slow reference: keys with open names, searches, lengths under
//! patterns, formats; over a made vocabulary, and over real ones where they are at hand.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use schemac::token::{Matcher, TokenAutomaton};
use schemac::vocab::{LoadOptions, Token, load};
use schemac::{Compiler, TokenId, Vocabulary};

use crate::support::reference::legal_tokens;

/// Schemas, each with texts on the way of which masks are compared.
fn cases() -> Vec<(&'static str, Vec<String>)> {
    let text = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    vec![
        (
            r#"{"type":"object","properties":{"ab":{"type":"integer"},"abc":{"type":"null"},"b1":{
                "type":"object","properties":{"dd":{"type":"boolean"}},"required":["dd"]}}}"#,
            text(&[r#"{"ab":12,"abc":null,"b1":{"dd":true,"da":1},"abd":[1],"c":"a b"}"#]),
        ),
        (
            r#"{"type":"object","properties":{"abcd":true},"patternProperties":{"^a+d":{"type":"null"}},
                "additionalProperties":{"type":"string"}}"#,
            text(&[r#"{"aad":null,"ab":"d","abcd2":"1"}"#]),
        ),
        (r#"{"type":"string","pattern":"(ab|c1).*d|abd"}"#, text(&["\"abab1c1 a b1 d日c\\\"\""])),
        (
            r#"{"type":"string","pattern":"^(?:[a-d]+ ){0,9}[a-d]+$","maxLength":60}"#,
            text(&[
                "\"ab abcd d c a a ab ab\"",
                "\"abababababababababababababababababababababab c\"",
            ]),
        ),
        (
            r#"{"type":"string","pattern":"^a*b{20}$","maxLength":80}"#,
            vec![
                format!("\"{}{}\"", "a".repeat(30), "b".repeat(20)),
                format!("\"{}{}\"", "a".repeat(60), "b".repeat(20)),
            ],
        ),
        (
            r#"{"type":"string","pattern":"^a*b{20}$","minLength":70,"maxLength":70}"#,
            vec![format!("\"{}{}\"", "a".repeat(50), "b".repeat(20))],
        ),
        (r#"{"type":"string","format":"email","maxLength":40}"#, text(&["\"a.b-1c@ab-1.cd.d\""])),
        (r#"{"type":"string","format":"uri"}"#, text(&["\"ab1:-a.b/c?d#-1\""])),
        (
            r#"{"type":"string","pattern":"\\d{2}-[a-b]{2,3}","maxLength":30}"#,
            text(&["\"a b12-1-21-abc d日\""]),
        ),
        (
            r#"{"type":"string","minLength":3,"maxLength":9,"not":{"enum":["abc","abcd"]}}"#,
            text(&["\"abcd日1\\n\""]),
        ),
    ]
}

/// A vocabulary in which many tokens mix letters, signs and quotes, and some end within a character.
pub(crate) fn made_vocabulary() -> Arc<Vocabulary> {
    let mut rng = StdRng::seed_from_u64(11);
    let alphabet: &[&str] = &[
        "a", "b", "ab", "c", "d", "1", "2", " ", "-", "\"", ",", ":", "}", "é", "日", "\\n",
        "\\\"", "@", ".", "{",
    ];
    let mut tokens: Vec<Token> = (0..=255_u8).map(|b| Token::Text([b].into())).collect();
    for _ in 0..12_000 {
        let length = rng.random_range(2..=6);
        let text: String =
            (0..length).map(|_| alphabet[rng.random_range(0..alphabet.len())]).collect();
        let cut = rng.random_range(0..2).min(text.len() - 1);
        tokens.push(Token::Text(text.as_bytes()[..text.len() - cut].into()));
    }
    tokens.push(Token::Text(b"aaaaaaaaaaaaaaaaaaaaaaaa".as_slice().into()));
    tokens.push(Token::Special("end".into()));
    let end = TokenId::from_index(tokens.len() - 1).unwrap();
    Arc::new(Vocabulary::new(tokens, [end]).unwrap())
}

/// Compares the mask after the first `length` bytes of `text` with the reference.
fn compare(automaton: &Arc<TokenAutomaton>, text: &str, length: usize) {
    let mut matcher = Matcher::new(automaton.clone());
    matcher.accept_bytes(&text.as_bytes()[..length]).unwrap();
    let legal: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
    let expected = legal_tokens(&matcher).unwrap();
    let vocabulary = automaton.vocabulary();
    let show = |of: &[TokenId], without: &[TokenId]| -> Vec<String> {
        let only = of.iter().filter(|token| without.binary_search(token).is_err());
        only.take(5).map(|&t| String::from_utf8_lossy(vocabulary.bytes(t)).into()).collect()
    };
    assert!(
        legal == expected,
        "after {:?}: wrongly legal {:?}, wrongly illegal {:?}",
        &text[..length],
        show(&legal, &expected),
        show(&expected, &legal)
    );
}

#[test]
fn masks_along_texts_of_schemas_equal_brute_force() {
    let compiler = Compiler::new(made_vocabulary());
    for (schema, texts) in cases() {
        let automaton = compiler.compile_schema(schema).unwrap();
        for text in texts {
            for length in (0..=text.len()).filter(|&length| text.is_char_boundary(length)) {
                compare(&automaton, &text, length);
            }
        }
    }
}

#[test]
fn masks_of_real_vocabularies_equal_brute_force() {
    let folder = std::env::var_os("SCHEMAC_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from)
        .join("tokenizers");
    // A comparison takes a second without optimisation; set the variable for all of them.
    let every = if std::env::var_os("SCHEMAC_EVERY_MASK").is_some() { 1 } else { 61 };
    let mut position = 0;
    for name in ["llama3_1", "qwen3", "llama2"] {
        let path = folder.join(name).join("tokenizer.json");
        if !path.exists() {
            eprintln!("{}: not here, so its masks are not compared", path.display());
            continue;
        }
        let loaded = load(&path, &LoadOptions::default()).unwrap();
        let compiler = Compiler::new(loaded.vocabulary().clone());
        for (schema, texts) in cases() {
            let automaton = compiler.compile_schema(schema).unwrap();
            for text in texts {
                for length in (0..=text.len()).filter(|&length| text.is_char_boundary(length)) {
                    position += 1;
                    if position % every == 0 {
                        compare(&automaton, &text, length);
                    }
                }
            }
        }
    }
}
