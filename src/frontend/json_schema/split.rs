//! Splits goals by type: a formula over schemas in, a formula over what they assert of values of one
//! type out. Objects, arrays and scalars go on from there, each in a file of its own.
//!
//! In-place applicators (`allOf`, `$ref`, `oneOf`, …) dissolve here. The schemas that one schema applies
//! to the same value are split before it, from a list, so nothing recurses; the checks made when
//! compiling rule out cycles.

use super::document::{Kind, ValueId};
use super::formula::{Atom, Clauses, Evaluates, Formula, FormulaId, Formulas};
use super::names::NameId;
use super::program::{ScopeId, Scopes};
use super::schema::{Keyword, NodeId, Type};
use crate::error::Error;
use crate::ir::UNBOUNDED;

/// A schema in a dynamic scope.
pub(super) type Situated = (NodeId, ScopeId);

impl Formulas {
    /// Returns the goal to satisfy the root schema.
    pub(super) fn root_goal(&mut self) -> FormulaId {
        self.schema(NodeId::at(0), Scopes::empty())
    }

    /// Returns the goal to satisfy `node`, entered from `scope`. Schemas that only refer to another are
    /// looked through, so that equal goals get equal ids.
    pub(super) fn schema(&mut self, node: NodeId, scope: ScopeId) -> FormulaId {
        let mut situated = self.situate(node, scope);
        for _ in 0..self.program.schemas.nodes.len() {
            let program = self.program.clone();
            situated = match *program.schemas.node(situated.0).keywords {
                [] => return Self::yes(),
                [Keyword::Never] => return Self::no(),
                [Keyword::Ref(target)] => self.situate(target, situated.1),
                [Keyword::AllOf(ref parts)] if parts.len() == 1 => {
                    self.situate(parts[0], situated.1)
                }
                _ => break,
            };
        }
        self.literal(Atom::Schema(situated.0, situated.1))
    }

    /// Returns `node` with the scope that it has when it is entered from `scope`.
    pub(super) fn situate(&mut self, node: NodeId, scope: ScopeId) -> Situated {
        let scope = self.scopes.enter(&self.program, node, scope);
        (node, scope)
    }

    /// Returns where a dynamic or recursive reference leads from `scope`.
    fn dynamic_target(&self, keyword: &Keyword, scope: ScopeId) -> Option<NodeId> {
        let resources = self.scopes.resources(scope);
        let dynamic = &self.program.schemas.dynamic;
        let mut entered =
            resources.iter().filter_map(|r| dynamic.iter().find(|(id, _)| id == r)).map(|(_, d)| d);
        match keyword {
            Keyword::DynamicRef { anchor, initial } => {
                let found = entered
                    .find_map(|d| d.anchors.iter().find(|(name, _)| name == anchor))
                    .map(|&(_, node)| node);
                Some(found.unwrap_or(*initial))
            }
            Keyword::RecursiveRef(initial) => {
                Some(entered.find_map(|d| d.recursive).unwrap_or(*initial))
            }
            Keyword::Ref(target) => Some(*target),
            _ => None,
        }
    }

    /// Returns the schemas that `keyword`, standing in `scope`, applies to the same value.
    pub(super) fn in_place(&mut self, keyword: &Keyword, scope: ScopeId) -> Vec<Situated> {
        let nodes: Vec<NodeId> = match keyword {
            Keyword::AllOf(parts) | Keyword::AnyOf(parts) | Keyword::OneOf(parts) => parts.to_vec(),
            Keyword::Not(part) => vec![*part],
            &Keyword::If { condition, then, otherwise } => {
                // Without `then` and `else`, a condition asserts nothing (but may evaluate).
                [Some(condition), then, otherwise].into_iter().flatten().collect()
            }
            Keyword::DependentSchemas(parts) => parts.iter().map(|&(_, node)| node).collect(),
            other => self.dynamic_target(other, scope).into_iter().collect(),
        };
        nodes.into_iter().map(|node| self.situate(node, scope)).collect()
    }

