//! Holds every way of decoding to JSON Schemas and reports: is each output valid and complete, and what
//! does the grammar cost?
//!
//! ```sh
//! DECODINGS=500 cargo run --release --example decoding_report
//! DECODINGS=20 RAYON_NUM_THREADS=1 cargo run --release --features candle --example decoding_report -- \
//!     MODEL.gguf schemas/{person,tool_call}.json
//! ```
//!
//! Without a file, a model of three tokens' memory, learnt from the instances beside the schemas, is
//! asked; its draft remembers one token. With a file, that model is asked, and one of three tokens'
//! memory drafts for it. `DECODINGS` is the number of outputs of each way, over all schemas together (those
//! that are named, or all of `schemas`). Each output is checked with the independent crate `jsonschema`.
//! Exit status 1 if one is invalid or cut off.
#![expect(clippy::print_stdout, reason = "an example prints what it found")]

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use schemac::frontend::layout::Layout;
use schemac::runtime::{Beam, Candidate, Model, best, candidates, speculate};
use schemac::vocab::Loaded;
use schemac::{Compiler, ConstrainedSampler, Policy, StepError, TokenAutomaton, TokenId};
use serde_json::Value;

/// Outputs of each way, unless the environment says otherwise.
const DECODINGS: u64 = 500;

/// The most tokens of an output.
const MAX_TOKENS: usize = 400;

/// What separates reasoning from the answer.
const THINK_END: &str = "</think>";

type Failure = Box<dyn Error>;

/// A schema, compiled, and what else is needed of it.
struct Case {
    automaton: Arc<TokenAutomaton>,
    reasoned: Arc<TokenAutomaton>,
    validator: jsonschema::Validator,
    /// The tokens of its shortest output, and whether fewer cannot do.
    least: (usize, bool),
}

/// The ways of decoding.
#[derive(Clone, Copy, Debug)]
enum Way {
    Greedy,
    Sampled,
    Beam,
    BestOf,
    Speculative,
    JumpForward,
    Reasoned,
    LeastAnd(usize),
}

const WAYS: [Way; 10] = [
    Way::Greedy,
    Way::Sampled,
    Way::Beam,
    Way::BestOf,
    Way::Speculative,
    Way::JumpForward,
    Way::Reasoned,
    Way::LeastAnd(0),
    Way::LeastAnd(5),
    Way::LeastAnd(50),
];

/// Sums over the outputs of a way.
#[derive(Default)]
struct Totals {
    outputs: u64,
    invalid: u64,
    cut_off: u64,
    tokens: usize,
    /// Tokens that no model was asked for.
    forced: usize,
    drafted: usize,
    accepted: usize,
    time: Duration,
}

fn main() -> Result<ExitCode, Failure> {
    let count = std::env::var("DECODINGS").map_or(Ok(DECODINGS), |text| text.parse())?;
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next();
    let mut schemas: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    if schemas.is_empty() {
        schemas = files("schemas", ".json")?;
    }
    match model {
        None => {
            let loaded = Loaded::embedded();
            let sequences = sequences(&loaded)?;
            let mut target = Memory::learn(loaded.vocabulary().len(), &sequences, 2);
            let mut draft = Memory::learn(loaded.vocabulary().len(), &sequences, 1);
            report(count, &schemas, &loaded, &mut target, &mut draft, |_| Ok(()))
        }
        Some(path) => with_file(count, &schemas, Path::new(&path)),
    }
}

#[cfg(feature = "candle")]
fn with_file(count: u64, schemas: &[PathBuf], path: &Path) -> Result<ExitCode, Failure> {
    use schemac::adapter::candle::{GgufModel, Message, PromptEncoder};
    let loaded = schemac::vocab::load(path, &schemac::vocab::LoadOptions::default())?;
    let prompt = PromptEncoder::new(&loaded)?;
    let mut model = GgufModel::load(path, &candle_core::Device::Cpu)?;
    model.set_prompt(prompt.chat(&[Message::user("Answer with a JSON document.")])?);
    let mut draft = Memory::learn(loaded.vocabulary().len(), &sequences(&loaded)?, 2);
    report(count, schemas, &loaded, &mut model, &mut draft, |model| {
        // Remembers the prompt and nothing else.
        *model = model.clone();
        Ok(model.logits(&[], &mut Vec::new())?)
    })
}

