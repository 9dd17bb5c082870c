//! Which goals and formulas plainly exclude each other. `oneOf` of branches that do is `anyOf`, and a
//! decision about one goal decides the goals that it excludes.
//!
//! Everything here is one-sided: "no" means that it is not plain, and the automaton finds out.

use hashbrown::HashMap;

use super::formula::{Atom, Formula, FormulaId, Formulas};
use super::matching::Derivatives;
use super::names::NameId;
use super::scalar::Languages;
use super::schema::Type;
use crate::error::Error;
use crate::ir::Arena;
use crate::ir::chars::Encoding;
use crate::limits::Budget;

/// How deep members of members are compared.
const MOST_LEVELS: u32 = 3;
/// Steps of looking for a string that two patterns have in common.
const MOST_STEPS: u64 = 5_000;
/// Expressions that comparing may make.
const MOST_EXPRESSIONS: usize = 200_000;
/// Up to this many branches are compared each with each; more only by one member that tells all apart.
const MOST_COMPARED: usize = 64;

impl Formulas {
    /// Returns the formula "exactly one of `parts`", which are about values of type `t`, as a union of
    /// as small groups as the exclusions between the parts allow.
    pub(super) fn one_of(&mut self, parts: &[FormulaId], t: Type) -> Result<FormulaId, Error> {
        let mut left: Vec<FormulaId> = parts.iter().copied().filter(|&p| p != Self::no()).collect();
        left.sort_unstable();
        let distinct = left.windows(2).all(|pair| pair[0] != pair[1]);
        if !distinct || left.len() < 2 || !self.split.begin_comparison() {
            return Ok(self.one(&left));
        }
        let result = self.grouped(left, t);
        self.split.end_comparison();
        result
    }

    fn grouped(&mut self, left: Vec<FormulaId>, t: Type) -> Result<FormulaId, Error> {
        if self.told_apart(&left)? {
            return Ok(self.or(&left));
        }
        if left.len() > MOST_COMPARED {
            return Ok(self.one(&left));
        }
        // Groups of parts of which each may hold together with another of the group.
        let mut groups: Vec<Vec<FormulaId>> = Vec::new();
        for part in left {
            let mut joined = vec![part];
            let mut others = Vec::with_capacity(groups.len());
            for group in groups {
                let mut apart = true;
                for &other in &group {
                    apart = apart && self.formulas_exclude(part, other, t, MOST_LEVELS)?;
                }
                if apart { others.push(group) } else { joined.extend(group) }
            }
            others.push(joined);
            groups = others;
        }
        let groups: Vec<_> = groups.iter().map(|group| self.one(group)).collect();
        Ok(self.or(&groups))
    }

