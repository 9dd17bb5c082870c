//! How outputs are completed: the bytes that are needed at least, and a text that does it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, OnceLock};

use hashbrown::HashSet;

use crate::automaton::states::Automaton;
use crate::automaton::threads::{
    Configuration, Frame, Stack, Thread, is_accepting, legal_bytes, step,
};
use crate::error::{Error, ErrorKind};
use crate::ids::StateId;
use crate::limits::Budget;

/// Returns a shortest text that completes the output, in bytes.
///
/// History registers are respected: where the shortest way would repeat a text, the next best byte is
/// taken, and where that ends in a place where every text was written before, another way is searched.
/// The text is then not always the shortest.
///
/// # Errors
///
/// [`ErrorKind::Unsatisfiable`] if no text completes the output, as there may be none where texts must
/// differ; and what growing the automaton says.
pub fn shortest_completion(
    automaton: &Automaton,
    from: &[Thread],
    budget: &mut Budget,
) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    let mut threads: Configuration = from.into();
    while !is_accepting(automaton, &threads, budget)? {
        // Each byte may also add to the stacks, so that the budget bounds their memory too.
        budget.spend(16)?;
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
        let Some((_, byte, next)) = best else {
            return any_completion(automaton, from, budget);
        };
        text.push(byte);
        threads = next;
    }
    Ok(text)
}

/// Returns a text that completes the output: a search that goes on first where least is needed, and
/// looks at each place once.
fn any_completion(
    automaton: &Automaton,
    from: &[Thread],
    budget: &mut Budget,
) -> Result<Vec<u8>, Error> {
    /// A place on the way: how it was reached, and the place before.
    struct Reached {
        threads: Configuration,
        byte: u8,
        before: usize,
    }
    let mut reached = vec![Reached { threads: from.into(), byte: 0, before: 0 }];
    let mut seen: HashSet<Vec<Place>, foldhash::fast::RandomState> = HashSet::default();
    seen.insert(places(from));
    // Of equal needs, what was come further with.
    let mut queue = BinaryHeap::from([(Reverse(needed(automaton, from, budget)?), 0)]);
    while let Some((_, at)) = queue.pop() {
        budget.spend(16)?;
        let threads = reached[at].threads.clone();
        if is_accepting(automaton, &threads, budget)? {
            let way = std::iter::successors(Some(at), |&at| Some(reached[at].before));
            let mut text: Vec<u8> =
                way.take_while(|&at| at != 0).map(|at| reached[at].byte).collect();
            text.reverse();
            return Ok(text);
        }
        for byte in legal_bytes(automaton, &threads, budget)?.iter() {
            let next = step(automaton, &threads, byte, budget)?;
            budget.spend(4)?;
            if seen.insert(places(&next)) {
                let need = needed(automaton, &next, budget)?;
                queue.push((Reverse(need), reached.len()));
                reached.push(Reached { threads: next, byte, before: at });
            }
        }
    }
    let text =
        "no text completes the output: all that could follow where texts must differ were written";
    Err(Error::new(ErrorKind::Unsatisfiable, text))
}

/// Where a thread stands: its state, and the addresses of its stack, register and tape, of which a search
/// keeps one owner each.
type Place = (StateId, usize, usize, usize);

fn places(threads: &[Thread]) -> Vec<Place> {
    fn address<T>(shared: Option<&Arc<T>>) -> usize {
        shared.map_or(0, |shared| Arc::as_ptr(shared).addr())
    }
    let of = |thread: &Thread| {
        let (stack, register) = (address(thread.stack.as_ref()), address(thread.register.as_ref()));
        (thread.state, stack, register, address(thread.tape.as_ref()))
    };
    threads.iter().map(of).collect()
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
        budget.spend(1)?;
        let own = u64::from(automaton.least(thread.state, budget)?);
        let rest = match &thread.stack {
            Some(stack) => {
                sum_below(stack, |stack| &stack.needed, budget, &mut |frame, budget| {
                    Ok(u64::from(automaton.least(frame.ret, budget)?))
                })?
            }
            None => 0,
        };
        best = best.min(own.saturating_add(rest));
    }
    Ok(best)
}

/// Returns the least sum of the costs of the frames on a way from `top` down to the bottom. `memo` is
/// where the sums are kept, so that the steps of a sequence do not each go down to the bottom.
pub(crate) fn sum_below(
    top: &Arc<Stack>,
    memo: fn(&Stack) -> &OnceLock<u64>,
    budget: &mut Budget,
    cost: &mut dyn FnMut(&Frame, &mut Budget) -> Result<u64, Error>,
) -> Result<u64, Error> {
    let mut open = vec![top];
    while let Some(&stack) = open.last() {
        if memo(stack).get().is_some() {
            open.pop();
            continue;
        }
        budget.spend(stack.frames.len() as u64 + 1)?;
        let before = open.len();
        let mut least = if stack.bottom { 0 } else { u64::MAX };
        for frame in &stack.frames {
            let rest = match &frame.below {
                None => 0,
                Some(below) => match memo(below).get() {
                    Some(&rest) => rest,
                    None => {
                        open.push(below);
                        continue;
                    }
                },
            };
            least = least.min(rest.saturating_add(cost(frame, budget)?));
        }
        if open.len() == before {
            let _ = memo(stack).set(least);
        }
    }
    Ok(memo(top).get().copied().unwrap_or(u64::MAX))
}
