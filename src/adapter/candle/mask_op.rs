//! Masks on tensors of logits, in place: tensor and masks in, the same tensor out with −∞ for every
//! illegal token.
//!
//! The last dimension of the tensor is the row; all others count rows. Rows may be wider than a mask
//! (padding is illegal), never narrower. Logits are `f32`, `f16` or `bf16`. On the CPU the kernels of
//! [`crate::mask`] write to the tensor's own memory: no copy, no allocation. With the feature `cuda`,
//! logits on a CUDA device are masked there, and the masks are sent; [`crate::adapter::candle::MaskTable`]
//! sends a mask once only. On other devices the logits make a round trip through the host. Off the CPU
//! the tensor must be contiguous.
//!
//! A tensor that shares its storage with others (a view) changes them too where it changes.

#[cfg(feature = "cuda")]
use candle_core::CudaStorage;
use candle_core::backend::BackendStorage;
use candle_core::{CpuStorage, DType, Device, Error, InplaceOp1, InplaceOp2, InplaceOp3};
use candle_core::{Layout, Result};
use candle_core::{Tensor, bail};
use half::slice::HalfFloatSliceExt;

#[cfg(feature = "cuda")]
use crate::adapter::candle::cuda;
use crate::mask::TokenMask;

/// Number of bits of a word in a tensor of mask words.
const WORD: usize = 32;

/// Sets the logits of all illegal tokens to −∞, in place, in each row.
///
/// # Errors
///
/// If the type of the logits is not `f32`, `f16` or `bf16`, a row is narrower than the mask, or the
/// last dimension is not contiguous (off the CPU: the tensor). The logits are then left as they are.
///
/// # Examples
///
/// ```
/// use candle_core::{Device, Tensor};
/// use schemac::adapter::candle::apply_mask;
/// use schemac::{TokenId, TokenMask};
///
/// let logits = Tensor::new(&[0.5_f32, 0.25, 3.0], &Device::Cpu)?;
/// apply_mask(&logits, &TokenMask::from_ids(3, vec![TokenId::new(1)]))?;
/// assert_eq!(logits.to_vec1::<f32>()?, [f32::NEG_INFINITY, 0.25, f32::NEG_INFINITY]);
/// # Ok::<(), candle_core::Error>(())
/// ```
pub fn apply_mask(logits: &Tensor, mask: &TokenMask) -> Result<()> {
    apply(logits, &Masks::Same(mask))
}

/// As [`apply_mask`], with a mask for each row. Rows are counted in the order of the elements: of a
/// tensor of `[sequences, positions, vocabulary]`, the positions of the first sequence come first.
///
/// # Errors
///
/// As [`apply_mask`], and if there is not one mask for each row.
pub fn apply_masks(logits: &Tensor, masks: &[TokenMask]) -> Result<()> {
    apply(logits, &Masks::Each(masks))
}

/// Returns masks of one width as a tensor of `[masks, ceil(width / 32)]` words of type `u32`: bit
/// `i % 32` of word `i / 32` is token `i`, 1 is legal.
///
/// # Errors
///
/// If the masks differ in width, there are none, or the device fails.
pub fn mask_words(masks: &[TokenMask], device: &Device) -> Result<Tensor> {
    let Some(width) = masks.first().map(TokenMask::width) else { bail!("no masks") };
    let per_row = width.div_ceil(WORD);
    let mut words = Vec::with_capacity(masks.len() * per_row);
    for mask in masks {
        if mask.width() != width {
            bail!("masks of {width} and {} tokens", mask.width());
        }
        // The upper half of the last word may be past the width.
        words.extend(mask.words().iter().flat_map(|&word| halves(word)).take(per_row));
    }
    Tensor::from_vec(words, (masks.len(), per_row), device)
}

/// As [`apply_masks`], with the masks as a contiguous tensor of words on the same device, as
/// [`mask_words`] makes it: one row of words for each row of logits, or one row for all.
///
/// # Errors
///
/// As [`apply_masks`], and if the words are not contiguous `u32`. The vocabulary's width is not known
/// here: rows of logits may end inside the last word.
pub fn apply_mask_words(logits: &Tensor, words: &Tensor) -> Result<()> {
    check_numbers(words, "mask words")?;
    if runs_on(logits.device()) {
        return logits.inplace_op2(words, &WordsOp);
    }
    let words = words.to_device(&Device::Cpu)?;
    through_host(logits, |host| host.inplace_op2(&words, &WordsOp))
}

