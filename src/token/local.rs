//! Local masks: a state and a trie of token rests in, the tokens that the state's rule legalises and
//! the rests that go on in the frame below out. Masks of configurations are unions of these.
//!
//! The result depends on the state and the trie alone, not on the stack, so it is memoised for all
//! sequences. Costs a walk over the live part of the trie; for the vocabulary's own trie, states that
//! loop on a usual class of characters take the runs of the class instead.

use hashbrown::HashMap;
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
const BASE: u32 = 0;

/// A local stack, seen from its top. Number [`BASE`] is the bottom alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct LocalStack {
    /// The frames that may be uppermost: the state to return to, and the stack below.
    frames: SmallVec<[(StateId, u32); 1]>,
    /// Whether the stack may also be at its bottom.
    bottom: bool,
}

/// A thread of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LocalThread {
    state: StateId,
    /// A position in [`Walker::stacks`].
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
}

/// Walks tries from a state.
struct Walker<'a, 'b> {
    automaton: &'a Automaton,
    budget: &'b mut Budget,
    /// All stacks of the walk, hash-consed.
    stacks: Vec<LocalStack>,
    stack_ids: HashMap<LocalStack, u32, foldhash::fast::RandomState>,
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
            stacks: vec![LocalStack { frames: SmallVec::new(), bottom: true }],
            stack_ids: HashMap::default(),
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
        let mut levels: Vec<Level> = vec![Level { end, threads: start.clone() }];
        let mut node = root;
        while node < end {
            while levels.last().is_some_and(|level| level.end <= node) {
                levels.pop();
            }
            self.budget.spend(1)?;
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
                levels.push(Level { end: subtree_end, threads });
            }
        }
        Ok(())
    }

    /// Returns the threads after `byte`.
    fn step(&mut self, from: &[LocalThread], byte: u8) -> Result<Threads, Error> {
        let mut to = Threads::new();
        for &thread in from {
            let row = self.automaton.row(thread.state, self.budget)?;
            self.follow(row, thread, byte, &mut to)?;
            if row.is_accepting() && thread.stack != BASE {
                for at in self.ended(thread)? {
                    let row = self.automaton.row(at.state, self.budget)?;
                    self.follow(row, at, byte, &mut to)?;
                }
            }
        }
        self.threads = self.threads.max(to.len());
        if to.len() > 1 {
            self.budget.spend(to.len() as u64)?;
        }
        Ok(to)
    }

    /// Returns the threads that go on where rules end at once under `thread`, whose own rule ends. One
    /// at the bottom, if the state's rule ends too, has no frame left and is not among them.
    fn ended(&mut self, thread: LocalThread) -> Result<SmallVec<[LocalThread; 4]>, Error> {
        let mut found: SmallVec<[LocalThread; 4]> = SmallVec::new();
        let mut next = 0;
        let mut at = thread;
        loop {
            for &(state, stack) in &self.stacks[at.stack as usize].frames {
                let below = LocalThread { state, stack, ..thread };
                if !found.contains(&below) {
                    found.push(below);
                }
            }
            self.budget.spend(found.len() as u64 / 8)?;
            loop {
                let Some(&below) = found.get(next) else { return Ok(found) };
                next += 1;
                if self.automaton.row(below.state, self.budget)?.is_accepting() {
                    at = below;
                    break;
                }
            }
        }
    }

    fn follow(
        &mut self,
        row: &Row,
        at: LocalThread,
        byte: u8,
        to: &mut Threads,
    ) -> Result<(), Error> {
        for step in row.moves(byte) {
            let mut next = LocalThread { state: step.target, ..at };
            for &ret in &step.pushes {
                next.stack =
                    self.intern(LocalStack { frames: smallvec![(ret, next.stack)], bottom: false });
            }
            if step.action == Action::Close {
                next.first_was_open |= next.unbroken && !step.fresh;
                next.closes = next.closes.saturating_add(1);
            }
            next.unbroken &= step.action == Action::Record && !step.fresh;
            let facts = |t: &LocalThread| (t.state, t.unbroken, t.closes, t.first_was_open);
            match to.iter().position(|known| facts(known) == facts(&next)) {
                Some(index) => to[index].stack = self.join(to[index].stack, next.stack)?,
                None => to.push(next),
            }
        }
        Ok(())
    }

    fn intern(&mut self, stack: LocalStack) -> u32 {
        if let Some(&known) = self.stack_ids.get(&stack) {
            return known;
        }
        // Each costs a step of the budget, so there are far fewer than 2^32.
        let id = u32::try_from(self.stacks.len()).unwrap_or(BASE);
        self.stacks.push(stack.clone());
        self.stack_ids.insert(stack, id);
        id
    }

    /// Returns the stack that is either of two.
    fn join(&mut self, a: u32, b: u32) -> Result<u32, Error> {
        if a == b {
            return Ok(a);
        }
        let other = self.stacks[b as usize].clone();
        let mut joined = self.stacks[a as usize].clone();
        self.budget.spend((joined.frames.len() + other.frames.len()) as u64)?;
        joined.bottom |= other.bottom;
        joined.frames.extend(other.frames);
        joined.frames.sort_unstable();
        joined.frames.dedup();
        Ok(self.intern(joined))
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
            if self.automaton.row(thread.state, self.budget)?.is_accepting() {
                pops |= self.stacks[thread.stack as usize].bottom;
                if thread.stack != BASE && !pops {
                    for below in self.ended(thread)? {
                        let ends = self.automaton.row(below.state, self.budget)?.is_accepting();
                        pops |= ends && self.stacks[below.stack as usize].bottom;
                    }
                }
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
