//! What is checked of all schemas when compiling: that no schema applies to a value only if it applies
//! to the same value, and that nothing is asked that no expansion could enforce.

use hashbrown::HashMap;

use super::formula::{Atom, FormulaId, Formulas};
use super::program::{ScopeId, Scopes};
use super::schema::{Keyword, NodeId, Type};
use super::split::Situated;
use crate::error::{Error, ErrorKind, Location};

/// How far the search has come with a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    Open,
    Done,
}

impl Formulas {
    /// Checks every schema that is reachable from the root.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::LeftRecursion`] naming the places of a cycle of references that consumes nothing.
    pub(super) fn check_cycles(&mut self) -> Result<(), Error> {
        let mut visits: HashMap<Situated, Visit, foldhash::fast::RandomState> = HashMap::default();
        let root = self.situate(NodeId::at(0), Scopes::empty());
        let mut pending = vec![root];
        // The schemas that are applied to one value, each with those it applies in turn.
        let mut path: Vec<(Situated, Vec<Situated>)> = Vec::new();
        while let Some(next) = pending.pop() {
            if visits.contains_key(&next) {
                continue;
            }
            visits.insert(next, Visit::Open);
            path.push((next, self.visit(next, &mut pending)));
            while let Some((_, parts)) = path.last_mut() {
                let Some(part) = parts.pop() else {
                    if let Some((done, _)) = path.pop() {
                        visits.insert(done, Visit::Done);
                    }
                    continue;
                };
                match visits.get(&part) {
                    Some(Visit::Done) => {}
                    Some(Visit::Open) => return Err(self.cycle(part, &path)),
                    None => {
                        visits.insert(part, Visit::Open);
                        path.push((part, self.visit(part, &mut pending)));
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the schemas that `situated` applies in place, and appends those that it applies to
    /// members, elements and names.
    fn visit(&mut self, (node, scope): Situated, below: &mut Vec<Situated>) -> Vec<Situated> {
        let program = self.program.clone();
        let mut parts = Vec::new();
        for keyword in &program.schemas.node(node).keywords {
            parts.extend(self.in_place(keyword, scope));
            let nodes: Vec<NodeId> = match keyword {
                Keyword::Members(id) => {
                    let members = &program.schemas.members[id.index()];
                    let properties = members.properties.iter().map(|&(_, node)| node);
                    let patterns = members.patterns.iter().map(|&(_, node)| node);
                    properties.chain(patterns).chain(members.additional).collect()
                }
                Keyword::Elements(id) => {
                    let elements = &program.schemas.elements[id.index()];
                    elements.prefix.iter().copied().chain(elements.rest).collect()
                }
                Keyword::Contains(contains) => vec![contains.schema],
                Keyword::MemberNames(node)
                | Keyword::UnevaluatedMembers(node)
                | Keyword::UnevaluatedElements(node) => vec![*node],
                _ => Vec::new(),
            };
            for node in nodes {
                let situated = self.situate(node, scope);
                below.push(situated);
            }
        }
        parts
    }

    fn cycle(&self, start: Situated, path: &[(Situated, Vec<Situated>)]) -> Error {
        let place = |(node, _): Situated| {
            let value = self.program.schemas.node(node).value;
            Location::Pointer(self.program.document.pointer(value))
        };
        let message = "a schema applies to a value only if it applies to the same value";
        let mut error = Error::new(ErrorKind::LeftRecursion, message).at(place(start));
        let from = path.iter().position(|&(s, _)| s == start).unwrap_or(0);
        for &(situated, _) in path.iter().skip(from + 1) {
            error = error.related_to(place(situated));
        }
        error
    }

    /// Returns the schemas whose `uniqueItems` cannot be enforced: the elements cannot be told apart by
    /// their text, or it is their equality that is asked for.
    pub(super) fn check_unique(&mut self) -> Result<Vec<NodeId>, Error> {
        let program = self.program.clone();
        let has_unique =
            |keywords: &[Keyword]| keywords.iter().any(|k| matches!(k, Keyword::Unique));
        let mut failing = Vec::new();
        if !program.schemas.nodes.iter().any(|node| has_unique(&node.keywords)) {
            return Ok(failing);
        }
        // Goals, each with whether it is asked for unnegated.
        let mut seen: HashMap<(FormulaId, bool), (), foldhash::fast::RandomState> =
            HashMap::default();
        let mut pending = vec![(self.root_goal(), true)];
        while let Some((goal, asked)) = pending.pop() {
            if seen.insert((goal, asked), ()).is_some() {
                continue;
            }
            for t in [Type::Array, Type::Object] {
                let formula = self.split(goal, t)?;
                for (atom, yes, no) in self.atoms_of(formula) {
                    let signs = if asked { (yes, no) } else { (no, yes) };
                    let below = self.goals_below(atom);
                    pending.extend(below.iter().filter(|_| signs.0).map(|&goal| (goal, true)));
                    pending.extend(below.iter().filter(|_| signs.1).map(|&goal| (goal, false)));
                    if *self.atom(atom) == Atom::Unique && signs.1 {
                        self.unique_below(goal, &mut failing);
                    }
                }
            }
        }
        for (id, node) in program.schemas.nodes.iter().enumerate() {
            if has_unique(&node.keywords) && !self.are_distinct(NodeId::at(id))? {
                failing.push(NodeId::at(id));
            }
        }
        failing.sort_unstable();
        failing.dedup();
        Ok(failing)
    }

    /// Returns the goals that an atom sets for members, elements and the like.
    fn goals_below(&mut self, atom: super::formula::AtomId) -> Vec<FormulaId> {
        let program = self.program.clone();
        let (nodes, scope): (Vec<NodeId>, ScopeId) = match *self.atom(atom) {
            Atom::Members(id, scope) => {
                let members = &program.schemas.members[id.index()];
                let properties = members.properties.iter().map(|&(_, node)| node);
                let patterns = members.patterns.iter().map(|&(_, node)| node);
                (properties.chain(patterns).chain(members.additional).collect(), scope)
            }
            Atom::Elements(id, scope, _) => {
                let elements = &program.schemas.elements[id.index()];
                (elements.prefix.iter().copied().chain(elements.rest).collect(), scope)
            }
            Atom::Contains(goal, _)
            | Atom::UnevaluatedMembers(_, goal)
            | Atom::UnevaluatedElements(_, goal) => return vec![goal],
            _ => return Vec::new(),
        };
        nodes.into_iter().map(|node| self.schema(node, scope)).collect()
    }

    /// Appends the schemas of `goal`, and those that they apply in place, that have `uniqueItems`.
    fn unique_below(&mut self, goal: FormulaId, found: &mut Vec<NodeId>) {
        let program = self.program.clone();
        let mut pending: Vec<Situated> = Vec::new();
        for (atom, ..) in self.atoms_of(goal) {
            if let Atom::Schema(node, scope) = *self.atom(atom) {
                pending.push((node, scope));
            }
        }
        while let Some((node, scope)) = pending.pop() {
            for keyword in &program.schemas.node(node).keywords {
                if matches!(keyword, Keyword::Unique) {
                    found.push(node);
                }
                pending.extend(self.in_place(keyword, scope));
            }
        }
    }

    /// Returns whether the elements that a schema allows can be told apart: they are strings, constants
    /// or listed numbers.
    fn are_distinct(&mut self, node: NodeId) -> Result<bool, Error> {
        let program = self.program.clone();
        let mut goals = vec![Self::yes()];
        for keyword in &program.schemas.node(node).keywords {
            if let Keyword::Elements(id) = keyword {
                let elements = &program.schemas.elements[id.index()];
                let parts = elements.prefix.iter().map(|&part| self.schema(part, Scopes::empty()));
                goals = parts.collect();
                goals.push(match elements.rest {
                    Some(rest) => self.schema(rest, Scopes::empty()),
                    None => Self::yes(),
                });
            }
        }
        for goal in goals {
            for t in [Type::Array, Type::Object] {
                if self.split(goal, t)? != Self::no() {
                    return Ok(false);
                }
            }
            let numbers = self.split(goal, Type::Number)?;
            if numbers != Self::no() && self.listed_values(numbers, Type::Number).is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
