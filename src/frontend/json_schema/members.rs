//! Expands half-written objects: which member may come next, and what follows it.

use super::elements::FEW_VALUES;
use super::engine::{Engine, Family, Level, Object, ObjectId, Progress, SetId, Texts, quoted};
use super::formula::{Atom, Formula, FormulaId, Formulas};
use super::names::NameId;
use super::object::{Key, NameTest};
use super::options::PropertyOrder;
use super::schema::{Type, TypeSet};
use crate::error::Error;
use crate::ids::ExprId;
use crate::ir::chars::Encoding;
use crate::ir::{Arena, Scope, UNBOUNDED};
use crate::limits::{Budget, BudgetExceeded};

/// Up to this many names that may come next are written out at once, not as a trie.
const FEW_NAMES: usize = 6;
/// Up to this many name tests, every combination is taken to be possible.
const FEW_TESTS: usize = 2;
/// Of so many, all combinations are taken where finding them would be long.
const SOME_TESTS: usize = 8;
/// The work that listing the names which pass the same tests may take.
const LISTING_WORK: u64 = 16_384;
/// So many name tests are combined at most.
const MAX_TESTS: usize = 64;

impl Engine {
    /// Returns the progress of an object without members. In its one spelling, they are in order.
    pub(super) fn start(&mut self, level: Level) -> Progress {
        let any = self.formulas.program.options.property_order == PropertyOrder::Any;
        let any = any && !level.canonical;
        Progress { from: 0, taken: SetId::at(self.sets.intern(Box::default())), past: None, any }
    }

    /// Returns the rest of `object`.
    pub(super) fn members(&mut self, arena: &mut Arena, object: Object, first: bool) -> ExprId {
        let id = ObjectId::at(self.objects.intern(object));
        self.lazy(arena, Family::Members(id, first))
    }

    pub(super) fn object(&self, id: ObjectId) -> Result<Object, Error> {
        self.objects.get(id.index()).copied().ok_or_else(super::codec::corrupted)
    }

    pub(super) fn expand_members(
        &mut self,
        id: ObjectId,
        first: bool,
        scope: &mut Scope<'_>,
    ) -> Result<ExprId, Error> {
        let object = self.object(id)?;
        let spaces = self.spaces(scope.arena, object.level);
        if let Some(rest) = self.counted(&object, first, scope)? {
            return Ok(rest);
        }
        let mut keys = Vec::new();
        let all = self.order(&object).len();
        let names = self.names(id, &object, (0, all, 0), scope);
        let quote = scope.arena.byte(b'"');
        keys.push(scope.arena.concat2(quote, names));
        for (names, formula) in self.others(&object, scope)? {
            for (name, progress) in self.open_others(&object, names, scope) {
                let after = Object { formula, progress, ..object };
                let name = scope.arena.fresh(name);
                let value = self.member_value(after, scope)?;
                keys.push(scope.arena.concat2(name, value));
            }
        }
        let keys = scope.arena.alt(&keys);
        let close = scope.arena.byte(b'}');
        let may_end = self.formulas.may_end(object.formula)?;
        let arena = &mut *scope.arena;
        let end = if may_end { close } else { Arena::EMPTY };
        Ok(if first && spaces.open == spaces.empty {
            let next = arena.alt2(end, keys);
            arena.concat2(spaces.open, next)
        } else if first {
            let (end, keys) = (arena.concat2(spaces.empty, end), arena.concat2(spaces.open, keys));
            arena.alt2(end, keys)
        } else {
            let comma = arena.byte(b',');
            let keys = arena.concat(&[comma, spaces.comma, keys]);
            let end = arena.concat2(spaces.close, end);
            arena.alt2(end, keys)
        })
    }