    /// Returns whether one required member tells all of `parts`, formulas about objects, apart by the
    /// values that it may have.
    fn told_apart(&mut self, parts: &[FormulaId]) -> Result<bool, Error> {
        let Some(&first) = parts.first() else { return Ok(false) };
        for name in self.required_names(first) {
            let mut seen: HashMap<(bool, NameId), (), foldhash::fast::RandomState> =
                HashMap::default();
            let mut apart = true;
            for &part in parts {
                let required = self.required_names(part).contains(&name);
                let goal = self.known_goal(part, name);
                apart = required
                    && match self.listed_goal(goal)? {
                        Some(values) => values.into_iter().all(|v| seen.insert(v, ()).is_none()),
                        None => false,
                    };
                if !apart {
                    break;
                }
            }
            if apart {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the strings and numbers that meet `goal`, the former marked, if there are no others.
    fn listed_goal(&mut self, goal: FormulaId) -> Result<Option<Vec<(bool, NameId)>>, Error> {
        let mut values = Vec::new();
        for t in Type::ALL {
            let formula = self.split(goal, t)?;
            if formula == Self::no() {
                continue;
            }
            let of_type = match t {
                Type::String | Type::Number => self.listed(formula),
                _ => None,
            };
            let Some(names) = of_type else { return Ok(None) };
            values.extend(names.into_iter().map(|name| (t == Type::String, name)));
        }
        Ok(Some(values))
    }

    /// Returns the values that a conjunction about a scalar lists, if it does.
    pub(super) fn listed(&self, formula: FormulaId) -> Option<Vec<NameId>> {
        self.conjuncts(formula).into_iter().find_map(|part| match self.get(part) {
            Formula::Literal { atom, positive: true } => match self.atom(*atom) {
                Atom::Strings(list) | Atom::Numbers(list) => Some(self.list(*list).to_vec()),
                _ => None,
            },
            _ => None,
        })
    }

    /// Returns the names that a formula about objects plainly requires.
    fn required_names(&self, formula: FormulaId) -> Vec<NameId> {
        self.conjuncts(formula)
            .into_iter()
            .filter_map(|part| match self.get(part) {
                Formula::Literal { atom, positive: true } => match self.atom(*atom) {
                    Atom::Present(name) => Some(*name),
                    _ => None,
                },
                _ => None,
            })
            .collect()
    }

    /// Returns a goal that the member `name` of an object meets if a formula about the object holds.
    fn known_goal(&mut self, formula: FormulaId, name: NameId) -> FormulaId {
        let program = self.program.clone();
        let mut goals = Vec::new();
        for part in self.conjuncts(formula) {
            let &Formula::Literal { atom, positive: true } = self.get(part) else { continue };
            match self.atom(atom).clone() {
                Atom::Members(id, scope) => {
                    let members = &program.schemas.members[id.index()];
                    let node = match members.property(name) {
                        None if members.patterns.is_empty() => members.additional,
                        declared => declared,
                    };
                    goals.extend(node.map(|node| self.schema(node, scope)));
                }
                Atom::EqualMembers(object) => {
                    goals.push(match program.document.member(object, name) {
                        Some(value) => self.literal(Atom::Equal(value)),
                        None => Self::no(),
                    });
                }
                _ => {}
            }
        }
        self.and(&goals)
    }

    /// Returns whether plainly no value meets both goals.
    pub(super) fn excludes(&mut self, a: FormulaId, b: FormulaId) -> Result<bool, Error> {
        self.goals_exclude(a, b, MOST_LEVELS)
    }

    fn goals_exclude(&mut self, a: FormulaId, b: FormulaId, levels: u32) -> Result<bool, Error> {
        if a == self.not(b) || self.types(a)?.is_disjoint(self.types(b)?) {
            return Ok(true);
        }
        for t in Type::ALL {
            let (a, b) = (self.split(a, t)?, self.split(b, t)?);
            if !self.formulas_exclude(a, b, t, levels)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether plainly no value of type `t` satisfies both formulas.
    fn formulas_exclude(
        &mut self,
        a: FormulaId,
        b: FormulaId,
        t: Type,
        levels: u32,
    ) -> Result<bool, Error> {
        let both = self.and(&[a, b]);
        if both == Self::no() || levels == 0 {
            return Ok(both == Self::no());
        }
        if t == Type::String && a != Self::yes() && b != Self::yes() {
            return self.no_string(both);
        }
        if t != Type::Object {
            return Ok(false);
        }
        for name in self.required_names(both) {
            let (of_a, of_b) = (self.known_goal(a, name), self.known_goal(b, name));
            if self.goals_exclude(of_a, of_b, levels - 1)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether a short look finds that no string satisfies `formula`.
    fn no_string(&mut self, formula: FormulaId) -> Result<bool, Error> {
        if let Some(&known) = self.analysis.no_string.get(&formula) {
            return Ok(known);
        }
        let mut analysis = std::mem::take(&mut self.analysis);
        let Analysis { arena, languages, derivatives, no_string } = &mut *analysis;
        let encoding = Encoding::JsonCanonical;
        let language = languages.string(self, arena, formula, encoding);
        let empty = language.map(|language| {
            let mut budget = Budget::new("unroll", MOST_STEPS);
            derivatives.is_empty(arena, language, &mut budget) == Some(true)
        });
        if let Ok(empty) = empty {
            no_string.insert(formula, empty);
        }
        self.analysis = analysis;
        // What is wrong with a pattern is said when it is used.
        Ok(empty.unwrap_or(false))
    }
}

/// Languages that are looked at and do not become part of the grammar.
#[derive(Clone, Debug)]
pub(super) struct Analysis {
    arena: Arena,
    languages: Languages,
    derivatives: Derivatives,
    no_string: HashMap<FormulaId, bool, foldhash::fast::RandomState>,
}

impl Default for Analysis {
    fn default() -> Self {
        Self {
            arena: Arena::new(MOST_EXPRESSIONS),
            languages: Languages::default(),
            derivatives: Derivatives::default(),
            no_string: HashMap::default(),
        }
    }
}
