//! Number constraints through the engine: texts, masks and shortest completions against decisions on
//! exact values.

use std::sync::{Arc, LazyLock};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use regex::Regex;
use schemac::frontend::json_schema::number::{
    Bound, Decimal, IntegerSpelling, Notation, NumberConstraint, conjunction,
};
use schemac::ir::{Arena, Grammar};
use schemac::token::{Matcher, TokenAutomaton};
use schemac::vocab::Token;
use schemac::{ErrorKind, Limits, TokenId, Vocabulary};

use crate::support::reference::check_walk;

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text, &Limits::default().max_number_digits(usize::MAX)).unwrap()
}

/// All bytes of numbers and what may follow them, every three digits as in common vocabularies, and
/// some longer pieces.
pub(crate) fn vocabulary() -> Arc<Vocabulary> {
    let mut tokens: Vec<Token> =
        b"-0123456789.eE+,] ".iter().map(|&b| Token::Text([b].into())).collect();
    let digits = (10..1_000).map(|n| n.to_string());
    let zeros = ["00", "000", "01", "007", "0.", ".0", ".00", "-1", "-0.", "e-", "e+", ".5", "0]"];
    let more = ["1,", "00,", ".25", "25]", "1e3", "E+0", "0.0", "10000", "99999", "1000000", "-9."];
    let texts = digits.chain(zeros.into_iter().chain(more).map(str::to_owned));
    tokens.extend(texts.map(|text| Token::Text(text.into_bytes().into())));
    tokens.push(Token::Special("end".into()));
    let end = TokenId::from_index(tokens.len() - 1).unwrap();
    Arc::new(Vocabulary::new(tokens, [end]).unwrap())
}

struct Case {
    required: NumberConstraint,
    forbidden: Vec<NumberConstraint>,
}

impl Case {
    fn random(rng: &mut StdRng) -> Self {
        let count = if rng.random_bool(0.2) { rng.random_range(1..3) } else { 0 };
        Self {
            required: random_constraint(rng),
            forbidden: (0..count).map(|_| random_constraint(rng)).collect(),
        }
    }

    /// Returns an automaton of a list of one or two such numbers, or `None` if there are none.
    fn automaton(&self, vocabulary: &Arc<Vocabulary>) -> Option<Arc<TokenAutomaton>> {
        let limits = Limits::default();
        let mut grammar = Grammar::new(limits.expressions);
        let number =
            conjunction(&mut grammar.arena, &self.required, &self.forbidden, &limits).unwrap();
        let rule = grammar.scope().declare("number");
        grammar.scope().define(rule, number);
        let arena = &mut grammar.arena;
        let (call, comma, close) = (arena.call(rule), arena.byte(b','), arena.byte(b']'));
        let more = arena.concat2(comma, call);
        let more = arena.optional(more);
        grammar.start = arena.concat(&[call, more, close]);
        if number == Arena::EMPTY {
            return None;
        }
        match TokenAutomaton::new(grammar, vocabulary.clone(), limits) {
            Ok(automaton) => Some(Arc::new(automaton)),
            Err(error) => {
                assert_eq!(error.kind(), &ErrorKind::Unsatisfiable, "{error}");
                None
            }
        }
    }

    /// Whether the value of `text` satisfies the case.
    fn admits(&self, text: &str) -> bool {
        let value = decimal(text);
        self.required.admits(&value) && !self.forbidden.iter().any(|case| case.admits(&value))
    }

    /// Whether `text` is in the spelling that the case certainly has.
    fn spells(&self, text: &str) -> bool {
        static JSON: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$").unwrap()
        });
        static SCIENTIFIC: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"^-?([1-9](\.[0-9]+)?|0(\.0+)?)[eE]").unwrap());
        let notations =
            self.forbidden.iter().map(|c| if c.integer { Notation::Plain } else { c.notation() });
        let integer = self.required.integer
            && self.required.integer_spelling == IntegerSpelling::Digits
            && text.contains('.');
        let plain = !text.contains(['e', 'E']);
        let spelled = match notations.fold(self.required.notation(), Notation::min) {
            Notation::Plain => plain,
            Notation::Scientific => plain || SCIENTIFIC.is_match(text),
            Notation::Any => true,
        };
        JSON.is_match(text) && spelled && !integer
    }
}

