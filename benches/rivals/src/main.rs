//! schemac and llguidance under the procedure of MaskBench, interleaved case by case in one process
//! on one thread, over the same tokens: a suite of schemas with instances in, a table of times and
//! outcomes out.
//!
//! For each schema, each engine compiles it and computes a first mask; then for each instance and
//! each of its tokens it computes a mask, looks the token up, and accepts it: one *mask time*. The
//! end is not timed. The engines take turns in going first. `schemac, dense` also writes each mask
//! out as dense words, which is the form that llguidance gives.
//!
//! llguidance is set up as its own benchmark does: `ParserFactory` with the slices for JSON, without
//! forced tokens and backtracking; its vocabulary is built from the same bytes.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use llguidance::api::TopLevelGrammar;
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenizerEnv};
use llguidance::{ParserFactory, TokenParser};
use schemac::token::{Matcher, TokenAutomaton};
use schemac::vocab::{Encoder, LoadOptions, Loaded, load};
use schemac::{Compiler, TokenId, Vocabulary};

use distribution::{Distribution, micros};
use json_text::{Parts, Spacing, respace};

#[path = "../../../src/bin/schemac/suite/distribution.rs"]
#[expect(dead_code, reason = "shared with the command, which uses more of it")]
mod distribution;
#[path = "../../../src/bin/schemac/json_text.rs"]
#[expect(dead_code, reason = "shared with the command, which uses more of it")]
mod json_text;

#[derive(Parser)]
struct Args {
    /// A `tokenizer.json`.
    tokenizer: PathBuf,
    /// Files of lines `{"name", "schema", "tests": [{"data", "valid"}]}`.
    #[arg(required = true)]
    suites: Vec<PathBuf>,
    /// Run only every so many cases.
    #[arg(long, default_value_t = 1)]
    every: usize,
    /// Give an engine up on a schema after so many seconds.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
}

struct Case {
    schema: String,
    tests: Vec<(Vec<u32>, bool)>,
}

/// An engine under test.
trait Engine {
    type Grammar;
    type State;
    fn compile(&self, schema: &str) -> Result<Self::Grammar, String>;
    fn start(&self, grammar: &Self::Grammar) -> Self::State;
    /// Computes the mask, and returns whether it could be computed.
    fn mask(&self, state: &mut Self::State) -> bool;
    /// Computes the mask, and accepts the token if the mask has it.
    fn mask_and_accept(&self, state: &mut Self::State, token: u32) -> bool;
    fn is_accepting(&self, state: &mut Self::State) -> bool;
}

struct Schemac {
    compiler: Compiler,
    dense: bool,
}

impl Engine for Schemac {
    type Grammar = Arc<TokenAutomaton>;
    type State = (Matcher, Vec<u64>);

    fn compile(&self, schema: &str) -> Result<Self::Grammar, String> {
        self.compiler.compile_schema(schema).map_err(|error| error.kind().name().to_owned())
    }

    fn start(&self, grammar: &Self::Grammar) -> Self::State {
        let words = self.compiler.vocabulary().len().div_ceil(64);
        (Matcher::new(Arc::clone(grammar)), vec![0; words])
    }

    fn mask(&self, (matcher, words): &mut Self::State) -> bool {
        let Ok(mask) = matcher.mask() else { return false };
        if self.dense {
            mask.write_words(words);
        }
        true
    }

    fn mask_and_accept(&self, (matcher, words): &mut Self::State, token: u32) -> bool {
        let Ok(mask) = matcher.mask() else { return false };
        let legal = if self.dense {
            mask.write_words(words);
            words[token as usize / 64] >> (token % 64) & 1 == 1
        } else {
            mask.contains(TokenId::new(token))
        };
        legal && matcher.accept(TokenId::new(token)).is_ok()
    }

    fn is_accepting(&self, (matcher, _): &mut Self::State) -> bool {
        matcher.is_accepting().unwrap_or(false)
    }
}

impl Engine for ParserFactory {
    type Grammar = TokenParser;
    type State = TokenParser;

    fn compile(&self, schema: &str) -> Result<TokenParser, String> {
        let schema = serde_json::from_str(schema).map_err(|error| error.to_string())?;
        let grammar = TopLevelGrammar::from_json_schema(schema);
        let mut parser = self.create_parser(grammar).map_err(|_| "refused".to_owned())?;
        parser.start_without_prompt();
        Ok(parser)
    }

    fn start(&self, grammar: &TokenParser) -> TokenParser {
        grammar.deep_clone()
    }

    fn mask(&self, state: &mut TokenParser) -> bool {
        state.compute_mask().is_ok()
    }

    fn mask_and_accept(&self, state: &mut TokenParser, token: u32) -> bool {
        let Ok(mask) = state.compute_mask() else { return false };
        mask.is_allowed(token) && state.consume_token(token).is_ok()
    }

    fn is_accepting(&self, state: &mut TokenParser) -> bool {
        state.is_accepting()
    }
}

/// What one engine did.
#[derive(Default)]
struct Tally {
    compiled: usize,
    errors: usize,
    timeouts: usize,
    invalid_accepted: usize,
    valid_refused: usize,
    all_right: usize,
    masks: Vec<Duration>,
    first_masks: Vec<Duration>,
}

