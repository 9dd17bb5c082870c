//! Threads: where a sequence stands. A configuration and a byte in, the next configuration out.
//!
//! A configuration is a small set of threads, each a state, a stack of frames and the history register
//! of its rule activation. Nearly all configurations have one. Threads that differ only in their
//! stacks are one thread whose stack branches, a graph-structured stack (Scott and Johnstone, "GLL
//! parsing", 2010), so that an ambiguous grammar has at most one thread for each state. Stacks are
//! persistent: cloning a configuration costs one reference count for each thread, and a rollback is
//! an old clone.

use std::sync::{Arc, OnceLock};

use hashbrown::HashSet;
use smallvec::{SmallVec, smallvec};

use crate::automaton::linear::Action;
use crate::automaton::states::{Automaton, Move, Row};
use crate::error::Error;
use crate::ids::StateId;
use crate::ir::{ByteSet, TERMINATORS};
use crate::limits::Budget;

/// The texts that were written under one rule activation and must stay fresh.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Register {
    /// The texts, whole.
    pub(crate) seen: imbl::OrdSet<Arc<[u8]>>,
    /// Where on the tape the text begins that is being written, if one is.
    pub(crate) open: Option<usize>,
}

/// The bytes since the first of the texts began that are being written: those of the activation and,
/// where a callee is part of a text, of those below it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tape {
    bytes: imbl::Vector<u8>,
    /// How many texts are being written.
    texts: usize,
}

impl Register {
    /// Returns whether a text that was written begins with `text`, or is `text`.
    fn begins(&self, text: &[u8]) -> bool {
        let from: Arc<[u8]> = text.into();
        self.seen.range(from..).next().is_some_and(|seen| seen.starts_with(text))
    }
}

impl Tape {
    /// Returns the bytes from position `from` on.
    fn from(&self, from: usize) -> Vec<u8> {
        self.bytes.iter().skip(from).copied().collect()
    }
}

/// A stack, seen from its top: the frames that may be uppermost.
#[derive(Debug)]
pub struct Stack {
    pub(crate) frames: SmallVec<[Frame; 1]>,
    /// Whether the stack may also be empty.
    pub(crate) bottom: bool,
    /// The greatest number of frames from here down.
    pub(crate) depth: u32,
    /// The number of bytes that returning all the way down takes at least, once it was asked for.
    pub(crate) needed: OnceLock<u64>,
    /// The same in another measure, that of tokens, which this module does not know.
    pub(crate) tokens: OnceLock<u64>,
}

/// A frame of a stack: where to go on when the rule above it ends.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The state to go on in.
    pub(crate) ret: StateId,
    /// The register of the activation that goes on.
    pub(crate) register: Option<Arc<Register>>,
    /// The stack below; `None` is the empty one.
    pub(crate) below: Option<Arc<Stack>>,
}

impl Stack {
    fn new(frames: SmallVec<[Frame; 1]>, bottom: bool) -> Self {
        let depth = |frame: &Frame| frame.below.as_ref().map_or(0, |below| below.depth);
        let depth = frames.iter().map(depth).max().map_or(0, |below| below.saturating_add(1));
        Self { frames, bottom, depth, needed: OnceLock::new(), tokens: OnceLock::new() }
    }

    /// Returns the stack of frames without registers, each with its state and the stack below.
    pub(crate) fn of(frames: impl Iterator<Item = (StateId, Option<Arc<Self>>)>) -> Self {
        let frame = |(ret, below)| Frame { ret, register: None, below };
        Self::new(frames.map(frame).collect(), false)
    }

