//! Objects as formulas consumed by derivatives: a formula about the members that follow and one of
//! them in, a formula about its value and the members after it out.

use super::formula::{Atom, Clauses, Evaluates, Formula, FormulaId, Formulas};
use super::names::NameId;
use super::program::ScopeId;
use super::schema::{MembersId, PatternId};
use crate::error::Error;
use crate::ir::UNBOUNDED;

/// A test of a member's name that is no comparison with a name of the schema.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub(super) enum NameTest {
    /// It matches a pattern.
    Pattern(PatternId),
    /// It meets a goal of `propertyNames`: this formula about strings.
    Goal(FormulaId),
}

/// What is known of a member's name.
pub(super) struct Key<'a> {
    /// The name, if it is one that the schema mentions.
    pub(super) name: Option<NameId>,
    /// Whether a name of the schema can still follow: in any order if it was not there before, in
    /// declared order if it stands after this one.
    pub(super) follows: &'a dyn Fn(NameId) -> bool,
    /// The outcomes of the tests.
    pub(super) test: &'a dyn Fn(NameTest) -> bool,
}

impl Formulas {
    /// Returns the tests of names that matter to `formula`.
    pub(super) fn name_tests(&self, formula: FormulaId) -> Vec<NameTest> {
        let mut tests = Vec::new();
        let mut of_members = |formulas: &Self, id: MembersId| {
            let members = &formulas.program.schemas.members[id.index()];
            tests.extend(members.patterns.iter().map(|&(pattern, _)| NameTest::Pattern(pattern)));
        };
        let mut goals = Vec::new();
        for (atom, ..) in self.atoms_of(formula) {
            match self.atom(atom) {
                Atom::Members(id, _) => of_members(self, *id),
                Atom::MemberNames(goal) => goals.push(NameTest::Goal(*goal)),
                Atom::UnevaluatedMembers(clauses, _) => {
                    for (evaluates, _) in clauses {
                        if let Evaluates::Members(id) = evaluates {
                            of_members(self, *id);
                        }
                    }
                }
                _ => {}
            }
        }
        tests.extend(goals);
        tests.sort_unstable();
        tests.dedup();
        tests
    }

    /// Returns what `formula` says after a member of name `key`: of its value, by [`Atom::Value`], and
    /// of the members after it.
    pub(super) fn read_member(
        &mut self,
        formula: FormulaId,
        key: &Key<'_>,
    ) -> Result<FormulaId, Error> {
        self.rewrite(formula, &mut |formulas, atom, done| {
            let literal = |formulas: &mut Self| formulas.literal(formulas.atom(atom).clone());
            Ok(match formulas.atom(atom).clone() {
                Atom::Present(name) if key.name == Some(name) => Self::yes(),
                Atom::Present(name) if !(key.follows)(name) => Self::no(),
                Atom::MemberCount(n) => formulas.at_least(n.saturating_sub(1), Atom::MemberCount),
                Atom::MemberNames(goal) => {
                    if (key.test)(NameTest::Goal(goal)) {
                        literal(formulas)
                    } else {
                        Self::no()
                    }
                }
                Atom::Members(id, scope) => {
                    let goal = formulas.member_goal(id, scope, key);
                    let value = formulas.value(goal);
                    let rest =
                        if formulas.is_settled(id, key) { Self::yes() } else { literal(formulas) };
                    formulas.and(&[value, rest])
                }
                Atom::EqualMembers(object) => {
                    let document = &formulas.program.document;
                    match key.name.and_then(|name| document.member(object, name)) {
                        Some(value) => {
                            let goal = formulas.literal(Atom::Equal(value));
                            let value = formulas.value(goal);
                            let rest = literal(formulas);
                            formulas.and(&[value, rest])
                        }
                        None => Self::no(),
                    }
                }
                Atom::UnevaluatedMembers(clauses, goal) => {
                    let mut either = vec![formulas.value(goal)];
                    let mut rest = Vec::with_capacity(clauses.len());
                    for &(evaluates, condition) in &clauses {
                        let condition = done.get(&condition).copied().unwrap_or(condition);
                        if formulas.evaluates_member(evaluates, key) {
                            either.push(condition);
                        }
                        rest.push((evaluates, condition));
                    }
                    let now = formulas.or(&either);
                    let rest = match formulas.simplify_clauses(rest) {
                        Some(rest) => formulas.literal(Atom::UnevaluatedMembers(rest, goal)),
                        None => Self::yes(),
                    };
                    formulas.and(&[now, rest])
                }
                _ => literal(formulas),
            })
        })
    }

    /// Returns the formula that the member or element being read meets `goal`.
    pub(super) fn value(&mut self, goal: FormulaId) -> FormulaId {
        match self.get(goal) {
            Formula::True | Formula::False => goal,
            _ => self.literal(Atom::Value(goal)),
        }
    }

