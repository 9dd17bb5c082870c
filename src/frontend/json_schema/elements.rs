//! Expands half-written arrays: which element may come next, and what follows it.

use super::engine::{Array, ArrayId, Engine, Family, SetId};
use super::formula::{Atom, FormulaId, Formulas};
use super::members::separated;
use super::schema::Type;
use super::space::Spaces;
use crate::error::{Error, ErrorKind};
use crate::ids::ExprId;
use crate::ir::{Arena, Scope};

impl Engine {
    /// Returns the rest of an array after `[`.
    pub(super) fn array(
        &mut self,
        arena: &mut Arena,
        formula: FormulaId,
        level: u32,
    ) -> Result<ExprId, Error> {
        let mut parts = Vec::new();
        for (formula, unique) in self.formulas.unique_cases(formula)? {
            let unique = unique.then(|| SetId::at(self.sets.intern(Box::default())));
            parts.push(self.elements(arena, Array { formula, unique, level }, true));
        }
        Ok(arena.alt(&parts))
    }

    /// Returns the rest of `array`.
    fn elements(&mut self, arena: &mut Arena, array: Array, first: bool) -> ExprId {
        let id = ArrayId::at(self.arrays.intern(array));
        self.lazy(arena, Family::Elements(id, first))
    }

    pub(super) fn expand_elements(
        &mut self,
        id: ArrayId,
        first: bool,
        scope: &mut Scope<'_>,
    ) -> Result<ExprId, Error> {
        let array = *self.arrays.get(id.index()).ok_or_else(super::codec::corrupted)?;
        let spaces = self.spaces(scope.arena, array.level);
        if array.unique.is_none()
            && let Some(rest) = self.uniform(&array, first, &spaces, scope)?
        {
            return Ok(rest);
        }
        let after = self.formulas.read_element(array.formula)?;
        let mut parts = Vec::new();
        let outcomes = self.formulas.outcomes(after)?;
        for &(goal, formula) in &outcomes {
            let rest = Array { formula, ..array };
            match array.unique {
                Some(seen) => self.unique_element(goal, rest, seen, &mut parts, scope)?,
                None => {
                    let value = self.element(scope, goal, array.level, outcomes.len())?;
                    let rest = self.elements(scope.arena, rest, false);
                    parts.push(scope.arena.concat2(value, rest));
                }
            }
        }
        let may_end = self.formulas.may_end(array.formula)?;
        let arena = &mut *scope.arena;
        let next = arena.alt(&parts);
        let end = if may_end { arena.byte(b']') } else { Arena::EMPTY };
        Ok(if first {
            let (end, next) = (arena.concat2(spaces.empty, end), arena.concat2(spaces.open, next));
            arena.alt2(end, next)
        } else {
            let comma = arena.byte(b',');
            let next = arena.concat(&[comma, spaces.comma, next]);
            let end = arena.concat2(spaces.close, end);
            arena.alt2(end, next)
        })
    }

    /// Returns the rest of an array whose elements are all alike from here on, as a counted loop.
    fn uniform(
        &mut self,
        array: &Array,
        first: bool,
        spaces: &Spaces,
        scope: &mut Scope<'_>,
    ) -> Result<Option<ExprId>, Error> {
        let (formula, min, max) =
            self.formulas.without_counts(array.formula, |a| matches!(a, Atom::ElementCount(_)));
        let after = self.formulas.read_element(formula)?;
        let outcomes = self.formulas.outcomes(after)?;
        let goal = match outcomes[..] {
            [] => Formulas::no(),
            [(goal, rest)] if rest == formula => goal,
            _ => return Ok(None),
        };
        if !self.formulas.may_end(formula)? {
            return Ok(None);
        }
        let value = self.call(scope, goal, self.below(array.level));
        Ok(Some(separated(scope.arena, value, (min, max), first, spaces, b']')))
    }

