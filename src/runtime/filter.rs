//! Temperature and filters: the legal logits in, the tokens that may be drawn and their weights out.
//!
//! Rules at the edges: top-k keeps exactly k, ties by id. Top-p keeps the token that crosses p, stops
//! at exact equality and filters nothing at p = 1; typical-p does the same in its own ranking. Min-p
//! keeps what is at least its part of the highest probability. Each filter speaks of what the one
//! before left, renormalised.
//!
//! Cost: in the default order only the tokens that can pass are sorted; in any other order all legal
//! ones are.
//!
//! Sources: Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration" (top-p); Fan et al.
//! 2018, "Hierarchical Neural Story Generation" (top-k); Nguyen et al. 2024, "Turning Up the Heat"
//! (min-p); Meister et al. 2023, "Locally Typical Sampling" (typical-p).

use std::num::NonZeroUsize;

use crate::mask::select::{Candidate, Legal};
use crate::mask::weight::Weights;
use crate::runtime::order::{Order, Stage};
use crate::runtime::policy::Policy;

/// Candidates that are sorted first; four times more at each further try.
const FIRST_SORT: usize = 256;

/// Returns whether the policy has a filter.
pub(super) const fn is_needed(policy: &Policy) -> bool {
    policy.top_k.is_some() || policy.top_p < 1.0 || policy.min_p > 0.0 || policy.typical_p < 1.0
}

/// Leaves what passes all filters in `candidates`, in order (descending logit, ascending id), and
/// returns their weights and the sum of these. `max` is the highest legal logit; the temperature is
/// above 0.
pub(super) fn filter(
    policy: &Policy,
    legal: &mut Legal<'_>,
    max: f32,
    candidates: &mut Vec<Candidate>,
) -> (Weights, f64) {
    if policy.order.after_mask() == Order::DEFAULT.after_mask() {
        let weights = Weights::new(max, policy.temperature);
        let mut total = front(policy, legal, weights, candidates);
        if policy.typical_p < 1.0 {
            typical(policy.typical_p, weights, candidates);
            total = sum(weights, candidates);
        }
        return (weights, total);
    }
    legal.gather(f32::NEG_INFINITY, candidates);
    candidates.sort_unstable();
    let mut weights = Weights::new(max, 1.0);
    for &stage in policy.order.after_mask() {
        apply(stage, policy, &mut weights, candidates);
    }
    (weights, sum(weights, candidates))
}

/// Applies one stage after the mask to candidates in order, by its definition.
pub(super) fn apply(
    stage: Stage,
    policy: &Policy,
    weights: &mut Weights,
    candidates: &mut Vec<Candidate>,
) {
    match stage {
        Stage::Temperature => {
            // Centred on what is left: typical-p may have removed the highest.
            let max = candidates.first().map_or(0.0, |c| c.logit());
            *weights = Weights::new(max, policy.temperature);
        }
        Stage::TopK => candidates.truncate(policy.top_k.map_or(usize::MAX, NonZeroUsize::get)),
        Stage::TopP if policy.top_p < 1.0 => {
            let mass = policy.top_p * sum(*weights, candidates);
            let mut before = 0.0;
            let crossing = candidates.iter().position(|c| {
                let full = before >= mass;
                before += weights.of(c.logit());
                full
            });
            candidates.truncate(crossing.unwrap_or(usize::MAX));
        }
        Stage::MinP => {
            let highest = candidates.first().map_or(0.0, |c| weights.of(c.logit()));
            candidates.retain(|c| weights.of(c.logit()) >= policy.min_p * highest);
        }
        Stage::TypicalP if policy.typical_p < 1.0 => {
            typical(policy.typical_p, *weights, candidates);
        }
        _ => {}
    }
}

/// Returns the sum of the weights.
pub(super) fn sum(weights: Weights, candidates: &[Candidate]) -> f64 {
    candidates.iter().map(|c| weights.of(c.logit())).sum()
}

