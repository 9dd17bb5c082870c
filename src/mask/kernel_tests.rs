//! The kernels against the definitions, and against each other.

use std::sync::Arc;

use super::TokenMask;
use super::scalar::{self, Peak};
use super::select::{Buffers, Legal};
use super::weight::Weights;
use crate::ids::TokenId;
use crate::step_error::LogitsError;

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Words with many, few, no, all or half of the bits set.
    fn words(&mut self, count: usize) -> Vec<u64> {
        let mut word = || match self.next() % 6 {
            0 => 0,
            1 => u64::MAX,
            2 => self.next() & self.next() & self.next(),
            3 => self.next() | self.next() | self.next(),
            4 => 1 << (self.next() % 64),
            _ => self.next(),
        };
        (0..count).map(|_| word()).collect()
    }

    /// Logits with ties, both zeros, −∞ and, if asked for, what only an illegal token may have.
    fn row(&mut self, len: usize, wild: bool) -> Vec<f32> {
        let mut logit = || match self.next() % 16 {
            0 => f32::NEG_INFINITY,
            1 if wild => f32::NAN,
            2 if wild => f32::INFINITY,
            3 => -0.0,
            4 => 0.0,
            5..=8 => (self.next() % 9) as f32 - 4.0,
            9 => f32::MAX,
            10 => f32::MIN,
            _ => (self.next() as i32) as f32 / 1e8,
        };
        (0..len).map(|_| logit()).collect()
    }
}

fn bit(words: &[u64], i: usize) -> bool {
    words[i / 64] >> (i % 64) & 1 == 1
}

type ApplyF32 = fn(&[u64], &mut [f32], f32);
type ApplyU16 = fn(&[u64], &mut [u16], u16);
type Argmax = fn(&[u64], &[f32]) -> Peak;

/// The kernels that this CPU can run, by name.
#[expect(unsafe_code, reason = "calls target_feature functions")]
fn kernels() -> Vec<(&'static str, ApplyF32, ApplyU16, Argmax)> {
    let mut all: Vec<(&'static str, ApplyF32, ApplyU16, Argmax)> =
        vec![("scalar", scalar::apply, scalar::apply, scalar::argmax)];
    #[cfg(target_arch = "x86_64")]
    {
        use super::x86_64;
        if is_x86_feature_detected!("avx2") {
            all.push((
                "avx2",
                // SAFETY: the CPU has AVX2, checked above; so for all three.
                |words, row, illegal| unsafe { x86_64::apply_f32_avx2(words, row, illegal) },
                // SAFETY: as above.
                |words, row, illegal| unsafe { x86_64::apply_u16_avx2(words, row, illegal) },
                // SAFETY: as above.
                |words, row| unsafe { x86_64::argmax_avx2(words, row) },
            ));
        }
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
            all.push((
                "avx512",
                // SAFETY: the CPU has AVX-512F and BW, checked above; so for all three.
                |words, row, illegal| unsafe { x86_64::apply_f32_avx512(words, row, illegal) },
                // SAFETY: as above.
                |words, row, illegal| unsafe { x86_64::apply_u16_avx512(words, row, illegal) },
                // SAFETY: as above.
                |words, row| unsafe { x86_64::argmax_avx512(words, row) },
            ));
        }
    }
    all
}

#[test]
fn every_kernel_applies_a_mask_as_defined_at_every_length() {
    let mut random = Random(1);
    for len in (0..200_usize).chain([512, 1_000, 4_133]) {
        for _ in 0..8 {
            let words = random.words(len.div_ceil(64));
            let row = random.row(len, true);
            let halves: Vec<u16> = (0..len).map(|_| random.next() as u16).collect();
            for (name, apply_f32, apply_u16, _) in kernels() {
                let mut out = row.clone();
                apply_f32(&words, &mut out, f32::NEG_INFINITY);
                let mut out_halves = halves.clone();
                apply_u16(&words, &mut out_halves, 0xfc00);
                for i in 0..len {
                    let (expected, half) = if bit(&words, i) {
                        (row[i], halves[i])
                    } else {
                        (f32::NEG_INFINITY, 0xfc00)
                    };
                    assert_eq!(out[i].to_bits(), expected.to_bits(), "{name}, {i} of {len}");
                    assert_eq!(out_halves[i], half, "{name}, {i} of {len}");
                }
            }
        }
    }
}

#[test]
fn every_kernel_finds_the_highest_legal_logit_as_defined_at_every_length() {
    let mut random = Random(2);
    for len in (0..200_usize).chain([512, 1_000, 4_133]) {
        for wild in [false, false, false, false, true] {
            let words = random.words(len.div_ceil(64));
            let row = random.row(len, wild);
            let legal: Vec<usize> = (0..len).filter(|&i| bit(&words, i)).collect();
            let invalid = legal.iter().any(|&i| row[i].is_nan() || row[i] == f32::INFINITY);
            let mut expected: Option<usize> = None;
            for &i in &legal {
                if row[i] > expected.map_or(f32::NEG_INFINITY, |best| row[best]) {
                    expected = Some(i);
                }
            }
            for (name, _, _, argmax) in kernels() {
                let peak = argmax(&words, &row);
                assert_eq!(peak.invalid, invalid, "{name}, {len}");
                if invalid {
                    continue;
                }
                match expected {
                    Some(i) => assert_eq!((peak.value, peak.index), (row[i], i), "{name}, {len}"),
                    None => assert_eq!(peak.value, f32::NEG_INFINITY, "{name}, {len}"),
                }
            }
        }
    }
}

