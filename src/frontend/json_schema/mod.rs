//! JSON Schema: the text of a schema in, a [`Grammar`] out whose texts are exactly the values that the
//! schema allows, in the spellings that [`JsonOptions`] documents.
//!
//! The text is parsed into a flat table ([`document`]), references are resolved ([`sources`]), keywords
//! are parsed ([`read`]). A value must meet a *goal*, a boolean formula over schemas ([`formula`]), which
//! is split by type ([`split`]): scalars become regular languages ([`scalar`]), objects and arrays
//! formulas that are consumed member by member ([`object`], [`mod@array`], [`outcomes`]). The automaton asks
//! for these one at a time ([`engine`]), so what no output visits costs nothing.

mod array;
mod atoms;
mod check;
mod codec;
mod conflict;
mod disjoint;
mod document;
mod elements;
mod engine;
pub mod format;
mod formula;
mod liveness;
mod matching;
mod members;
mod meta;
mod names;
pub mod number;
mod object;
mod options;
mod order;
mod outcomes;
mod program;
mod proof;
mod read;
mod report;
mod scalar;
mod schema;
mod sources;
mod space;
mod split;

use std::sync::Arc;

pub use codec::{decode_expander, is_expander};
pub use options::{Draft, Escapes, Formats, JsonOptions, PropertyOrder, Vocabularies, Whitespace};
pub use report::{KeywordReport, Status};
pub use sources::Retrieve;

use crate::error::Error;
use crate::ids::ExprId;
use crate::ir::{Departure, Grammar};
use crate::limits::Limits;

/// Compiles the JSON Schema `text`.
///
/// References to other documents than the standard's meta-schemas are errors: see [`compile_with`].
///
/// # Errors
///
/// What is wrong with the schema, or not supported, with its JSON Pointer; or an exceeded limit.
///
/// # Examples
///
/// ```
/// use schemac::frontend::json_schema::{JsonOptions, compile};
///
/// let schema = r#"{"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}}"#;
/// let grammar = compile(schema, &JsonOptions::default(), &schemac::Limits::default())?;
/// assert!(grammar.departures.is_empty());
/// # Ok::<(), schemac::Error>(())
/// ```
pub fn compile(text: &str, options: &JsonOptions, limits: &Limits) -> Result<Grammar, Error> {
    compile_with(text, options, limits, None)
}

/// Compiles the JSON Schema `text`, asking `retrieve` for other documents that it refers to.
///
/// # Errors
///
/// Those of [`compile`].
pub fn compile_with(
    text: &str,
    options: &JsonOptions,
    limits: &Limits,
    retrieve: Option<&dyn Retrieve>,
) -> Result<Grammar, Error> {
    let (formulas, _, departures) = read_and_check(text, options, limits, retrieve)?;
    let mut grammar = grammar(formulas, schema::NodeId::at(0))?;
    grammar.departures = departures;
    Ok(grammar)
}

/// Tells of every keyword of the JSON Schema `text`, and of the documents that it refers to as far as
/// they are reached, what it became.
///
/// # Errors
///
/// Those of [`compile`].
pub fn report(
    text: &str,
    options: &JsonOptions,
    limits: &Limits,
    retrieve: Option<&dyn Retrieve>,
) -> Result<Vec<KeywordReport>, Error> {
    let (formulas, drafts, departures) = read_and_check(text, options, limits, retrieve)?;
    report::report(formulas, drafts, &departures)
}

/// Reads a schema and the documents that it refers to; returns what can be enforced, the drafts of the
/// resources, and the departures from the standard.
fn read_and_check(
    text: &str,
    options: &JsonOptions,
    limits: &Limits,
    retrieve: Option<&dyn Retrieve>,
) -> Result<(formula::Formulas, Vec<Draft>, Vec<Departure>), Error> {
    let (mut sources, root) = sources::Sources::new(text, options, retrieve, limits)?;
    let (schemas, mut departures) = read::read(&mut sources, root, options, limits)?;
    let drafts = sources.drafts();
    let program = program::Program {
        document: sources.into_document(),
        schemas,
        options: options.clone(),
        limits: limits.clone(),
    };
    let formulas = checked(program, &mut departures)?;
    Ok((formulas, drafts, departures))
}

