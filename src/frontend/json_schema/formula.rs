//! Boolean formulas over what a schema asserts, hash-consed and simplified: equal ids mean equal
//! formulas, and the residual formula of a half-read object or array is its state.
//!
//! Negations stand at the atoms only. `oneOf` keeps a node of its own, because writing it with `and`
//! and `or` would multiply its parts. Children are made before their parents, so a formula is
//! rewritten in the order of ids, without recursion.

use std::sync::Arc;

use hashbrown::HashMap;

use super::disjoint::Analysis;
use super::document::ValueId;
use super::names::NameId;
use super::number::NumberConstraint;
use super::program::{Program, ScopeId, Scopes};
use super::schema::{ElementsId, MembersId, NodeId, PatternId, Type, id};
use crate::error::Error;
use crate::limits::BudgetExceeded;

id! {
    /// A formula.
    FormulaId
}
id! {
    /// An atom of formulas.
    AtomId
}
id! {
    /// A sorted list of texts.
    ListId
}
id! {
    /// A constraint on numbers that several keywords make together.
    BoundsId
}

/// A formula.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(super) enum Formula {
    /// Nothing satisfies it.
    False,
    /// Everything satisfies it.
    True,
    /// An atom or its negation.
    Literal {
        /// The atom.
        atom: AtomId,
        /// Whether it is not negated.
        positive: bool,
    },
    /// All of these (sorted, at least two).
    And(Box<[FormulaId]>),
    /// Any of these (sorted, at least two).
    Or(Box<[FormulaId]>),
    /// Exactly one of these (sorted, distinct, at least two), or not exactly one.
    One {
        /// The parts.
        parts: Box<[FormulaId]>,
        /// Whether it is "not exactly one".
        negated: bool,
    },
}

/// What an atom of [`Atom::UnevaluatedMembers`] or [`Atom::UnevaluatedElements`] counts as evaluated
/// where a condition holds.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub(super) enum Evaluates {
    /// Every member or element.
    All,
    /// The members that a members part names or matches.
    Members(MembersId),
    /// The first elements from here on, this many.
    Elements(u32),
    /// The elements that meet a goal.
    Matching(FormulaId),
}

/// The conditions under which members or elements are evaluated.
pub(super) type Clauses = Box<[(Evaluates, FormulaId)]>;

/// What a formula is about: a whole value, or (after splitting by type) a scalar, an object from some
/// member on, or an array from some element on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(super) enum Atom {
    /// The value satisfies a schema, in a dynamic scope.
    Schema(NodeId, ScopeId),
    /// The member or element being read meets a goal: a formula over [`Atom::Schema`] and
    /// [`Atom::Equal`].
    Value(FormulaId),
    /// The value equals this JSON value.
    Equal(ValueId),
    /// A keyword of a schema that is not enforced, by its position: it may hold or not.
    Unknown(NodeId, u32),

    /// The string is one of a list.
    Strings(ListId),
    /// The string has so many characters.
    Length(u32, u32),
    /// The string matches a pattern.
    Pattern(PatternId),
    /// The string is of a format.
    Format(NameId),
    /// The number is one of a list of canonical spellings.
    Numbers(ListId),
    /// The number is within bounds.
    Bounds(BoundsId),

    /// A member of this name follows.
    Present(NameId),
    /// At least so many members follow.
    MemberCount(u32),
    /// Every member that follows satisfies what a members part says of its name.
    Members(MembersId, ScopeId),
    /// The name of every member that follows meets a goal.
    MemberNames(FormulaId),
    /// Every member that follows is one of this object, with an equal value.
    EqualMembers(ValueId),
    /// Every member that follows is evaluated by a clause or meets a goal.
    UnevaluatedMembers(Clauses, FormulaId),

    /// Every element that follows satisfies what an elements part says, of which so many elements of
    /// the prefix have been read.
    Elements(ElementsId, ScopeId, u32),
    /// The elements that follow are equal to this one of an array and those after it, in number too.
    EqualElements(Option<ValueId>),
    /// At least so many elements follow.
    ElementCount(u32),
    /// At least so many of the elements that follow meet a goal.
    Contains(FormulaId, u32),
    /// All elements differ.
    Unique,
    /// Every element that follows is evaluated by a clause or meets a goal.
    UnevaluatedElements(Clauses, FormulaId),
}

