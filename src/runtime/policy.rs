//! How to choose among the legal tokens: temperature, filters, penalties, budgets. Checked once, by
//! the sampler; the draws read it.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;

use crate::error::{Error, ErrorKind};
use crate::ids::TokenId;
use crate::runtime::order::{Order, Stage};

/// A decoding policy. The default is greedy decoding without penalties or budgets.
///
/// The order of the stages is part of its contract: check the logits → repetition, presence and
/// frequency penalties → logit bias → mask (and [`Policy::min_tokens`]) → temperature → top-k → top-p
/// → min-p → typical-p → draw. Each filter speaks of the distribution that the stage before left,
/// renormalised. [`Policy::order`] names another order; printing a policy prints what is in force.
///
/// ```
/// use schemac::runtime::Policy;
///
/// let policy = Policy::sample(0.7).top_p(0.9).seed(42);
/// assert!(policy.check(32_000).is_ok());
/// assert!(policy.top_p(1.5).check(32_000).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Policy {
    /// Divides the logits; finite, at least 0. At 0 (the default) the highest logit wins, the lowest
    /// id among equals, and nothing is drawn.
    pub temperature: f64,
    /// Keeps exactly this many tokens, the lower ids among equal logits; from 1 to the size of the
    /// vocabulary. `None` (the default) keeps all.
    pub top_k: Option<NonZeroUsize>,
    /// Keeps the most probable tokens until their probabilities sum to this, the one that crosses it
    /// too; above 0, at most 1. At 1 (the default) nothing is filtered.
    pub top_p: f64,
    /// Keeps the tokens with at least this part of the highest probability; from 0 (the default) to
    /// 1.
    pub min_p: f64,
    /// Keeps the tokens whose surprisal −ln *p* is nearest to the entropy, until their probabilities
    /// sum to this, the one that crosses it too; above 0, at most 1. At 1 (the default) nothing is
    /// filtered. It may remove the most probable token; at temperature 0 it is not asked.
    pub typical_p: f64,
    /// Divides positive and multiplies negative logits of tokens in the window, once for each
    /// distinct token; finite, above 0. Default 1.
    pub repetition_penalty: f64,
    /// Is subtracted from the logits of tokens in the window; finite. Default 0.
    pub presence_penalty: f64,
    /// Is subtracted from the logits of tokens in the window, once for each occurrence; finite.
    /// Default 0.
    pub frequency_penalty: f64,
    /// The number of latest tokens that the penalties look at. `None` (the default) is all of them.
    pub penalty_window: Option<NonZeroUsize>,
    /// Is added to the logits of these tokens; less than +∞. −∞ bans a token; in JSON, which has no
    /// such number, it is `null`.
    #[serde(with = "biases")]
    pub logit_bias: BTreeMap<TokenId, f64>,
    /// The number of tokens before which the output may not end, unless nothing else is legal or
    /// fits into [`Policy::max_tokens`]. Default 0.
    pub min_tokens: usize,
    /// The number of tokens, the end token counted, within which the output is complete. `None` (the
    /// default) sets no bound: a model that never ends goes on for ever.
    pub max_tokens: Option<NonZeroUsize>,
    /// Texts at which the output ends, also across tokens: it is what comes before the first of them,
    /// and need not be complete. None is empty.
    pub stop: Vec<String>,
    /// Phrases that do not occur in the output, also across tokens. None is empty. Where they leave no
    /// legal token, a step is an error; they are not looked ahead for.
    pub ban: Vec<String>,
    /// The key of the random numbers. Default 0.
    pub seed: u64,
    /// The order of the stages.
    pub order: Order,
}

impl Default for Policy {
    fn default() -> Self {
        Self::greedy()
    }
}

impl Policy {
    /// Returns the policy that takes the highest legal logit, the lowest id among equals.
    #[must_use]
    pub const fn greedy() -> Self {
        Self {
            temperature: 0.0,
            top_k: None,
            top_p: 1.0,
            min_p: 0.0,
            typical_p: 1.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            penalty_window: None,
            logit_bias: BTreeMap::new(),
            min_tokens: 0,
            max_tokens: None,
            stop: Vec::new(),
            ban: Vec::new(),
            seed: 0,
            order: Order::DEFAULT,
        }
    }

