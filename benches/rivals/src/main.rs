//! schemac and its rivals under the procedure of MaskBench, case by case in one run over the same
//! tokens: a suite of schemas with instances in, a table of times, outcomes and memory out.
//!
//! Each engine works in a process of its own, and only one works at a time. For each schema the
//! engines take turns, in each pass with a freshly compiled schema, and another goes first each time;
//! see [`engine`] for what is timed. The tokens are made here, so that no process that is measured
//! holds a tokenizer; `llguidance` is the exception, since it spells forced text with one, and
//! `llguidance-greedy` is the same without, for its memory.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

use clap::Parser;
use schemac::TokenId;
use schemac::vocab::{LoadOptions, Loaded, load};

use engine::serve;
use engines::llguidance;
use engines::outlines::Outlines;
use engines::schemac::Schemac;
use json_text::{Parts, Spacing, respace};
use protocol::{Request, Worker};
use tally::{Case, Kind, Tally};

mod chart;
mod engine;
mod engines;
mod index;
mod protocol;
mod tally;
mod vocabulary;

#[path = "../../../src/bin/schemac/json_text.rs"]
#[expect(dead_code, reason = "shared with the command, which uses more of it")]
mod json_text;

#[derive(Parser)]
struct Args {
    /// A `tokenizer.json`.
    tokenizer: PathBuf,
    /// Files of lines `{"name", "schema", "tests": [{"data", "valid"}]}`, or folders of them. Without,
    /// precomputing is compared with the index of outlines-core.
    suites: Vec<PathBuf>,
    /// Engines: `schemac`, `schemac-dense`, `llguidance`, `llguidance-greedy`, `outlines`, `xgrammar`.
    /// `outlines:100` runs it on every hundredth of the cases only.
    #[arg(long, value_delimiter = ',', default_value = "schemac,llguidance,llguidance-greedy")]
    engines: Vec<String>,
    /// Run only every so many cases, evenly over all files.
    #[arg(long, default_value_t = 1)]
    every: usize,
    /// Passes, each over a freshly compiled schema.
    #[arg(long, default_value_t = 3)]
    passes: usize,
    /// Give an engine up on a schema after so many seconds.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Compare masks with brute force at five positions of every so many cases; 0 for never.
    #[arg(long, default_value_t = 50)]
    check_every: usize,
    /// List up to so many texts on which engines differ.
    #[arg(long, default_value_t = 20)]
    differences: usize,
    /// Draw the distributions into this folder.
    #[arg(long)]
    charts: Option<PathBuf>,
    /// The Python of an environment that has `xgrammar`.
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// Work as this engine. The tokenizer is then the vocabulary that the bench wrote.
    #[arg(long, hide = true)]
    work_as: Option<String>,
}

/// A schema with its texts as tokens.
struct Task {
    name: String,
    schema: String,
    tests: Vec<Vec<u32>>,
    valid: Vec<bool>,
}

fn read_task(line: &str, loaded: &Loaded) -> Option<Task> {
    let parts = Parts::new(line).ok()?;
    let case = parts.root();
    let mut task = Task {
        name: serde_json::from_str(case.member("name")?.text()).ok()?,
        schema: case.member("schema")?.text().to_owned(),
        tests: Vec::new(),
        valid: Vec::new(),
    };
    for test in case.member("tests")?.children() {
        let text = respace(test.member("data")?.text(), Spacing::Compact);
        let tokens = loaded.encoder().encode(&text).ok()?;
        task.tests.push(tokens.into_iter().map(TokenId::get).collect());
        task.valid.push(test.member("valid")?.boolean()?);
    }
    Some(task)
}

/// Returns the files, those of folders in the order of their names.
fn files(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in paths {
        match fs::read_dir(path) {
            Ok(entries) => {
                let mut inside: Vec<PathBuf> =
                    entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
                inside.retain(|path| path.extension().is_some_and(|ext| ext == "jsonl"));
                inside.sort();
                files.extend(inside);
            }
            Err(_) => files.push(path.clone()),
        }
    }
    files
}

fn read_tasks(args: &Args, loaded: &Loaded) -> Vec<Task> {
    let mut tasks = Vec::new();
    let mut number = 0;
    for path in files(&args.suites) {
        let text = fs::read_to_string(&path).expect("the suite can be read");
        for line in text.lines() {
            number += 1;
            if (number - 1) % args.every == 0 {
                match read_task(line, loaded) {
                    Some(task) => tasks.push(task),
                    None => eprintln!("{}: not a case: {line:.80}", path.display()),
                }
            }
        }
    }
    tasks
}

/// Answers as an engine until the bench is done.
fn work(name: &str, args: &Args) {
    let vocabulary = &args.tokenizer;
    match name {
        "schemac" => serve(&Schemac::new(vocabulary, false)),
        "schemac-dense" => serve(&Schemac::new(vocabulary, true)),
        "llguidance" => serve(&llguidance::factory(vocabulary, Some(&args.suites[0]))),
        "llguidance-greedy" => serve(&llguidance::factory(vocabulary, None)),
        "outlines" => serve(&Outlines::new(vocabulary)),
        _ => eprintln!("no engine is called {name}"),
    }
}

