//! A GGUF model file in, a model out: the tokens so far in, the logits of the next out.
//!
//! The model remembers the sequences it was last asked for, as keys and values of its attention layers,
//! and is only run on what no memory has: not on a prompt that several share, nor on what was
//! there before a rollback, a fork or a refused draft.
//!
//! Cost of a step: one run of the model, for several sequences or several rows of one too. Memory: the
//! weights, and what [`CacheLimits`] says.

use std::fmt;
use std::path::Path;

use candle_core::Device;

use super::llama::Llama;
use super::model_file::{self, of_candle};
use super::sequences::{CacheLimits, Sequences};
use crate::error::{Error, ErrorKind};
use crate::ids::TokenId;
use crate::runtime::Model;

/// The context of a file that declares none or a longer one.
const MAX_CONTEXT: usize = 4_096;

/// A language model from a GGUF file, with the memory of several sequences.
///
/// Architectures: `llama` (Llama 1 to 3, Mistral, SmolLM2 and others that are converted to it).
/// Rotary scaling factors (`rope_freqs.weight`, Llama 3.1 and later) are not applied: such files run,
/// and lose quality on long texts.
///
/// As a [`Model`] it goes on from [`GgufModel::set_prompt`]. The logits of a history do not depend on what
/// is remembered or runs beside it, but for rounding where candle multiplies many rows otherwise than one
/// (it does not for Q8_0 on CPU). A clone shares the weights and remembers nothing yet.
pub struct GgufModel {
    sequences: Sequences<Llama>,
    context_length: usize,
    row_len: usize,
    /// The prompt, and behind it what was generated when the model was last asked.
    history: Vec<TokenId>,
    prompt: usize,
    /// The last row of [`GgufModel::run`].
    row: Vec<f32>,
}

impl GgufModel {
    /// Loads a model, and runs it on one token to see that its tensors fit together.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if the file cannot be read; [`ErrorKind::Model`] if it is no GGUF file, of
    /// another architecture, truncated, or lacks what the architecture needs.
    pub fn load(path: impl AsRef<Path>, device: &Device) -> Result<Self, Error> {
        let (content, mut reader) = model_file::open(path.as_ref())?;
        let declared = model_file::number(&content, "llama.context_length");
        let network =
            Llama::load(&content, &mut reader, device).map_err(|error| of_candle(&error))?;
        let mut sequences = Sequences::new(network, CacheLimits::default());
        let row = sequences.logits(&[&[TokenId::new(0)]], 1).map_err(|error| of_candle(&error))?;
        Ok(Self {
            sequences,
            context_length: declared.map_or(MAX_CONTEXT, |length| length.min(MAX_CONTEXT)),
            row_len: row.first().map_or(0, Vec::len),
            history: Vec::new(),
            prompt: 0,
            row: Vec::new(),
        })
    }

    /// Sets how much is remembered.
    #[must_use]
    pub const fn remembering(mut self, limits: CacheLimits) -> Self {
        self.sequences.limits = limits;
        self
    }

    /// Sets the tokens that come before what is generated.
    pub fn set_prompt(&mut self, prompt: Vec<TokenId>) {
        self.prompt = prompt.len();
        self.history = prompt;
    }

    /// Returns the prompt.
    #[must_use]
    pub fn prompt(&self) -> &[TokenId] {
        &self.history[..self.prompt]
    }

    /// Returns the number of tokens, prompt and output together, that the model can be run on.
    #[must_use]
    pub const fn context_length(&self) -> usize {
        self.context_length
    }

    /// Returns the number of logits in a row: that of the vocabulary, or more.
    #[must_use]
    pub const fn row_len(&self) -> usize {
        self.row_len
    }

    /// Returns the logits of the token after `tokens`, the whole history from its first token on; the
    /// prompt does not matter here.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Model`] if there are no tokens, more than
    /// [`context_length`](Self::context_length), or one that the model does not know.
    pub fn run(&mut self, tokens: &[TokenId]) -> Result<&[f32], Error> {
        self.row = self.rows(&[tokens], 1)?.pop().unwrap_or_default();
        Ok(&self.row)
    }

    /// Returns the logits after the last `rows` tokens of each history.
    fn rows(&mut self, histories: &[&[TokenId]], rows: usize) -> Result<Vec<Vec<f32>>, Error> {
        for history in histories {
            if history.len() < rows {
                let text = "the model needs one token at least to start from";
                return Err(Error::new(ErrorKind::Model, text));
            }
            if history.len() > self.context_length {
                let text = format!(
                    "{} tokens do not fit into the model's context of {}",
                    history.len(),
                    self.context_length
                );
                return Err(Error::new(ErrorKind::Model, text));
            }
        }
        self.sequences.logits(histories, rows).map_err(|error| of_candle(&error))
    }
}

impl Model for GgufModel {
    type Error = Error;

    /// Errors as [`GgufModel::run`].
    fn logits(&mut self, tokens: &[TokenId], row: &mut Vec<f32>) -> Result<(), Error> {
        let mut history = std::mem::take(&mut self.history);
        history.truncate(self.prompt);
        history.extend_from_slice(tokens);
        let found = self.rows(&[&history], 1);
        self.history = history;
        *row = found?.pop().unwrap_or_default();
        Ok(())
    }

    /// As many as are remembered.
    fn batch_size(&self) -> usize {
        self.sequences.limits.sequences.get()
    }

    /// One run for [`Model::batch_size`] sequences. Errors as [`GgufModel::run`].
    fn logits_each(
        &mut self,
        sequences: &[&[TokenId]],
        rows: &mut Vec<Vec<f32>>,
    ) -> Result<(), Error> {
        let histories: Vec<_> =
            sequences.iter().map(|tokens| [self.prompt(), tokens].concat()).collect();
        *rows = self.rows(&histories.iter().map(Vec::as_slice).collect::<Vec<_>>(), 1)?;
        Ok(())
    }

    /// One run. Errors as [`GgufModel::run`].
    fn logits_along(
        &mut self,
        tokens: &[TokenId],
        from: usize,
        rows: &mut Vec<Vec<f32>>,
    ) -> Result<(), Error> {
        let history = [self.prompt(), tokens].concat();
        *rows = self.rows(&[&history], tokens.len() + 1 - from)?;
        Ok(())
    }
}

impl Clone for GgufModel {
    fn clone(&self) -> Self {
        let Sequences { network, limits, .. } = &self.sequences;
        Self {
            sequences: Sequences::new(network.clone(), *limits),
            context_length: self.context_length,
            row_len: self.row_len,
            history: self.prompt().to_vec(),
            prompt: self.prompt,
            row: Vec::new(),
        }
    }
}

impl fmt::Debug for GgufModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GgufModel")
            .field("context_length", &self.context_length)
            .field("prompt", &self.prompt)
            .finish_non_exhaustive()
    }
}