    /// Returns the formula of `goal` for values of type `t`.
    pub(super) fn split(&mut self, goal: FormulaId, t: Type) -> Result<FormulaId, Error> {
        if let Some(known) = self.split.goal(goal, t) {
            return Ok(known);
        }
        let schemas: Vec<Situated> = self
            .atoms_of(goal)
            .into_iter()
            .filter_map(|(atom, ..)| match *self.atom(atom) {
                Atom::Schema(node, scope) => Some((node, scope)),
                _ => None,
            })
            .collect();
        for situated in schemas {
            self.split_schema(situated, t)?;
        }
        let result = self.rewrite(goal, &mut |formulas, atom, _| {
            Ok(match *formulas.atom(atom) {
                Atom::Schema(node, scope) => formulas.split_of((node, scope), t),
                Atom::Equal(value) => formulas.equal(&[value], t),
                _ => formulas.literal(formulas.atom(atom).clone()),
            })
        })?;
        let result = self.without_unknowns(result)?;
        self.split.add_goal(goal, t, result);
        Ok(result)
    }

    /// Returns the formula of a schema that was split before.
    fn split_of(&mut self, situated: Situated, t: Type) -> FormulaId {
        let literal = self.literal(Atom::Schema(situated.0, situated.1));
        self.split.schema(literal, t).unwrap_or(Self::no())
    }

    fn is_split(&mut self, situated: Situated, t: Type) -> bool {
        let literal = self.literal(Atom::Schema(situated.0, situated.1));
        self.split.schema(literal, t).is_some()
    }

    fn split_schema(&mut self, root: Situated, t: Type) -> Result<(), Error> {
        let mut stack = vec![root];
        let mut entered: Vec<Situated> = Vec::new();
        while let Some(&(node, scope)) = stack.last() {
            if self.is_split((node, scope), t) {
                stack.pop();
                continue;
            }
            let program = self.program.clone();
            let keywords = &program.schemas.node(node).keywords;
            let excluded =
                keywords.iter().any(|k| matches!(k, Keyword::Type(types) if !types.contains(t)));
            let mut missing = Vec::new();
            if !excluded {
                for keyword in keywords {
                    for part in self.in_place(keyword, scope) {
                        if !self.is_split(part, t) {
                            missing.push(part);
                        }
                    }
                }
            }
            if !missing.is_empty() {
                // Compiling has ruled out cycles; a hostile artifact has not.
                if entered.len() > program.schemas.nodes.len() && entered.contains(&(node, scope)) {
                    return Err(super::codec::corrupted());
                }
                entered.push((node, scope));
                stack.append(&mut missing);
                continue;
            }
            let formula = if excluded { Self::no() } else { self.conjunction((node, scope), t)? };
            let literal = self.literal(Atom::Schema(node, scope));
            self.split.add_schema(literal, t, formula);
            self.check()?;
            stack.pop();
        }
        Ok(())
    }

    /// Returns the conjunction of a schema's keywords for values of type `t`.
    fn conjunction(&mut self, (node, scope): Situated, t: Type) -> Result<FormulaId, Error> {
        let program = self.program.clone();
        let mut parts = Vec::new();
        for (position, keyword) in program.schemas.node(node).keywords.iter().enumerate() {
            let part = match keyword {
                Keyword::Unenforced => {
                    let position = u32::try_from(position).unwrap_or(u32::MAX);
                    self.literal(Atom::Unknown(node, position))
                }
                Keyword::Never => Self::no(),
                Keyword::Type(types) if t == Type::Number && types.integers_only() => {
                    self.within(&super::number::NumberConstraint {
                        integer: true,
                        ..Default::default()
                    })
                }
                Keyword::Values(values) => self.equal(values, t),
                Keyword::AllOf(..)
                | Keyword::AnyOf(..)
                | Keyword::OneOf(..)
                | Keyword::Not(..)
                | Keyword::If { .. }
                | Keyword::Ref(..)
                | Keyword::DynamicRef { .. }
                | Keyword::RecursiveRef(..) => self.applied(keyword, scope, t)?,
                _ => match t {
                    Type::Number => self.of_number(keyword),
                    Type::String => self.of_string(keyword),
                    Type::Array => self.of_array(keyword, (node, scope))?,
                    Type::Object => self.of_object(keyword, (node, scope))?,
                    Type::Null | Type::False | Type::True => Self::yes(),
                },
            };
            parts.push(part);
        }
        Ok(self.and(&parts))
    }

