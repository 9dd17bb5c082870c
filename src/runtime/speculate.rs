//! Speculative decoding under a grammar: a sampler, a model and a cheaper one in; several tokens at a
//! time out, distributed exactly as if the model had been asked for each.
//!
//! The draft model proposes tokens, the target model judges them all at once. Both distributions are
//! those of the sampler: masked by the same grammar, with the same policy. A proposed token *x* is
//! accepted with probability min(1, *p*(*x*) / *q*(*x*)), where *p* is the target's and *q* the draft's
//! distribution; in place of a refused one, a token is drawn from max(*p* − *q*, 0), normalised. Drawing
//! from *p* there would count what the draft favours twice.
//!
//! At temperature 0 both are certain: a token is accepted exactly if it is the target's highest, which
//! otherwise takes its place.
//!
//! Source: Leviathan, Kalman, Matias 2023, "Fast Inference from Transformers via Speculative
//! Decoding".

use std::fmt;
use std::num::NonZeroUsize;

use crate::ids::TokenId;
use crate::runtime::draw::Choice;
use crate::runtime::model::Model;
use crate::runtime::random::{Purpose, uniform_for};
use crate::runtime::sampler::{ConstrainedSampler, WrongRows};
use crate::step_error::StepError;

/// What one round of speculation did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Round {
    /// The number of tokens that the draft proposed.
    pub drafted: usize,
    /// How many of them were accepted.
    pub accepted: usize,
    /// How many tokens the sequence gained: those accepted, and one of the target's own unless the
    /// sequence ended before.
    pub gained: usize,
}

/// Tokens with their probabilities, by ascending id.
type Distribution = Vec<(TokenId, f64)>;

/// A token with the distribution that it was drawn from.
struct Proposal {
    token: TokenId,
    distribution: Distribution,
}

/// Adds tokens to the sequence of `sampler` in one round: up to `drafts` proposals of `draft`, judged
/// by `target` in one call of [`Model::logits_along`].
///
/// The tokens are distributed as those of [`ConstrainedSampler::next_token`] on the rows of `target`,
/// but are not the same for the same seed. A budget of tokens holds. The draft ends where its output
/// ends, and where no token can follow: all that it finds legal has a logit of −∞, or is banned.
///
/// # Errors
///
/// As [`ConstrainedSampler::next_token`], on the first token of the round: where a later one fails, the
/// round ends before it, and the next round returns the error. Either model's own error leaves the
/// sequence as it was, and so does [`SpeculateError::Rows`]. A round without an error gains one token
/// at least.
pub fn speculate<T: Model, D: Model>(
    sampler: &mut ConstrainedSampler,
    target: &mut T,
    draft: &mut D,
    drafts: NonZeroUsize,
) -> Result<Round, SpeculateError<T::Error, D::Error>> {
    if sampler.is_finished() {
        return Err(StepError::Finished.into());
    }
    let proposals = propose(sampler, draft, drafts.get())?;
    let mut tokens = sampler.tokens().to_vec();
    let from = tokens.len();
    tokens.extend(proposals.iter().map(|proposal| proposal.token));
    let mut rows = Vec::new();
    // After an end token nothing is judged.
    let judged = tokens.len() - usize::from(ends(sampler, proposals.last()));
    target.logits_along(&tokens[..judged], from, &mut rows).map_err(SpeculateError::Target)?;
    WrongRows::check(judged + 1 - from, &rows).map_err(SpeculateError::Rows)?;
    let mut round = Round { drafted: proposals.len(), accepted: 0, gained: 0 };
    for (row, proposal) in rows.iter().zip(proposals.iter().map(Some).chain([None])) {
        match judge(sampler, row, proposal) {
            Ok(accepted) => {
                round.gained += 1;
                round.accepted += usize::from(accepted);
                if !accepted || sampler.is_finished() {
                    break;
                }
            }
            Err(error) if round.gained == 0 => return Err(error.into()),
            Err(_) => break,
        }
    }
    Ok(round)
}

fn ends(sampler: &ConstrainedSampler, last: Option<&Proposal>) -> bool {
    last.is_some_and(|last| sampler.matcher().automaton().vocabulary().is_end(last.token))
}

/// Returns the tokens that the draft model proposes.
fn propose<T, D: Model>(
    sampler: &ConstrainedSampler,
    draft: &mut D,
    most: usize,
) -> Result<Vec<Proposal>, SpeculateError<T, D::Error>> {
    let mut ahead = sampler.fork();
    let most = sampler.tokens_left().map_or(most, |left| most.min(left));
    let mut proposals = Vec::new();
    let mut row = Vec::new();
    while proposals.len() < most && !ahead.is_finished() {
        draft.logits(ahead.tokens(), &mut row).map_err(SpeculateError::Draft)?;
        let distribution = match ahead.probabilities(&row) {
            Ok(distribution) => distribution,
            Err(error) if error.is_dead_end() => break,
            Err(error) => return Err(error.into()),
        };
        let u = uniform_for(Purpose::Draft, sampler.policy().seed, ahead.random_step());
        let Some(token) = pick(&distribution, u) else { break };
        ahead.accept(token)?;
        proposals.push(Proposal { token, distribution });
    }
    Ok(proposals)
}

