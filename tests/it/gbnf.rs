//! GBNF grammars through the whole engine: random ones against an oracle over bytes, and the shipped
//! ones against their instances.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::{Rng, SeedableRng, rngs::StdRng};
use schemac::frontend::gbnf;
use schemac::token::{Matcher, TokenAutomaton};
use schemac::{Limits, TokenId, Vocabulary};

use crate::masks::small_vocabulary;
use crate::support::gbnf as oracle;

fn automaton(text: &str, vocabulary: &Arc<Vocabulary>) -> Arc<TokenAutomaton> {
    let limits = Limits::default();
    let grammar = gbnf::compile(text, &limits).unwrap_or_else(|e| panic!("{e}\n{text}"));
    Arc::new(TokenAutomaton::new(grammar, vocabulary.clone(), limits).unwrap())
}

/// Returns the oracle's grammar number `seed`, if it compiles, with its text.
fn random_grammar(rng: &mut StdRng) -> Option<(oracle::Grammar, String)> {
    let grammar = oracle::Grammar::random(&mut |n| rng.random_range(0..n));
    let text = grammar.to_gbnf(&mut |n| rng.random_range(0..n));
    (grammar.verdict() == oracle::Verdict::Fine).then_some((grammar, text))
}

fn alphabet() -> Vec<u8> {
    oracle::ALPHABET.iter().collect::<String>().into_bytes()
}

#[test]
fn the_engine_accepts_the_texts_of_random_grammars() {
    let vocabulary = small_vocabulary(&alphabet(), 0);
    let (mut accepted, mut refused) = (0, 0);
    for seed in 0..1200 {
        let mut rng = StdRng::seed_from_u64(seed);
        let Some((grammar, text)) = random_grammar(&mut rng) else { continue };
        let automaton = automaton(&text, &vocabulary);
        for _ in 0..25 {
            let length = rng.random_range(0..7);
            let instance: String = (0..length)
                .map(|_| oracle::ALPHABET[rng.random_range(0..oracle::ALPHABET.len())])
                .collect();
            let mut matcher = Matcher::new(automaton.clone());
            let live = matcher.accept_bytes(instance.as_bytes()).is_ok();
            assert_eq!(live, grammar.is_live(instance.as_bytes()), "{seed}: {instance:?}\n{text}");
            let accepts = live && matcher.is_accepting().unwrap();
            assert_eq!(
                accepts,
                grammar.accepts(instance.as_bytes()),
                "{seed}: {instance:?}\n{text}"
            );
            *(if accepts { &mut accepted } else { &mut refused }) += 1;
        }
    }
    assert!(accepted > 1000 && refused > 1000, "{accepted} accepted, {refused} refused");
}

#[test]
fn masks_of_random_grammars_are_the_oracles() {
    let mut compared = 0;
    for seed in 0..500 {
        let mut rng = StdRng::seed_from_u64(seed);
        let Some((grammar, text)) = random_grammar(&mut rng) else { continue };
        let vocabulary = small_vocabulary(&alphabet(), seed);
        let automaton = automaton(&text, &vocabulary);
        let mut matcher = Matcher::new(automaton);
        let mut output = Vec::new();
        for _ in 0..6 {
            // Most tokens die at their first bytes, which many share.
            let mut lives = HashMap::new();
            let mut is_legal = |token: TokenId| {
                if vocabulary.is_end(token) {
                    return grammar.accepts(&output);
                }
                let bytes = vocabulary.bytes(token);
                !bytes.is_empty()
                    && (1..=bytes.len()).all(|length| {
                        *lives.entry(&bytes[..length]).or_insert_with(|| {
                            grammar.is_live(&[&output[..], &bytes[..length]].concat())
                        })
                    })
            };
            let expected: Vec<_> = vocabulary.ids().filter(|&token| is_legal(token)).collect();
            let legal: Vec<_> =
                matcher.mask().map(|mask| mask.iter().collect()).unwrap_or_default();
            assert_eq!(
                legal,
                expected,
                "{seed}: after {:?}\n{text}",
                String::from_utf8_lossy(&output)
            );
            compared += 1;
            if legal.is_empty() {
                break;
            }
            let token = legal[rng.random_range(0..legal.len())];
            let accepted = matcher.accept(token);
            assert!(accepted.is_ok(), "{seed}: {accepted:?} at {}\n{text}", matcher.describe());
            output.extend_from_slice(vocabulary.bytes(token));
            if matcher.is_finished() || output.len() > 20 {
                break;
            }
        }
    }
    assert!(compared > 500, "{compared} masks");
}

#[test]
fn hundreds_of_rules_may_be_open_at_once() {
    use std::fmt::Write as _;

    let mut text = String::from("root ::= r0");
    for i in 1..400 {
        write!(text, " | r{i}").unwrap();
    }
    for i in 0..400 {
        write!(text, "\nr{i} ::= \"a\" r{i}? \"{i}\"").unwrap();
    }
    let automaton = automaton(&text, &small_vocabulary(b"a0123456789", 0));
    for instance in ["a0", "a399", "aaa257257257"] {
        assert!(accepts(&automaton, instance), "{instance}");
    }
    assert!(!accepts(&automaton, "aa1"));
}

