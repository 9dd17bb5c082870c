//! Text in, tokens out, by byte-pair encoding where the priority of a merge belongs to the token
//! that it makes: tiktoken's ranks, SentencePiece's scores.
//!
//! The pair of neighbours whose union has the best priority is merged, the leftmost first, until no
//! union is a token (Sennrich et al. 2016, "Neural machine translation of rare words with subword
//! units"). With a heap of pairs this takes O(n log n) for n units, so long texts are safe.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use crate::ids::TokenId;
use crate::vocab::Trie;

/// A table of tokens with priorities.
#[derive(Clone, Debug)]
pub(crate) struct Merges {
    pieces: Trie,
    /// By id; smaller is merged first.
    priorities: Priorities,
    /// Tokens of single bytes, for units that are no piece.
    bytes: Box<[Option<TokenId>; 256]>,
}

#[derive(Clone, Debug)]
enum Priorities {
    /// The id is the rank.
    Rank,
    /// From scores: see [`descending`].
    Score(Vec<u32>),
}

/// A neighbour pair that could be merged: priority, and the range of the text that it covers.
type Candidate = Reverse<(u32, usize, usize)>;

/// Marks the unit of a chain's end.
const NONE: usize = usize::MAX;

impl Merges {
    /// Returns the table of pieces whose id orders the merges.
    pub(crate) fn by_rank(pieces: Trie) -> Self {
        Self { pieces, priorities: Priorities::Rank, bytes: Box::new([None; 256]) }
    }

    /// Returns the table of pieces of which the best score is merged first; `scores` are by id.
    pub(crate) fn by_score(
        pieces: Trie,
        scores: &[f32],
        bytes: Box<[Option<TokenId>; 256]>,
    ) -> Self {
        let scores = scores.iter().copied().map(descending).collect();
        Self { pieces, priorities: Priorities::Score(scores), bytes }
    }

    /// Appends the tokens of `text` to `tokens`; its units are single bytes.
    ///
    /// A text that is itself a token is that token. Returns `None` if a unit has no token.
    pub(crate) fn encode_bytes(&self, text: &str, tokens: &mut Vec<TokenId>) -> Option<()> {
        if let Some(token) = self.pieces.token_of(text.as_bytes()) {
            tokens.push(token);
            return Some(());
        }
        self.encode(text.as_bytes(), (0..=text.len()).collect(), tokens)
    }

    /// Appends the tokens of `text` to `tokens`; its units are characters, and one that is no piece
    /// is spelled in bytes.
    ///
    /// Returns `None` if a byte that is needed has no token.
    pub(crate) fn encode_chars(&self, text: &str, tokens: &mut Vec<TokenId>) -> Option<()> {
        let mut starts: Vec<_> = text.char_indices().map(|(at, _)| at).collect();
        starts.push(text.len());
        self.encode(text.as_bytes(), starts, tokens)
    }

    /// `bounds` are the starts of the units, and the length of the text.
    fn encode(&self, text: &[u8], bounds: Vec<usize>, tokens: &mut Vec<TokenId>) -> Option<()> {
        let units = bounds.len().saturating_sub(1);
        let mut chain = Chain::new(bounds);
        let mut heap = BinaryHeap::new();
        for unit in 1..units {
            self.offer(text, &chain, unit - 1, &mut heap);
        }
        while let Some(Reverse((_, left, end))) = heap.pop() {
            // A candidate is stale if either side has been merged with another neighbour since.
            let right = chain.next[left];
            if !chain.alive[left] || right == NONE || chain.range(right).end != end {
                continue;
            }
            chain.join(left, right);
            self.offer(text, &chain, left, &mut heap);
            let before = chain.previous[left];
            if before != NONE {
                self.offer(text, &chain, before, &mut heap);
            }
        }
        let mut unit = if units == 0 { NONE } else { 0 };
        while unit != NONE {
            let piece = &text[chain.range(unit)];
            match self.pieces.token_of(piece) {
                Some(token) => tokens.push(token),
                None => {
                    for &byte in piece {
                        tokens.push(self.bytes[usize::from(byte)]?);
                    }
                }
            }
            unit = chain.next[unit];
        }
        Some(())
    }

    /// Puts the pair of `left` and its next unit on the heap, if their union is a token.
    fn offer(&self, text: &[u8], chain: &Chain, left: usize, heap: &mut BinaryHeap<Candidate>) {
        let right = chain.next[left];
        if right == NONE {
            return;
        }
        let end = chain.range(right).end;
        if let Some(token) = self.pieces.token_of(&text[chain.range(left).start..end]) {
            let priority = match &self.priorities {
                Priorities::Rank => token.get(),
                Priorities::Score(scores) => scores.get(token.index()).copied().unwrap_or(u32::MAX),
            };
            heap.push(Reverse((priority, left, end)));
        }
    }
}

/// Units of a text as a doubly linked list; unit i begins at the i-th bound.
struct Chain {
    bounds: Vec<usize>,
    next: Vec<usize>,
    previous: Vec<usize>,
    alive: Vec<bool>,
}

