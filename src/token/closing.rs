//! How many tokens complete an output: a bound that costs a few look-ups, and the least number by
//! search.
//!
//! The bound adds up, for the state and for each frame below it, the tokens that spell a shortest text
//! of what is left of its rule. That text depends on the state alone, so its tokens are counted once and
//! the sums are kept in the stacks, as the bytes are. Tokens that reach across the end of a rule are
//! not used, so the bound can be higher than the least number, never lower.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::automaton::{self, Configuration, Frame, Stack, Thread};
use crate::error::{Error, ErrorKind};
use crate::ids::{StateId, TokenId};
use crate::limits::Budget;
use crate::step_error::StepError;
use crate::token::spell::fewest_tokens;
use crate::token::tables::{read, write};
use crate::token::{Matcher, TokenAutomaton};

/// Stands for a number of tokens that is not known.
pub(crate) const UNKNOWN: u64 = u64::MAX;

/// A step of a sequence searches with this part of [`crate::Limits::closing_work`].
const OF_STEP: u64 = 200;

/// The most tokens that a search looks at where no text of the fewest bytes can be spelled.
const UNSPELLED: usize = 1 << 16;

/// Tokens that complete an output, the last of them an end token, shared.
pub(crate) type Way = Arc<[TokenId]>;

/// Tokens that complete an output, the last of them an end token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The tokens.
    pub tokens: Vec<TokenId>,
    /// Whether no fewer tokens would do. Otherwise their number is an upper bound.
    pub exact: bool,
}

impl TokenAutomaton {
    /// Returns a number of tokens, without an end token, that surely complete the output, or
    /// [`UNKNOWN`]. It is not known where earlier texts matter to them. [`Self::enough_way`] has them.
    pub(crate) fn enough_tokens(
        &self,
        threads: &[Thread],
        budget: &mut Budget,
    ) -> Result<u64, Error> {
        Ok(self.nearest(threads, budget)?.map_or(UNKNOWN, |(enough, _)| enough))
    }

