//! Walks: a state and a trie in, the tokens that the state's rule legalises out, and where the rule
//! ends inside tokens.
//!
//! Nearly everywhere the state is followed by single moves without a frame, and the walk costs one
//! look-up for each node. In a quotient trie a byte stands for its class; below a state that tells two
//! bytes of a class apart the walk goes on byte by byte.

mod beside;
mod groups;

use hashbrown::HashMap;
use smallvec::{SmallVec, smallvec};

use crate::automaton::{Action, Automaton, Row};
use crate::error::Error;
use crate::ids::{StateId, TokenId};
use crate::limits::{Budget, BudgetExceeded};
use crate::token::run::next_in_run;
use crate::vocab::{Partition, RunClass, Trie, Vocabulary, is_exact_from};

/// Subtrees of at most this many nodes are not worth asking whether they can be taken at once.
const SMALL_SUBTREE: usize = 16;

/// Walks within walks, which recurse, that may be under way at once.
const NESTED: usize = 16;

/// The bottom of a local stack: the frame below the state.
pub(super) const BASE: u32 = 0;

/// Where tokens lead: states, each with the number of its local stack, ascending.
pub(crate) type Place = SmallVec<[(StateId, u32); 1]>;

/// A local stack, seen from its top. Number [`BASE`] is the bottom alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct LocalStack {
    /// The frames that may be uppermost: the state to return to, and the stack below, whose number is
    /// lower.
    pub(super) frames: SmallVec<[(StateId, u32); 1]>,
    /// Whether the stack may also be at its bottom.
    pub(super) bottom: bool,
}

/// Whether a byte belongs to a text of its activation that must be fresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Record {
    /// No.
    No,
    /// To the one that was open in the state, as all bytes before it.
    Open,
    /// To one that began inside the token.
    New,
}

impl Record {
    /// Returns where a walk from a state with this row begins.
    const fn start(row: &Row) -> Self {
        if row.is_recording() { Self::Open } else { Self::No }
    }

    /// Returns what is known of the next byte.
    const fn then(self, records: bool) -> Self {
        match self {
            _ if !records => Self::No,
            Self::Open => Self::Open,
            Self::No | Self::New => Self::New,
        }
    }
}

/// A thread of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LocalThread {
    state: StateId,
    /// A position in [`Walker::stacks`].
    stack: u32,
    /// Whether the last byte belongs to a text that must be fresh.
    record: Record,
    /// Texts ended that must be fresh.
    closes: u8,
    /// Whether the first of them was open in the state.
    first_was_open: bool,
}

impl LocalThread {
    const fn start(state: StateId, record: Record) -> Self {
        Self { state, stack: BASE, record, closes: 0, first_was_open: false }
    }
}

type Threads = SmallVec<[LocalThread; 1]>;

/// Where a walk stands at a node.
#[derive(Clone)]
enum At<'a> {
    /// One thread at the bottom, and no text ended.
    One { row: &'a Row, state: StateId, record: Record },
    /// Any threads.
    Many(Threads),
}

/// A node of the trie that the walk is below.
struct Level<'a> {
    end: usize,
    /// The byte that leads to it.
    byte: u8,
    at: At<'a>,
    /// Whether the bytes below stand for themselves, and not for a class.
    exact: bool,
}