    /// Returns the stack that is either of two.
    ///
    /// Frames that return to one state keep their stacks below apart: those were joined when they
    /// were uppermost, so that there are at most as many as states and bytes.
    pub(crate) fn join(a: Option<&Arc<Self>>, b: Option<&Arc<Self>>) -> Option<Arc<Self>> {
        let (a, b) = match (a, b) {
            (None, None) => return None,
            (Some(one), None) | (None, Some(one)) if one.bottom => return Some(one.clone()),
            (Some(one), None) | (None, Some(one)) => {
                return Some(Arc::new(Self::new(one.frames.clone(), true)));
            }
            (Some(a), Some(b)) if Arc::ptr_eq(a, b) => return Some(a.clone()),
            (Some(a), Some(b)) => (a, b),
        };
        let mut frames = a.frames.clone();
        for frame in &b.frames {
            if !frames.iter().any(|known| known.same(frame)) {
                frames.push(frame.clone());
            }
        }
        if frames.len() == a.frames.len() && (a.bottom || !b.bottom) {
            return Some(a.clone());
        }
        Some(Arc::new(Self::new(frames, a.bottom || b.bottom)))
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // A deep stack that nobody else holds is dropped level by level, not recursively.
        let mut pending: Vec<Arc<Self>> =
            self.frames.drain(..).filter_map(|frame| frame.below).collect();
        while let Some(stack) = pending.pop() {
            if let Some(mut stack) = Arc::into_inner(stack) {
                pending.extend(stack.frames.drain(..).filter_map(|frame| frame.below));
            }
        }
    }
}

/// One way in which the text so far may be parsed.
#[derive(Clone, Debug)]
pub struct Thread {
    pub(crate) state: StateId,
    pub(crate) register: Option<Arc<Register>>,
    pub(crate) stack: Option<Arc<Stack>>,
    /// There is one exactly if a text that must be fresh is being written.
    pub(crate) tape: Option<Arc<Tape>>,
}

/// All ways in which the text so far may be parsed. Empty if there is none.
pub type Configuration = SmallVec<[Thread; 1]>;

impl Thread {
    /// Returns the thread at the start of the grammar.
    #[must_use]
    pub const fn start(automaton: &Automaton) -> Self {
        Self { state: automaton.start(), register: None, stack: None, tape: None }
    }

    /// Returns the state.
    #[must_use]
    pub const fn state(&self) -> StateId {
        self.state
    }

