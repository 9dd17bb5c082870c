//! The languages against an oracle that decides every text by exact rational arithmetic.

use std::cmp::Ordering;
use std::sync::LazyLock;

use hashbrown::HashMap;
use num_bigint::BigInt;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use regex::Regex;

use super::*;
use crate::ir::{Expr, UNBOUNDED};

/// Brzozowski derivatives of regular expressions, memoised.
#[derive(Default)]
struct Derivatives(HashMap<(ExprId, u8), ExprId, foldhash::fast::RandomState>);

impl Derivatives {
    fn step(&mut self, arena: &mut Arena, id: ExprId, byte: u8) -> ExprId {
        if let Some(&known) = self.0.get(&(id, byte)) {
            return known;
        }
        let result = match arena.get(id).clone() {
            Expr::Empty | Expr::Epsilon => Arena::EMPTY,
            Expr::Bytes(set) if set.contains(byte) => Arena::EPSILON,
            Expr::Bytes(_) => Arena::EMPTY,
            Expr::Concat(head, tail) => {
                let first = self.step(arena, head, byte);
                let mut result = arena.concat2(first, tail);
                if arena.facts(head).nullable == Some(true) {
                    let skipped = self.step(arena, tail, byte);
                    result = arena.alt2(result, skipped);
                }
                result
            }
            Expr::Alt(parts) => {
                let parts: Vec<_> = parts.iter().map(|&p| self.step(arena, p, byte)).collect();
                arena.alt(&parts)
            }
            Expr::And(parts) => {
                let parts: Vec<_> = parts.iter().map(|&p| self.step(arena, p, byte)).collect();
                arena.and(&parts)
            }
            Expr::Not(inner) => {
                let inner = self.step(arena, inner, byte);
                arena.not(inner)
            }
            Expr::Repeat { body, min, max } => {
                let first = self.step(arena, body, byte);
                let max = if max == UNBOUNDED { max } else { max - 1 };
                let rest = arena.repeat(body, min.saturating_sub(1), max);
                arena.concat2(first, rest)
            }
            Expr::Progression { table, state } => {
                let transitions = arena.progression_transitions(table, state);
                let found = transitions.into_iter().find(|(bytes, _)| bytes.contains(byte));
                found.map_or(Arena::EMPTY, |(_, next)| next)
            }
            other => panic!("not a number's expression: {other:?}"),
        };
        self.0.insert((id, byte), result);
        result
    }

    fn accepts(&mut self, arena: &mut Arena, id: ExprId, text: &str) -> bool {
        let mut state = id;
        for byte in text.bytes() {
            state = self.step(arena, state, byte);
            if state == Arena::EMPTY {
                return false;
            }
        }
        arena.facts(state).nullable == Some(true)
    }
}

/// A number as an integer times a power of ten.
#[derive(Clone, Debug)]
struct Exact(BigInt, i64);

impl Exact {
    /// Reads a text that is a JSON number.
    fn read(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let fraction = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let digits: BigInt = mantissa.replace('.', "").parse().unwrap();
        Self(digits, exponent.parse::<i64>().unwrap() - i64::try_from(fraction).unwrap())
    }

    /// Returns both as integers in one unit.
    fn common(&self, other: &Self) -> (BigInt, BigInt) {
        let least = self.1.min(other.1);
        let scaled = |e: &Self| &e.0 * BigInt::from(10).pow(u32::try_from(e.1 - least).unwrap());
        (scaled(self), scaled(other))
    }

    fn compare(&self, other: &Self) -> Ordering {
        let (a, b) = self.common(other);
        a.cmp(&b)
    }

    fn is_multiple_of(&self, other: &Self) -> bool {
        let (a, b) = self.common(other);
        a % b == BigInt::ZERO
    }
}

/// A constraint as texts, for both sides.
#[derive(Clone, Debug, Default)]
struct Case {
    integer: bool,
    minimum: Option<(String, bool)>,
    maximum: Option<(String, bool)>,
    multiple_of: Vec<String>,
    spelling: IntegerSpelling,
}

