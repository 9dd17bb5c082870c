//! The exit codes, and the failures that lead to them.

use std::convert::Infallible;
use std::path::Path;
use std::process::ExitCode;

use schemac::{Error, ErrorKind, StepError};
use serde_json::{Value, json};

use crate::diagnostic::{self, Diagnostic, SourceText};

/// The table that `--help` prints; each code is a [`Failure`] or a verdict.
pub(crate) const HELP: &str = "\
Exit codes:
  0   done; for `check`, the text matches; for `suite`, all cases are right
  1   the text does not match, something was not proved, a case is not right, a tokenizer
      disagrees with itself
  2   the command line is wrong
  3   the grammar was refused
  4   a file, vocabulary, model or artifact cannot be used
  5   generating failed part of the way
  70  a bug of schemac";

/// The verdict that something does not match.
pub(crate) const MISMATCH: u8 = 1;

/// A bug was caught.
pub(crate) const BUG: u8 = 70;

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Options that do not go together.
    Usage(String),
    /// An error of the library; in a grammar, together with the text it stands in.
    Library(Error, Option<SourceText>),
    /// A step of generating failed.
    Step(StepError),
    /// Standard output is closed: whoever reads it has seen enough.
    Closed,
}

impl Failure {
    /// Returns the failure to read or write a file.
    pub(crate) fn io(path: &Path, error: &std::io::Error) -> Self {
        Self::Library(Error::new(ErrorKind::Io, format!("{}: {error}", path.display())), None)
    }

    /// Returns the exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Library(error, _) => match error.kind() {
                ErrorKind::InvalidOption => 2,
                ErrorKind::Vocabulary | ErrorKind::Model | ErrorKind::Artifact | ErrorKind::Io => 4,
                _ => 3,
            },
            Self::Step(_) => 5,
            Self::Closed => 0,
        }
    }

    /// Returns the failure as text that ends in a line break, with colour codes if `color`.
    pub(crate) fn to_text(&self, color: bool) -> String {
        match self {
            Self::Library(error, Some(source)) => {
                diagnostic::of_error(error, source).render(source, color)
            }
            Self::Closed => String::new(),
            _ => {
                let (code, message) = self.name_and_message();
                let places = Vec::new();
                let nowhere = SourceText { name: String::new(), text: String::new() };
                Diagnostic { code, message, places, notes: Vec::new() }.render(&nowhere, color)
            }
        }
    }

    /// Returns the failure as a JSON object with the member `error`.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Library(error, _) => json!({ "error": diagnostic::to_json(error) }),
            _ => {
                let (kind, message) = self.name_and_message();
                json!({ "error": { "kind": kind, "pointer": null, "span": null, "message": message } })
            }
        }
    }

    fn name_and_message(&self) -> (&str, String) {
        match self {
            Self::Usage(message) => ("usage", message.clone()),
            Self::Library(error, _) => (error.kind().name(), error.to_string()),
            Self::Step(error) => (error.name(), error.to_string()),
            Self::Closed => ("closed", String::new()),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error, None)
    }
}

impl From<Infallible> for Failure {
    fn from(error: Infallible) -> Self {
        match error {}
    }
}

impl From<StepError> for Failure {
    fn from(error: StepError) -> Self {
        match error {
            StepError::InvalidPolicy(error) | StepError::Grammar(error) => error.into(),
            _ => Self::Step(error),
        }
    }
}

impl From<&Failure> for ExitCode {
    fn from(failure: &Failure) -> Self {
        Self::from(failure.code())
    }
}