    /// Returns the policy that draws from the whole distribution at `temperature`.
    #[must_use]
    pub const fn sample(temperature: f64) -> Self {
        let mut policy = Self::greedy();
        policy.temperature = temperature;
        policy
    }

    /// Sets [`Policy::temperature`].
    #[must_use]
    pub const fn temperature(mut self, temperature: f64) -> Self {
        self.temperature = temperature;
        self
    }

    /// Sets [`Policy::top_k`].
    #[must_use]
    pub const fn top_k(mut self, k: NonZeroUsize) -> Self {
        self.top_k = Some(k);
        self
    }

    /// Sets [`Policy::top_p`].
    #[must_use]
    pub const fn top_p(mut self, p: f64) -> Self {
        self.top_p = p;
        self
    }

    /// Sets [`Policy::min_p`].
    #[must_use]
    pub const fn min_p(mut self, p: f64) -> Self {
        self.min_p = p;
        self
    }

    /// Sets [`Policy::typical_p`].
    #[must_use]
    pub const fn typical_p(mut self, p: f64) -> Self {
        self.typical_p = p;
        self
    }

    /// Sets [`Policy::repetition_penalty`].
    #[must_use]
    pub const fn repetition_penalty(mut self, factor: f64) -> Self {
        self.repetition_penalty = factor;
        self
    }

    /// Sets [`Policy::presence_penalty`].
    #[must_use]
    pub const fn presence_penalty(mut self, penalty: f64) -> Self {
        self.presence_penalty = penalty;
        self
    }

    /// Sets [`Policy::frequency_penalty`].
    #[must_use]
    pub const fn frequency_penalty(mut self, penalty: f64) -> Self {
        self.frequency_penalty = penalty;
        self
    }

    /// Sets [`Policy::penalty_window`].
    #[must_use]
    pub const fn penalty_window(mut self, tokens: NonZeroUsize) -> Self {
        self.penalty_window = Some(tokens);
        self
    }

    /// Sets the bias of one token in [`Policy::logit_bias`].
    #[must_use]
    pub fn bias(mut self, token: TokenId, bias: f64) -> Self {
        self.logit_bias.insert(token, bias);
        self
    }

    /// Sets [`Policy::min_tokens`].
    #[must_use]
    pub const fn min_tokens(mut self, tokens: usize) -> Self {
        self.min_tokens = tokens;
        self
    }

    /// Sets [`Policy::max_tokens`].
    #[must_use]
    pub const fn max_tokens(mut self, tokens: NonZeroUsize) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Adds a text to [`Policy::stop`].
    #[must_use]
    pub fn stop(mut self, text: impl Into<String>) -> Self {
        self.stop.push(text.into());
        self
    }

    /// Adds a phrase to [`Policy::ban`].
    #[must_use]
    pub fn ban(mut self, phrase: impl Into<String>) -> Self {
        self.ban.push(phrase.into());
        self
    }

    /// Sets [`Policy::seed`].
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets [`Policy::order`].
    #[must_use]
    pub const fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Returns whether `stage` changes anything under this policy.
    #[must_use]
    pub fn has(&self, stage: Stage) -> bool {
        match stage {
            Stage::Model | Stage::Mask => true,
            Stage::Penalties => self.has_penalties(),
            Stage::LogitBias => !self.logit_bias.is_empty(),
            Stage::Temperature => self.temperature != 1.0,
            Stage::TopK => self.top_k.is_some(),
            Stage::TopP => self.top_p < 1.0,
            Stage::MinP => self.min_p > 0.0,
            Stage::TypicalP => self.typical_p < 1.0,
        }
    }

    /// Returns whether a penalty looks at the tokens before.
    #[must_use]
    pub const fn has_penalties(&self) -> bool {
        self.repetition_penalty != 1.0
            || self.presence_penalty != 0.0
            || self.frequency_penalty != 0.0
    }