    fn member_goal(&mut self, id: MembersId, scope: ScopeId, key: &Key<'_>) -> FormulaId {
        let program = self.program.clone();
        let members = &program.schemas.members[id.index()];
        let mut nodes = Vec::new();
        nodes.extend(key.name.and_then(|name| members.property(name)));
        for &(pattern, node) in &members.patterns {
            if (key.test)(NameTest::Pattern(pattern)) {
                nodes.push(node);
            }
        }
        if nodes.is_empty() {
            nodes.extend(members.additional);
        }
        let goals: Vec<_> = nodes.into_iter().map(|node| self.schema(node, scope)).collect();
        self.and(&goals)
    }

    /// Returns whether a members part says nothing of any member that can still follow.
    fn is_settled(&self, id: MembersId, key: &Key<'_>) -> bool {
        let members = &self.program.schemas.members[id.index()];
        // The name declared last is the likeliest to follow.
        members.patterns.is_empty()
            && members.additional.is_none()
            && !members.properties.iter().rev().any(|&(name, _)| (key.follows)(name))
    }

    fn evaluates_member(&self, evaluates: Evaluates, key: &Key<'_>) -> bool {
        match evaluates {
            Evaluates::All => true,
            Evaluates::Members(id) => {
                let members = &self.program.schemas.members[id.index()];
                key.name.is_some_and(|name| members.property(name).is_some())
                    || members.patterns.iter().any(|&(p, _)| (key.test)(NameTest::Pattern(p)))
            }
            Evaluates::Elements(_) | Evaluates::Matching(_) => false,
        }
    }

    /// Returns whether `formula` lets the object, or array, end here.
    pub(super) fn may_end(&mut self, formula: FormulaId) -> Result<bool, Error> {
        let end = self.rewrite(formula, &mut |formulas, atom, _| {
            let truth = match formulas.atom(atom) {
                Atom::Present(_)
                | Atom::MemberCount(_)
                | Atom::ElementCount(_)
                | Atom::Contains(..)
                | Atom::EqualElements(Some(_)) => false,
                Atom::Members(..)
                | Atom::MemberNames(_)
                | Atom::EqualMembers(_)
                | Atom::UnevaluatedMembers(..)
                | Atom::Elements(..)
                | Atom::EqualElements(None)
                | Atom::Unique
                | Atom::UnevaluatedElements(..) => true,
                _ => return Ok(formulas.literal(formulas.atom(atom).clone())),
            };
            Ok(Self::constant(truth))
        })?;
        Ok(end == Self::yes())
    }

    /// Returns the last position up to which names may be passed over: `position` tells that of a
    /// name, and [`UNBOUNDED`] is no limit. Later members may make the true limit earlier.
    pub(super) fn last_position(
        &self,
        formula: FormulaId,
        position: &dyn Fn(NameId) -> u32,
    ) -> u32 {
        match self.get(formula) {
            Formula::False => 0,
            Formula::True => UNBOUNDED,
            Formula::Literal { atom, positive: true } => match self.atom(*atom) {
                Atom::Present(name) => position(*name),
                _ => UNBOUNDED,
            },
            Formula::Literal { .. } | Formula::One { .. } => UNBOUNDED,
            Formula::And(parts) => {
                let shallow = |&part: &FormulaId| self.shallow_limit(part, position);
                parts.iter().map(shallow).min().unwrap_or(UNBOUNDED)
            }
            Formula::Or(_) => self.shallow_limit(formula, position),
        }
    }

    /// The limit of a part of a conjunction: exact for literals and disjunctions of conjunctions of
    /// literals, else none.
    fn shallow_limit(&self, part: FormulaId, position: &dyn Fn(NameId) -> u32) -> u32 {
        let literal = |id: FormulaId| match self.get(id) {
            Formula::Literal { atom, positive: true } => match self.atom(*atom) {
                Atom::Present(name) => position(*name),
                _ => UNBOUNDED,
            },
            _ => UNBOUNDED,
        };
        let all = |id: FormulaId| match self.get(id) {
            Formula::And(parts) => parts.iter().map(|&p| literal(p)).min().unwrap_or(UNBOUNDED),
            _ => literal(id),
        };
        match self.get(part) {
            Formula::Or(parts) => parts.iter().map(|&p| all(p)).max().unwrap_or(UNBOUNDED),
            _ => literal(part),
        }
    }

    /// Returns the clauses of an [`Atom::UnevaluatedElements`] or its like after rewriting.
    pub(super) fn rewritten(
        clauses: &Clauses,
        done: &super::formula::Done,
    ) -> Vec<(Evaluates, FormulaId)> {
        clauses.iter().map(|&(e, c)| (e, done.get(&c).copied().unwrap_or(c))).collect()
    }
}
