//! `schemac suite`: test suites, run case by case on several threads, reported in their order.

mod cases;
mod distribution;
mod report;
mod run;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use schemac::{Compiler, Vocabulary};

use crate::args::SuiteArgs;
use crate::exit::{BUG, Failure, MISMATCH};
use crate::output::Output;
use crate::progress::Progress;
use cases::{Case, Cases, Malformed};
use report::{CaseError, CaseReport, MALFORMED, Summary};
use run::Runner;

pub(crate) use run::LAST_PANIC;

/// Runs the command.
pub(crate) fn run(args: &SuiteArgs, output: Output) -> Result<ExitCode, Failure> {
    let cases = Cases::open(&args.paths, args.spacing)
        .map_err(|(path, error)| Failure::io(&path, &error))?;
    let loaded = args.vocabulary.load()?;
    warm_up(loaded.vocabulary());
    let json = args.json.options();
    let compiler = Compiler::new(Arc::clone(loaded.vocabulary())).limits(args.limits.limits()?);
    let compiler = args.json.apply(compiler)?;
    let patience = Duration::from_secs(args.case_seconds);
    let runner = Runner { compiler, encoder: Arc::clone(loaded.encoder()), json, patience };
    let chosen = |case: &Result<Case, Malformed>| match (case, &args.filter) {
        (Ok(case), Some(filter)) => case.name.contains(filter),
        _ => true,
    };
    let cases = cases.filter(chosen).take(args.limit.unwrap_or(usize::MAX)).enumerate();
    let summary = run_all(&runner, cases, args, output)?;
    output.result(|| summary.to_text(), || summary.to_json())?;
    Ok(match (summary.has_panics(), summary.is_right()) {
        (true, _) => ExitCode::from(BUG),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::from(MISMATCH),
    })
}

/// Builds the tables of the vocabulary that all grammars share, so that they are in no case's times.
fn warm_up(vocabulary: &Vocabulary) {
    let _progress = Progress::start("building the tables of the vocabulary", None);
    vocabulary.prepare();
}

/// Runs all cases and prints a report of each, in their order.
fn run_all(
    runner: &Runner,
    cases: impl Iterator<Item = (usize, Result<Case, Malformed>)> + Send,
    args: &SuiteArgs,
    output: Output,
) -> Result<Summary, Failure> {
    let cases = Mutex::new(cases);
    let progress = Progress::start("cases", None);
    let (sender, reports) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..args.threads {
            let (cases, sender) = (&cases, sender.clone());
            scope.spawn(move || {
                loop {
                    let next = cases.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((index, case)) = next else { break };
                    let report = match case {
                        Ok(case) => runner.run(&case),
                        Err(malformed) => not_a_case(malformed),
                    };
                    // Nobody listens any more once printing has failed.
                    if sender.send((index, report)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut summary = Summary::default();
        let mut early = BTreeMap::new();
        let mut next = 0;
        for (index, report) in reports {
            progress.step();
            early.insert(index, report);
            while let Some(report) = early.remove(&next) {
                next += 1;
                summary.add(&report);
                output.result(|| report.to_text(), || report.to_json(!args.no_mask_times))?;
            }
        }
        Ok(summary)
    })
}

fn not_a_case(malformed: Malformed) -> CaseReport {
    let error = CaseError { kind: MALFORMED.to_owned(), pointer: None, message: malformed.reason };
    CaseReport { name: malformed.place, error: Some(error), ..CaseReport::default() }
}
