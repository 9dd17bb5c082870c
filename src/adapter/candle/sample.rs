//! Tensors of logits into a sampler.

use std::fmt;

use candle_core::{CpuStorage, DType, Storage, Tensor};

use super::mask_op::apply_mask;
use crate::ids::TokenId;
use crate::runtime::ConstrainedSampler;
use crate::step_error::StepError;

/// Logits that are a tensor; needs the feature `candle`.
impl ConstrainedSampler {
    /// Chooses the next token and accepts it, as [`ConstrainedSampler::next_token`], from a tensor of
    /// one row: all dimensions but the last are 1. On the CPU, `f32` logits are read where they lie;
    /// others are copied.
    ///
    /// # Errors
    ///
    /// [`TensorError::Step`] as there; [`TensorError::Candle`] if the tensor is not one row of
    /// floating-point numbers or cannot be read.
    pub fn next_token_from(&mut self, logits: &Tensor) -> Result<TokenId, TensorError> {
        if logits.dims().last() != Some(&logits.elem_count()) {
            let text = format!("one row of logits expected, not {:?}", logits.shape());
            return Err(candle_core::Error::msg(text).into());
        }
        if !logits.dtype().is_float() {
            let text = format!("logits are floating-point numbers, not {:?}", logits.dtype());
            return Err(candle_core::Error::msg(text).into());
        }
        {
            let (storage, layout) = logits.storage_and_layout();
            if let (Storage::Cpu(CpuStorage::F32(all)), Some((start, end))) =
                (&*storage, layout.contiguous_offsets())
            {
                return Ok(self.next_token(&all[start..end])?);
            }
        }
        let row = logits.flatten_all()?.to_dtype(DType::F32)?.to_vec1::<f32>()?;
        Ok(self.next_token(&row)?)
    }

    /// Sets the logits of all illegal tokens to −∞, in place, in each row, for those who sample
    /// elsewhere; see [`apply_mask`].
    ///
    /// # Errors
    ///
    /// [`TensorError::Step`] as [`ConstrainedSampler::mask`]; [`TensorError::Candle`] as
    /// [`apply_mask`].
    pub fn apply_mask_to(&self, logits: &Tensor) -> Result<(), TensorError> {
        let mask = self.mask()?;
        Ok(apply_mask(logits, &mask)?)
    }
}

/// A step on a tensor failed.
#[derive(Debug)]
pub enum TensorError {
    /// The tensor cannot be used.
    Candle(candle_core::Error),
    /// The sampler refused.
    Step(StepError),
}

impl fmt::Display for TensorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Candle(error) => error.fmt(f),
            Self::Step(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TensorError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Candle(error) => Some(error),
            Self::Step(error) => Some(error),
        }
    }
}

impl From<candle_core::Error> for TensorError {
    fn from(error: candle_core::Error) -> Self {
        Self::Candle(error)
    }
}

impl From<StepError> for TensorError {
    fn from(error: StepError) -> Self {
        Self::Step(error)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use candle_core::Device;

    use super::*;
    use crate::engine::Compiler;
    use crate::runtime::Policy;
    use crate::vocab::Vocabulary;

    #[test]
    fn logits_are_rows_of_floating_point_numbers() {
        let vocabulary = Vocabulary::embedded();
        let automaton = Compiler::new(Arc::clone(&vocabulary)).compile_regex("[ab]").unwrap();
        let sampler = || ConstrainedSampler::new(Arc::clone(&automaton), Policy::greedy()).unwrap();
        let row: Vec<f32> = (0..vocabulary.len()).map(|i| (i % 7) as f32).collect();
        let tensor = Tensor::new(row.as_slice(), &Device::Cpu).unwrap();
        let token = sampler().next_token(&row).unwrap();
        for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
            let tensor = tensor.to_dtype(dtype).unwrap().unsqueeze(0).unwrap();
            assert_eq!(sampler().next_token_from(&tensor).unwrap(), token);
        }
        for dtype in [DType::U8, DType::U32, DType::I64] {
            let tensor = tensor.to_dtype(dtype).unwrap();
            let error = sampler().next_token_from(&tensor).unwrap_err();
            assert!(error.to_string().contains("floating-point"), "{error}");
        }
        let two = Tensor::stack(&[&tensor, &tensor], 0).unwrap();
        assert!(matches!(sampler().next_token_from(&two), Err(TensorError::Candle(_))));
    }
}
