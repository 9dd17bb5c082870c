//! Runs: for a class of characters, the tokens that lie wholly inside it, and for the others the rest
//! at which they leave it. What a looping state legalises is then a base set and a short walk over
//! the rests (DESIGN.md section 5, run factoring).

use std::sync::{Arc, OnceLock};

use crate::byteset::ByteSet;
use crate::ids::TokenId;
use crate::vocab::{Trie, Vocabulary};

/// A class of characters: some ASCII characters, and all or none of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunClass {
    /// Members below U+0080.
    pub ascii: ByteSet,
    /// Whether every character from U+0080 on is a member.
    pub others: bool,
}

impl RunClass {
    /// The characters that stand for themselves in a JSON string (RFC 8259 section 7).
    #[must_use]
    pub fn json_text() -> Self {
        let ascii = ByteSet::range(0x20, 0x7f).difference(&ByteSet::of(b"\"\\"));
        Self { ascii, others: true }
    }

    /// All characters but the line feed: `.` of most dialects.
    #[must_use]
    pub fn line() -> Self {
        Self { ascii: ByteSet::range(0, 0x7f).difference(&ByteSet::single(b'\n')), others: true }
    }

    /// All characters.
    #[must_use]
    pub fn any() -> Self {
        Self { ascii: ByteSet::range(0, 0x7f), others: true }
    }

    /// Returns the number of bytes of the member at the start of `bytes`, or `None` if there is no
    /// whole member.
    fn member(&self, bytes: &[u8]) -> Option<usize> {
        let first = *bytes.first()?;
        if first < 0x80 {
            return self.ascii.contains(first).then_some(1);
        }
        let len = match first {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => return None,
        };
        (self.others && std::str::from_utf8(bytes.get(..len)?).is_ok()).then_some(len)
    }
}

/// The tokens of a vocabulary by the run of one class that they start with.
#[derive(Debug)]
pub struct Runs {
    class: RunClass,
    width: usize,
    /// Tokens that are a run of exactly `k` members and nothing else, by `k`.
    whole: Vec<Vec<TokenId>>,
    /// By `k`: the tokens that start with a run of exactly `k` members, as a trie of the rests.
    rests: Vec<Trie>,
    /// The tokens that are not a run of members and nothing else.
    leaving: OnceLock<Trie>,
    /// By `k`: the union of `rests` from `k` on.
    tails: Box<[OnceLock<Trie>]>,
    /// By `k`: the words of the tokens that are runs of at most `k` members.
    up_to: Box<[OnceLock<Arc<[u64]>>]>,
}

impl Runs {
    /// Returns the runs of `class`. Costs one pass over the vocabulary and a sort of the rests.
    #[must_use]
    pub fn new(vocabulary: &Vocabulary, class: RunClass) -> Self {
        let mut whole: Vec<Vec<TokenId>> = vec![Vec::new()];
        let mut rests: Vec<Vec<(&[u8], TokenId)>> = vec![Vec::new()];
        for token in vocabulary.ids() {
            let bytes = vocabulary.bytes(token);
            if bytes.is_empty() {
                continue;
            }
            let mut at = 0;
            let mut length = 0;
            while let Some(len) = class.member(&bytes[at..]) {
                at += len;
                length += 1;
            }
            if whole.len() <= length {
                whole.resize(length + 1, Vec::new());
                rests.resize(length + 1, Vec::new());
            }
            if at == bytes.len() {
                whole[length].push(token);
            } else {
                rests[length].push((&bytes[at..], token));
            }
        }
        let count = whole.len();
        Self {
            class,
            width: vocabulary.len(),
            whole,
            rests: rests.into_iter().map(Trie::from_entries).collect(),
            leaving: OnceLock::new(),
            tails: (0..count).map(|_| OnceLock::new()).collect(),
            up_to: (0..count).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Returns the class.
    #[must_use]
    pub const fn class(&self) -> RunClass {
        self.class
    }

    /// Returns the length of the longest run that any token starts with, in characters.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.whole.len() - 1
    }

    /// Returns the rests of the tokens that start with a run of exactly `length` members.
    #[must_use]
    pub fn rests(&self, length: usize) -> Option<&Trie> {
        self.rests.get(length)
    }

    /// Returns the rests of the tokens that start with a run of `length` or more members.
    #[must_use]
    pub fn rests_from(&self, length: usize) -> Option<&Trie> {
        let tries: Vec<_> = self.rests.get(length..)?.iter().map(|trie| (trie, 0)).collect();
        Some(self.tails[length].get_or_init(|| Trie::merge(&tries)))
    }

    /// Returns the trie of the tokens of `vocabulary`, of which these are the runs, that are not a run of
    /// members and nothing else.
    #[must_use]
    pub fn leaving(&self, vocabulary: &Vocabulary) -> &Trie {
        self.leaving.get_or_init(|| {
            let whole = self.up_to(self.longest());
            let leaves = |id: &TokenId| whole[id.index() / 64] >> (id.index() % 64) & 1 == 0;
            let entries = vocabulary.ids().filter(leaves).map(|id| (vocabulary.bytes(id), id));
            Trie::from_entries(entries.filter(|(bytes, _)| !bytes.is_empty()).collect())
        })
    }

    /// Returns the words of the tokens that are runs of one to `length` members.
    #[must_use]
    pub fn up_to(&self, length: usize) -> &Arc<[u64]> {
        let length = length.min(self.longest());
        self.up_to[length].get_or_init(|| {
            let mut words = vec![0_u64; self.width.div_ceil(64)];
            for token in self.whole[..=length].iter().flatten() {
                words[token.index() / 64] |= 1 << (token.index() % 64);
            }
            words.into()
        })
    }

    /// Returns whether some token starts with a run of more than `length` members.
    #[must_use]
    pub fn any_longer_than(&self, length: usize) -> bool {
        self.longest() > length
    }
}