#[cfg(not(feature = "candle"))]
fn with_file(_: u64, _: &[PathBuf], _: &Path) -> Result<ExitCode, Failure> {
    Err("this build cannot run models; build it with `--features candle`".into())
}

/// Returns the files of a folder whose names end so, in order.
fn files(folder: &str, end: &str) -> Result<Vec<PathBuf>, Failure> {
    let mut paths: Vec<_> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    paths.retain(|path| path.to_string_lossy().ends_with(end));
    paths.sort();
    Ok(paths)
}

fn report<T: Model, D: Model>(
    count: u64,
    schemas: &[PathBuf],
    loaded: &Loaded,
    target: &mut T,
    draft: &mut D,
    forget: impl Fn(&mut T) -> Result<(), Failure>,
) -> Result<ExitCode, Failure>
where
    T::Error: Error + 'static,
    D::Error: Error + 'static,
{
    let cases = cases(schemas, loaded)?;
    let exact = cases.iter().filter(|case| case.least.1).count();
    println!("{} schemas, the least budget of {exact} of them is exact", cases.len());
    println!("| way | outputs | invalid | cut off | tokens | tokens/s | note |");
    println!("|---|---|---|---|---|---|---|");
    let mut bad = 0;
    for way in WAYS {
        let mut totals = Totals::default();
        for number in 0..count {
            let case = &cases[usize::try_from(number)? % cases.len()];
            decode(way, case, number, loaded, (&mut *target, &mut *draft), &mut totals)?;
        }
        bad += totals.invalid + totals.cut_off;
        println!("{}", totals.row(&format!("{way:?}")));
    }
    let costs = costs(&cases, loaded, target, count, forget)?;
    let against = |time: f64| (time / costs.free - 1.0) * 100.0;
    println!(
        "\na token at temperature 1, the model included: {:.2} µs without a grammar, {:.2} with it on the \
         same rows ({:+.2} %), {:.2} with forced tokens ({:+.1} %)",
        costs.free * 1e6,
        costs.held * 1e6,
        against(costs.held),
        costs.jumped * 1e6,
        against(costs.jumped),
    );
    Ok(ExitCode::from(u8::from(bad > 0)))
}

fn cases(schemas: &[PathBuf], loaded: &Loaded) -> Result<Vec<Case>, Failure> {
    let compiler = Compiler::new(Arc::clone(loaded.vocabulary()));
    let mut cases = Vec::new();
    for path in schemas {
        let text = fs::read_to_string(path)?;
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&serde_json::from_str(&text)?)?;
        let automaton = compiler.compile_schema(&text)?;
        let schema = Layout::Schema(text);
        let reasoned = Layout::Sequence(vec![Layout::until(THINK_END), schema]);
        let closing =
            ConstrainedSampler::new(Arc::clone(&automaton), Policy::greedy())?.close_now()?;
        cases.push(Case {
            automaton,
            reasoned: compiler.compile_layout(&reasoned)?,
            validator,
            least: (closing.tokens.len(), closing.exact),
        });
    }
    Ok(cases)
}

