//! Total states: states from which no text of a class of characters is illegal, such as those of a search
//! for a word anywhere in a JSON string. All tokens of the class are legal there, and only those that
//! leave it need be walked.

use hashbrown::HashSet;

use crate::automaton::{Automaton, Row};
use crate::byteset::ByteSet;
use crate::error::Error;
use crate::ids::StateId;
use crate::limits::Budget;
use crate::token::run::UTF8;
use crate::vocab::RunClass;

/// States, in the middle of characters too, that are looked at. A search for a word of `n` letters has
/// about `n + 20`.
const STATES: usize = 512;

/// Where in a character of several bytes a text stands: the form of [`UTF8`] and the bytes so far.
type Place = Option<(usize, usize)>;

/// Returns whether all states between characters that texts of `class` lead to from `state` are total,
/// and those that were looked at. With too many of them the answer is no. A state that may end its rule
/// is not total, since the rest of a token would go on elsewhere.
pub(super) fn total_states(
    automaton: &Automaton,
    state: StateId,
    class: RunClass,
    budget: &mut Budget,
) -> Result<(bool, Vec<StateId>), Error> {
    let mut seen: HashSet<(StateId, Place), foldhash::fast::RandomState> = HashSet::default();
    let mut open: Vec<(StateId, Place)> = vec![(state, None)];
    let mut looked_at = Vec::new();
    seen.insert((state, None));
    while let Some((state, place)) = open.pop() {
        budget.spend(1)?;
        let row = automaton.row(state, budget)?;
        let mut go = |bytes: ByteSet, place: Place| {
            let Some(targets) = targets(row, bytes) else { return false };
            open.extend(
                targets.into_iter().map(|next| (next, place)).filter(|&next| seen.insert(next)),
            );
            true
        };
        let whole = match place {
            Some((form, at)) => {
                let (first, last) = UTF8[form][at];
                let ends = at + 1 == UTF8[form].len();
                go(ByteSet::range(first, last), (!ends).then_some((form, at + 1)))
            }
            None => {
                looked_at.push(state);
                let leads = |form: usize| UTF8[form][0];
                !row.is_accepting()
                    && go(class.ascii, None)
                    && (!class.others
                        || (0..UTF8.len()).all(|form| {
                            go(ByteSet::range(leads(form).0, leads(form).1), Some((form, 1)))
                        }))
            }
        };
        if !whole || seen.len() > STATES {
            return Ok((false, looked_at));
        }
    }
    Ok((true, looked_at))
}

/// Returns the states that `bytes` lead to, or `None` if not all of them lead to one state without a
/// frame.
fn targets(row: &Row, bytes: ByteSet) -> Option<Vec<StateId>> {
    if !bytes.difference(&row.bytes()).is_empty() {
        return None;
    }
    let mut targets: Vec<StateId> = Vec::new();
    for byte in bytes.iter() {
        let target = row.simple(byte)?;
        if targets.last() != Some(&target) && !targets.contains(&target) {
            targets.push(target);
        }
    }
    Some(targets)
}