impl Case {
    fn constraint(&self) -> NumberConstraint {
        let bound = |bound: &Option<(String, bool)>| {
            let (value, exclusive) = bound.clone()?;
            Some(Bound { value: decimal(&value), exclusive })
        };
        NumberConstraint {
            integer: self.integer,
            minimum: bound(&self.minimum),
            maximum: bound(&self.maximum),
            multiple_of: self.multiple_of.iter().map(|text| decimal(text)).collect(),
            integer_spelling: self.spelling,
        }
    }

    /// Whether the value of a text meets the case.
    fn admits(&self, value: &Exact) -> bool {
        let bounded = |bound: &Option<(String, bool)>, outside: Ordering| {
            bound.as_ref().is_none_or(|(bound, exclusive)| {
                match value.compare(&Exact::read(bound)) {
                    Ordering::Equal => !exclusive,
                    order => order != outside,
                }
            })
        };
        bounded(&self.minimum, Ordering::Less)
            && bounded(&self.maximum, Ordering::Greater)
            && (!self.integer || value.is_multiple_of(&Exact::read("1")))
            && self.multiple_of.iter().all(|step| value.is_multiple_of(&Exact::read(step)))
    }

    fn notation(&self) -> Notation {
        let zero = |bound: &Option<(String, bool)>| {
            bound.as_ref().is_none_or(|(text, _)| Exact::read(text).0 == BigInt::ZERO)
        };
        if !self.multiple_of.is_empty() {
            Notation::Plain
        } else if self.integer {
            match self.spelling {
                IntegerSpelling::Scientific => Notation::Scientific,
                _ => Notation::Plain,
            }
        } else if zero(&self.minimum) && zero(&self.maximum) {
            Notation::Any
        } else {
            Notation::Scientific
        }
    }
}

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text, &Limits::default()).unwrap()
}

/// Which notations a text belongs to, and its value.
struct Text {
    text: String,
    value: Exact,
    notation: Notation,
    digits_only: bool,
}

/// Every JSON number of at most `length` bytes of `alphabet`, sorted, and some texts that are none.
struct Texts {
    numbers: Vec<Text>,
    others: Vec<String>,
}