/// Generates one output and checks it.
fn decode<T: Model, D: Model>(
    way: Way,
    case: &Case,
    seed: u64,
    loaded: &Loaded,
    (target, draft): (&mut T, &mut D),
    totals: &mut Totals,
) -> Result<(), Failure>
where
    T::Error: Error + 'static,
    D::Error: Error + 'static,
{
    let budget = match way {
        Way::LeastAnd(more) => case.least.0 + more,
        _ => MAX_TOKENS,
    };
    let policy = match way {
        Way::Greedy | Way::Beam => Policy::greedy(),
        _ => Policy::sample(1.0).top_p(0.95).seed(seed),
    };
    let policy = policy.max_tokens(NonZeroUsize::new(budget).ok_or("no budget")?);
    let automaton = if matches!(way, Way::Reasoned) { &case.reasoned } else { &case.automaton };
    let start = Instant::now();
    let mut sampler = ConstrainedSampler::new(Arc::clone(automaton), policy)?;
    let mut text = None;
    match way {
        Way::Beam => {
            let width = NonZeroUsize::new(4).ok_or("no width")?;
            let found = Beam::new(width).search(&sampler, target)?;
            sampler = found.into_iter().next().ok_or("no hypothesis")?.sampler;
        }
        Way::BestOf => {
            let all = candidates(&sampler, target, 8)?;
            totals.tokens += all.iter().map(|c| c.tokens.len()).sum::<usize>();
            text = best(&all, Candidate::mean_log_probability).map(|best| best.text.clone());
        }
        Way::Speculative => {
            let drafts = NonZeroUsize::new(4).ok_or("no drafts")?;
            while !sampler.is_finished() {
                let round = speculate(&mut sampler, target, draft, drafts)?;
                totals.drafted += round.drafted;
                totals.accepted += round.accepted;
            }
        }
        Way::JumpForward => {
            let mut row = Vec::new();
            while !sampler.is_finished() {
                totals.forced += sampler.jump_forward(loaded.encoder())?;
                target.logits(sampler.tokens(), &mut row)?;
                sampler.next_token(&row)?;
            }
        }
        _ => sampler.generate(target)?,
    }
    totals.time += start.elapsed();
    totals.outputs += 1;
    if text.is_none() {
        totals.tokens += sampler.tokens().len();
        totals.cut_off += u64::from(!sampler.is_finished() || sampler.tokens().len() > budget);
    }
    let text = text.unwrap_or_else(|| sampler.text());
    let document = match way {
        Way::Reasoned => text.split_once(THINK_END).map_or("", |(_, document)| document),
        _ => &text,
    };
    let valid = serde_json::from_str::<Value>(document).is_ok_and(|v| case.validator.is_valid(&v));
    if !valid {
        println!("INVALID by {way:?}: {text}");
    }
    totals.invalid += u64::from(!valid);
    Ok(())
}

/// The seconds of a token, the model's run included.
struct Costs {
    /// Without a grammar.
    free: f64,
    /// With one, on the same rows.
    held: f64,
    /// With one, where what it forces is taken without asking the model.
    jumped: f64,
}

/// Measures them by turns. Before the last, `forget` takes from the model what it remembers of the
/// sequence, so that it runs on forced tokens too.
fn costs<T: Model>(
    cases: &[Case],
    loaded: &Loaded,
    model: &mut T,
    count: u64,
    forget: impl Fn(&mut T) -> Result<(), Failure>,
) -> Result<Costs, Failure>
where
    T::Error: Error + 'static,
{
    let any = Compiler::new(Arc::clone(loaded.vocabulary())).compile_regex("(?s).*")?;
    let (mut free, mut held, mut tokens) = (Duration::ZERO, Duration::ZERO, 0_usize);
    let (mut jumped, mut jumped_tokens) = (Duration::ZERO, 0_usize);
    let mut row = Vec::new();
    for number in 0..count {
        let case = &cases[usize::try_from(number)? % cases.len()];
        let policy = Policy::sample(1.0).seed(number);
        let budget = NonZeroUsize::new(MAX_TOKENS).ok_or("no budget")?;
        let start = ConstrainedSampler::new(
            Arc::clone(&case.automaton),
            policy.clone().max_tokens(budget),
        )?;
        let mut sampler = start.fork();
        let mut without = ConstrainedSampler::new(Arc::clone(&any), policy)?;
        while !sampler.is_finished() {
            // The model runs in both.
            let start = Instant::now();
            model.logits(sampler.tokens(), &mut row)?;
            let ran = start.elapsed();
            let start = Instant::now();
            let token = sampler.next_token(&row)?;
            held += ran + start.elapsed();
            let start = Instant::now();
            without.sample(&row)?;
            free += ran + start.elapsed();
            if !sampler.is_finished() {
                without.accept(token)?;
            }
            tokens += 1;
        }
        forget(model)?;
        let mut sampler = start;
        let start = Instant::now();
        while !sampler.is_finished() {
            sampler.jump_forward(loaded.encoder())?;
            model.logits(sampler.tokens(), &mut row)?;
            sampler.next_token(&row)?;
        }
        jumped += start.elapsed();
        jumped_tokens += sampler.tokens().len();
    }
    let each = |time: Duration, tokens: usize| time.as_secs_f64() / tokens as f64;
    Ok(Costs {
        free: each(free, tokens),
        held: each(held, tokens),
        jumped: each(jumped, jumped_tokens),
    })
}

