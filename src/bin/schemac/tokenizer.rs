//! `schemac tokenizer`: what a tokenizer file holds, and whether the vocabulary made from it agrees
//! with the tokenizer's own decoder.

use std::process::ExitCode;

use serde_json::json;

use crate::args::TokenizerArgs;
use crate::exit::{Failure, MISMATCH};
use crate::grammar;
use crate::output::Output;
use crate::progress::Progress;

/// Runs the command.
pub(crate) fn run(args: &TokenizerArgs, output: Output) -> Result<ExitCode, Failure> {
    let loaded = grammar::load_vocabulary(args.file.as_deref(), &args.end_token)?;
    let progress = Progress::start("checking", None);
    let report = loaded.self_check()?;
    drop(progress);
    output.result(|| report.to_string(), || json!(report))?;
    Ok(if report.is_consistent() { ExitCode::SUCCESS } else { ExitCode::from(MISMATCH) })
}