/// What occurs in a formula.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    /// There is an [`Atom::Value`].
    pub(super) value: bool,
    /// There is another atom.
    pub(super) other: bool,
    /// There is an [`Atom::Value`] whose effect is not monotone: in a [`Formula::One`] or a clause.
    pub(super) entangled: bool,
}

impl Contents {
    fn union(self, other: Self) -> Self {
        Self {
            value: self.value || other.value,
            other: self.other || other.other,
            entangled: self.entangled || other.entangled,
        }
    }
}

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// The results of rewriting so far.
pub(super) type Done = Map<FormulaId, FormulaId>;

/// All formulas and atoms.
#[derive(Clone, Debug)]
pub(super) struct Formulas {
    /// What the formulas speak of.
    pub(super) program: Arc<Program>,
    nodes: Vec<Formula>,
    ids: Map<Formula, FormulaId>,
    negations: Vec<Option<FormulaId>>,
    contents: Vec<Contents>,
    atoms: Vec<Atom>,
    atom_ids: Map<Atom, AtomId>,
    lists: Vec<Box<[NameId]>>,
    list_ids: Map<Box<[NameId]>, ListId>,
    bounds: Vec<NumberConstraint>,
    bounds_ids: Map<NumberConstraint, BoundsId>,
    /// The dynamic scopes.
    pub(super) scopes: Scopes,
    /// Goals, and schemas by their literals, split by type.
    pub(super) split: Split,
    /// What comparisons looked at.
    pub(super) analysis: Box<Analysis>,
    overflow: bool,
    /// How many parts were looked at since this was last taken.
    pub(super) work: u64,
}

/// What was split by type so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Split {
    goals: Map<(FormulaId, Type), FormulaId>,
    schemas: Map<(FormulaId, Type), FormulaId>,
    /// What was added under a comparison of branches, which may itself need to split schemas.
    comparing: Option<Comparison>,
}

#[derive(Clone, Debug, Default)]
struct Comparison {
    goals: Vec<(FormulaId, Type)>,
    schemas: Vec<(FormulaId, Type)>,
    /// Whether another comparison was left out under it.
    cut_short: bool,
}

impl Split {
    /// Returns the formula of a goal.
    pub(super) fn goal(&self, goal: FormulaId, t: Type) -> Option<FormulaId> {
        self.goals.get(&(goal, t)).copied()
    }

    /// Returns the formula of a schema.
    pub(super) fn schema(&self, literal: FormulaId, t: Type) -> Option<FormulaId> {
        self.schemas.get(&(literal, t)).copied()
    }

    /// Adds the formula of a goal.
    pub(super) fn add_goal(&mut self, goal: FormulaId, t: Type, formula: FormulaId) {
        self.goals.insert((goal, t), formula);
        if let Some(comparison) = &mut self.comparing {
            comparison.goals.push((goal, t));
        }
    }

    /// Adds the formula of a schema.
    pub(super) fn add_schema(&mut self, literal: FormulaId, t: Type, formula: FormulaId) {
        self.schemas.insert((literal, t), formula);
        if let Some(comparison) = &mut self.comparing {
            comparison.schemas.push((literal, t));
        }
    }

    /// Begins a comparison of branches; returns false if one is under way, which must not nest: a schema
    /// may contain itself.
    pub(super) fn begin_comparison(&mut self) -> bool {
        if let Some(comparison) = &mut self.comparing {
            comparison.cut_short = true;
            return false;
        }
        self.comparing = Some(Comparison::default());
        true
    }

    /// Ends a comparison. What was split under it is forgotten if it was split with less care.
    pub(super) fn end_comparison(&mut self) {
        let Some(comparison) = self.comparing.take() else { return };
        if comparison.cut_short {
            for key in comparison.goals {
                self.goals.remove(&key);
            }
            for key in comparison.schemas {
                self.schemas.remove(&key);
            }
        }
    }
}

/// What of [`Formulas`] is saved.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct SavedFormulas {
    nodes: Vec<Formula>,
    atoms: Vec<Atom>,
    lists: Vec<Box<[NameId]>>,
    bounds: Vec<NumberConstraint>,
}