/// Why a walk stopped.
pub(super) enum Stop {
    Error(Error),
    /// The first state tells bytes apart that the partition takes as one.
    TooCoarse,
    /// The walk would visit more nodes than it may.
    TooMany,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<BudgetExceeded> for Stop {
    fn from(budget: BudgetExceeded) -> Self {
        Self::Error(budget.into())
    }
}

/// What a walk found.
pub(super) struct Walked {
    /// The tokens whose rests stay within the rule, or end exactly where it may. In no order.
    pub(super) accepted: Vec<TokenId>,
    /// The rests that are left where the rule ends inside a token.
    pub(super) below: Trie,
    /// See [`super::local::Local::closers`].
    pub(super) closers: Vec<(TokenId, u8)>,
    /// Whether the rule may end before the first byte.
    pub(super) ends: bool,
}

/// Walks tries from states.
pub(super) struct Walker<'a, 'b> {
    automaton: &'a Automaton,
    vocabulary: &'a Vocabulary,
    partition: Option<&'a Partition>,
    /// Whether there may be a frame below, so that the rests matter.
    framed: bool,
    budget: &'b mut Budget,
    /// How many more nodes may be visited.
    nodes: usize,
    /// For each state that was asked whether it loops on plain JSON text: the answer.
    loops: HashMap<StateId, bool, foldhash::fast::RandomState>,
    /// Walks within walks that are under way.
    nested: usize,
    /// The states whose rows the partition has been found to refine, as bits.
    uniform: Vec<u64>,
    /// All stacks of the walk, hash-consed.
    stacks: Vec<LocalStack>,
    stack_ids: HashMap<LocalStack, u32, foldhash::fast::RandomState>,
    /// For each stack, as far as was asked: whether a frame goes on with a text that must be fresh.
    recorded: Vec<Option<bool>>,
    accepted: Vec<TokenId>,
    /// Where the rule ends inside tokens, with the bytes below as they are.
    pops: Vec<(&'a Trie, usize)>,
    /// Where it does with classes below: the rests of these tokens from these bytes on.
    loose_rests: Vec<(TokenId, usize)>,
    closers: Vec<(TokenId, u8)>,
    /// The tokens by where they lead, if that is asked for.
    groups: Option<Groups>,
    /// Whether a text that must be fresh was met.
    fresh: bool,
}

type Groups = HashMap<Place, Vec<TokenId>, foldhash::fast::RandomState>;

impl<'a, 'b> Walker<'a, 'b> {
    pub(super) fn new(
        automaton: &'a Automaton,
        vocabulary: &'a Vocabulary,
        partition: Option<&'a Partition>,
        framed: bool,
        budget: &'b mut Budget,
    ) -> Self {
        Self {
            automaton,
            vocabulary,
            partition,
            framed,
            budget,
            nodes: usize::MAX,
            loops: HashMap::default(),
            nested: 0,
            uniform: Vec::new(),
            stacks: vec![LocalStack { frames: SmallVec::new(), bottom: true }],
            stack_ids: HashMap::default(),
            recorded: Vec::new(),
            accepted: Vec::new(),
            pops: Vec::new(),
            loose_rests: Vec::new(),
            closers: Vec::new(),
            groups: None,
            fresh: false,
        }
    }

    /// Bounds the number of nodes that are visited one by one.
    pub(super) const fn at_most(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    pub(super) fn finish(self) -> Walked {
        let below = if self.loose_rests.is_empty() {
            Trie::merge(&self.pops)
        } else {
            let rest =
                |&(token, from): &(TokenId, usize)| (&self.vocabulary.bytes(token)[from..], token);
            let mut rests: Vec<(&[u8], TokenId)> = self.loose_rests.iter().map(rest).collect();
            rests.sort_unstable();
            rests.dedup();
            let loose = Trie::from_entries(rests);
            let mut parts = self.pops.clone();
            parts.push((&loose, 0));
            Trie::merge(&parts)
        };
        Walked { accepted: self.accepted, below, closers: self.closers, ends: false }
    }

    /// Returns the row of a state, which must not tell bytes of a class apart unless `exact`.
    fn row(&mut self, state: StateId, exact: bool) -> Result<&'a Row, Stop> {
        let row = self.automaton.row(state, self.budget)?;
        if let (Some(partition), false) = (self.partition, exact) {
            let (word, bit) = (state.index() / 64, 1_u64 << (state.index() % 64));
            if self.uniform.len() <= word {
                self.uniform.resize(word + 1, 0);
            }
            if self.uniform[word] & bit == 0 {
                if !partition.refines(row.class_of()) {
                    return Err(Stop::TooCoarse);
                }
                self.uniform[word] |= bit;
            }
        }
        Ok(row)
    }

    /// Walks the whole trie from `state`.
    pub(super) fn walk(&mut self, state: StateId, trie: &'a Trie) -> Result<(), Stop> {
        let row = self.row(state, false)?;
        let exact = self.partition.is_none();
        for byte in row.bytes().iter() {
            if let Some(node) = trie.root_child(byte) {
                let at = At::One { row, state, record: Record::start(row) };
                self.walk_subtree(at, trie, node, exact)?;
            }
        }
        Ok(())
    }

