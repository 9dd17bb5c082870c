//! The kernels of `scalar` for AVX2 and AVX-512 (with BW), chosen at run time by `apply`.
//!
//! ```text
//! apply:  for each word: skip it if all are legal; else for each vector of its 64 logits:
//!         store (bits of the vector ? logits : illegal)
//! argmax: for each word: skip it if none is legal; else for each vector of its 64 logits, with
//!         lanes of its own: where legal and logit > best { best = logit; block = word's number }
//!         at the end the lane with the highest best and, among equals, the lowest position wins
//! ```
//!
//! A tail of less than 64 logits goes to the scalar kernel.

use std::arch::x86_64::{
    __m256, __m256i, __m512, __m512i, _CMP_GT_OQ, _CMP_NLT_UQ, _mm256_and_si256,
    _mm256_blendv_epi8, _mm256_blendv_ps, _mm256_castsi256_ps, _mm256_cmp_ps, _mm256_cmpeq_epi16,
    _mm256_cmpeq_epi32, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_movemask_ps, _mm256_or_ps,
    _mm256_set1_epi16, _mm256_set1_epi32, _mm256_set1_ps, _mm256_setr_epi16, _mm256_setr_epi32,
    _mm256_setzero_ps, _mm256_storeu_ps, _mm256_storeu_si256, _mm512_cmp_ps_mask,
    _mm512_mask_cmp_ps_mask, _mm512_mask_loadu_epi16, _mm512_mask_loadu_ps, _mm512_mask_mov_epi32,
    _mm512_mask_mov_ps, _mm512_set1_epi16, _mm512_set1_epi32, _mm512_set1_ps, _mm512_storeu_epi16,
    _mm512_storeu_epi32, _mm512_storeu_ps,
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
    let infinity = _mm512_set1_ps(f32::INFINITY);
    let (blocks, tail) = row.as_chunks::<WORD>();
    let (words, last) = words.split_at(blocks.len());
    let mut best: [__m512; 4] = [none; 4];
    let mut origin: [__m512i; 4] = [_mm512_set1_epi32(0); 4];
    let mut invalid = 0;
    for (number, (&word, block)) in (0_i32..).zip(words.iter().zip(blocks)) {
        if word == 0 {
            continue;
        }
        let number = _mm512_set1_epi32(number);
        for (i, (bits, lanes)) in
            parts16(word).into_iter().zip(block.as_chunks::<16>().0).enumerate()
        {
            // SAFETY: `lanes` is 16 floats.
            #[expect(unsafe_code, reason = "loads through a pointer")]
            let values = unsafe { _mm512_mask_loadu_ps(none, bits, lanes.as_ptr()) };
            // Not less than +∞, or not ordered: +∞ or NaN.
            invalid |= _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(values, infinity);
            let higher = _mm512_mask_cmp_ps_mask::<_CMP_GT_OQ>(bits, values, best[i]);
            best[i] = _mm512_mask_mov_ps(best[i], higher, values);
            origin[i] = _mm512_mask_mov_epi32(origin[i], higher, number);
        }
    }
    let mut peak = Peak { invalid: invalid != 0, ..Peak::NONE };
    for (i, (best, origin)) in best.into_iter().zip(origin).enumerate() {
        let (mut values, mut numbers) = ([0.0; 16], [0; 16]);
        // SAFETY: both arrays have 16 lanes of 32 bits.
        #[expect(unsafe_code, reason = "stores through a pointer")]
        unsafe {
            _mm512_storeu_ps(values.as_mut_ptr(), best);
            _mm512_storeu_epi32(numbers.as_mut_ptr(), origin);
        }
        meet_lanes(&mut peak, &values, &numbers, i * 16);
    }
    peak.merge(scalar::argmax(last, tail), blocks.len() * WORD);
    peak
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
        for (byte, lanes) in word.to_le_bytes().into_iter().zip(block.as_chunks_mut::<8>().0) {
            let lanes = lanes.as_mut_ptr();
            // SAFETY: `lanes` points to 8 floats that are borrowed mutably.
            #[expect(unsafe_code, reason = "loads and stores through a pointer")]
            unsafe {
                let legal = _mm256_castsi256_ps(lanes32(byte));
                _mm256_storeu_ps(lanes, _mm256_blendv_ps(fill, _mm256_loadu_ps(lanes), legal));
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
    let infinity = _mm256_set1_ps(f32::INFINITY);
    let (blocks, tail) = row.as_chunks::<WORD>();
    let (words, last) = words.split_at(blocks.len());
    let mut best: [__m256; 8] = [none; 8];
    let mut origin: [__m256; 8] = [_mm256_setzero_ps(); 8];
    let mut invalid = _mm256_setzero_ps();
    for (number, (&word, block)) in (0_i32..).zip(words.iter().zip(blocks)) {
        if word == 0 {
            continue;
        }
        let number = _mm256_castsi256_ps(_mm256_set1_epi32(number));
        for (i, (byte, lanes)) in
            word.to_le_bytes().into_iter().zip(block.as_chunks::<8>().0).enumerate()
        {
            // SAFETY: `lanes` is 8 floats.
            #[expect(unsafe_code, reason = "loads through a pointer")]
            let values = unsafe { _mm256_loadu_ps(lanes.as_ptr()) };
            let values = _mm256_blendv_ps(none, values, _mm256_castsi256_ps(lanes32(byte)));
            // Not less than +∞, or not ordered: +∞ or NaN.
            invalid = _mm256_or_ps(invalid, _mm256_cmp_ps::<_CMP_NLT_UQ>(values, infinity));
            let higher = _mm256_cmp_ps::<_CMP_GT_OQ>(values, best[i]);
            best[i] = _mm256_blendv_ps(best[i], values, higher);
            origin[i] = _mm256_blendv_ps(origin[i], number, higher);
        }
    }
    let mut peak = Peak { invalid: _mm256_movemask_ps(invalid) != 0, ..Peak::NONE };
    for (i, (best, origin)) in best.into_iter().zip(origin).enumerate() {
        let (mut values, mut numbers) = ([0.0; 8], [0.0; 8]);
        // SAFETY: both arrays have 8 lanes of 32 bits.
        #[expect(unsafe_code, reason = "stores through a pointer")]
        unsafe {
            _mm256_storeu_ps(values.as_mut_ptr(), best);
            _mm256_storeu_ps(numbers.as_mut_ptr(), origin);
        }
        let numbers = numbers.map(|n: f32| n.to_bits().cast_signed());
        meet_lanes(&mut peak, &values, &numbers, i * 8);
    }
    peak.merge(scalar::argmax(last, tail), blocks.len() * WORD);
    peak
}

/// Takes the lanes of one vector into account: lane `i` of block `n` is position
/// `64 * n + offset + i`.
fn meet_lanes(peak: &mut Peak, values: &[f32], numbers: &[i32], offset: usize) {
    for (lane, (&value, &number)) in values.iter().zip(numbers).enumerate() {
        // Positions are 32-bit ids, so the number of a block is not negative.
        peak.meet(value, number.cast_unsigned() as usize * WORD + offset + lane);
    }
}

/// Returns 32-bit lanes of ones where bit `lane` of `byte` is 1.
#[target_feature(enable = "avx2")]
fn lanes32(byte: u8) -> __m256i {
    let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(byte.into()), bits), bits)
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
