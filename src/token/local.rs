//! Local masks: a state and a trie of token rests in, the tokens that the state's rule legalises and
//! the rests that go on in the frame below out. Masks of configurations are unions of these.
//!
//! The result depends on the state and the trie alone, not on the stack, so it is memoised for all
//! sequences. Costs a walk over the live part of the trie; for the vocabulary's own trie, states that
//! loop on a usual class of characters take the runs of the class instead.

use smallvec::{SmallVec, smallvec};

use crate::automaton::{Automaton, Row};
use crate::error::{Error, ErrorKind};
use crate::ids::{StateId, TokenId};
use crate::limits::Budget;
use crate::mask::TokenMask;
use crate::token::walk::{Stop, Walked, Walker};
use crate::vocab::{Index, Partition, RunClass, Runs, Trie, Vocabulary};

/// What a state makes legal of a trie of token rests.
#[derive(Debug)]
pub(crate) struct Local {
    /// The tokens whose rests stay within the state's rule, or end exactly where it may.
    pub(crate) mask: TokenMask,
    /// Whether the rule may end before the first byte, so that the whole trie goes on below.
    pub(crate) ends: bool,
    /// Tokens that end texts that must be fresh, and how many. Tokens that end only the one that is
    /// open in the state are left out: the register tells which of those repeat a text.
    pub(crate) closers: Vec<(TokenId, u8)>,
    /// The greatest number of threads that any token leads to.
    pub(crate) threads: usize,
}

/// A local mask, and the rests that are left where the rule ends inside a token.
pub(crate) type LocalAndBelow = (Local, Trie);

/// Fewer trie nodes than this below the live bytes of a state are walked as they are: a quotient would
/// have hardly fewer.
const SMALL_WALK: usize = 8_000;

/// Returns the local mask of `state` over the vocabulary's own trie. The rests below are left empty
/// unless `framed`.
pub(crate) fn of_vocabulary(
    automaton: &Automaton,
    vocabulary: &Vocabulary,
    state: StateId,
    framed: bool,
    budget: &mut Budget,
) -> Result<LocalAndBelow, Error> {
    let width = vocabulary.len();
    for (number, class) in Index::classes().into_iter().enumerate() {
        if next_in_run(automaton, state, class, budget)?.is_none() {
            continue;
        }
        if let Some(runs) = vocabulary.runs(number)
            && let Some(chain) = Chain::follow(automaton, state, runs, framed, budget)?
        {
            return chain.local(automaton, vocabulary, runs, framed, budget);
        }
        break;
    }
    let trie = vocabulary.trie();
    let row = automaton.row(state, budget)?;
    let roots = || row.bytes().iter().filter_map(|byte| trie.root_child(byte));
    let reach: usize = roots().map(|node| trie.end(node) - node).sum();
    if reach > SMALL_WALK {
        let quotients = (0..).map_while(|number| vocabulary.quotient(number));
        for (partition, quotient) in quotients {
            if let Some(walked) =
                walk(automaton, vocabulary, quotient, Some(partition), state, framed, budget)?
            {
                return Ok(walked.into_local(width));
            }
        }
    }
    of_trie(automaton, vocabulary, trie, state, framed, budget)
}

/// Returns the local mask of `state` over a trie of rests.
pub(crate) fn of_trie(
    automaton: &Automaton,
    vocabulary: &Vocabulary,
    trie: &Trie,
    state: StateId,
    framed: bool,
    budget: &mut Budget,
) -> Result<LocalAndBelow, Error> {
    let walked = walk(automaton, vocabulary, trie, None, state, framed, budget)?;
    Ok(walked.ok_or_else(too_coarse)?.into_local(vocabulary.len()))
}

/// Walks one trie. Returns `None` if the partition is too coarse for a state that the walk met.
fn walk(
    automaton: &Automaton,
    vocabulary: &Vocabulary,
    trie: &Trie,
    partition: Option<&Partition>,
    state: StateId,
    framed: bool,
    budget: &mut Budget,
) -> Result<Option<Walked>, Error> {
    let ends = automaton.row(state, budget)?.is_accepting();
    let mut walker = Walker::new(automaton, vocabulary, partition, framed, budget);
    match walker.walk(state, trie) {
        Ok(()) => Ok(Some(Walked { ends, ..walker.finish() })),
        Err(Stop::TooCoarse) => Ok(None),
        Err(Stop::Error(error)) => Err(error),
    }
}

/// The error of a walk over bytes as they are that finds them too coarse, which cannot be.
fn too_coarse() -> Error {
    let kind = ErrorKind::UnsupportedFeature { feature: "quotient".into() };
    Error::new(kind, "a walk over bytes asked for a finer partition of them")
}

impl Walked {
    fn into_local(self, width: usize) -> LocalAndBelow {
        let mask = TokenMask::from_ids(width, self.accepted);
        (Local { mask, ends: self.ends, closers: self.closers, threads: self.threads }, self.below)
    }
}

