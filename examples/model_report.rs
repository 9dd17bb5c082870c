//! Holds a model to JSON Schemas and reports: are the outputs valid, and what does the grammar cost?
//!
//! ```sh
//! RAYON_NUM_THREADS=1 cargo run --release --features candle --example model_report -- \
//!     MODEL.gguf schemas/*.json
//! ```
//!
//! For each schema: one greedy document and ten at temperature 1, each checked with the independent
//! crate `jsonschema`. The greedy documents, and all invalid ones, are printed, and then a table with
//! mean times of a token: the model's run, the mask, and all that the sampler does, the mask included.
//! Prompts are not timed. Exit status 1 if a document is invalid.
#![expect(clippy::print_stdout, reason = "an example prints what it found")]

use std::error::Error;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use candle_core::Device;
use schemac::adapter::candle::{GgufModel, Message, PromptEncoder};
use schemac::runtime::Model;
use schemac::vocab::{LoadOptions, load};
use schemac::{Compiler, ConstrainedSampler, Policy, TokenAutomaton};
use serde_json::Value;

/// Documents at temperature 1 for each schema.
const SAMPLES: u64 = 10;

/// The most tokens of a document.
const MAX_TOKENS: NonZeroUsize = NonZeroUsize::new(500).unwrap();

/// What to ask for, by the name of the schema's file.
const REQUESTS: &[(&str, &str)] = &[
    ("api_error", "The user 42 was not found. Report this error of a web service."),
    (
        "calendar_event",
        "Plan a meeting of the design team with Ann and Bob on 3 May 2027 at 10:30.",
    ),
    ("chat_reply", "What is the capital of France, and why do you think so?"),
    ("comment_thread", "Write a short thread of comments on a photo of a cat, with one answer."),
    ("invoice", "Write an invoice for three chairs at 49.90 euros each."),
    ("person", "Ada Lovelace is 36 years old, works as a programmer, speaks English and French."),
    ("product_catalog", "List two products of a shop for garden tools, with prices."),
    ("sensor_readings", "Make up the readings of a weather station on a warm, dry day."),
    ("service_config", "Configure a web server with four workers that logs warnings."),
    ("tool_call", "What is the weather in Oslo? Call the right tool."),
];

/// Sums over documents.
#[derive(Clone, Copy, Default)]
struct Totals {
    documents: u32,
    valid: u32,
    tokens: u32,
    forward: Duration,
    mask: Duration,
    sampler: Duration,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((model, schemas)) = arguments.split_first().filter(|(_, rest)| !rest.is_empty())
    else {
        return Err("usage: model_report MODEL.gguf SCHEMA.json…".into());
    };
    let loaded = load(model, &LoadOptions::default())?;
    let prompts = PromptEncoder::new(&loaded)?;
    let compiler = Compiler::new(Arc::clone(loaded.vocabulary()));
    let mut model = GgufModel::load(model, &Device::Cpu)?;
    let mut all = Totals::default();
    let mut rows = Vec::new();
    for path in schemas.iter().map(Path::new) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(path)?;
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&serde_json::from_str(&text)?)?;
        let automaton = compiler.compile_schema(&text)?;
        let known = REQUESTS.iter().find(|(key, _)| *key == name);
        let request = known.map_or(&*name, |(_, request)| request);
        let message = Message::user(format!("{request} Answer with JSON only."));
        model.set_prompt(prompts.chat(&[message])?);
        println!("{name}:");
        let totals = report(&mut model, &automaton, &validator)?;
        all.add(&totals);
        rows.push((name, totals));
    }
    rows.push(("all".into(), all));
    println!();
    println!(
        "| schema | documents | valid | tokens | tokens/s | run, ms | mask, µs | sampler, µs |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (name, totals) in &rows {
        totals.print(name);
    }
    Ok(ExitCode::from(u8::from(all.valid < all.documents)))
}

fn report(
    model: &mut GgufModel,
    automaton: &Arc<TokenAutomaton>,
    validator: &jsonschema::Validator,
) -> Result<Totals, Box<dyn Error>> {
    let mut totals = Totals::default();
    let mut row = Vec::new();
    let samples = (0..SAMPLES).map(|seed| Policy::sample(1.0).seed(seed));
    for policy in std::iter::once(Policy::greedy()).chain(samples) {
        let greedy = policy == Policy::greedy();
        // The prompt, which is remembered.
        model.logits(&[], &mut row)?;
        let policy = policy.max_tokens(MAX_TOKENS);
        let mut sampler = ConstrainedSampler::new(Arc::clone(automaton), policy)?;
        while !sampler.is_finished() {
            let start = Instant::now();
            model.logits(sampler.tokens(), &mut row)?;
            let ran = Instant::now();
            // The sampler would do it, and finds it done.
            sampler.mask()?;
            let masked = Instant::now();
            sampler.next_token(&row)?;
            totals.forward += ran - start;
            totals.mask += masked - ran;
            totals.sampler += ran.elapsed();
        }
        let document = String::from_utf8(sampler.bytes())?;
        let valid =
            serde_json::from_str::<Value>(&document).is_ok_and(|value| validator.is_valid(&value));
        totals.documents += 1;
        totals.valid += u32::from(valid);
        totals.tokens += u32::try_from(sampler.tokens().len())?;
        if greedy || !valid {
            println!("{}{document}", if valid { "" } else { "INVALID: " });
        }
    }
    Ok(totals)
}

impl Totals {
    fn add(&mut self, other: &Self) {
        self.documents += other.documents;
        self.valid += other.valid;
        self.tokens += other.tokens;
        self.forward += other.forward;
        self.mask += other.mask;
        self.sampler += other.sampler;
    }

    fn print(&self, name: &str) {
        let Self { documents, valid, tokens, .. } = self;
        let tokens_per_second = f64::from(*tokens) / (self.forward + self.sampler).as_secs_f64();
        let mean = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(*tokens);
        println!(
            "| {name} | {documents} | {valid} | {tokens} | {tokens_per_second:.1} | {:.1} | {:.1} | {:.1} |",
            mean(self.forward) / 1e3,
            mean(self.mask),
            mean(self.sampler),
        );
    }
}
