//! One decision: logits, mask, policy and history in, a token out. No state is kept here; the
//! sampler calls it once for each token.
//!
//! The stages and their order are those of [`Policy`]. Rules at the edges:
//!
//! - The logits of legal tokens are checked (NaN and +∞ are errors, −∞ is allowed and never drawn);
//!   those of illegal tokens are never read. The caller's row is not changed.
//! - Temperature 0 is an argmax with the lowest id winning ties. For all others the highest logit is
//!   subtracted first, so that none overflows.
//! - The filters have their own rules (`filter.rs`).
//! - A draw is the inverse of the cumulative distribution at one uniform number: over ascending ids
//!   if nothing is filtered, else over descending logits.
//!
//! Cost: one pass over the legal logits (two where probabilities of all are needed), and what the
//! filters cost. Sparse masks touch only the blocks of their tokens.
//!
//! Source: Keskar et al. 2019, "CTRL" (repetition penalty, here with the sign rule for negative
//! logits).

use crate::ids::TokenId;
use crate::mask::TokenMask;
use crate::mask::select::{Buffers, Candidate, Legal};
use crate::mask::weight::Weights;
use crate::runtime::filter;
use crate::runtime::history::History;
use crate::runtime::order::Stage;
use crate::runtime::policy::Policy;
use crate::step_error::LogitsError;

/// What one decision is made from.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// One logit for each id of the vocabulary, and padding.
    pub logits: &'a [f32],
    /// The legal tokens.
    pub mask: &'a TokenMask,
    /// How to choose among them; checked before ([`Policy::check`]).
    pub policy: &'a Policy,
    /// The tokens before. It must count if the policy has penalties.
    pub history: &'a History,
    /// The end tokens, which [`Policy::min_tokens`] makes illegal.
    pub end_tokens: &'a [TokenId],
}

/// A token that was chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Choice {
    /// The token.
    pub token: TokenId,
    /// Natural logarithm of its probability in the distribution that it was drawn from, after all
    /// stages: 0 where there was no other choice.
    pub log_probability: f64,
    /// What made the choice.
    pub reason: Reason,
    /// Whether only end tokens were legal before [`Policy::min_tokens`], which then yields.
    pub min_tokens_yielded: bool,
}

impl Choice {
    /// Returns the choice of a token that was drawn.
    pub(super) const fn drawn(token: TokenId, log_probability: f64) -> Self {
        Self { token, log_probability, reason: Reason::Drawn, min_tokens_yielded: false }
    }
}

/// What made a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// The highest logit, at temperature 0.
    Highest,
    /// A random number.
    Drawn,
    /// The budget: some legal tokens would have left too few. Either this was chosen from the others, or
    /// it is on the shortest known way to a complete output.
    Budget,
}

/// No token can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DrawError {
    /// The row of logits cannot be used.
    Logits(LogitsError),
    /// No token is legal.
    NoLegalToken,
    /// Every legal token has a logit of −∞, from the row or after bias.
    NoFiniteLegalLogit,
}

impl From<LogitsError> for DrawError {
    fn from(error: LogitsError) -> Self {
        Self::Logits(error)
    }
}

impl std::fmt::Display for DrawError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Logits(error) => error.fmt(f),
            Self::NoLegalToken => f.write_str("no token is legal"),
            Self::NoFiniteLegalLogit => f.write_str("every legal token has a logit of -inf"),
        }
    }
}

impl std::error::Error for DrawError {}

/// Buffers of the decisions, to be used again. A clone is empty.
#[derive(Debug, Default)]
pub struct Scratch {
    buffers: Buffers,
    candidates: Vec<Candidate>,
}