impl Tally {
    fn run<E: Engine>(&mut self, engine: &E, case: &Case, patience: Duration) {
        let start = Instant::now();
        let Ok(grammar) = engine.compile(&case.schema) else {
            self.errors += 1;
            return;
        };
        let usable = engine.mask(&mut engine.start(&grammar));
        let first = start.elapsed();
        if !usable {
            self.errors += 1;
            return;
        }
        self.compiled += 1;
        self.first_masks.push(first);
        let mut right = true;
        for (tokens, valid) in &case.tests {
            let mut state = engine.start(&grammar);
            let mut accepted = true;
            for &token in tokens {
                let before = Instant::now();
                accepted = engine.mask_and_accept(&mut state, token);
                self.masks.push(before.elapsed());
                if !accepted {
                    break;
                }
                if start.elapsed() > patience {
                    self.timeouts += 1;
                    return;
                }
            }
            accepted = accepted && engine.is_accepting(&mut state);
            self.invalid_accepted += usize::from(accepted && !valid);
            self.valid_refused += usize::from(!accepted && *valid);
            right &= accepted == *valid;
        }
        self.all_right += usize::from(right);
    }

    fn print(&self, name: &str) {
        println!(
            "| {name} | {} | {} | {} | {} | {} | {} |",
            self.compiled,
            self.errors,
            self.timeouts,
            self.invalid_accepted,
            self.valid_refused,
            self.all_right
        );
    }

    fn print_times(&self, name: &str) {
        let row = |times: &[Duration]| {
            let d = Distribution::of(times.to_vec());
            [d.average, d.p50, d.p90, d.p99, d.p999, d.max]
                .map(|time| format!("{:.1}", micros(time)))
                .join(" | ")
        };
        println!("| {name} | mask | {} |", row(&self.masks));
        println!("| {name} | first mask | {} |", row(&self.first_masks));
    }
}

/// The tokenizer as llguidance wants it, which spells forced bytes with it.
struct Environment {
    trie: TokTrie,
    encoder: Arc<Encoder>,
}

impl TokenizerEnv for Environment {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, text: &[u8]) -> Vec<u32> {
        let encode = |text: &str| {
            let tokens = self.encoder.encode(text).unwrap_or_default();
            tokens.into_iter().map(TokenId::get).collect()
        };
        self.trie.tokenize_with_greedy_fallback(text, encode)
    }
}

fn environment(loaded: &Loaded) -> TokEnv {
    let vocabulary: &Vocabulary = loaded.vocabulary();
    let words: Vec<_> = vocabulary
        .ids()
        .map(|id| match vocabulary.special_name(id) {
            Some(name) => [&[TokTrie::SPECIAL_TOKEN_MARKER], name.as_bytes()].concat(),
            None => vocabulary.bytes(id).to_vec(),
        })
        .collect();
    let size = u32::try_from(words.len()).expect("ids have 32 bits");
    let ends: Vec<_> = vocabulary.end_tokens().iter().map(|id| id.get()).collect();
    let trie = TokTrie::from(&TokRxInfo::new(size, ends[0]), &words);
    let encoder = Arc::clone(loaded.encoder());
    Arc::new(Environment { trie: trie.with_eos_tokens(&ends), encoder })
}

fn read_case(line: &str, loaded: &Loaded) -> Option<Case> {
    let parts = Parts::new(line).ok()?;
    let case = parts.root();
    let test = |test: json_text::Part<'_, '_>| {
        let text = respace(test.member("data")?.text(), Spacing::Compact);
        let tokens = loaded.encoder().encode(&text).ok()?;
        Some((tokens.into_iter().map(TokenId::get).collect(), test.member("valid")?.boolean()?))
    };
    Some(Case {
        schema: case.member("schema")?.text().to_owned(),
        tests: case.member("tests")?.children().map(test).collect::<Option<_>>()?,
    })
}

fn main() {
    let args = Args::parse();
    let loaded = load(&args.tokenizer, &LoadOptions::default()).expect("the tokenizer can be read");
    let vocabulary = loaded.vocabulary();
    // What either builds once for each vocabulary is in no time.
    let _ = vocabulary.trie();
    (0..).map_while(|class| vocabulary.runs(class)).for_each(drop);
    (0..).map_while(|number| vocabulary.quotient(number)).for_each(drop);
    let compiler = Compiler::new(Arc::clone(vocabulary));
    let sparse = Schemac { compiler: compiler.clone(), dense: false };
    let dense = Schemac { compiler, dense: true };
    let environment = environment(&loaded);
    let capabilities = InferenceCapabilities::default();
    let slices = SlicedBiasComputer::json_slices();
    let mut rival = ParserFactory::new(&environment, capabilities, &slices).expect("a factory");
    rival.quiet();

    let patience = Duration::from_secs(args.seconds);
    let mut tallies: [Tally; 3] = Default::default();
    let mut cases = 0;
    for path in &args.suites {
        let text = fs::read_to_string(path).expect("the suite can be read");
        for line in text.lines().step_by(args.every) {
            let Some(case) = read_case(line, &loaded) else {
                eprintln!("{}: not a case: {:.80}", path.display(), line);
                continue;
            };
            for turn in 0..3 {
                match (cases + turn) % 3 {
                    0 => tallies[0].run(&sparse, &case, patience),
                    1 => tallies[1].run(&dense, &case, patience),
                    _ => tallies[2].run(&rival, &case, patience),
                }
            }
            cases += 1;
        }
    }

    let names = ["schemac", "schemac, dense", "llguidance 1.9.1"];
    println!("{cases} schemas, {} ids; times in µs\n", vocabulary.len());
    println!("| engine | time | avg | p50 | p90 | p99 | p99.9 | max |");
    println!("|---|---|---|---|---|---|---|---|");
    names.iter().zip(&tallies).for_each(|(name, tally)| tally.print_times(name));
    println!("\n| engine | compiled | errors | time-outs | invalid accepted | valid refused | all right |");
    println!("|---|---|---|---|---|---|---|");
    names.iter().zip(&tallies).for_each(|(name, tally)| tally.print(name));
}
