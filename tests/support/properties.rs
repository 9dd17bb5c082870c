//! What must hold for every input: the bodies of the fuzz targets, which the tests replay on the
//! seeds and on the inputs that once failed.
//!
//! A structured input is a string of choices, one byte each, so that a mutation of the bytes is a
//! small change of the grammar; an exhausted input chooses 0 for ever.

use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use schemac::frontend::json_schema::{self, JsonOptions};
use schemac::frontend::{ecma, gbnf, regex};
use schemac::ir::Grammar;
use schemac::runtime::{ConstrainedSampler, Policy};
use schemac::token::{Matcher, TokenAutomaton};
use schemac::vocab::Token;
use schemac::{Limits, StepError, TokenId, Vocabulary, artifact};

use super::differential::{self, Effort, Tally};
use super::schemas::{self, DRAFTS};
use super::{gbnf as oracle, random, reference};

/// Panics where the property does not hold.
type Property = fn(&[u8]);

/// Every property and its name.
pub(crate) const PROPERTIES: &[(&str, Property)] = &[
    ("gbnf_compile_never_panics", gbnf_compile_never_panics),
    ("regex_compile_never_panics", regex_compile_never_panics),
    ("schema_compile_never_panics", schema_compile_never_panics),
    ("artifact_load_never_panics", artifact_load_never_panics),
    ("mask_equals_reference", mask_equals_reference),
    ("sampler_never_stuck", sampler_never_stuck),
    ("schema_equals_validator", schema_equals_validator),
];

/// Checks the property `name` on an input.
///
/// # Panics
///
/// If it does not hold, or there is none of that name.
pub(crate) fn check(name: &str, data: &[u8]) {
    let property = PROPERTIES.iter().find(|(known, _)| *known == name);
    let (_, property) = property.unwrap_or_else(|| panic!("no property is called {name}"));
    property(data);
}

/// Any text is a grammar or a typed error, and a grammar makes an automaton or a typed error.
fn gbnf_compile_never_panics(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(grammar) = gbnf::compile(text, &limits()) {
        start(grammar);
    }
}

/// Any text is a regex or a typed error, in both dialects, and a regex makes an automaton or a typed
/// error.
fn regex_compile_never_panics(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = ecma::Pattern::parse(text, &limits());
    if let Ok(grammar) = regex::compile(text, &limits()) {
        start(grammar);
    }
}

/// Any text is a schema or a typed error, and a schema makes an automaton or a typed error.
fn schema_compile_never_panics(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(grammar) = json_schema::compile(text, &JsonOptions::default(), &limits()) {
        start(grammar);
    }
}

/// Any file is an automaton or a typed error, and whatever is loaded can be walked. The input edits a
/// good file, whose length and checksum are then put right, or is the file.
fn artifact_load_never_panics(data: &[u8]) {
    let mut choices = Choices(data);
    let file = match choices.choose(ARTIFACTS.len() + 1).checked_sub(1) {
        None => choices.0.to_vec(),
        Some(base) => {
            let mut file = ARTIFACTS[base].clone();
            while !choices.0.is_empty() {
                let at = choices.choose(256) << 8 | choices.choose(256);
                let at = HEADER + at % (file.len() - HEADER);
                match choices.choose(4) {
                    0 => file[at] ^= 1 << choices.choose(8),
                    1 => file[at] = 255,
                    2 => file.insert(at, 128),
                    _ => drop(file.remove(at)),
                }
            }
            let checksum = crc32fast::hash(&file[HEADER..]).to_le_bytes();
            let length = ((file.len() - HEADER) as u64).to_le_bytes();
            file[12..16].copy_from_slice(&checksum);
            file[16..24].copy_from_slice(&length);
            file
        }
    };
    let Ok(automaton) = artifact::from_bytes(&file, &limits()) else { return };
    let mut matcher = Matcher::new(Arc::new(automaton));
    for _ in 0..6 {
        let _ = (matcher.is_accepting(), matcher.shortest_completion());
        let Ok(mask) = matcher.mask() else { return };
        let Some(token) = mask.iter().nth(choices.choose(5)).or_else(|| mask.iter().next()) else {
            return;
        };
        if matcher.accept(token).is_err() {
            return;
        }
    }
}

