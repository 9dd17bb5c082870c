//! Layouts: fixed and free text, JSON Schemas and choices among them in, one [`Grammar`] out. Reasoning
//! before an answer, calls of tools between tags, and the healing of a prompt's last token are layouts.
//!
//! Everything is one language over bytes, so that tokens may reach across the borders of the parts and
//! a budget of tokens holds for the whole.

use crate::error::Error;
use crate::frontend::json_schema;
use crate::frontend::json_schema::{JsonOptions, Retrieve};
use crate::ids::ExprId;
use crate::ir::chars::{Encoding, any_text};
use crate::ir::{Arena, Grammar, UNBOUNDED};
use crate::limits::Limits;

/// A part of an output. Parts are walked recursively, so they are nested by programs, not by input.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// Exactly this text.
    Text(String),
    /// A value of this JSON Schema, given as text.
    Schema(String),
    /// Any text in which none of these occurs. The empty text among them leaves nothing but the empty
    /// text.
    Free {
        /// What must not occur.
        without: Vec<String>,
    },
    /// Any text up to the first occurrence of this one, which belongs to it.
    Until(String),
    /// One part after another.
    Sequence(Vec<Self>),
    /// One of these parts. None of none.
    Choice(Vec<Self>),
    /// The part, repeated.
    Repeat {
        /// What is repeated.
        part: Box<Self>,
        /// The least number of times.
        min: u32,
        /// The greatest, or `None` for any.
        max: Option<u32>,
    },
}

impl Layout {
    /// Returns [`Layout::Text`].
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Returns [`Layout::Until`].
    pub fn until(text: impl Into<String>) -> Self {
        Self::Until(text.into())
    }

    /// Returns the part, any number of times.
    #[must_use]
    pub fn repeated(self) -> Self {
        Self::Repeat { part: Box::new(self), min: 0, max: None }
    }

    /// Adds the schemas of this part, in order.
    fn schemas<'a>(&'a self, found: &mut Vec<&'a str>) {
        match self {
            Self::Schema(text) => found.push(text),
            Self::Sequence(parts) | Self::Choice(parts) => {
                parts.iter().for_each(|part| part.schemas(found));
            }
            Self::Repeat { part, .. } => part.schemas(found),
            Self::Text(_) | Self::Free { .. } | Self::Until(_) => {}
        }
    }

    /// Returns the language of this part. `values` are those of the schemas that are still to come.
    fn lower(&self, arena: &mut Arena, values: &mut std::slice::Iter<'_, ExprId>) -> ExprId {
        match self {
            Self::Text(text) => arena.literal(text.as_bytes()),
            Self::Schema(_) => values.next().copied().unwrap_or(Arena::EMPTY),
            Self::Free { without } => {
                let mut members = vec![any_text(arena, Encoding::Utf8)];
                for text in without {
                    let there = containing(arena, text, Arena::ALL);
                    members.push(arena.not(there));
                }
                let without_empty = without.iter().any(String::is_empty);
                if without_empty { Arena::EPSILON } else { arena.and(&members) }
            }
            Self::Until(text) => {
                let all = any_text(arena, Encoding::Utf8);
                let ends = containing(arena, text, Arena::EPSILON);
                let some = arena.bytes(crate::byteset::ByteSet::ALL);
                let more = arena.concat2(some, Arena::ALL);
                let goes_on = containing(arena, text, more);
                let stops = arena.not(goes_on);
                arena.and(&[all, ends, stops])
            }
            Self::Sequence(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| part.lower(arena, values)).collect();
                arena.concat(&parts)
            }
            Self::Choice(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| part.lower(arena, values)).collect();
                arena.alt(&parts)
            }
            Self::Repeat { part, min, max } => {
                let part = part.lower(arena, values);
                arena.repeat(part, *min, max.unwrap_or(UNBOUNDED))
            }
        }
    }
}

/// Returns the texts in which `text` occurs and is followed by one of `after`.
fn containing(arena: &mut Arena, text: &str, after: ExprId) -> ExprId {
    let found = arena.literal_then(text.as_bytes(), after);
    arena.concat2(Arena::ALL, found)
}

/// Compiles a layout; `options` and `retrieve` are those of its schemas.
///
/// A schema that nothing satisfies is an error when the automaton is made, also where it is but an
/// alternative: a tool that can never be called is a mistake.
///
/// # Errors
///
/// What is wrong with a schema, or not supported; or an exceeded limit.
pub fn compile(
    layout: &Layout,
    options: &JsonOptions,
    limits: &Limits,
    retrieve: Option<&dyn Retrieve>,
) -> Result<Grammar, Error> {
    let mut schemas = Vec::new();
    layout.schemas(&mut schemas);
    let (mut grammar, values) = if schemas.is_empty() {
        (Grammar::new(limits.expressions), Vec::new())
    } else {
        json_schema::compile_parts(&schemas, options, limits, retrieve)?
    };
    grammar.start = layout.lower(&mut grammar.arena, &mut values.iter());
    grammar.arena.check()?;
    Ok(grammar)
}
