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
mod read;
mod scalar;
mod schema;
mod sources;
mod space;
mod split;

use std::sync::Arc;

pub use codec::{decode_expander, is_expander};
pub use options::{Draft, Escapes, Formats, JsonOptions, PropertyOrder, Whitespace};
pub use sources::Retrieve;

use crate::error::Error;
use crate::ir::{Grammar, NotEnforced};
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
/// assert!(grammar.not_enforced.is_empty());
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
    let (mut sources, root) =
        sources::Sources::new(text, options.draft, options.lenient, retrieve, limits)?;
    let (schemas, mut not_enforced) = read::read(&mut sources, root, options, limits)?;
    let program = program::Program {
        document: sources.into_document(),
        schemas,
        options: options.clone(),
        limits: limits.clone(),
    };
    let formulas = checked(program, &mut not_enforced)?;
    let mut grammar = grammar(formulas)?;
    grammar.not_enforced = not_enforced;
    Ok(grammar)
}

/// Returns the grammar of a program in which everything can be enforced.
fn grammar_of(program: program::Program) -> Result<Grammar, Error> {
    grammar(formula::Formulas::new(Arc::new(program)))
}

fn grammar(formulas: formula::Formulas) -> Result<Grammar, Error> {
    let mut grammar = Grammar::new(formulas.program.limits.expressions);
    let mut engine = engine::Engine::new(formulas);
    let goal = engine.formulas.root_goal();
    engine.translate_patterns(&mut grammar.arena)?;
    grammar.start = engine.call(&mut grammar.scope(), goal, engine::Level::default());
    grammar.expander = Some(Box::new(engine));
    grammar.arena.check()?;
    Ok(grammar)
}

/// Returns the formulas of a program in which everything can be enforced, or is listed as not enforced.
fn checked(
    mut program: program::Program,
    not_enforced: &mut Vec<NotEnforced>,
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
        not_enforced.push(NotEnforced { pointer, keyword, reason });
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
