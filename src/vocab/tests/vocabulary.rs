use crate::vocab::*;

#[test]
fn bytes_specials_and_holes_keep_their_ids() {
    let tokens = vec![
        Token::Text(b"a".as_slice().into()),
        Token::Unused,
        Token::Special("</s>".into()),
        Token::Text(b"\xc3".as_slice().into()),
    ];
    let vocabulary = Vocabulary::new(tokens.clone(), [TokenId::new(2)]).unwrap();
    assert_eq!(vocabulary.bytes(TokenId::new(0)), b"a");
    assert_eq!(vocabulary.bytes(TokenId::new(1)), b"");
    assert_eq!(vocabulary.bytes(TokenId::new(3)), b"\xc3");
    assert_eq!(vocabulary.bytes(TokenId::new(9)), b"");
    assert_eq!(vocabulary.special_name(TokenId::new(2)), Some("</s>"));
    assert_eq!(vocabulary.ids().map(|id| vocabulary.token(id)).collect::<Vec<_>>(), tokens);
    assert!(Vocabulary::new(tokens.clone(), []).is_err());
    assert!(Vocabulary::new(tokens, [TokenId::new(4)]).is_err());
}

#[test]
fn fingerprint_tells_boundaries_apart() {
    let one = |texts: &[&str]| {
        let mut tokens: Vec<_> = texts.iter().map(|t| Token::Text(t.as_bytes().into())).collect();
        tokens.push(Token::Special("end".into()));
        let end = TokenId::from_index(texts.len()).unwrap();
        Vocabulary::new(tokens, [end]).unwrap().fingerprint()
    };
    assert_ne!(one(&["ab", "c"]), one(&["a", "bc"]));
    assert_eq!(one(&["ab", "c"]), one(&["ab", "c"]));
}

#[test]
fn vocabularies_that_differ_in_special_end_tokens_share_their_tables() {
    let embedded = Vocabulary::embedded();
    let mut tokens: Vec<Token> = embedded.ids().map(|id| embedded.token(id)).collect();
    tokens.push(Token::Special("</think>".into()));
    let first = Vocabulary::new(tokens, embedded.end_tokens().to_vec()).unwrap();
    let think = first.special_named("</think>").unwrap();
    assert_eq!(first.special_named("</thin"), None);
    let second = first.with_end_tokens([think]).unwrap();
    assert!(std::ptr::eq(first.trie(), second.trie()));
    assert_eq!(second.end_tokens(), [think]);
    assert_ne!(first.fingerprint(), second.fingerprint());
    // A token of text that becomes an end token is no text any more.
    let byte = TokenId::new(u32::from(b'a'));
    let third = first.with_end_tokens([byte]).unwrap();
    assert!(!std::ptr::eq(first.trie(), third.trie()));
    assert!(third.bytes(byte).is_empty() && third.trie().find(b"a").is_some());
}