/// Compiles several JSON Schemas into one grammar, which matches nothing yet and needs a value of each,
/// and returns it with the expression of the values of each. Each is a document of its own: references
/// inside one stay there.
///
/// # Errors
///
/// Those of [`compile`], for each schema.
pub(crate) fn compile_parts(
    texts: &[&str],
    options: &JsonOptions,
    limits: &Limits,
    retrieve: Option<&dyn Retrieve>,
) -> Result<(Grammar, Vec<ExprId>), Error> {
    let parts = Parts { texts, retrieve };
    let refs: Vec<_> = (0..texts.len()).map(|i| format!(r#"{{"$ref":"{PART}{i}"}}"#)).collect();
    let whole = format!(r#"{{"$schema":"{DRAFT}","anyOf":[{}]}}"#, refs.join(","));
    let (formulas, _, departures) = read_and_check(&whole, options, limits, Some(&parts))?;
    let nodes: Vec<_> = formulas.program.schemas.nodes[0]
        .keywords
        .iter()
        .filter_map(|keyword| match keyword {
            schema::Keyword::AnyOf(nodes) => Some(nodes.iter().copied()),
            _ => None,
        })
        .flatten()
        .collect();
    let mut grammar = Grammar::new(formulas.program.limits.expressions);
    let mut engine = engine::Engine::new(formulas);
    engine.translate_patterns(&mut grammar.arena)?;
    let mut starts = Vec::with_capacity(nodes.len());
    for node in nodes {
        let goal = engine.formulas.schema(node, program::Scopes::empty());
        starts.push(engine.call(&mut grammar.scope(), goal, engine::Level::default()));
        engine.questions.push(proof::Question { goal, demand: proof::Demand::Any });
    }
    grammar.needed.clone_from(&starts);
    grammar.expander = Some(Box::new(engine));
    grammar.departures = departures;
    grammar.arena.check()?;
    Ok((grammar, starts))
}

/// The draft of the schema that names the parts of [`compile_parts`].
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// What the addresses of the parts of [`compile_parts`] begin with.
const PART: &str = "schemac:part/";

struct Parts<'a> {
    texts: &'a [&'a str],
    retrieve: Option<&'a dyn Retrieve>,
}

impl Retrieve for Parts<'_> {
    fn retrieve(&self, uri: &str) -> Option<String> {
        match uri.strip_prefix(PART) {
            Some(number) => Some((*self.texts.get(number.parse::<usize>().ok()?)?).to_owned()),
            None => self.retrieve?.retrieve(uri),
        }
    }
}

/// Returns the grammar of one schema of a program in which everything can be enforced.
fn grammar_of(program: program::Program, root: schema::NodeId) -> Result<Grammar, Error> {
    grammar(formula::Formulas::new(Arc::new(program)), root)
}

fn grammar(formulas: formula::Formulas, root: schema::NodeId) -> Result<Grammar, Error> {
    let mut grammar = Grammar::new(formulas.program.limits.expressions);
    let mut engine = engine::Engine::new(formulas);
    let goal = engine.formulas.schema(root, program::Scopes::empty());
    engine.translate_patterns(&mut grammar.arena)?;
    grammar.start = engine.call(&mut grammar.scope(), goal, engine::Level::default());
    grammar.expander = Some(Box::new(engine));
    grammar.arena.check()?;
    Ok(grammar)
}

/// Returns the formulas of a program in which everything can be enforced, or is listed among the
/// departures.
fn checked(
    mut program: program::Program,
    departures: &mut Vec<Departure>,
) -> Result<formula::Formulas, Error> {
    let mut formulas = formula::Formulas::new(Arc::new(program.clone()));
    formulas.check_cycles()?;
    let failing = formulas.check_unique()?;
    if failing.is_empty() {
        return Ok(formulas);
    }
    for id in failing {
        let schema = &mut program.schemas.nodes[id.index()];
        let keyword = program.document.member_named(schema.value, "uniqueItems");
        let pointer = program.document.pointer(keyword.unwrap_or(schema.value));
        if !program.options.lenient {
            return Err(elements::not_unique().at_pointer(pointer));
        }
        for keyword in &mut schema.keywords {
            if matches!(keyword, schema::Keyword::Unique) {
                *keyword = schema::Keyword::Unenforced;
            }
        }
        let (keyword, reason) = ("uniqueItems".to_owned(), elements::NOT_UNIQUE.to_owned());
        departures.push(Departure { pointer, keyword, reason });
    }
    Ok(formula::Formulas::new(Arc::new(program)))
}

/// Compiles the schema that `schemars` derives for the Rust type `T`.
///
/// # Errors
///
/// Those of [`compile`].
pub fn from_type<T: schemars::JsonSchema>(
    options: &JsonOptions,
    limits: &Limits,
) -> Result<Grammar, Error> {
    let schema = schemars::SchemaGenerator::default().into_root_schema_for::<T>();
    compile(&schema.as_value().to_string(), options, limits)
}