    /// Returns the number of frames.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.stack.as_ref().map_or(0, |stack| stack.depth)
    }

    /// Returns whether two threads stand alike and remember no text, as is seen without a look at frames.
    pub(crate) fn is_surely(&self, other: &Self) -> bool {
        let forget = |thread: &Self| thread.register.is_none() && thread.tape.is_none();
        let stack = |thread: &Self| thread.stack.as_ref().map(Arc::as_ptr);
        self.state == other.state && stack(self) == stack(other) && forget(self) && forget(other)
    }

    /// Returns whether the stack may be empty.
    pub(crate) fn at_bottom(&self) -> bool {
        self.stack.as_ref().is_none_or(|stack| stack.bottom)
    }

    /// Returns the frames that may be uppermost.
    pub(crate) fn frames(&self) -> &[Frame] {
        self.stack.as_ref().map_or(&[], |stack| &stack.frames)
    }

    /// Returns the thread after `step` on `byte`, or `None` if the register forbids it.
    fn follow(&self, step: &Move, byte: u8) -> Option<Self> {
        let mut next = Self { state: step.target, ..self.clone() };
        if step.fresh {
            if step.record {
                next.begin_text()
            } else {
                next.drop_text()
            }
            let mut owner = next.register.take().filter(|_| step.keep);
            for &ret in &step.pushes {
                let frame = Frame { ret, register: owner.take(), below: next.stack };
                next.stack = Some(Arc::new(Stack::new(smallvec![frame], false)));
            }
        }
        match step.action {
            Action::None => next.drop_text(),
            Action::Record | Action::Close => next.begin_text(),
        }
        if let Some(tape) = &mut next.tape {
            Arc::make_mut(tape).bytes.push_back(byte);
        }
        if step.action == Action::Close {
            let mut text = next.open_text();
            let register = Arc::make_mut(next.register.as_mut()?);
            if register.seen.contains(&text[..]) {
                return None;
            }
            if TERMINATORS.contains(&byte) {
                for other in TERMINATORS {
                    if let Some(last) = text.last_mut() {
                        *last = other;
                    }
                    register.seen.insert(text.as_slice().into());
                }
            } else {
                register.seen.insert(text.into());
            }
            next.drop_text();
        }
        Some(next)
    }

    /// Begins a text of the present activation that must be fresh, unless one is being written.
    fn begin_text(&mut self) {
        if self.register.as_ref().is_some_and(|register| register.open.is_some()) {
            return;
        }
        let tape = Arc::make_mut(self.tape.get_or_insert_default());
        tape.texts += 1;
        Arc::make_mut(self.register.get_or_insert_default()).open = Some(tape.bytes.len());
    }

    /// Drops the text of the present activation that is being written, if one is.
    fn drop_text(&mut self) {
        let Some(register) = self.register.as_mut().filter(|register| register.open.is_some())
        else {
            return;
        };
        if register.seen.is_empty() {
            self.register = None;
        } else {
            Arc::make_mut(register).open = None;
        }
        match self.tape.as_mut().map(Arc::make_mut) {
            Some(tape) if tape.texts > 1 => tape.texts -= 1,
            _ => self.tape = None,
        }
    }

    /// Returns the text of the present activation so far; empty if none is being written.
    fn open_text(&self) -> Vec<u8> {
        self.register.as_ref().map_or(Vec::new(), |register| self.text_of(register))
    }

    fn text_of(&self, register: &Register) -> Vec<u8> {
        match (register.open, &self.tape) {
            (Some(from), Some(tape)) => tape.from(from),
            _ => Vec::new(),
        }
    }

    /// Returns whether every text that is being written can still become one that was not written before.
    ///
    /// It can as soon as it is no longer the beginning of one that was: only live states exist. So the
    /// search stays on those beginnings, and mostly ends with the first other byte.
    fn may_be_fresh(&self, automaton: &Automaton, budget: &mut Budget) -> Result<bool, Error> {
        let mut doubtful: SmallVec<[(Arc<Register>, usize); 1]> = SmallVec::new();
        self.each_register(budget, |register, text, _| {
            if let Some(from) = register.open
                && register.begins(&text)
            {
                doubtful.push((register.clone(), from));
            }
            Ok(())
        })?;
        for (register, from) in doubtful {
            if !self.has_fresh_end(automaton, &register, from, budget)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether the text that begins at `from` on the tape can become one that `register` has not
    /// seen.
    fn has_fresh_end(
        &self,
        automaton: &Automaton,
        register: &Register,
        from: usize,
        budget: &mut Budget,
    ) -> Result<bool, Error> {
        let mut pending = vec![self.clone()];
        while let Some(thread) = pending.pop() {
            budget.spend(1)?;
            let mut found = false;
            each_row(automaton, &thread, budget, |thread, row| {
                let own = thread.register.as_ref().and_then(|register| register.open);
                for byte in row.bytes().iter() {
                    for step in row.moves(byte) {
                        if found {
                            return;
                        }
                        let Some(next) = thread.follow(step, byte) else { continue };
                        let text = next.tape.as_ref().map(|tape| tape.from(from));
                        found = (step.action == Action::Close && own == Some(from))
                            || text.is_none_or(|text| !register.begins(&text));
                        if !found {
                            pending.push(next);
                        }
                    }
                }
            })?;
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Calls `visit` with each register that a text is being written for, or may begin for at once,
    /// and that text so far.
    pub(crate) fn each_register(
        &self,
        budget: &mut Budget,
        mut visit: impl FnMut(&Arc<Register>, Vec<u8>, &mut Budget) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if let Some(register) = &self.register {
            visit(register, self.text_of(register), budget)?;
        }
        if self.tape.is_none() {
            return Ok(());
        }
        let mut seen: HashSet<*const Stack, foldhash::fast::RandomState> = HashSet::default();
        let mut pending: Vec<&Arc<Stack>> = self.stack.iter().collect();
        while let Some(stack) = pending.pop() {
            if !seen.insert(Arc::as_ptr(stack)) {
                continue;
            }
            for frame in &stack.frames {
                budget.spend(1)?;
                if let Some(register) = &frame.register
                    && register.open.is_some()
                {
                    visit(register, self.text_of(register), budget)?;
                }
                pending.extend(&frame.below);
            }
        }
        Ok(())
    }

    /// Returns the thread that goes on in `frame` when the present activation ends.
    fn popped(&self, frame: &Frame) -> Self {
        let mut ended = Self { stack: None, ..self.clone() };
        ended.drop_text();
        Self {
            state: frame.ret,
            register: frame.register.clone(),
            stack: frame.below.clone(),
            tape: ended.tape,
        }
    }
}

fn same_register(a: Option<&Arc<Register>>, b: Option<&Arc<Register>>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a == b,
        _ => false,
    }
}

/// Adds a thread to a configuration, as part of one in the same state if there is one.
fn add(to: &mut Configuration, next: Thread) {
    // Both tapes end with the last byte, so those of one length are equal.
    let facts = |tape: &Option<Arc<Tape>>| tape.as_ref().map(|t| (t.bytes.len(), t.texts));
    let same = |known: &&mut Thread| {
        known.state == next.state
            && facts(&known.tape) == facts(&next.tape)
            && same_register(known.register.as_ref(), next.register.as_ref())
    };
    match to.iter_mut().find(same) {
        Some(known) => known.stack = Stack::join(known.stack.as_ref(), next.stack.as_ref()),
        None => to.push(next),
    }
}

/// Calls `visit` with a thread and its row, then with those of every frame that ends at once,
/// innermost first.
pub(super) fn each_row<'a>(
    automaton: &'a Automaton,
    thread: &Thread,
    budget: &mut Budget,
    mut visit: impl FnMut(&Thread, &'a Row),
) -> Result<(), Error> {
    let row = automaton.row(thread.state, budget)?;
    visit(thread, row);
    if !row.is_accepting() || thread.stack.is_none() {
        return Ok(());
    }
    let mut pending: SmallVec<[Thread; 2]> =
        thread.frames().iter().map(|frame| thread.popped(frame)).collect();
    let mut seen: SmallVec<[(StateId, *const Stack, *const Register); 4]> = SmallVec::new();
    while let Some(thread) = pending.pop() {
        let stack = thread.stack.as_ref().map_or(std::ptr::null(), Arc::as_ptr);
        let register = thread.register.as_ref().map_or(std::ptr::null(), Arc::as_ptr);
        if seen.contains(&(thread.state, stack, register)) {
            continue;
        }
        seen.push((thread.state, stack, register));
        budget.spend(seen.len() as u64 / 8)?;
        let row = automaton.row(thread.state, budget)?;
        visit(&thread, row);
        if row.is_accepting() {
            pending.extend(thread.frames().iter().map(|frame| thread.popped(frame)));
        }
    }
    Ok(())
}

impl Frame {
    /// Returns whether two frames go on alike. Stacks below are compared by address.
    fn same(&self, other: &Self) -> bool {
        self.ret == other.ret
            && self.below.as_ref().map(Arc::as_ptr) == other.below.as_ref().map(Arc::as_ptr)
            && same_register(self.register.as_ref(), other.register.as_ref())
    }
}

/// Returns the configuration after `byte`; empty if the byte is not legal.
///
/// # Errors
///
/// What growing the automaton says.
pub fn step(
    automaton: &Automaton,
    from: &[Thread],
    byte: u8,
    budget: &mut Budget,
) -> Result<Configuration, Error> {
    let mut to = Configuration::new();
    let mut recording = false;
    for thread in from {
        each_row(automaton, thread, budget, |thread, row| {
            for step in row.moves(byte) {
                if let Some(next) = thread.follow(step, byte) {
                    recording |= next.tape.is_some();
                    add(&mut to, next);
                }
            }
        })?;
    }
    if recording {
        let mut fresh = Configuration::new();
        for thread in to {
            if thread.may_be_fresh(automaton, budget)? {
                fresh.push(thread);
            }
        }
        to = fresh;
    }
    // Threads are compared with each other, so their number costs its square.
    budget.spend((to.len() * to.len()) as u64)?;
    Ok(to)
}

/// Takes `thread`, which stands alone, along `bytes` as far as single moves without a frame lead and no
/// text is recorded; returns how many bytes that were.
///
/// # Errors
///
/// What growing the automaton says.
pub(crate) fn follow_single(
    automaton: &Automaton,
    thread: &mut Thread,
    bytes: &[u8],
    budget: &mut Budget,
) -> Result<usize, Error> {
    if thread.register.is_some() || thread.tape.is_some() {
        return Ok(0);
    }
    for (index, &byte) in bytes.iter().enumerate() {
        let row = automaton.row(thread.state, budget)?;
        match row.simple(byte) {
            Some(next)
                if !row.is_recording() && (!row.is_accepting() || thread.stack.is_none()) =>
            {
                thread.state = next;
            }
            _ => return Ok(index),
        }
    }
    budget.spend(bytes.len() as u64)?;
    Ok(bytes.len())
}

/// Returns whether the text so far is complete.
///
/// # Errors
///
/// What growing the automaton says.
pub fn is_accepting(
    automaton: &Automaton,
    threads: &[Thread],
    budget: &mut Budget,
) -> Result<bool, Error> {
    let mut accepting = false;
    for thread in threads {
        each_row(automaton, thread, budget, |thread, row| {
            accepting |= row.is_accepting() && thread.at_bottom();
        })?;
    }
    Ok(accepting)
}

/// Returns the bytes that may come next.
///
/// # Errors
///
/// What growing the automaton says.
pub fn legal_bytes(
    automaton: &Automaton,
    threads: &[Thread],
    budget: &mut Budget,
) -> Result<ByteSet, Error> {
    let mut legal = ByteSet::EMPTY;
    let mut doubtful = ByteSet::EMPTY;
    for thread in threads {
        each_row(automaton, thread, budget, |thread, row| {
            for byte in row.bytes().iter() {
                for step in row.moves(byte) {
                    // Registers may forbid bytes of texts that must be fresh.
                    match thread.follow(step, byte) {
                        Some(next) if next.tape.is_some() => doubtful.insert(byte),
                        Some(_) => legal.insert(byte),
                        None => {}
                    }
                }
            }
        })?;
    }
    for byte in doubtful.difference(&legal).iter() {
        if !step(automaton, threads, byte, budget)?.is_empty() {
            legal.insert(byte);
        }
    }
    Ok(legal)
}

/// Returns numbers that are equal for configurations that go on alike, or `None` where earlier texts
/// matter, which they do not tell. Costs a visit of every frame.
pub(crate) fn structure(
    threads: &[Thread],
    budget: &mut Budget,
) -> Result<Option<Vec<u64>>, Error> {
    let mut numbers = Vec::new();
    // Each stack gets a number when it is first met, and is written down there.
    let mut known: Vec<*const Stack> = Vec::new();
    let mut pending: Vec<&Arc<Stack>> = Vec::new();
    let mut number = |stack: Option<&Arc<Stack>>| {
        let Some(address) = stack.map(Arc::as_ptr) else { return (0, false) };
        match known.iter().position(|&own| own == address) {
            Some(at) => (at as u64 + 1, false),
            None => {
                known.push(address);
                (known.len() as u64, true)
            }
        }
    };
    let mut sorted: Vec<&Thread> = threads.iter().collect();
    sorted.sort_by_key(|thread| thread.state);
    numbers.push(sorted.len() as u64);
    for thread in sorted {
        if thread.register.is_some() || thread.tape.is_some() {
            return Ok(None);
        }
        let (at, new) = number(thread.stack.as_ref());
        numbers.extend([u64::from(thread.state.get()), at]);
        pending.extend(thread.stack.as_ref().filter(|_| new));
    }
    let mut next = 0;
    while let Some(&stack) = pending.get(next) {
        next += 1;
        budget.spend(stack.frames.len() as u64 + 1)?;
        numbers.extend([u64::from(stack.bottom), stack.frames.len() as u64]);
        for frame in &stack.frames {
            if frame.register.is_some() {
                return Ok(None);
            }
            let (at, new) = number(frame.below.as_ref());
            numbers.extend([u64::from(frame.ret.get()), at]);
            pending.extend(frame.below.as_ref().filter(|_| new));
        }
    }
    Ok(Some(numbers))
}