    fn applied(&mut self, keyword: &Keyword, scope: ScopeId, t: Type) -> Result<FormulaId, Error> {
        let situated = self.in_place(keyword, scope);
        let parts: Vec<_> = situated.iter().map(|&part| self.split_of(part, t)).collect();
        Ok(match keyword {
            Keyword::AnyOf(_) => self.or(&parts),
            Keyword::OneOf(_) => self.one_of(&parts, t)?,
            Keyword::Not(_) => {
                let part = parts.first().copied().unwrap_or(Self::no());
                self.not(part)
            }
            &Keyword::If { condition, then, otherwise } => {
                let branch = |formulas: &mut Self, node: Option<NodeId>| match node {
                    None => Self::yes(),
                    Some(node) => {
                        let situated = formulas.situate(node, scope);
                        formulas.split_of(situated, t)
                    }
                };
                let (then, otherwise) = (branch(self, then), branch(self, otherwise));
                let condition = branch(self, Some(condition));
                let not = self.not(condition);
                let (yes, no) = (self.or(&[not, then]), self.or(&[condition, otherwise]));
                self.and(&[yes, no])
            }
            _ => self.and(&parts),
        })
    }

    fn of_number(&mut self, keyword: &Keyword) -> FormulaId {
        match *keyword {
            Keyword::Number(id) => {
                let program = self.program.clone();
                self.within(&program.schemas.numbers[id.index()])
            }
            _ => Self::yes(),
        }
    }

    fn of_string(&mut self, keyword: &Keyword) -> FormulaId {
        match *keyword {
            Keyword::Length { min, max } if min > max => Self::no(),
            Keyword::Length { min: 0, max: UNBOUNDED } => Self::yes(),
            Keyword::Length { min, max } => self.literal(Atom::Length(min, max)),
            Keyword::Pattern(id) => match self.program.schemas.patterns[id.index()].exact {
                Some(text) => self.any_of_strings(vec![text]),
                None => self.literal(Atom::Pattern(id)),
            },
            Keyword::Format(name) => self.literal(Atom::Format(name)),
            _ => Self::yes(),
        }
    }

    fn between(&mut self, min: u32, max: u32, atom: impl Fn(u32) -> Atom) -> FormulaId {
        let low = self.at_least(min, &atom);
        if max == UNBOUNDED {
            return low;
        }
        let above = self.at_least(max.saturating_add(1), &atom);
        let high = self.not(above);
        self.and(&[low, high])
    }

    fn of_array(&mut self, keyword: &Keyword, situated: Situated) -> Result<FormulaId, Error> {
        let scope = situated.1;
        Ok(match *keyword {
            Keyword::Elements(id) => self.literal(Atom::Elements(id, scope, 0)),
            Keyword::ElementCount { min, max } => self.between(min, max, Atom::ElementCount),
            Keyword::Unique => self.literal(Atom::Unique),
            Keyword::Contains(contains) => {
                let goal = self.schema(contains.schema, scope);
                self.between(contains.min, contains.max, |n| Atom::Contains(goal, n))
            }
            Keyword::UnevaluatedElements(node) => {
                let goal = self.schema(node, scope);
                match self.clauses(situated, Type::Array)? {
                    Some(clauses) => self.literal(Atom::UnevaluatedElements(clauses, goal)),
                    None => Self::yes(),
                }
            }
            _ => Self::yes(),
        })
    }

    fn of_object(&mut self, keyword: &Keyword, situated: Situated) -> Result<FormulaId, Error> {
        let scope = situated.1;
        Ok(match keyword {
            Keyword::Members(id) => self.literal(Atom::Members(*id, scope)),
            Keyword::Required(names) => self.all_present(names),
            Keyword::MemberCount { min, max } => self.between(*min, *max, Atom::MemberCount),
            Keyword::MemberNames(node) => {
                let goal = self.schema(*node, scope);
                if goal == Self::yes() { goal } else { self.literal(Atom::MemberNames(goal)) }
            }
            Keyword::DependentRequired(parts) => {
                let mut all = Vec::new();
                for (name, names) in parts {
                    let then = self.all_present(names);
                    all.push(self.if_present(*name, then));
                }
                self.and(&all)
            }
            Keyword::DependentSchemas(parts) => {
                let mut all = Vec::new();
                for &(name, node) in parts {
                    let situated = self.situate(node, scope);
                    let then = self.split_of(situated, Type::Object);
                    all.push(self.if_present(name, then));
                }
                self.and(&all)
            }
            Keyword::UnevaluatedMembers(node) => {
                let goal = self.schema(*node, scope);
                match self.clauses(situated, Type::Object)? {
                    Some(clauses) => self.literal(Atom::UnevaluatedMembers(clauses, goal)),
                    None => Self::yes(),
                }
            }
            _ => Self::yes(),
        })
    }