impl Texts {
    fn new(alphabet: &str, length: usize) -> Self {
        let json = Regex::new(r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$").unwrap();
        // Prefixes of numbers, and texts that are one byte past being a prefix of one.
        let prefix = Regex::new(
            r"^(-?|-?(0|[1-9][0-9]*)(\.[0-9]*)?|-?(0|[1-9][0-9]*)(\.[0-9]+)?[eE][+-]?[0-9]*)$",
        )
        .unwrap();
        let (mut numbers, mut others, mut open) = (vec![], vec![], vec![String::new()]);
        while let Some(text) = open.pop() {
            if prefix.is_match(&text) {
                if text.len() < length {
                    open.extend(alphabet.chars().map(|c| format!("{text}{c}")));
                }
                if json.is_match(&text) {
                    numbers.push(classify(&text));
                } else {
                    others.push(text);
                }
            } else {
                others.push(text);
            }
        }
        numbers.sort_by(|a, b| a.text.cmp(&b.text));
        Self { numbers, others }
    }
}

static PLAIN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?$").unwrap());
static SCIENTIFIC: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^-?([1-9](\.[0-9]+)?|0(\.0+)?)[eE][+-]?[0-9]+$").unwrap());

fn classify(text: &str) -> Text {
    let notation = if PLAIN.is_match(text) {
        Notation::Plain
    } else if SCIENTIFIC.is_match(text) {
        Notation::Scientific
    } else {
        Notation::Any
    };
    let digits_only = !text.contains(['.', 'e', 'E']);
    Text { text: text.to_owned(), value: Exact::read(text), notation, digits_only }
}

/// Compares a conjunction with the oracle on every text.
fn check(required: &Case, forbidden: &[Case], texts: &Texts) -> usize {
    let mut arena = Arena::default();
    let mut derivatives = Derivatives::default();
    let excluded: Vec<_> = forbidden.iter().map(Case::constraint).collect();
    let limits = Limits::default();
    let id = conjunction(&mut arena, &required.constraint(), &excluded, &limits).unwrap();
    // What is forbidden narrows the notation at most to its own.
    let narrowest = forbidden
        .iter()
        .map(|case| if case.integer { Notation::Plain } else { case.notation() })
        .fold(required.notation(), Notation::min);
    let mut members = 0;
    for text in &texts.numbers {
        let digits_only = required.integer && required.spelling == IntegerSpelling::Digits;
        let spelled = |notation| text.notation <= notation && (text.digits_only || !digits_only);
        let admitted =
            required.admits(&text.value) && forbidden.iter().all(|case| !case.admits(&text.value));
        members += usize::from(admitted && spelled(narrowest));
        let found = derivatives.accepts(&mut arena, id, &text.text);
        let context = || format!("{} in {required:?} without {forbidden:?}", text.text);
        assert!(!found || (admitted && spelled(required.notation())), "{}", context());
        assert!(found || !(admitted && spelled(narrowest)), "missing {}", context());
    }
    for text in &texts.others {
        assert!(!derivatives.accepts(&mut arena, id, text), "{text:?} in {required:?}");
    }
    members
}

const BOUNDS: [&str; 13] =
    ["-100", "-12.5", "-5", "-1", "-0.15", "0", "0.01", "0.15", "1", "1.5", "9.9", "10", "99"];

const SPELLINGS: [IntegerSpelling; 3] =
    [IntegerSpelling::Digits, IntegerSpelling::Fraction, IntegerSpelling::Scientific];

fn bounded_cases() -> Vec<Case> {
    let mut ends: Vec<Option<(String, bool)>> = vec![None];
    for text in BOUNDS {
        ends.extend([Some((text.to_owned(), false)), Some((text.to_owned(), true))]);
    }
    let pairs = ends.iter().flat_map(|low| ends.iter().map(move |high| (low, high)));
    pairs
        .map(|(low, high)| Case { minimum: low.clone(), maximum: high.clone(), ..Case::default() })
        .collect()
}

#[test]
fn bounds_admit_exactly_the_numbers_between_them() {
    let short = Texts::new("-0123456789.", 3);
    let long = Texts::new("-01259.", 5);
    let exponents = Texts::new("-01.e+9", 5);
    let mut members = 0;
    for (i, case) in bounded_cases().into_iter().enumerate() {
        // Every case, and every text, but not every pair of them.
        let texts = [&short, &long, &exponents, &short][i % 4];
        members += check(&case, &[], texts);
    }
    assert!(members > 100_000, "{members}");
}

#[test]
fn integer_bounds_admit_exactly_the_integers_between_them() {
    let texts = Texts::new("-0123456789.", 3);
    let exponents = Texts::new("-012.e", 6);
    for (i, case) in bounded_cases().into_iter().enumerate() {
        let spelling = SPELLINGS[i % 3];
        let case = Case { integer: true, spelling, ..case };
        check(&case, &[], if i % 2 == 0 { &exponents } else { &texts });
    }
}

#[test]
fn multiples_are_decided_with_and_without_bounds() {
    let texts = Texts::new("-0123456789.", 3);
    let fractions = Texts::new("-0257.", 5);
    let mut rng = SmallRng::seed_from_u64(1);
    let bounded = bounded_cases();
    let steps = [
        "1", "2", "3", "4", "5", "7", "8", "10", "12", "16", "20", "25", "40", "100", "125",
        "1000", "0.1", "0.01", "0.25", "2.5", "0.3", "1.5", "0.75", "0.125", "33.3", "1e1", "7e-2",
    ];
    for step in steps {
        for i in 0..40 {
            let mut case = bounded.choose(&mut rng).unwrap().clone();
            match i {
                0 => (case.minimum, case.maximum) = (None, None),
                1 => case.maximum = None,
                2 => case.minimum = None,
                _ => {}
            }
            case.integer = rng.random_bool(0.3);
            case.spelling = *SPELLINGS.choose(&mut rng).unwrap();
            case.multiple_of = vec![step.to_owned()];
            if rng.random_bool(0.3) {
                case.multiple_of.push((*steps.choose(&mut rng).unwrap()).to_owned());
            }
            check(&case, &[], if i % 4 == 3 { &fractions } else { &texts });
        }
    }
}

#[test]
fn forbidden_constraints_leave_exactly_the_other_numbers() {
    let texts = Texts::new("-012357.", 4);
    let exponents = Texts::new("-015.e", 5);
    let mut rng = SmallRng::seed_from_u64(2);
    let bounded = bounded_cases();
    let random = |rng: &mut SmallRng| {
        let mut case = bounded.choose(rng).unwrap().clone();
        case.integer = rng.random_bool(0.3);
        case.spelling = *SPELLINGS.choose(rng).unwrap();
        if rng.random_bool(0.3) {
            let steps = ["2", "3", "0.5", "10", "0.01"];
            case.multiple_of.push((*steps.choose(rng).unwrap()).to_owned());
        }
        if rng.random_bool(0.2) {
            case.minimum = None;
        }
        if rng.random_bool(0.4) {
            case.maximum = None;
        }
        case
    };
    for i in 0..400 {
        let required = random(&mut rng);
        let forbidden: Vec<_> = (0..rng.random_range(1..3)).map(|_| random(&mut rng)).collect();
        check(&required, &forbidden, if i % 3 == 0 { &exponents } else { &texts });
    }
}

#[test]
fn numbers_near_long_bounds_are_decided_by_the_last_digit() {
    let mut rng = SmallRng::seed_from_u64(3);
    for round in 0..1_500 {
        let length = rng.random_range(1..120);
        let point = rng.random_range(0..=length);
        let number = |rng: &mut SmallRng| {
            let mut text: String =
                (0..length).map(|_| char::from(b'0' + rng.random_range(0..10))).collect();
            if rng.random_bool(0.3) {
                // Long runs of zeros or nines.
                let digit = if rng.random_bool(0.5) { "0" } else { "9" };
                text.replace_range(length / 3.., &digit.repeat(length - length / 3));
            }
            text.insert(point, '.');
            let text = format!("{text}0");
            let text = text.trim_start_matches('0');
            let text = if text.starts_with('.') { format!("0{text}") } else { text.to_owned() };
            if rng.random_bool(0.3) { format!("-{text}") } else { text }
        };
        let (mut low, mut high) = (number(&mut rng), number(&mut rng));
        if Exact::read(&low).compare(&Exact::read(&high)) == Ordering::Greater {
            std::mem::swap(&mut low, &mut high);
        }
        let mut near = Vec::new();
        for bound in [&low, &high] {
            let Exact(digits, exponent) = Exact::read(bound);
            for offset in [-11, -10, -9, -1, 0, 1, 9, 10, 11] {
                for deeper in [0_u8, 1, 3] {
                    let digits = &digits * BigInt::from(10).pow(u32::from(deeper)) + offset;
                    let text = format!("{digits}e{}", exponent - i64::from(deeper));
                    near.push(decimal(&text).to_string());
                    let scientific = format!("{:e}", Plain(&text));
                    near.push(scientific);
                }
            }
            near.push(format!("{bound}1"));
            near.push(bound.trim_end_matches('0').trim_end_matches('.').to_owned());
        }
        let near: Vec<_> = near.iter().filter(|text| *text != "-").collect();
        let texts = Texts { numbers: near.iter().map(|t| classify(t)).collect(), others: vec![] };
        let ends = [Some((low, rng.random())), Some((high, rng.random()))];
        let [minimum, maximum] = ends;
        let mut case = Case { minimum, maximum, ..Case::default() };
        match round % 4 {
            1 => case.integer = true,
            2 => case.multiple_of = vec!["0.3".to_owned()],
            3 => case.maximum = None,
            _ => {}
        }
        check(&case, &[], &texts);
    }
}

/// A number printed with one digit before the point.
struct Plain<'a>(&'a str);

