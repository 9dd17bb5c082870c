//! What each stage did to a decision: the distributions from the model's own to the one that is drawn
//! from, and what grammar and filters took from it. For people who want to see; drawing needs none of
//! it.
//!
//! Everything here is computed by definition, with a sort of all tokens: some milliseconds for a large
//! vocabulary. All logits are read, also those of illegal tokens, so NaN and +∞ are errors anywhere.

use crate::ids::TokenId;
use crate::mask::TokenMask;
use crate::mask::select::{Buffers, Candidate, Legal};
use crate::mask::weight::Weights;
use crate::runtime::draw::{Choice, DrawError, Reason, Step};
use crate::runtime::filter;
use crate::runtime::order::Stage;
use crate::step_error::LogitsError;

/// The distribution of the next token after a stage.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct StageDistribution {
    /// The stage.
    pub stage: Stage,
    /// The tokens that are left with their probabilities, which sum to 1: by descending logit, then
    /// ascending id.
    pub probabilities: Vec<(TokenId, f64)>,
    /// The entropy in nats.
    pub entropy: f64,
}

/// Where a token stands in a distribution.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Standing {
    /// Its place, from 1, by descending probability, then ascending id. 0 if it is not there.
    pub rank: usize,
    /// Natural logarithm of its probability; −∞ if it is not there, which JSON writes as `null`.
    pub log_probability: f64,
}

/// What a stage left, in short.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct StageView {
    /// The stage.
    pub stage: Stage,
    /// The number of tokens that are left.
    pub tokens: usize,
    /// The entropy in nats.
    pub entropy: f64,
}

/// One decision, explained.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct StepView {
    /// The token that was chosen.
    pub token: TokenId,
    /// What made the choice.
    pub reason: Reason,
    /// Whether [`crate::Policy::min_tokens`] yielded.
    pub min_tokens_yielded: bool,
    /// The token in the distribution of the model.
    pub before: Standing,
    /// The token in the distribution after all stages.
    pub after: Standing,
    /// The probability, after penalties and bias, of the tokens that the mask removed.
    pub mass_removed: f64,
    /// Whether the token that was most probable before the mask was removed by it.
    pub argmax_masked: bool,
    /// The number of legal tokens with a finite logit.
    pub legal: usize,
    /// The number of tokens that could be drawn.
    pub nucleus: usize,
    /// All stages that changed something, the model and the mask always.
    pub stages: Vec<StageView>,
}

/// Sums over the decisions of a sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The number of decisions.
    pub steps: usize,
    /// Natural logarithm of the probability of the whole sequence under the model.
    pub log_probability_before: f64,
    /// The same under the distributions that were drawn from.
    pub log_probability_after: f64,
    /// The sum over the steps of the mass that the mask removed.
    pub mass_removed: f64,
    /// The steps at which the mask removed the most probable token.
    pub argmax_masked: usize,
    /// The steps at which one token was left after the mask.
    pub forced: usize,
    /// The steps at which the budget took tokens away.
    pub budget: usize,
    /// The steps at which [`crate::Policy::min_tokens`] yielded.
    pub min_tokens_yielded: usize,
}

impl Summary {
    /// Adds a decision.
    pub fn add(&mut self, view: &StepView) {
        self.steps += 1;
        self.log_probability_before += view.before.log_probability;
        self.log_probability_after += view.after.log_probability;
        self.mass_removed += view.mass_removed;
        self.argmax_masked += usize::from(view.argmax_masked);
        self.forced += usize::from(view.legal == 1);
        self.budget += usize::from(view.reason == Reason::Budget);
        self.min_tokens_yielded += usize::from(view.min_tokens_yielded);
    }
}