/// As [`apply_mask_words`], with the number of each row's mask among the rows of words. A row whose
/// number is past the last mask has no legal token.
///
/// # Errors
///
/// As [`apply_mask_words`], and if `index` is not a contiguous tensor of one `u32` for each row of
/// logits.
pub fn apply_indexed_masks(logits: &Tensor, words: &Tensor, index: &Tensor) -> Result<()> {
    check_numbers(words, "mask words")?;
    check_numbers(index, "the numbers of masks")?;
    if runs_on(logits.device()) {
        return logits.inplace_op3(words, index, &IndexedOp);
    }
    let (words, index) = (words.to_device(&Device::Cpu)?, index.to_device(&Device::Cpu)?);
    through_host(logits, |host| host.inplace_op3(&words, &index, &IndexedOp))
}

fn check_numbers(tensor: &Tensor, what: &str) -> Result<()> {
    if tensor.dtype() != DType::U32 || !tensor.is_contiguous() || tensor.rank() == 0 {
        bail!("{what} must be a contiguous tensor of u32, not {tensor:?}");
    }
    Ok(())
}

/// Returns whether there are kernels of ours for the device.
fn runs_on(device: &Device) -> bool {
    device.is_cpu() || cfg!(feature = "cuda") && device.is_cuda()
}

fn apply(logits: &Tensor, masks: &Masks<'_>) -> Result<()> {
    if logits.device().is_cpu() {
        return logits.inplace_op1(masks);
    }
    if runs_on(logits.device()) {
        let words = match masks {
            Masks::Same(mask) => mask_words(std::slice::from_ref(mask), logits.device())?,
            Masks::Each(masks) => {
                check_count(masks.len(), rows_of(logits))?;
                mask_words(masks, logits.device())?
            }
        };
        return apply_mask_words(logits, &words);
    }
    through_host(logits, |host| host.inplace_op1(masks))
}

fn rows_of(logits: &Tensor) -> usize {
    logits.elem_count().checked_div(logits.dims().last().copied().unwrap_or(0)).unwrap_or(0)
}

fn check_count(masks: usize, rows: usize) -> Result<()> {
    if masks != rows {
        bail!("{masks} masks for {rows} rows of logits");
    }
    Ok(())
}

/// Runs `op` on a copy of the logits on the host and writes the result back.
fn through_host(logits: &Tensor, op: impl FnOnce(&Tensor) -> Result<()>) -> Result<()> {
    let host = logits.to_device(&Device::Cpu)?.copy()?;
    op(&host)?;
    logits.slice_set(&host.to_device(logits.device())?, 0, 0)
}

/// The masks of the rows, as an operation on the logits alone.
enum Masks<'a> {
    Same(&'a TokenMask),
    Each(&'a [TokenMask]),
}

impl InplaceOp1 for Masks<'_> {
    fn name(&self) -> &'static str {
        "schemac-apply-mask"
    }

    fn cpu_fwd(&self, logits: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let rows = Rows::of(layout)?;
        // All is checked before anything is written.
        match self {
            Self::Same(mask) => rows.check(mask)?,
            Self::Each(masks) => {
                check_count(masks.len(), rows.starts.len())?;
                masks.iter().try_for_each(|mask| rows.check(mask))?;
            }
        }
        rows.for_each(logits, |row, logits| match self {
            Self::Same(mask) => logits.apply(mask),
            Self::Each(masks) => logits.apply(&masks[row]),
        })
    }
}

/// The masks of the rows as words in a second tensor.
struct WordsOp;

impl InplaceOp2 for WordsOp {
    fn name(&self) -> &'static str {
        "schemac-apply-mask-words"
    }

    fn cpu_fwd(
        &self,
        logits: &mut CpuStorage,
        layout: &Layout,
        words: &CpuStorage,
        words_layout: &Layout,
    ) -> Result<()> {
        let rows = Rows::of(layout)?;
        let words = Words::of(words, words_layout)?;
        check_words(words_layout, layout)?;
        if words.count == 1 {
            let mask = words.mask(0, rows.len);
            return rows.for_each(logits, |_, logits| logits.apply(&mask));
        }
        check_count(words.count, rows.starts.len())?;
        rows.for_each(logits, |row, logits| logits.apply(&words.mask(row, rows.len)))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        logits: &mut CudaStorage,
        layout: &Layout,
        words: &CudaStorage,
        words_layout: &Layout,
    ) -> Result<()> {
        let (masks, rows) = check_words(words_layout, layout)?;
        if masks != 1 {
            check_count(masks, rows)?;
        }
        cuda::apply(logits, layout, &cuda::Masks { words: (words, words_layout), index: None })
    }
}

/// Masks as words in a second tensor, and the number of each row's mask in a third.
struct IndexedOp;

