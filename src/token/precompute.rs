//! Precomputing: every state that can be reached, and every mask that can be needed, under a budget.
//!
//! States are explored byte by byte. Which frames can lie below a state follows from the moves that
//! push them, so that the rests which a token leaves behind are walked from exactly those states that
//! may take them up. What the budget leaves out is computed at run time by the same code.

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};

use crate::error::Error;
use crate::ids::StateId;
use crate::limits::BudgetExceeded;
use crate::token::TokenAutomaton;
use crate::token::tables::{LocalId, RestId, Stats};

/// How much to precompute.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PrecomputeOptions {
    /// States to explore at most. Default 200,000.
    pub states: usize,
    /// Local masks to compute at most. Default 1,000,000.
    pub masks: usize,
}

impl Default for PrecomputeOptions {
    fn default() -> Self {
        Self { states: 200_000, masks: 1_000_000 }
    }
}

impl PrecomputeOptions {
    /// Sets [`PrecomputeOptions::states`].
    #[must_use]
    pub const fn max_states(mut self, states: usize) -> Self {
        self.states = states;
        self
    }

    /// Sets [`PrecomputeOptions::masks`].
    #[must_use]
    pub const fn max_masks(mut self, masks: usize) -> Self {
        self.masks = masks;
        self
    }
}

/// What precomputing did.
#[derive(Clone, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct PrecomputeReport {
    /// Whether every reachable state and every mask that can be needed is there.
    pub complete: bool,
    /// Why it is not, if it is not.
    pub stopped_by: Option<String>,
    /// States explored.
    pub states: usize,
    /// Local masks that are different from each other.
    pub distinct_masks: usize,
    /// The size of everything after precomputing.
    pub stats: Stats,
}

/// What may lie below each state.
#[derive(Default)]
struct Below {
    /// The states that can stand on an empty stack.
    bottoms: HashSet<StateId>,
    /// The states that a frame right below may return to.
    returns: HashMap<StateId, HashSet<StateId>>,
    /// States whose frames below are also those of others: `(from, to)`.
    same_frames: HashMap<StateId, HashSet<StateId>>,
}

impl TokenAutomaton {
    /// Computes all reachable states and masks within the options and limits, calling `progress` with
    /// the numbers of states and masks done so far.
    ///
    /// # Errors
    ///
    /// What expanding a lazy part of the grammar says, other than that a budget is spent: then the
    /// report says so, and nothing is lost.
    pub fn precompute(
        &self,
        options: &PrecomputeOptions,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<PrecomputeReport, Error> {
        let mut done = 0;
        let mut stopped_by = None;
        let states = match self.explore(options, progress, &mut done) {
            Ok(states) => states,
            Err(error) => match error.kind() {
                crate::ErrorKind::BudgetExceeded(budget) => {
                    stopped_by = Some(budget.to_string());
                    done
                }
                _ => return Err(error),
            },
        };
        Ok(PrecomputeReport {
            complete: stopped_by.is_none(),
            stopped_by,
            states,
            distinct_masks: self.distinct_masks(),
            stats: self.stats(),
        })
    }

    /// Explores states, then masks; returns the number of states.
    fn explore(
        &self,
        options: &PrecomputeOptions,
        progress: &mut dyn FnMut(usize, usize),
        done: &mut usize,
    ) -> Result<usize, Error> {
        let mut below = Below::default();
        let start = self.automaton().start();
        let mut seen: HashSet<StateId> = HashSet::from([start]);
        let mut queue = VecDeque::from([start]);
        while let Some(state) = queue.pop_front() {
            if seen.len() > options.states {
                return Err(
                    BudgetExceeded::new("states of precomputing", options.states as u64).into()
                );
            }
            let mut budget = self.automaton().step_budget();
            let row = self.automaton().row(state, &mut budget)?;
            *done += 1;
            progress(*done, 0);
            for (_, moves) in row.classes() {
                for step in moves {
                    below.note(state, &step.pushes, step.target);
                    for next in step.pushes.iter().chain([&step.target]) {
                        if seen.insert(*next) {
                            queue.push_back(*next);
                        }
                    }
                }
            }
        }
        below.spread(start);
        self.explore_masks(&seen, &below, options, progress)?;
        Ok(seen.len())
    }

    fn explore_masks(
        &self,
        states: &HashSet<StateId>,
        below: &Below,
        options: &PrecomputeOptions,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<(), Error> {
        let mut seen: HashSet<LocalId> = HashSet::new();
        let mut sorted: Vec<StateId> = states.iter().copied().collect();
        sorted.sort_unstable();
        let mut queue: VecDeque<LocalId> = VecDeque::new();
        for state in sorted {
            below.add(state, RestId::VOCABULARY, &mut queue);
        }
        while let Some((state, rest, framed)) = queue.pop_front() {
            if !seen.insert((state, rest, framed)) {
                continue;
            }
            if seen.len() > options.masks {
                return Err(
                    BudgetExceeded::new("masks of precomputing", options.masks as u64).into()
                );
            }
            let mut budget = self.automaton().step_budget();
            let left = self.local_rest((state, rest, framed), &mut budget)?;
            let ends = framed
                && rest != RestId::VOCABULARY
                && self.automaton().row(state, &mut budget)?.is_accepting();
            for rest in left.into_iter().chain(ends.then_some(rest)) {
                for &ret in below.returns.get(&state).into_iter().flatten() {
                    below.add(ret, rest, &mut queue);
                }
            }
            progress(states.len(), seen.len());
        }
        if self.stats().mask_bytes >= self.automaton().limits().mask_bytes {
            let limit = self.automaton().limits().mask_bytes;
            return Err(BudgetExceeded::new("mask_bytes", limit as u64).into());
        }
        Ok(())
    }
}

impl Below {
    /// Appends the local masks of a state over rests, with and without a frame below as can be.
    fn add(&self, state: StateId, rest: RestId, queue: &mut VecDeque<LocalId>) {
        if self.bottoms.contains(&state) {
            queue.push_back((state, rest, false));
        }
        if self.returns.contains_key(&state) {
            queue.push_back((state, rest, true));
        }
    }

    /// Notes a move from `state` to `target` that pushes frames, outermost first.
    fn note(&mut self, state: StateId, pushes: &[StateId], target: StateId) {
        let mut under = None;
        for &ret in pushes.iter().chain([&target]) {
            match under {
                // The outermost lies on whatever lies below the state itself.
                None => {
                    self.same_frames.entry(state).or_default().insert(ret);
                }
                Some(frame) => {
                    self.returns.entry(ret).or_default().insert(frame);
                }
            }
            under = Some(ret);
        }
    }

    /// Carries returns along moves that keep the frames, until nothing changes.
    fn spread(&mut self, start: StateId) {
        let mut open = vec![start];
        while let Some(state) = open.pop() {
            if self.bottoms.insert(state) {
                open.extend(self.same_frames.get(&state).into_iter().flatten());
            }
        }
        let mut queue: VecDeque<StateId> = self.returns.keys().copied().collect();
        while let Some(state) = queue.pop_front() {
            let Some(returns) = self.returns.get(&state).cloned() else { continue };
            for &next in self.same_frames.get(&state).into_iter().flatten() {
                let known = self.returns.entry(next).or_default();
                let before = known.len();
                known.extend(&returns);
                if known.len() > before {
                    queue.push_back(next);
                }
            }
        }
    }
}