impl Clone for Scratch {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Chooses a token. `uniform` returns a number in 0 (inclusive) to 1 (exclusive); it is asked once,
/// and not at temperature 0.
///
/// # Errors
///
/// [`DrawError`].
pub fn draw(
    step: &Step<'_>,
    scratch: &mut Scratch,
    uniform: impl FnOnce() -> f64,
) -> Result<Choice, DrawError> {
    let choice = |token, log_probability, reason, min_tokens_yielded| Choice {
        token,
        log_probability,
        reason,
        min_tokens_yielded,
    };
    if step.policy.temperature == 0.0 && step.reads_logits_as_they_are() {
        return match step.mask.argmax(step.logits)? {
            Some((token, _)) => Ok(choice(token, 0.0, Reason::Highest, false)),
            None if step.mask.is_empty() => Err(DrawError::NoLegalToken),
            None => Err(DrawError::NoFiniteLegalLogit),
        };
    }
    let Prepared { mut legal, max, min_tokens_yielded } = prepare(step, &mut scratch.buffers)?;
    if step.policy.temperature == 0.0 {
        let token = legal.first_with(max).ok_or(DrawError::NoFiniteLegalLogit)?;
        return Ok(choice(token, 0.0, Reason::Highest, min_tokens_yielded));
    }
    let (drawn, total, weights) = if filter::is_needed(step.policy) {
        let candidates = &mut scratch.candidates;
        let (weights, total) = filter::filter(step.policy, &mut legal, max, candidates);
        (pick(candidates, uniform() * total, weights), total, weights)
    } else {
        let weights = Weights::new(max, step.policy.temperature);
        let total = legal.sum(weights);
        (legal.at(uniform() * total, weights), total, weights)
    };
    // The highest logit weighs 1, so there is one.
    let (token, logit) = drawn.ok_or(DrawError::NoFiniteLegalLogit)?;
    let log_probability = weights.log_of(logit) - total.ln();
    Ok(choice(token, log_probability, Reason::Drawn, min_tokens_yielded))
}

/// Returns the distribution that [`draw`] draws from: the tokens that passed all stages with their
/// probabilities, by descending logit, then ascending id.
///
/// # Errors
///
/// [`DrawError`].
pub fn distribution(
    step: &Step<'_>,
    scratch: &mut Scratch,
) -> Result<Vec<(TokenId, f64)>, DrawError> {
    let Prepared { mut legal, max, .. } = prepare(step, &mut scratch.buffers)?;
    if step.policy.temperature == 0.0 {
        return Ok(legal.first_with(max).map(|token| (token, 1.0)).into_iter().collect());
    }
    let candidates = &mut scratch.candidates;
    let (weights, total) = filter::filter(step.policy, &mut legal, max, candidates);
    let probability = |c: &Candidate| (c.token(), weights.of(c.logit()) / total);
    Ok(candidates.iter().map(probability).collect())
}

/// Returns what [`distribution`] does, by ascending id. Sorts only what filters leave.
pub(super) fn probabilities(
    step: &Step<'_>,
    scratch: &mut Scratch,
) -> Result<Vec<(TokenId, f64)>, DrawError> {
    if step.policy.temperature == 0.0 || filter::is_needed(step.policy) {
        let mut found = distribution(step, scratch)?;
        found.sort_unstable_by_key(|&(token, _)| token);
        return Ok(found);
    }
    let Prepared { legal, max, .. } = prepare(step, &mut scratch.buffers)?;
    let weights = Weights::new(max, step.policy.temperature);
    let candidates = &mut scratch.candidates;
    legal.gather(f32::NEG_INFINITY, candidates);
    let total = filter::sum(weights, candidates);
    Ok(candidates.iter().map(|c| (c.token(), weights.of(c.logit()) / total)).collect())
}

/// Returns the natural logarithm of the probability of `token` in the whole distribution of the
/// model, before any stage, at temperature 1. Costs a pass over all logits.
///
/// # Errors
///
/// [`LogitsError`] if a logit of the row is NaN or +∞, or `token` is outside it.
pub fn log_softmax(logits: &[f32], token: TokenId) -> Result<f64, LogitsError> {
    let wrong = |(index, &value): (usize, &f32)| LogitsError::of(value, index);
    if let Some(error) = logits.iter().enumerate().find_map(wrong) {
        return Err(error);
    }
    let (len, width) = (logits.len(), token.index() + 1);
    let logit = *logits.get(token.index()).ok_or(LogitsError::TooNarrow { len, width })?;
    let max = logits.iter().fold(f32::NEG_INFINITY, |max, &logit| max.max(logit));
    if logit == f32::NEG_INFINITY {
        return Ok(f64::NEG_INFINITY);
    }
    let weights = Weights::new(max, 1.0);
    let total: f64 = logits.iter().map(|&logit| weights.of(logit)).sum();
    Ok(weights.log_of(logit) - total.ln())
}

/// Calls `visit` with the legal tokens and the natural logarithms of their probabilities in the
/// distribution of the model after penalties and bias, at temperature 1 and not renormalised under the
/// mask, by descending probability, then ascending id, for as long as it returns true.
///
/// All logits of the vocabulary are read. Costs two passes over them, and a sort of what is visited.
///
/// # Errors
///
/// [`DrawError`].
pub(super) fn visit_ranked(
    step: &Step<'_>,
    scratch: &mut Scratch,
    mut visit: impl FnMut(TokenId, f64) -> bool,
) -> Result<(), DrawError> {
    let width = step.mask.width();
    let all = TokenMask::from_words(width, vec![u64::MAX; width.div_ceil(64)]);
    let whole = Step { mask: &all, end_tokens: &[], ..*step };
    let Prepared { mut legal, max, .. } = prepare(&whole, &mut scratch.buffers)?;
    let weights = Weights::new(max, 1.0);
    let total = legal.sum(weights).ln();
    let Prepared { legal, .. } = prepare(step, &mut scratch.buffers)?;
    let candidates = &mut scratch.candidates;
    legal.gather(f32::NEG_INFINITY, candidates);
    filter::cut(candidates, |c| visit(c.token(), weights.log_of(c.logit()) - total));
    Ok(())
}

/// The legal logits after penalties and bias.
struct Prepared<'a> {
    legal: Legal<'a>,
    /// The highest of them; finite.
    max: f32,
    min_tokens_yielded: bool,
}