    fn all_present(&mut self, names: &[NameId]) -> FormulaId {
        let parts: Vec<_> = names.iter().map(|&name| self.literal(Atom::Present(name))).collect();
        self.and(&parts)
    }

    fn if_present(&mut self, name: NameId, then: FormulaId) -> FormulaId {
        let absent = self.not_literal(Atom::Present(name));
        self.or(&[absent, then])
    }

    /// Returns the formula of being equal to one of `values`, for values of type `t`.
    fn equal(&mut self, values: &[ValueId], t: Type) -> FormulaId {
        let program = self.program.clone();
        let document = &program.document;
        let kinds = || values.iter().map(|&value| document.kind(value));
        match t {
            Type::Null => Self::constant(kinds().any(|k| k == Kind::Null)),
            Type::False => Self::constant(kinds().any(|k| k == Kind::Bool(false))),
            Type::True => Self::constant(kinds().any(|k| k == Kind::Bool(true))),
            Type::String => {
                let names = kinds().filter_map(|k| match k {
                    Kind::String(name) => Some(name),
                    _ => None,
                });
                self.any_of_strings(names.collect())
            }
            Type::Number => {
                let names = kinds().filter_map(|k| match k {
                    Kind::Number(name) => document.canonical(name),
                    _ => None,
                });
                self.any_of_numbers(names.collect())
            }
            Type::Array => {
                let mut parts = Vec::new();
                for &value in values {
                    if let Kind::Array(first) = document.kind(value) {
                        parts.push(self.literal(Atom::EqualElements(first)));
                    }
                }
                self.or(&parts)
            }
            Type::Object => {
                let mut parts = Vec::new();
                for &value in values {
                    if let Kind::Object(_) = document.kind(value) {
                        let names: Vec<_> = document.entries(value).map(|(name, _)| name).collect();
                        let present = self.all_present(&names);
                        let equal = self.literal(Atom::EqualMembers(value));
                        parts.push(self.and(&[present, equal]));
                    }
                }
                self.or(&parts)
            }
        }
    }

    /// Returns what counts as evaluated beside an `unevaluated…` keyword of a schema, and under which
    /// condition; `None` if everything always is.
    ///
    /// A condition need not ask for what the schema demands anyway: where it is false, so is the whole
    /// schema.
    fn clauses(&mut self, root: Situated, t: Type) -> Result<Option<Clauses>, Error> {
        let program = self.program.clone();
        let mut clauses: Vec<(Evaluates, FormulaId)> = Vec::new();
        let mut seen: Vec<(Situated, FormulaId)> = vec![(root, Self::yes())];
        let mut next = 0;
        while let Some(&((node, scope), condition)) = seen.get(next) {
            let is_root = next == 0;
            next += 1;
            if condition == Self::no() {
                continue;
            }
            for keyword in &program.schemas.node(node).keywords {
                if let Some(evaluates) = self.evaluates(keyword, scope, t, is_root) {
                    clauses.push((evaluates, condition));
                }
                for (part, extra) in self.evaluating_parts(keyword, scope, t) {
                    let condition = self.and(&[condition, extra]);
                    if !seen.contains(&(part, condition)) {
                        seen.push((part, condition));
                    }
                }
            }
            self.check()?;
        }
        Ok(self.simplify_clauses(clauses))
    }

    /// Joins clauses and drops those that say nothing; `None` if everything is evaluated.
    pub(super) fn simplify_clauses(
        &mut self,
        mut clauses: Vec<(Evaluates, FormulaId)>,
    ) -> Option<Clauses> {
        clauses.sort_unstable();
        clauses.dedup();
        let mut joined: Vec<(Evaluates, FormulaId)> = Vec::with_capacity(clauses.len());
        for (evaluates, condition) in clauses {
            match joined.last_mut() {
                Some((last, known)) if *last == evaluates => *known = self.or(&[*known, condition]),
                _ => joined.push((evaluates, condition)),
            }
        }
        joined.retain(|&(evaluates, condition)| {
            condition != Self::no() && evaluates != Evaluates::Elements(0)
        });
        let all = joined.contains(&(Evaluates::All, Self::yes()));
        (!all).then(|| joined.into())
    }

