//! The kernels of `scalar` for AVX2 and AVX-512 (with BW), chosen at run time by `apply`.
//!
//! ```text
//! apply:  for each word: skip it if all are legal; else for each vector of its 64 logits:
//!         store (bits of the vector ? logits : illegal)
//! argmax: for each word: skip it if none is legal; else the highest of its 64 (bits ? logits : −∞);
//!         if that is higher than the best so far, it is the best, and its block is remembered
//!         at the end the first position in that block that has it
//! ```
//!
//! A tail of less than 64 logits goes to the scalar kernel.

use std::arch::x86_64::{
    __m256, __m256i, _CMP_GT_OQ, _CMP_UNORD_Q, _mm256_and_si256, _mm256_blendv_epi8,
    _mm256_blendv_ps, _mm256_castsi256_ps, _mm256_cmp_ps, _mm256_cmpeq_epi16, _mm256_loadu_ps,
    _mm256_loadu_si256, _mm256_max_ps, _mm256_movemask_ps, _mm256_or_ps, _mm256_set1_epi16,
    _mm256_set1_epi32, _mm256_set1_ps, _mm256_setr_epi16, _mm256_setr_epi32, _mm256_setzero_ps,
    _mm256_sllv_epi32, _mm256_storeu_ps, _mm256_storeu_si256, _mm256_sub_epi32, _mm512_cmp_ps_mask,
    _mm512_mask_loadu_epi16, _mm512_mask_loadu_ps, _mm512_max_ps, _mm512_reduce_max_ps,
    _mm512_set1_epi16, _mm512_set1_ps, _mm512_storeu_epi16, _mm512_storeu_ps,
};

use super::WORD;
use super::scalar::{self, Peak};

/// As [`scalar::apply`].
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn apply_f32_avx512(words: &[u64], row: &mut [f32], illegal: f32) {
    let fill = _mm512_set1_ps(illegal);
    let (blocks, tail) = row.as_chunks_mut::<WORD>();
    let (words, last) = words.split_at(blocks.len());
    for (&word, block) in words.iter().zip(blocks) {
        if word == u64::MAX {
            continue;
        }
        for (bits, lanes) in parts16(word).into_iter().zip(block.as_chunks_mut::<16>().0) {
            let lanes = lanes.as_mut_ptr();
            // SAFETY: `lanes` points to 16 floats that are borrowed mutably.
            #[expect(unsafe_code, reason = "loads and stores through a pointer")]
            unsafe {
                _mm512_storeu_ps(lanes, _mm512_mask_loadu_ps(fill, bits, lanes));
            }
        }
    }
    scalar::apply(last, tail, illegal);
}

/// As [`scalar::apply`].
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn apply_u16_avx512(words: &[u64], row: &mut [u16], illegal: u16) {
    let fill = _mm512_set1_epi16(illegal.cast_signed());
    let (blocks, tail) = row.as_chunks_mut::<WORD>();
    let (words, last) = words.split_at(blocks.len());
    for (&word, block) in words.iter().zip(blocks) {
        if word == u64::MAX {
            continue;
        }
        for (bits, lanes) in parts32(word).into_iter().zip(block.as_chunks_mut::<32>().0) {
            let lanes = lanes.as_mut_ptr().cast::<i16>();
            // SAFETY: `lanes` points to 32 16-bit numbers that are borrowed mutably.
            #[expect(unsafe_code, reason = "loads and stores through a pointer")]
            unsafe {
                _mm512_storeu_epi16(lanes, _mm512_mask_loadu_epi16(fill, bits, lanes));
            }
        }
    }
    scalar::apply(last, tail, illegal);
}

