//! The parts of a schema that a value may do without (members, elements, branches), each as a question
//! to the automaton: is there a value with it?
//!
//! Goals are visited from the root on; of each, what its schemas declare is asked about, and the goals
//! of its members and elements are visited next. A place that is reached in several goals is in
//! question once: it must hold in one of them.

use hashbrown::HashSet;

use super::engine::{Engine, Level, Map, Object};
use super::formula::{Atom, FormulaId, Formulas};
use super::names::NameId;
use super::schema::{Keyword, NodeId, Type, TypeSet};
use super::split::Situated;
use crate::error::{Error, Location};
use crate::ir::{Arena, Part, Parts, Scope, UNBOUNDED};
use crate::limits::BudgetExceeded;

/// So many half-read arrays of one goal are followed to find the goals of elements.
const MOST_ARRAYS: usize = 1_000;

/// Whether some value that meets a goal has what is demanded.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// The goal.
    pub(super) goal: FormulaId,
    /// What the value must have.
    pub(super) demand: Demand,
}

/// What a value must have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Demand {
    /// Nothing.
    Any,
    /// A member of this name.
    Member(NameId),
    /// So many elements.
    Elements(u32),
}

impl Demand {
    /// Returns the keywords that demand it.
    pub(super) fn keywords(self) -> Vec<Keyword> {
        let of_type = |t| Keyword::Type(TypeSet::NONE.with(t));
        match self {
            Self::Any => Vec::new(),
            Self::Member(name) => vec![of_type(Type::Object), Keyword::Required([name].into())],
            Self::Elements(min) => {
                vec![of_type(Type::Array), Keyword::ElementCount { min, max: UNBOUNDED }]
            }
        }
    }
}

/// The search for parts.
#[derive(Default)]
struct Search {
    /// Goals to visit, and all that ever were.
    pending: Vec<FormulaId>,
    seen: HashSet<FormulaId, foldhash::fast::RandomState>,
    /// Questions by the schema whose place is in question.
    asked: Vec<(NodeId, String, Question)>,
    unknown: Vec<Error>,
}

impl Search {
    fn visit(&mut self, goal: FormulaId) {
        if goal != Formulas::no() && self.seen.insert(goal) {
            self.pending.push(goal);
        }
    }

    fn ask(&mut self, node: NodeId, what: String, goal: FormulaId, demand: Demand) {
        self.asked.push((node, what, Question { goal, demand }));
    }
}

impl Engine {
    /// Returns all parts, and keeps what is asked about them.
    pub(super) fn find_parts(&mut self, scope: &mut Scope<'_>) -> Result<Parts, Error> {
        let mut search = Search::default();
        let root = self.formulas.root_goal();
        search.visit(root);
        while let Some(goal) = search.pending.pop() {
            let asked = self.ask_about(goal, &mut search);
            let members = self.visit_members(goal, &mut search, scope);
            let elements = self.visit_elements(goal, &mut search);
            // Past the limit on expressions, nothing is what it seems.
            self.formulas.check()?;
            scope.arena.check()?;
            for error in [asked, members, elements].into_iter().filter_map(Result::err) {
                let name = self.formulas.describe(goal);
                let message = format!("not all of {name} was looked into: {}", error.message());
                search.unknown.push(Error::new(error.kind().clone(), message));
            }
        }
        let mut parts = Vec::with_capacity(search.asked.len());
        self.questions.clear();
        let mut groups: Map<NodeId, u32> = Map::default();
        for (node, what, question) in search.asked {
            let group = u32::try_from(groups.len()).unwrap_or(u32::MAX);
            let group = *groups.entry(node).or_insert(group);
            let expr = self.question(&question, scope)?;
            let document = &self.formulas.program.document;
            let pointer = document.pointer(self.formulas.program.schemas.node(node).value);
            parts.push(Part { group, place: Some(Location::Pointer(pointer)), what, expr });
            self.questions.push(question);
        }
        self.formulas.check()?;
        scope.arena.check()?;
        Ok(Parts { parts, unknown: search.unknown })
    }

    /// Returns an expression that has a text if the answer is yes.
    fn question(
        &mut self,
        question: &Question,
        scope: &mut Scope<'_>,
    ) -> Result<crate::ids::ExprId, Error> {
        let level = Level::default();
        match question.demand {
            Demand::Any => Ok(self.call(scope, question.goal, level)),
            Demand::Member(name) => {
                let formula = self.formulas.split(question.goal, Type::Object)?;
                let present = self.formulas.literal(Atom::Present(name));
                let formula = self.formulas.and(&[formula, present]);
                if formula == Formulas::no() {
                    return Ok(Arena::EMPTY);
                }
                let object = self.whole_object(question.goal, formula, level)?;
                Ok(self.members(scope.arena, object, true))
            }
            Demand::Elements(n) => {
                let formula = self.formulas.split(question.goal, Type::Array)?;
                let count = self.formulas.at_least(n, Atom::ElementCount);
                let formula = self.formulas.and(&[formula, count]);
                if formula == Formulas::no() {
                    return Ok(Arena::EMPTY);
                }
                self.array(scope.arena, formula, level)
            }
        }
    }

