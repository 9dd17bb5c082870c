//! Beam search under a grammar: a sampler and a model in, the most probable complete outputs out.
//!
//! The score of a token is its log-probability under the model, after penalties and bias, at
//! temperature 1. It is not renormalised under the mask: the mask takes paths away and does not make
//! those that stay more probable, so that the outputs are ranked as the model ranks them.
//!
//! Sources: Wu et al. 2016, "Google's Neural Machine Translation System" (length normalisation; here
//! the plain power of the length); Vijayakumar et al. 2018, "Diverse Beam Search" (groups).

use std::cmp::Ordering;
use std::num::NonZeroUsize;

use crate::error::{Error, ErrorKind};
use crate::ids::TokenId;
use crate::runtime::model::Model;
use crate::runtime::sampler::{ConstrainedSampler, GenerateError, WrongRows};
use crate::step_error::StepError;

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Beam {
    /// The number of open outputs that are followed, and the most that are returned.
    pub width: NonZeroUsize,
    /// An output of log-probability *l* and *n* tokens, the end token counted, has the score
    /// *l* / *n*^`length_exponent`. At 0 (the default) it is the log-probability; above, long outputs
    /// are favoured more.
    pub length_exponent: f64,
    /// The number of groups that the width is divided into. Each is a beam of its own. Default 1.
    pub groups: NonZeroUsize,
    /// What a token loses, in log-probability, for each output of the groups before that takes it at the
    /// same step; at least 0 (the default). It counts for what is followed, not for scores.
    pub diversity: f64,
}

/// A complete output that was found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Hypothesis {
    /// The sequence, finished.
    pub sampler: ConstrainedSampler,
    /// Natural logarithm of its probability under the model.
    pub log_probability: f64,
    /// What outputs are ranked by.
    pub score: f64,
}

/// An output that goes on.
struct Open {
    sampler: ConstrainedSampler,
    log_probability: f64,
}

/// A token that an open output could take.
struct Step {
    parent: usize,
    token: TokenId,
    log_probability: f64,
    /// The log-probability less what diversity takes.
    rank: f64,
}

/// A beam of its own.
#[derive(Default)]
struct Group {
    open: Vec<Open>,
    /// Complete outputs, best first.
    done: Vec<Hypothesis>,
    /// Why the first output was given up.
    given_up: Option<StepError>,
}

impl Beam {
    /// Returns a beam of this width, without length normalisation, in one group.
    #[must_use]
    pub const fn new(width: NonZeroUsize) -> Self {
        Self { width, length_exponent: 0.0, groups: NonZeroUsize::MIN, diversity: 0.0 }
    }

    /// Sets [`Beam::length_exponent`].
    #[must_use]
    pub const fn length_exponent(mut self, exponent: f64) -> Self {
        self.length_exponent = exponent;
        self
    }

    /// Sets [`Beam::groups`] and [`Beam::diversity`].
    #[must_use]
    pub const fn groups(mut self, groups: NonZeroUsize, diversity: f64) -> Self {
        self.groups = groups;
        self.diversity = diversity;
        self
    }