impl Formulas {
    /// Returns an empty table.
    pub(super) fn new(program: Arc<Program>) -> Self {
        let mut formulas = Self {
            program,
            nodes: Vec::new(),
            ids: Map::default(),
            negations: Vec::new(),
            contents: Vec::new(),
            atoms: Vec::new(),
            atom_ids: Map::default(),
            lists: Vec::new(),
            list_ids: Map::default(),
            bounds: Vec::new(),
            bounds_ids: Map::default(),
            scopes: Scopes::default(),
            split: Split::default(),
            analysis: Box::default(),
            overflow: false,
            work: 0,
        };
        let (no, yes) = (formulas.intern(Formula::False), formulas.intern(Formula::True));
        formulas.negations[no.index()] = Some(yes);
        formulas.negations[yes.index()] = Some(no);
        formulas
    }

    /// Returns the formula that nothing satisfies.
    pub(super) fn no() -> FormulaId {
        FormulaId::at(0)
    }

    /// Returns the formula that everything satisfies.
    pub(super) fn yes() -> FormulaId {
        FormulaId::at(1)
    }

    /// Returns [`Formulas::yes`] or [`Formulas::no`].
    pub(super) fn constant(truth: bool) -> FormulaId {
        FormulaId::at(usize::from(truth))
    }

    /// Returns the formula `id`.
    pub(super) fn get(&self, id: FormulaId) -> &Formula {
        &self.nodes[id.index()]
    }

    /// Returns the atom `id`.
    pub(super) fn atom(&self, id: AtomId) -> &Atom {
        &self.atoms[id.index()]
    }

    /// Returns what occurs in `id`.
    pub(super) fn contents(&self, id: FormulaId) -> Contents {
        self.contents[id.index()]
    }

    /// Returns the list `id`.
    pub(super) fn list(&self, id: ListId) -> &[NameId] {
        &self.lists[id.index()]
    }

    /// Returns the bounds `id`.
    pub(super) fn bounds(&self, id: BoundsId) -> &NumberConstraint {
        &self.bounds[id.index()]
    }

    /// Returns an error once a formula did not fit under the limit on expressions, past which the
    /// constructors return [`Formulas::no`], or when more work was done at once than compiling may take.
    pub(super) fn check(&self) -> Result<(), Error> {
        let limit = self.program.limits.compile_work;
        if self.work > limit {
            return Err(BudgetExceeded::new("compile_work", limit).into());
        }
        if self.overflow {
            let limit = self.program.limits.expressions as u64;
            return Err(BudgetExceeded::new("expressions", limit).into());
        }
        Ok(())
    }

    fn intern(&mut self, formula: Formula) -> FormulaId {
        if let Some(&id) = self.ids.get(&formula) {
            return id;
        }
        if self.nodes.len() >= self.program.limits.expressions {
            self.overflow = true;
            return Self::no();
        }
        let id = FormulaId::at(self.nodes.len());
        let contents = self.find_contents(&formula);
        self.contents.push(contents);
        self.negations.push(None);
        self.nodes.push(formula.clone());
        self.ids.insert(formula, id);
        id
    }

    fn find_contents(&self, formula: &Formula) -> Contents {
        let all = |parts: &[FormulaId]| {
            parts.iter().fold(Contents::default(), |all, &p| all.union(self.contents(p)))
        };
        match formula {
            Formula::False | Formula::True => Contents::default(),
            Formula::Literal { atom, .. } => match self.atom(*atom) {
                Atom::Value(_) => Contents { value: true, ..Contents::default() },
                Atom::UnevaluatedMembers(clauses, _) | Atom::UnevaluatedElements(clauses, _) => {
                    let value = clauses.iter().any(|&(_, c)| self.contents(c).value);
                    Contents { value, other: true, entangled: value }
                }
                _ => Contents { other: true, ..Contents::default() },
            },
            Formula::And(parts) | Formula::Or(parts) => all(parts),
            Formula::One { parts, .. } => {
                let contents = all(parts);
                Contents { entangled: contents.value, ..contents }
            }
        }
    }