fn random_constraint(rng: &mut StdRng) -> NumberConstraint {
    let values = [
        "-1000000",
        "-273.15",
        "-90",
        "-1",
        "-0.001",
        "0",
        "0",
        "0",
        "0.1",
        "0.25",
        "1",
        "1.5",
        "9",
        "99.99",
        "100",
        "255",
        "1000",
        "65535",
        "86400",
        "2147483647",
        "1e12",
        "1e-7",
    ];
    let steps = ["2", "5", "7", "10", "12", "1000", "0.5", "0.25", "0.01", "2.5", "1000003"];
    let mut bound = |chance| {
        rng.random_bool(chance).then(|| Bound {
            value: decimal(values.choose(rng).unwrap()),
            exclusive: rng.random_bool(0.4),
        })
    };
    let (minimum, maximum) = (bound(0.6), bound(0.6));
    let multiple_of = if rng.random_bool(0.4) {
        (0..rng.random_range(1..3)).map(|_| decimal(steps.choose(rng).unwrap())).collect()
    } else {
        Vec::new()
    };
    let mut constraint = NumberConstraint { minimum, maximum, multiple_of, ..Default::default() };
    constraint.integer = rng.random_bool(0.4);
    constraint.integer_spelling =
        [IntegerSpelling::Digits, IntegerSpelling::Fraction][rng.random_range(0..2)];
    constraint
}

/// A random text, often a number.
pub(crate) fn random_text(rng: &mut StdRng) -> String {
    let digits = |rng: &mut StdRng, most: usize| -> String {
        (0..rng.random_range(1..=most)).map(|_| char::from(rng.random_range(b'0'..=b'9'))).collect()
    };
    let mut text = if rng.random_bool(0.3) { "-".to_owned() } else { String::new() };
    text.push_str(if rng.random_bool(0.3) { "0" } else { "" });
    if text.len() < 2 && !text.ends_with('0') {
        text.push_str(&digits(rng, 7));
    }
    if rng.random_bool(0.4) {
        text = format!("{text}.{}", digits(rng, 4));
    }
    if rng.random_bool(0.2) {
        let sign = ["", "+", "-"][rng.random_range(0..3)];
        text = format!("{text}e{sign}{}", digits(rng, 2));
    }
    text
}

#[test]
fn texts_masks_and_completions_agree_with_exact_values() {
    let vocabulary = vocabulary();
    let (mut members, mut others, mut masks, mut empty) = (0, 0, 0, 0);
    for seed in 0..60 {
        let mut rng = StdRng::seed_from_u64(seed);
        let case = Case::random(&mut rng);
        let Some(automaton) = case.automaton(&vocabulary) else {
            empty += 1;
            // Nothing may be admitted then.
            for text in (0..200).map(|_| random_text(&mut rng)) {
                assert!(!case.spells(&text) || !case.admits(&text), "seed {seed}: {text}");
            }
            continue;
        };
        for _ in 0..200 {
            let text = random_text(&mut rng);
            let mut matcher = Matcher::new(automaton.clone());
            let accepted = matcher.accept_bytes(format!("{text}]").as_bytes()).is_ok();
            if accepted || case.spells(&text) {
                assert_eq!(accepted, case.admits(&text), "seed {seed}: {text}");
            }
            *(if accepted { &mut members } else { &mut others }) += 1;
        }
        masks += check_walk(&automaton, &mut rng, 8);
        for _ in 0..3 {
            check_completion(&automaton, &case, &mut rng);
        }
    }
    println!("{members} members, {others} others, {masks} masks, {empty} empty");
    assert!(members > 500 && others > 5_000 && masks > 200 && empty < 30);
}

/// Walks at random, and completes the text in the least way.
fn check_completion(automaton: &Arc<TokenAutomaton>, case: &Case, rng: &mut StdRng) {
    let mut matcher = Matcher::new(automaton.clone());
    let mut text = Vec::new();
    for _ in 0..rng.random_range(0..10) {
        let bytes = matcher.legal_bytes().unwrap();
        let Some(&byte) = bytes.choose(rng) else { break };
        matcher.accept_bytes(&[byte]).unwrap();
        text.push(byte);
    }
    let completion = matcher.shortest_completion().unwrap();
    assert_eq!(matcher.bytes_to_complete().unwrap(), completion.len() as u64);
    text.extend_from_slice(&completion);
    let text = String::from_utf8(text).unwrap();
    let numbers = text.strip_suffix(']').unwrap();
    for number in numbers.split(',') {
        let exponent = number.split(['e', 'E']).nth(1).unwrap_or("0");
        if exponent.trim_start_matches(['+', '-', '0']).len() > 15 {
            continue; // Not a value that this test can hold.
        }
        assert!(case.admits(number), "{text}");
    }
}
