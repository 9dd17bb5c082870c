//! `schemac check`: whether a text matches a grammar, where it stops, and what would be legal there;
//! and whether every part of the grammar can be in some text.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use schemac::StepError;
use schemac::token::{Matcher, TokenAutomaton};
use serde_json::{Value, json};

use crate::args::CheckArgs;
use crate::describe::Completion;
use crate::diagnostic::{Diagnostic, SourceText};
use crate::exit::{Failure, MISMATCH};
use crate::grammar;
use crate::legal::Legal;
use crate::output::Output;
use crate::proved::Proved;
use crate::source;

/// Runs the command.
pub(crate) fn run(args: &CheckArgs, output: Output) -> Result<ExitCode, Failure> {
    let compiled = grammar::compile(&args.grammar)?;
    let mut all = true;
    if args.prove {
        let proof = Proved::of(&compiled)?;
        all &= proof.is_complete();
        output.result(|| proof.to_text(output.colors_results()), || proof.to_json())?;
    }
    for text in texts(args)? {
        let verdict = Verdict::of(&compiled.automaton, &text.text, args.tokens)?;
        all &= verdict.matches();
        output.result(
            || verdict.to_text(&text, output.colors_results()),
            || verdict.to_json(&text.name),
        )?;
    }
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::from(MISMATCH) })
}

/// Returns the texts that the arguments name.
fn texts(args: &CheckArgs) -> Result<Vec<SourceText>, Failure> {
    if let Some(text) = &args.text {
        return Ok(vec![SourceText { name: "text".to_owned(), text: text.clone() }]);
    }
    if args.prove && args.text_file.is_none() && !args.lines {
        return Ok(Vec::new());
    }
    let path = args.text_file.as_deref().unwrap_or(Path::new("-"));
    let mut text = source::read_text(path, usize::MAX)?;
    let name = source::name(path);
    if !args.lines {
        source::trim_line_break(&mut text);
        return Ok(vec![SourceText { name, text }]);
    }
    let lines = text.lines().enumerate();
    Ok(lines
        .map(|(index, line)| SourceText {
            name: format!("{name}, line {}", index + 1),
            text: line.to_owned(),
        })
        .collect())
}

/// Whether a text matches, and where it stops if it does not.
#[derive(Debug)]
enum Verdict {
    /// The text is a complete output.
    Matches,
    /// The text could go on to a complete output.
    Incomplete { at: usize, completion: Completion, legal: Legal },
    /// A byte is not legal.
    Illegal { at: usize, legal: Legal },
}

impl Verdict {
    fn of(automaton: &Arc<TokenAutomaton>, text: &str, tokens: usize) -> Result<Self, Failure> {
        let mut matcher = Matcher::new(Arc::clone(automaton));
        match matcher.accept_bytes(text.as_bytes()) {
            Ok(()) if matcher.is_accepting()? => Ok(Self::Matches),
            Ok(()) => Ok(Self::Incomplete {
                at: text.len(),
                completion: Completion::of(&matcher),
                legal: Legal::at(&mut matcher, tokens)?,
            }),
            Err(StepError::BytesRejected { legal_prefix, .. }) => {
                matcher.accept_bytes(&text.as_bytes()[..legal_prefix])?;
                Ok(Self::Illegal { at: legal_prefix, legal: Legal::at(&mut matcher, tokens)? })
            }
            Err(error) => Err(error.into()),
        }
    }

    const fn matches(&self) -> bool {
        matches!(self, Self::Matches)
    }

    fn to_text(&self, source: &SourceText, color: bool) -> String {
        let (code, at, end, message, legal) = match self {
            Self::Matches => {
                return format!("{}: matches ({} bytes)\n", source.name, source.text.len());
            }
            Self::Incomplete { at, completion, legal } => {
                let message =
                    format!("the text is incomplete; what completes it: {}", completion.to_text());
                ("incomplete", *at, *at, message, legal)
            }
            Self::Illegal { at, legal } => {
                let len = source.text[*at..].chars().next().map_or(0, char::len_utf8);
                let message = format!("the text does not match after {at} bytes");
                ("illegal", *at, at + len, message, legal)
            }
        };
        let diagnostic = Diagnostic {
            code,
            message,
            places: vec![(at..end, "the grammar stops here".to_owned())],
            notes: legal.to_lines(),
        };
        diagnostic.render(source, color)
    }

    fn to_json(&self, name: &str) -> Value {
        let (verdict, at, completion, legal) = match self {
            Self::Matches => ("matches", None, None, None),
            Self::Incomplete { at, completion, legal } => {
                ("incomplete", Some(at), Some(completion.to_json()), Some(legal))
            }
            Self::Illegal { at, legal } => ("illegal", Some(at), None, Some(legal)),
        };
        json!({
            "name": name,
            "matches": self.matches(),
            "verdict": verdict,
            "stopped_at": at,
            "shortest_completion": completion,
            "legal": legal.map(Legal::to_json),
        })
    }
}