    /// Returns the formula of `atom`.
    pub(super) fn literal(&mut self, atom: Atom) -> FormulaId {
        let id = match self.atom_ids.get(&atom) {
            Some(&id) => id,
            None => {
                let id = AtomId::at(self.atoms.len());
                self.atoms.push(atom.clone());
                self.atom_ids.insert(atom, id);
                id
            }
        };
        let yes = self.intern(Formula::Literal { atom: id, positive: true });
        if self.negations[yes.index()].is_none() {
            let no = self.intern(Formula::Literal { atom: id, positive: false });
            self.negations[yes.index()] = Some(no);
            self.negations[no.index()] = Some(yes);
        }
        yes
    }

    /// Returns the id of the sorted list of `names`.
    pub(super) fn intern_list(&mut self, mut names: Vec<NameId>) -> ListId {
        names.sort_unstable();
        names.dedup();
        let names: Box<[NameId]> = names.into();
        if let Some(&id) = self.list_ids.get(&names) {
            return id;
        }
        let id = ListId::at(self.lists.len());
        self.lists.push(names.clone());
        self.list_ids.insert(names, id);
        id
    }

    /// Returns the formula of being within `bounds`.
    pub(super) fn within(&mut self, bounds: &NumberConstraint) -> FormulaId {
        if let (Some(low), Some(high)) = (&bounds.minimum, &bounds.maximum)
            && (low.value > high.value
                || (low.value == high.value && (low.exclusive || high.exclusive)))
        {
            return Self::no();
        }
        let id = match self.bounds_ids.get(bounds) {
            Some(&id) => id,
            None => {
                let id = BoundsId::at(self.bounds.len());
                self.bounds.push(bounds.clone());
                self.bounds_ids.insert(bounds.clone(), id);
                id
            }
        };
        self.literal(Atom::Bounds(id))
    }

    /// Returns the negation of `formula`.
    pub(super) fn not(&mut self, formula: FormulaId) -> FormulaId {
        if let Some(known) = self.negations[formula.index()] {
            return known;
        }
        let mut needed = Vec::new();
        self.collect(formula, false, &mut needed);
        for id in needed {
            if self.negations[id.index()].is_some() {
                continue;
            }
            let negated = |formulas: &Self, parts: &[FormulaId]| -> Vec<FormulaId> {
                parts.iter().filter_map(|p| formulas.negations[p.index()]).collect()
            };
            let negation = match self.get(id).clone() {
                Formula::And(parts) => {
                    let parts = negated(self, &parts);
                    self.or(&parts)
                }
                Formula::Or(parts) => {
                    let parts = negated(self, &parts);
                    self.and(&parts)
                }
                Formula::One { parts, negated } => {
                    self.intern(Formula::One { parts, negated: !negated })
                }
                Formula::False | Formula::True | Formula::Literal { .. } => continue,
            };
            self.negations[id.index()] = Some(negation);
            self.negations[negation.index()].get_or_insert(id);
        }
        self.negations[formula.index()].unwrap_or(Self::no())
    }

    /// Appends the parts of `root` and itself in ascending order; `all` enters parts whose negation
    /// is known, and the clauses of atoms.
    fn collect(&self, root: FormulaId, all: bool, found: &mut Vec<FormulaId>) {
        let mut seen: Map<FormulaId, ()> = Map::default();
        let mut stack = vec![root];
        while let Some(id) = stack.pop() {
            if seen.insert(id, ()).is_some() || (!all && self.negations[id.index()].is_some()) {
                continue;
            }
            found.push(id);
            match self.get(id) {
                Formula::And(parts) | Formula::Or(parts) => stack.extend_from_slice(parts),
                Formula::One { parts, .. } if all => stack.extend_from_slice(parts),
                Formula::Literal { atom, .. } if all => {
                    if let Atom::UnevaluatedMembers(clauses, _)
                    | Atom::UnevaluatedElements(clauses, _) = self.atom(*atom)
                    {
                        stack.extend(clauses.iter().map(|&(_, condition)| condition));
                    }
                }
                _ => {}
            }
        }
        found.sort_unstable();
    }

    /// Returns the parts of `root` and itself, parts before what they are part of.
    pub(super) fn parts_of(&self, root: FormulaId) -> Vec<FormulaId> {
        let mut found = Vec::new();
        self.collect(root, true, &mut found);
        found
    }

