//! The byte automaton as data, for artifacts: its grammar as grown, its states and their rows.

use crate::automaton::states::{Automaton, Move, Row};
use crate::byteset::ByteSet;
use crate::error::{Error, ErrorKind};
use crate::ids::{ExprId, FamilyId, StateId};
use crate::ir::{Expander, GrammarSnapshot};
use crate::limits::Limits;

/// An automaton as stored. Ids are those of the automaton.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct AutomatonSnapshot {
    pub(crate) grammar: GrammarSnapshot,
    pub(crate) start: StateId,
    pub(crate) expansions: Vec<(FamilyId, ExprId)>,
    pub(crate) states: Vec<StateSnapshot>,
}

/// A state as stored.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct StateSnapshot {
    pub(crate) expr: ExprId,
    pub(crate) row: Option<RowSnapshot>,
    pub(crate) mask_state: Option<StateId>,
}

/// A row as stored: disjoint byte sets and where they lead.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct RowSnapshot {
    pub(crate) accepting: bool,
    pub(crate) classes: Vec<(ByteSet, Vec<Move>)>,
}

impl RowSnapshot {
    pub(crate) fn new(row: &Row) -> Self {
        Self { accepting: row.is_accepting(), classes: row.classes().collect() }
    }
}

impl AutomatonSnapshot {
    /// Returns the automaton under `limits`, with `decode` to read the expander of its grammar.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Artifact`] if anything is out of range.
    pub fn restore(
        self,
        limits: Limits,
        decode: impl FnOnce(&[u8]) -> Result<Box<dyn Expander>, Error>,
    ) -> Result<Automaton, Error> {
        let damaged = || Error::new(ErrorKind::Artifact, "the stored automaton is damaged");
        let grammar = self.grammar.restore(limits.expressions, decode)?;
        let exprs = grammar.arena.len();
        let count = self.states.len();
        let state_ok = |id: StateId| id.index() < count;
        let expr_ok = |id: ExprId| id.index() < exprs;
        let row_ok = |row: &RowSnapshot| {
            let mut seen = ByteSet::EMPTY;
            row.classes.iter().all(|(bytes, moves)| {
                let disjoint = seen.intersection(bytes).is_empty();
                seen = seen.union(bytes);
                let inside = |step: &Move| {
                    state_ok(step.target) && step.pushes.iter().all(|&id| state_ok(id))
                };
                disjoint && !bytes.is_empty() && moves.iter().all(inside)
            })
        };
        let all_ok = state_ok(self.start)
            && self.expansions.iter().all(|&(_, expr)| expr_ok(expr))
            && self.states.iter().all(|state| {
                expr_ok(state.expr)
                    && state.mask_state.is_none_or(state_ok)
                    && state.row.as_ref().is_none_or(row_ok)
            });
        if !all_ok {
            return Err(damaged());
        }
        Automaton::restore(grammar, limits, self.start, self.expansions, self.states)
            .ok_or_else(damaged)
    }
}
