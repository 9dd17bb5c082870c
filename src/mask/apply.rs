//! Masks on rows of logits: the illegal logits become −∞ in place, or the highest legal logit is
//! found without writing.
//!
//! Rows may be wider than the mask (padding is illegal), never narrower. Cost: one pass over the row
//! at memory speed for dense masks, less where whole words are legal; a fill for sparse masks; a
//! search among sparse masks touches the legal logits alone.

use smallvec::SmallVec;

use super::scalar::{self, Peak, is_invalid};
use super::{Form, TokenMask, WORD};
use crate::ids::TokenId;
use crate::step_error::LogitsError;

/// Words of a patched base that are made at a time, on the stack.
const RUN: usize = 64;

/// −∞ as an IEEE 754 half-precision bit pattern.
const F16_NEG_INFINITY: u16 = 0xfc00;

/// −∞ as a bfloat16 bit pattern.
const BF16_NEG_INFINITY: u16 = 0xff80;

impl TokenMask {
    /// Sets the logits of all illegal tokens to −∞, in place. Legal logits keep their bits, NaN too;
    /// what lies past the width of the mask is illegal.
    ///
    /// ```
    /// use schemac::{TokenId, TokenMask};
    ///
    /// let mask = TokenMask::from_ids(3, vec![TokenId::new(1)]);
    /// let mut logits = [0.5, 0.25, 3.0, 9.0]; // one logit of padding
    /// mask.apply(&mut logits)?;
    /// assert_eq!(logits, [f32::NEG_INFINITY, 0.25, f32::NEG_INFINITY, f32::NEG_INFINITY]);
    /// # Ok::<(), schemac::LogitsError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`LogitsError::TooNarrow`] if the row has fewer logits than the mask has ids; it is then left
    /// as it is.
    pub fn apply(&self, logits: &mut [f32]) -> Result<(), LogitsError> {
        self.apply_with(logits, f32::NEG_INFINITY, apply_f32)
    }

    /// As [`TokenMask::apply`], for half-precision logits (IEEE 754 binary16) as bit patterns.
    ///
    /// # Errors
    ///
    /// As [`TokenMask::apply`].
    pub fn apply_f16(&self, logits: &mut [u16]) -> Result<(), LogitsError> {
        self.apply_with(logits, F16_NEG_INFINITY, apply_u16)
    }

    /// As [`TokenMask::apply`], for bfloat16 logits as bit patterns.
    ///
    /// # Errors
    ///
    /// As [`TokenMask::apply`].
    pub fn apply_bf16(&self, logits: &mut [u16]) -> Result<(), LogitsError> {
        self.apply_with(logits, BF16_NEG_INFINITY, apply_u16)
    }

    /// Returns the legal token with the highest logit and that logit; the lowest id wins ties.
    /// Returns `None` if every legal logit is −∞, or no token is legal. Only reads, and reads only
    /// what is legal.
    ///
    /// # Errors
    ///
    /// [`LogitsError`] if the row is narrower than the mask, or a legal logit is NaN or +∞.
    pub fn argmax(&self, logits: &[f32]) -> Result<Option<(TokenId, f32)>, LogitsError> {
        self.check_width(logits.len())?;
        let mut peak = Peak::NONE;
        if let Form::Sparse(ids) = &self.form {
            for id in ids.iter() {
                let value = logits[id.index()];
                peak.invalid |= is_invalid(value);
                peak.meet(value, id.index());
            }
        } else {
            self.for_each_run(|first, words| {
                let row = &logits[first * WORD..self.width.min((first + words.len()) * WORD)];
                peak.merge(argmax_f32(words, row), first * WORD);
            });
        }
        if peak.invalid {
            return Err(self.first_invalid(logits));
        }
        if peak.value == f32::NEG_INFINITY {
            return Ok(None);
        }
        Ok(TokenId::from_index(peak.index).map(|id| (id, peak.value)))
    }

    /// Checks that a row of `len` logits has one for each id.
    pub(crate) const fn check_width(&self, len: usize) -> Result<(), LogitsError> {
        if len < self.width {
            return Err(LogitsError::TooNarrow { len, width: self.width });
        }
        Ok(())
    }