    /// Returns the atoms of `root`, those in clauses included, each with whether it stands there
    /// unnegated and whether negated. In a [`Formula::One`] and in clauses every atom counts as both.
    pub(super) fn atoms_of(&self, root: FormulaId) -> Vec<(AtomId, bool, bool)> {
        let mut found: Map<AtomId, (bool, bool)> = Map::default();
        let mut seen: Map<(FormulaId, bool), ()> = Map::default();
        let mut stack = vec![(root, false)];
        while let Some((id, both)) = stack.pop() {
            if seen.insert((id, both), ()).is_some() {
                continue;
            }
            match self.get(id) {
                Formula::False | Formula::True => {}
                Formula::And(parts) | Formula::Or(parts) => {
                    stack.extend(parts.iter().map(|&p| (p, both)));
                }
                Formula::One { parts, .. } => stack.extend(parts.iter().map(|&p| (p, true))),
                Formula::Literal { atom, positive } => {
                    let signs = found.entry(*atom).or_default();
                    signs.0 |= *positive || both;
                    signs.1 |= !*positive || both;
                    if let Atom::UnevaluatedMembers(clauses, _)
                    | Atom::UnevaluatedElements(clauses, _) = self.atom(*atom)
                    {
                        stack.extend(clauses.iter().map(|&(_, condition)| (condition, true)));
                    }
                }
            }
        }
        let mut atoms: Vec<_> =
            found.into_iter().map(|(atom, (yes, no))| (atom, yes, no)).collect();
        atoms.sort_unstable();
        atoms
    }

    /// Returns `root` with every atom replaced by what `replace` says of it. `replace` gets the new
    /// forms of the clauses of its atom, too.
    pub(super) fn rewrite(
        &mut self,
        root: FormulaId,
        replace: &mut dyn FnMut(&mut Self, AtomId, &Done) -> Result<FormulaId, Error>,
    ) -> Result<FormulaId, Error> {
        let mut needed = Vec::new();
        self.collect(root, true, &mut needed);
        self.work += needed.len() as u64;
        let mut done = Done::default();
        done.reserve(needed.len());
        let mut by_atom: Map<AtomId, FormulaId> = Map::default();
        by_atom.reserve(needed.len());
        for id in needed {
            let result = match self.get(id) {
                Formula::False | Formula::True => id,
                &Formula::Literal { atom, positive } => {
                    let new = match by_atom.get(&atom) {
                        Some(&new) => new,
                        None => {
                            let new = replace(self, atom, &done)?;
                            by_atom.insert(atom, new);
                            new
                        }
                    };
                    if positive { new } else { self.not(new) }
                }
                Formula::And(parts) => {
                    let parts = mapped(parts, &done);
                    self.and(&parts)
                }
                Formula::Or(parts) => {
                    let parts = mapped(parts, &done);
                    self.or(&parts)
                }
                Formula::One { parts, negated } => {
                    let (parts, negated) = (mapped(parts, &done), *negated);
                    let one = self.one(&parts);
                    if negated { self.not(one) } else { one }
                }
            };
            done.insert(id, result);
        }
        self.check()?;
        Ok(done.get(&root).copied().unwrap_or(Self::no()))
    }

    /// Returns the formula "all of `parts`".
    pub(super) fn and(&mut self, parts: &[FormulaId]) -> FormulaId {
        self.combine(parts, true)
    }

    /// Returns the formula "any of `parts`".
    pub(super) fn or(&mut self, parts: &[FormulaId]) -> FormulaId {
        self.combine(parts, false)
    }

    fn combine(&mut self, parts: &[FormulaId], and: bool) -> FormulaId {
        let (unit, zero) = (Self::constant(and), Self::constant(!and));
        let mut flat = Vec::with_capacity(parts.len());
        for &part in parts {
            match self.get(part) {
                Formula::And(inner) if and => flat.extend_from_slice(inner),
                Formula::Or(inner) if !and => flat.extend_from_slice(inner),
                _ if part == unit => {}
                _ if part == zero => return zero,
                _ => flat.push(part),
            }
        }
        self.work += flat.len() as u64;
        if flat.len() > 1 {
            flat.sort_unstable();
            flat.dedup();
            if self.merge_atoms(&mut flat, and) {
                return self.combine(&flat, and);
            }
            let opposite = |part: &FormulaId| {
                self.negations[part.index()].is_some_and(|n| flat.binary_search(&n).is_ok())
            };
            if flat.iter().any(opposite) {
                return zero;
            }
            if let Some(simpler) = self.absorb(&flat, and) {
                return self.combine(&simpler, and);
            }
        }
        match flat[..] {
            [] => unit,
            [one] => one,
            _ if and => self.intern(Formula::And(flat.into())),
            _ => self.intern(Formula::Or(flat.into())),
        }
    }

