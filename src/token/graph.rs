//! The token-level automaton, as far as sequences have gone along it: its states are configurations,
//! each with its mask once that was asked for, and tokens lead from one to the next.
//!
//! A known step is two look-ups without a lock. All of it is a memo: transitions may be forgotten, and
//! a configuration that has no state here is stepped byte by byte. Those that remember texts have none,
//! nor have deep ones.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::automaton::{self, Automaton, Configuration, Thread};
use crate::error::Error;
use crate::ids::TokenId;
use crate::limits::Budget;
use crate::mask::TokenMask;
use crate::token::tables::{Map, TokenAutomaton, read, write};

/// Configurations with more frames have no state, so that finding the state of one is cheap.
const MAX_DEPTH: u32 = 32;

/// Bits of the number of a state in a [`Transitions`] word, and so of the number of states.
const STATE_BITS: u32 = 20;

/// Bits of the number of a token there.
const TOKEN_BITS: u32 = 24;

/// The number of transitions that are kept at once.
const TRANSITIONS: usize = 1 << 12;

/// A state of the token-level automaton.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenStateId(u32);

impl TokenStateId {
    /// Returns the state at a place in the table, of which there are no more than 2^[`STATE_BITS`].
    fn at(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }

    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a sequence stands.
#[derive(Clone, Debug)]
pub(crate) enum Position {
    /// In a state of the token-level automaton.
    State(TokenStateId),
    /// In a configuration that has none.
    Configuration(Configuration),
}

impl Position {
    /// Before the first token.
    pub(crate) const START: Self = Self::State(TokenStateId(0));
}

#[derive(Debug)]
struct TokenState {
    configuration: Configuration,
    mask: OnceLock<TokenMask>,
}

impl TokenState {
    fn new(configuration: Configuration) -> Self {
        Self { configuration, mask: OnceLock::new() }
    }
}

/// The states and the transitions between them.
#[derive(Debug)]
pub(crate) struct Graph {
    states: boxcar::Vec<TokenState>,
    /// States by [`automaton::structure`].
    ids: Map<Box<[u64]>, TokenStateId>,
    transitions: Transitions,
}

impl Graph {
    /// Returns the graph of `automaton` with its first state alone.
    pub(crate) fn new(automaton: &Automaton) -> Self {
        let states = boxcar::Vec::new();
        states.push(TokenState::new(smallvec::smallvec![Thread::start(automaton)]));
        Self { states, ids: Map::default(), transitions: Transitions::default() }
    }

    /// Returns the number of states.
    pub(crate) fn len(&self) -> usize {
        self.states.count()
    }
}

impl TokenAutomaton {
    /// Returns the configuration at a position.
    pub(crate) fn configuration<'a>(&'a self, at: &'a Position) -> &'a Configuration {
        match at {
            Position::State(state) => &self.graph.states[state.index()].configuration,
            Position::Configuration(configuration) => configuration,
        }
    }

    /// Returns the tokens that are legal at a position, end tokens included.
    pub(crate) fn mask_at<'a>(
        &'a self,
        at: &'a Position,
        budget: &mut Budget,
    ) -> Result<Cow<'a, TokenMask>, Error> {
        let state = match at {
            Position::State(state) => &self.graph.states[state.index()],
            Position::Configuration(configuration) => {
                return Ok(Cow::Owned(self.mask(configuration, budget)?.0));
            }
        };
        if let Some(mask) = state.mask.get() {
            return Ok(Cow::Borrowed(mask));
        }
        let (mask, kept) = self.mask(&state.configuration, budget)?;
        if kept || self.reserve(mask.memory()) {
            Ok(Cow::Borrowed(state.mask.get_or_init(|| mask)))
        } else {
            Ok(Cow::Owned(mask))
        }
    }

    /// Returns the position after a token, if the transition is known.
    pub(crate) fn known(&self, at: &Position, token: TokenId) -> Option<Position> {
        let &Position::State(from) = at else { return None };
        self.graph.transitions.get(from, token).map(Position::State)
    }

    /// Returns the position after a token that has a text, or the number of bytes that were legal, and
    /// makes the transition known.
    pub(crate) fn next(
        &self,
        at: &Position,
        token: TokenId,
        budget: &mut Budget,
    ) -> Result<Result<Position, usize>, Error> {
        let next = self.next_by_bytes(at, self.vocabulary().bytes(token), budget)?;
        if let (&Position::State(from), &Ok(Position::State(to))) = (at, &next) {
            let transitions = &self.graph.transitions;
            if transitions.words.get().is_some() || self.reserve(Transitions::BYTES) {
                transitions.set(from, token, to);
            }
        }
        Ok(next)
    }

    /// Returns the position after a text, or the number of bytes that were legal.
    pub(crate) fn next_by_bytes(
        &self,
        at: &Position,
        bytes: &[u8],
        budget: &mut Budget,
    ) -> Result<Result<Position, usize>, Error> {
        let before = self.configuration(at);
        Ok(match self.after(before, bytes, budget)? {
            Ok(after) if stands_alike(before, &after) => Ok(at.clone()),
            Ok(after) => Ok(self.position(after, budget)?),
            Err(legal) => Err(legal),
        })
    }

    /// Returns the position of a configuration.
    fn position(&self, at: Configuration, budget: &mut Budget) -> Result<Position, Error> {
        if at.iter().any(|thread| thread.depth() > MAX_DEPTH) {
            return Ok(Position::Configuration(at));
        }
        let Some(structure) = automaton::structure(&at, budget)? else {
            return Ok(Position::Configuration(at));
        };
        let graph = &self.graph;
        if let Some(&known) = read(&graph.ids).get(&structure[..]) {
            return Ok(Position::State(known));
        }
        let most = self.automaton().limits().token_states.min(1 << STATE_BITS);
        let memory = size_of::<TokenState>() + structure.len() * 16 + 64;
        let mut ids = write(&graph.ids);
        if let Some(&known) = ids.get(&structure[..]) {
            return Ok(Position::State(known));
        }
        if graph.len() >= most || !self.reserve(memory) {
            return Ok(Position::Configuration(at));
        }
        let state = TokenStateId::at(graph.states.push(TokenState::new(at)));
        ids.insert(structure.into(), state);
        Ok(Position::State(state))
    }
}