/// Returns the distribution of the model and those after each stage that changes something, the mask
/// included, in the order of the policy. At temperature 0 the last is the argmax alone.
///
/// The model's distribution is over the ids of the vocabulary: padding of the row is not in it.
///
/// # Errors
///
/// [`DrawError`].
pub fn stages(step: &Step<'_>) -> Result<Vec<StageDistribution>, DrawError> {
    let policy = step.policy;
    let mut buffers = Buffers::default();
    let mut found = Vec::new();
    let all = every_token(step.mask.width());
    let mut legal = Legal::new(&all, step.logits, &mut buffers)?;
    found.push(ranked(Stage::Model, &mut legal)?.0);
    for &stage in policy.order.before_mask() {
        if policy.has(stage) {
            step.adjust(stage, &mut legal)?;
            found.push(ranked(stage, &mut legal)?.0);
        }
    }
    let mut legal = Legal::new(step.mask, step.logits, &mut buffers)?;
    if legal.is_empty() {
        return Err(DrawError::NoLegalToken);
    }
    if step.may_not_end() {
        legal.remove(step.end_tokens);
    }
    for &stage in policy.order.before_mask() {
        step.adjust(stage, &mut legal)?;
    }
    let (masked, mut candidates, mut weights) = ranked(Stage::Mask, &mut legal)?;
    if candidates.is_empty() {
        return Err(DrawError::NoFiniteLegalLogit);
    }
    found.push(masked);
    if policy.temperature == 0.0 {
        candidates.truncate(1);
        found.push(distribution(Stage::Temperature, weights, &candidates));
        return Ok(found);
    }
    for &stage in policy.order.after_mask() {
        if policy.has(stage) {
            filter::apply(stage, policy, &mut weights, &mut candidates);
            found.push(distribution(stage, weights, &candidates));
        }
    }
    Ok(found)
}

/// Returns what the stages did to the decision `choice`.
///
/// # Errors
///
/// [`DrawError`].
pub fn view(step: &Step<'_>, choice: &Choice) -> Result<StepView, DrawError> {
    let stages = stages(step)?;
    let at = stages.iter().position(|stage| stage.stage == Stage::Mask).unwrap_or(0);
    let before_mask = &stages[at.saturating_sub(1)];
    let legal = &stages[at].probabilities;
    let is_left = token_set(step.mask.width(), legal);
    let removed = before_mask.probabilities.iter().filter(|(token, _)| !is_left.contains(*token));
    let first = before_mask.probabilities.first();
    let last = &stages[stages.len() - 1];
    Ok(StepView {
        token: choice.token,
        reason: choice.reason,
        min_tokens_yielded: choice.min_tokens_yielded,
        before: standing(&stages[0], choice.token),
        after: standing(last, choice.token),
        mass_removed: removed.map(|(_, p)| p).sum(),
        argmax_masked: first.is_some_and(|&(token, _)| !is_left.contains(token)),
        legal: legal.len(),
        nucleus: last.probabilities.iter().filter(|(_, p)| *p > 0.0).count(),
        stages: stages
            .iter()
            .map(|s| StageView {
                stage: s.stage,
                tokens: s.probabilities.len(),
                entropy: s.entropy,
            })
            .collect(),
    })
}

fn every_token(width: usize) -> TokenMask {
    TokenMask::from_words(width, vec![u64::MAX; width.div_ceil(64)])
}

fn token_set(width: usize, tokens: &[(TokenId, f64)]) -> TokenMask {
    TokenMask::from_ids(width, tokens.iter().map(|&(token, _)| token).collect())
}

fn standing(at: &StageDistribution, token: TokenId) -> Standing {
    match at.probabilities.iter().position(|&(own, _)| own == token) {
        Some(i) => Standing { rank: i + 1, log_probability: at.probabilities[i].1.ln() },
        None => Standing { rank: 0, log_probability: f64::NEG_INFINITY },
    }
}

/// Returns all tokens of `legal` with a finite logit at temperature 1.
fn ranked(
    stage: Stage,
    legal: &mut Legal<'_>,
) -> Result<(StageDistribution, Vec<Candidate>, Weights), LogitsError> {
    let max = legal.max()?;
    let mut candidates = Vec::new();
    legal.gather(f32::NEG_INFINITY, &mut candidates);
    candidates.sort_unstable();
    let weights = Weights::new(max, 1.0);
    Ok((distribution(stage, weights, &candidates), candidates, weights))
}

fn distribution(stage: Stage, weights: Weights, candidates: &[Candidate]) -> StageDistribution {
    let total = filter::sum(weights, candidates);
    StageDistribution {
        stage,
        probabilities: candidates
            .iter()
            .map(|c| (c.token(), weights.of(c.logit()) / total))
            .collect(),
        entropy: filter::entropy(weights, candidates, total),
    }
}