    /// Applies `a & (a | b) = a` and `!a & (a | b) = !a & b`, and the same with the operators
    /// exchanged, to sorted parts. `None` if nothing changes.
    fn absorb(&mut self, parts: &[FormulaId], and: bool) -> Option<Vec<FormulaId>> {
        let inner = |formulas: &Self, part: FormulaId| -> Option<Box<[FormulaId]>> {
            match formulas.get(part) {
                Formula::Or(inner) if and => Some(inner.clone()),
                Formula::And(inner) if !and => Some(inner.clone()),
                _ => None,
            }
        };
        let mut result = Vec::with_capacity(parts.len());
        let mut changed = false;
        for &part in parts {
            let Some(inside) = inner(self, part) else {
                result.push(part);
                continue;
            };
            if inside.iter().any(|p| parts.binary_search(p).is_ok()) {
                changed = true;
                continue;
            }
            let opposed = |p: &FormulaId| {
                self.negations[p.index()].is_some_and(|n| parts.binary_search(&n).is_ok())
            };
            let rest: Vec<_> = inside.iter().copied().filter(|p| !opposed(p)).collect();
            if rest.len() < inside.len() {
                changed = true;
                result.push(self.combine(&rest, !and));
            } else {
                result.push(part);
            }
        }
        changed.then_some(result)
    }

    /// Returns the formula "exactly one of `parts`".
    pub(super) fn one(&mut self, parts: &[FormulaId]) -> FormulaId {
        let mut sorted: Vec<_> = parts.iter().copied().filter(|&p| p != Self::no()).collect();
        sorted.sort_unstable();
        // What occurs twice must not hold at all.
        let mut must_not = Vec::new();
        let mut single = Vec::new();
        for group in sorted.chunk_by(|a, b| a == b) {
            if group.len() > 1 { must_not.push(group[0]) } else { single.push(group[0]) }
        }
        if let Ok(at) = single.binary_search(&Self::yes()) {
            single.remove(at);
            must_not.append(&mut single);
            single.push(Self::yes());
        }
        let one = match single[..] {
            [] => Self::no(),
            [one] => one,
            _ => self.intern(Formula::One { parts: single.into(), negated: false }),
        };
        let mut all = vec![one];
        for part in must_not {
            all.push(self.not(part));
        }
        self.and(&all)
    }

    /// Returns what is to be saved.
    pub(super) fn save(&self) -> SavedFormulas {
        SavedFormulas {
            nodes: self.nodes.clone(),
            atoms: self.atoms.clone(),
            lists: self.lists.clone(),
            bounds: self.bounds.clone(),
        }
    }