    fn evaluates(
        &mut self,
        keyword: &Keyword,
        scope: ScopeId,
        t: Type,
        is_root: bool,
    ) -> Option<Evaluates> {
        match (keyword, t) {
            (Keyword::Members(id), Type::Object) => {
                let all = self.program.schemas.members[id.index()].additional.is_some();
                Some(if all { Evaluates::All } else { Evaluates::Members(*id) })
            }
            (Keyword::Elements(id), Type::Array) => {
                let elements = &self.program.schemas.elements[id.index()];
                let prefix = u32::try_from(elements.prefix.len()).unwrap_or(UNBOUNDED);
                let all = elements.rest.is_some();
                Some(if all { Evaluates::All } else { Evaluates::Elements(prefix) })
            }
            (Keyword::UnevaluatedMembers(_), Type::Object)
            | (Keyword::UnevaluatedElements(_), Type::Array)
                if !is_root =>
            {
                Some(Evaluates::All)
            }
            (Keyword::Contains(contains), Type::Array) if contains.evaluates => {
                Some(Evaluates::Matching(self.schema(contains.schema, scope)))
            }
            _ => None,
        }
    }

    /// Returns the schemas that `keyword` applies in place, each with the condition under which what
    /// it evaluates counts.
    fn evaluating_parts(
        &mut self,
        keyword: &Keyword,
        scope: ScopeId,
        t: Type,
    ) -> Vec<(Situated, FormulaId)> {
        let situated = self.in_place(keyword, scope);
        match keyword {
            Keyword::Not(_) => Vec::new(),
            Keyword::AnyOf(_) | Keyword::OneOf(_) => {
                situated.into_iter().map(|part| (part, self.split_of(part, t))).collect()
            }
            Keyword::If { then, .. } => {
                let condition = self.split_of(situated[0], t);
                let not = self.not(condition);
                let mut parts = vec![(situated[0], condition)];
                for (i, &part) in situated.iter().enumerate().skip(1) {
                    let is_then = i == 1 && then.is_some();
                    parts.push((part, if is_then { condition } else { not }));
                }
                parts
            }
            Keyword::DependentSchemas(parts) if t == Type::Object => parts
                .iter()
                .zip(situated)
                .map(|(&(name, _), part)| (part, self.literal(Atom::Present(name))))
                .collect(),
            Keyword::DependentSchemas(_) => Vec::new(),
            _ => situated.into_iter().map(|part| (part, Self::yes())).collect(),
        }
    }

    /// Returns the weakest formula that follows whatever the unknowns of `formula` are: those of one
    /// sign as if they held, the others both ways.
    fn without_unknowns(&mut self, formula: FormulaId) -> Result<FormulaId, Error> {
        let mut result = formula;
        let atoms = self.atoms_of(formula);
        for (atom, yes, no) in atoms {
            if !matches!(self.atom(atom), Atom::Unknown(..)) {
                continue;
            }
            let mut either = Vec::new();
            for (truth, occurs) in [(true, yes), (false, no)] {
                if occurs {
                    either.push(self.rewrite(result, &mut |formulas, id, done| {
                        if id == atom {
                            return Ok(Self::constant(truth));
                        }
                        Ok(formulas.with_clauses(id, done))
                    })?);
                }
            }
            result = self.or(&either);
        }
        Ok(result)
    }

    /// Returns the formula of `atom` with the conditions of its clauses rewritten.
    pub(super) fn with_clauses(
        &mut self,
        atom: super::formula::AtomId,
        done: &super::formula::Done,
    ) -> FormulaId {
        let renew = |formulas: &mut Self, clauses: &Clauses| {
            let clauses = clauses.iter().map(|&(e, c)| (e, done.get(&c).copied().unwrap_or(c)));
            formulas.simplify_clauses(clauses.collect())
        };
        match self.atom(atom).clone() {
            Atom::UnevaluatedMembers(clauses, goal) => match renew(self, &clauses) {
                Some(clauses) => self.literal(Atom::UnevaluatedMembers(clauses, goal)),
                None => Self::yes(),
            },
            Atom::UnevaluatedElements(clauses, goal) => match renew(self, &clauses) {
                Some(clauses) => self.literal(Atom::UnevaluatedElements(clauses, goal)),
                None => Self::yes(),
            },
            other => self.literal(other),
        }
    }

    /// Returns whether `formula` is a conjunction or a literal, and its parts.
    pub(super) fn conjuncts(&self, formula: FormulaId) -> Vec<FormulaId> {
        match self.get(formula) {
            Formula::True => Vec::new(),
            Formula::And(parts) => parts.to_vec(),
            _ => vec![formula],
        }
    }
}
