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