/// Adds one token to the sequence: the proposed one, or another in its place. Returns whether the
/// sequence went on as proposed.
fn judge(
    sampler: &mut ConstrainedSampler,
    row: &[f32],
    proposal: Option<&Proposal>,
) -> Result<bool, StepError> {
    let Some(Proposal { token: proposed, distribution: q }) = proposal else {
        sampler.next_token(row)?;
        return Ok(false);
    };
    let p = sampler.probabilities(row)?;
    let (seed, step) = (sampler.policy().seed, sampler.random_step());
    let u = uniform_for(Purpose::Accept, seed, step);
    let token = if accepts(u, of(&p, *proposed), of(q, *proposed)) {
        *proposed
    } else {
        let u = uniform_for(Purpose::Residual, seed, step);
        let residual = residual(&p, q);
        // Only rounding can leave no residual, where both are all but equal.
        let drawn = pick(&residual, u).or_else(|| pick(&p, u));
        drawn.ok_or(StepError::NoFiniteLegalLogit { step: sampler.tokens().len() })?
    };
    let choice = Choice::drawn(token, of(&p, token).ln());
    let fitting = sampler.fit(row, choice)?.token;
    sampler.accept(fitting)?;
    Ok(fitting == *proposed)
}

/// Returns whether a token of probability `p`, proposed with probability `q`, is accepted.
fn accepts(u: f64, p: f64, q: f64) -> bool {
    u * q < p
}

fn of(distribution: &[(TokenId, f64)], token: TokenId) -> f64 {
    let found = distribution.binary_search_by_key(&token, |&(own, _)| own);
    found.map_or(0.0, |at| distribution[at].1)
}

/// Returns max(p − q, 0), not normalised.
fn residual(p: &[(TokenId, f64)], q: &[(TokenId, f64)]) -> Distribution {
    let mut rest = q.iter().peekable();
    let mut less = |token| {
        while rest.next_if(|(own, _)| *own < token).is_some() {}
        rest.next_if(|(own, _)| *own == token).map_or(0.0, |&(_, q)| q)
    };
    p.iter().map(|&(token, p)| (token, (p - less(token)).max(0.0))).collect()
}

/// Returns the first token up to which the weights sum to more than the part `u` of all; the last one
/// with a weight if rounding leaves none, and `None` if there is none.
fn pick(weights: &[(TokenId, f64)], u: f64) -> Option<TokenId> {
    let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
    let mut reached = 0.0;
    let mut last = None;
    for &(token, weight) in weights.iter().filter(|(_, weight)| *weight > 0.0) {
        last = Some(token);
        reached += weight;
        if reached > u * total {
            break;
        }
    }
    last
}

/// A round of speculation failed.
#[derive(Clone, Debug)]
pub enum SpeculateError<T, D> {
    /// The target model gave no logits.
    Target(T),
    /// The draft model gave no logits.
    Draft(D),
    /// The target model gave another number of rows than [`Model::logits_along`] asks of it.
    Rows(WrongRows),
    /// The sampler gave no token.
    Step(StepError),
}

impl<T, D> From<StepError> for SpeculateError<T, D> {
    fn from(error: StepError) -> Self {
        Self::Step(error)
    }
}

impl<T: fmt::Display, D: fmt::Display> fmt::Display for SpeculateError<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(error) => write!(f, "the target model failed: {error}"),
            Self::Draft(error) => write!(f, "the draft model failed: {error}"),
            Self::Rows(error) => error.fmt(f),
            Self::Step(error) => error.fmt(f),
        }
    }
}

impl<T, D> std::error::Error for SpeculateError<T, D>
where
    T: std::error::Error + 'static,
    D: std::error::Error + 'static,
{
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Target(error) => Some(error),
            Self::Draft(error) => Some(error),
            Self::Rows(error) => Some(error),
            Self::Step(error) => Some(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_residual_is_what_the_draft_left() {
        let of = |list: &[(u32, f64)]| -> Distribution {
            list.iter().map(|&(id, p)| (TokenId::new(id), p)).collect()
        };
        // Of A .5 and B .5 against A .9 and B .1, only B is left, with .4.
        let left = residual(&of(&[(0, 0.5), (1, 0.5)]), &of(&[(0, 0.9), (1, 0.1)]));
        assert_eq!(left, of(&[(0, 0.0), (1, 0.4)]));
        assert_eq!(pick(&left, 0.0), Some(TokenId::new(1)));
        // Tokens that only one of the two has.
        let left = residual(&of(&[(1, 0.25), (3, 0.75)]), &of(&[(0, 0.5), (3, 0.25), (9, 0.25)]));
        assert_eq!(left, of(&[(1, 0.25), (3, 0.5)]));
        assert_eq!(pick(&left, 0.3), Some(TokenId::new(1)));
        assert_eq!(pick(&left, 0.34), Some(TokenId::new(3)));
        assert_eq!(pick(&of(&[(0, 0.0)]), 0.5), None);
    }

    #[test]
    fn the_chance_of_a_draft_is_the_target_over_the_draft() {
        // 0.5 / 0.9 = 0.5556, 0.8 / 0.7 is certain, 0.5 / 0.5 too, 0.2 / 0.6 = 0.3333.
        for (p, q, chance) in
            [(0.5, 0.9, 0.5556), (0.8, 0.7, 1.0), (0.5, 0.5, 1.0), (0.2, 0.6, 0.3333)]
        {
            let accepted = (0..10_000).filter(|&i| accepts(f64::from(i) / 1e4, p, q)).count();
            assert!((accepted as f64 / 1e4 - chance).abs() < 2e-4, "{p} {q} {accepted}");
        }
        assert!(!accepts(0.0, 0.0, 0.3), "what the target forbids is never accepted");
    }
}
