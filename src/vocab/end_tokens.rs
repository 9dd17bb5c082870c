//! Names and ids of end tokens in, the set of ids out: what the caller says, else what the files
//! declare, else well-known names.

use crate::error::{Error, ErrorKind};
use crate::ids::TokenId;
use crate::vocab::Token;

/// An end token, by id or by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndToken {
    /// The id.
    Id(TokenId),
    /// The name of a special token, or else the text of a token.
    Name(Box<str>),
}

impl From<TokenId> for EndToken {
    fn from(id: TokenId) -> Self {
        Self::Id(id)
    }
}

impl From<&str> for EndToken {
    fn from(name: &str) -> Self {
        Self::Name(name.into())
    }
}

/// Names under which published models end their output. Only special tokens of these names count,
/// and only where neither the caller nor a file says which token ends.
pub const WELL_KNOWN: &[&str] = &[
    "</s>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|eot|>",
    "<|eom|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|endofprompt|>",
    "<eos>",
    "<|eos|>",
    "<end_of_turn>",
    "<turn|>",
    "<EOS_TOKEN>",
    "<|END_OF_TURN_TOKEN|>",
    "<｜end▁of▁sentence｜>",
    "[EOS]",
];

/// Returns the ids of the end tokens.
///
/// `wanted` is what the caller says and `declared` what the files say; the first of them that is
/// not empty is the answer, and well-known names the last resort.
///
/// # Errors
///
/// [`ErrorKind::Vocabulary`] if a token that is named does not exist, or none is found.
pub(crate) fn choose(
    tokens: &[Token],
    wanted: &[EndToken],
    declared: &[EndToken],
) -> Result<Vec<TokenId>, Error> {
    let named = if wanted.is_empty() { declared } else { wanted };
    if !named.is_empty() {
        return named.iter().map(|end| resolve(tokens, end)).collect();
    }
    let known: Vec<_> = tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| matches!(token, Token::Special(name) if WELL_KNOWN.contains(&&**name)))
        .filter_map(|(index, _)| TokenId::from_index(index))
        .collect();
    if known.is_empty() {
        return Err(Error::new(
            ErrorKind::Vocabulary,
            "no end token is declared beside the tokenizer and no special token has a well-known \
             name; name one by id or text (`LoadOptions::end_token`)",
        ));
    }
    Ok(known)
}

fn resolve(tokens: &[Token], end: &EndToken) -> Result<TokenId, Error> {
    let refuse = |text: String| Err(Error::new(ErrorKind::Vocabulary, text));
    match end {
        EndToken::Id(id) if id.index() < tokens.len() => Ok(*id),
        EndToken::Id(id) => refuse(format!(
            "end token {} is outside the vocabulary of {} ids",
            id.get(),
            tokens.len()
        )),
        EndToken::Name(name) => {
            let special = |token: &Token| matches!(token, Token::Special(own) if own == name);
            let text =
                |token: &Token| matches!(token, Token::Text(own) if **own == *name.as_bytes());
            let position = tokens.iter().position(special).or_else(|| tokens.iter().position(text));
            match position.and_then(TokenId::from_index) {
                Some(id) => Ok(id),
                None => refuse(format!("end token `{name}` is not in the vocabulary")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens() -> Vec<Token> {
        vec![
            Token::Text(b"</s>".as_slice().into()),
            Token::Special("</s>".into()),
            Token::Special("<eos>".into()),
            Token::Text(b"stop".as_slice().into()),
        ]
    }

    #[test]
    fn caller_comes_before_files_and_files_before_names() {
        let ids = |wanted: &[EndToken], declared: &[EndToken]| {
            choose(&tokens(), wanted, declared)
                .unwrap()
                .iter()
                .map(|id| id.get())
                .collect::<Vec<_>>()
        };
        assert_eq!(ids(&["stop".into()], &["<eos>".into()]), [3]);
        assert_eq!(ids(&[], &["<eos>".into(), EndToken::Id(TokenId::new(0))]), [2, 0]);
        assert_eq!(ids(&[], &[]), [1, 2]);
        assert_eq!(ids(&["</s>".into()], &[]), [1], "the special token, not the text");
    }

    #[test]
    fn missing_end_tokens_are_refused_by_name() {
        let refused = |wanted: &[EndToken]| choose(&tokens(), wanted, &[]).unwrap_err();
        assert!(refused(&["<nope>".into()]).message().contains("<nope>"));
        assert!(refused(&[EndToken::Id(TokenId::new(4))]).message().contains("token 4"));
        let error = choose(&tokens()[3..], &[], &[]).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Vocabulary);
        assert!(error.message().contains("LoadOptions::end_token"));
    }
}
