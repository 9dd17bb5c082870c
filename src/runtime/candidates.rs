//! Many outputs, and the choice of one: by a score, by what most say, or by the least expected loss.
//!
//! Sources: Wang et al. 2023, "Self-Consistency Improves Chain of Thought Reasoning"; Kumar and Byrne
//! 2004, "Minimum Bayes-Risk Decoding for Statistical Machine Translation".

use crate::ids::TokenId;
use crate::runtime::batch;
use crate::runtime::canonical::canonical_json;
use crate::runtime::draw::log_softmax;
use crate::runtime::model::Model;
use crate::runtime::sampler::{ConstrainedSampler, GenerateError};

/// A complete output, to be compared with others.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Candidate {
    /// Its tokens, the end token included.
    pub tokens: Vec<TokenId>,
    /// Its text.
    pub text: String,
    /// Natural logarithm of its probability under the model, before any stage.
    pub log_probability: f64,
    /// How many outputs were equal to it, itself included ([`deduplicate`]).
    pub count: usize,
}

impl Candidate {
    /// Returns the log-probability of a token on average.
    #[must_use]
    pub fn mean_log_probability(&self) -> f64 {
        self.log_probability / self.tokens.len().max(1) as f64
    }

    /// Returns the text as a JSON value, if it is one.
    #[must_use]
    pub fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_str(&self.text).ok()
    }

    /// Returns the one spelling of the JSON value that the text is, if it is one
    /// ([`canonical_json`]).
    #[must_use]
    pub fn canonical_json(&self) -> Option<String> {
        canonical_json(&self.text)
    }
}

/// Generates `count` outputs from where `start` stands. They share what came before; the first has the
/// seed of the policy, each further one the next. A sequence whose model gives the same rows each time
/// is so drawn independently `count` times.
///
/// # Errors
///
/// As [`ConstrainedSampler::generate`], where all logits of the vocabulary are looked at, not only
/// those of legal tokens; [`GenerateError::Rows`]. The first error ends all.
pub fn candidates<M: Model>(
    start: &ConstrainedSampler,
    model: &mut M,
    count: usize,
) -> Result<Vec<Candidate>, GenerateError<M::Error>> {
    let mut samplers: Vec<_> = (0..count as u64)
        .map(|index| {
            let mut sampler = start.fork();
            sampler.reseed(start.policy().seed.wrapping_add(index));
            sampler
        })
        .collect();
    let mut totals = vec![0.0; count];
    let results = batch::run(&mut samplers, model, |sampler, row, index| {
        let width = sampler.matcher().automaton().vocabulary().len();
        let token = sampler.next_token(row)?;
        totals[index] += log_softmax(&row[..width], token)?;
        Ok(())
    })?;
    results.into_iter().collect::<Result<(), _>>().map_err(GenerateError::Step)?;
    let finished = samplers.iter().zip(totals);
    Ok(finished
        .map(|(sampler, log_probability)| Candidate {
            tokens: sampler.tokens().to_vec(),
            text: sampler.text(),
            log_probability,
            count: 1,
        })
        .collect())
}

/// Returns the candidates with different texts, in order of first appearance, each with the count of
/// all that say the same; of these the most probable stands for them.
#[must_use]
pub fn deduplicate(candidates: &[Candidate]) -> Vec<Candidate> {
    let mut distinct: Vec<Candidate> = Vec::new();
    for candidate in candidates {
        match distinct.iter_mut().find(|known| known.text == candidate.text) {
            Some(known) => {
                let count = known.count + candidate.count;
                if candidate.log_probability > known.log_probability {
                    *known = candidate.clone();
                }
                known.count = count;
            }
            None => distinct.push(candidate.clone()),
        }
    }
    distinct
}

/// Returns the candidate with the highest score, the first among equals: best-of-n. One whose score is
/// NaN is passed over; a verifier returns 1 and 0, or −∞ to refuse.
///
/// ```
/// # use schemac::runtime::{Candidate, best};
/// # fn f(candidates: &[Candidate]) {
/// let fluent = best(candidates, Candidate::mean_log_probability);
/// let adult = best(candidates, |c| match c.json() {
///     Some(value) if value["age"].as_u64() >= Some(18) => c.log_probability,
///     _ => f64::NEG_INFINITY,
/// });
/// # }
/// ```
pub fn best(
    candidates: &[Candidate],
    mut score: impl FnMut(&Candidate) -> f64,
) -> Option<&Candidate> {
    let mut found: Option<(&Candidate, f64)> = None;
    for candidate in candidates {
        let score = score(candidate);
        if !score.is_nan() && found.is_none_or(|(_, highest)| score > highest) {
            found = Some((candidate, score));
        }
    }
    found.map(|(candidate, _)| candidate)
}

/// Returns the first candidate of those that most agree with, by `answer`, and how many they are:
/// self-consistency. Those without an answer have no say; of answers that are equally common the one
/// that came first wins.
///
/// ```
/// # use schemac::runtime::{Candidate, most_common};
/// # fn f(candidates: &[Candidate]) {
/// // By value, however it is spelled.
/// let agreed = most_common(candidates, Candidate::canonical_json);
/// # }
/// ```
pub fn most_common<A: PartialEq>(
    candidates: &[Candidate],
    mut answer: impl FnMut(&Candidate) -> Option<A>,
) -> Option<(&Candidate, usize)> {
    let mut groups: Vec<(A, &Candidate, usize)> = Vec::new();
    for candidate in candidates {
        let Some(answer) = answer(candidate) else { continue };
        match groups.iter_mut().find(|(own, ..)| *own == answer) {
            Some((.., count)) => *count += candidate.count,
            None => groups.push((answer, candidate, candidate.count)),
        }
    }
    let most = groups.iter().map(|(.., count)| *count).max()?;
    groups.iter().find(|(.., count)| *count == most).map(|&(_, first, count)| (first, count))
}

/// Returns the candidate that loses least on average if any of the candidates is right, each as
/// probable as it is frequent, and that average: minimum Bayes risk. `loss` is that of saying the first
/// where the second is right. The first wins among equals.
pub fn minimum_bayes_risk(
    candidates: &[Candidate],
    mut loss: impl FnMut(&Candidate, &Candidate) -> f64,
) -> Option<(&Candidate, f64)> {
    let total: usize = candidates.iter().map(|c| c.count).sum();
    let mut found: Option<(&Candidate, f64)> = None;
    for said in candidates {
        let sum: f64 = candidates.iter().map(|right| right.count as f64 * loss(said, right)).sum();
        let risk = sum / total as f64;
        if !risk.is_nan() && found.is_none_or(|(_, least)| risk < least) {
            found = Some((said, risk));
        }
    }
    found
}
