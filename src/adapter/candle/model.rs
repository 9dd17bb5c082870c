//! A GGUF model file in, a model out: the tokens so far in, the logits of the next out.
//!
//! The model remembers the tokens it was last given, as keys and values of its attention layers, and
//! is only run on what is new. A history that is not a continuation (a rollback, another sample of
//! the same prompt) goes on from the prompt, if that is still its beginning, else from the start.
//!
//! Cost of a step: one run of the model. Memory: the weights, and keys and values twice at most.

use std::fmt;
use std::path::Path;

use candle_core::{DType, Device, Tensor};
use candle_transformers::models::quantized_llama::{MAX_SEQ_LEN, ModelWeights};

use super::model_file::{self, of_candle};
use crate::error::{Error, ErrorKind};
use crate::ids::TokenId;
use crate::runtime::Model;

/// Tokens of a prompt that are run at a time. Attention needs memory for this number times the
/// tokens before; larger runs are hardly faster.
const PREFILL: usize = 256;

/// A language model from a GGUF file, with the memory of one sequence.
///
/// Architectures: `llama` (Llama 1 to 3, Mistral, SmolLM2 and others that are converted to it).
/// Rotary scaling factors (`rope_freqs.weight`, Llama 3.1 and later) are not applied by candle's
/// model: such files run, and lose quality on long texts.
///
/// As a [`Model`] it goes on from [`GgufModel::set_prompt`]. A clone shares the weights.
#[derive(Clone)]
pub struct GgufModel {
    cached: Cached<Llama>,
    context_length: usize,
    row_len: usize,
    /// The prompt, and behind it what was generated when the model was last asked.
    history: Vec<TokenId>,
    prompt: usize,
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
        let weights = ModelWeights::from_gguf(content, &mut reader, device)
            .map_err(|error| of_candle(&error))?;
        let network = Llama { weights, device: device.clone() };
        let row_len = network.clone().run(&[0], 0).map_err(|error| of_candle(&error))?.len();
        Ok(Self {
            cached: Cached::new(network),
            context_length: declared.map_or(MAX_SEQ_LEN, |length| length.min(MAX_SEQ_LEN)),
            row_len,
            history: Vec::new(),
            prompt: 0,
        })
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
        if tokens.is_empty() {
            let text = "the model needs one token at least to start from";
            return Err(Error::new(ErrorKind::Model, text));
        }
        if tokens.len() > self.context_length {
            let text = format!(
                "{} tokens do not fit into the model's context of {}",
                tokens.len(),
                self.context_length
            );
            return Err(Error::new(ErrorKind::Model, text));
        }
        self.cached.logits(tokens).map_err(|error| of_candle(&error))
    }
}

impl Model for GgufModel {
    type Error = Error;

