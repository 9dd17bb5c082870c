//! Threads: where a sequence stands. A configuration and a byte in, the next configuration out.
//!
//! A configuration is a small set of threads, each a state, a stack of frames and the history register
//! of its rule activation. Nearly all configurations have one. Stacks are persistent: cloning a
//! configuration costs one reference count for each thread, and a rollback is an old clone.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::automaton::linear::Action;
use crate::automaton::states::{Automaton, Move, Row};
use crate::error::Error;
use crate::ids::StateId;
use crate::ir::ByteSet;
use crate::limits::Budget;

/// The texts that were written under one rule activation and must stay fresh.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Register {
    /// The texts, whole.
    pub(crate) seen: imbl::OrdSet<Arc<[u8]>>,
    /// The text that is being written.
    pub(crate) open: Vec<u8>,
}

/// A frame of a stack: where to go on when the rule above it ends.
#[derive(Debug)]
pub struct Frame {
    /// The state to go on in.
    pub(crate) ret: StateId,
    /// The register of the activation that goes on.
    pub(crate) register: Option<Arc<Register>>,
    /// The frame below.
    pub(crate) parent: Option<Arc<Frame>>,
    /// Number of frames from here down.
    pub(crate) depth: u32,
}

impl Drop for Frame {
    fn drop(&mut self) {
        // A deep stack that nobody else holds is dropped frame by frame, not recursively.
        let mut next = self.parent.take();
        while let Some(mut frame) = next.and_then(Arc::into_inner) {
            next = frame.parent.take();
        }
    }
}

/// One way in which the text so far may be parsed.
#[derive(Clone, Debug)]
pub struct Thread {
    pub(crate) state: StateId,
    pub(crate) register: Option<Arc<Register>>,
    pub(crate) stack: Option<Arc<Frame>>,
}

/// All ways in which the text so far may be parsed. Empty if there is none.
pub type Configuration = SmallVec<[Thread; 1]>;

impl Thread {
    /// Returns the thread at the start of the grammar.
    #[must_use]
    pub const fn start(automaton: &Automaton) -> Self {
        Self { state: automaton.start(), register: None, stack: None }
    }

    /// Returns the state.
    #[must_use]
    pub const fn state(&self) -> StateId {
        self.state
    }

    /// Returns the number of frames.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.stack.as_ref().map_or(0, |frame| frame.depth)
    }

    /// Returns the thread that goes on in the frame below, or `None` at the bottom.
    pub(crate) fn pop(&self) -> Option<Self> {
        let frame = self.stack.as_ref()?;
        Some(Self {
            state: frame.ret,
            register: frame.register.clone(),
            stack: frame.parent.clone(),
        })
    }

    /// Returns the thread after `step` on `byte`, or `None` if the register forbids it.
    fn follow(&self, step: &Move, byte: u8) -> Option<Self> {
        let mut register = self.register.clone();
        let mut stack = self.stack.clone();
        if step.fresh {
            let mut owner = register.take().filter(|_| step.keep);
            for &ret in &step.pushes {
                let depth = stack.as_ref().map_or(0, |frame| frame.depth) + 1;
                stack = Some(Arc::new(Frame { ret, register: owner.take(), parent: stack, depth }));
            }
        }
        match step.action {
            Action::None => {
                if register.as_ref().is_some_and(|register| !register.open.is_empty()) {
                    Arc::make_mut(register.as_mut()?).open.clear();
                }
            }
            Action::Record => Arc::make_mut(register.get_or_insert_default()).open.push(byte),
            Action::Close => {
                let register = Arc::make_mut(register.get_or_insert_default());
                register.open.push(byte);
                let text: Arc<[u8]> = std::mem::take(&mut register.open).into();
                if register.seen.insert(text).is_some() {
                    return None;
                }
            }
        }
        Some(Self { state: step.target, register, stack })
    }

    fn same(&self, other: &Self) -> bool {
        self.state == other.state
            && same_register(self.register.as_ref(), other.register.as_ref())
            && same_stack(self.stack.as_ref(), other.stack.as_ref())
    }
}