    /// Walks the subtree of `root`, whose parent the walk stands at.
    fn walk_subtree(
        &mut self,
        at: At<'a>,
        trie: &'a Trie,
        root: usize,
        exact: bool,
    ) -> Result<(), Stop> {
        let end = trie.end(root);
        let mut levels: Vec<Level<'a>> = vec![Level { end, byte: 0, at, exact }];
        let mut node = root;
        while node < end {
            while levels.len() > 1 && levels.last().is_some_and(|level| level.end <= node) {
                levels.pop();
            }
            let Some(level) = levels.last() else { break };
            self.budget.spend(1)?;
            self.nodes = self.nodes.checked_sub(1).ok_or(Stop::TooMany)?;
            let byte = trie.byte(node);
            let exact = level.exact || is_exact_from(byte);
            let subtree_end = trie.end(node);
            let next = if subtree_end == node + 1 && self.groups.is_none() {
                self.take_leaf(&level.at, byte, exact, trie.tokens(node)).map(|_| None)
            } else {
                self.advance(&level.at, byte, exact)
            };
            let next = match next {
                Err(Stop::TooCoarse) => {
                    let at = level.at.clone();
                    let path: Vec<u8> = levels[1..].iter().map(|level| level.byte).collect();
                    self.walk_class(&at, &path, byte)?;
                    None
                }
                next => next?,
            };
            let Some(next) = next else {
                node = subtree_end;
                continue;
            };
            let depth = levels.len();
            self.arrive(&next, trie, node, exact, depth)?;
            if let At::One { row, state, record } = next
                && subtree_end - node > SMALL_SUBTREE
                && record != Record::New
                && self.takes_run(row, state, trie, node)?
            {
                self.take_run(row, state, record, node)?;
                node = subtree_end;
                continue;
            }
            node += 1;
            if subtree_end > node {
                levels.push(Level { end: subtree_end, byte, at: next, exact });
            }
        }
        Ok(())
    }

    /// Walks what a node of a quotient stands for byte by byte: all texts that start with a byte of each
    /// of the classes `path` and then one of `last`, before which the walk stands at `at`.
    fn walk_class(&mut self, at: &At<'a>, path: &[u8], last: u8) -> Result<(), Stop> {
        let Some(partition) = self.partition else { return Err(Stop::TooCoarse) };
        let trie = self.vocabulary.trie();
        let is_in = |byte: u8, class: u8| partition.least(byte) == class;
        let class_at = |depth: usize| path.get(depth).copied().unwrap_or(last);
        let mut open: Vec<(usize, usize)> = (0..=255_u8)
            .filter(|&byte| is_in(byte, class_at(0)))
            .filter_map(|byte| Some((trie.root_child(byte)?, 0)))
            .collect();
        while let Some((node, depth)) = open.pop() {
            if depth == path.len() {
                self.walk_subtree(at.clone(), trie, node, true)?;
                continue;
            }
            for child in trie.children(node) {
                self.budget.spend(1)?;
                self.nodes = self.nodes.checked_sub(1).ok_or(Stop::TooMany)?;
                if is_in(trie.byte(child), class_at(depth + 1)) {
                    open.push((child, depth + 1));
                }
            }
        }
        Ok(())
    }