    /// Errors as [`GgufModel::run`].
    fn logits(&mut self, tokens: &[TokenId], row: &mut Vec<f32>) -> Result<(), Error> {
        let mut history = std::mem::take(&mut self.history);
        history.truncate(self.prompt);
        history.extend_from_slice(tokens);
        let ran = self.run(&history).map(|logits| {
            row.clear();
            row.extend_from_slice(logits);
        });
        self.history = history;
        ran
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

/// A model whose clones share the weights and have a memory of their own. A new one remembers
/// nothing.
trait Network: Clone {
    /// Runs on `tokens`, which follow on the `before` tokens remembered, and returns the logits after
    /// the last of them.
    fn run(&mut self, tokens: &[u32], before: usize) -> candle_core::Result<Vec<f32>>;
}

#[derive(Clone)]
struct Llama {
    weights: ModelWeights,
    device: Device,
}

impl Network for Llama {
    fn run(&mut self, tokens: &[u32], before: usize) -> candle_core::Result<Vec<f32>> {
        let input = Tensor::new(tokens, &self.device)?.unsqueeze(0)?;
        let logits = self.weights.forward(&input, before)?;
        logits.flatten_all()?.to_dtype(DType::F32)?.to_vec1()
    }
}

/// A network, and the histories that it need not be run on again.
#[derive(Clone)]
struct Cached<N> {
    /// Remembers nothing.
    fresh: N,
    /// After the first tokens that were run together: the prompt.
    prompt: Remembered<N>,
    /// After the last tokens.
    now: Remembered<N>,
}

/// A network after some tokens.
#[derive(Clone)]
struct Remembered<N> {
    network: N,
    tokens: Vec<TokenId>,
    /// The logits after the last token; empty if there are no tokens.
    logits: Vec<f32>,
}

impl<N: Network> Cached<N> {
    fn new(network: N) -> Self {
        let start = Remembered::start(&network);
        Self { fresh: network, prompt: start.clone(), now: start }
    }

    fn logits(&mut self, tokens: &[TokenId]) -> candle_core::Result<&[f32]> {
        if !tokens.starts_with(&self.now.tokens) {
            self.now = if tokens.starts_with(&self.prompt.tokens) {
                self.prompt.clone()
            } else {
                Remembered::start(&self.fresh)
            };
        }
        let first = self.now.tokens.is_empty();
        if let Err(error) = self.now.extend(tokens) {
            // The layers may disagree on what they remember.
            self.now = Remembered::start(&self.fresh);
            return Err(error);
        }
        if first {
            self.prompt = self.now.clone();
        }
        Ok(&self.now.logits)
    }
}

impl<N: Network> Remembered<N> {
    fn start(fresh: &N) -> Self {
        Self { network: fresh.clone(), tokens: Vec::new(), logits: Vec::new() }
    }

    /// Runs the network on what `tokens` has more than is remembered.
    fn extend(&mut self, tokens: &[TokenId]) -> candle_core::Result<()> {
        for part in tokens[self.tokens.len()..].chunks(PREFILL) {
            let ids: Vec<u32> = part.iter().map(|token| token.get()).collect();
            self.logits = self.network.run(&ids, self.tokens.len())?;
            self.tokens.extend_from_slice(part);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    /// Remembers its tokens; the logits are its history. Counts what it is run on by all clones.
    #[derive(Clone, Default)]
    struct Recorder {
        memory: Vec<u32>,
        ran: Rc<Cell<usize>>,
    }

    impl Network for Recorder {
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        fn run(&mut self, tokens: &[u32], before: usize) -> candle_core::Result<Vec<f32>> {
            assert_eq!(before, self.memory.len(), "the position is that of the memory");
            assert!(tokens.len() <= PREFILL);
            self.ran.set(self.ran.get() + tokens.len());
            self.memory.extend_from_slice(tokens);
            if tokens.contains(&u32::MAX) {
                candle_core::bail!("no such token");
            }
            Ok(self.memory.iter().map(|&token| token as f32).collect())
        }
    }

    fn ids(tokens: &[u32]) -> Vec<TokenId> {
        tokens.iter().copied().map(TokenId::new).collect()
    }

    /// Checks the answers to a series of histories, and how many tokens each was run on.
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn check(series: &[(&[u32], usize)]) {
        let recorder = Recorder::default();
        let ran = Rc::clone(&recorder.ran);
        let mut cached = Cached::new(recorder);
        for (i, &(tokens, runs)) in series.iter().enumerate() {
            ran.set(0);
            let wanted: Vec<f32> = tokens.iter().map(|&token| token as f32).collect();
            assert_eq!(cached.logits(&ids(tokens)).unwrap(), wanted, "history {i}");
            assert_eq!(ran.get(), runs, "history {i}");
        }
    }

    #[test]
    fn a_continuation_runs_on_what_is_new() {
        check(&[(&[1, 2, 3], 3), (&[1, 2, 3, 4], 1), (&[1, 2, 3, 4], 0), (&[1, 2, 3, 4, 5, 6], 2)]);
    }

    #[test]
    fn a_rollback_goes_on_from_the_prompt() {
        check(&[(&[1, 2, 3], 3), (&[1, 2, 3, 4, 5], 2), (&[1, 2, 3, 4, 9], 2), (&[1, 2, 3], 0)]);
        check(&[(&[1, 2, 3], 3), (&[1, 2, 3, 4], 1), (&[1, 2, 3, 7], 1)]);
    }

    #[test]
    fn another_prompt_starts_anew_and_is_the_prompt_from_then_on() {
        check(&[(&[1, 2, 3], 3), (&[1, 2], 2), (&[1, 2, 3], 1), (&[1, 2, 4], 1)]);
        check(&[(&[1, 2, 3], 3), (&[5], 1), (&[5, 6], 1), (&[5, 7], 1), (&[1, 2, 3], 3)]);
    }

    #[test]
    fn long_prompts_run_in_parts() {
        let long: Vec<u32> = (0..1_000).collect();
        check(&[(&long, 1_000), (&long[..999], 999)]);
    }

    #[test]
    fn a_failed_run_leaves_nothing_half_remembered() {
        let mut cached = Cached::new(Recorder::default());
        cached.logits(&ids(&[1, 2])).unwrap();
        assert!(cached.logits(&ids(&[1, 2, u32::MAX])).is_err());
        assert_eq!(cached.logits(&ids(&[1, 2, 3])).unwrap(), [1.0, 2.0, 3.0]);
    }
}
