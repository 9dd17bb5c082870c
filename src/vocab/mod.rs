//! Vocabularies: tokenizer and model files in, [`Vocabulary`] (token id → exact bytes) out. The
//! token index grows its trie from it. No grammar is known here.
//!
//! [`load()`] reads any supported file. Each format has a module, and all of them leave it to
//! `bytes` to turn the strings of tokens into bytes.

mod bytes;
mod decoder;
mod embedded;
mod encode;
mod end_tokens;
mod exits;
mod gguf;
pub(crate) mod gguf_reader;
mod greedy;
#[cfg(feature = "tokenizers")]
mod hugging_face;
mod index;
mod load;
mod merge;
mod quotient;
mod runs;
mod self_check;
mod split;
mod tiktoken;
mod tokenizer_json;
mod trie;

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, ErrorKind};
use crate::ids::TokenId;

pub use embedded::END as EMBEDDED_END_TOKEN;
pub use encode::Encoder;
pub use end_tokens::{EndToken, WELL_KNOWN as WELL_KNOWN_END_TOKENS};
pub use gguf::{GgufTokenType, GgufTokenizer, GgufTokenizerModel};
pub use index::Index;
pub use load::{LoadOptions, Loaded, VocabularyKind, load};
pub use quotient::{Partition, QUOTIENTS, is_exact_from};
pub use runs::{RunClass, Runs};
pub use self_check::{LongestToken, Mismatch, NamedToken, ProbeFailure, TokenizerReport};
pub use trie::Trie;

/// What one id of a vocabulary stands for.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Token {
    /// Text: these bytes, not necessarily whole characters.
    Text(Box<[u8]>),
    /// A special token of this name. It never matches text.
    Special(Box<str>),
    /// An id that the tokenizer does not use. Never legal.
    Unused,
}

/// What the bytes of single tokens do not tell about whole texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct TextRules {
    /// The tokenizer's decoder drops one leading space of a whole text (SentencePiece). The bytes
    /// of the tokens keep it, so a first token of ` a` is printed as `a`.
    pub strip_leading_space: bool,
    /// The tokenizer puts a space before a whole text when it encodes a prompt.
    /// [`Encoder::encode`] never does.
    pub prepend_space: bool,
}

/// The tokens of a model: ids, their exact bytes, and which of them end the output.
///
/// Several ids may have the same bytes. The row of logits may be wider than the vocabulary; ids past
/// its end are never legal.
#[derive(Clone)]
pub struct Vocabulary {
    /// Bytes of all text tokens, one after another.
    bytes: Vec<u8>,
    /// Where the bytes of each id end in `bytes`; they start where those of the id before end.
    ends: Vec<u32>,
    /// Names of the special tokens, sorted by id.
    specials: Vec<(TokenId, Box<str>)>,
    end_tokens: Vec<TokenId>,
    fingerprint: Fingerprint,
    longest: usize,
    index: Arc<Index>,
}

