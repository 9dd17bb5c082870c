//! The errors of compiling: what is wrong, and where it stands in the input.

use std::fmt;

use crate::limits::BudgetExceeded;

/// A grammar, vocabulary or artifact was refused.
///
/// Match on [`Error::kind`]; the text is for people. [`Error::location`] says where in the input.
#[derive(Clone, Debug)]
pub struct Error(Box<Repr>);

#[derive(Clone, Debug)]
struct Repr {
    kind: ErrorKind,
    message: String,
    location: Option<Location>,
    related: Vec<Location>,
}

/// Why an input was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text is not in its language (JSON, regex, GBNF).
    Syntax,
    /// A JSON Schema keyword has a value that the standard does not allow.
    InvalidKeyword {
        /// The keyword.
        keyword: Box<str>,
    },
    /// A JSON Schema keyword constrains, and is not enforced by this version.
    UnsupportedKeyword {
        /// The keyword.
        keyword: Box<str>,
    },
    /// A feature of a regex or grammar that is not translated.
    UnsupportedFeature {
        /// The feature, as its language calls it.
        feature: Box<str>,
    },
    /// A reference (`$ref`, rule name) has no target.
    UnresolvedReference,
    /// A rule calls itself before consuming anything.
    LeftRecursion,
    /// Nothing satisfies the grammar, so nothing could ever be generated.
    Unsatisfiable,
    /// A bound of [`crate::Limits`] was reached.
    BudgetExceeded(BudgetExceeded),
    /// A tokenizer or model file cannot be read as a vocabulary.
    Vocabulary,
    /// A model or its chat template cannot be loaded or run.
    Model,
    /// The vocabulary cannot spell what the grammar needs.
    Unspellable,
    /// A `.schemac` artifact is foreign, truncated, corrupted or of another version.
    Artifact,
    /// An option contradicts another, or is out of its range.
    InvalidOption,
    /// A file could not be read or written.
    Io,
}

impl ErrorKind {
    /// Returns the stable snake-case name of this kind, as reports print it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::InvalidKeyword { .. } => "invalid_keyword",
            Self::UnsupportedKeyword { .. } => "unsupported_keyword",
            Self::UnsupportedFeature { .. } => "unsupported_feature",
            Self::UnresolvedReference => "unresolved_reference",
            Self::LeftRecursion => "left_recursion",
            Self::Unsatisfiable => "unsatisfiable",
            Self::BudgetExceeded(_) => "budget_exceeded",
            Self::Vocabulary => "vocabulary",
            Self::Model => "model",
            Self::Unspellable => "unspellable",
            Self::Artifact => "artifact",
            Self::InvalidOption => "invalid_option",
            Self::Io => "io",
        }
    }
}

/// Where in an input something stands.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Location {
    /// A JSON Pointer (RFC 6901) into a schema; `""` is the whole document.
    Pointer(String),
    /// A place in a text.
    Text(Span),
    /// A place in a text (a pattern) that itself stands at a JSON Pointer in a schema.
    PointerText(String, Span),
}

/// A range of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Span {
    /// Byte offset of the first byte.
    pub start: usize,
    /// Byte offset after the last byte.
    pub end: usize,
    /// Line of the start, from 1.
    pub line: usize,
    /// Column of the start in characters, from 1.
    pub column: usize,
}

impl Span {
    /// Returns the span of bytes `start..end` of `text`, with its line and column counted.
    ///
    /// Offsets past the end, or inside a character, are moved to the nearest boundary before.
    #[must_use]
    pub fn new(text: &str, start: usize, end: usize) -> Self {
        let mut start = start.min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let before = &text[..start];
        let line = before.bytes().filter(|&b| b == b'\n').count() + 1;
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let column = before[line_start..].chars().count() + 1;
        Self { start, end: end.clamp(start, text.len()), line, column }
    }
}

impl Error {
    /// Returns an error of `kind`; `message` is lower case, without a full stop.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Repr { kind, message: message.into(), location: None, related: Vec::new() }))
    }

    /// Returns the error for an exceeded limit.
    #[must_use]
    pub fn budget(budget: BudgetExceeded) -> Self {
        Self::new(ErrorKind::BudgetExceeded(budget), budget.to_string())
    }

    /// Returns the same error, standing at `location`, unless it already stands somewhere.
    #[must_use]
    pub fn at(mut self, location: Location) -> Self {
        self.0.location.get_or_insert(location);
        self
    }

    /// Returns the same error, standing at the JSON Pointer `pointer`. An error that stands in a
    /// text keeps that place inside the pointer's.
    #[must_use]
    pub fn at_pointer(mut self, pointer: impl Into<String>) -> Self {
        self.0.location = Some(match self.0.location {
            Some(Location::Text(span)) => Location::PointerText(pointer.into(), span),
            Some(other) => other,
            None => Location::Pointer(pointer.into()),
        });
        self
    }

    /// Returns the same error, with one more place that takes part in it.
    #[must_use]
    pub fn related_to(mut self, location: Location) -> Self {
        self.0.related.push(location);
        self
    }

    /// Returns why the input was refused.
    #[must_use]
    pub const fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Returns the text without the place.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns where in the input the error stands, if that is one place.
    #[must_use]
    pub const fn location(&self) -> Option<&Location> {
        self.0.location.as_ref()
    }

    /// Returns the other places that take part, such as the second of two keywords in conflict.
    #[must_use]
    pub fn related(&self) -> &[Location] {
        &self.0.related
    }

    /// Returns the JSON Pointer where the error stands, if it stands in a schema.
    #[must_use]
    pub fn pointer(&self) -> Option<&str> {
        match self.location()? {
            Location::Pointer(pointer) | Location::PointerText(pointer, _) => Some(pointer),
            Location::Text(_) => None,
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pointer(pointer) => write!(f, "`#{pointer}`"),
            Self::Text(span) => write!(f, "line {}, column {}", span.line, span.column),
            Self::PointerText(pointer, span) => {
                write!(f, "`#{pointer}`, line {}, column {} of its text", span.line, span.column)
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(location) = &self.0.location {
            write!(f, " (at {location})")?;
        }
        for (i, location) in self.0.related.iter().enumerate() {
            write!(f, "{} {location}", if i == 0 { "; see also" } else { "," })?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::new(ErrorKind::Io, error.to_string())
    }
}
