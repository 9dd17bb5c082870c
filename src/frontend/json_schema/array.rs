//! Arrays as formulas consumed by derivatives: a formula about the elements that follow in, a formula
//! about the next one and those after it out.

use super::formula::{Atom, Evaluates, FormulaId, Formulas};
use super::program::ScopeId;
use super::schema::ElementsId;
use crate::error::Error;

impl Formulas {
    /// Returns what `formula` says after one more element: of its value, by [`Atom::Value`], and of the
    /// elements after it. [`Atom::Unique`] stays: whoever writes the elements must see to it.
    pub(super) fn read_element(&mut self, formula: FormulaId) -> Result<FormulaId, Error> {
        self.rewrite(formula, &mut |formulas, atom, done| {
            Ok(match formulas.atom(atom).clone() {
                Atom::ElementCount(n) => formulas.at_least(n.saturating_sub(1), Atom::ElementCount),
                Atom::Elements(id, scope, at) => formulas.read_of_elements(id, scope, at),
                Atom::EqualElements(None) => Self::no(),
                Atom::EqualElements(Some(value)) => {
                    let next = formulas.program.document.next(value);
                    let goal = formulas.literal(Atom::Equal(value));
                    let now = formulas.value(goal);
                    let rest = formulas.literal(Atom::EqualElements(next));
                    formulas.and(&[now, rest])
                }
                Atom::Contains(goal, n) => {
                    let counts = formulas.value(goal);
                    let fewer = formulas.at_least(n.saturating_sub(1), |n| Atom::Contains(goal, n));
                    let same = formulas.literal(Atom::Contains(goal, n));
                    let counted = formulas.and(&[counts, fewer]);
                    formulas.or(&[counted, same])
                }
                Atom::UnevaluatedElements(clauses, goal) => {
                    let mut now = vec![formulas.value(goal)];
                    let mut rest = Vec::with_capacity(clauses.len());
                    for (evaluates, condition) in Self::rewritten(&clauses, done) {
                        let evaluated = match evaluates {
                            Evaluates::All => Self::yes(),
                            Evaluates::Elements(n) => Self::constant(n > 0),
                            Evaluates::Matching(goal) => formulas.value(goal),
                            Evaluates::Members(_) => Self::no(),
                        };
                        now.push(formulas.and(&[condition, evaluated]));
                        let evaluates = match evaluates {
                            Evaluates::Elements(n) => Evaluates::Elements(n.saturating_sub(1)),
                            other => other,
                        };
                        rest.push((evaluates, condition));
                    }
                    let now = formulas.or(&now);
                    let rest = match formulas.simplify_clauses(rest) {
                        Some(rest) => formulas.literal(Atom::UnevaluatedElements(rest, goal)),
                        None => Self::yes(),
                    };
                    formulas.and(&[now, rest])
                }
                other => formulas.literal(other),
            })
        })
    }

    fn read_of_elements(&mut self, id: ElementsId, scope: ScopeId, at: u32) -> FormulaId {
        let program = self.program.clone();
        let elements = &program.schemas.elements[id.index()];
        let prefix = elements.prefix.get(at as usize).copied();
        let goal = match prefix.or(elements.rest) {
            Some(node) => self.schema(node, scope),
            None => Self::yes(),
        };
        let now = self.value(goal);
        let next = if prefix.is_some() { at + 1 } else { at };
        let done = next as usize >= elements.prefix.len() && elements.rest.is_none();
        let rest = if done { Self::yes() } else { self.literal(Atom::Elements(id, scope, next)) };
        self.and(&[now, rest])
    }
}