/// The states that a run of a class of characters leads through.
struct Chain {
    /// The state after each number of characters.
    states: Vec<StateId>,
    /// Whether the last state loops on the class; otherwise the class ends there.
    looping: bool,
}

impl Chain {
    /// Follows the class of `runs` from `state` for as long as any token can, or returns `None` where
    /// the characters of the class do not all lead to one state.
    fn follow(
        automaton: &Automaton,
        state: StateId,
        runs: &Runs,
        framed: bool,
        budget: &mut Budget,
    ) -> Result<Option<Self>, Error> {
        let mut states = vec![state];
        let mut last = state;
        loop {
            // A rule that may end inside the run would leave rests of its members below.
            if framed && automaton.row(last, budget)?.is_accepting() {
                return Ok(None);
            }
            if !runs.any_longer_than(states.len() - 1) {
                break;
            }
            match next_in_run(automaton, last, runs.class(), budget)? {
                Some(next) if next == last => return Ok(Some(Self { states, looping: true })),
                Some(next) => {
                    states.push(next);
                    last = next;
                }
                None if is_outside(automaton.row(last, budget)?, runs.class()) => break,
                None => return Ok(None),
            }
        }
        Ok(Some(Self { states, looping: false }))
    }

    /// Returns the local mask of the first state.
    fn local(
        &self,
        automaton: &Automaton,
        vocabulary: &Vocabulary,
        runs: &Runs,
        framed: bool,
        budget: &mut Budget,
    ) -> Result<LocalAndBelow, Error> {
        let last = self.states.len() - 1;
        let ends = automaton.row(self.states[0], budget)?.is_accepting();
        let mut walker = Walker::new(automaton, vocabulary, None, framed, budget);
        for (length, &state) in self.states.iter().enumerate() {
            let rests = if self.looping && length == last {
                runs.rests_from(length)
            } else {
                runs.rests(length)
            };
            match rests.map_or(Ok(()), |rests| walker.walk(state, rests)) {
                Ok(()) => {}
                Err(Stop::Error(error)) => return Err(error),
                Err(Stop::TooCoarse) => return Err(too_coarse()),
            }
        }
        let longest = if self.looping { runs.longest() } else { last };
        let Walked { accepted, below, closers, threads, .. } = walker.finish();
        let mask =
            TokenMask::from_base(vocabulary.len(), runs.up_to(longest), accepted, Vec::new());
        Ok((Local { mask, ends, closers, threads }, below))
    }
}

/// Returns the one state that every character of `class` leads to from `state`, without a frame.
fn next_in_run(
    automaton: &Automaton,
    state: StateId,
    class: RunClass,
    budget: &mut Budget,
) -> Result<Option<StateId>, Error> {
    let row = automaton.row(state, budget)?;
    let mut target = None;
    for byte in class.ascii.iter() {
        match (row.simple(byte), target) {
            (Some(next), None) => target = Some(next),
            (Some(next), Some(known)) if next == known => {}
            _ => return Ok(None),
        }
    }
    if !class.others {
        return Ok(target);
    }
    for group in UTF8 {
        let mut states: SmallVec<[StateId; 4]> = smallvec![state];
        for &(first, last) in *group {
            let mut next: SmallVec<[StateId; 4]> = SmallVec::new();
            for &state in &states {
                let row = automaton.row(state, budget)?;
                for byte in first..=last {
                    match row.simple(byte) {
                        Some(state) if next.contains(&state) => {}
                        Some(state) => next.push(state),
                        None => return Ok(None),
                    }
                }
            }
            states = next;
        }
        if states.iter().any(|&state| Some(state) != target) {
            return Ok(None);
        }
    }
    Ok(target)
}

/// Returns whether no byte that starts a member of `class` leads anywhere.
fn is_outside(row: &Row, class: RunClass) -> bool {
    let live = row.bytes();
    let members = class.ascii.intersection(&live).is_empty();
    members && (!class.others || live.iter().all(|byte| byte < 0x80))
}

/// The byte ranges of all characters from U+0080 on (RFC 3629 section 4).
const UTF8: &[&[(u8, u8)]] = &[
    &[(0xc2, 0xdf), (0x80, 0xbf)],
    &[(0xe0, 0xe0), (0xa0, 0xbf), (0x80, 0xbf)],
    &[(0xe1, 0xec), (0x80, 0xbf), (0x80, 0xbf)],
    &[(0xed, 0xed), (0x80, 0x9f), (0x80, 0xbf)],
    &[(0xee, 0xef), (0x80, 0xbf), (0x80, 0xbf)],
    &[(0xf0, 0xf0), (0x90, 0xbf), (0x80, 0xbf), (0x80, 0xbf)],
    &[(0xf1, 0xf3), (0x80, 0xbf), (0x80, 0xbf), (0x80, 0xbf)],
    &[(0xf4, 0xf4), (0x80, 0x8f), (0x80, 0xbf), (0x80, 0xbf)],
];