/// As [`scalar::argmax`].
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn argmax_avx512(words: &[u64], row: &[f32]) -> Peak {
    let none = _mm512_set1_ps(f32::NEG_INFINITY);
    let (blocks, tail) = row.as_chunks::<WORD>();
    let mut best = f32::NEG_INFINITY;
    let mut number = 0;
    let mut nan = 0;
    for (i, (&word, block)) in words.iter().zip(blocks).enumerate() {
        if word == 0 {
            continue;
        }
        let mut highest = none;
        for (bits, lanes) in parts16(word).into_iter().zip(block.as_chunks::<16>().0) {
            // SAFETY: `lanes` is 16 floats.
            #[expect(unsafe_code, reason = "loads through a pointer")]
            let values = unsafe { _mm512_mask_loadu_ps(none, bits, lanes.as_ptr()) };
            nan |= _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(values, values);
            // Of a NaN and a number this takes the second.
            highest = _mm512_max_ps(values, highest);
        }
        if _mm512_cmp_ps_mask::<_CMP_GT_OQ>(highest, _mm512_set1_ps(best)) != 0 {
            best = _mm512_reduce_max_ps(highest);
            number = i;
        }
    }
    peak_of(words, row, (best, number, nan != 0), tail)
}

/// As [`scalar::apply`].
#[target_feature(enable = "avx2")]
pub(super) fn apply_f32_avx2(words: &[u64], row: &mut [f32], illegal: f32) {
    let fill = _mm256_set1_ps(illegal);
    let (blocks, tail) = row.as_chunks_mut::<WORD>();
    let (words, last) = words.split_at(blocks.len());
    for (&word, block) in words.iter().zip(blocks) {
        if word == u64::MAX {
            continue;
        }
        for (legal, lanes) in lanes32(word).into_iter().zip(block.as_chunks_mut::<8>().0) {
            let lanes = lanes.as_mut_ptr();
            // SAFETY: `lanes` points to 8 floats that are borrowed mutably.
            #[expect(unsafe_code, reason = "loads and stores through a pointer")]
            unsafe {
                let values = _mm256_blendv_ps(fill, _mm256_loadu_ps(lanes), legal);
                _mm256_storeu_ps(lanes, opaque(values));
            }
        }
    }
    scalar::apply(last, tail, illegal);
}

/// As [`scalar::apply`].
#[target_feature(enable = "avx2")]
pub(super) fn apply_u16_avx2(words: &[u64], row: &mut [u16], illegal: u16) {
    let fill = _mm256_set1_epi16(illegal.cast_signed());
    let (blocks, tail) = row.as_chunks_mut::<WORD>();
    let (words, last) = words.split_at(blocks.len());
    for (&word, block) in words.iter().zip(blocks) {
        if word == u64::MAX {
            continue;
        }
        for (bits, lanes) in parts16(word).into_iter().zip(block.as_chunks_mut::<16>().0) {
            let lanes = lanes.as_mut_ptr().cast::<__m256i>();
            // SAFETY: `lanes` points to 16 16-bit numbers that are borrowed mutably.
            #[expect(unsafe_code, reason = "loads and stores through a pointer")]
            unsafe {
                let values = _mm256_loadu_si256(lanes);
                _mm256_storeu_si256(lanes, _mm256_blendv_epi8(fill, values, lanes16(bits)));
            }
        }
    }
    scalar::apply(last, tail, illegal);
}

/// As [`scalar::argmax`].
#[target_feature(enable = "avx2")]
pub(super) fn argmax_avx2(words: &[u64], row: &[f32]) -> Peak {
    let none = _mm256_set1_ps(f32::NEG_INFINITY);
    let (blocks, tail) = row.as_chunks::<WORD>();
    let mut best = f32::NEG_INFINITY;
    let mut number = 0;
    let mut nan = _mm256_setzero_ps();
    for (i, (&word, block)) in words.iter().zip(blocks).enumerate() {
        if word == 0 {
            continue;
        }
        let mut highest = [none; 2];
        for (legal, lanes) in lanes32(word).as_chunks::<2>().0.iter().zip(block.as_chunks::<16>().0)
        {
            // SAFETY: `lanes` is 16 floats, 8 and 8.
            #[expect(unsafe_code, reason = "loads through a pointer")]
            let [low, high] = unsafe {
                [_mm256_loadu_ps(lanes.as_ptr()), _mm256_loadu_ps(lanes.as_ptr().add(8))]
            };
            let low = _mm256_blendv_ps(none, low, legal[0]);
            let high = _mm256_blendv_ps(none, high, legal[1]);
            nan = _mm256_or_ps(nan, _mm256_cmp_ps::<_CMP_UNORD_Q>(low, high));
            // Of a NaN and a number this takes the second.
            highest[0] = _mm256_max_ps(low, highest[0]);
            highest[1] = _mm256_max_ps(high, highest[1]);
        }
        let highest = _mm256_max_ps(highest[0], highest[1]);
        let higher = _mm256_cmp_ps::<_CMP_GT_OQ>(highest, _mm256_set1_ps(best));
        if _mm256_movemask_ps(higher) != 0 {
            let mut lanes = [0.0; 8];
            // SAFETY: `lanes` has 8 floats.
            #[expect(unsafe_code, reason = "stores through a pointer")]
            unsafe {
                _mm256_storeu_ps(lanes.as_mut_ptr(), highest);
            }
            best = lanes.into_iter().fold(best, f32::max);
            number = i;
        }
    }
    peak_of(words, row, (best, number, _mm256_movemask_ps(nan) != 0), tail)
}

