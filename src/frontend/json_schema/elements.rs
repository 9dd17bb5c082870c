//! Expands half-written arrays: which element may come next, and what follows it.

use super::check::LEVELS;
use super::document::ValueId;
use super::engine::{Array, ArrayId, Engine, Family, Level, SetId, Turn};
use super::formula::{Atom, Formula, FormulaId, Formulas};
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
        level: Level,
    ) -> Result<ExprId, Error> {
        let mut parts = Vec::new();
        for (formula, unique) in self.formulas.unique_cases(formula)? {
            let unique = unique.then(|| SetId::at(self.sets.intern(Box::default())));
            parts.push(self.elements(arena, Array { formula, unique, level }, Turn::Open));
        }
        Ok(arena.alt(&parts))
    }

    /// Returns the rest of `array`.
    fn elements(&mut self, arena: &mut Arena, array: Array, turn: Turn) -> ExprId {
        let id = ArrayId::at(self.arrays.intern(array));
        self.lazy(arena, Family::Elements(id, turn))
    }

    pub(super) fn expand_elements(
        &mut self,
        id: ArrayId,
        turn: Turn,
        scope: &mut Scope<'_>,
    ) -> Result<ExprId, Error> {
        let array = *self.arrays.get(id.index()).ok_or_else(super::codec::corrupted)?;
        let spaces = self.spaces(scope.arena, array.level);
        if array.unique.is_none()
            && let Some(rest) = self.uniform(&array, turn == Turn::Open, &spaces, scope)?
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
                    let rest = self.elements(scope.arena, rest, Turn::Element);
                    parts.push(scope.arena.concat2(value, rest));
                }
            }
        }
        let may_end = self.formulas.may_end(array.formula)?;
        let arena = &mut *scope.arena;
        let next = arena.alt(&parts);
        let end = if may_end { arena.byte(b']') } else { Arena::EMPTY };
        Ok(match turn {
            Turn::Open => {
                let end = arena.concat2(spaces.empty, end);
                let next = arena.concat2(spaces.open, next);
                arena.alt2(end, next)
            }
            Turn::Element => {
                let comma = arena.byte(b',');
                let next = arena.concat(&[comma, spaces.comma, next]);
                let end = arena.concat2(spaces.close, end);
                arena.alt2(end, next)
            }
            Turn::Comma => next,
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
    /// All of them are remembered by the history register, in their one spelling, so that equal values
    /// have equal texts. Values of which there are few are remembered by the array's state as well,
    /// which tells when none is left.
    fn unique_element(
        &mut self,
        goal: FormulaId,
        rest: Array,
        seen: SetId,
        parts: &mut Vec<ExprId>,
        scope: &mut Scope<'_>,
    ) -> Result<(), Error> {
        let level = Level { canonical: true, ..self.below(rest.level) };
        let seen = self.sets.get(seen.index()).map_or(Vec::new(), |s| s.to_vec());
        for t in Type::ALL {
            let formula = self.formulas.split(goal, t)?;
            if formula == Formulas::no() {
                continue;
            }
            let Some(values) = self.few(goal, (formula, t), level, scope)? else {
                let value = match t {
                    Type::Array | Type::Object => self.call_typed(scope, goal, level, Some(t)),
                    _ => self.expand_value(goal, level, Some(t), scope)?,
                };
                self.fresh_element(t, value, rest, parts, scope)?;
                continue;
            };
            for (text, value) in values {
                let key = self.sets.intern(text.into_iter().map(u32::from).collect());
                let key = u32::try_from(key).unwrap_or(u32::MAX);
                let Err(at) = seen.binary_search(&key) else { continue };
                let mut more = seen.clone();
                more.insert(at, key);
                let unique = Some(SetId::at(self.sets.intern(more.into())));
                self.fresh_element(t, value, Array { unique, ..rest }, parts, scope)?;
            }
        }
        Ok(())
    }

    /// Appends the elements `value`, of type `t`, that were not written before, each with the rest of
    /// the array. Only strings are recorded without the byte after them: other values are prefixes of
    /// each other, or are written by a rule of their own.
    fn fresh_element(
        &mut self,
        t: Type,
        value: ExprId,
        rest: Array,
        parts: &mut Vec<ExprId>,
        scope: &mut Scope<'_>,
    ) -> Result<(), Error> {
        let arena = &mut *scope.arena;
        if t == Type::String {
            let text = arena.fresh(value);
            let rest = self.elements(arena, rest, Turn::Element);
            parts.push(arena.concat2(text, rest));
            return Ok(());
        }
        let before = |arena: &mut Arena, byte: u8| {
            let byte = arena.byte(byte);
            let text = arena.concat2(value, byte);
            arena.fresh(text)
        };
        let text = before(arena, b',');
        let space = self.spaces(arena, rest.level).comma;
        let next = self.elements(arena, rest, Turn::Comma);
        parts.push(arena.concat(&[text, space, next]));
        if self.formulas.may_end(rest.formula)? {
            let whitespace = self.whitespace(rest.level);
            for (byte, end) in Spaces::endings(arena, whitespace, rest.level.depth) {
                let text = before(arena, byte);
                parts.push(arena.concat2(text, end));
            }
        }
        Ok(())
    }

    /// Returns the values of type `t` that meet `goal`, whose formula for it is `formula`, each with a
    /// text that equal values share, if they are few.
    fn few(
        &mut self,
        goal: FormulaId,
        (formula, t): (FormulaId, Type),
        level: Level,
        scope: &mut Scope<'_>,
    ) -> Result<Option<Few>, Error> {
        let constant =
            |arena: &mut Arena, text: &[u8]| Some(vec![(text.to_vec(), arena.literal(text))]);
        Ok(match t {
            Type::Null => constant(scope.arena, b"null"),
            Type::False => constant(scope.arena, b"false"),
            Type::True => constant(scope.arena, b"true"),
            Type::Number | Type::String => {
                let all = self.expand_value(goal, level, Some(t), scope)?;
                let mut budget = self.budget();
                let texts = self.derivatives.texts(scope.arena, all, FEW_VALUES, &mut budget);
                texts.map(|texts| {
                    let with_text = |text: Vec<u8>| {
                        let value = scope.arena.literal(&text);
                        (text, value)
                    };
                    texts.into_iter().map(with_text).collect()
                })
            }
            Type::Array | Type::Object => {
                let Some(values) = self.formulas.equal_values(formula) else {
                    return self.few_unlisted(formula, t, scope.arena);
                };
                let mut few: Few = Vec::with_capacity(values.len());
                for value in values {
                    let Some(value) = value else {
                        if self.formulas.may_end(formula)? {
                            few.push((b"[]".to_vec(), scope.arena.literal(b"[]")));
                        }
                        continue;
                    };
                    let equal = self.formulas.literal(Atom::Equal(value));
                    let both = self.formulas.and(&[goal, equal]);
                    if !self.formulas.is_dead(both)? {
                        let text = self.formulas.program.document.canonical_text(value);
                        few.push((text, self.call(scope, both, level)));
                    }
                }
                few.sort_unstable();
                few.dedup_by(|a, b| a.0 == b.0);
                Some(few)
            }
        })
    }
}

impl Engine {
    /// Returns the arrays or objects that satisfy `formula`, which does not list them, if there are plainly
    /// few of them: that is known of the empty one alone.
    fn few_unlisted(
        &mut self,
        formula: FormulaId,
        t: Type,
        arena: &mut Arena,
    ) -> Result<Option<Few>, Error> {
        let most =
            self.formulas.most_values(formula, t, LEVELS)?.map_or(usize::MAX, |n| n as usize);
        let empty = self.formulas.may_end(formula)?;
        match most {
            0 => Ok(Some(Vec::new())),
            1 if empty => {
                let text: &[u8] = if t == Type::Array { b"[]" } else { b"{}" };
                Ok(Some(vec![(text.to_vec(), arena.literal(text))]))
            }
            _ if most <= FEW_VALUES => Err(not_unique()),
            _ => Ok(None),
        }
    }
}

/// A few values, each with a text that equal values share.
type Few = Vec<(Vec<u8>, ExprId)>;

/// More values than this are remembered by the register and not by the state.
pub(super) const FEW_VALUES: usize = 64;

/// The error for elements that cannot be told apart by their text.
pub(super) fn not_unique() -> Error {
    let kind = ErrorKind::UnsupportedKeyword { keyword: "uniqueItems".into() };
    Error::new(kind, NOT_UNIQUE)
}

/// Why `uniqueItems` may not be enforced.
pub(super) const NOT_UNIQUE: &str = "`uniqueItems` is enforced only unnegated, and not where the elements \
    are arrays or objects of which there are few and which are not listed";

impl Formulas {
    /// Returns the arrays or objects that a conjunction lists, if it does and they are few; `None` stands
    /// for the empty array.
    pub(super) fn equal_values(&self, formula: FormulaId) -> Option<Vec<Option<ValueId>>> {
        let of_case = |case: FormulaId| {
            self.conjuncts(case).into_iter().find_map(|part| match self.get(part) {
                Formula::Literal { atom, positive: true } => match *self.atom(*atom) {
                    Atom::EqualMembers(value) => Some(Some(value)),
                    Atom::EqualElements(None) => Some(None),
                    Atom::EqualElements(Some(first)) => {
                        self.program.document.parent(first).map(Some)
                    }
                    _ => None,
                },
                _ => None,
            })
        };
        if let Some(one) = of_case(formula) {
            return Some(vec![one]);
        }
        self.conjuncts(formula).into_iter().find_map(|part| match self.get(part) {
            Formula::Or(cases) if cases.len() <= FEW_VALUES => {
                cases.iter().map(|&case| of_case(case)).collect()
            }
            _ => None,
        })
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