    /// Returns the thread from which the fewest tokens are known to complete the output, and how many.
    fn nearest<'a>(
        &self,
        threads: &'a [Thread],
        budget: &mut Budget,
    ) -> Result<Option<(u64, &'a Thread)>, Error> {
        let mut best: Option<(u64, &Thread)> = None;
        for thread in threads {
            if thread.tape.is_some() {
                continue;
            }
            let own = self.tokens_of(thread.state, thread.register.is_some(), budget)?;
            let rest = thread.stack.as_ref();
            let rest = rest.map_or(Ok(0), |stack| self.rest_tokens(stack, budget))?;
            let enough = own.saturating_add(rest);
            if enough != UNKNOWN && best.is_none_or(|(least, _)| enough < least) {
                best = Some((enough, thread));
            }
        }
        Ok(best)
    }

    /// Returns how many tokens surely return all the way down from a stack, or [`UNKNOWN`].
    pub(crate) fn rest_tokens(
        &self,
        stack: &Arc<Stack>,
        budget: &mut Budget,
    ) -> Result<u64, Error> {
        automaton::sum_below(stack, |stack| &stack.tokens, budget, &mut |frame, budget| {
            self.tokens_of(frame.ret, frame.register.is_some(), budget)
        })
    }

    /// Returns how many tokens surely end the rule of `state`, or [`UNKNOWN`]. If there are earlier texts
    /// that may not be written again, that is known only where none is written.
    fn tokens_of(
        &self,
        state: StateId,
        earlier_texts: bool,
        budget: &mut Budget,
    ) -> Result<u64, Error> {
        let (tokens, free) = self.own_way(state, budget)?;
        Ok(if free || !earlier_texts { tokens } else { UNKNOWN })
    }

    /// Returns the tokens that [`Self::enough_tokens`] counts, and an end token; `None` if it is not
    /// known.
    fn enough_way(
        &self,
        threads: &[Thread],
        budget: &mut Budget,
    ) -> Result<Option<Vec<TokenId>>, Error> {
        let Some((_, thread)) = self.nearest(threads, budget)? else { return Ok(None) };
        let mut states = vec![thread.state];
        let mut stack = thread.stack.as_ref();
        while let Some(here) = stack.filter(|stack| !stack.bottom) {
            let mut best: Option<(u64, &Frame)> = None;
            for frame in &here.frames {
                let below = frame.below.as_ref();
                let below = below.map_or(Ok(0), |stack| self.rest_tokens(stack, budget))?;
                let own = self.tokens_of(frame.ret, frame.register.is_some(), budget)?;
                let cost = below.saturating_add(own);
                if best.is_none_or(|(least, _)| cost < least) {
                    best = Some((cost, frame));
                }
            }
            let Some((_, frame)) = best else { return Ok(None) };
            states.push(frame.ret);
            stack = frame.below.as_ref();
        }
        let mut way = Vec::new();
        for state in states {
            let text = self.shortest_text(&[start_in(state)], budget)?;
            let tokens = text.and_then(|text| fewest_tokens(self.vocabulary(), &text));
            let Some(tokens) = tokens else { return Ok(None) };
            way.extend(tokens);
        }
        Ok(Some(self.with_end(way)))
    }

    /// Returns the shortest way to complete the output that is known without a search for the fewest
    /// tokens: an end token is the last.
    pub(crate) fn spelled_way(
        &self,
        threads: &[Thread],
        budget: &mut Budget,
    ) -> Result<Option<Vec<TokenId>>, Error> {
        let by_rule = self.enough_way(threads, budget)?;
        let whole = self
            .shortest_text(threads, budget)?
            .and_then(|text| fewest_tokens(self.vocabulary(), &text))
            .map(|way| self.with_end(way));
        Ok([by_rule, whole].into_iter().flatten().min_by_key(Vec::len))
    }

    /// Returns the shortest way to complete the output that is known: by a search for the fewest tokens,
    /// if the grammar is so small that the first one at the start finished. Kept where no earlier text
    /// matters.
    pub(crate) fn known_way(&self, threads: &[Thread]) -> Result<Option<Way>, StepError> {
        let mut budget = self.automaton().step_budget();
        let key = automaton::structure(threads, &mut budget)?;
        if let Some(known) = key.as_ref().and_then(|key| read(&self.ways).get(key).cloned()) {
            return Ok(known);
        }
        let spelled = self.spelled_way(threads, &mut budget)?;
        let start = self.start_completions[0].get().and_then(Option::as_ref);
        let searches = start.is_some_and(|start| start.exact);
        let fewer = spelled.as_ref().map_or(UNSPELLED, |way| way.len() - 1);
        let found = match fewer.checked_sub(1).filter(|_| searches) {
            Some(most) => {
                let work = self.automaton().limits().closing_work / OF_STEP;
                self.fewest(threads, most, work).flatten()
            }
            None => None,
        };
        let way: Option<Way> = found.or(spelled).map(Into::into);
        if let Some(key) = key
            && self.reserve(key.len() * 8 + way.as_ref().map_or(0, |way| way.len() * 4) + 64)
        {
            write(&self.ways).insert(key, way.clone());
        }
        Ok(way)
    }

    /// Returns the fewest tokens that complete the output, with an end token, if at most `most` tokens
    /// before that do; outside, `None` if the search did not finish: for `work`, its bound, or because
    /// it came to a part of the grammar that cannot be expanded and that the output need not reach.
    pub(crate) fn fewest(
        &self,
        threads: &[Thread],
        most: usize,
        work: u64,
    ) -> Option<Option<Vec<TokenId>>> {
        let mut budget = Budget::new("closing_work", work);
        let found = self.least_tokens(threads, most, &mut budget).ok()?;
        Some(found.map(|tokens| self.with_end(tokens)))
    }

    /// Returns the tokens with an end token behind them.
    fn with_end(&self, mut tokens: Vec<TokenId>) -> Vec<TokenId> {
        tokens.extend(self.vocabulary().end_tokens().first());
        tokens
    }

    /// Returns what [`Matcher::completion`] does at the start within any number of tokens: with `all` its
    /// work, else with that of a step. Both are kept, so that sequences cost no search each.
    pub(crate) fn completion_of_start(
        &self,
        start: &Matcher,
        all: bool,
    ) -> Result<Option<Completion>, StepError> {
        let known = &self.start_completions[usize::from(all)];
        if let Some(known) = known.get() {
            return Ok(known.clone());
        }
        let work = self.automaton().limits().closing_work / if all { 1 } else { OF_STEP };
        let found = self.completion(start.threads(), usize::MAX, work)?;
        Ok(known.get_or_init(|| found).clone())
    }

    /// Returns [`Matcher::completion`] of a configuration by a search of this much work.
    pub(crate) fn completion(
        &self,
        threads: &[Thread],
        most: usize,
        work: u64,
    ) -> Result<Option<Completion>, StepError> {
        let spelled = self.spelled_way(threads, &mut self.automaton().step_budget())?;
        // Fewer than those that are known.
        let fewer = spelled.as_ref().map_or(most, |tokens| tokens.len() - 1).min(most);
        let (found, exact) = match fewer.checked_sub(1) {
            Some(fewer) => match self.fewest(threads, fewer, work) {
                Some(found) => (found.or(spelled), true),
                None => (spelled, false),
            },
            None => (spelled, true),
        };
        // That not more than `most` were looked at tells nothing about more than `most`.
        let exact = exact && found.as_ref().is_some_and(|tokens| tokens.len() - 1 <= most);
        Ok(found.map(|tokens| Completion { tokens, exact }))
    }

    /// Returns how many tokens spell a shortest text that ends the rule of `state`.
    pub(crate) fn own_tokens(&self, state: StateId, budget: &mut Budget) -> Result<u64, Error> {
        Ok(self.own_way(state, budget)?.0)
    }

    /// Returns the same, and whether no text is written that must be fresh.
    fn own_way(&self, state: StateId, budget: &mut Budget) -> Result<(u64, bool), Error> {
        if let Some(&known) = read(&self.closings).get(&state) {
            return Ok(known);
        }
        let text = self.shortest_text(&[start_in(state)], budget)?;
        let tokens = text.as_ref().and_then(|text| fewest_tokens(self.vocabulary(), text));
        let tokens = tokens.map_or(UNKNOWN, |tokens| tokens.len() as u64);
        let mut threads: Configuration = smallvec::smallvec![start_in(state)];
        let mut free = true;
        for &byte in text.iter().flatten() {
            threads = automaton::step(self.automaton(), &threads, byte, budget)?;
            free &= threads.iter().all(|t| t.register.is_none() && t.tape.is_none());
        }
        write(&self.closings).insert(state, (tokens, free));
        Ok((tokens, free))
    }

    /// Returns a shortest text that completes the output, the same at each call; `None` if there is none,
    /// as may be where texts must differ.
    fn shortest_text(
        &self,
        threads: &[Thread],
        budget: &mut Budget,
    ) -> Result<Option<Vec<u8>>, Error> {
        match automaton::shortest_completion(self.automaton(), threads, budget) {
            Ok(text) => Ok(Some(text)),
            Err(error) if *error.kind() == ErrorKind::Unsatisfiable => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the fewest tokens that complete the output, or `None` if more than `most` are needed.
    /// Of several ways it is one that the same call always finds.
    ///
    /// A search by number of tokens, over the configurations that tokens lead to. It spends from
    /// `budget`, which ends it with an error.
    pub(crate) fn least_tokens(
        &self,
        from: &[Thread],
        most: usize,
        budget: &mut Budget,
    ) -> Result<Option<Vec<TokenId>>, Error> {
        let longest = self.vocabulary().longest().max(1) as u64;
        // The configurations in the order of discovery, each with the one before and the token between.
        let mut found: Vec<(Configuration, usize, TokenId)> = Vec::new();
        found.push((from.into(), usize::MAX, TokenId::new(0)));
        let mut seen: HashMap<Vec<u64>, (), foldhash::fast::RandomState> = HashMap::default();
        if let Some(key) = automaton::structure(from, budget)? {
            seen.insert(key, ());
        }
        let mut level = 0..1;
        for tokens in 0..=most {
            for at in level.clone() {
                if automaton::is_accepting(self.automaton(), &found[at].0, budget)? {
                    return Ok(Some(path(&found, at)));
                }
            }
            let first = found.len();
            for at in level {
                let left = (most - tokens) as u64;
                let threads = found[at].0.clone();
                // Each token can shorten the way by its bytes at most.
                let needed = automaton::needed(self.automaton(), &threads, budget)?;
                if needed.div_ceil(longest) > left {
                    continue;
                }
                self.each_place(&threads, budget, |token, after, budget| {
                    let new = match automaton::structure(&after, budget)? {
                        Some(key) => seen.insert(key, ()).is_none(),
                        None => true,
                    };
                    if new {
                        found.push((after, at, token));
                    }
                    Ok(())
                })?;
            }
            level = first..found.len();
            if level.is_empty() {
                break;
            }
        }
        Ok(None)
    }

    /// Calls `visit` with each place that legal tokens lead to, and the lowest of them.
    fn each_place(
        &self,
        from: &[Thread],
        budget: &mut Budget,
        mut visit: impl FnMut(TokenId, Configuration, &mut Budget) -> Result<(), Error>,
    ) -> Result<(), Error> {
        // Made once and kept, so that it counts for the steps of a sequence and not for one search.
        let parts = self.parts(from, &mut self.automaton().step_budget())?;
        let Some(parts) = parts else { return self.each_token(from, budget, visit) };
        for part in &parts {
            for (token, after) in part.places() {
                budget.spend(1)?;
                visit(token, after, budget)?;
            }
        }
        Ok(())
    }

    /// Calls `visit` with each different text of a legal token, its lowest id, and where it leads.
    fn each_token(
        &self,
        from: &[Thread],
        budget: &mut Budget,
        mut visit: impl FnMut(TokenId, Configuration, &mut Budget) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let trie = self.vocabulary().trie();
        let legal = automaton::legal_bytes(self.automaton(), from, budget)?;
        let mut pending: Vec<(usize, Configuration)> = Vec::new();
        for byte in legal.iter() {
            if let Some(node) = trie.root_child(byte) {
                pending.push((node, from.into()));
            }
        }
        pending.reverse();
        while let Some((node, before)) = pending.pop() {
            budget.spend(4)?;
            let after = automaton::step(self.automaton(), &before, trie.byte(node), budget)?;
            if after.is_empty() {
                continue;
            }
            pending.extend(trie.children(node).map(|child| (child, after.clone())));
            if let Some(&token) = trie.tokens(node).iter().min() {
                visit(token, after, budget)?;
            }
        }
        Ok(())
    }
}

/// Returns the thread of an activation that begins in `state`.
const fn start_in(state: StateId) -> Thread {
    Thread { state, register: None, stack: None, tape: None }
}

fn path(found: &[(Configuration, usize, TokenId)], mut at: usize) -> Vec<TokenId> {
    let mut tokens = Vec::new();
    while let Some((_, before, token)) =
        found.get(at).filter(|(_, before, _)| *before != usize::MAX)
    {
        tokens.push(*token);
        at = *before;
    }
    tokens.reverse();
    tokens
}