    /// Returns the rest of `object` as a counted loop, if only additional members may follow, each like
    /// the last, and their number is bounded.
    fn counted(
        &mut self,
        object: &Object,
        first: bool,
        scope: &mut Scope<'_>,
    ) -> Result<Option<ExprId>, Error> {
        let last = object.progress.from >= self.order(object).len();
        let (formula, min, max) = self
            .formulas
            .without_counts(object.formula, |atom| matches!(atom, Atom::MemberCount(_)));
        if !last || formula == object.formula || object.level.canonical {
            return Ok(None);
        }
        let uncounted = Object { formula, ..*object };
        let mut members = Vec::new();
        for (name, after) in self.others(&uncounted, scope)? {
            if self.texts(name, scope).is_some() {
                return Ok(None);
            }
            let outcomes = self.formulas.outcomes(after)?;
            let &[(goal, rest)] = &outcomes[..] else { return Ok(None) };
            if rest != formula {
                return Ok(None);
            }
            let name = scope.arena.fresh(name);
            let value = self.after_colon(goal, object.level, scope);
            members.push(scope.arena.concat2(name, value));
        }
        if !self.formulas.may_end(formula)? {
            return Ok(None);
        }
        let spaces = self.spaces(scope.arena, object.level);
        let member = scope.arena.alt(&members);
        Ok(Some(separated(scope.arena, member, (min, max), first, &spaces, b'}')))
    }

    /// Returns `:`, and the values that meet `goal`.
    fn after_colon(&mut self, goal: FormulaId, level: Level, scope: &mut Scope<'_>) -> ExprId {
        let value = self.call(scope, goal, self.below(level));
        let colon = scope.arena.byte(b':');
        let space = self.spaces(scope.arena, level).colon;
        scope.arena.concat(&[colon, space, value])
    }

    /// Returns `:`, the value and the rest of the object, when `after.formula` is about both.
    pub(super) fn member_value(
        &mut self,
        after: Object,
        scope: &mut Scope<'_>,
    ) -> Result<ExprId, Error> {
        let values = self.value_and_rest(after, scope)?;
        let colon = scope.arena.byte(b':');
        let space = self.spaces(scope.arena, after.level).colon;
        Ok(scope.arena.concat(&[colon, space, values]))
    }

    /// Returns the names that may come next among those from `low` to `high` of the names sorted by
    /// spelling, each with its place there, its spelling and its position: as far as is certain without
    /// deriving the formula by each of them.
    pub(super) fn open_names(
        &self,
        object: &Object,
        (low, high): (u32, u32),
    ) -> Vec<(u32, Box<[u8]>, u32)> {
        let last = self.last(object);
        let Progress { from, taken, .. } = object.progress;
        let taken = self.sets.get(taken.index()).map_or(&[][..], |taken| taken);
        let is_open = |position: u32| {
            from <= position && position <= last && taken.binary_search(&position).is_err()
        };
        let sorted = self.order(object).sorted.get(low as usize..high as usize);
        (low..)
            .zip(sorted.unwrap_or_default())
            .filter(|(_, (_, position))| is_open(*position))
            .map(|(at, (spelling, position))| (at, spelling.clone(), *position))
            .collect()
    }

    /// Returns the values and rests that `after.formula` is about.
    pub(super) fn value_and_rest(
        &mut self,
        after: Object,
        scope: &mut Scope<'_>,
    ) -> Result<ExprId, Error> {
        let outcomes = self.formulas.outcomes(after.formula)?;
        let mut parts = Vec::with_capacity(outcomes.len());
        for &(goal, formula) in &outcomes {
            let value = self.element(scope, goal, after.level, outcomes.len())?;
            let rest = self.members(scope.arena, Object { formula, ..after }, false);
            parts.push(scope.arena.concat2(value, rest));
        }
        Ok(scope.arena.alt(&parts))
    }

    /// Returns the values that meet `goal`, inside an array or object at `level`, as one of `cases`.
    ///
    /// A value is a call of its rule, which all its occurrences share. Scalars of one case among
    /// several stand in place: there the automaton follows all cases at once, in one state.
    pub(super) fn element(
        &mut self,
        scope: &mut Scope<'_>,
        goal: FormulaId,
        level: Level,
        cases: usize,
    ) -> Result<ExprId, Error> {
        let level = self.below(level);
        if cases > 1 && self.formulas.types(goal)?.is_subset(TypeSet::SCALARS) {
            return self.expand_value(goal, level, None, scope);
        }
        Ok(self.call(scope, goal, level))
    }

    /// Returns the last position that may come next.
    fn last(&self, object: &Object) -> u32 {
        if object.progress.any {
            return UNBOUNDED;
        }
        let order = self.order(object);
        self.formulas
            .last_position(object.formula, &|name| order.position(name).unwrap_or(UNBOUNDED))
    }