/// The same set in all forms that can hold it.
fn forms(width: usize, words: &[u64]) -> Vec<TokenMask> {
    let plain = TokenMask::from_words(width, words.to_vec());
    let ids: Vec<TokenId> = plain.iter().collect();
    let mut forms = vec![plain.clone(), TokenMask::from_ids(width, ids.clone())];
    // A base that differs in every 97th bit.
    let flipped: Vec<TokenId> =
        (0..width).step_by(97).filter_map(TokenId::from_index).take(width / 256 + 1).collect();
    let mut base = plain.words().into_owned();
    for id in &flipped {
        base[id.index() / 64] ^= 1 << (id.index() % 64);
    }
    let (removed, added) = flipped.into_iter().partition(|id| !plain.contains(*id));
    forms.push(TokenMask::from_base(width, &Arc::from(base), added, removed));
    assert!(forms.iter().all(|form| *form == plain));
    forms
}

#[test]
fn every_form_of_a_mask_gives_the_same_answers() {
    let mut random = Random(3);
    for width in [1_usize, 63, 64, 65, 700, 5_000, 9_001] {
        for sparse in [false, true] {
            let mut words = random.words(width.div_ceil(64));
            if sparse {
                words.iter_mut().for_each(|word| *word &= 1 << 7);
            }
            let row = random.row(width + 5, false);
            let answers: Vec<_> = forms(width, &words)
                .iter()
                .map(|mask| {
                    let mut applied = row.clone();
                    mask.apply(&mut applied).unwrap();
                    for (i, value) in applied.iter().enumerate() {
                        let legal = TokenId::from_index(i).is_some_and(|id| mask.contains(id));
                        assert_eq!(*value, if legal { row[i] } else { f32::NEG_INFINITY });
                    }
                    let mut buffers = Buffers::default();
                    let mut legal = Legal::new(mask, &row, &mut buffers).unwrap();
                    let max = legal.max().unwrap();
                    let argmax = mask.argmax(&row).unwrap();
                    assert_eq!(
                        argmax.map(|(id, _)| id),
                        legal.first_with(max).filter(|_| max > f32::NEG_INFINITY)
                    );
                    let sum = legal.sum(Weights::new(max.max(f32::MIN), 2.0)).to_bits();
                    let mut all = Vec::new();
                    legal.gather(-2.0, &mut all);
                    (legal.count(), max.to_bits(), argmax.map(|(id, _)| id), sum, all)
                })
                .collect();
            assert!(answers.iter().all(|answer| *answer == answers[0]), "{width} {answers:?}");
            let by_hand: f64 = (0..width)
                .filter(|&i| bit(&words, i) && answers[0].2.is_some())
                .map(|i| Weights::new(f32::from_bits(answers[0].1), 2.0).of(row[i]))
                .sum();
            if answers[0].2.is_some() {
                assert!((f64::from_bits(answers[0].3) / by_hand - 1.0).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn half_precision_rows_get_their_own_negative_infinity() {
    let mask = TokenMask::from_ids(4, vec![TokenId::new(2)]);
    let mut f16 = [0x3c00; 6];
    mask.apply_f16(&mut f16).unwrap();
    assert_eq!(f16, [0xfc00, 0xfc00, 0x3c00, 0xfc00, 0xfc00, 0xfc00]);
    let mut bf16 = [0x3f80; 6];
    mask.apply_bf16(&mut bf16).unwrap();
    assert_eq!(bf16.map(|bits| f32::from_bits(u32::from(bits) << 16)), {
        let no = f32::NEG_INFINITY;
        [no, no, 1.0, no, no, no]
    });
}

#[test]
fn rows_may_be_wider_than_the_mask_and_not_narrower() {
    let mask = TokenMask::from_words(70, vec![u64::MAX; 2]);
    let mut row = vec![1.0; 200];
    row[150] = f32::NAN;
    assert_eq!(mask.argmax(&row).unwrap(), Some((TokenId::new(0), 1.0)));
    mask.apply(&mut row).unwrap();
    assert!(row[..70].iter().all(|&x| x == 1.0));
    assert!(row[70..].iter().all(|&x| x == f32::NEG_INFINITY));
    let mut narrow = vec![1.0; 69];
    let error = LogitsError::TooNarrow { len: 69, width: 70 };
    assert_eq!(mask.apply(&mut narrow), Err(error));
    assert_eq!(mask.apply_f16(&mut [0; 69]), Err(error));
    assert_eq!(mask.argmax(&narrow), Err(error));
    assert_eq!(narrow, vec![1.0; 69], "the row is as it was");
}

#[test]
fn invalid_legal_logits_are_named_and_illegal_ones_are_not_read() {
    for width in [10, 1_000] {
        let at = width - 3;
        for (value, error) in [
            (f32::NAN, LogitsError::NotANumber { index: at }),
            (f32::INFINITY, LogitsError::PositiveInfinity { index: at }),
        ] {
            let mut row = vec![0.0; width];
            row[at] = value;
            row[width - 1] = value;
            let all = TokenMask::from_words(width, vec![u64::MAX; width.div_ceil(64)]);
            let few = TokenMask::from_ids(width, vec![TokenId::from_index(at).unwrap()]);
            for mask in [&all, &few] {
                assert_eq!(mask.argmax(&row), Err(error));
                let mut buffers = Buffers::default();
                assert_eq!(Legal::new(mask, &row, &mut buffers).unwrap().max(), Err(error));
            }
            let first = TokenMask::from_ids(width, vec![TokenId::new(0)]);
            assert_eq!(first.argmax(&row).unwrap(), Some((TokenId::new(0), 0.0)));
        }
    }
}
