//! The way out of an output: a matcher and the tokens that are left in, the tokens that may be taken
//! and how the output can be completed out. The sampler asks it where there is a budget of tokens.
//!
//! A token fits if a completion is known that is short enough. First the bound of a few look-ups is
//! asked, for all legal tokens at once ([`TokenAutomaton::parts`]), which decides nearly always. Near
//! the end of the budget a way is spelled from each place that tokens lead to; and where the grammar is
//! so small that it can be searched at once, the fewest tokens are, so that there the answer is exact.
//!
//! What is known never gets lost: the bound is that of a way which can be spelled out, the first token of
//! a known way always fits, and its rest is remembered. So an output that has begun within its budget
//! ends within it.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::ids::TokenId;
use crate::mask::TokenMask;
use crate::step_error::StepError;
use crate::token::{Completion, Matcher, TokenAutomaton};

/// What is known about completing the output of one sequence.
#[derive(Clone, Debug, Default)]
pub(super) struct WayOut {
    /// Tokens that lead from here to the end, if they are known.
    way: Option<VecDeque<TokenId>>,
    /// Those after a token that was looked at and fits.
    next: Option<(TokenId, VecDeque<TokenId>)>,
    /// Those from the start of the grammar.
    start: Option<Arc<[TokenId]>>,
}

impl WayOut {
    /// Returns what is known at the start of a sequence that has `left` tokens.
    ///
    /// # Errors
    ///
    /// [`StepError::TokenBudget`] if no completion is known that fits; [`StepError::BudgetExceeded`].
    pub(super) fn within(matcher: &Matcher, left: usize) -> Result<Self, StepError> {
        let automaton = matcher.automaton();
        let mut completion = automaton.completion_of_start(matcher, false)?;
        let fits = |found: &Option<Completion>| {
            found.as_ref().is_some_and(|found| found.exact || found.tokens.len() <= left)
        };
        if !fits(&completion) {
            // Only here it is worth its time to know better.
            completion = automaton.completion_of_start(matcher, true)?;
        }
        match completion {
            Some(Completion { tokens, .. }) if tokens.len() <= left => {
                let start = Some(tokens.as_slice().into());
                Ok(Self { way: Some(tokens.into()), next: None, start })
            }
            Some(Completion { tokens, exact }) => {
                Err(StepError::TokenBudget { left, needed: tokens.len(), exact })
            }
            None => Err(StepError::TokenBudget { left, needed: usize::MAX, exact: false }),
        }
    }

    /// Returns the tokens of `mask`, all of which are legal, after which the output can be completed
    /// within `left` tokens, the token counted; `None` if these are all, or earlier texts matter or
    /// places are not known, where [`Self::fits`] must be asked.
    ///
    /// # Errors
    ///
    /// [`StepError::BudgetExceeded`].
    pub(super) fn restrict(
        &self,
        matcher: &Matcher,
        mask: &TokenMask,
        left: usize,
    ) -> Result<Option<TokenMask>, StepError> {
        let automaton: &TokenAutomaton = matcher.automaton();
        let mut budget = automaton.automaton().step_budget();
        let parts = automaton.parts(matcher.threads(), &mut budget)?;
        let (Some(parts), Some(goal)) = (parts, left.checked_sub(1)) else { return Ok(None) };
        let bound = u64::try_from(goal).unwrap_or(u64::MAX);
        if parts.iter().all(|part| part.most() < bound) {
            return Ok(None);
        }
        let mut fitting = automaton.legal_within(&parts, bound, |threads| {
            Ok(automaton.known_way(threads)?.is_some_and(|way| way.len() <= goal))
        })?;
        let mut others = automaton.vocabulary().end_tokens().to_vec();
        others.extend(self.first_of_way(matcher, left)?);
        fitting = fitting.with_changes(others, Vec::new());
        let words = mask.words();
        let both: Vec<u64> = fitting.words().iter().zip(&*words).map(|(a, b)| a & b).collect();
        Ok((both != *words).then(|| TokenMask::from_words(mask.width(), both)))
    }

    /// Returns the first token of a way that takes at most `left` tokens, if one is known.
    fn first_of_way(&self, matcher: &Matcher, left: usize) -> Result<Option<TokenId>, StepError> {
        if let Some(way) = self.way.as_ref().filter(|way| way.len() <= left) {
            return Ok(way.front().copied());
        }
        let way = matcher.automaton().known_way(matcher.threads())?;
        Ok(way.filter(|way| way.len() <= left).and_then(|way| way.first().copied()))
    }

    /// Returns whether the output can be completed within `left` tokens of which `token`, which is
    /// legal, is the first.
    pub(super) fn fits(
        &mut self,
        matcher: &Matcher,
        token: TokenId,
        left: usize,
    ) -> Result<bool, StepError> {
        let Some(goal) = left.checked_sub(1) else { return Ok(false) };
        let automaton = matcher.automaton();
        if automaton.vocabulary().is_end(token) {
            return Ok(true);
        }
        let on_the_way = |way: &VecDeque<TokenId>| way.front() == Some(&token) && way.len() <= left;
        if self.way.as_ref().is_some_and(on_the_way) {
            return Ok(true);
        }
        let mut after = matcher.fork();
        after.accept(token)?;
        if after.enough_tokens()? < u64::try_from(goal).unwrap_or(u64::MAX) {
            return Ok(true);
        }
        let way = automaton.known_way(after.threads())?.filter(|way| way.len() <= goal);
        let way = match way {
            Some(way) => Some(way.iter().copied().collect()),
            // It may be known from here how to go on there.
            None => automaton
                .known_way(matcher.threads())?
                .filter(|way| way.len() <= left && way.first() == Some(&token))
                .map(|way| way[1..].iter().copied().collect()),
        };
        let fits = way.is_some();
        self.next = way.map(|way| (token, way));
        Ok(fits)
    }

    /// Returns the next token of the shortest known way to a complete output, which takes at most
    /// `left` tokens.
    ///
    /// # Errors
    ///
    /// [`StepError::TokenBudget`] if it takes more; [`StepError::BudgetExceeded`].
    pub(super) fn next(&mut self, matcher: &Matcher, left: usize) -> Result<TokenId, StepError> {
        let mut exact = false;
        if self.way.as_ref().is_none_or(|way| way.len() > left) {
            let completion = matcher.completion(left)?;
            exact = completion.as_ref().is_some_and(|completion| completion.exact);
            self.way = completion.map(|completion| completion.tokens.into());
        }
        let needed = self.way.as_ref().map_or(usize::MAX, VecDeque::len);
        match self.way.as_ref().and_then(VecDeque::front) {
            Some(&token) if needed <= left => Ok(token),
            _ => Err(StepError::TokenBudget { left, needed, exact }),
        }
    }

    /// Follows a token that was accepted. A way stays one for as long as it is followed.
    pub(super) fn follow(&mut self, token: TokenId) {
        match self.next.take() {
            Some((next, way)) if next == token => self.way = Some(way),
            _ => {
                if self.way.as_mut().is_some_and(|way| way.pop_front() != Some(token)) {
                    self.way = None;
                }
            }
        }
    }

    /// Forgets where the sequence stood.
    pub(super) fn forget(&mut self) {
        (self.way, self.next) = (None, None);
    }

    /// Goes back to the start of the grammar, from where a way is known.
    pub(super) fn restart(&mut self) {
        self.way = self.start.as_ref().map(|way| way.iter().copied().collect());
        self.next = None;
    }
}