    /// Returns what may follow the opening quote of a name, or its first `depth` bytes, among those from
    /// `low` to `high` of the names sorted by spelling.
    fn names(
        &mut self,
        id: ObjectId,
        object: &Object,
        (low, high, depth): (u32, u32, u32),
        scope: &mut Scope<'_>,
    ) -> ExprId {
        let open = self.open_names(object, (low, high));
        let few = open.len() <= FEW_NAMES;
        let start = depth as usize;
        let mut parts = Vec::new();
        for group in open.chunk_by(|a, b| !few && a.1.get(start) == b.1.get(start)) {
            let (at, first, position) = &group[0];
            let rest = first.get(start..).unwrap_or_default();
            parts.push(match group.last() {
                Some((last, other, _)) if group.len() > 1 => {
                    let other = other.get(start..).unwrap_or_default();
                    let shared = rest.iter().zip(other).take_while(|(a, b)| a == b).count();
                    let deeper = u32::try_from(start + shared).unwrap_or(u32::MAX);
                    let tail = self.lazy(scope.arena, Family::Names(id, *at, last + 1, deeper));
                    scope.arena.literal_then(&rest[..shared], tail)
                }
                _ => {
                    let tail = self.lazy(scope.arena, Family::Named(id, *position));
                    let quote = scope.arena.byte(b'"');
                    let tail = scope.arena.concat2(quote, tail);
                    scope.arena.literal_then(rest, tail)
                }
            });
        }
        scope.arena.alt(&parts)
    }

    pub(super) fn expand_names(
        &mut self,
        id: ObjectId,
        low: u32,
        high: u32,
        depth: u32,
        scope: &mut Scope<'_>,
    ) -> Result<ExprId, Error> {
        let object = self.object(id)?;
        Ok(self.names(id, &object, (low, high, depth), scope))
    }

    pub(super) fn expand_named(
        &mut self,
        id: ObjectId,
        position: u32,
        scope: &mut Scope<'_>,
    ) -> Result<ExprId, Error> {
        let object = self.object(id)?;
        let after = self.after_name(&object, position, scope)?;
        self.member_value(after, scope)
    }

    /// Returns `object` after the name at `position`, with a formula about its value and the rest.
    pub(super) fn after_name(
        &mut self,
        object: &Object,
        position: u32,
        scope: &mut Scope<'_>,
    ) -> Result<Object, Error> {
        let name = self.order(object).names.get(position as usize).copied();
        let name = name.ok_or_else(super::codec::corrupted)?;
        let mut tests = Vec::new();
        for test in self.formulas.name_tests(object.formula) {
            tests.push((test, self.test(test, name, scope.arena)?));
        }
        let order = self.orders.get(object.order);
        let Progress { taken, any, .. } = object.progress;
        let before = self.sets.get(taken.index()).map_or(&[][..], |taken| taken);
        let is_open = |at: u32| match any {
            true => at != position && before.binary_search(&at).is_err(),
            false => at > position,
        };
        let key = Key {
            name: Some(name),
            follows: &|other| order.position(other).is_none_or(is_open),
            test: &|test| tests.iter().any(|&(t, outcome)| t == test && outcome),
        };
        let formula = self.formulas.read_member(object.formula, &key)?;
        let progress = if any {
            let mut taken = self.sets.get(taken.index()).map_or(Vec::new(), |t| t.to_vec());
            if let Err(at) = taken.binary_search(&position) {
                taken.insert(at, position);
            }
            Progress { taken: SetId::at(self.sets.intern(taken.into())), ..object.progress }
        } else {
            Progress { from: position.saturating_add(1), ..object.progress }
        };
        Ok(Object { formula, progress, ..*object })
    }

    /// Returns the names, with quotes, that pass a test.
    fn passing(&mut self, test: NameTest, arena: &mut Arena) -> Result<ExprId, Error> {
        let encoding = Encoding::JsonCanonical;
        match test {
            NameTest::Pattern(id) => self.languages.pattern(&self.formulas, arena, id, encoding),
            NameTest::Goal(goal) => {
                let formula = self.formulas.split(goal, Type::String)?;
                self.languages.string(&mut self.formulas, arena, formula, encoding)
            }
        }
    }

    fn test(&mut self, test: NameTest, name: NameId, arena: &mut Arena) -> Result<bool, Error> {
        let expr = self.passing(test, arena)?;
        let (spelling, mut budget) = (self.spelling(name), self.budget());
        self.derivatives.matches(arena, expr, &spelling, &mut budget)
    }

