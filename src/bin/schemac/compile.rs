//! `schemac compile`: a grammar and a vocabulary in, a `.schemac` artifact out.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use schemac::artifact;
use schemac::token::{PrecomputeOptions, PrecomputeReport};
use serde_json::{Value, json};

use crate::args::{CompileArgs, GrammarArgs};
use crate::exit::Failure;
use crate::grammar::{self, Compiled};
use crate::output::Output;
use crate::progress::Progress;
use crate::proved::Proved;

/// Runs the command.
pub(crate) fn run(args: &CompileArgs, output: Output) -> Result<ExitCode, Failure> {
    let path = args.output.clone().map_or_else(|| default_output(&args.grammar), Ok)?;
    let compiled = grammar::compile(&args.grammar)?;
    let start = Instant::now();
    let explored = match args.lazy {
        true => None,
        false => {
            let progress = Progress::start("exploring masks", None);
            let mut step = |_, masks| progress.set(masks);
            let options = PrecomputeOptions::default();
            Some(compiled.automaton.precompute(&options, &mut step)?)
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    let proved = if args.lazy { None } else { Some(Proved::of(&compiled)?) };
    let bytes = artifact::save(&compiled.automaton, &path)?;
    let report = Report { path: &path, bytes, seconds, explored, proved, compiled: &compiled };
    output.result(|| report.to_text(output.colors_results()), || report.to_json())?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the name of the grammar's file with the extension `.schemac`, in the current folder.
fn default_output(args: &GrammarArgs) -> Result<PathBuf, Failure> {
    let file = [&args.file, &args.schema, &args.gbnf].into_iter().find_map(Option::as_deref);
    let stem = file.filter(|path| *path != Path::new("-")).and_then(Path::file_stem);
    let stem = stem.ok_or_else(|| Failure::Usage("name the artifact with --output".to_owned()))?;
    Ok(Path::new(stem).with_extension("schemac"))
}

/// What was written.
struct Report<'a> {
    path: &'a Path,
    /// The size of the file.
    bytes: usize,
    /// How long exploring took.
    seconds: f64,
    explored: Option<PrecomputeReport>,
    proved: Option<Proved<'a>>,
    compiled: &'a Compiled,
}

impl Report<'_> {
    fn to_text(&self, color: bool) -> String {
        let automaton = &self.compiled.automaton;
        let explored = match &self.explored {
            None => "lazy: masks are computed in use".to_owned(),
            Some(explored) => {
                let whole = match &explored.stopped_by {
                    None => "complete".to_owned(),
                    Some(budget) => format!("not complete ({budget}); the rest is computed in use"),
                };
                format!(
                    "{} states, {} distinct masks, {} bytes of masks, {whole}, explored in {:.1} s",
                    explored.states,
                    explored.distinct_masks,
                    explored.stats.mask_bytes,
                    self.seconds
                )
            }
        };
        let mut text = format!(
            "{}: {} bytes\ncompiled in {:.1} ms\n{explored}\n",
            self.path.display(),
            self.bytes,
            self.compiled.time.as_secs_f64() * 1e3,
        );
        for entry in automaton.departures() {
            text += &format!("departs: `#{}`: {}\n", entry.pointer, entry.reason);
        }
        if let Some(proved) = &self.proved {
            text += &proved.to_text(color);
        }
        text
    }

    fn to_json(&self) -> Value {
        json!({
            "output": self.path.display().to_string(),
            "bytes": self.bytes,
            "compile_us": self.compiled.time.as_secs_f64() * 1e6,
            "explored": self.explored,
            "proved": self.proved.as_ref().map(Proved::to_json),
            "automaton": self.compiled.automaton.stats(),
            "fingerprint": self.compiled.automaton.vocabulary().fingerprint().to_string(),
            "departures": self.compiled.automaton.departures(),
        })
    }
}
