//! Which families have any text, told without expanding them where that is easy: a value that may be a
//! plain scalar, an object or array that may end, an object whose required members decide.
//!
//! What this does not tell, expansion does. The order of members does not change whether an object can
//! be finished, and how shortly, so an object in any order is as live as the same one in declared order.

use super::engine::{Engine, Family, Level, Object, ObjectId, Progress, SetId, Turn};
use super::formula::{Atom, Formula, FormulaId, Formulas};
use super::schema::Type;
use crate::error::Error;
use crate::ids::ExprId;
use crate::ir::{Liveness, Scope, UNBOUNDED};

/// Of so many names that may come next, one whose value is plainly live is looked for.
const MOST_TRIED: usize = 4;

impl Engine {
    /// Returns what decides whether `family` has any text.
    pub(super) fn decide_liveness(
        &mut self,
        family: Family,
        scope: &mut Scope<'_>,
    ) -> Result<Liveness, Error> {
        match family {
            Family::Value(_, _, Some(_)) => Ok(Liveness::Expand),
            Family::Value(goal, level, None) => self.value_liveness(goal, level, scope),
            Family::Members(id, _) => self.members_liveness(id, scope),
            Family::Names(id, low, high, _) => self.names_liveness(id, (low, high), scope),
            Family::Named(..) => Ok(Liveness::Expand),
            Family::Elements(_, Turn::Comma) => Ok(Liveness::Expand),
            Family::Elements(id, _) => {
                let array = *self.arrays.get(id.index()).ok_or_else(super::codec::corrupted)?;
                let may_end = self.formulas.may_end(array.formula)?;
                Ok(if may_end { Liveness::Live } else { Liveness::Expand })
            }
        }
    }

    fn value_liveness(
        &mut self,
        goal: FormulaId,
        level: Level,
        scope: &mut Scope<'_>,
    ) -> Result<Liveness, Error> {
        if self.plainly_live(goal)? {
            return Ok(Liveness::Live);
        }
        let mut possible = Vec::new();
        for t in Type::ALL {
            let formula = self.formulas.split(goal, t)?;
            if formula != Formulas::no() {
                possible.push((t, formula));
            }
        }
        Ok(match possible[..] {
            [] => Liveness::Dead,
            [(Type::Object, formula)] => {
                let object = self.whole_object(goal, formula, level)?;
                Liveness::All(vec![self.members(scope.arena, object, true)])
            }
            [(Type::Array, formula)] => {
                Liveness::All(vec![self.array(scope.arena, formula, level)?])
            }
            _ => Liveness::Expand,
        })
    }