    /// Returns `names`, which the schema does not mention, with the progress of `object` after one of
    /// them; if they are few, each by itself, so that it is known when none is left.
    fn open_others(
        &mut self,
        object: &Object,
        names: ExprId,
        scope: &mut Scope<'_>,
    ) -> Vec<(ExprId, Progress)> {
        let Some(texts) = self.texts(names, scope) else {
            return vec![(names, self.after_others(object))];
        };
        let Progress { taken, past, any, .. } = object.progress;
        let taken = self.sets.get(taken.index()).map_or(Vec::new(), |taken| taken.to_vec());
        let known = self.order(object).len();
        let mut open = Vec::with_capacity(texts.len());
        for text in texts.iter() {
            let units: Box<[u32]> = text.iter().copied().map(u32::from).collect();
            let is_past = |id: SetId| self.sets.get(id.index()).is_some_and(|past| *past >= units);
            if past.is_some_and(is_past) {
                continue;
            }
            let id = SetId::at(self.sets.intern(units));
            let position = u32::try_from(id.index()).unwrap_or(UNBOUNDED).saturating_add(known);
            let Err(at) = taken.binary_search(&position) else { continue };
            let progress = if any {
                let mut more = taken.clone();
                more.insert(at, position);
                Progress { taken: SetId::at(self.sets.intern(more.into())), ..object.progress }
            } else {
                Progress { from: known, past: Some(id), ..object.progress }
            };
            open.push((scope.arena.literal(text), progress));
        }
        open
    }

    /// Returns the texts of `names`, with their quotes, if they are few and soon found.
    fn texts(&mut self, names: ExprId, scope: &mut Scope<'_>) -> Option<Texts> {
        if let Some(known) = self.listed.get(&names) {
            return known.clone();
        }
        let mut budget = Budget::new("compile_work", LISTING_WORK);
        let texts = self.derivatives.texts(scope.arena, names, FEW_VALUES, &mut budget);
        let texts = texts.map(|mut texts| {
            texts.sort_unstable();
            texts.into_iter().map(Vec::into_boxed_slice).collect()
        });
        self.listed.insert(names, texts.clone());
        texts
    }

    /// Returns the progress of `object` after an additional member. Of these there is no order, so that
    /// in its one spelling an object has one at most: then its progress is past all others, too.
    fn after_others(&self, object: &Object) -> Progress {
        if object.progress.any {
            return object.progress;
        }
        let past = u32::from(object.level.canonical);
        Progress { from: self.order(object).len().saturating_add(past), ..object.progress }
    }

    /// Returns the names that the schema does not mention, with their quotes, in classes that pass the
    /// same tests, each with what the formula says after one of them. Impossible classes are left out
    /// where that is plain.
    pub(super) fn others(
        &mut self,
        object: &Object,
        scope: &mut Scope<'_>,
    ) -> Result<Vec<(ExprId, FormulaId)>, Error> {
        let past = object.progress.from > self.order(object).len();
        if past || self.last(object) != UNBOUNDED {
            return Ok(Vec::new());
        }
        let tests = self.formulas.name_tests(object.formula);
        let any = object.progress.any;
        let mut passing = Vec::with_capacity(tests.len());
        for &test in &tests {
            passing.push(self.passing(test, scope.arena)?);
        }
        let classes = self.combinations(&passing, scope.arena)?;
        let others = self.unmentioned(object, scope.arena);
        let mut found = Vec::new();
        for &class in &classes {
            let passes = |test: NameTest| {
                tests.iter().position(|&t| t == test).is_some_and(|i| class >> i & 1 == 1)
            };
            if self.formulas.program.options.closed_objects && !self.speaks_of(object, &passes) {
                continue;
            }
            let key = Key { name: None, follows: &|_| any, test: &passes };
            let formula = self.formulas.read_member(object.formula, &key)?;
            let mut parts = others.clone();
            for (i, &passing) in passing.iter().enumerate() {
                let bit = 1 << i;
                if class & bit != 0 {
                    parts.push(passing);
                } else if classes.iter().any(|&other| other & (class | bit) == class | bit) {
                    parts.push(scope.arena.not(passing));
                }
            }
            let names = scope.arena.and(&parts);
            if formula != Formulas::no() && names != Arena::EMPTY {
                found.push((quoted(scope.arena, names), formula));
            }
        }
        Ok(found)
    }