    /// Returns where the walk stands after `byte`, or `None` if it is illegal.
    fn advance(&mut self, at: &At<'a>, byte: u8, exact: bool) -> Result<Option<At<'a>>, Stop> {
        match *at {
            At::One { row, state, record } => match row.simple(byte) {
                Some(target) => {
                    let record = record.then(row.records(byte));
                    Ok(Some(At::One { row: self.row(target, exact)?, state: target, record }))
                }
                None if row.moves(byte).is_empty() => Ok(None),
                None => self.step(&[LocalThread::start(state, record)], byte, exact),
            },
            At::Many(ref threads) => self.step(threads, byte, exact),
        }
    }

    /// Takes the tokens that end with `byte`, behind which no token goes on, if it is legal; returns
    /// whether it is. Where the walk stands after it does not matter, so that no row is made of that.
    fn take_leaf(
        &mut self,
        at: &At<'a>,
        byte: u8,
        exact: bool,
        tokens: &[TokenId],
    ) -> Result<bool, Stop> {
        let closes = match *at {
            At::One { row, .. } if row.moves(byte).is_empty() => return Ok(false),
            At::One { row, record, .. } if row.simple(byte).is_some() => {
                u8::from(record.then(row.records(byte)) == Record::New)
            }
            _ => {
                let to = match *at {
                    At::One { state, record, .. } => {
                        self.moved(&[LocalThread::start(state, record)], byte, exact)?
                    }
                    At::Many(ref threads) => self.moved(threads, byte, exact)?,
                };
                if to.is_empty() {
                    return Ok(false);
                }
                self.closed_by(&to)?
            }
        };
        self.accepted.extend_from_slice(tokens);
        if closes > 0 {
            self.closers.extend(tokens.iter().map(|&token| (token, closes)));
        }
        Ok(true)
    }

    /// Returns whether the subtree of `node` can be taken at once: in plain JSON text the state stays
    /// the same, so that all tokens are legal which do not leave it.
    fn takes_run(
        &mut self,
        row: &Row,
        state: StateId,
        trie: &Trie,
        node: usize,
    ) -> Result<bool, Stop> {
        let text = self.vocabulary.text_exits();
        let own = std::ptr::eq(trie, self.vocabulary.trie()) && text.is_aligned(node);
        if !own
            || self.partition.is_some()
            || self.nested == NESTED
            || self.framed && row.is_accepting()
        {
            return Ok(false);
        }
        if let Some(&known) = self.loops.get(&state) {
            return Ok(known);
        }
        let next = next_in_run(self.automaton, state, RunClass::json_text(), self.budget)?;
        self.loops.insert(state, next == Some(state));
        Ok(next == Some(state))
    }

    /// Takes the subtree of `node` but for the parts that leave plain text, which are walked.
    fn take_run(
        &mut self,
        row: &'a Row,
        state: StateId,
        record: Record,
        node: usize,
    ) -> Result<(), Stop> {
        let (trie, end) = (self.vocabulary.trie(), self.vocabulary.trie().end(node));
        let mut next = node + 1;
        for exit in self.vocabulary.text_exits().between(node, end) {
            // Exits below an exit were walked with it.
            if exit.node >= next {
                self.take(state, trie.tokens_between(next, exit.node));
                let mut at = Some(At::One { row, state, record });
                for &byte in exit.partial() {
                    at = match at {
                        Some(at) => self.advance(&at, byte, true)?,
                        None => None,
                    };
                }
                if let Some(at) = at {
                    self.nested += 1;
                    self.walk_subtree(at, trie, exit.node, true)?;
                    self.nested -= 1;
                }
                next = trie.end(exit.node);
            }
        }
        self.take(state, trie.tokens_between(next, end));
        self.budget.spend((end - node) as u64 / 16)?;
        Ok(())
    }

    /// Returns where the walk stands after `byte`.
    fn step(
        &mut self,
        from: &[LocalThread],
        byte: u8,
        exact: bool,
    ) -> Result<Option<At<'a>>, Stop> {
        let to = self.moved(from, byte, exact)?;
        for thread in &to {
            self.row(thread.state, exact)?;
        }
        Ok(if to.is_empty() { None } else { Some(At::Many(to)) })
    }

    /// Returns the threads after `byte`.
    fn moved(&mut self, from: &[LocalThread], byte: u8, exact: bool) -> Result<Threads, Stop> {
        let mut to = Threads::new();
        for &thread in from {
            let row = self.automaton.row(thread.state, self.budget)?;
            self.follow(row, thread, byte, &mut to)?;
            if row.is_accepting() && thread.stack != BASE {
                for at in self.ended(thread)? {
                    // The frame's own row reads the byte, so that it must not tell its class apart.
                    let row = self.row(at.state, exact)?;
                    self.follow(row, at, byte, &mut to)?;
                }
            }
        }
        // Threads are compared with each other, so their number costs its square.
        self.budget.spend((to.len() + to.len() * to.len() / 8) as u64)?;
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
    ) -> Result<(), Stop> {
        for step in row.moves(byte) {
            let mut next = LocalThread { state: step.target, ..at };
            for &ret in &step.pushes {
                next.stack =
                    self.intern(LocalStack { frames: smallvec![(ret, next.stack)], bottom: false });
            }
            if step.action == Action::Close {
                next.first_was_open |= next.record == Record::Open && !step.fresh;
                next.closes = next.closes.saturating_add(1);
            }
            let before = if step.fresh { Record::No } else { next.record };
            next.record = before.then(step.action == Action::Record);
            let facts = |t: &LocalThread| (t.state, t.record, t.closes, t.first_was_open);
            match to.iter().position(|known| facts(known) == facts(&next)) {
                Some(index) => to[index].stack = self.join(to[index].stack, next.stack)?,
                None => to.push(next),
            }
        }
        Ok(())
    }

