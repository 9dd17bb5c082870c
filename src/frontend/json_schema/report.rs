//! What became of each keyword: a read schema in, a list for people and programs out.

use super::document::{Kind, ValueId};
use super::formula::{Formula, Formulas};
use super::number::{self, Notation, NumberConstraint};
use super::options::Draft;
use super::program::{Program, Scopes};
use super::scalar::Languages;
use super::schema::{Keyword, NodeId, Type};
use crate::error::Error;
use crate::frontend::json_schema::format::{self, Side};
use crate::ir::chars::Encoding;
use crate::ir::{Arena, Departure, UNBOUNDED};

/// What became of one keyword.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct KeywordReport {
    /// JSON Pointer of the keyword, in its own document.
    pub pointer: String,
    /// The keyword.
    pub keyword: String,
    /// Whether it is enforced.
    pub status: Status,
    /// What it became, for people.
    pub became: String,
    /// The size of its language in expressions, if it became a language of its own.
    pub expressions: Option<usize>,
}

/// Whether a keyword is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// What it forbids cannot be generated.
    Enforced,
    /// It names or holds something for other keywords.
    Structure,
    /// By the standard it asserts nothing here.
    Annotation,
    /// It is not read by the standard, on request; listed in [`crate::ir::Grammar::departures`].
    Departs,
}

/// Keywords that name places, hold schemas for references, or hint at the order of members.
const STRUCTURE: [&str; 11] = [
    "$anchor",
    "$defs",
    "$dynamicAnchor",
    "$id",
    "$recursiveAnchor",
    "$schema",
    "$vocabulary",
    "definitions",
    "id",
    "propertyOrdering",
    "x-order",
];

/// Keywords that assert something, each with the first draft that has it, and with the keywords of which
/// it needs one beside it.
const KEYWORDS: [(&str, Draft, &[&str]); 18] = [
    ("additionalItems", Draft::Draft4, &["items"]),
    ("const", Draft::Draft6, &[]),
    ("contains", Draft::Draft6, &[]),
    ("dependentRequired", Draft::Draft201909, &[]),
    ("dependentSchemas", Draft::Draft201909, &[]),
    ("$dynamicRef", Draft::Draft202012, &[]),
    ("else", Draft::Draft7, &["if"]),
    ("if", Draft::Draft7, &[]),
    ("maxContains", Draft::Draft201909, &["contains"]),
    ("minContains", Draft::Draft201909, &["contains"]),
    ("prefixItems", Draft::Draft202012, &[]),
    ("propertyNames", Draft::Draft6, &[]),
    ("$recursiveRef", Draft::Draft201909, &[]),
    ("then", Draft::Draft7, &["if"]),
    ("unevaluatedItems", Draft::Draft201909, &[]),
    ("unevaluatedProperties", Draft::Draft201909, &[]),
    ("uniqueItems", Draft::Draft4, &[]),
    ("format", Draft::Draft4, &[]),
];

/// Returns what became of the keywords of all schemas that were read, in their order.
pub(super) fn report(
    formulas: Formulas,
    drafts: Vec<Draft>,
    departures: &[Departure],
) -> Result<Vec<KeywordReport>, Error> {
    let program = formulas.program.clone();
    let mut reporter = Reporter { formulas, drafts };
    let mut nodes: Vec<_> = (0..program.schemas.nodes.len()).map(NodeId::at).collect();
    nodes.sort_by_key(|&id| program.schemas.node(id).value);
    let mut reports = Vec::new();
    for id in nodes {
        let schema = program.schemas.node(id).value;
        for (name, value) in program.document.entries(schema) {
            let keyword = program.document.names.get(name);
            let pointer = program.document.pointer(value);
            let departure = departures.iter().find(|entry| entry.pointer == pointer);
            let (status, became, expressions) = match departure {
                Some(departure) => (Status::Departs, departure.reason.clone(), None),
                None => reporter.keyword(id, keyword, value)?,
            };
            let keyword = keyword.to_owned();
            reports.push(KeywordReport { pointer, keyword, status, became, expressions });
        }
    }
    Ok(reports)
}

type Became = (Status, String, Option<usize>);

struct Reporter {
    formulas: Formulas,
    /// The drafts of the resources.
    drafts: Vec<Draft>,
}

