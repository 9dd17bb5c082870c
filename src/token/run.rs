//! Runs: a state that a class of characters leads through one by one takes the tokens of the class from
//! the vocabulary's [`Runs`], and walks only the rests at which tokens leave it.

use smallvec::{SmallVec, smallvec};

use crate::automaton::{Automaton, Row};
use crate::error::Error;
use crate::ids::StateId;
use crate::limits::Budget;
use crate::mask::TokenMask;
use crate::token::local::{Local, LocalAndBelow, too_coarse};
use crate::token::walk::{Stop, Walked, Walker};
use crate::vocab::{RunClass, Runs, Vocabulary};

/// The states that a run of a class of characters leads through.
pub(super) struct Chain {
    /// The state after each number of characters.
    states: Vec<StateId>,
    /// Whether the last state loops on the class; otherwise the class ends there.
    looping: bool,
}

impl Chain {
    /// Follows the class of `runs` from `state` for as long as any token can, or returns `None` where
    /// the characters of the class do not all lead to one state.
    pub(super) fn follow(
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

    /// Walks the rests at which tokens leave the class, and returns the states that tokens of the class
    /// alone lead to, with the least and the greatest number of their members.
    pub(super) fn walk<'a>(
        &self,
        walker: &mut Walker<'a, '_>,
        runs: &'a Runs,
    ) -> Result<Vec<(StateId, usize, usize)>, Stop> {
        let last = self.states.len() - 1;
        let mut members = Vec::with_capacity(self.states.len());
        for (length, &state) in self.states.iter().enumerate() {
            let ends = self.looping && length == last;
            let rests = if ends { runs.rests_from(length) } else { runs.rests(length) };
            rests.map_or(Ok(()), |rests| walker.walk(state, rests))?;
            let (least, most) = (length.max(1), if ends { runs.longest() } else { length });
            if least <= most {
                members.push((state, least, most));
            }
        }
        Ok(members)
    }

    /// Returns the local mask of the first state.
    pub(super) fn local(
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
        match self.walk(&mut walker, runs) {
            Ok(_) => {}
            Err(Stop::Error(error)) => return Err(error),
            Err(Stop::TooCoarse | Stop::TooMany) => return Err(too_coarse()),
        }
        let longest = if self.looping { runs.longest() } else { last };
        let Walked { accepted, below, closers, .. } = walker.finish();
        let mask =
            TokenMask::from_base(vocabulary.len(), runs.up_to(longest), accepted, Vec::new());
        Ok((Local { mask, ends, closers }, below))
    }
}

/// Returns the one state that every character of `class` leads to from `state`, without a frame.
pub(super) fn next_in_run(
    automaton: &Automaton,
    state: StateId,
    class: RunClass,
    budget: &mut Budget,
) -> Result<Option<StateId>, Error> {
    let row = automaton.row(state, budget)?;
    if !class.ascii.difference(&row.bytes()).is_empty() {
        return Ok(None);
    }
    let mut targets: SmallVec<[StateId; 4]> = SmallVec::new();
    if !add_targets(row, class.ascii.iter(), &mut targets) || targets.len() > 1 {
        return Ok(None);
    }
    let target = targets.first().copied();
    if !class.others {
        return Ok(target);
    }
    for group in UTF8 {
        let mut states: SmallVec<[StateId; 4]> = smallvec![state];
        for &(first, last) in *group {
            let mut next: SmallVec<[StateId; 4]> = SmallVec::new();
            for &state in &states {
                if !add_targets(automaton.row(state, budget)?, first..=last, &mut next) {
                    return Ok(None);
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

/// Adds the states that `bytes` lead to by single moves without a frame; returns whether all of them do.
fn add_targets(
    row: &Row,
    bytes: impl Iterator<Item = u8>,
    targets: &mut SmallVec<[StateId; 4]>,
) -> bool {
    // Neighbours mostly are of one class.
    let mut known = None;
    for byte in bytes {
        let class = row.class_of()[usize::from(byte)];
        if known == Some(class) {
            continue;
        }
        known = Some(class);
        match row.simple(byte) {
            Some(state) if targets.contains(&state) => {}
            Some(state) => targets.push(state),
            None => return false,
        }
    }
    true
}

/// Returns whether no byte that starts a member of `class` leads anywhere.
fn is_outside(row: &Row, class: RunClass) -> bool {
    let live = row.bytes();
    let members = class.ascii.intersection(&live).is_empty();
    members && (!class.others || live.iter().all(|byte| byte < 0x80))
}

/// The byte ranges of all characters from U+0080 on (RFC 3629 section 4).
pub(super) const UTF8: &[&[(u8, u8)]] = &[
    &[(0xc2, 0xdf), (0x80, 0xbf)],
    &[(0xe0, 0xe0), (0xa0, 0xbf), (0x80, 0xbf)],
    &[(0xe1, 0xec), (0x80, 0xbf), (0x80, 0xbf)],
    &[(0xed, 0xed), (0x80, 0x9f), (0x80, 0xbf)],
    &[(0xee, 0xef), (0x80, 0xbf), (0x80, 0xbf)],
    &[(0xf0, 0xf0), (0x90, 0xbf), (0x80, 0xbf), (0x80, 0xbf)],
    &[(0xf1, 0xf3), (0x80, 0xbf), (0x80, 0xbf), (0x80, 0xbf)],
    &[(0xf4, 0xf4), (0x80, 0x8f), (0x80, 0xbf), (0x80, 0xbf)],
];