impl InplaceOp3 for IndexedOp {
    fn name(&self) -> &'static str {
        "schemac-apply-indexed-masks"
    }

    fn cpu_fwd(
        &self,
        logits: &mut CpuStorage,
        layout: &Layout,
        words: &CpuStorage,
        words_layout: &Layout,
        index: &CpuStorage,
        index_layout: &Layout,
    ) -> Result<()> {
        let rows = Rows::of(layout)?;
        let words = Words::of(words, words_layout)?;
        check_words(words_layout, layout)?;
        check_count(index_layout.shape().elem_count(), rows.starts.len())?;
        let (start, end) = index_layout.contiguous_offsets().unwrap_or_default();
        let index = &index.as_slice::<u32>()?[start..end];
        rows.for_each(logits, |row, logits| {
            logits.apply(&words.mask(index[row] as usize, rows.len))
        })
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        logits: &mut CudaStorage,
        layout: &Layout,
        words: &CudaStorage,
        words_layout: &Layout,
        index: &CudaStorage,
        index_layout: &Layout,
    ) -> Result<()> {
        let (_, rows) = check_words(words_layout, layout)?;
        check_count(index_layout.shape().elem_count(), rows)?;
        let (words, index) = ((words, words_layout), Some((index, index_layout)));
        cuda::apply(logits, layout, &cuda::Masks { words, index })
    }
}

/// Checks the width of mask words against that of the logits, and returns how many masks and rows
/// there are.
fn check_words(words: &Layout, logits: &Layout) -> Result<(usize, usize)> {
    let count = |layout: &Layout| {
        let width = layout.dims().last().copied().unwrap_or_default();
        (width, layout.shape().elem_count().checked_div(width).unwrap_or_default())
    };
    let ((per_mask, masks), (width, rows)) = (count(words), count(logits));
    if masks == 0 {
        bail!("no mask words for {rows} rows of logits");
    }
    if width.div_ceil(WORD) < per_mask {
        bail!("rows of {width} logits are narrower than {per_mask} mask words");
    }
    Ok((masks, rows))
}

/// Masks as words on the host.
struct Words<'a> {
    words: &'a [u32],
    per_mask: usize,
    count: usize,
}

impl<'a> Words<'a> {
    fn of(storage: &'a CpuStorage, layout: &Layout) -> Result<Self> {
        let (start, end) = layout.contiguous_offsets().unwrap_or_default();
        let words = &storage.as_slice::<u32>()?[start..end];
        let per_mask = layout.dims().last().copied().unwrap_or_default();
        let count = words.len().checked_div(per_mask).unwrap_or_default();
        Ok(Self { words, per_mask, count })
    }

    /// Returns a mask for a row of `len` logits, an empty one if there is none of this number.
    fn mask(&self, number: usize, len: usize) -> TokenMask {
        let width = len.min(self.per_mask * WORD);
        if number >= self.count {
            return TokenMask::empty(width);
        }
        let words = &self.words[number * self.per_mask..][..self.per_mask];
        TokenMask::from_words(width, words.chunks(2).map(whole).collect())
    }
}

/// Returns the two words of 32 bits of a word of 64, the lower first.
#[expect(clippy::cast_possible_truncation, reason = "takes the lower and the upper half")]
const fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

/// Returns the word of 64 bits of one or two words of 32, the lower first.
fn whole(words: &[u32]) -> u64 {
    words.iter().rev().fold(0, |word, &half| word << 32 | u64::from(half))
}

/// Where the rows of a tensor lie in its storage.
struct Rows {
    len: usize,
    starts: Vec<usize>,
}

impl Rows {
    fn of(layout: &Layout) -> Result<Self> {
        let (Some((&len, dims)), Some((&step, strides))) =
            (layout.dims().split_last(), layout.stride().split_last())
        else {
            bail!("logits need at least one dimension")
        };
        if step != 1 && len > 1 {
            bail!("the last dimension of the logits must be contiguous, its stride is {step}");
        }
        let mut starts = vec![layout.start_offset()];
        for (&dim, &stride) in dims.iter().zip(strides) {
            starts =
                starts.iter().flat_map(|start| (0..dim).map(move |i| start + i * stride)).collect();
        }
        Ok(Self { len, starts })
    }

    fn check(&self, mask: &TokenMask) -> Result<()> {
        if self.len < mask.width() {
            bail!(
                "rows of {} logits are narrower than a mask of {} tokens",
                self.len,
                mask.width()
            );
        }
        Ok(())
    }