    /// Returns the formulas saved by [`Formulas::save`], and their scopes; `None` if an id is out of
    /// range, or a part does not come before what it is part of.
    pub(super) fn restore(
        program: Arc<Program>,
        saved: SavedFormulas,
        scopes: Vec<Box<[u32]>>,
    ) -> Option<Self> {
        let mut formulas = Self::new(program);
        let fits = saved.nodes.get(..2)? == [Formula::False, Formula::True]
            && saved.nodes.len() <= formulas.program.limits.expressions
            && saved.check_atoms(&formulas.program, scopes.len());
        fits.then_some(())?;
        formulas.scopes = Scopes::restore(scopes);
        for (i, list) in saved.lists.into_iter().enumerate() {
            formulas.list_ids.insert(list.clone(), ListId::at(i));
            formulas.lists.push(list);
        }
        for (i, bounds) in saved.bounds.into_iter().enumerate() {
            formulas.bounds_ids.insert(bounds.clone(), BoundsId::at(i));
            formulas.bounds.push(bounds);
        }
        for (i, atom) in saved.atoms.into_iter().enumerate() {
            formulas.atom_ids.insert(atom.clone(), AtomId::at(i));
            formulas.atoms.push(atom);
        }
        for (i, node) in saved.nodes.into_iter().enumerate().skip(2) {
            let before = |&part: &FormulaId| part.index() < i;
            let in_order = match &node {
                Formula::False | Formula::True => false,
                Formula::And(parts) | Formula::Or(parts) | Formula::One { parts, .. } => {
                    parts.iter().all(before)
                }
                Formula::Literal { atom, .. } => match formulas.atoms.get(atom.index())? {
                    Atom::UnevaluatedMembers(clauses, goal)
                    | Atom::UnevaluatedElements(clauses, goal) => {
                        before(goal) && clauses.iter().all(|(_, condition)| before(condition))
                    }
                    Atom::Value(goal) | Atom::MemberNames(goal) | Atom::Contains(goal, _) => {
                        before(goal)
                    }
                    _ => true,
                },
            };
            in_order.then_some(())?;
            let id = FormulaId::at(i);
            let contents = formulas.find_contents(&node);
            formulas.contents.push(contents);
            formulas.negations.push(None);
            formulas.nodes.push(node.clone());
            formulas.ids.insert(node, id).is_none().then_some(())?;
        }
        for i in 2..formulas.nodes.len() {
            if let Formula::Literal { atom, positive } = formulas.nodes[i] {
                let opposite = formulas.ids.get(&Formula::Literal { atom, positive: !positive });
                formulas.negations[i] = Some(*opposite?);
            }
        }
        Some(formulas)
    }
}

impl SavedFormulas {
    /// Returns whether there is a formula `id`.
    pub(super) fn contains(&self, id: FormulaId) -> bool {
        id.index() < self.nodes.len()
    }

    /// Returns whether every id in the atoms is in range.
    fn check_atoms(&self, program: &Program, scopes: usize) -> bool {
        let node = |id: NodeId| id.index() < program.schemas.nodes.len();
        let name = |id: NameId| id.index() < program.document.names.len();
        let value = |id: ValueId| id.index() < program.document.len();
        let members = |id: MembersId| id.index() < program.schemas.members.len();
        let scope = |id: ScopeId| id.index() < scopes;
        let clauses = |clauses: &Clauses| {
            clauses.iter().all(|&(evaluates, condition)| {
                self.contains(condition)
                    && match evaluates {
                        Evaluates::All | Evaluates::Elements(_) => true,
                        Evaluates::Members(id) => members(id),
                        Evaluates::Matching(goal) => self.contains(goal),
                    }
            })
        };
        self.lists.iter().all(|list| list.iter().all(|&n| name(n)))
            && self.atoms.iter().all(|atom| match atom {
                Atom::Schema(id, in_scope) => node(*id) && scope(*in_scope),
                Atom::Value(goal) | Atom::MemberNames(goal) | Atom::Contains(goal, _) => {
                    self.contains(*goal)
                }
                Atom::Equal(id) | Atom::EqualMembers(id) => value(*id),
                Atom::EqualElements(id) => id.is_none_or(value),
                Atom::Unknown(id, _) => node(*id),
                Atom::Strings(list) | Atom::Numbers(list) => list.index() < self.lists.len(),
                Atom::Pattern(id) => id.index() < program.schemas.patterns.len(),
                Atom::Format(id) | Atom::Present(id) => name(*id),
                Atom::Bounds(id) => id.index() < self.bounds.len(),
                Atom::Members(id, in_scope) => members(*id) && scope(*in_scope),
                Atom::Elements(id, in_scope, _) => {
                    id.index() < program.schemas.elements.len() && scope(*in_scope)
                }
                Atom::UnevaluatedMembers(list, goal) | Atom::UnevaluatedElements(list, goal) => {
                    clauses(list) && self.contains(*goal)
                }
                Atom::Length(..) | Atom::MemberCount(_) | Atom::ElementCount(_) | Atom::Unique => {
                    true
                }
            })
    }
}

/// Returns what became of `parts`.
fn mapped(parts: &[FormulaId], done: &Done) -> Vec<FormulaId> {
    parts.iter().map(|part| done.get(part).copied().unwrap_or(*part)).collect()
}