impl std::fmt::LowerExp for Plain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = decimal(self.0);
        let sign = if value.is_negative() { "-" } else { "" };
        match value.scientific() {
            Some((mantissa, exponent)) => write!(f, "{sign}{mantissa}e{exponent:+03}"),
            None => f.write_str("0e5"),
        }
    }
}

#[test]
fn literals_are_the_spellings_of_one_number() {
    let texts = Texts::new("-015.eE+", 6);
    for value in ["0", "1", "-5", "10", "0.5", "-0.1", "15", "1.5"] {
        let mut arena = Arena::default();
        let mut derivatives = Derivatives::default();
        let id = literal(&mut arena, &decimal(value));
        let notation = if value == "0" { Notation::Any } else { Notation::Scientific };
        let mut members = 0;
        for text in &texts.numbers {
            let equal = text.value.compare(&Exact::read(value)) == Ordering::Equal;
            let expected = equal && text.notation <= notation;
            members += usize::from(expected);
            assert_eq!(derivatives.accepts(&mut arena, id, &text.text), expected, "{}", text.text);
        }
        assert!(members > 2, "{value}: {members}");
    }
}

#[test]
fn unconstrained_numbers_are_the_json_grammar() {
    let texts = Texts::new("-0123456789.eE+", 4);
    assert_eq!(check(&Case::default(), &[], &texts), texts.numbers.len());
    let mut arena = Arena::default();
    let id = any_number(&mut arena);
    let constraint = NumberConstraint::default();
    assert_eq!(language(&mut arena, &constraint, &Limits::default()).unwrap(), id);
    let id = any_integer(&mut arena);
    let constraint = NumberConstraint { integer: true, ..NumberConstraint::default() };
    assert_eq!(language(&mut arena, &constraint, &Limits::default()).unwrap(), id);
}