/// A stable 128-bit name of a vocabulary: equal vocabularies have equal fingerprints on every
/// machine and in every version of this crate that writes the same artifact version.
///
/// It finds mistakes, not attacks (two FNV-1a hashes, not a cryptographic one).
#[derive(Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Fingerprint(pub u128);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Vocabulary {
    /// Returns the vocabulary of `tokens`, where the position is the id, and `end_tokens` is the set
    /// of ids of which any ends the output.
    ///
    /// A token of text without bytes counts as unused: it could repeat for ever. End tokens should
    /// be special; one that is text never matches as text.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Vocabulary`] if there is no end token, an end token is outside the vocabulary,
    /// or the bytes do not fit in 32 bits.
    pub fn new(
        tokens: Vec<Token>,
        end_tokens: impl IntoIterator<Item = TokenId>,
    ) -> Result<Self, Error> {
        let mut end_tokens: Vec<_> = end_tokens.into_iter().collect();
        end_tokens.sort_unstable();
        end_tokens.dedup();
        if end_tokens.is_empty() {
            return Err(Error::new(
                ErrorKind::Vocabulary,
                "the vocabulary has no end token; name one",
            ));
        }
        if let Some(outside) = end_tokens.iter().find(|id| id.index() >= tokens.len()) {
            let text = format!(
                "end token {} is outside the vocabulary of {} ids",
                outside.get(),
                tokens.len()
            );
            return Err(Error::new(ErrorKind::Vocabulary, text));
        }
        let mut vocabulary = Self {
            bytes: Vec::new(),
            ends: Vec::with_capacity(tokens.len()),
            specials: Vec::new(),
            end_tokens,
            fingerprint: Fingerprint(0),
            longest: 0,
            index: Arc::default(),
        };
        for (index, token) in tokens.into_iter().enumerate() {
            let id = TokenId::from_index(index)
                .ok_or_else(|| Error::new(ErrorKind::Vocabulary, "more than 2^32 tokens"))?;
            match token {
                Token::Text(bytes) if !vocabulary.is_end(id) => {
                    vocabulary.longest = vocabulary.longest.max(bytes.len());
                    vocabulary.bytes.extend_from_slice(&bytes);
                }
                Token::Text(bytes) => {
                    vocabulary.specials.push((id, String::from_utf8_lossy(&bytes).into()));
                }
                Token::Special(name) => vocabulary.specials.push((id, name)),
                Token::Unused => {}
            }
            let end = u32::try_from(vocabulary.bytes.len()).map_err(|_| {
                Error::new(ErrorKind::Vocabulary, "the tokens have 4 GiB of bytes or more")
            })?;
            vocabulary.ends.push(end);
        }
        vocabulary.fingerprint = vocabulary.compute_fingerprint();
        Ok(vocabulary)
    }

    /// Returns this vocabulary with another set of end tokens. Both share their tables, unless a token of
    /// text becomes one.
    ///
    /// # Errors
    ///
    /// As [`Vocabulary::new`].
    pub fn with_end_tokens(
        &self,
        end_tokens: impl IntoIterator<Item = TokenId>,
    ) -> Result<Self, Error> {
        let mut other = Self::new(self.ids().map(|id| self.token(id)).collect(), end_tokens)?;
        if other.bytes == self.bytes && other.ends == self.ends {
            // The tables speak of text alone.
            other.index = Arc::clone(&self.index);
        }
        Ok(other)
    }

    /// Returns the number of ids: the largest id plus one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there is no id (never: an end token is one).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns all ids in ascending order.
    pub fn ids(&self) -> impl Iterator<Item = TokenId> + use<> {
        (0..self.ends.len()).filter_map(TokenId::from_index)
    }

    /// Returns the bytes of `token`: empty for special and unused ids, and outside the vocabulary.
    #[must_use]
    pub fn bytes(&self, token: TokenId) -> &[u8] {
        let end = |index: usize| self.ends.get(index).map_or(self.bytes.len(), |&end| end as usize);
        let start = token.index().checked_sub(1).map_or(0, end);
        &self.bytes[start..end(token.index())]
    }

    /// Returns what `token` stands for.
    #[must_use]
    pub fn token(&self, token: TokenId) -> Token {
        match (self.special_name(token), self.bytes(token)) {
            (Some(name), _) => Token::Special(name.into()),
            (None, []) => Token::Unused,
            (None, bytes) => Token::Text(bytes.into()),
        }
    }

    /// Returns the name of a special token.
    #[must_use]
    pub fn special_name(&self, token: TokenId) -> Option<&str> {
        let position = self.specials.binary_search_by_key(&token, |(id, _)| *id).ok()?;
        Some(&self.specials[position].1)
    }

    /// Returns the special token of this name, the lowest if there are several.
    #[must_use]
    pub fn special_named(&self, name: &str) -> Option<TokenId> {
        self.specials.iter().find(|(_, own)| **own == *name).map(|&(id, _)| id)
    }

    /// Returns the special tokens and their names, sorted by id.
    #[must_use]
    pub fn specials(&self) -> &[(TokenId, Box<str>)] {
        &self.specials
    }

    /// Returns the ids of which any ends the output, sorted.
    #[must_use]
    pub fn end_tokens(&self) -> &[TokenId] {
        &self.end_tokens
    }

    /// Returns whether `token` ends the output.
    #[must_use]
    pub fn is_end(&self, token: TokenId) -> bool {
        self.end_tokens.binary_search(&token).is_ok()
    }

    /// Returns the number of bytes of the longest token.
    #[must_use]
    pub const fn longest(&self) -> usize {
        self.longest
    }

    /// Returns the stable name of this vocabulary.
    #[must_use]
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Returns the bytes of a sequence of tokens; special tokens add nothing.
    #[must_use]
    pub fn decode(&self, tokens: &[TokenId]) -> Vec<u8> {
        tokens.iter().flat_map(|&token| self.bytes(token)).copied().collect()
    }

    /// Returns the vocabulary as data.
    #[must_use]
    pub fn snapshot(&self) -> VocabularySnapshot {
        VocabularySnapshot {
            bytes: self.bytes.clone(),
            ends: self.ends.clone(),
            specials: self.specials.clone(),
            end_tokens: self.end_tokens.clone(),
        }
    }

    /// Returns the trie of all text tokens, made at the first call.
    #[must_use]
    pub fn trie(&self) -> &Trie {
        self.index.trie(self)
    }

    /// Makes all tables that grammars share, which are otherwise made when a mask first needs them: the
    /// trie, the runs of the usual classes of characters, and the quotients by the usual partitions of
    /// bytes. For services that load a vocabulary once and want no first mask to wait.
    ///
    /// Cost: several passes over the vocabulary and sorts of its tokens; memory of the order of the
    /// vocabulary's own.
    pub fn prepare(&self) {
        let _ = self.text_exits();
        for runs in (0..).map_while(|class| self.runs(class)) {
            let _ = (runs.leaving(self), runs.up_to(runs.longest()), runs.rests_from(0));
        }
        (0..).map_while(|number| self.quotient(number)).for_each(drop);
    }

    /// Returns the runs of class number `class` of [`Index::classes`], made at the first call.
    #[must_use]
    pub fn runs(&self, class: usize) -> Option<&Runs> {
        self.index.runs(self, class)
    }

    /// Returns where tokens leave plain JSON text, found at the first call.
    pub(crate) fn text_exits(&self) -> &exits::Exits {
        self.index.text_exits(self)
    }

    /// Returns partition number `number` of [`Partition::usual`] and the quotient of the trie by it,
    /// made at the first call.
    #[must_use]
    pub fn quotient(&self, number: usize) -> Option<(&Partition, &Trie)> {
        self.index.quotient(self, number)
    }

    fn compute_fingerprint(&self) -> Fingerprint {
        /// FNV-1a, <https://www.ietf.org/archive/id/draft-eastlake-fnv-21.html>.
        fn fnv(hash: &mut u64, bytes: &[u8]) {
            for &byte in bytes {
                *hash = (*hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
        let mut halves = [0xcbf2_9ce4_8422_2325_u64, 0x9ae1_6a3b_2f90_404f];
        for half in &mut halves {
            fnv(half, &(self.ends.len() as u64).to_le_bytes());
            for end in &self.ends {
                fnv(half, &end.to_le_bytes());
            }
            fnv(half, &self.bytes);
            for (id, name) in &self.specials {
                fnv(half, &id.get().to_le_bytes());
                fnv(half, &(name.len() as u64).to_le_bytes());
                fnv(half, name.as_bytes());
            }
            for id in &self.end_tokens {
                fnv(half, &id.get().to_le_bytes());
            }
        }
        Fingerprint(u128::from(halves[0]) << 64 | u128::from(halves[1]))
    }
}

/// A vocabulary as stored in an artifact.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct VocabularySnapshot {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    specials: Vec<(TokenId, Box<str>)>,
    end_tokens: Vec<TokenId>,
}

impl VocabularySnapshot {
    /// Returns the vocabulary.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Artifact`] if a position or an id is out of range.
    pub fn restore(self) -> Result<Vocabulary, Error> {
        let count = self.ends.len();
        let inside = |id: &TokenId| id.index() < count;
        let ok = self.ends.is_sorted()
            && self.ends.last().map_or(0, |&end| end as usize) == self.bytes.len()
            && self.specials.is_sorted_by(|a, b| a.0 < b.0)
            && self.specials.iter().all(|(id, _)| inside(id))
            && !self.end_tokens.is_empty()
            && self.end_tokens.is_sorted_by(|a, b| a < b)
            && self.end_tokens.iter().all(inside);
        if !ok {
            return Err(Error::new(ErrorKind::Artifact, "the stored vocabulary is damaged"));
        }
        let mut vocabulary = Vocabulary {
            bytes: self.bytes,
            ends: self.ends,
            specials: self.specials,
            end_tokens: self.end_tokens,
            fingerprint: Fingerprint(0),
            longest: 0,
            index: Arc::default(),
        };
        vocabulary.longest =
            vocabulary.ids().map(|id| vocabulary.bytes(id).len()).max().unwrap_or(0);
        vocabulary.fingerprint = vocabulary.compute_fingerprint();
        Ok(vocabulary)
    }
}

impl fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vocabulary")
            .field("len", &self.len())
            .field("end_tokens", &self.end_tokens)
            .field("fingerprint", &self.fingerprint)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