    /// Checks that every option is in its range.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidOption`] naming the first that is not, and its range.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |text: String| Err(Error::new(ErrorKind::InvalidOption, text));
        if !self.width.get().is_multiple_of(self.groups.get()) {
            return wrong(format!("`groups` is {}; it must divide {}", self.groups, self.width));
        }
        if !self.length_exponent.is_finite() {
            return wrong(format!(
                "`length_exponent` is {}; it must be finite",
                self.length_exponent
            ));
        }
        if !self.diversity.is_finite() || self.diversity < 0.0 {
            let text = "it must be finite and at least 0";
            return wrong(format!("`diversity` is {}; {text}", self.diversity));
        }
        Ok(())
    }

    /// Searches from where `start` stands, which must have [`crate::Policy::max_tokens`], and returns
    /// the best complete outputs of all groups, best first. Equal ones are ranked by their tokens.
    ///
    /// Each step asks the model for every open output. A search ends where no open output can reach the
    /// score of a complete one, which is exact: it gives what a search to the last token would give.
    /// Temperature, filters and random numbers play no part. An output that no token can follow (all legal
    /// logits are −∞, or all legal tokens are banned) is given up, and the others go on.
    ///
    /// # Errors
    ///
    /// [`StepError::InvalidPolicy`] if an option is out of its range or there is no budget of tokens;
    /// [`GenerateError::Rows`] if the model gives too few or too many rows; otherwise as
    /// [`ConstrainedSampler::generate`], where all logits of the vocabulary are looked at, not only
    /// those of legal tokens. That no token can follow is an error only where no output was completed.
    pub fn search<M: Model>(
        &self,
        start: &ConstrainedSampler,
        model: &mut M,
    ) -> Result<Vec<Hypothesis>, GenerateError<M::Error>> {
        let refuse = |error| GenerateError::Step(StepError::InvalidPolicy(error));
        self.check().map_err(refuse)?;
        let Some(left) = start.tokens_left() else {
            let text = "`max_tokens` is not set; a beam search needs it to end";
            return Err(refuse(Error::new(ErrorKind::InvalidOption, text)));
        };
        if start.is_finished() {
            return Err(GenerateError::Step(StepError::Finished));
        }
        let longest = start.tokens().len() + left;
        let mut groups: Vec<Group> = Vec::new();
        for _ in 0..self.groups.get() {
            let open = vec![Open { sampler: start.fork(), log_probability: 0.0 }];
            groups.push(Group { open, ..Group::default() });
        }
        let mut rows = Vec::new();
        while groups.iter().any(|group| !group.open.is_empty()) {
            let sequences: Vec<&[TokenId]> =
                groups.iter().flat_map(|group| &group.open).map(|o| o.sampler.tokens()).collect();
            model.logits_each(&sequences, &mut rows).map_err(GenerateError::Model)?;
            WrongRows::check(sequences.len(), &rows).map_err(GenerateError::Rows)?;
            let mut rest = rows.as_slice();
            let mut taken: Vec<TokenId> = Vec::new();
            for group in &mut groups {
                let (own, others) = rest.split_at(group.open.len());
                rest = others;
                self.advance(group, own, &mut taken, longest).map_err(GenerateError::Step)?;
            }
        }
        let given_up = groups.iter_mut().find_map(|group| group.given_up.take());
        let mut found: Vec<_> = groups.into_iter().flat_map(|group| group.done).collect();
        if let Some(error) = given_up.filter(|_| found.is_empty()) {
            return Err(GenerateError::Step(error));
        }
        found.sort_by(better);
        found.dedup_by(|a, b| a.sampler.tokens() == b.sampler.tokens());
        found.truncate(self.width.get());
        Ok(found)
    }

    /// Makes one step of a group. `taken` are the tokens that the groups before took.
    fn advance(
        &self,
        group: &mut Group,
        rows: &[Vec<f32>],
        taken: &mut Vec<TokenId>,
        longest: usize,
    ) -> Result<(), StepError> {
        let width = self.width.get() / self.groups.get();
        let lost = |token| {
            let times = taken.iter().filter(|&&own| own == token).count();
            self.diversity * times as f64
        };
        let mut steps = Vec::new();
        for (parent, (open, row)) in group.open.iter_mut().zip(rows).enumerate() {
            // What diversity takes can move as many tokens as were taken behind others.
            let enough = width + taken.len();
            let vocabulary = open.sampler.matcher().automaton().vocabulary().clone();
            let legal_ends =
                if open.sampler.is_accepting()? { vocabulary.end_tokens().len() } else { 0 };
            let mut found = 0;
            let mut ends = Vec::new();
            let before = open.log_probability;
            let visited = open.sampler.visit_fitting(row, |token, log_probability| {
                let log_probability = before + log_probability;
                if vocabulary.is_end(token) {
                    ends.push((token, log_probability));
                } else {
                    let rank = log_probability - lost(token);
                    steps.push(Step { parent, token, log_probability, rank });
                    found += 1;
                }
                // All end tokens count, however improbable.
                found < enough || ends.len() < legal_ends
            });
            match visited {
                Ok(()) if found == 0 && ends.is_empty() => {
                    let step = open.sampler.tokens().len();
                    group.given_up.get_or_insert(StepError::NoFiniteLegalLogit { step });
                }
                Ok(()) => {}
                Err(error) if error.is_dead_end() => {
                    group.given_up.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
            for (token, log_probability) in ends {
                let mut sampler = open.sampler.fork();
                sampler.accept(token)?;
                let score = self.score(log_probability, sampler.tokens().len());
                group.done.push(Hypothesis { sampler, log_probability, score });
            }
        }
        group.done.sort_by(better);
        group.done.truncate(width);
        steps.sort_by(|a, b| {
            b.rank.total_cmp(&a.rank).then(a.parent.cmp(&b.parent)).then(a.token.cmp(&b.token))
        });
        steps.truncate(width);
        let mut next = Vec::with_capacity(steps.len());
        for step in &steps {
            let mut sampler = group.open[step.parent].sampler.fork();
            sampler.accept(step.token)?;
            let log_probability = step.log_probability;
            // At a text to stop at.
            if sampler.is_finished() {
                let score = self.score(log_probability, sampler.tokens().len());
                group.done.push(Hypothesis { sampler, log_probability, score });
            } else {
                next.push(Open { sampler, log_probability });
            }
        }
        group.done.sort_by(better);
        group.done.truncate(width);
        taken.extend(steps.iter().map(|step| step.token));
        if let Some(worst) = group.done.get(width - 1) {
            // One that can reach the same score may rank before it by its tokens.
            next.retain(|open| self.best_possible(open, longest) >= worst.score);
        }
        group.open = next;
        Ok(())
    }

    fn score(&self, log_probability: f64, tokens: usize) -> f64 {
        log_probability / (tokens as f64).powf(self.length_exponent)
    }

    /// Returns the highest score that any end of an open output can have: probabilities only shrink,
    /// and of the lengths that are possible the best is the longest, or else the next.
    fn best_possible(&self, open: &Open, longest: usize) -> f64 {
        let tokens =
            if self.length_exponent > 0.0 { longest } else { open.sampler.tokens().len() + 1 };
        self.score(open.log_probability, tokens)
    }
}

fn better(a: &Hypothesis, b: &Hypothesis) -> Ordering {
    b.score.total_cmp(&a.score).then_with(|| a.sampler.tokens().cmp(b.sampler.tokens()))
}