    /// Asks about what the schemas of `goal` declare of a value that meets it.
    fn ask_about(&mut self, goal: FormulaId, search: &mut Search) -> Result<(), Error> {
        let mut seen: HashSet<(FormulaId, Situated), foldhash::fast::RandomState> =
            HashSet::default();
        let mut pending: Vec<(FormulaId, Situated)> = Vec::new();
        for (atom, positive, _) in self.formulas.atoms_of(goal) {
            if let (&Atom::Schema(node, scope), true) = (self.formulas.atom(atom), positive) {
                pending.push((goal, (node, scope)));
            }
        }
        pending.reverse();
        let program = self.formulas.program.clone();
        while let Some((goal, (node, scope))) = pending.pop() {
            if !seen.insert((goal, (node, scope))) {
                continue;
            }
            let mut below = Vec::new();
            for keyword in &program.schemas.node(node).keywords {
                let in_place = self.formulas.in_place(keyword, scope);
                match keyword {
                    Keyword::AnyOf(_) | Keyword::OneOf(_) => {
                        for part in in_place {
                            let branch = self.formulas.schema(part.0, scope);
                            let both = self.formulas.and(&[goal, branch]);
                            if !self.is_never(part.0) {
                                search.ask(part.0, "this branch".to_owned(), both, Demand::Any);
                            }
                            below.push((both, part));
                        }
                    }
                    Keyword::If { then, otherwise, .. } => {
                        let condition = self.formulas.schema(in_place[0].0, scope);
                        let not = self.formulas.not(condition);
                        let cases = [(condition, "`then`", then), (not, "`else`", otherwise)];
                        for (case, name, part) in cases {
                            let Some(part) = *part else { continue };
                            let branch = self.formulas.schema(part, scope);
                            let both = self.formulas.and(&[goal, case, branch]);
                            if !self.is_never(part) {
                                search.ask(part, name.to_owned(), both, Demand::Any);
                            }
                            below.push((both, self.formulas.situate(part, scope)));
                        }
                    }
                    Keyword::Not(_) => {}
                    Keyword::Members(id) => {
                        for &(name, part) in &program.schemas.members[id.index()].properties {
                            if !self.is_never(part) {
                                let what = format!("`{}`", program.document.names.get(name));
                                search.ask(part, what, goal, Demand::Member(name));
                            }
                        }
                    }
                    Keyword::Elements(id) => {
                        let elements = &program.schemas.elements[id.index()];
                        for (count, &part) in
                            (1..).zip(elements.prefix.iter().chain(&elements.rest))
                        {
                            let demand = Demand::Elements(count);
                            if !self.is_never(part) && self.may_have(goal, count)? {
                                search.ask(part, format!("element {count}"), goal, demand);
                            }
                        }
                    }
                    _ => below.extend(in_place.into_iter().map(|part| (goal, part))),
                }
            }
            pending.extend(below.into_iter().rev());
        }
        Ok(())
    }

    /// Returns whether a schema is plainly meant to be never satisfied.
    fn is_never(&self, node: NodeId) -> bool {
        matches!(*self.formulas.program.schemas.node(node).keywords, [Keyword::Never])
    }

    /// Returns whether the counts of `goal` allow so many elements.
    fn may_have(&mut self, goal: FormulaId, count: u32) -> Result<bool, Error> {
        let formula = self.formulas.split(goal, Type::Array)?;
        let is_count = |atom: &Atom| matches!(atom, Atom::ElementCount(_));
        Ok(self.formulas.without_counts(formula, is_count).2 >= count)
    }

    /// Visits the goals of the members of an object that meets `goal`.
    fn visit_members(
        &mut self,
        goal: FormulaId,
        search: &mut Search,
        scope: &mut Scope<'_>,
    ) -> Result<(), Error> {
        let formula = self.formulas.split(goal, Type::Object)?;
        if formula == Formulas::no() {
            return Ok(());
        }
        let mut object: Object = self.whole_object(goal, formula, Level::default())?;
        // Whichever member is looked at first, all others may follow it.
        object.progress.any = true;
        for position in 0..self.order(&object).len() {
            let after = self.after_name(&object, position, scope)?;
            for (goal, _) in self.formulas.outcomes(after.formula)? {
                search.visit(goal);
            }
        }
        for (_, after) in self.others(&object, scope)? {
            for (goal, _) in self.formulas.outcomes(after)? {
                search.visit(goal);
            }
        }
        Ok(())
    }

    /// Visits the goals of the elements of an array that meets `goal`.
    fn visit_elements(&mut self, goal: FormulaId, search: &mut Search) -> Result<(), Error> {
        let formula = self.formulas.split(goal, Type::Array)?;
        let is_count = |atom: &Atom| matches!(atom, Atom::ElementCount(_));
        let mut pending = vec![self.formulas.without_counts(formula, is_count).0];
        let mut seen: HashSet<FormulaId, foldhash::fast::RandomState> = HashSet::default();
        while let Some(formula) = pending.pop() {
            if formula == Formulas::no() || !seen.insert(formula) {
                continue;
            }
            if seen.len() > MOST_ARRAYS {
                return Err(BudgetExceeded::new("arrays of a proof", MOST_ARRAYS as u64).into());
            }
            let after = self.formulas.read_element(formula)?;
            for (goal, rest) in self.formulas.outcomes(after)? {
                search.visit(goal);
                pending.push(rest);
            }
        }
        Ok(())
    }
}