    /// Returns whether a look at the types tells that some value meets `goal`.
    fn plainly_live(&mut self, goal: FormulaId) -> Result<bool, Error> {
        for t in Type::ALL {
            let formula = self.formulas.split(goal, t)?;
            let live = match t {
                _ if formula == Formulas::no() => false,
                Type::Null | Type::False | Type::True => true,
                Type::Number | Type::String => self.formulas.is_plain(formula),
                Type::Array | Type::Object => self.formulas.may_end(formula)?,
            };
            if live {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns an object in any order as one in declared order, whose rest has as many members.
    pub(super) fn in_order(&self, id: ObjectId) -> Result<Option<Object>, Error> {
        let object = self.object(id)?;
        let progress = Progress { any: false, ..object.progress };
        Ok(object.progress.any.then_some(Object { progress, ..object }))
    }

    /// Returns the rest of an object without members that need not be there, if that is plain: as many bytes
    /// complete the object as complete this. It does not depend on the members before, so that it is
    /// shared by the orders in which they were written.
    pub(super) fn required_only(
        &mut self,
        id: ObjectId,
        first: bool,
        scope: &mut Scope<'_>,
    ) -> Result<Option<ExprId>, Error> {
        let object = self.object(id)?;
        let Some(required) = self.required(&object) else { return Ok(None) };
        let spaces = self.spaces(scope.arena, object.level);
        let Some(&position) = required.first() else {
            if !self.formulas.may_end(object.formula)? {
                return Ok(None);
            }
            let close = scope.arena.byte(b'}');
            let space = if first { spaces.empty } else { spaces.close };
            return Ok(Some(scope.arena.concat2(space, close)));
        };
        let taken = SetId::at(self.sets.intern(Box::default()));
        let progress = Progress { from: position, taken, past: None, any: false };
        let Some(name) = self.order(&object).names.get(position as usize).copied() else {
            return Ok(None);
        };
        let after = self.after_name(&Object { progress, ..object }, position, scope)?;
        let name = [b"\"", &self.spelling(name)[..], b"\""].concat();
        let value = self.member_value(after, scope)?;
        let member = scope.arena.literal_then(&name, value);
        Ok(Some(if first {
            scope.arena.concat2(spaces.open, member)
        } else {
            let comma = scope.arena.byte(b',');
            scope.arena.concat(&[comma, spaces.comma, member])
        }))
    }

    fn members_liveness(&mut self, id: ObjectId, scope: &mut Scope<'_>) -> Result<Liveness, Error> {
        let object = self.object(id)?;
        if self.formulas.may_end(object.formula)? {
            return Ok(Liveness::Live);
        }
        if let Some(ordered) = self.in_order(id)? {
            return Ok(Liveness::All(vec![self.members(scope.arena, ordered, false)]));
        }
        match self.required(&object) {
            Some(required) => match required.first() {
                Some(&position) => {
                    let after = self.after_name(&object, position, scope)?;
                    Ok(Liveness::All(vec![self.value_and_rest(after, scope)?]))
                }
                None => Ok(Liveness::Expand),
            },
            None => Ok(Liveness::Expand),
        }
    }

    /// Returns the positions of the required names, in order, if nothing else decides whether the
    /// object can be finished: no member says anything of another, and no more members are needed.
    fn required(&self, object: &Object) -> Option<Vec<u32>> {
        let order = self.order(object);
        let mut required = Vec::new();
        let (mut least, mut below) = (0, UNBOUNDED);
        for part in self.formulas.conjuncts(object.formula) {
            let &Formula::Literal { atom, positive } = self.formulas.get(part) else { return None };
            match (self.formulas.atom(atom), positive) {
                (Atom::Present(name), true) => required.push(order.position(*name)?),
                (&Atom::MemberCount(n), true) => least = n,
                (&Atom::MemberCount(n), false) => below = n,
                (Atom::Members(..) | Atom::MemberNames(_) | Atom::EqualMembers(_), true)
                | (Atom::Present(_), false) => {}
                (Atom::UnevaluatedMembers(clauses, _), true)
                    if clauses.iter().all(|&(_, condition)| condition == Formulas::yes()) => {}
                _ => return None,
            }
        }
        required.sort_unstable();
        let count = u32::try_from(required.len()).unwrap_or(UNBOUNDED);
        (least <= count && count < below).then_some(required)
    }

    fn names_liveness(
        &mut self,
        id: ObjectId,
        (low, high): (u32, u32),
        scope: &mut Scope<'_>,
    ) -> Result<Liveness, Error> {
        let object = self.object(id)?;
        let open: Vec<u32> = self
            .open_names(&object, (low, high))
            .into_iter()
            .map(|(_, _, position)| position)
            .take(MOST_TRIED)
            .collect();
        for position in open {
            let after = self.after_name(&object, position, scope)?;
            for (goal, formula) in self.formulas.outcomes(after.formula)? {
                if !self.plainly_live(goal)? {
                    continue;
                }
                if self.formulas.may_end(formula)? {
                    return Ok(Liveness::Live);
                }
                // The rest needs the same members whichever name comes first.
                let rest = Object { formula, ..after };
                if self.required(&object).is_some() && self.required(&rest).is_some() {
                    return Ok(Liveness::All(vec![self.members(scope.arena, rest, false)]));
                }
            }
        }
        Ok(Liveness::Expand)
    }
}

impl Formulas {
    /// Returns whether a formula about a scalar plainly has a solution: it is trivial, a length, a list
    /// or bounds that are no more than "an integer".
    fn is_plain(&self, formula: FormulaId) -> bool {
        match self.get(formula) {
            Formula::True => true,
            Formula::Literal { atom, positive: true } => match *self.atom(*atom) {
                Atom::Length(..) | Atom::Strings(_) | Atom::Numbers(_) => true,
                Atom::Bounds(id) => {
                    let bounds = self.bounds(id);
                    (bounds.minimum.is_none() || bounds.maximum.is_none())
                        && bounds.multiple_of.is_empty()
                }
                _ => false,
            },
            _ => false,
        }
    }
}