    /// Returns whether a frame of a local stack goes on with a text that must be fresh.
    fn is_recorded(&mut self, stack: u32) -> Result<bool, Stop> {
        if let Some(&Some(known)) = self.recorded.get(stack as usize) {
            return Ok(known);
        }
        let recorded = self.find_recorded(stack)?;
        if self.recorded.len() <= stack as usize {
            self.recorded.resize(self.stacks.len(), None);
        }
        self.recorded[stack as usize] = Some(recorded);
        Ok(recorded)
    }

    fn find_recorded(&mut self, stack: u32) -> Result<bool, Stop> {
        let mut seen: SmallVec<[u32; 4]> = smallvec![stack];
        let mut next = 0;
        while let Some(&stack) = seen.get(next) {
            next += 1;
            self.budget.spend(1)?;
            for (ret, below) in self.stacks[stack as usize].frames.clone() {
                if self.automaton.row(ret, self.budget)?.is_recording() {
                    return Ok(true);
                }
                if !seen.contains(&below) {
                    seen.push(below);
                }
            }
        }
        Ok(false)
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
    fn join(&mut self, a: u32, b: u32) -> Result<u32, Stop> {
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
        at: &At<'a>,
        trie: &'a Trie,
        node: usize,
        exact: bool,
        depth: usize,
    ) -> Result<(), Stop> {
        let tokens = trie.tokens(node);
        self.accepted.extend_from_slice(tokens);
        self.group(at, tokens)?;
        let (pops, closes) = match at {
            At::One { row, record, .. } => (row.is_accepting(), u8::from(*record == Record::New)),
            At::Many(threads) => (self.pops_base(threads)?, self.closed_by(threads)?),
        };
        if closes > 0 {
            self.closers.extend(tokens.iter().map(|&token| (token, closes)));
        }
        if !pops || trie.end(node) == node + 1 {
            return Ok(());
        }
        let rest = &trie.subtree_tokens(node)[tokens.len()..];
        if self.framed && exact {
            self.pops.push((trie, node));
        } else if self.framed {
            self.budget.spend(rest.len() as u64 / 8)?;
            self.loose_rests.extend(rest.iter().map(|&token| (token, depth)));
        }
        if closes > 0 {
            // What becomes of these is decided below, and they have ended a text here.
            self.closers.extend(rest.iter().map(|&token| (token, closes)));
        }
        Ok(())
    }

    /// Returns how many texts that must be fresh a token ends or begins that leads to these threads, or 0
    /// if it is but the one that was open.
    fn closed_by(&mut self, threads: &[LocalThread]) -> Result<u8, Stop> {
        let mut closes = 0;
        for thread in threads {
            let begun = thread.record == Record::New || self.is_recorded(thread.stack)?;
            let texts = thread.closes.saturating_add(u8::from(begun));
            if texts > u8::from(thread.first_was_open) {
                closes = closes.max(texts);
            }
        }
        Ok(closes)
    }

    /// Returns whether the rule of the walk's first state may end where these threads stand.
    fn pops_base(&mut self, threads: &[LocalThread]) -> Result<bool, Error> {
        for &thread in threads {
            if !self.automaton.row(thread.state, self.budget)?.is_accepting() {
                continue;
            }
            if self.stacks[thread.stack as usize].bottom {
                return Ok(true);
            }
            for below in self.ended(thread)? {
                let ends = self.automaton.row(below.state, self.budget)?.is_accepting();
                if ends && self.stacks[below.stack as usize].bottom {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}