/// Returns the entropy in nats of candidates whose weights sum to `total`.
pub(super) fn entropy(weights: Weights, candidates: &[Candidate], total: f64) -> f64 {
    let term = |c: &Candidate| match weights.of(c.logit()) {
        0.0 => 0.0,
        weight => weight / total * (total.ln() - weights.log_of(c.logit())),
    };
    candidates.iter().map(term).sum()
}

/// Typical-p: keeps the candidates nearest to the entropy until their mass reaches `p`.
fn typical(p: f64, weights: Weights, candidates: &mut Vec<Candidate>) {
    let total = sum(weights, candidates);
    let entropy = entropy(weights, candidates, total);
    let distance = |c: Candidate| match weights.of(c.logit()) {
        0.0 => f64::INFINITY,
        _ => (total.ln() - weights.log_of(c.logit()) - entropy).abs(),
    };
    candidates.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)).then(a.cmp(&b)));
    let mut before = 0.0;
    let crossing = candidates.iter().position(|c| {
        let full = before >= p * total;
        before += weights.of(c.logit());
        full
    });
    candidates.truncate(crossing.unwrap_or(usize::MAX));
    candidates.sort_unstable();
}

/// Top-k, top-p and min-p: leaves what passes in `candidates`, in order, and returns the sum of its
/// weights.
///
/// Each of the three keeps a front of one order (descending logit, ascending id), so they only move
/// the place of one cut. Candidates are searched from a floor that no kept token lies below:
///
/// - top-k: the lowest of the k highest block maxima;
/// - top-p: tokens with less than (1 − p) / n of the mass have less than 1 − p together, so the
///   nucleus ends before them;
/// - min-p: the logit whose weight is `min_p`, unless the mass of more tokens is needed.
fn front(
    policy: &Policy,
    legal: &mut Legal<'_>,
    weights: Weights,
    candidates: &mut Vec<Candidate>,
) -> f64 {
    let k = policy.top_k.map(|k| k.get());
    let nucleus = policy.top_p < 1.0;
    let mut floor = k.map_or(f32::NEG_INFINITY, |k| legal.floor_of_top(k));
    let mut mass = f64::INFINITY;
    if nucleus && k.is_none() {
        let total = legal.sum(weights);
        mass = policy.top_p * total;
        // Fewer than 2⁵³ tokens: the count is exact.
        let count = legal.count() as f64;
        floor = floor.max(weights.floor(total * (1.0 - policy.top_p) / count));
    }
    if policy.min_p > 0.0 && !(nucleus && k.is_some()) {
        floor = floor.max(weights.floor(policy.min_p));
    }
    legal.gather(floor, candidates);
    if let Some(k) = k
        && k < candidates.len()
    {
        candidates.select_nth_unstable(k);
        candidates.truncate(k);
    }
    let weight = |c: Candidate| weights.of(c.logit());
    if nucleus && k.is_some() {
        candidates.sort_unstable();
        mass = policy.top_p * candidates.iter().map(|&c| weight(c)).sum::<f64>();
    }
    let mut total = 0.0;
    cut(candidates, |candidate| {
        let weight = weight(candidate);
        let keep = total < mass && weight >= policy.min_p;
        if keep {
            total += weight;
        }
        keep
    });
    total
}

/// Sorts the front of `candidates`, as far as is needed, and cuts them before the first that `keep`
/// refuses.
pub(super) fn cut(candidates: &mut Vec<Candidate>, mut keep: impl FnMut(Candidate) -> bool) {
    let mut sorted = 0;
    let mut more = FIRST_SORT;
    while sorted < candidates.len() {
        let rest = &mut candidates[sorted..];
        if more < rest.len() {
            rest.select_nth_unstable(more);
        }
        let front = more.min(rest.len());
        rest[..front].sort_unstable();
        if let Some(refused) = rest[..front].iter().position(|&candidate| !keep(candidate)) {
            candidates.truncate(sorted + refused);
            return;
        }
        sorted += front;
        more *= 4;
    }
}