impl Reporter {
    fn keyword(&mut self, id: NodeId, name: &str, value: ValueId) -> Result<Became, Error> {
        let program = self.formulas.program.clone();
        let parsed = program.schemas.node(id).keywords.iter().filter(|k| k.names().contains(&name));
        let parsed = parsed.collect::<Vec<_>>();
        let Some(&first) = parsed.first() else {
            return Ok(self.unparsed(id, name, value));
        };
        // `enum` and `const`, or a `format` of numbers beside bounds, are parsed alike.
        let own = parsed.iter().copied().find(|keyword| match keyword {
            Keyword::Values(values) => match name {
                "const" => values[..] == [value],
                _ => values.first().is_none_or(|&v| program.document.parent(v) == Some(value)),
            },
            Keyword::Format(_) => true,
            _ => false,
        });
        let (became, expressions) = self.parsed(&program, own.unwrap_or(first), name, value)?;
        Ok((Status::Enforced, became, expressions))
    }

    /// Tells of a keyword that constrains.
    fn parsed(
        &mut self,
        program: &Program,
        keyword: &Keyword,
        name: &str,
        value: ValueId,
    ) -> Result<(String, Option<usize>), Error> {
        let document = &program.document;
        let schemas = &program.schemas;
        let place = |node: NodeId| format!("`#{}`", document.pointer(schemas.node(node).value));
        let became = match keyword {
            Keyword::Number(_) | Keyword::Pattern(_) | Keyword::Format(_) => {
                let (became, expressions) = self.regular(keyword)?;
                return Ok((became, Some(expressions)));
            }
            Keyword::Never => "nothing".to_owned(),
            Keyword::Unenforced => "nothing, on request".to_owned(),
            Keyword::Type(_) => match document.string(value) {
                Some(name) => format!("values of type {name}"),
                None => count(document.children(value).count(), "type", "of values"),
            },
            Keyword::Values(values) => count(values.len(), "value", "listed"),
            &Keyword::Length { min, max } => format!("strings of {}", range(min, max, "character")),
            Keyword::Members(id) => {
                let members = &schemas.members[id.index()];
                match name {
                    "properties" => count(members.properties.len(), "member", "declared"),
                    "patternProperties" => count(members.patterns.len(), "pattern", "of names"),
                    _ => match document.kind(value) {
                        Kind::Bool(false) => "no other members".to_owned(),
                        Kind::Bool(true) => "any other members".to_owned(),
                        _ => "a schema of all other members".to_owned(),
                    },
                }
            }
            Keyword::Required(names) => count(names.len(), "name", "required"),
            &Keyword::MemberCount { min, max } => range(min, max, "member"),
            Keyword::MemberNames(_) => "a language of names".to_owned(),
            Keyword::DependentRequired(parts) => count(parts.len(), "name", "with required ones"),
            Keyword::DependentSchemas(parts) => count(parts.len(), "name", "with a schema"),
            Keyword::UnevaluatedMembers(_) => {
                "a schema of the members that no branch in force evaluates".to_owned()
            }
            Keyword::UnevaluatedElements(_) => {
                "a schema of the elements that no branch in force evaluates".to_owned()
            }
            Keyword::Elements(id) => {
                let elements = &schemas.elements[id.index()];
                match document.kind(value) {
                    Kind::Array(_) => count(elements.prefix.len(), "first element", "declared"),
                    Kind::Bool(false) => "no more elements".to_owned(),
                    _ => "a schema of all further elements".to_owned(),
                }
            }
            &Keyword::ElementCount { min, max } => range(min, max, "element"),
            Keyword::Unique => "elements that are told apart by their text".to_owned(),
            Keyword::Contains(contains) => {
                format!("{} that match", range(contains.min, contains.max, "element"))
            }
            Keyword::AllOf(parts) => count(parts.len(), "schema", "joined"),
            Keyword::AnyOf(parts) => count(parts.len(), "branch", "united"),
            Keyword::OneOf(parts) => self.one_of_became(parts)?,
            Keyword::Not(_) => "a complement".to_owned(),
            Keyword::If { .. } => "two branches, of which one holds".to_owned(),
            Keyword::Ref(node) => format!("the schema at {}", place(*node)),
            Keyword::DynamicRef { initial, .. } => {
                format!("the schema of the outermost scope, at first {}", place(*initial))
            }
            Keyword::RecursiveRef(node) => {
                format!("the root of the outermost scope, at first {}", place(*node))
            }
        };
        Ok((became, None))
    }

