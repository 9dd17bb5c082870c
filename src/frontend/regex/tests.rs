use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::frontend::pattern::testing::{Derivatives, LETTERS};
use crate::ir::Expr;

fn matcher(pattern: &str) -> (Derivatives, crate::ids::ExprId) {
    let grammar =
        compile(pattern, &Limits::default()).unwrap_or_else(|e| panic!("{pattern:?}: {e}"));
    (Derivatives::new(grammar.arena), grammar.start)
}

/// A random pattern in the dialect, from pieces that meet each other on few characters.
fn random_pattern(rng: &mut ChaCha8Rng, size: u32) -> String {
    const ATOMS: &[&str] = &[
        "a",
        "b",
        "-",
        "é",
        "\n",
        "\r",
        ".",
        r"\w",
        r"\W",
        r"\s",
        "[ab]",
        "[^a]",
        "[a-b-]",
        "(?i:A)",
        "(?s:.)",
        r"\pL",
        "",
        "(?-u:[a-b])",
        "(?i)b",
    ];
    const LOOKS: &[&str] = &[
        "^",
        "$",
        r"\A",
        r"\z",
        r"\b",
        r"\B",
        "(?m:^)",
        "(?m:$)",
        "(?Rm:^)",
        "(?Rm:$)",
        r"(?-u:\b)",
        r"(?-u:\B)",
        r"\b{start}",
        r"\b{end}",
        r"\b{start-half}",
        r"\b{end-half}",
    ];
    const REPEATS: &[&str] = &["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "+?", "??", "{0}"];
    if size <= 1 {
        let from = if rng.random_range(0..4) == 0 { LOOKS } else { ATOMS };
        return (*from.choose(rng).unwrap()).to_owned();
    }
    match rng.random_range(0..8) {
        0..=3 => {
            let left = rng.random_range(1..size);
            random_pattern(rng, left) + &random_pattern(rng, size - left)
        }
        4 | 5 => {
            let left = rng.random_range(1..size);
            format!("(?:{}|{})", random_pattern(rng, left), random_pattern(rng, size - left))
        }
        _ => format!("({}){}", random_pattern(rng, size - 1), REPEATS.choose(rng).unwrap()),
    }
}

#[test]
fn random_patterns_match_exactly_what_the_regex_crate_matches() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let letters = [&LETTERS[..], &['\n', '\r', 'A']].concat();
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..1000 {
        let size = rng.random_range(1..14);
        let pattern = random_pattern(&mut rng, size);
        let Ok(oracle) = regex::Regex::new(&format!(r"\A(?:{pattern})\z")) else { continue };
        let (mut derivatives, start) = matcher(&pattern);
        for _ in 0..40 {
            let length = rng.random_range(0..7);
            let text: String = (0..length).map(|_| *letters.choose(&mut rng).unwrap()).collect();
            let expected = oracle.is_match(&text);
            if expected {
                accepted += 1;
            } else {
                refused += 1;
            }
            assert_eq!(
                derivatives.matches(start, text.as_bytes()),
                expected,
                "{pattern:?} on {text:?}"
            );
        }
    }
    assert!(accepted > 3_000 && refused > 3_000, "{accepted} accepted, {refused} refused");
}

#[test]
fn a_match_is_anchored_at_both_ends() {
    let (mut derivatives, start) = matcher("a|bc");
    assert!(derivatives.matches(start, b"a"));
    assert!(derivatives.matches(start, b"bc"));
    assert!(!derivatives.matches(start, b"ac"));
    assert!(!derivatives.matches(start, b"ab"));
}

#[test]
fn texts_that_are_not_utf8_never_match() {
    let (mut derivatives, start) = matcher("(?s:.)*");
    assert!(derivatives.matches(start, "€".as_bytes()));
    assert!(!derivatives.matches(start, &"€".as_bytes()[..2]));
    assert!(!derivatives.matches(start, &[0xc0, 0x80]));
    assert!(!derivatives.matches(start, &[0xed, 0xa0, 0x80]));
}

#[test]
fn plain_patterns_stay_small() {
    for (pattern, least, most) in [("^[a-z]+$", 1, UNBOUNDED), (r"[a-z]{2,20000}", 2, 20_000)] {
        let grammar = compile(pattern, &Limits::default()).unwrap();
        match grammar.arena.get(grammar.start) {
            &Expr::Repeat { body, min, max } => {
                assert_eq!((min, max), (least, most));
                assert!(matches!(grammar.arena.get(body), Expr::Bytes(_)));
            }
            other => panic!("{pattern:?} became {other:?}"),
        }
    }
}

fn error(pattern: &str) -> Error {
    compile(pattern, &Limits::default()).unwrap_err()
}

#[test]
fn what_is_no_part_of_the_dialect_is_refused_by_name_and_place() {
    for (pattern, feature, column) in
        [(r"(a)\1", "back-reference", 4), ("a(?=b)", "look-around", 2)]
    {
        let error = error(pattern);
        assert_eq!(error.kind(), &unsupported(feature));
        let Some(Location::Text(span)) = error.location() else { panic!("{error:?}") };
        assert_eq!((span.line, span.column), (1, column), "{pattern:?}");
    }
    for pattern in
        ["(a", "a)", "[b-a]", r"\p{nothing}", "a{3,2}", "*a", "(?-u:\\xFF)", "(?-u:[^a])"]
    {
        assert_eq!(error(pattern).kind(), &ErrorKind::Syntax, "{pattern:?}");
        assert!(error(pattern).location().is_some());
    }
}

#[test]
fn limits_bound_length_nesting_classes_and_copies() {
    let exceeded =
        |pattern: &str, limits: &Limits| match compile(pattern, limits).unwrap_err().kind() {
            ErrorKind::BudgetExceeded(budget) => budget.limit,
            other => panic!("{other:?}"),
        };
    let limits = Limits::default();
    assert_eq!(exceeded(&"a".repeat(100), &limits.clone().max_pattern_bytes(99)), "pattern_bytes");
    let deep = format!("{}a{}", "(".repeat(300_000), ")".repeat(300_000));
    assert_eq!(exceeded(&deep, &limits), "source_depth");
    assert_eq!(
        exceeded(&r"\pL".repeat(1000), &limits.clone().max_compile_work(100_000)),
        "compile_work"
    );
    assert_eq!(exceeded(&format!(r"(?:\b{}){{10001}}", "(?:ab?){9000}"), &limits), "unroll");
    assert_eq!(
        exceeded(r"(a{2,200}b|\w{20,30}){2,10}", &limits.max_expressions(20)),
        "expressions"
    );
}

#[test]
fn deep_equal_sub_expressions_fit_on_a_small_stack() {
    let deep = |atom: &str| format!("{}{atom}{}", "(?:x".repeat(330), "){1,2}".repeat(330));
    let pattern = format!("{}|{}|{}", deep("a"), deep("a"), deep("b"));
    let run = move || compile(&pattern, &Limits::default()).map(|grammar| grammar.arena.len());
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap();
    thread.join().unwrap().unwrap();
}
