//! The state of a sequence as data, so that a request that was interrupted goes on where it was, also
//! in another process.
//!
//! A sampler is a function of its grammar, its policy and the tokens so far: that is all there is to
//! store. Reading it back accepts the tokens again, which costs some microseconds each.

use std::sync::Arc;

use crate::error::{Error, ErrorKind};
use crate::ids::TokenId;
use crate::runtime::policy::Policy;
use crate::runtime::sampler::ConstrainedSampler;
use crate::step_error::StepError;
use crate::token::TokenAutomaton;
use crate::vocab::Fingerprint;

/// The version that is written and read.
const VERSION: u32 = 1;

/// The state of a sequence. Serialise it as you like.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SamplerState {
    /// The version of this structure and of the random numbers.
    version: u32,
    /// The vocabulary that the tokens are of.
    vocabulary: Fingerprint,
    policy: Policy,
    /// The tokens before the sequence that penalties look at.
    prompt: Vec<TokenId>,
    /// The number of the first random number.
    first_step: usize,
    tokens: Vec<TokenId>,
}

impl ConstrainedSampler {
    /// Returns the state.
    #[must_use]
    pub fn state(&self) -> SamplerState {
        SamplerState {
            version: VERSION,
            vocabulary: self.matcher().automaton().vocabulary().fingerprint(),
            policy: self.policy().clone(),
            prompt: self.penalised_prompt().to_vec(),
            first_step: self.first_step(),
            tokens: self.tokens().to_vec(),
        }
    }

    /// Returns the sampler of a state under the grammar that it was taken under. It goes on as the
    /// first would have.
    ///
    /// # Errors
    ///
    /// [`StepError::InvalidPolicy`] if the state is of another version or vocabulary; otherwise as
    /// [`ConstrainedSampler::new`] and, for a state of another grammar,
    /// [`ConstrainedSampler::accept`].
    pub fn resume(automaton: Arc<TokenAutomaton>, state: SamplerState) -> Result<Self, StepError> {
        let wrong =
            |text: String| StepError::InvalidPolicy(Error::new(ErrorKind::InvalidOption, text));
        if state.version != VERSION {
            let text = format!("the state is of version {}; this is {VERSION}", state.version);
            return Err(wrong(text));
        }
        let own = automaton.vocabulary().fingerprint();
        if state.vocabulary != own {
            let text = format!("the state is of vocabulary {}; this is {own}", state.vocabulary);
            return Err(wrong(text));
        }
        let mut sampler = Self::new(automaton, state.policy)?
            .with_penalised_prompt(&state.prompt)
            .at_step(state.first_step);
        sampler.replay(&state.tokens)?;
        Ok(sampler)
    }

    /// Accepts tokens, as many as are legal; on a failure those before it stay accepted.
    ///
    /// # Errors
    ///
    /// As [`ConstrainedSampler::accept`].
    pub fn replay(&mut self, tokens: &[TokenId]) -> Result<(), StepError> {
        tokens.iter().try_for_each(|&token| self.accept(token))
    }
}