impl Step<'_> {
    /// Returns whether no stage before the temperature changes a logit or the mask.
    fn reads_logits_as_they_are(&self) -> bool {
        !self.policy.has_penalties() && self.policy.logit_bias.is_empty() && !self.may_not_end()
    }

    /// Returns whether [`Policy::min_tokens`] is not yet reached.
    pub(super) fn may_not_end(&self) -> bool {
        self.history.generated().len() < self.policy.min_tokens
    }

    /// Changes the logits as a stage before the mask does.
    pub(super) fn adjust(&self, stage: Stage, legal: &mut Legal<'_>) -> Result<(), LogitsError> {
        match stage {
            Stage::Penalties if self.policy.has_penalties() => {
                for (token, count) in self.history.counts() {
                    legal.adjust(token, |logit| penalised(self.policy, logit, count))?;
                }
            }
            Stage::LogitBias => {
                for (&token, bias) in &self.policy.logit_bias {
                    legal.adjust(token, |logit| logit + bias)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// The stages up to the mask.
fn prepare<'a>(step: &Step<'a>, buffers: &'a mut Buffers) -> Result<Prepared<'a>, DrawError> {
    let policy = step.policy;
    let mut legal = Legal::new(step.mask, step.logits, buffers)?;
    if legal.is_empty() {
        return Err(DrawError::NoLegalToken);
    }
    let min_tokens_yielded = step.may_not_end() && !legal.remove(step.end_tokens);
    for &stage in policy.order.before_mask() {
        step.adjust(stage, &mut legal)?;
    }
    let max = legal.max()?;
    if max == f32::NEG_INFINITY {
        return Err(DrawError::NoFiniteLegalLogit);
    }
    Ok(Prepared { legal, max, min_tokens_yielded })
}

/// Returns the logit of a token that stands `count` times in the window.
fn penalised(policy: &Policy, logit: f64, count: u32) -> f64 {
    let factor = policy.repetition_penalty;
    let repeated = if logit > 0.0 { logit / factor } else { logit * factor };
    repeated - policy.presence_penalty - policy.frequency_penalty * f64::from(count)
}

/// Returns the first candidate up to which the weights sum to more than `target`, and its logit; the
/// last one with a weight if rounding leaves none.
fn pick(candidates: &[Candidate], target: f64, weights: Weights) -> Option<(TokenId, f32)> {
    let mut reached = 0.0;
    let mut last = None;
    for candidate in candidates {
        let weight = weights.of(candidate.logit());
        if weight > 0.0 {
            last = Some((candidate.token(), candidate.logit()));
            reached += weight;
            if reached > target {
                break;
            }
        }
    }
    last
}
