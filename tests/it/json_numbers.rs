//! Numeric keywords of JSON Schema through the whole engine, against the independent `jsonschema`
//! validator: what is generated is valid, and every valid number in canonical spelling is accepted.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use schemac::frontend::json_schema::{JsonOptions, compile};
use schemac::token::{Matcher, TokenAutomaton};
use schemac::{ErrorKind, Limits, Vocabulary};
use serde_json::{Value, json};

use crate::numbers::{random_text, vocabulary};

/// A number of few digits, which the validator's double precision holds.
fn value(rng: &mut StdRng) -> Value {
    let texts = [
        "-100", "-12.5", "-3", "-1", "-0.5", "0", "0.25", "0.3", "1", "1.0", "1.5", "2", "5", "7",
        "10", "12", "20.5", "99", "100", "1e2", "255", "1000", "1e-2",
    ];
    serde_json::from_str(texts.choose(rng).unwrap()).unwrap()
}

fn step(rng: &mut StdRng) -> Value {
    let texts = ["1", "2", "3", "5", "7", "10", "12", "100", "0.5", "0.25", "0.01", "2.5", "1.5"];
    serde_json::from_str(texts.choose(rng).unwrap()).unwrap()
}

/// A schema about numbers, with up to `depth` applicators around each other.
fn schema(rng: &mut StdRng, depth: u32) -> Value {
    let mut result = json!({});
    let parts = |rng: &mut StdRng| -> Value {
        (0..rng.random_range(1..=3)).map(|_| schema(rng, depth - 1)).collect()
    };
    let count = rng.random_range(1..=2);
    for _ in 0..count {
        let kind = rng.random_range(0..if depth > 0 { 15 } else { 9 });
        match kind {
            0 => result["type"] = json!(["integer", "number"].choose(rng).unwrap()),
            1 => result["minimum"] = value(rng),
            2 => result["maximum"] = value(rng),
            3 => result["exclusiveMinimum"] = value(rng),
            4 => result["exclusiveMaximum"] = value(rng),
            5 => result["multipleOf"] = step(rng),
            6 => result["const"] = value(rng),
            7 => {
                let count = rng.random_range(1..12);
                result["enum"] = (0..count).map(|_| value(rng)).collect();
            }
            8 | 9 => result["not"] = schema(rng, depth.saturating_sub(1)),
            10 => result["allOf"] = parts(rng),
            11 => result["anyOf"] = parts(rng),
            12 | 13 => result["oneOf"] = parts(rng),
            _ => {
                result["if"] = schema(rng, depth - 1);
                result["then"] = schema(rng, depth - 1);
                result["else"] = schema(rng, depth - 1);
            }
        }
    }
    result
}

/// A random number without an exponent or superfluous zeros.
fn canonical(rng: &mut StdRng) -> String {
    let units: i64 = match rng.random_range(0..4) {
        0 => rng.random_range(-12..=12),
        1 => rng.random_range(-130..=130) * 100,
        2 => rng.random_range(-2_000..=2_000) * 25,
        _ => rng.random_range(-120_000..=120_000),
    };
    let scale = if units.abs() <= 12 { 0 } else { 2 };
    let sign = if units < 0 { "-" } else { "" };
    let digits = format!("{:0width$}", units.abs(), width = scale + 1);
    let (integer, fraction) = digits.split_at(digits.len() - scale);
    match fraction.trim_end_matches('0') {
        "" => format!("{sign}{integer}"),
        fraction => format!("{sign}{integer}.{fraction}"),
    }
}

/// Whether the validator's arithmetic is exact for `text`.
fn is_short(text: &str) -> bool {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
    digits <= 15 && exponent.parse::<i32>().is_ok_and(|exponent| exponent.abs() <= 9)
}

fn generate(automaton: &Arc<TokenAutomaton>, rng: &mut StdRng) -> String {
    let mut matcher = Matcher::new(automaton.clone());
    let mut text = Vec::new();
    while !(matcher.is_accepting().unwrap() && rng.random_bool(0.4)) && text.len() < 12 {
        let bytes = matcher.legal_bytes().unwrap();
        let Some(&byte) = bytes.choose(rng) else { break };
        matcher.accept_bytes(&[byte]).unwrap();
        text.push(byte);
    }
    text.extend(matcher.shortest_completion().unwrap());
    String::from_utf8(text).unwrap()
}

#[test]
fn numeric_keywords_admit_exactly_what_the_validator_calls_valid() {
    let vocabulary: Arc<Vocabulary> = vocabulary();
    let (mut schemas, mut empty, mut valid, mut invalid, mut generated) = (0, 0, 0, 0, 0);
    for seed in 0..300 {
        let mut rng = StdRng::seed_from_u64(seed);
        let schema = json!({"type": "number", "allOf": [schema(&mut rng, 2)]});
        let validator = jsonschema::validator_for(&schema).unwrap();
        let is_valid = |text: &str| validator.is_valid(&serde_json::from_str(text).unwrap());
        let limits = Limits::default();
        let automaton = compile(&schema.to_string(), &JsonOptions::default(), &limits)
            .and_then(|grammar| TokenAutomaton::new(grammar, vocabulary.clone(), limits))
            .map(Arc::new);
        let automaton = match automaton {
            Ok(automaton) => Some(automaton),
            Err(error) => {
                assert_eq!(error.kind(), &ErrorKind::Unsatisfiable, "{schema}: {error}");
                empty += 1;
                None
            }
        };
        schemas += 1;
        let accepts = |text: &str| {
            automaton.as_ref().is_some_and(|automaton| {
                let mut matcher = Matcher::new(automaton.clone());
                matcher.accept_bytes(text.as_bytes()).is_ok() && matcher.is_accepting().unwrap()
            })
        };
        for text in (0..100).map(|_| canonical(&mut rng)) {
            assert_eq!(accepts(&text), is_valid(&text), "seed {seed}: {text} in {schema}");
            *(if accepts(&text) { &mut valid } else { &mut invalid }) += 1;
        }
        for text in (0..100).map(|_| random_text(&mut rng)) {
            if accepts(&text) && is_short(&text) {
                assert!(is_valid(&text), "seed {seed}: {text} in {schema}");
            }
        }
        let Some(automaton) = &automaton else { continue };
        for text in (0..20).map(|_| generate(automaton, &mut rng)) {
            if is_short(&text) {
                assert!(is_valid(&text), "seed {seed}: {text} in {schema}");
                generated += 1;
            }
        }
    }
    println!(
        "{schemas} schemas, {empty} empty, {valid} valid, {invalid} invalid, {generated} generated"
    );
    assert!(empty < 200 && valid > 4_000 && invalid > 10_000 && generated > 2_000);
}