    /// Appends the elements that meet `goal` and differ from all before, each with the rest of the
    /// array after it.
    ///
    /// Values of which there are finitely many are remembered by the array's state; strings by the
    /// history register, spelled canonically so that equal strings have equal texts.
    fn unique_element(
        &mut self,
        goal: FormulaId,
        rest: Array,
        seen: SetId,
        parts: &mut Vec<ExprId>,
        scope: &mut Scope<'_>,
    ) -> Result<(), Error> {
        let seen = self.sets.get(seen.index()).map_or(Vec::new(), |s| s.to_vec());
        for t in Type::ALL {
            let formula = self.formulas.split(goal, t)?;
            if formula == Formulas::no() {
                continue;
            }
            let Some(values) = self.listed(formula, t, scope)? else {
                if t != Type::String {
                    return Err(not_unique());
                }
                let encoding = crate::ir::chars::Encoding::JsonCanonical;
                let text = self.string(scope.arena, formula, encoding)?;
                let text = scope.arena.fresh(text);
                let rest = self.elements(scope.arena, rest, false);
                parts.push(scope.arena.concat2(text, rest));
                continue;
            };
            for (key, value) in values {
                let Err(at) = seen.binary_search(&key) else { continue };
                let mut more = seen.clone();
                more.insert(at, key);
                let unique = Some(SetId::at(self.sets.intern(more.into())));
                let rest = self.elements(scope.arena, Array { unique, ..rest }, false);
                parts.push(scope.arena.concat2(value, rest));
            }
        }
        Ok(())
    }

    /// Returns the values of type `t` that satisfy `formula`, each with a number that is its own, if
    /// they are listed.
    fn listed(
        &mut self,
        formula: FormulaId,
        t: Type,
        scope: &mut Scope<'_>,
    ) -> Result<Option<Vec<(u32, ExprId)>>, Error> {
        if let Type::Null | Type::False | Type::True = t {
            let text: &[u8] = match t {
                Type::Null => b"null",
                Type::False => b"false",
                _ => b"true",
            };
            return Ok(Some(vec![(t as u32, scope.arena.literal(text))]));
        }
        let Some(names) = self.formulas.listed_values(formula, t) else { return Ok(None) };
        let mut values = Vec::with_capacity(names.len());
        for name in names {
            // The numbers of texts begin after those of the constants; a string and a number of one
            // spelling differ by the last bit.
            let key = 8 + 2 * u32::try_from(name.index()).unwrap_or(u32::MAX / 4);
            let one = if t == Type::String {
                let one = self.formulas.any_of_strings(vec![name]);
                let both = self.formulas.and(&[one, formula]);
                (key, self.string(scope.arena, both, self.encoding())?)
            } else {
                let one = self.formulas.any_of_numbers(vec![name]);
                let both = self.formulas.and(&[one, formula]);
                (key + 1, self.languages.number(&mut self.formulas, scope.arena, both)?)
            };
            values.push(one);
        }
        Ok(Some(values))
    }
}

/// The error for elements that cannot be told apart by their text.
pub(super) fn not_unique() -> Error {
    let kind = ErrorKind::UnsupportedKeyword { keyword: "uniqueItems".into() };
    Error::new(kind, NOT_UNIQUE)
}

/// Why `uniqueItems` may not be enforced.
pub(super) const NOT_UNIQUE: &str =
    "`uniqueItems` is enforced only unnegated, and for strings, constants and listed numbers";

impl Formulas {
    /// Returns the texts of the list that a conjunction restricts its value to, if there is one and it
    /// is short.
    pub(super) fn listed_values(
        &self,
        formula: FormulaId,
        t: Type,
    ) -> Option<Vec<super::names::NameId>> {
        /// More values than this are remembered by the register and not by the state.
        const FEW_VALUES: usize = 64;
        self.listed(formula).filter(|names| t == Type::Number || names.len() <= FEW_VALUES)
    }

    /// Returns formulas without [`Atom::Unique`] whose union is `formula`, each with whether the
    /// elements must differ as well.
    fn unique_cases(&mut self, formula: FormulaId) -> Result<Vec<(FormulaId, bool)>, Error> {
        let atoms = self.atoms_of(formula);
        let unique = atoms.into_iter().find(|&(atom, ..)| *self.atom(atom) == Atom::Unique);
        let Some((unique, _, negated)) = unique else { return Ok(vec![(formula, false)]) };
        let mut cases = Vec::new();
        for truth in [true, false] {
            let case = self.rewrite(formula, &mut |formulas, atom, done| {
                Ok(if atom == unique {
                    Self::constant(truth)
                } else {
                    formulas.with_clauses(atom, done)
                })
            })?;
            if case == Self::no() {
                continue;
            }
            if !truth && negated {
                return Err(not_unique());
            }
            cases.push((case, truth));
        }
        Ok(cases)
    }
}
