//! How many tokens complete an output: a bound that costs a few look-ups, and the least number by
//! search.
//!
//! The bound adds up, for the state and for each frame below it, the tokens that spell a shortest text
//! of what is left of its rule. That text depends on the state alone, so its tokens are counted once and
//! the sums are kept in the stacks, as the bytes are. Tokens that reach across the end of a rule are
//! not used, so the bound can be higher than the least number, never lower.

use hashbrown::HashMap;

use crate::automaton::{self, Configuration, Thread};
use crate::error::Error;
use crate::ids::{StateId, TokenId};
use crate::limits::Budget;
use crate::step_error::StepError;
use crate::token::spell::fewest_tokens;
use crate::token::tables::{read, write};
use crate::token::{Matcher, TokenAutomaton};

/// Stands for a number of tokens that is not known.
pub(crate) const UNKNOWN: u64 = u64::MAX;

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
    /// [`UNKNOWN`]. It is not known where earlier texts forbid some.
    pub(crate) fn enough_tokens(
        &self,
        threads: &[Thread],
        budget: &mut Budget,
    ) -> Result<u64, Error> {
        let mut best = UNKNOWN;
        for thread in threads {
            if thread.register.is_some() || thread.tape.is_some() {
                continue;
            }
            let own = self.own_tokens(thread.state, budget)?;
            let rest = match &thread.stack {
                None => 0,
                Some(stack) => automaton::sum_below(
                    stack,
                    |stack| &stack.tokens,
                    budget,
                    &mut |frame, budget| match frame.register {
                        Some(_) => Ok(UNKNOWN),
                        None => self.own_tokens(frame.ret, budget),
                    },
                )?,
            };
            best = best.min(own.saturating_add(rest));
        }
        Ok(best)
    }

    /// Returns [`Matcher::completion`] at the start, within any number of tokens. Kept, so that
    /// sequences cost no search each.
    pub(crate) fn completion_of_start(
        &self,
        start: &Matcher,
    ) -> Result<Option<Completion>, StepError> {
        if let Some(known) = self.start_completion.get() {
            return Ok(known.clone());
        }
        let found = start.completion(usize::MAX)?;
        Ok(self.start_completion.get_or_init(|| found).clone())
    }

    /// Returns how many tokens spell a shortest text that ends the rule of `state`.
    fn own_tokens(&self, state: StateId, budget: &mut Budget) -> Result<u64, Error> {
        if let Some(&known) = read(&self.closings).get(&state) {
            return Ok(known);
        }
        let thread = Thread { state, register: None, stack: None, tape: None };
        let text = automaton::shortest_completion(self.automaton(), &[thread], budget)?;
        let tokens =
            fewest_tokens(self.vocabulary(), &text).map_or(UNKNOWN, |tokens| tokens.len() as u64);
        write(&self.closings).insert(state, tokens);
        Ok(tokens)
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
                self.each_token(&threads, budget, |token, after, budget| {
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