#[test]
fn admitted_values_are_those_of_the_language() {
    let texts = Texts::new("-01259.", 4);
    for case in bounded_cases().iter().step_by(7) {
        let constraint = case.constraint();
        for text in &texts.numbers {
            let value = decimal(&text.text);
            assert_eq!(constraint.admits(&value), case.admits(&text.value), "{}", text.text);
        }
    }
}

#[test]
fn empty_ranges_are_the_empty_expression() {
    for (minimum, maximum, integer, step) in [
        ("5", "4", false, None),
        ("1.2", "1.8", true, None),
        ("7", "8.5", false, Some("5.5")),
        ("1", "2", false, Some("1000003")),
    ] {
        let mut arena = Arena::default();
        let constraint = NumberConstraint {
            integer,
            minimum: Some(Bound::inclusive(decimal(minimum))),
            maximum: Some(Bound::inclusive(decimal(maximum))),
            multiple_of: step.into_iter().map(decimal).collect(),
            ..NumberConstraint::default()
        };
        let id = language(&mut arena, &constraint, &Limits::default()).unwrap();
        assert_eq!(id, Arena::EMPTY, "{minimum} to {maximum}");
    }
}

#[test]
fn forbidding_what_is_required_is_the_empty_expression() {
    let integer = NumberConstraint { integer: true, ..NumberConstraint::default() };
    let of = |step: &str, minimum: Option<&str>| NumberConstraint {
        multiple_of: vec![decimal(step)],
        minimum: minimum.map(|text| Bound::inclusive(decimal(text))),
        ..NumberConstraint::default()
    };
    let everything = NumberConstraint::default();
    for (required, forbidden) in [
        (&everything, vec![everything.clone()]),
        (&integer, vec![integer.clone()]),
        (&of("6", None), vec![of("1.5", None)]),
        (&of("1000003000", Some("5")), vec![of("1000003", Some("-10"))]),
        (
            &of("7", Some("1")),
            vec![of("7", Some("100")), NumberConstraint::exactly(&decimal("50"))],
        ),
    ] {
        let mut arena = Arena::default();
        let id = conjunction(&mut arena, required, &forbidden, &Limits::default()).unwrap();
        let empty = forbidden.len() == 1;
        assert_eq!(id == Arena::EMPTY, empty, "{required:?} without {forbidden:?}");
        // Bounds and implied conditions need no complement.
        assert!(arena.facts(id).positive);
    }
}

#[test]
fn a_step_that_is_not_positive_is_an_invalid_keyword() {
    for step in ["0", "-2"] {
        let constraint =
            NumberConstraint { multiple_of: vec![decimal(step)], ..NumberConstraint::default() };
        let error = language(&mut Arena::default(), &constraint, &Limits::default()).unwrap_err();
        assert_eq!(error.kind().name(), "invalid_keyword");
    }
}

#[test]
fn a_common_step_past_the_limit_is_a_budget_error() {
    // Distinct powers of primes: the least common multiple is their product.
    let long = |base: u32, exponent: u32| BigInt::from(base).pow(exponent).to_string();
    let steps = [long(3, 1_500), long(7, 900)];
    let constraint = NumberConstraint {
        multiple_of: steps.iter().map(|text| decimal(text)).collect(),
        ..NumberConstraint::default()
    };
    let error = language(&mut Arena::default(), &constraint, &Limits::default()).unwrap_err();
    assert_eq!(error.kind().name(), "budget_exceeded");
}
