//! What is checked of all schemas when compiling: that no schema applies to a value only if it applies
//! to the same value, and that nothing is asked that no expansion could enforce.

use hashbrown::HashMap;

use super::elements::FEW_VALUES;
use super::formula::{Atom, Formula, FormulaId, Formulas};
use super::program::{ScopeId, Scopes};
use super::schema::{ElementsId, Keyword, MembersId, NodeId, Type};
use super::split::Situated;
use crate::error::{Error, ErrorKind, Location};
use crate::ir::UNBOUNDED;

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

    /// Returns the schemas whose `uniqueItems` cannot be enforced: it is asked for negated, or there are
    /// so few elements that the last of them could be written with nothing left to follow.
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
            if has_unique(&node.keywords) && self.has_few_elements(NodeId::at(id))? {
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

    /// Returns whether the elements that a schema allows are, by its own `items`, few arrays or objects
    /// which are not listed.
    fn has_few_elements(&mut self, node: NodeId) -> Result<bool, Error> {
        let whole = self.schema(node, Scopes::empty());
        if self.split(whole, Type::Array)? == Self::no() {
            return Ok(false);
        }
        let program = self.program.clone();
        for keyword in &program.schemas.node(node).keywords {
            let &Keyword::Elements(id) = keyword else { continue };
            for goal in self.element_goals(id, Scopes::empty()) {
                for t in [Type::Array, Type::Object] {
                    let formula = self.split(goal, t)?;
                    if formula == Self::no() || self.equal_values(formula).is_some() {
                        continue;
                    }
                    match self.most_values(formula, t, LEVELS)? {
                        Some(0) => {}
                        // It is known which that is.
                        Some(1) if self.may_end(formula)? => {}
                        Some(most) if most as usize <= FEW_VALUES => return Ok(true),
                        _ => {}
                    }
                }
            }
        }
        Ok(false)
    }

    /// Returns the goals of the elements of an elements part, those after its prefix last.
    fn element_goals(&mut self, id: ElementsId, scope: ScopeId) -> Vec<FormulaId> {
        let program = self.program.clone();
        let elements = &program.schemas.elements[id.index()];
        let mut goals: Vec<_> =
            elements.prefix.iter().map(|&part| self.schema(part, scope)).collect();
        goals.push(elements.rest.map_or(Self::yes(), |rest| self.schema(rest, scope)));
        goals
    }

    /// Returns a number that there are no more values of type `t` than which satisfy `formula`; `None` if
    /// none is plain. Looks `levels` deep.
    pub(super) fn most_values(
        &mut self,
        formula: FormulaId,
        t: Type,
        levels: u32,
    ) -> Result<Option<u32>, Error> {
        if formula == Self::no() {
            return Ok(Some(0));
        }
        if let Type::Null | Type::False | Type::True = t {
            return Ok(Some(1));
        }
        if levels == 0 {
            return Ok(None);
        }
        let mut most: Option<u32> = None;
        let mut restrict = |part: Option<u32>| most = most.into_iter().chain(part).min();
        let (_, _, max) = self.without_counts(formula, |a| matches!(a, Atom::ElementCount(_)));
        restrict((t == Type::Array && max == 0).then_some(1));
        for part in self.conjuncts(formula) {
            match self.get(part).clone() {
                Formula::Or(cases) => {
                    let mut sum = Some(0_u32);
                    for case in cases {
                        let case = self.most_values(case, t, levels - 1)?;
                        sum = sum.zip(case).map(|(sum, case)| sum.saturating_add(case));
                    }
                    restrict(sum);
                }
                Formula::Literal { atom, positive: true } => match *self.atom(atom) {
                    Atom::Strings(list) | Atom::Numbers(list) => {
                        restrict(u32::try_from(self.list(list).len()).ok());
                    }
                    Atom::EqualElements(_) | Atom::EqualMembers(_) => restrict(Some(1)),
                    Atom::Elements(id, scope, _) => {
                        restrict(self.most_arrays(id, scope, max, levels)?);
                    }
                    Atom::Members(id, scope) => restrict(self.most_objects(id, scope, levels)?),
                    _ => {}
                },
                _ => {}
            }
        }
        Ok(most)
    }

    fn most_of_goal(&mut self, goal: FormulaId, levels: u32) -> Result<Option<u32>, Error> {
        let mut sum = Some(0_u32);
        for t in Type::ALL {
            let formula = self.split(goal, t)?;
            let of_type = self.most_values(formula, t, levels - 1)?;
            sum = sum.zip(of_type).map(|(sum, of_type)| sum.saturating_add(of_type));
        }
        Ok(sum)
    }

    /// The arrays of at most `max` elements that an elements part allows.
    fn most_arrays(
        &mut self,
        id: ElementsId,
        scope: ScopeId,
        max: u32,
        levels: u32,
    ) -> Result<Option<u32>, Error> {
        let goals = self.element_goals(id, scope);
        let mut greatest = 0;
        let mut longest = max;
        for (i, goal) in goals.iter().enumerate() {
            match self.most_of_goal(*goal, levels)? {
                // Nothing can stand there, so that no element follows.
                Some(0) => {
                    longest = longest.min(u32::try_from(i).unwrap_or(UNBOUNDED));
                    break;
                }
                Some(most) => greatest = most.max(greatest),
                None => return Ok(None),
            }
        }
        if longest == UNBOUNDED {
            return Ok(None);
        }
        let mut sum = 1_u32;
        let mut power = 1_u32;
        for _ in 0..longest {
            power = power.saturating_mul(greatest);
            sum = sum.saturating_add(power);
            if sum as usize > FEW_VALUES {
                break;
            }
        }
        Ok(Some(sum))
    }

    /// The objects that a members part allows.
    fn most_objects(
        &mut self,
        id: MembersId,
        scope: ScopeId,
        levels: u32,
    ) -> Result<Option<u32>, Error> {
        let program = self.program.clone();
        let members = &program.schemas.members[id.index()];
        let others = members.patterns.iter().map(|&(_, node)| node).chain(members.additional);
        if members.additional.is_none() {
            return Ok(None);
        }
        for node in others {
            let goal = self.schema(node, scope);
            if self.most_of_goal(goal, levels)? != Some(0) {
                return Ok(None);
            }
        }
        let mut product = 1_u32;
        for &(_, node) in &members.properties {
            let goal = self.schema(node, scope);
            let Some(most) = self.most_of_goal(goal, levels)? else { return Ok(None) };
            product = product.saturating_mul(most.saturating_add(1));
        }
        Ok(Some(product))
    }
}

/// So deep the values of elements are looked at for being few.
pub(super) const LEVELS: u32 = 4;
