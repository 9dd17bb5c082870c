//! The random numbers of a sequence: seed, purpose and step in, a uniform number out.
//!
//! Version 1 of the stream: ChaCha with 8 rounds (Bernstein 2008, "ChaCha, a variant of Salsa20"; the
//! generator `ChaCha8Rng` of `rand_chacha`), the key is the seed as 8 little-endian bytes and then
//! the 24 bytes `schemac draw, version 1\0`, the nonce is the purpose: 0 for plain draws, 1 for the
//! drafts of speculative decoding, 2 for accepting them, 3 for what is drawn in place of a refused one,
//! and 16 + *n* for the *n*-th draw (from 0) in place of a token that a budget cannot hold. The number of
//! step `i` is words `2i` and `2i + 1` of the stream as one little-endian integer, of which the upper 53
//! bits are the binary fraction. So a number depends on seed, purpose and step alone: not on the batch,
//! the thread, or on how the tokens before were chosen.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// What follows the seed in the key.
const DOMAIN: &[u8; 24] = b"schemac draw, version 1\0";

/// What a random number is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Draw,
    Draft,
    Accept,
    Residual,
    /// In place of a token that the budget cannot hold, for the time of this number.
    Redraw(u64),
}

/// Returns the number of a plain draw: in 0 (inclusive) to 1 (exclusive), a multiple of 2⁻⁵³.
#[must_use]
pub fn uniform(seed: u64, step: usize) -> f64 {
    uniform_for(Purpose::Draw, seed, step)
}

/// Returns the number of another purpose.
pub(super) fn uniform_for(purpose: Purpose, seed: u64, step: usize) -> f64 {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..].copy_from_slice(DOMAIN);
    let mut stream = ChaCha8Rng::from_seed(key);
    stream.set_stream(match purpose {
        Purpose::Draw => 0,
        Purpose::Draft => 1,
        Purpose::Accept => 2,
        Purpose::Residual => 3,
        Purpose::Redraw(time) => 16 + time,
    });
    stream.set_word_pos(2 * step as u128);
    // 53 bits and a power of two are exact.
    let fraction = (stream.next_u64() >> 11) as f64;
    fraction / 9_007_199_254_740_992.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_version_1() {
        // From an independent implementation of the description above. A change of these numbers
        // is a new version of the stream.
        let expected = [
            (0, 0.973_839_367_286_891_1),
            (1, 0.514_602_417_437_338),
            (2, 0.247_961_354_331_708_74),
            (3, 0.549_432_998_928_369_9),
            (1_000, 0.908_244_299_566_575_9),
        ];
        for (step, number) in expected {
            assert_eq!(uniform(42, step), number);
        }
    }

    #[test]
    fn every_step_and_seed_has_its_own_number_and_the_mean_is_a_half() {
        let numbers: Vec<_> =
            (0..100).flat_map(|seed| (0..100).map(move |step| uniform(seed, step))).collect();
        assert!(numbers.iter().all(|u| (0.0..1.0).contains(u)));
        let mut bits: Vec<_> = numbers.iter().map(|u| u.to_bits()).collect();
        bits.sort_unstable();
        bits.dedup();
        assert_eq!(bits.len(), 10_000);
        let mean = numbers.iter().sum::<f64>() / 1e4;
        // Six standard deviations of the mean of 10,000.
        assert!((mean - 0.5).abs() < 6.0 * (1.0_f64 / 12.0 / 1e4).sqrt(), "{mean}");
    }
}
