//! Why nothing satisfies a schema: the keywords of a program in, a smallest set of them that no value
//! satisfies together out, found by leaving out others and asking again.
//!
//! Only keywords that forbid more the more of them there are can be left out one by one; `not`, `oneOf`
//! and `if` are left out or kept whole. Each question costs a compilation up to the point where some
//! text is found, and their number and work are bounded.

use hashbrown::HashSet;

use super::document::ValueId;
use super::engine::Engine;
use super::formula::{Atom, Formula};
use super::program::{Program, Scopes};
use super::proof::Question;
use super::schema::{Keyword, Node, NodeId};
use crate::error::{Error, ErrorKind, Location};
use crate::ir::Grammar;
use crate::limits::Limits;

/// So many sets of keywords are tried.
const QUESTIONS: usize = 200;
/// The work that one of them may take.
const WORK: u64 = 2_000_000;
/// More keywords than this are no explanation.
const MOST: usize = 100;
/// So many keywords are named.
const NAMED: usize = 8;

/// The schema that is in question.
#[derive(Clone, Copy)]
struct Root {
    node: NodeId,
    /// Whether its own keywords stay.
    fixed: bool,
}

/// A keyword by its schema and its position there.
type Place = (NodeId, usize);

impl Engine {
    /// Returns an error that names keywords which nothing satisfies together, given that nothing
    /// satisfies the schema, or the question about a part of it; `None` if the work is too much.
    pub(super) fn find_conflict(
        &self,
        question: Option<&Question>,
        has_text: &mut dyn FnMut(Grammar) -> Option<bool>,
    ) -> Option<Error> {
        let mut program = Program::clone(&self.formulas.program);
        let root = match question {
            None => Root { node: NodeId::at(0), fixed: false },
            Some(question) => Root { node: self.ask(question, &mut program)?, fixed: true },
        };
        let program = &program;
        let mut kept = candidates(program, root);
        let mut questions = QUESTIONS;
        let mut size = kept.len().next_power_of_two();
        while size > 0 {
            let mut from = 0;
            while from < kept.len() && questions > 0 {
                questions -= 1;
                let to = kept.len().min(from + size);
                let fewer: Vec<Place> = [&kept[..from], &kept[to..]].concat();
                if !fewer.is_empty() && has_text(only(program, root, &fewer)?) == Some(false) {
                    kept = fewer;
                } else {
                    from = to;
                }
            }
            size /= 2;
        }
        // Where the questions did not suffice, most of what is left takes no part.
        (kept.len() <= MOST).then(|| error(program, &kept))
    }

    /// Adds a schema to `program` that is satisfied where the answer to the question is yes; `None` if
    /// none plainly is.
    fn ask(&self, question: &Question, program: &mut Program) -> Option<NodeId> {
        let mut keywords = Vec::new();
        let mut place = None;
        for part in self.formulas.conjuncts(question.goal) {
            let &Formula::Literal { atom, positive } = self.formulas.get(part) else { return None };
            let &Atom::Schema(node, scope) = self.formulas.atom(atom) else { return None };
            if scope != Scopes::empty() {
                return None;
            }
            place = place.or(Some(node));
            keywords.push(if positive {
                Keyword::AllOf([node].into())
            } else {
                Keyword::Not(node)
            });
        }
        keywords.extend(question.demand.keywords());
        let Node { value, resource, .. } = *program.schemas.node(place?);
        program.schemas.nodes.push(Node { value, resource, keywords: keywords.into() });
        Some(NodeId::at(program.schemas.nodes.len() - 1))
    }
}

/// Returns the keywords that apply to the value or a part of it unnegated.
fn candidates(program: &Program, root: Root) -> Vec<Place> {
    let mut seen: HashSet<NodeId, foldhash::fast::RandomState> = HashSet::default();
    let mut found = Vec::new();
    let mut pending = vec![root.node];
    while let Some(id) = pending.pop() {
        if !seen.insert(id) {
            continue;
        }
        for (position, keyword) in program.schemas.node(id).keywords.iter().enumerate() {
            if id != root.node || !root.fixed {
                found.push((id, position));
            }
            match keyword {
                Keyword::AllOf(parts) | Keyword::AnyOf(parts) => pending.extend(parts),
                Keyword::Ref(node)
                | Keyword::DynamicRef { initial: node, .. }
                | Keyword::RecursiveRef(node)
                | Keyword::MemberNames(node)
                | Keyword::UnevaluatedMembers(node)
                | Keyword::UnevaluatedElements(node) => pending.push(*node),
                Keyword::Contains(contains) => pending.push(contains.schema),
                Keyword::DependentSchemas(parts) => pending.extend(parts.iter().map(|p| p.1)),
                Keyword::Members(id) => {
                    let members = &program.schemas.members[id.index()];
                    pending.extend(members.properties.iter().map(|p| p.1));
                    pending.extend(members.patterns.iter().map(|p| p.1));
                    pending.extend(members.additional);
                }
                Keyword::Elements(id) => {
                    let elements = &program.schemas.elements[id.index()];
                    pending.extend(elements.prefix.iter().chain(&elements.rest));
                }
                _ => {}
            }
        }
    }
    found.sort_unstable();
    found
}

/// Returns the grammar of a schema whose candidates are `kept` only.
fn only(program: &Program, root: Root, kept: &[Place]) -> Option<Grammar> {
    let mut program = program.clone();
    for (node, position) in candidates(&program, root).into_iter().rev() {
        if kept.binary_search(&(node, position)).is_err() {
            let keywords = &mut program.schemas.nodes[node.index()].keywords;
            let mut left = std::mem::take(keywords).into_vec();
            left.remove(position);
            *keywords = left.into();
        }
    }
    program.limits = Limits { compile_work: WORK, ..program.limits };
    super::grammar_of(program, root.node).ok()
}

fn error(program: &Program, kept: &[Place]) -> Error {
    let document = &program.document;
    let mut places: Vec<(ValueId, Option<&str>)> = Vec::new();
    for &(node, position) in kept {
        let node = program.schemas.node(node);
        let Some(keyword) = node.keywords.get(position) else { continue };
        let names = keyword.names().iter();
        let found = places.len();
        places
            .extend(names.filter_map(|&n| Some((document.member_named(node.value, n)?, Some(n)))));
        if places.len() == found {
            places.push((node.value, None));
        }
    }
    places.sort_unstable();
    places.dedup();
    let mut named: Vec<String> = Vec::new();
    for (_, name) in places.iter().take(NAMED) {
        let name = name.map_or("`false`".to_owned(), |name| format!("`{name}`"));
        if !named.contains(&name) {
            named.push(name);
        }
    }
    let message = match &named[..] {
        [one] => format!("nothing satisfies {one}"),
        _ => format!("nothing satisfies these together: {}", named.join(", ")),
    };
    let mut error = Error::new(ErrorKind::Unsatisfiable, message);
    for (i, &(value, _)) in places.iter().take(NAMED).enumerate() {
        let place = Location::Pointer(document.pointer(value));
        error = if i == 0 { error.at(place) } else { error.related_to(place) };
    }
    error
}
