//! The portable kernels over mask words and rows of logits. Those for single instruction sets have
//! the same signatures and results.
//!
//! In all of them bit `i % 64` of word `i / 64` speaks of position `i` of the row, and the row is
//! not longer than the words.

use super::WORD;

/// The highest legal logit of a row, as the argmax kernels return it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Peak {
    /// The highest legal logit; −∞ where there is none above it.
    pub value: f32,
    /// The lowest position that has it; meaningless where the value is −∞.
    pub index: usize,
    /// Whether a legal logit is NaN or +∞. The other fields are then meaningless.
    pub invalid: bool,
}

impl Peak {
    /// The peak of no logit at all.
    pub(super) const NONE: Self = Self { value: f32::NEG_INFINITY, index: 0, invalid: false };

    /// Takes the logit `value` at `index` into account. Positions may come in any order.
    #[inline]
    pub(super) fn meet(&mut self, value: f32, index: usize) {
        let better = value > self.value;
        if better || (value == self.value && index < self.index) {
            *self = Self { value, index, invalid: self.invalid };
        }
    }

    /// Takes another peak into account, whose positions are `offset` lower than ours.
    #[inline]
    pub(super) fn merge(&mut self, other: Self, offset: usize) {
        self.meet(other.value, other.index.saturating_add(offset));
        self.invalid |= other.invalid;
    }
}

/// Returns whether no legal token may have this logit: NaN or +∞.
#[inline(always)]
pub(super) const fn is_invalid(logit: f32) -> bool {
    logit.is_nan() || logit == f32::INFINITY
}

/// Writes `illegal` to the positions of `row` whose bit is 0.
///
/// Branch-free by eight lanes, so that the compiler makes vectors of it.
pub(super) fn apply<T: Copy>(words: &[u64], row: &mut [T], illegal: T) {
    for (&word, block) in words.iter().zip(row.chunks_mut(WORD)) {
        if word == u64::MAX {
            continue;
        }
        for (byte, lanes) in word.to_le_bytes().into_iter().zip(block.chunks_mut(8)) {
            for (bit, lane) in lanes.iter_mut().enumerate() {
                *lane = if byte & (1 << bit) == 0 { illegal } else { *lane };
            }
        }
    }
}

/// Returns the highest logit whose bit is 1.
pub(super) fn argmax(words: &[u64], row: &[f32]) -> Peak {
    let mut peak = Peak::NONE;
    for (i, (&word, block)) in words.iter().zip(row.chunks(WORD)).enumerate() {
        let mut left = word;
        while left != 0 {
            let bit = left.trailing_zeros() as usize;
            left &= left - 1;
            let Some(&value) = block.get(bit) else { break };
            peak.invalid |= is_invalid(value);
            peak.meet(value, i * WORD + bit);
        }
    }
    peak
}
