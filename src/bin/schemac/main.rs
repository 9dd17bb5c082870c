//! The `schemac` command: arguments in, results on standard output, errors on standard error, and
//! an exit code. All reading, writing and printing of the crate happens here.

mod args;
mod check;
mod compile;
mod describe;
mod diagnostic;
mod documents;
mod exit;
mod explain;
mod generate;
mod grammar;
mod json_args;
mod json_text;
mod legal;
mod limits;
#[cfg(feature = "candle")]
mod model;
mod output;
mod progress;
mod proved;
mod sampling_args;
mod source;
mod steps;
mod suite;
mod tokenizer;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use exit::{BUG, Failure};
use output::{ColorChoice, Format, Output};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && wants_json() => return usage_as_json(&error),
        Err(error) => error.exit(),
    };
    let output = Output::new(cli.format, cli.color);
    remember_panics();
    match catch_unwind(AssertUnwindSafe(|| run(&cli.command, output))) {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => {
            output.failure(&failure);
            ExitCode::from(&failure)
        }
        Err(_) => {
            let message = suite::LAST_PANIC.with(|last| last.borrow_mut().take());
            output.bug(&message.unwrap_or_default());
            ExitCode::from(BUG)
        }
    }
}

fn run(command: &Command, output: Output) -> Result<ExitCode, Failure> {
    match command {
        Command::Compile(args) => compile::run(args, output),
        Command::Check(args) => check::run(args, output),
        Command::Generate(args) => generate::run(args, output),
        Command::Tokenizer(args) => tokenizer::run(args, output),
        Command::Explain(args) => explain::run(args, output),
        Command::Suite(args) => suite::run(args, output),
    }
}

/// Returns whether a command line that cannot be parsed asks for JSON.
fn wants_json() -> bool {
    let args: Vec<_> = std::env::args_os().collect();
    let apart = args.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json");
    apart || args.iter().any(|arg| arg == "--format=json")
}

fn usage_as_json(error: &clap::Error) -> ExitCode {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    let message = first.strip_prefix("error: ").unwrap_or(first).to_owned();
    let failure = Failure::Usage(message);
    Output::new(Format::Json, ColorChoice::Never).failure(&failure);
    ExitCode::from(&failure)
}

/// Keeps the text of a panic for the report instead of printing it at once.
fn remember_panics() {
    std::panic::set_hook(Box::new(|panic| {
        suite::LAST_PANIC.with(|last| *last.borrow_mut() = Some(panic.to_string()));
    }));
}