fn same_register(a: Option<&Arc<Register>>, b: Option<&Arc<Register>>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a == b,
        _ => false,
    }
}

fn same_stack(mut a: Option<&Arc<Frame>>, mut b: Option<&Arc<Frame>>) -> bool {
    loop {
        match (a, b) {
            (None, None) => return true,
            (Some(x), Some(y)) if Arc::ptr_eq(x, y) => return true,
            (Some(x), Some(y))
                if x.depth == y.depth
                    && x.ret == y.ret
                    && same_register(x.register.as_ref(), y.register.as_ref()) =>
            {
                (a, b) = (x.parent.as_ref(), y.parent.as_ref());
            }
            _ => return false,
        }
    }
}

/// Calls `visit` with a thread and its row, then with those of every frame that ends at once,
/// innermost first.
fn each_row<'a>(
    automaton: &'a Automaton,
    thread: &Thread,
    budget: &mut Budget,
    mut visit: impl FnMut(&Thread, &'a Row),
) -> Result<(), Error> {
    let mut row = automaton.row(thread.state, budget)?;
    visit(thread, row);
    let mut below = if row.is_accepting() { thread.pop() } else { None };
    while let Some(thread) = below {
        row = automaton.row(thread.state, budget)?;
        visit(&thread, row);
        below = if row.is_accepting() { thread.pop() } else { None };
    }
    Ok(())
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
    for thread in from {
        each_row(automaton, thread, budget, |thread, row| {
            for step in row.moves(byte) {
                if let Some(next) = thread.follow(step, byte)
                    && !to.iter().any(|known| known.same(&next))
                {
                    to.push(next);
                }
            }
        })?;
    }
    // Threads are compared with each other, so their number costs its square.
    budget.spend((to.len() * to.len()) as u64)?;
    Ok(to)
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
            accepting |= row.is_accepting() && thread.stack.is_none();
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
    for thread in threads {
        each_row(automaton, thread, budget, |thread, row| {
            for byte in row.bytes().iter() {
                // The register may forbid the byte that ends a text.
                if row.moves(byte).iter().any(|step| thread.follow(step, byte).is_some()) {
                    legal.insert(byte);
                }
            }
        })?;
    }
    Ok(legal)
}

/// Returns a shortest text that completes the output, in bytes.
///
/// History registers are respected: where the shortest way would repeat a text, the next best byte is
/// taken, so that the text is then not always the shortest.
///
/// # Errors
///
/// What growing the automaton says.
pub fn shortest_completion(
    automaton: &Automaton,
    from: &[Thread],
    budget: &mut Budget,
) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    let mut threads: Configuration = from.into();
    while !is_accepting(automaton, &threads, budget)? {
        let goal = needed(automaton, &threads, budget)?.saturating_sub(1);
        let mut best: Option<(u64, u8, Configuration)> = None;
        for byte in legal_bytes(automaton, &threads, budget)?.iter() {
            let next = step(automaton, &threads, byte, budget)?;
            let need = needed(automaton, &next, budget)?;
            if best.as_ref().is_none_or(|(least, ..)| need < *least) {
                best = Some((need, byte, next));
            }
            if need <= goal {
                break;
            }
        }
        let Some((_, byte, next)) = best else { break };
        text.push(byte);
        threads = next;
    }
    Ok(text)
}

/// Returns the number of bytes of the shortest text that completes the output, registers aside.
///
/// # Errors
///
/// What growing the automaton says.
pub fn needed(
    automaton: &Automaton,
    threads: &[Thread],
    budget: &mut Budget,
) -> Result<u64, Error> {
    let mut best = u64::MAX;
    for thread in threads {
        let mut total = u64::from(automaton.least(thread.state, budget)?);
        let mut frame = thread.stack.as_ref();
        while let Some(below) = frame {
            if total >= best {
                break;
            }
            total += u64::from(automaton.least(below.ret, budget)?);
            frame = below.parent.as_ref();
        }
        best = best.min(total);
    }
    Ok(best)
}
