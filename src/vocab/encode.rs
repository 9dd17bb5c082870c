//! Text in, token ids out, by the tokenizer that a vocabulary was loaded with.
//!
//! Grammar text and prompts are different things: in the text of a grammar every character counts
//! and the name of a special token is text; in a prompt such names are special tokens, and the
//! tokenizer may prepend a space or normalize.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::error::{Error, ErrorKind};
use crate::ids::TokenId;
use crate::vocab::gguf::{GgufTokenType, GgufTokenizer};
#[cfg(feature = "tokenizers")]
use crate::vocab::hugging_face::HuggingFace;
use crate::vocab::merge::Merges;
use crate::vocab::split::Splitter;
use crate::vocab::{Token, Trie, Vocabulary};

/// Turns text into tokens. Shared by `Arc`; tables are built on first use.
pub struct Encoder {
    vocabulary: Arc<Vocabulary>,
    method: Method,
}

pub(crate) enum Method {
    /// The longest token at each place.
    Greedy,
    /// Byte-pair encoding by rank, after splitting by a pattern.
    Ranks(Box<Ranks>),
    /// SentencePiece BPE by scores.
    Pieces(Box<Pieces>),
    /// The `tokenizers` crate.
    #[cfg(feature = "tokenizers")]
    HuggingFace(Box<HuggingFace>),
    /// Needs the feature `tokenizers`.
    #[cfg(not(feature = "tokenizers"))]
    Unavailable,
}

impl Encoder {
    pub(crate) const fn new(vocabulary: Arc<Vocabulary>, method: Method) -> Self {
        Self { vocabulary, method }
    }

    /// Returns tokens whose bytes are exactly `text`, cut as the model's tokenizer cuts it.
    ///
    /// Nothing is added, prepended or normalized, and the name of a special token is text like any
    /// other. Where the tokenizer itself cannot keep the text (a character without a token), the
    /// text is spelled by [`Vocabulary::encode_greedy`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unspellable`] if no tokens spell `text`; [`ErrorKind::Vocabulary`] or
    /// [`ErrorKind::UnsupportedFeature`] if the tokenizer cannot be built;
    /// [`ErrorKind::InvalidOption`] if it needs the feature `tokenizers` and the crate was built
    /// without.
    pub fn encode(&self, text: &str) -> Result<Vec<TokenId>, Error> {
        if let Some(tokens) = self.propose(text)?
            && self.vocabulary.decode(&tokens) == text.as_bytes()
        {
            return Ok(tokens);
        }
        self.vocabulary.encode_greedy(text.as_bytes()).ok_or_else(|| unspellable(text))
    }

    /// Returns the tokens of a prompt: names of special tokens are those tokens, and the rest is
    /// cut, normalized and given a leading space as the tokenizer does.
    ///
    /// No beginning-of-text token is added; chat templates write it.
    ///
    /// # Errors
    ///
    /// As [`Encoder::encode`].
    pub fn encode_prompt(&self, text: &str) -> Result<Vec<TokenId>, Error> {
        #[cfg(feature = "tokenizers")]
        if let Method::HuggingFace(tokenizer) = &self.method {
            return tokenizer.encode_prompt(text);
        }
        let specials = self.vocabulary.specials().iter();
        let names = trie(specials.map(|(id, name)| (name.as_bytes(), *id)));
        let mut tokens = Vec::new();
        for segment in segments(text, &names) {
            match segment {
                Segment::Token(id) => tokens.push(id),
                Segment::Text(text) => {
                    let prefix = match &self.method {
                        Method::Pieces(pieces) if pieces.gguf.text_rules().prepend_space => " ",
                        _ => "",
                    };
                    tokens.extend(self.encode(&format!("{prefix}{text}"))?);
                }
            }
        }
        Ok(tokens)
    }

    /// Returns the tokens that the tokenizer gives for grammar text, which need not spell it, or
    /// `None` if it has none.
    pub(crate) fn propose(&self, text: &str) -> Result<Option<Vec<TokenId>>, Error> {
        match &self.method {
            Method::Greedy => Ok(self.vocabulary.encode_greedy(text.as_bytes())),
            Method::Ranks(ranks) => ranks.encode(&self.vocabulary, text),
            Method::Pieces(pieces) => Ok(pieces.encode(text)),
            #[cfg(feature = "tokenizers")]
            Method::HuggingFace(tokenizer) => tokenizer.encode_exact(text),
            #[cfg(not(feature = "tokenizers"))]
            Method::Unavailable => Err(Error::new(
                ErrorKind::InvalidOption,
                "encoding with this tokenizer needs the cargo feature `tokenizers`",
            )),
        }
    }