/// Returns whether two configurations surely are one, as is seen at a glance: those of a loop on text.
fn stands_alike(a: &[Thread], b: &[Thread]) -> bool {
    matches!((a, b), ([a], [b]) if a.is_surely(b))
}

/// Transitions by their state and token, in a table of two ways. Each is one word, so that it is whole
/// or absent whatever other threads do; a new one may take the place of another.
#[derive(Debug, Default)]
struct Transitions {
    words: OnceLock<Box<[AtomicU64]>>,
}

impl Transitions {
    /// What the table takes, once there is a transition.
    const BYTES: usize = TRANSITIONS * size_of::<AtomicU64>();

    fn get(&self, from: TokenStateId, token: TokenId) -> Option<TokenStateId> {
        let words = self.words.get()?;
        let key = key(from, token)?;
        let slot = slot(key);
        [slot, slot ^ 1].into_iter().find_map(|slot| {
            let word = words[slot].load(Ordering::Relaxed);
            let to = u32::try_from(word & ((1 << STATE_BITS) - 1)).ok()?;
            (word >> STATE_BITS == key).then_some(TokenStateId(to))
        })
    }

    fn set(&self, from: TokenStateId, token: TokenId, to: TokenStateId) {
        let Some(key) = key(from, token) else { return };
        let words =
            self.words.get_or_init(|| (0..TRANSITIONS).map(|_| AtomicU64::new(0)).collect());
        let slot = slot(key);
        let is_free = |slot: &usize| words[*slot].load(Ordering::Relaxed) == 0;
        let free = [slot, slot ^ 1].into_iter().find(is_free).unwrap_or(slot);
        words[free].store(key << STATE_BITS | u64::from(to.0), Ordering::Relaxed);
    }
}

/// Returns the state and the token of a transition as one number, which is not 0; `None` for tokens of
/// too high a number.
fn key(from: TokenStateId, token: TokenId) -> Option<u64> {
    let token = u64::from(token.get()) + 1;
    (token < 1 << TOKEN_BITS).then_some(u64::from(from.0) << TOKEN_BITS | token)
}

/// Returns where a transition belongs.
fn slot(key: u64) -> usize {
    // Fibonacci hashing: 2^64 divided by the golden ratio.
    let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    usize::try_from(hash >> (u64::BITS - TRANSITIONS.ilog2())).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::*;

    #[test]
    fn a_transition_leads_where_it_was_set_to_or_is_forgotten() {
        let table = Transitions::default();
        let mut rng = StdRng::seed_from_u64(1);
        let mut set = HashMap::new();
        for _ in 0..20_000 {
            let from = TokenStateId(rng.random_range(0..1 << STATE_BITS));
            // The highest number that fits, one that does not, and usual ones.
            let token = TokenId::new(match rng.random_range(0..20) {
                0 => (1 << TOKEN_BITS) - 2,
                1 => (1 << TOKEN_BITS) - 1,
                _ => rng.random_range(0..200_000),
            });
            let to = TokenStateId(rng.random_range(0..1 << STATE_BITS));
            let to = *set.entry((from.0, token)).or_insert(to);
            assert!(table.get(from, token).is_none_or(|found| found == to));
            table.set(from, token, to);
            let fits = token.get() + 1 < 1 << TOKEN_BITS;
            assert_eq!(table.get(from, token), fits.then_some(to));
        }
        let known = set.iter().filter(|&(&(from, token), &to)| {
            let found = table.get(TokenStateId(from), token);
            assert!(found.is_none_or(|found| found == to));
            found.is_some()
        });
        let known = known.count();
        assert!((TRANSITIONS * 9 / 10..=TRANSITIONS).contains(&known), "{known}");
    }
}