    /// Calls `f` on each row with its number.
    fn for_each(
        &self,
        storage: &mut CpuStorage,
        f: impl Fn(usize, Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut ranges = self.starts.iter().map(|&start| start..start + self.len).enumerate();
        match storage {
            CpuStorage::F32(all) => {
                ranges.try_for_each(|(row, range)| f(row, Row::F32(&mut all[range])))
            }
            CpuStorage::F16(all) => {
                let all = all.reinterpret_cast_mut();
                ranges.try_for_each(|(row, range)| f(row, Row::F16(&mut all[range])))
            }
            CpuStorage::BF16(all) => {
                let all = all.reinterpret_cast_mut();
                ranges.try_for_each(|(row, range)| f(row, Row::Bf16(&mut all[range])))
            }
            other => bail!("logits of type {:?} cannot be masked", other.dtype()),
        }
    }
}

/// One row of logits; halves as bit patterns.
enum Row<'a> {
    F32(&'a mut [f32]),
    F16(&'a mut [u16]),
    Bf16(&'a mut [u16]),
}

impl Row<'_> {
    fn apply(self, mask: &TokenMask) -> Result<()> {
        match self {
            Self::F32(row) => mask.apply(row),
            Self::F16(row) => mask.apply_f16(row),
            Self::Bf16(row) => mask.apply_bf16(row),
        }
        .map_err(Error::wrap)
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;
    use crate::ids::TokenId;

    /// Masks of each form: dense, sparse, and a base with differences.
    fn masks(width: usize) -> Vec<TokenMask> {
        let ids = |keep: fn(usize) -> bool| {
            (0..width).filter(|&i| keep(i)).filter_map(TokenId::from_index).collect::<Vec<_>>()
        };
        let dense = TokenMask::from_ids(width, ids(|i| i % 3 != 0));
        let delta = dense.without(&ids(|i| i == 1 || i == 31));
        vec![dense, TokenMask::from_ids(width, ids(|i| i == 32)), delta, TokenMask::empty(width)]
    }

    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn values(len: usize) -> Vec<f32> {
        (0..len).map(|i| (i % 97) as f32 * 0.25 - 9.0).collect()
    }

    /// What a mask must leave of a row, decided token by token.
    fn expected(mask: &TokenMask, row: &[f32]) -> Vec<f32> {
        let legal = |i| TokenId::from_index(i).is_some_and(|id| mask.contains(id));
        let masked = |(i, &value): (usize, &f32)| if legal(i) { value } else { f32::NEG_INFINITY };
        row.iter().enumerate().map(masked).collect()
    }

    fn lines_of(tensor: &Tensor) -> Vec<Vec<f32>> {
        tensor.to_dtype(DType::F32).unwrap().to_vec2().unwrap()
    }

    #[test]
    fn every_type_and_form_agrees_with_the_mask_token_by_token() {
        for (width, len) in [(200, 200), (200, 230), (33, 33), (64, 64), (1_000, 1_003)] {
            let masks = masks(width);
            let row = values(len);
            let all: Vec<f32> = row.iter().copied().cycle().take(len * masks.len()).collect();
            let wanted: Vec<_> = masks.iter().map(|mask| expected(mask, &row)).collect();
            for dtype in [DType::F32, DType::F16, DType::BF16] {
                let fresh = || {
                    let tensor = Tensor::from_slice(&all, (masks.len(), len), &Device::Cpu);
                    tensor.unwrap().to_dtype(dtype).unwrap().copy().unwrap()
                };
                let each = fresh();
                apply_masks(&each, &masks).unwrap();
                assert_eq!(lines_of(&each), wanted, "{dtype:?} {width} of {len}");
                let by_words = fresh();
                apply_mask_words(&by_words, &mask_words(&masks, &Device::Cpu).unwrap()).unwrap();
                assert_eq!(lines_of(&by_words), wanted, "{dtype:?} {width} of {len}, words");
                let numbers: Vec<u32> = (0..).take(masks.len()).collect();
                let index = Tensor::new(&numbers[..], &Device::Cpu).unwrap();
                let indexed = fresh();
                let words = mask_words(&masks, &Device::Cpu).unwrap();
                apply_indexed_masks(&indexed, &words, &index).unwrap();
                assert_eq!(lines_of(&indexed), wanted, "{dtype:?} {width} of {len}, indexed");
                let copied = fresh();
                through_host(&copied, |host| host.inplace_op1(&Masks::Each(&masks))).unwrap();
                assert_eq!(lines_of(&copied), wanted, "{dtype:?} {width} of {len}, copied");
                let same = fresh();
                apply_mask(&same, &masks[0]).unwrap();
                let wanted = vec![wanted[0].clone(); masks.len()];
                assert_eq!(lines_of(&same), wanted, "{dtype:?} {width} of {len}, one mask");
            }
        }
    }

    #[test]
    fn legal_logits_keep_their_bits() {
        let nan = f16::from_bits(0x7e01);
        let logits = Tensor::new(&[nan, f16::NEG_ZERO, nan], &Device::Cpu).unwrap();
        let mask = TokenMask::from_ids(3, vec![TokenId::new(0), TokenId::new(1)]);
        apply_mask(&logits, &mask).unwrap();
        let bits: Vec<u16> =
            logits.to_vec1::<f16>().unwrap().into_iter().map(f16::to_bits).collect();
        assert_eq!(bits, [0x7e01, 0x8000, 0xfc00]);
        let logits = Tensor::new(&[bf16::ONE, bf16::ONE], &Device::Cpu).unwrap();
        apply_mask(&logits, &TokenMask::from_ids(2, vec![TokenId::new(1)])).unwrap();
        assert_eq!(logits.to_vec1::<bf16>().unwrap(), [bf16::NEG_INFINITY, bf16::ONE]);
    }

    #[test]
    fn views_are_masked_where_they_lie() {
        let whole = Tensor::from_slice(&values(2 * 3 * 40), (2, 3, 40), &Device::Cpu).unwrap();
        let before = whole.copy().unwrap().reshape((6, 40)).unwrap();
        let mask = TokenMask::from_ids(40, vec![TokenId::new(7)]);
        // The last position of each sequence: rows that are not next to each other.
        apply_mask(&whole.narrow(1, 2, 1).unwrap(), &mask).unwrap();
        let after = lines_of(&whole.reshape((6, 40)).unwrap());
        for (i, (after, before)) in after.iter().zip(lines_of(&before)).enumerate() {
            let wanted = if i % 3 == 2 { expected(&mask, &before) } else { before };
            assert_eq!(*after, wanted, "row {i}");
        }
    }

    #[test]
    fn a_number_past_the_last_mask_leaves_no_legal_token() {
        let logits = Tensor::from_slice(&values(80), (2, 40), &Device::Cpu).unwrap();
        let words = mask_words(&masks(40), &Device::Cpu).unwrap();
        let index = Tensor::new(&[4_u32, 0], &Device::Cpu).unwrap();
        apply_indexed_masks(&logits, &words, &index).unwrap();
        let after = lines_of(&logits);
        assert!(after[0].iter().all(|&logit| logit == f32::NEG_INFINITY));
        assert_eq!(after[1], expected(&masks(40)[0], &values(80)[40..]));
    }

    #[test]
    fn what_does_not_fit_is_refused_and_left_as_it_is() {
        let mask = &masks(40)[0];
        let narrow = Tensor::from_slice(&values(78), (2, 39), &Device::Cpu).unwrap();
        let wide = Tensor::from_slice(&values(80), (2, 40), &Device::Cpu).unwrap();
        let before = (lines_of(&narrow), lines_of(&wide));
        let words = mask_words(&masks(65), &Device::Cpu).unwrap();
        let refused = [
            apply_mask(&narrow, mask),
            apply_masks(&wide, std::slice::from_ref(mask)),
            apply_masks(&wide, &[mask.clone(), masks(41)[0].clone()]),
            apply_mask(&wide.t().unwrap(), &masks(2)[0]),
            apply_mask_words(&wide, &words.narrow(0, 0, 2).unwrap()),
            apply_mask_words(&wide, &words.narrow(1, 0, 2).unwrap()),
            apply_mask_words(&wide, &mask_words(&masks(40)[..3], &Device::Cpu).unwrap()),
            apply_mask_words(&wide, &wide),
            apply_indexed_masks(&wide, &mask_words(&masks(40), &Device::Cpu).unwrap(), &wide),
            apply_indexed_masks(
                &wide,
                &mask_words(&masks(40), &Device::Cpu).unwrap(),
                &Tensor::new(&[0_u32], &Device::Cpu).unwrap(),
            ),
        ];
        for (i, result) in refused.iter().enumerate() {
            assert!(result.is_err(), "case {i}");
        }
        assert_eq!((lines_of(&narrow), lines_of(&wide)), before);
        let integers = Tensor::new(&[1_u32, 2], &Device::Cpu).unwrap();
        assert!(apply_mask(&integers, &masks(2)[0]).is_err());
        assert!(mask_words(&[], &Device::Cpu).is_err());
        assert!(mask_words(&[masks(40)[0].clone(), masks(41)[0].clone()], &Device::Cpu).is_err());
    }
}