/// Returns the peak of a row: `best` is the highest legal logit of its whole blocks, the number of
/// the first block that has it, and whether a legal logit is NaN; `tail` follows the whole blocks.
fn peak_of(words: &[u64], row: &[f32], best: (f32, usize, bool), tail: &[f32]) -> Peak {
    let (value, number, nan) = best;
    let whole = row.len() / WORD;
    let mut peak = Peak { invalid: nan || value == f32::INFINITY, ..Peak::NONE };
    if value > f32::NEG_INFINITY {
        let start = number * WORD;
        peak.merge(scalar::argmax(&words[number..=number], &row[start..start + WORD]), start);
    }
    peak.merge(scalar::argmax(&words[whole..], tail), whole * WORD);
    peak
}

/// Returns `values`, which the compiler then knows nothing about. Without it LLVM makes one masked
/// store of a load, blend and store, and AMD's CPUs take 18 cycles for each.
#[target_feature(enable = "avx2")]
#[inline]
fn opaque(mut values: __m256) -> __m256 {
    // SAFETY: the code is a comment; it reads and writes nothing but its operand.
    #[expect(unsafe_code, reason = "inline assembly")]
    unsafe {
        std::arch::asm!(
            "/* {0} */",
            inout(ymm_reg) values,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    values
}

/// Returns eight vectors of 32-bit lanes, one lane for each bit of `word`, whose highest bit is that
/// bit (what a blend of floats looks at).
#[target_feature(enable = "avx2")]
#[inline]
fn lanes32(word: u64) -> [__m256; 8] {
    let halves = parts32(word).map(|half| _mm256_set1_epi32(half.cast_signed()));
    let first = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    let lanes = |half: __m256i, skip| {
        let shift = _mm256_sub_epi32(first, _mm256_set1_epi32(skip));
        _mm256_castsi256_ps(_mm256_sllv_epi32(half, shift))
    };
    let [low, high] = halves;
    [
        lanes(low, 0),
        lanes(low, 8),
        lanes(low, 16),
        lanes(low, 24),
        lanes(high, 0),
        lanes(high, 8),
        lanes(high, 16),
        lanes(high, 24),
    ]
}

/// Returns 16-bit lanes of ones where bit `lane` of `bits` is 1.
#[target_feature(enable = "avx2")]
fn lanes16(bits: u16) -> __m256i {
    let each = _mm256_setr_epi16(
        1,
        2,
        4,
        8,
        16,
        32,
        64,
        128,
        256,
        512,
        1024,
        2048,
        4096,
        8192,
        16384,
        i16::MIN,
    );
    _mm256_cmpeq_epi16(_mm256_and_si256(_mm256_set1_epi16(bits.cast_signed()), each), each)
}

/// Returns the four 16-bit parts of a word, lowest first.
#[inline]
fn parts16(word: u64) -> [u16; 4] {
    let [a, b, c, d, e, f, g, h] = word.to_le_bytes();
    [[a, b], [c, d], [e, f], [g, h]].map(u16::from_le_bytes)
}

/// Returns the two 32-bit parts of a word, lowest first.
#[inline]
fn parts32(word: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_le_bytes();
    [[a, b, c, d], [e, f, g, h]].map(u32::from_le_bytes)
}
