//! Local masks: a state and a trie of token rests in, the tokens that the state's rule legalises and
//! the rests that go on in the frame below out. Masks of configurations are unions of these.
//!
//! The result depends on the state and the trie alone, not on the stack, so it is memoised for all
//! sequences. Costs a walk over the live part of the trie; for the vocabulary's own trie, states that
//! loop on a usual class of characters take the runs of the class instead.

use smallvec::{SmallVec, smallvec};

use crate::automaton::{Action, Automaton, Row};
use crate::error::Error;
use crate::ids::{StateId, TokenId};
use crate::limits::Budget;
use crate::mask::TokenMask;
use crate::vocab::{Index, RunClass, Runs, Trie, Vocabulary};

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

/// The bottom of a local stack: the frame below the state.
const BASE: u32 = u32::MAX;

/// A thread of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LocalThread {
    state: StateId,
    /// A position in [`Walker::frames`], or [`BASE`].
    stack: u32,
    /// Whether every byte so far went on with the text that was open in the state.
    unbroken: bool,
    /// Texts ended that must be fresh.
    closes: u8,
    /// Whether the first of them was open in the state.
    first_was_open: bool,
}

type Threads = SmallVec<[LocalThread; 1]>;

/// A node of the trie that the walk is below.
struct Level {
    end: usize,
    threads: Threads,
    /// Frames in use before this node.
    frames: usize,
}

/// Walks tries from a state.
struct Walker<'a, 'b> {
    automaton: &'a Automaton,
    budget: &'b mut Budget,
    frames: Vec<(StateId, u32)>,
    accepted: Vec<TokenId>,
    /// Where the rule ends inside tokens.
    pops: Vec<(&'a Trie, usize)>,
    closers: Vec<(TokenId, u8)>,
    threads: usize,
}

/// Returns the local mask of `state` over the vocabulary's own trie.
pub(crate) fn of_vocabulary(
    automaton: &Automaton,
    vocabulary: &Vocabulary,
    state: StateId,
    budget: &mut Budget,
) -> Result<LocalAndBelow, Error> {
    let width = vocabulary.len();
    for (number, class) in Index::classes().into_iter().enumerate() {
        if next_in_run(automaton, state, class, budget)?.is_none() {
            continue;
        }
        if let Some(runs) = vocabulary.runs(number)
            && let Some(chain) = Chain::follow(automaton, state, runs, budget)?
        {
            return chain.local(automaton, runs, width, budget);
        }
        break;
    }
    of_trie(automaton, vocabulary.trie(), width, state, budget)
}

/// Returns the local mask of `state` over a trie of rests.
pub(crate) fn of_trie(
    automaton: &Automaton,
    trie: &Trie,
    width: usize,
    state: StateId,
    budget: &mut Budget,
) -> Result<LocalAndBelow, Error> {
    let mut walker = Walker::new(automaton, budget);
    walker.walk(state, trie)?;
    let mask = TokenMask::from_ids(width, std::mem::take(&mut walker.accepted));
    let ends = automaton.row(state, walker.budget)?.is_accepting();
    Ok(walker.finish(mask, ends))
}

impl<'a, 'b> Walker<'a, 'b> {
    fn new(automaton: &'a Automaton, budget: &'b mut Budget) -> Self {
        Self {
            automaton,
            budget,
            frames: Vec::new(),
            accepted: Vec::new(),
            pops: Vec::new(),
            closers: Vec::new(),
            threads: 1,
        }
    }

    fn finish(self, mask: TokenMask, ends: bool) -> LocalAndBelow {
        let below = Trie::merge(&self.pops);
        (Local { mask, ends, closers: self.closers, threads: self.threads }, below)
    }

    /// Walks the whole trie from `state`.
    fn walk(&mut self, state: StateId, trie: &'a Trie) -> Result<(), Error> {
        let row = self.automaton.row(state, self.budget)?;
        let start: Threads = smallvec![LocalThread {
            state,
            stack: BASE,
            unbroken: row.is_recording(),
            closes: 0,
            first_was_open: false
        }];
        for byte in row.bytes().iter() {
            if let Some(node) = trie.root_child(byte) {
                self.walk_subtree(&start, trie, node)?;
            }
        }
        Ok(())
    }

    fn walk_subtree(&mut self, start: &Threads, trie: &'a Trie, root: usize) -> Result<(), Error> {
        let end = trie.end(root);
        let mut levels: Vec<Level> =
            vec![Level { end, threads: start.clone(), frames: self.frames.len() }];
        let mut node = root;
        while node < end {
            while levels.len() > 1 && levels.last().is_some_and(|level| level.end <= node) {
                if let Some(level) = levels.pop() {
                    self.frames.truncate(level.frames);
                }
            }
            self.budget.spend(1)?;
            let frames = self.frames.len();
            let from = levels.last().map_or(&start[..], |level| &level.threads[..]);
            let threads = self.step(from, trie.byte(node))?;
            if threads.is_empty() {
                node = trie.end(node);
                continue;
            }
            self.arrive(&threads, trie, node)?;
            let subtree_end = trie.end(node);
            node += 1;
            if subtree_end > node {
                levels.push(Level { end: subtree_end, threads, frames });
            } else {
                self.frames.truncate(frames);
            }
        }
        if let Some(first) = levels.first() {
            self.frames.truncate(first.frames);
        }
        Ok(())
    }

