//! The way out of an output: a matcher and the tokens that are left in, whether a token may be taken
//! and how the output can be completed out. The sampler asks it where there is a budget of tokens.
//!
//! A token fits if a completion is known that is short enough. First the bound of a few look-ups is
//! asked ([`Matcher::enough_tokens`]), which decides nearly always; near the end of the budget a
//! shortest text is spelled; and where the grammar is so small that it can be searched at once, the
//! fewest tokens are, so that there the answer is exact.

use std::collections::VecDeque;

use crate::ids::TokenId;
use crate::step_error::StepError;
use crate::token::{Completion, Matcher, UNKNOWN, spells_every_byte};

/// What is known about completing the output of one sequence.
#[derive(Clone, Debug, Default)]
pub(super) struct WayOut {
    /// Tokens that lead from here to the end, if they are known.
    way: Option<VecDeque<TokenId>>,
    /// Those after a token that was looked at and fits.
    next: Option<(TokenId, VecDeque<TokenId>)>,
    /// A place from which no completion of so many tokens is known.
    too_far: Option<(Matcher, usize)>,
    /// Whether the grammar is small enough to be searched, as far as is known.
    searches: bool,
    /// Whether n bytes are at most n tokens.
    spells_every_byte: bool,
}

/// Where earlier texts forbid some, the number of bytes to the end is known only from below. It is exact
/// but for texts that must differ, which rarely double it: what is left is enough if it is this many
/// times the bytes, plus [`NEAR_TOKENS`].
const NEAR_FACTOR: u64 = 8;

/// See [`NEAR_FACTOR`].
const NEAR_TOKENS: u64 = 256;

impl WayOut {
    /// Returns what is known at the start of a sequence that has `left` tokens.
    ///
    /// # Errors
    ///
    /// [`StepError::TokenBudget`] if no completion is known that fits; [`StepError::BudgetExceeded`].
    pub(super) fn within(matcher: &Matcher, left: usize) -> Result<Self, StepError> {
        let spells_every_byte = spells_every_byte(matcher.automaton().vocabulary());
        let completion = matcher.automaton().completion_of_start(matcher)?;
        let mut way_out = Self { spells_every_byte, ..Self::default() };
        let (needed, exact) = match completion {
            Some(Completion { tokens, exact }) => {
                way_out.searches = exact;
                let needed = tokens.len();
                way_out.way = Some(tokens.into());
                (needed, exact)
            }
            None => (usize::MAX, false),
        };
        if needed > left {
            return Err(StepError::TokenBudget { left, needed, exact });
        }
        Ok(way_out)
    }

    /// Returns whether the output can be completed within `left` tokens of which `token`, which is
    /// legal, is the first.
    pub(super) fn fits(
        &mut self,
        matcher: &Matcher,
        token: TokenId,
        left: usize,
    ) -> Result<bool, StepError> {
        let Some(left) = left.checked_sub(1) else { return Ok(false) };
        if matcher.automaton().vocabulary().is_end(token) {
            return Ok(true);
        }
        let on_the_way =
            |way: &VecDeque<TokenId>| way.front() == Some(&token) && way.len() <= left + 1;
        if self.way.as_ref().is_some_and(on_the_way) {
            return Ok(true);
        }
        let mut after = matcher.fork();
        after.accept(token)?;
        let goal = u64::try_from(left).unwrap_or(u64::MAX);
        let enough = after.enough_tokens()?;
        if enough < goal {
            return Ok(true);
        }
        if enough == UNKNOWN && self.spells_every_byte {
            let near = after.bytes_to_complete()?.saturating_mul(NEAR_FACTOR);
            if near.saturating_add(NEAR_TOKENS) <= goal {
                return Ok(true);
            }
        }
        if self.too_far.as_ref().is_some_and(|(at, most)| *most >= left && at.same_place(&after)) {
            return Ok(false);
        }
        let mut way = after.spelled_completion()?.filter(|way| way.len() <= left);
        if way.is_none() && self.searches && left > 0 {
            let work = after.automaton().automaton().limits().closing_work / 10;
            match after.completion_within(left - 1, work) {
                Some(found) => way = found,
                // The grammar is not that small.
                None => self.searches = false,
            }
        }
        match way {
            Some(way) => {
                self.next = Some((token, way.into()));
                Ok(true)
            }
            None => {
                self.too_far = Some((after, left));
                Ok(false)
            }
        }
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
        (self.way, self.next, self.too_far) = (None, None, None);
    }
}