impl Chain {
    fn new(bounds: Vec<usize>) -> Self {
        let units = bounds.len().saturating_sub(1);
        let next = (1..=units).map(|unit| if unit == units { NONE } else { unit }).collect();
        let previous = (0..units).map(|unit| unit.checked_sub(1).unwrap_or(NONE)).collect();
        Self { bounds, next, previous, alive: vec![true; units] }
    }

    /// Returns the bytes of a unit: up to where the next one begins.
    fn range(&self, unit: usize) -> Range<usize> {
        let end = match self.next[unit] {
            NONE => self.bounds.last().copied().unwrap_or(0),
            next => self.bounds[next],
        };
        self.bounds[unit]..end
    }

    fn join(&mut self, left: usize, right: usize) {
        let after = self.next[right];
        self.next[left] = after;
        if after != NONE {
            self.previous[after] = left;
        }
        self.alive[right] = false;
    }
}

/// Returns a number that sorts the other way round than `score`.
fn descending(score: f32) -> u32 {
    // The bits of non-negative floats ascend with their value; those of negative ones descend.
    // Adding zero makes -0 and 0 equal.
    let bits = (score + 0.0).to_bits();
    if bits >> 31 == 0 { !bits & 0x7fff_ffff } else { bits }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};

    use super::*;

    /// The definition, step by step: the oracle of the heap.
    fn naive(
        text: &str,
        units: Vec<String>,
        priority: impl Fn(&str) -> Option<f64>,
    ) -> Vec<String> {
        let mut units = units;
        assert_eq!(units.concat(), text);
        loop {
            let best = (1..units.len())
                .filter_map(|i| priority(&(units[i - 1].clone() + &units[i])).map(|p| (p, i)))
                .min_by(|a, b| a.partial_cmp(b).unwrap());
            let Some((_, i)) = best else { return units };
            let right = units.remove(i);
            units[i - 1] += &right;
        }
    }

    #[test]
    fn merging_equals_the_naive_definition() {
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        for _ in 0..300 {
            let mut texts: Vec<String> = ["a", "b", "c"].map(String::from).into();
            for _ in 0..random.random_range(1..20) {
                let len = random.random_range(2..6);
                texts.push((0..len).map(|_| random.random_range('a'..='c')).collect());
            }
            texts.sort_by_key(|text| (text.len(), text.clone()));
            texts.dedup();
            let scores: Vec<f32> =
                texts.iter().map(|_| random.random_range(-4_i8..3).into()).collect();
            let id = |i| TokenId::from_index(i).unwrap();
            let pieces = || {
                let entries = texts.iter().enumerate().map(|(i, text)| (text.as_bytes(), id(i)));
                Trie::from_entries(entries.collect())
            };
            let rank = Merges::by_rank(pieces());
            let score = Merges::by_score(pieces(), &scores, Box::new([None; 256]));
            let text: String = (0..40).map(|_| random.random_range('a'..='c')).collect();
            let place = |piece: &str| texts.iter().position(|own| own == piece);
            let letters = || text.chars().map(String::from).collect();

            let read = |tokens: &[TokenId]| -> Vec<String> {
                tokens.iter().map(|token| texts[token.index()].clone()).collect()
            };
            let mut tokens = Vec::new();
            rank.encode_bytes(&text, &mut tokens).unwrap();
            let lowest = |piece: &str| place(piece).map(|i| f64::from(u32::try_from(i).unwrap()));
            assert_eq!(read(&tokens), naive(&text, letters(), lowest));
            tokens.clear();
            score.encode_chars(&text, &mut tokens).unwrap();
            let best = |piece: &str| place(piece).map(|i| -f64::from(scores[i]));
            assert_eq!(read(&tokens), naive(&text, letters(), best));
        }
    }

    #[test]
    fn characters_without_a_piece_fall_back_to_bytes() {
        let mut bytes = Box::new([None; 256]);
        for byte in "é€".bytes() {
            bytes[usize::from(byte)] = Some(TokenId::new(1000 + u32::from(byte)));
        }
        let pieces = Trie::from_entries(vec![(b"a", TokenId::new(0))]);
        let merges = Merges::by_score(pieces, &[0.0], bytes);
        let mut tokens = Vec::new();
        merges.encode_chars("aé", &mut tokens).unwrap();
        assert_eq!(tokens, [0, 0x3e8 + 0xc3, 0x3e8 + 0xa9].map(TokenId::new));
        assert_eq!(merges.encode_chars("x", &mut tokens), None);
        assert_eq!(merges.encode_chars("", &mut tokens), Some(()));
    }

    #[test]
    fn scores_sort_from_best_to_worst() {
        let scores = [f32::INFINITY, 3.5, 1.0, 0.0, -0.5, -7.0, f32::NEG_INFINITY];
        assert!(scores.map(descending).windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn a_long_text_takes_no_quadratic_time() {
        let texts: Vec<_> = (0..=8).map(|n| ("a".repeat(1 << n), TokenId::new(n))).collect();
        let entries = texts.iter().map(|(text, id)| (text.as_bytes(), *id));
        let merges = Merges::by_rank(Trie::from_entries(entries.collect()));
        let mut tokens = Vec::new();
        merges.encode_bytes(&"a".repeat(1 << 18), &mut tokens).unwrap();
        assert_eq!(tokens, vec![TokenId::new(8); 1 << 10]);
    }
}