    /// Returns the threads after `byte`.
    fn step(&mut self, from: &[LocalThread], byte: u8) -> Result<Threads, Error> {
        let mut to = Threads::new();
        for &thread in from {
            let mut at = thread;
            loop {
                let row = self.automaton.row(at.state, self.budget)?;
                self.follow(row, at, byte, &mut to);
                if !row.is_accepting() || at.stack == BASE {
                    break;
                }
                let (ret, parent) = self.frames[at.stack as usize];
                at = LocalThread { state: ret, stack: parent, ..at };
            }
        }
        self.threads = self.threads.max(to.len());
        if to.len() > 1 {
            self.budget.spend(to.len() as u64)?;
        }
        Ok(to)
    }

    fn follow(&mut self, row: &Row, at: LocalThread, byte: u8, to: &mut Threads) {
        for step in row.moves(byte) {
            let mut next = LocalThread { state: step.target, ..at };
            for &ret in &step.pushes {
                self.frames.push((ret, next.stack));
                // As many frames as bytes of one token and threads: far below 2^32.
                next.stack = u32::try_from(self.frames.len() - 1).unwrap_or(BASE);
            }
            if step.action == Action::Close {
                next.first_was_open |= next.unbroken && !step.fresh;
                next.closes = next.closes.saturating_add(1);
            }
            next.unbroken &= step.action == Action::Record && !step.fresh;
            if !to.iter().any(|known| self.same(known, &next)) {
                to.push(next);
            }
        }
    }

    fn same(&self, a: &LocalThread, b: &LocalThread) -> bool {
        let facts = |thread: &LocalThread| {
            (thread.state, thread.unbroken, thread.closes, thread.first_was_open)
        };
        if facts(a) != facts(b) {
            return false;
        }
        let (mut a, mut b) = (a.stack, b.stack);
        while a != b {
            match (self.frames.get(a as usize), self.frames.get(b as usize)) {
                (Some(x), Some(y)) if x.0 == y.0 => (a, b) = (x.1, y.1),
                _ => return false,
            }
        }
        true
    }

    /// Takes note of the tokens that end at a node, and of the rule's ending there.
    fn arrive(
        &mut self,
        threads: &[LocalThread],
        trie: &'a Trie,
        node: usize,
    ) -> Result<(), Error> {
        let tokens = trie.tokens(node);
        self.accepted.extend_from_slice(tokens);
        let others = |thread: &&LocalThread| thread.closes > u8::from(thread.first_was_open);
        let closes = threads.iter().filter(others).map(|thread| thread.closes).max().unwrap_or(0);
        if closes > 0 {
            self.closers.extend(tokens.iter().map(|&token| (token, closes)));
        }
        if trie.end(node) == node + 1 {
            return Ok(());
        }
        let mut pops = false;
        for &thread in threads {
            let mut at = thread;
            while self.automaton.row(at.state, self.budget)?.is_accepting() {
                if at.stack == BASE {
                    pops = true;
                    break;
                }
                let (ret, parent) = self.frames[at.stack as usize];
                at = LocalThread { state: ret, stack: parent, ..at };
            }
        }
        if pops {
            self.pops.push((trie, node));
            if closes > 0 {
                // What becomes of these is decided below, and they have ended a text here.
                let rest = trie.subtree_tokens(node);
                self.closers.extend(rest[tokens.len()..].iter().map(|&token| (token, closes)));
            }
        }
        Ok(())
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
        budget: &mut Budget,
    ) -> Result<Option<Self>, Error> {
        let mut states = vec![state];
        let mut last = state;
        loop {
            // A rule that may end inside the run would leave rests of its members below.
            if automaton.row(last, budget)?.is_accepting() {
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
        runs: &Runs,
        width: usize,
        budget: &mut Budget,
    ) -> Result<LocalAndBelow, Error> {
        let mut walker = Walker::new(automaton, budget);
        let last = self.states.len() - 1;
        for (length, &state) in self.states.iter().enumerate() {
            let rests = if self.looping && length == last {
                runs.rests_from(length)
            } else {
                runs.rests(length)
            };
            if let Some(rests) = rests {
                walker.walk(state, rests)?;
            }
        }
        let longest = if self.looping { runs.longest() } else { last };
        let accepted = std::mem::take(&mut walker.accepted);
        let mask = TokenMask::from_base(width, runs.up_to(longest), accepted, Vec::new());
        Ok(walker.finish(mask, false))
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