    /// Returns the combinations of `tests` that a name can pass, and perhaps some that none can.
    fn combinations(&mut self, tests: &[ExprId], arena: &mut Arena) -> Result<Vec<u64>, Error> {
        if tests.len() <= FEW_TESTS {
            return Ok((0..1 << tests.len()).collect());
        }
        let too_many = || BudgetExceeded::new("unroll", MAX_TESTS as u64);
        if tests.len() > MAX_TESTS {
            return Err(too_many().into());
        }
        if let Some(known) = self.combinations.get(tests) {
            return Ok(known.clone());
        }
        let all = self.languages.any_string(arena, Encoding::JsonCanonical);
        let mut budget = Budget::new("unroll", self.formulas.program.limits.unroll as u64 * 10);
        let found = self.derivatives.combinations(arena, all, tests, &mut budget);
        let few = (tests.len() <= SOME_TESTS).then(|| (0..1 << tests.len()).collect());
        let found = found.or(few).ok_or_else(too_many)?;
        self.combinations.insert(tests.into(), found.clone());
        Ok(found)
    }

    /// Returns the languages, without quotes, whose intersection is the names not in the order.
    fn unmentioned(&mut self, object: &Object, arena: &mut Arena) -> Vec<ExprId> {
        if let Some(known) = self.unmentioned.get(&object.order) {
            return known.to_vec();
        }
        let mut parts = vec![self.languages.any_string(arena, Encoding::JsonCanonical)];
        let sorted = &self.order(object).sorted;
        if !sorted.is_empty() {
            let mentioned = arena.literals(sorted.iter().map(|(spelling, _)| spelling.to_vec()));
            parts.push(arena.not(mentioned));
        }
        self.unmentioned.insert(object.order, parts.clone().into());
        parts
    }

    /// Returns whether the schema says anything of names with these outcomes, or mentions none at all:
    /// what closed objects ask for.
    fn speaks_of(&self, object: &Object, passes: &dyn Fn(NameTest) -> bool) -> bool {
        let members = &self.formulas.program.schemas.members;
        self.order(object).len() == 0
            || self.formulas.atoms_of(object.formula).iter().any(|&(atom, ..)| {
                match self.formulas.atom(atom) {
                    Atom::Members(id, _) => {
                        let members = &members[id.index()];
                        members.additional.is_some()
                            || members.patterns.iter().any(|&(p, _)| passes(NameTest::Pattern(p)))
                    }
                    Atom::UnevaluatedMembers(..) => true,
                    _ => false,
                }
            })
    }
}

/// Returns between `min` and `max` times `item`, separated by commas, and the closing bracket; after the
/// opening one if `first`, else after another item.
pub(super) fn separated(
    arena: &mut Arena,
    item: ExprId,
    (min, max): (u32, u32),
    first: bool,
    spaces: &super::space::Spaces,
    close: u8,
) -> ExprId {
    let close = arena.byte(close);
    let comma = arena.byte(b',');
    let next = arena.concat(&[comma, spaces.comma, item]);
    let end = arena.concat2(spaces.close, close);
    if !first {
        let more = arena.repeat(next, min, max);
        return arena.concat2(more, end);
    }
    let mut parts = Vec::new();
    if min == 0 {
        parts.push(arena.concat2(spaces.empty, close));
    }
    if max > 0 {
        let fewer = if max == UNBOUNDED { max } else { max - 1 };
        let more = arena.repeat(next, min.saturating_sub(1), fewer);
        parts.push(arena.concat(&[spaces.open, item, more, end]));
    }
    arena.alt(&parts)
}

impl Formulas {
    /// Returns `formula` without the counts among its conjuncts, and the bounds that they set.
    pub(super) fn without_counts(
        &mut self,
        formula: FormulaId,
        counts: impl Fn(&Atom) -> bool,
    ) -> (FormulaId, u32, u32) {
        let (mut min, mut max) = (0, UNBOUNDED);
        let mut rest = Vec::new();
        for part in self.conjuncts(formula) {
            let (n, positive) = match self.get(part) {
                &Formula::Literal { atom, positive } if counts(self.atom(atom)) => {
                    match *self.atom(atom) {
                        Atom::MemberCount(n) | Atom::ElementCount(n) => (n, positive),
                        _ => continue,
                    }
                }
                _ => {
                    rest.push(part);
                    continue;
                }
            };
            if positive {
                min = n.max(min);
            } else {
                max = max.min(n.saturating_sub(1));
            }
        }
        (self.and(&rest), min, max)
    }
}