/// Bytes before the checksummed part of an artifact.
const HEADER: usize = 40;

/// Small artifacts: recursion, counters, a warm automaton, and a schema, which is expanded lazily.
static ARTIFACTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut tokens: Vec<_> = ["a", "b", "(", ")", "ab", "))", "(a"]
        .map(|text| Token::Text(text.as_bytes().into()))
        .into();
    tokens.push(Token::Special("<end>".into()));
    let vocabulary = Arc::new(Vocabulary::new(tokens, [TokenId::new(7)]).unwrap());
    let texts = ["root ::= \"(\" root* \")\" | [ab]", "root ::= (\"a\" | \"ab\"){3,90} [^b]"];
    let compiled = |text: &str| {
        let grammar = gbnf::compile(text, &limits()).unwrap();
        TokenAutomaton::new(grammar, vocabulary.clone(), limits()).unwrap()
    };
    let mut files: Vec<_> =
        texts.iter().map(|text| artifact::to_bytes(&compiled(text)).unwrap()).collect();
    let warm = Arc::new(compiled(texts[0]));
    reference::check_walk(&warm, &mut StdRng::seed_from_u64(0), 6);
    files.push(artifact::to_bytes(&warm).unwrap());
    let schema = r##"{"properties": {"a": {"$ref": "#"}, "b": {"enum": ["x", [1]]}}, "items": {"$ref": "#"}}"##;
    let grammar = json_schema::compile(schema, &JsonOptions::default(), &limits()).unwrap();
    let schema = TokenAutomaton::new(grammar, VOCABULARY.clone(), limits()).unwrap();
    files.push(artifact::to_bytes(&schema).unwrap());
    files
});

/// On a random walk under a random grammar of each front end, every mask is the set of tokens whose
/// bytes the byte automaton takes one by one.
fn mask_equals_reference(data: &[u8]) {
    let mut choices = Choices(data);
    let seed = choices.seed();
    let Some(automaton) = choices.grammar().and_then(automaton) else { return };
    reference::check_walk(&automaton, &mut StdRng::seed_from_u64(seed), 8);
}

/// A sampler that fits its token budget at the start ends in a complete output within it, whatever
/// the logits say.
fn sampler_never_stuck(data: &[u8]) {
    let mut choices = Choices(data);
    let seed = choices.seed();
    let most = NonZeroUsize::MIN.saturating_add(choices.choose(40));
    let Some(automaton) = choices.grammar().and_then(automaton) else { return };
    let policy = Policy::sample(1.0).seed(seed).max_tokens(most);
    let mut sampler = match ConstrainedSampler::new(automaton.clone(), policy) {
        Ok(sampler) => sampler,
        // A way out cannot be looked for through a keyword whose refusal waits until it is reached.
        Err(
            StepError::TokenBudget { .. } | StepError::BudgetExceeded(_) | StepError::Grammar(_),
        ) => return,
        Err(error) => panic!("{error}"),
    };
    let mut rng = StdRng::seed_from_u64(seed);
    while !sampler.is_finished() {
        let logits: Vec<f32> = (0..VOCABULARY.len()).map(|_| rng.random_range(0.0..16.0)).collect();
        match sampler.next_token(&logits) {
            Ok(_) => assert!(sampler.tokens().len() <= most.get(), "{:?}", sampler.tokens()),
            Err(StepError::BudgetExceeded(_) | StepError::Grammar(_)) => return,
            Err(error) => panic!("{error} after {:?}", sampler.text()),
        }
    }
    let mut matcher = Matcher::new(automaton);
    let complete = matcher.accept_bytes(&sampler.bytes()).map(|()| matcher.is_accepting());
    assert!(matches!(complete, Ok(Ok(true))), "{complete:?}: {:?}", sampler.text());
}