    /// Tells of a keyword that becomes a regular language, and of the number of its expressions.
    fn regular(&self, keyword: &Keyword) -> Result<(String, usize), Error> {
        let program = &self.formulas.program;
        let mut arena = Arena::new(program.limits.expressions);
        let encoding = Encoding::JsonCanonical;
        let became = match keyword {
            Keyword::Number(id) => {
                let constraint = &program.schemas.numbers[id.index()];
                number::language(&mut arena, constraint, &program.limits)?;
                numbers_of(constraint)
            }
            Keyword::Pattern(id) => {
                Languages::default().pattern(&self.formulas, &mut arena, *id, encoding)?;
                match program.schemas.patterns[id.index()].exact {
                    Some(_) => "one string".to_owned(),
                    None => "a regular language of strings".to_owned(),
                }
            }
            Keyword::Format(format) => {
                let format = program.document.names.get(*format);
                format::format(&mut arena, format, Side::Within, encoding)?;
                "a regular language of strings".to_owned()
            }
            _ => String::new(),
        };
        Ok((became, arena.len()))
    }

    /// Tells of a keyword that does not constrain.
    fn unparsed(&self, id: NodeId, name: &str, value: ValueId) -> Became {
        let program = &self.formulas.program;
        let node = program.schemas.node(id);
        let draft = self.drafts.get(node.resource as usize).copied().unwrap_or(Draft::Draft202012);
        let known = KEYWORDS.iter().find(|(keyword, ..)| *keyword == name);
        let alone = matches!(*node.keywords, [Keyword::Ref(_)]) && draft <= Draft::Draft7;
        let (status, became) = match known {
            _ if STRUCTURE.contains(&name) => (Status::Structure, "for other keywords".to_owned()),
            _ if alone => (Status::Annotation, "beside `$ref`, which stands alone".to_owned()),
            Some(&(_, first, _)) if draft < first => {
                (Status::Annotation, "not a keyword of this draft".to_owned())
            }
            Some(&(_, _, with)) => {
                let member =
                    |name: &&str| program.document.member_named(node.value, name).is_some();
                let holds = program.document.kind(value) != Kind::Bool(false)
                    && !with.is_empty()
                    && !with.iter().any(member);
                let became = if holds {
                    format!("nothing without `{}`", with.join("` or `"))
                } else {
                    "nothing: every value satisfies it here".to_owned()
                };
                (Status::Annotation, became)
            }
            None => (Status::Annotation, "an annotation".to_owned()),
        };
        (status, became, None)
    }

    /// Tells whether the branches of a `oneOf` exclude each other plainly.
    fn one_of_became(&mut self, parts: &[NodeId]) -> Result<String, Error> {
        let mut apart = true;
        for t in Type::ALL {
            let mut branches = Vec::with_capacity(parts.len());
            for &part in parts {
                let goal = self.formulas.schema(part, Scopes::empty());
                branches.push(self.formulas.split(goal, t)?);
            }
            let one = self.formulas.one_of(&branches, t)?;
            let has_one = |&id: &super::formula::FormulaId| {
                matches!(self.formulas.get(id), Formula::One { .. })
            };
            apart &= !self.formulas.parts_of(one).iter().any(has_one);
        }
        let branches = count(parts.len(), "branch", "");
        Ok(if apart {
            format!("{branches}united: they exclude each other")
        } else {
            format!("{branches}of which exactly one holds")
        })
    }
}

/// Returns `n` of these, in words.
fn count(n: usize, what: &str, how: &str) -> String {
    let plural = match what.strip_suffix('y') {
        _ if n == 1 => what.to_owned(),
        _ if what.ends_with("ch") => format!("{what}es"),
        Some(stem) => format!("{stem}ies"),
        None => format!("{what}s"),
    };
    format!("{n} {plural} {how}")
}

/// Returns from `min` to `max` of these, in words.
fn range(min: u32, max: u32, what: &str) -> String {
    match (min, max) {
        (1, 1) => format!("1 {what}"),
        (min, max) if min == max => format!("{min} {what}s"),
        (1, UNBOUNDED) => format!("at least 1 {what}"),
        (min, UNBOUNDED) => format!("at least {min} {what}s"),
        (min, max) => format!("{min} to {max} {what}s"),
    }
}

/// Returns the numbers that meet a constraint, in words.
fn numbers_of(constraint: &NumberConstraint) -> String {
    let mut words = if constraint.integer { "integers" } else { "numbers" }.to_owned();
    let sides = [(&constraint.minimum, "above", "from"), (&constraint.maximum, "below", "up to")];
    for (bound, exclusive, inclusive) in sides {
        if let Some(bound) = bound {
            let word = if bound.exclusive { exclusive } else { inclusive };
            words += &format!(" {word} {}", bound.value);
        }
    }
    for step in &constraint.multiple_of {
        words += &format!(", multiples of {step}");
    }
    words
        + match constraint.notation() {
            Notation::Plain => ", without an exponent",
            Notation::Scientific => ", with an exponent only after one digit",
            Notation::Any => "",
        }
}