    #[cfg(feature = "tokenizers")]
    pub(crate) const fn hugging_face(&self) -> Option<&HuggingFace> {
        match &self.method {
            Method::HuggingFace(tokenizer) => Some(tokenizer),
            _ => None,
        }
    }
}

fn unspellable(text: &str) -> Error {
    let text = format!("no tokens spell this text of {} bytes", text.len());
    Error::new(ErrorKind::Unspellable, text)
}

/// The state of [`Method::Ranks`].
pub(crate) struct Ranks {
    pattern: String,
    built: OnceLock<Result<(Splitter, Merges), Error>>,
}

impl Ranks {
    pub(crate) const fn new(pattern: String) -> Self {
        Self { pattern, built: OnceLock::new() }
    }

    fn encode(&self, vocabulary: &Vocabulary, text: &str) -> Result<Option<Vec<TokenId>>, Error> {
        let build =
            || Ok((Splitter::new(&self.pattern)?, Merges::by_rank(vocabulary.trie().clone())));
        let (splitter, merges) = self.built.get_or_init(build).as_ref().map_err(Clone::clone)?;
        let mut tokens = Vec::new();
        for word in splitter.split(text) {
            if merges.encode_bytes(word, &mut tokens).is_none() {
                return Ok(None);
            }
        }
        Ok(Some(tokens))
    }
}

/// The state of [`Method::Pieces`].
pub(crate) struct Pieces {
    gguf: Arc<GgufTokenizer>,
    built: OnceLock<(Trie, Merges)>,
}

impl Pieces {
    pub(crate) const fn new(gguf: Arc<GgufTokenizer>) -> Self {
        Self { gguf, built: OnceLock::new() }
    }

    fn encode(&self, text: &str) -> Option<Vec<TokenId>> {
        let (user_defined, merges) = self.built.get_or_init(|| self.build());
        let mut tokens = Vec::new();
        for segment in segments(text, user_defined) {
            match segment {
                Segment::Token(id) => tokens.push(id),
                Segment::Text(text) => merges.encode_chars(text, &mut tokens)?,
            }
        }
        Some(tokens)
    }

    /// Returns the tokens that are recognised before all others, and the pieces that are merged.
    fn build(&self) -> (Trie, Merges) {
        let tokens = self.gguf.tokens_in_bytes();
        let mut bytes = Box::new([None; 256]);
        let mut user_defined = Vec::new();
        let mut pieces = Vec::new();
        for ((index, token), kind) in tokens.iter().enumerate().zip(&self.gguf.types) {
            let (Token::Text(text), Some(id)) = (token, TokenId::from_index(index)) else {
                continue;
            };
            match (kind, &**text) {
                (GgufTokenType::Byte, [byte]) => bytes[usize::from(*byte)] = Some(id),
                (GgufTokenType::UserDefined, text) => user_defined.push((text, id)),
                (_, text) => pieces.push((text, id)),
            }
        }
        (trie(user_defined), Merges::by_score(trie(pieces), &self.gguf.scores, bytes))
    }
}

fn trie<'t>(entries: impl IntoIterator<Item = (&'t [u8], TokenId)>) -> Trie {
    Trie::from_entries(entries.into_iter().filter(|(text, _)| !text.is_empty()).collect())
}

/// A part of a text: a token that was named, or what stands between such.
enum Segment<'t> {
    Token(TokenId),
    Text(&'t str),
}

/// Cuts `text` at the names in `names`, the longest at each place.
fn segments<'t>(text: &'t str, names: &Trie) -> Vec<Segment<'t>> {
    let mut segments = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        match names.longest_prefix(&text.as_bytes()[at..]) {
            Some((len, id)) if text.is_char_boundary(at + len) => {
                if start < at {
                    segments.push(Segment::Text(&text[start..at]));
                }
                segments.push(Segment::Token(id));
                at += len;
                start = at;
            }
            _ => at += next.len_utf8(),
        }
    }
    if start < at {
        segments.push(Segment::Text(&text[start..at]));
    }
    segments
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = match &self.method {
            Method::Greedy => "greedy",
            Method::Ranks(_) => "ranks",
            Method::Pieces(_) => "pieces",
            #[cfg(feature = "tokenizers")]
            Method::HuggingFace(_) => "tokenizers",
            #[cfg(not(feature = "tokenizers"))]
            Method::Unavailable => "unavailable",
        };
        f.debug_struct("Encoder")
            .field("vocabulary", &self.vocabulary)
            .field("method", &method)
            .finish()
    }
}