impl Totals {
    fn row(&self, way: &str) -> String {
        let Self { outputs, invalid, cut_off, tokens, .. } = self;
        let share = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
        let note = match (self.drafted, self.forced) {
            (0, 0) => String::new(),
            (0, forced) => format!("{:.1} % of the tokens forced", share(forced, *tokens)),
            (drafted, _) => {
                format!("{:.1} % of the drafts accepted", share(self.accepted, drafted))
            }
        };
        let speed = *tokens as f64 / self.time.as_secs_f64();
        format!("| {way} | {outputs} | {invalid} | {cut_off} | {tokens} | {speed:.0} | {note} |")
    }
}

/// Returns what the model of memory learns from: instances with some words before them.
fn sequences(loaded: &Loaded) -> Result<Vec<Vec<TokenId>>, Failure> {
    const WORDS: [&str; 8] =
        ["I think", " the answer", " is about", " a person", " with", " some", " data", "."];
    let vocabulary = loaded.vocabulary();
    let end = vocabulary.end_tokens()[0];
    let mut sequences = Vec::new();
    for path in files("schemas", ".accept.jsonl")? {
        for line in fs::read_to_string(path)?.lines() {
            let number = sequences.len();
            // Some order of the words, another one for each instance.
            let words: String =
                (0..6).map(|i| WORDS[(number * (i + 3) + i * i) % WORDS.len()]).collect();
            for text in [line.to_owned(), format!("{words}{THINK_END}{line}")] {
                let tokens =
                    vocabulary.encode_greedy(text.as_bytes()).ok_or("cannot be spelled")?;
                sequences.push(tokens.into_iter().chain([end]).collect());
            }
        }
    }
    Ok(sequences)
}

/// A model that remembers the last tokens: counts of what followed them, mixed with what followed fewer.
struct Memory {
    /// How many tokens it remembers.
    order: usize,
    /// Logarithms for what no memory tells.
    base: Vec<f32>,
    /// The probabilities of what followed some tokens.
    followed: HashMap<Vec<TokenId>, Vec<(TokenId, f32)>>,
}

/// How much a longer memory counts, and how much what was never seen.
const LONGER: f32 = 0.7;
const UNSEEN: f32 = 0.02;

impl Memory {
    fn learn(width: usize, sequences: &[Vec<TokenId>], order: usize) -> Self {
        let mut counts: HashMap<Vec<TokenId>, HashMap<TokenId, u32>> = HashMap::new();
        for tokens in sequences {
            for (at, &token) in tokens.iter().enumerate() {
                for memory in 0..=order.min(at) {
                    let before = tokens[at - memory..at].to_vec();
                    *counts.entry(before).or_default().entry(token).or_default() += 1;
                }
            }
        }
        let followed: HashMap<_, _> = counts
            .into_iter()
            .map(|(before, counts)| {
                let total: u32 = counts.values().sum();
                let mut list: Vec<_> =
                    counts.into_iter().map(|(t, n)| (t, n as f32 / total as f32)).collect();
                list.sort_unstable_by_key(|&(token, _)| token);
                (before, list)
            })
            .collect();
        let mut base = vec![UNSEEN / width as f32; width];
        for &(token, p) in followed.get(&Vec::new()).into_iter().flatten() {
            base[token.index()] += (1.0 - UNSEEN) * p;
        }
        Self { order, base, followed }
    }
}

impl Model for Memory {
    type Error = StepError;

    fn logits(&mut self, tokens: &[TokenId], row: &mut Vec<f32>) -> Result<(), StepError> {
        row.clone_from(&self.base);
        for memory in 1..=self.order.min(tokens.len()) {
            let Some(list) = self.followed.get(&tokens[tokens.len() - memory..]) else { break };
            row.iter_mut().for_each(|p| *p *= 1.0 - LONGER);
            list.iter().for_each(|&(token, p)| row[token.index()] += LONGER * p);
        }
        row.iter_mut().for_each(|p| *p = p.ln());
        Ok(())
    }
}