#[test]
fn completing_a_deep_text_takes_time_in_proportion_to_its_depth() {
    let vocabulary = small_vocabulary(b"()ab", 0);
    let automaton = automaton("root ::= \"(\" root* \")\" | [ab]", &vocabulary);
    let mut matcher = Matcher::new(automaton);
    let depth = 100_000;
    matcher.accept_bytes("(".repeat(depth).as_bytes()).unwrap();
    assert!(matcher.shortest_completion().unwrap() == ")".repeat(depth).into_bytes());
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("grammars")
}

/// Returns the shipped grammars: name and text, sorted by name.
pub(crate) fn shipped() -> Vec<(String, String)> {
    let mut grammars: Vec<_> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "gbnf"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    grammars.sort();
    grammars
}

/// Returns the texts of `grammars/<name>.<kind>.jsonl`, one JSON string a line.
pub(crate) fn instances(name: &str, kind: &str) -> Vec<String> {
    let path = folder().join(format!("{name}.{kind}.jsonl"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{name}: {line}: {e}")))
        .collect()
}

#[test]
fn shipped_grammars_accept_and_refuse_their_instances() {
    let vocabulary = small_vocabulary(b"ab", 0);
    assert!(shipped().len() >= 6, "the shipped grammars are not found");
    for (name, text) in shipped() {
        let automaton = automaton(&text, &vocabulary);
        for (kind, wanted) in [("accept", true), ("reject", false)] {
            let instances = instances(&name, kind);
            assert!(instances.len() >= 4, "{name}.{kind}.jsonl has too few instances");
            for instance in instances {
                let mut matcher = Matcher::new(automaton.clone());
                let accepts = matcher.accept_bytes(instance.as_bytes()).is_ok()
                    && matcher.is_accepting().unwrap();
                assert_eq!(accepts, wanted, "{name}: {instance:?}");
            }
        }
    }
}

/// Returns whether the grammar of `automaton` accepts `text`.
fn accepts(automaton: &Arc<TokenAutomaton>, text: &str) -> bool {
    let mut matcher = Matcher::new(automaton.clone());
    matcher.accept_bytes(text.as_bytes()).is_ok() && matcher.is_accepting().unwrap()
}

fn shipped_automaton(name: &str) -> Arc<TokenAutomaton> {
    let text = std::fs::read_to_string(folder().join(format!("{name}.gbnf"))).unwrap();
    automaton(&text, &small_vocabulary(b"ab", 0))
}

#[test]
fn the_shipped_json_is_that_of_serde_json() {
    let automaton = shipped_automaton("json");
    let mut rng = StdRng::seed_from_u64(0);
    let mut texts = instances("json", "accept");
    texts.extend(instances("json", "reject"));
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..20_000 {
        // One to three characters of an instance are replaced, removed or doubled.
        let mut text: Vec<char> = texts[rng.random_range(0..texts.len())].chars().collect();
        for _ in 0..rng.random_range(1..4) {
            if text.is_empty() {
                break;
            }
            let at = rng.random_range(0..text.len());
            match rng.random_range(0..3) {
                0 => {
                    text[at] = *b"{}[],:\"\\u0123e.-+ \ntrue"
                        .map(char::from)
                        .get(rng.random_range(0..22))
                        .unwrap()
                }
                1 => drop(text.remove(at)),
                _ => text.insert(at, text[at]),
            }
        }
        let text: String = text.into_iter().collect();
        // RFC 8259 lets halves of surrogate pairs stand, which serde_json does not.
        if text.to_lowercase().contains("\\ud") {
            continue;
        }
        let valid = serde_json::from_str::<serde_json::Value>(&text).is_ok();
        assert_eq!(accepts(&automaton, &text), valid, "{text:?}");
        *(if valid { &mut accepted } else { &mut refused }) += 1;
    }
    assert!(accepted > 1000 && refused > 1000, "{accepted} accepted, {refused} refused");
}

#[test]
fn the_shipped_dates_are_those_of_the_calendar() {
    let automaton = shipped_automaton("iso_date_time");
    let leap = |year: u32| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    for year in (0..10_000).step_by(7).chain([1600, 1700, 1800, 1900, 2000, 2100, 2400]) {
        for (month, day) in
            [(1, 31), (2, 28), (2, 29), (2, 30), (4, 30), (4, 31), (12, 31), (12, 32)]
        {
            let days = match month {
                2 if leap(year) => 29,
                2 => 28,
                4 => 30,
                _ => 31,
            };
            let text = format!("{year:04}-{month:02}-{day:02}T00:00:00Z");
            assert_eq!(accepts(&automaton, &text), day <= days, "{text}");
        }
    }
    for month in 0..=19 {
        for day in 0..=39 {
            let days = [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].get(month).copied();
            let text = format!("2023-{month:02}-{day:02}T00:00:00Z");
            assert_eq!(
                accepts(&automaton, &text),
                day > 0 && days.is_some_and(|days| day <= days),
                "{text}"
            );
        }
    }
}