/// Returns the command that works as an engine.
fn command(name: &str, args: &Args, vocabulary: &Path) -> Command {
    let mut command;
    if name == "xgrammar" {
        command = Command::new(&args.python);
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/xgrammar_worker.py")).arg(vocabulary);
    } else {
        command = Command::new(env::current_exe().expect("this program"));
        command.arg(vocabulary).arg(&args.tokenizer).args(["--work-as", name]);
    }
    command
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(name) = &args.work_as {
        work(name, &args);
        return ExitCode::SUCCESS;
    }
    let loaded = load(&args.tokenizer, &LoadOptions::default()).expect("the tokenizer can be read");
    let path = env::temp_dir().join(format!("rivals-{}.jsonl", std::process::id()));
    vocabulary::write(loaded.vocabulary(), &path).expect("a temporary file can be written");
    if args.suites.is_empty() {
        index::compare(&path);
        let _ = fs::remove_file(&path);
        return ExitCode::SUCCESS;
    }
    let tasks = read_tasks(&args, &loaded);
    let tallies = run(&args, &tasks, &path);
    let _ = fs::remove_file(&path);
    println!(
        "{} schemas, {} ids, {} passes; times in µs, memory in MB\n",
        tasks.len(),
        loaded.vocabulary().len(),
        args.passes
    );
    report(&args, &tasks, &tallies);
    let wrong: usize = tallies.iter().map(|tally| tally.checks().1).sum();
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs all tasks on all engines, in turns.
fn run(args: &Args, tasks: &[Task], vocabulary: &Path) -> Vec<Tally> {
    let mut engines: Vec<(usize, Worker, Tally)> = Vec::new();
    for text in &args.engines {
        let (name, every) = text.split_once(':').unwrap_or((text, "1"));
        let mut worker = Worker::new(command(name, args, vocabulary));
        if let Err(error) = worker.start() {
            eprintln!("{name} is left out: {error}");
            continue;
        }
        let tally = Tally { name: name.to_owned(), cases: Vec::new(), idle: 0, peak: 0 };
        engines.push((every.parse().expect("a number"), worker, tally));
    }
    let count = engines.len();
    for (number, task) in tasks.iter().enumerate() {
        if number % 500 == 0 {
            eprintln!("{number} of {}", tasks.len());
        }
        for pass in 0..args.passes {
            let last = pass + 1 == args.passes;
            let checked = last && args.check_every > 0 && number % args.check_every == 0;
            let request = Request {
                schema: task.schema.clone(),
                tests: task.tests.clone(),
                warm: last,
                check: if checked { 5 } else { 0 },
                seconds: args.seconds,
            };
            for turn in 0..count {
                let (every, worker, tally) = &mut engines[(number + pass + turn) % count];
                if number % *every != 0 {
                    continue;
                }
                let reply = worker.ask(&request);
                if pass == 0 {
                    let valid = task.valid.clone();
                    tally.cases.push(Case { number, valid, passes: Vec::new() });
                }
                tally.cases.last_mut().expect("a case").passes.push(reply);
            }
        }
    }
    let done = engines.into_iter().map(|(_, worker, tally)| {
        let (idle, peak) = (worker.idle, worker.peak);
        Tally { idle, peak, ..tally }
    });
    done.collect()
}

fn report(args: &Args, tasks: &[Task], tallies: &[Tally]) {
    let reference = tallies.iter().find(|tally| tally.name.starts_with("llguidance"));
    if let Some(reference) = reference {
        let mut compiled = vec![false; tasks.len()];
        for case in &reference.cases {
            compiled[case.number] = case.compiled();
        }
        println!("Times on the schemas that {} compiles\n", reference.name);
        tally::print_head();
        tallies.iter().for_each(|tally| tally.print_times(&|number| compiled[number]));
        println!();
    }
    println!("Times on all schemas that the engine compiles\n");
    tally::print_head();
    tallies.iter().for_each(|tally| tally.print_times(&|_| true));

    println!(
        "\n| engine | schemas | compiled | errors | time-outs | invalid accepted | valid refused \
         | all right |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    tallies.iter().for_each(Tally::print_coverage);
    println!("\n| engine | MB before the first schema | MB at most |");
    println!("|---|---|---|");
    tallies.iter().for_each(Tally::print_memory);
    tallies.iter().for_each(Tally::print_causes);
    for tally in tallies {
        let (checked, wrong) = tally.checks();
        if checked > 0 {
            println!("\n{}: of {checked} masks, {wrong} differ from brute force", tally.name);
        }
    }
    if let Some((first, others)) = tallies.split_first() {
        others.iter().for_each(|other| print_differences(args, tasks, first, other));
    }
    if let Some(folder) = &args.charts {
        fs::create_dir_all(folder).expect("the folder can be made");
        for (name, title, kind) in [
            ("masks.svg", "Time of a mask and a commit, first pass", Kind::Mask),
            ("first_masks.svg", "Time from a schema's text to its first mask", Kind::First),
        ] {
            let curves: Vec<_> = tallies
                .iter()
                .map(|tally| (tally.name.clone(), tally.least(kind, &|_| true)))
                .filter(|(_, times)| !times.is_empty())
                .collect();
            chart::draw(&folder.join(name), title, &curves).expect("the chart can be drawn");
        }
    }
}

/// Prints on how many texts two engines agree, and some on which they do not.
fn print_differences(args: &Args, tasks: &[Task], one: &Tally, other: &Tally) {
    let (mut same, mut different) = (0, Vec::new());
    for case in one.cases.iter().filter(|case| case.compiled()) {
        let twin = other.cases.iter().find(|twin| twin.number == case.number && twin.compiled());
        let Some(twin) = twin else { continue };
        for (i, (a, b)) in case.accepted().iter().zip(twin.accepted()).enumerate() {
            if a == b {
                same += 1;
            } else {
                different.push((case.number, i, *a));
            }
        }
    }
    println!(
        "\n{} and {}: the same verdict on {same} texts, another on {}",
        one.name,
        other.name,
        different.len()
    );
    for (number, i, accepted) in different.iter().take(args.differences) {
        let by = if *accepted { &one.name } else { &other.name };
        let valid = if tasks[*number].valid[*i] { "valid" } else { "invalid" };
        println!("- {}, text {i}, {valid}: accepted by {by} only", tasks[*number].name);
    }
}
