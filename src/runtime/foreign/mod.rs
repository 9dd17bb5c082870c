//! Decoding parameters of other projects: their JSON in, a [`Policy`] with the same meaning out.
//!
//! Each project has its own names, defaults and ways to say "off"; they are read as that project reads
//! them. A parameter that has no equal here is an error that names it, unless it has the value that
//! switches it off.

mod dialects;
mod params;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::error::Error;
use crate::ids::TokenId;
use crate::runtime::foreign::params::Params;
use crate::runtime::policy::Policy;

/// Whose parameters they are. Versions are those whose documentation was followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Dialect {
    /// A request of OpenAI's Chat Completions (Python package 1.109).
    ///
    /// Defaults: temperature 1, no filters. Penalties look at what was generated.
    OpenAi,
    /// Hugging Face's `generation_config.json` (Transformers 4.57).
    ///
    /// Greedy unless `do_sample`; then temperature 1 and top-k 50 by default. `top_k` 0 is off. The
    /// repetition penalty looks at the prompt too. `max_length` and `min_length` count the prompt.
    HuggingFace,
    /// vLLM's `SamplingParams` (0.11).
    ///
    /// Defaults: temperature 1, `max_tokens` 16. `top_k` 0 or −1 is off. A temperature below 1e-5 is
    /// greedy, one below 0.01 is 0.01. The bias comes before the penalties and min-p before top-k. The
    /// repetition penalty looks at the prompt too, the two others do not: both together have no equal.
    Vllm,
    /// The parameters of llama.cpp's server (b6700).
    ///
    /// Defaults: temperature 0.8, top-k 40, top-p 0.95, min-p 0.05. `top_k` 0 or less is off, a
    /// temperature of 0 or less is greedy. Penalties look at the last `repeat_last_n` (64) tokens, the
    /// prompt among them. The temperature comes last, unless `samplers` says otherwise. llama.cpp
    /// looks at the grammar after its filters and draws again if the token is illegal; here the mask
    /// comes first.
    LlamaCpp,
}

/// Parameters of another project, translated.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Imported {
    /// The policy.
    pub policy: Policy,
    /// Whether the penalties look at the prompt too
    /// ([`crate::ConstrainedSampler::with_penalised_prompt`]).
    pub penalise_prompt: bool,
    /// What ends the output in place of the tokenizer's end tokens; empty if nothing is named.
    pub end_tokens: Vec<TokenId>,
    /// What ends the output beside the end tokens.
    pub stop_tokens: Vec<TokenId>,
    /// How many outputs to return.
    pub candidates: usize,
    /// The beam search that is asked for.
    pub beam: Option<crate::runtime::Beam>,
}

impl Imported {
    /// Returns the tokens that end the output, ascending, where those of the tokenizer are `declared`: to
    /// compile the grammar with ([`crate::Compiler::ending_with`]). Like every end token they are legal
    /// where the output is complete, and nowhere else.
    #[must_use]
    pub fn ends(&self, declared: &[TokenId]) -> Vec<TokenId> {
        let own = if self.end_tokens.is_empty() { declared } else { &self.end_tokens };
        let mut ends = [own, &self.stop_tokens].concat();
        ends.sort_unstable();
        ends.dedup();
        ends
    }
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::HuggingFace, Self::Vllm, Self::LlamaCpp];

    /// Returns the stable snake-case name, which serde uses too.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "open_ai",
            Self::HuggingFace => "hugging_face",
            Self::Vllm => "vllm",
            Self::LlamaCpp => "llama_cpp",
        }
    }

    /// Translates a JSON object of parameters for a prompt of `prompt_tokens` tokens. What is `null`
    /// counts as absent.
    ///
    /// Members that say nothing about decoding (`model`, `messages`, `stream`, …) are passed over; the
    /// grammar of a request (`response_format`, `tools`) is the affair of the engine.
    ///
    /// ```
    /// use schemac::Policy;
    /// use schemac::runtime::Dialect;
    ///
    /// let request = serde_json::json!({"model": "m", "temperature": 0.7, "top_p": 0.9, "stop": "\n"});
    /// let imported = Dialect::OpenAi.read(&request, 0)?;
    /// assert_eq!(imported.policy, Policy::sample(0.7).top_p(0.9).stop("\n"));
    ///
    /// let error = Dialect::Vllm.read(&serde_json::json!({"bad_words": ["x"]}), 0).unwrap_err();
    /// assert!(error.message().contains("`bad_words`"));
    /// # Ok::<(), schemac::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::InvalidOption`] naming the parameter that cannot be translated, or is out
    /// of the range that its project allows.
    pub fn read(self, parameters: &Value, prompt_tokens: usize) -> Result<Imported, Error> {
        let mut params = Params::new(self, parameters, prompt_tokens)?;
        let imported = match self {
            Self::OpenAi => dialects::open_ai(&mut params),
            Self::HuggingFace => dialects::hugging_face(&mut params),
            Self::Vllm => dialects::vllm(&mut params),
            Self::LlamaCpp => dialects::llama_cpp(&mut params),
        }?;
        params.finish()?;
        Ok(imported)
    }
}