/// What is generated under a random schema is valid by the independent validator, and what is valid in
/// its canonical spelling is accepted.
fn schema_equals_validator(data: &[u8]) {
    let mut choices = Choices(data);
    let seed = choices.seed();
    let draft = DRAFTS[choices.choose(8).saturating_sub(3)];
    let schema = schemas::schema(&mut |n| choices.choose(n), draft);
    note(schema.to_string());
    let effort = Effort { walks: 6, candidates: 30 };
    let findings = differential::examine(&schema, seed, effort, &mut Tally::default());
    assert!(findings.is_empty(), "{}", findings[0].shrunk());
}

/// Compiles a grammar and looks at what is legal first.
fn start(grammar: Grammar) {
    if let Some(automaton) = automaton(grammar) {
        let matcher = Matcher::new(automaton);
        let _ = (matcher.mask(), matcher.is_accepting(), matcher.shortest_completion());
    }
}

fn automaton(grammar: Grammar) -> Option<Arc<TokenAutomaton>> {
    TokenAutomaton::new(grammar, VOCABULARY.clone(), limits()).ok().map(Arc::new)
}

/// Limits at which one input takes milliseconds: what they cut off is an error, which is fine.
fn limits() -> Limits {
    Limits::default()
        .max_source_bytes(1 << 16)
        .max_expressions(50_000)
        .max_states(20_000)
        .max_compile_work(200_000)
        .max_step_work(20_000)
}

/// All bytes, some pieces of the built-in vocabulary, and an end token: few enough for the slow
/// reference.
pub(crate) static VOCABULARY: LazyLock<Arc<Vocabulary>> = LazyLock::new(|| {
    let all = Vocabulary::embedded();
    let mut tokens: Vec<_> = all
        .ids()
        .filter(|token| token.index() < 256 || token.index() % 40 == 0)
        .filter(|&token| !all.is_end(token))
        .map(|token| all.token(token))
        .collect();
    let pieces = ["ab", "aba", "bb", "a\"", "é\"", "éa", "\\n", "\n\\", "\",\"", "{\"a\":", "}]"];
    tokens.extend(pieces.map(|text| Token::Text(text.as_bytes().into())));
    tokens.push(Token::Special("<end>".into()));
    let end = TokenId::from_index(tokens.len() - 1).unwrap();
    Arc::new(Vocabulary::new(tokens, [end]).unwrap())
});

/// An input as a string of choices.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    /// Returns a number below `n`, which is at most 256.
    fn choose(&mut self, n: usize) -> usize {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(first) % n
    }

    fn seed(&mut self) -> u64 {
        self.choose(256) as u64
    }

    /// Returns a random grammar of one of the front ends.
    fn grammar(&mut self) -> Option<Grammar> {
        let front_end = self.choose(3);
        let mut choose = |n| self.choose(n);
        let result = match front_end {
            0 => {
                let wanted = oracle::Grammar::random(&mut choose);
                let text = note(wanted.to_gbnf(&mut choose));
                let result = gbnf::compile(&text, &limits());
                let fine = wanted.verdict() == oracle::Verdict::Fine;
                assert_eq!(result.is_ok(), fine, "{:?}", result.err());
                result
            }
            1 => regex::compile(&note(random::regex(&mut choose, 4)), &limits()),
            _ => {
                let schema = schemas::schema(&mut choose, DRAFTS[0]);
                let schema = note(schema.to_string());
                json_schema::compile(&schema, &JsonOptions::default(), &limits())
            }
        };
        result.ok()
    }
}

/// Prints a grammar where a failing test shows it.
#[allow(clippy::print_stdout, reason = "the harness of the tests shows it")]
fn note(text: String) -> String {
    if cfg!(test) {
        println!("{text}");
    }
    text
}