    /// Returns what is wrong with the first legal logit that is NaN or +∞.
    #[cold]
    pub(crate) fn first_invalid(&self, logits: &[f32]) -> LogitsError {
        let wrong = |id: TokenId| LogitsError::of(logits[id.index()], id.index());
        // Asked only where there is one.
        self.iter().find_map(wrong).unwrap_or(LogitsError::NotANumber { index: 0 })
    }

    fn apply_with<T: Copy + Default>(
        &self,
        row: &mut [T],
        illegal: T,
        kernel: impl Fn(&[u64], &mut [T], T),
    ) -> Result<(), LogitsError> {
        self.check_width(row.len())?;
        let (row, padding) = row.split_at_mut(self.width);
        padding.fill(illegal);
        if let Form::Sparse(ids) = &self.form {
            let legal: SmallVec<[T; RUN]> = ids.iter().map(|id| row[id.index()]).collect();
            row.fill(illegal);
            for (id, value) in ids.iter().zip(legal) {
                row[id.index()] = value;
            }
        } else {
            self.for_each_run(|first, words| {
                let end = self.width.min((first + words.len()) * WORD);
                kernel(words, &mut row[first * WORD..end], illegal);
            });
        }
        Ok(())
    }

    /// Calls `f` on runs of words, in ascending order, with the number of each run's first word: all
    /// words at once where they are stored so, else [`RUN`] at a time.
    pub(super) fn for_each_run(&self, mut f: impl FnMut(usize, &[u64])) {
        match &self.form {
            Form::Dense(words) => f(0, words),
            Form::Sparse(ids) => patched(self.width.div_ceil(WORD), None, ids, &[], f),
            Form::Delta { base, added, removed } => {
                patched(base.len(), Some(base), added, removed, f);
            }
        }
    }
}

/// Calls `f` on the `len` words of `base` (0 without one) with `added` put in and `removed` taken
/// out, [`RUN`] words at a time.
fn patched(
    len: usize,
    base: Option<&[u64]>,
    mut added: &[TokenId],
    mut removed: &[TokenId],
    mut f: impl FnMut(usize, &[u64]),
) {
    /// Takes the ids below `end` from the front of a sorted list.
    fn take<'a>(ids: &mut &'a [TokenId], end: usize) -> &'a [TokenId] {
        let (now, later) = ids.split_at(ids.partition_point(|id| id.index() < end));
        *ids = later;
        now
    }
    let mut buffer = [0; RUN];
    for first in (0..len).step_by(RUN) {
        let run = &mut buffer[..RUN.min(len - first)];
        match base {
            Some(base) => run.copy_from_slice(&base[first..first + run.len()]),
            None => run.fill(0),
        }
        let end = (first + run.len()) * WORD;
        for id in take(&mut removed, end) {
            run[id.index() / WORD - first] &= !(1 << (id.index() % WORD));
        }
        for id in take(&mut added, end) {
            run[id.index() / WORD - first] |= 1 << (id.index() % WORD);
        }
        f(first, run);
    }
}

/// Defines a function that runs the best kernel that the CPU has. The twins have one signature.
macro_rules! dispatch {
    ($name:ident => $scalar:ident, $avx2:ident, $avx512:ident: fn($($arg:ident: $type:ty),*) $(-> $out:ty)?) => {
        fn $name($($arg: $type),*) $(-> $out)? {
            #[cfg(target_arch = "x86_64")]
            {
                use super::x86_64;
                if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
                    // SAFETY: the CPU has AVX-512F and AVX-512BW, checked on the line above.
                    #[expect(unsafe_code, reason = "calls a target_feature function")]
                    return unsafe { x86_64::$avx512($($arg),*) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the CPU has AVX2, checked on the line above.
                    #[expect(unsafe_code, reason = "calls a target_feature function")]
                    return unsafe { x86_64::$avx2($($arg),*) };
                }
            }
            scalar::$scalar($($arg),*)
        }
    };
}

dispatch!(apply_f32 => apply, apply_f32_avx2, apply_f32_avx512: fn(words: &[u64], row: &mut [f32], illegal: f32));
dispatch!(apply_u16 => apply, apply_u16_avx2, apply_u16_avx512: fn(words: &[u64], row: &mut [u16], illegal: u16));
dispatch!(argmax_f32 => argmax, argmax_avx2, argmax_avx512: fn(words: &[u64], row: &[f32]) -> Peak);
