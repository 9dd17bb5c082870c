//! `schemac explain`: a grammar, its automaton, and what is legal after a text.

use std::process::ExitCode;
use std::sync::Arc;

use schemac::frontend::json_schema::{KeywordReport, Status};
use schemac::token::Matcher;
use schemac::{Compiler, StepError};
use serde_json::{Value, json};

use crate::args::ExplainArgs;
use crate::describe::{self, Completion};
use crate::exit::{Failure, MISMATCH};
use crate::grammar::{self, Compiled};
use crate::legal::Legal;
use crate::output::Output;
use crate::source::Language;

/// Runs the command.
pub(crate) fn run(args: &ExplainArgs, output: Output) -> Result<ExitCode, Failure> {
    let compiled = grammar::compile(&args.grammar)?;
    let mut matcher = Matcher::new(Arc::clone(&compiled.automaton));
    let stopped_at = match matcher.accept_bytes(args.at.as_bytes()) {
        Ok(()) => None,
        Err(StepError::BytesRejected { legal_prefix, .. }) => {
            matcher.accept_bytes(&args.at.as_bytes()[..legal_prefix])?;
            Some(legal_prefix)
        }
        Err(error) => return Err(error.into()),
    };
    let explanation = Explanation {
        at: &args.at,
        stopped_at,
        legal: Legal::at(&mut matcher, args.tokens)?,
        completion: Completion::of(&matcher),
        choices: choices(args, &compiled),
        keywords: keywords(args, &compiled)?,
        shown: args.keywords,
        compiled: &compiled,
    };
    output.result(|| explanation.to_text(), || explanation.to_json())?;
    Ok(if stopped_at.is_none() { ExitCode::SUCCESS } else { ExitCode::from(MISMATCH) })
}

/// Returns the choices of JSON that are in force: those of the arguments for a schema, none
/// otherwise.
fn choices(args: &ExplainArgs, compiled: &Compiled) -> Value {
    match compiled.language {
        Some(Language::Schema) => json!(args.grammar.json.options()),
        _ => Value::Null,
    }
}

/// Returns what became of the keywords of a schema.
fn keywords(args: &ExplainArgs, compiled: &Compiled) -> Result<Vec<KeywordReport>, Failure> {
    match (compiled.language, &compiled.source) {
        (Some(Language::Schema), Some(source)) => {
            let vocabulary = Arc::clone(compiled.automaton.vocabulary());
            let compiler = Compiler::new(vocabulary).limits(args.grammar.limits.limits()?);
            Ok(args.grammar.json.apply(compiler)?.report_schema(&source.text)?)
        }
        _ => Ok(Vec::new()),
    }
}

struct Explanation<'a> {
    compiled: &'a Compiled,
    choices: Value,
    keywords: Vec<KeywordReport>,
    /// How many keywords to show.
    shown: usize,
    at: &'a str,
    /// How many bytes of `at` are legal, if not all.
    stopped_at: Option<usize>,
    legal: Legal,
    completion: Completion,
}

impl Explanation<'_> {
    fn to_text(&self) -> String {
        let automaton = &self.compiled.automaton;
        let vocabulary = automaton.vocabulary();
        let stats = automaton.stats();
        let mut lines = vec![
            format!(
                "grammar: {}, {} rules, {} expressions",
                self.compiled.kind(),
                self.compiled.rules(),
                stats.expressions
            ),
            format!(
                "vocabulary: {} ids, fingerprint {}",
                vocabulary.len(),
                vocabulary.fingerprint()
            ),
            format!(
                "compiled in {:.1} ms; so far {} states, {} local masks, {} unions, {} bytes of masks",
                self.compiled.time.as_secs_f64() * 1e3,
                stats.states,
                stats.local_masks,
                stats.unions,
                stats.mask_bytes
            ),
        ];
        if let Value::Object(choices) = &self.choices {
            let words: Vec<_> =
                choices.iter().map(|(name, value)| format!("{name} {value}")).collect();
            lines.push(format!("choices: {}", words.join(", ").replace('"', "")));
        }
        for entry in automaton.departures() {
            lines.push(format!("departs: `#{}`: {}", entry.pointer, entry.reason));
        }
        lines.extend(self.keyword_lines());
        let at = &self.at.as_bytes()[..self.stopped_at.unwrap_or(self.at.len())];
        lines.push(match (at, self.stopped_at) {
            ([], None) => "at the start:".to_owned(),
            (at, None) => format!("after {}:", describe::text(at)),
            (at, Some(_)) => format!("the text stops matching after {}:", describe::text(at)),
        });
        lines.extend(self.legal.to_lines().into_iter().map(|line| format!("  {line}")));
        lines.push(format!("  shortest completion: {}", self.completion.to_text()));
        lines.join("\n") + "\n"
    }

    /// Returns a line for each keyword, in columns.
    fn keyword_lines(&self) -> Vec<String> {
        let shown = &self.keywords[..self.keywords.len().min(self.shown)];
        let width = shown.iter().map(|k| k.pointer.chars().count()).max().unwrap_or(0).min(60);
        let line = |keyword: &KeywordReport| {
            let size = keyword.expressions.map_or(String::new(), |n| format!(", {n} expressions"));
            let verb = match keyword.status {
                Status::Enforced => "",
                Status::Departs => "departs: ",
                _ => "- ",
            };
            format!("  #{:width$}  {verb}{}{size}", keyword.pointer, keyword.became)
        };
        let mut lines: Vec<_> = shown.iter().map(line).collect();
        if !lines.is_empty() {
            lines.insert(0, "keywords:".to_owned());
        }
        if shown.len() < self.keywords.len() {
            lines.push(format!("  and {} more", self.keywords.len() - shown.len()));
        }
        lines
    }

    fn to_json(&self) -> Value {
        let automaton = &self.compiled.automaton;
        let vocabulary = automaton.vocabulary();
        json!({
            "kind": self.compiled.kind(),
            "rules": self.compiled.rules(),
            "vocabulary": {
                "ids": vocabulary.len(),
                "fingerprint": vocabulary.fingerprint().to_string(),
            },
            "compile_us": self.compiled.time.as_secs_f64() * 1e6,
            "automaton": automaton.stats(),
            "choices": self.choices,
            "keywords": self.keywords,
            "departures": automaton.departures(),
            "at": self.at,
            "stopped_at": self.stopped_at,
            "legal": self.legal.to_json(),
            "shortest_completion": self.completion.to_json(),
        })
    }
}
