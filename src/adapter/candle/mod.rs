//! The engine with candle: masks on tensors of logits, and models that run on them.
//!
//! The public items follow candle's own versions: a new minor version of candle is a breaking change
//! of this module.
//!
//! On a busy machine set `RAYON_NUM_THREADS=1` before the first tensor operation: candle's threads
//! spin while they wait for each other, and where there are fewer idle cores than threads that costs
//! several times what it gains.

mod chat;
#[cfg(feature = "cuda")]
mod cuda;
mod llama;
mod mask_op;
mod mask_table;
mod model;
mod model_file;
mod prompt;
mod requantize;
mod sample;
mod sequences;
#[cfg(test)]
mod tests;

pub use self::chat::{ChatTemplate, Message};
pub use self::mask_op::{
    apply_indexed_masks, apply_mask, apply_mask_words, apply_masks, mask_words,
};
pub use self::mask_table::MaskTable;
pub use self::model::GgufModel;
pub use self::prompt::PromptEncoder;
pub use self::requantize::requantize;
pub use self::sample::TensorError;
pub use self::sequences::CacheLimits;