    /// Checks that every option is in its range, for a vocabulary of `vocabulary` ids.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidOption`] naming the first option that is not, and its range.
    pub fn check(&self, vocabulary: usize) -> Result<(), Error> {
        let require = |good: bool, option: &str, value: &dyn std::fmt::Display, range: &str| {
            let text = || format!("`{option}` is {value}; it must be {range}");
            if good { Ok(()) } else { Err(Error::new(ErrorKind::InvalidOption, text())) }
        };
        let number = |good: fn(f64) -> bool, option, value: f64, range| {
            require(value.is_finite() && good(value), option, &value, range)
        };
        number(|t| t >= 0.0, "temperature", self.temperature, "finite and at least 0")?;
        if let Some(k) = self.top_k {
            let range = format!("from 1 to {vocabulary}, the size of the vocabulary");
            require(k.get() <= vocabulary, "top_k", &k, &range)?;
        }
        number(|p| p > 0.0 && p <= 1.0, "top_p", self.top_p, "above 0 and at most 1")?;
        number(|p| (0.0..=1.0).contains(&p), "min_p", self.min_p, "from 0 to 1")?;
        number(|p| p > 0.0 && p <= 1.0, "typical_p", self.typical_p, "above 0 and at most 1")?;
        let factor = self.repetition_penalty;
        number(|r| r > 0.0, "repetition_penalty", factor, "finite and above 0")?;
        number(|_| true, "presence_penalty", self.presence_penalty, "finite")?;
        number(|_| true, "frequency_penalty", self.frequency_penalty, "finite")?;
        for (token, &bias) in &self.logit_bias {
            let range = format!("for ids below {vocabulary}, the size of the vocabulary");
            require(token.index() < vocabulary, "logit_bias", &token.get(), &range)?;
            require(bias < f64::INFINITY, "logit_bias", &bias, "a number below +inf")?;
        }
        for (option, texts) in [("stop", &self.stop), ("ban", &self.ban)] {
            let empty = texts.iter().any(String::is_empty);
            require(!empty, option, &"an empty text", "a text of at least one character")?;
        }
        if let Some(max) = self.max_tokens {
            let range = format!("below `max_tokens`, {max}, which counts the end token");
            require(self.min_tokens < max.get(), "min_tokens", &self.min_tokens, &range)?;
        }
        Ok(())
    }
}

/// Biases as data, where −∞ is `null`.
mod biases {
    use std::collections::BTreeMap;

    use serde::ser::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::ids::TokenId;

    type Biases = BTreeMap<TokenId, f64>;

    pub(super) fn serialize<S: Serializer>(biases: &Biases, to: S) -> Result<S::Ok, S::Error> {
        // JSON would write these as `null`, too.
        if let Some(bias) = biases.values().find(|bias| bias.is_nan() || **bias == f64::INFINITY) {
            return Err(S::Error::custom(format!("{bias} is no bias")));
        }
        let or_null = |&bias: &f64| (bias != f64::NEG_INFINITY).then_some(bias);
        to.collect_map(biases.iter().map(|(token, bias)| (token, or_null(bias))))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Biases, D::Error> {
        let biases = BTreeMap::<TokenId, Option<f64>>::deserialize(from)?;
        let or_ban = |bias: Option<f64>| bias.unwrap_or(f64::NEG_INFINITY);
        Ok(biases.into_iter().map(|(token, bias)| (token, or_ban(bias))).collect())
    }
}

/// One line: the options in force, and the order of the stages.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.temperature {
            0.0 => f.write_str("greedy")?,
            temperature => write!(f, "temperature {temperature}, seed {}", self.seed)?,
        }
        let mut number = |name: &str, value: f64, off: f64| {
            if value == off { Ok(()) } else { write!(f, ", {name} {value}") }
        };
        number("top_p", self.top_p, 1.0)?;
        number("min_p", self.min_p, 0.0)?;
        number("typical_p", self.typical_p, 1.0)?;
        number("repetition_penalty", self.repetition_penalty, 1.0)?;
        number("presence_penalty", self.presence_penalty, 0.0)?;
        number("frequency_penalty", self.frequency_penalty, 0.0)?;
        let count = |count: Option<NonZeroUsize>| count.map_or(0, NonZeroUsize::get);
        let mut number = |name: &str, value: usize| {
            if value == 0 { Ok(()) } else { write!(f, ", {name} {value}") }
        };
        number("top_k", count(self.top_k))?;
        number("penalty_window", count(self.penalty_window))?;
        number("biased tokens", self.logit_bias.len())?;
        number("min_tokens", self.min_tokens)?;
        number("max_tokens", count(self.max_tokens))?;
        number("stop texts", self.stop.len())?;
        number("banned phrases", self.ban.len())?;
        write!(f, "; order: {}", self.order)
    }
}
