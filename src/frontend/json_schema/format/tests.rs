use std::path::PathBuf;

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::*;
use crate::frontend::pattern::testing::Derivatives;
use crate::ir::chars::write_json_canonical;

/// A format's language, to match texts against.
struct Matcher {
    derivatives: Derivatives,
    language: ExprId,
    encoding: Encoding,
}

impl Matcher {
    fn new(name: &str, encoding: Encoding) -> Self {
        Self::on_side(name, Side::Within, encoding)
    }

    fn on_side(name: &str, side: Side, encoding: Encoding) -> Self {
        let mut arena = Arena::default();
        let language = format(&mut arena, name, side, encoding).unwrap().unwrap();
        Self { derivatives: Derivatives::new(arena), language, encoding }
    }

    fn matches(&mut self, text: &str) -> bool {
        let mut bytes = Vec::new();
        match self.encoding {
            Encoding::Utf8 => bytes.extend_from_slice(text.as_bytes()),
            _ => write_json_canonical(text, &mut bytes),
        }
        self.derivatives.matches(self.language, &bytes)
    }
}

/// Returns whether a host name is valid in the suite and refused here: the narrowing that the module's
/// documentation tells.
fn is_narrowed(text: &str) -> bool {
    text.split('.').any(|label| label.get(2..4) == Some("--"))
}

#[test]
fn the_official_suite_agrees_on_formats() {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let Some(suites) = here.ancestors().map(|a| a.join("shared/suites")).find(|p| p.is_dir())
    else {
        println!("skipped: there is no shared/suites beside the repository");
        return;
    };
    for draft in ["draft2020-12", "draft2019-09", "draft7", "draft6", "draft4"] {
        let folder =
            suites.join("json-schema-test-suite/tests").join(draft).join("optional/format");
        let (mut checked, mut narrowed) = (0, 0);
        for name in STANDARD {
            let Ok(text) = std::fs::read_to_string(folder.join(format!("{name}.json"))) else {
                continue;
            };
            let mut matcher = Matcher::new(name, Encoding::JsonAny);
            let mut around = Matcher::on_side(name, Side::Around, Encoding::JsonAny);
            let groups: Value = serde_json::from_str(&text).unwrap();
            for test in
                groups.as_array().unwrap().iter().flat_map(|g| g["tests"].as_array().unwrap())
            {
                let (Some(text), Some(valid)) = (test["data"].as_str(), test["valid"].as_bool())
                else {
                    continue;
                };
                checked += 1;
                let matched = matcher.matches(text);
                // What the suite calls valid must not pass for the negation of the format.
                assert!(around.matches(text) || !valid, "{draft}: not {name} {text:?}");
                if valid && !matched && is_narrowed(text) {
                    narrowed += 1;
                } else {
                    assert_eq!(matched, valid, "{draft}: {name} {text:?}: {}", test["description"]);
                }
            }
        }
        println!("{draft}: {checked} texts, {narrowed} valid ones not generated");
        assert!(checked > 50 && narrowed <= 20, "{checked} {narrowed}");
    }
}

/// Changes one place of a text.
fn mutate(text: &str, rng: &mut ChaCha8Rng) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let other = *['0', '1', '9', 'a', 'g', '-', ':', '.', '/', '@', ' ', 'é', '%', '[', '#']
        .choose(rng)
        .unwrap();
    let at = rng.random_range(0..=chars.len());
    match rng.random_range(0..3) {
        0 => chars.insert(at, other),
        1 if at < chars.len() => chars[at] = other,
        _ if at < chars.len() => {
            chars.remove(at);
        }
        _ => chars.push(other),
    }
    chars.into_iter().collect()
}

#[test]
fn random_texts_are_judged_as_the_jsonschema_crate_does() {
    let mut rng = ChaCha8Rng::seed_from_u64(31);
    for name in STANDARD {
        // The one needs a feature of the crate that is off; of the other there is a part only.
        if name == "idn-email" || name == "regex" {
            continue;
        }
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(
                &json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "format": name}),
            )
            .unwrap();
        let mut matcher = Matcher::new(name, Encoding::Utf8);
        let (mut generated, mut invalid) = (0, 0);
        for _ in 0..400 {
            let language = matcher.language;
            let Some(text) = matcher.derivatives.random_text(language, 120, &mut rng) else {
                continue;
            };
            let text = String::from_utf8(text).unwrap();
            generated += 1;
            assert!(validator.is_valid(&json!(text)), "{name} generates {text:?}");
            let changed = mutate(&text, &mut rng);
            let valid = validator.is_valid(&json!(changed));
            invalid += usize::from(!valid);
            assert_eq!(matcher.matches(&changed), valid, "{name} {changed:?}");
        }
        println!("{name}: {generated} generated, {invalid} invalid neighbours");
        assert!(generated > 50, "{name}: {generated}");
    }
}

/// Returns whether a text is of a registered format, by other means.
fn is_registered(name: &str, text: &str) -> bool {
    use base64::Engine;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
    let time = |text: &str| {
        regex::Regex::new(r"^([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.[0-9]+)?$").unwrap().is_match(text)
    };
    // Digits as the language writes them: no sign, no zeros before them.
    let plain = |text: &str| regex::Regex::new("^(0|-?[1-9][0-9]*)$").unwrap().is_match(text);
    match name {
        "byte" => STANDARD.decode(text).is_ok(),
        "base64url" => URL_SAFE.decode(text).is_ok() || URL_SAFE_NO_PAD.decode(text).is_ok(),
        "char" => text.chars().count() == 1,
        "int64" => plain(text) && text.parse::<i64>().is_ok(),
        "uint64" => plain(text) && text.parse::<u64>().is_ok(),
        "ip" => text.parse::<std::net::IpAddr>().is_ok(),
        "time-local" | "partial-time" => time(text),
        _ => text.split_once(['t', 'T']).is_some_and(|(date, rest)| {
            Matcher::new("date", Encoding::Utf8).matches(date) && time(rest)
        }),
    }
}

#[test]
fn registered_formats_are_judged_as_decoders_do() {
    let mut rng = ChaCha8Rng::seed_from_u64(33);
    for name in REGISTERED {
        let mut matcher = Matcher::new(name, Encoding::Utf8);
        let mut around = Matcher::on_side(name, Side::Around, Encoding::Utf8);
        let (mut generated, mut invalid) = (0, 0);
        for _ in 0..300 {
            let language = matcher.language;
            let Some(text) = matcher.derivatives.random_text(language, 60, &mut rng) else {
                continue;
            };
            let text = String::from_utf8(text).unwrap();
            generated += 1;
            assert!(is_registered(name, &text), "{name} generates {text:?}");
            assert!(around.matches(&text), "{name} {text:?}");
            let changed = mutate(&text, &mut rng);
            let valid = is_registered(name, &changed);
            invalid += usize::from(!valid);
            assert_eq!(matcher.matches(&changed), valid, "{name} {changed:?}");
        }
        assert!(generated > 50 && invalid > 5, "{name}: {generated} {invalid}");
    }
    for (name, text) in [
        ("byte", "AB=="),
        ("base64url", "_-9"),
        ("int64", "+0042"),
        ("uint64", "-0"),
        ("time-local", "23:59:60"),
        ("partial-date-time", "2016-12-31T23:59:60"),
        ("relative-json-pointer", "0+1/a"),
        ("hostname", "xn--nxasmq6b"),
        ("email", "a@xn--nxasmq6b"),
    ] {
        // Of the format by one reading and not by another: neither asserted nor taken for its negation.
        assert!(!Matcher::new(name, Encoding::Utf8).matches(text), "{name} {text}");
        assert!(
            Matcher::on_side(name, Side::Around, Encoding::Utf8).matches(text),
            "{name} {text}"
        );
    }
    for around in [i128::from(i64::MIN), i128::from(i64::MAX), 0, i128::from(u64::MAX)] {
        for number in around - 30..around + 30 {
            for name in ["int64", "uint64"] {
                let text = number.to_string();
                let matched = Matcher::new(name, Encoding::Utf8).matches(&text);
                assert_eq!(matched, is_registered(name, &text), "{name} {text}");
            }
        }
    }
}

#[test]
fn generated_regular_expressions_are_valid() {
    let mut rng = ChaCha8Rng::seed_from_u64(34);
    let limits = Limits::default();
    let mut matcher = Matcher::new("regex", Encoding::Utf8);
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(
            &json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "format": "regex"}),
        )
        .unwrap();
    for _ in 0..400 {
        let language = matcher.language;
        let Some(text) = matcher.derivatives.random_text(language, 40, &mut rng) else { continue };
        let text = String::from_utf8(text).unwrap();
        if let Err(error) = Pattern::parse(&text, &limits) {
            // Its limits are its own: what is too large is not wrong.
            assert_ne!(error.kind(), &ErrorKind::Syntax, "{text:?}: {error}");
        }
    }
    for text in [
        "",
        "^a.*b$",
        r"^\d{4}-\d{2}(?:-\d{2})?$",
        r"[^\]\\]+",
        r"(?<!a)(?=b|(c)*?)",
        r"[a-z_\-.]{1,20}",
        r"\u{1F600}\x41\p{Lu}",
        "a{3}|b{2,}|c{2,10}?",
        r"^(([a-z]+)\.)+$",
        "[-a]",
        "[+-]",
        "[]",
        "[^]",
        r"\.test\.js$",
        "[0-9a-fA-F]",
        "[!-~]",
        r"\/",
    ] {
        assert!(matcher.matches(text), "{text:?}");
        assert!(validator.is_valid(&json!(text)), "{text:?}");
    }
    for text in [
        "(",
        "a)",
        "[",
        "*",
        "a**",
        "a{2,1}",
        "a{10,9}",
        "a{100,20}",
        "[b-a]",
        "[~-!]",
        r"\",
        r"\u{110000}",
        "(?a)",
        "a|*",
        "^*",
        "(?=a)*",
        "{",
        "}",
        "]",
        r"\a",
        r"[\d-z]",
        "((a)",
    ] {
        assert!(!matcher.matches(text), "{text:?}");
    }
}

#[test]
fn dates_are_those_of_the_gregorian_calendar() {
    let mut matcher = Matcher::new("date", Encoding::Utf8);
    for year in 0..10_000_u32 {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        assert!(matcher.matches(&format!("{year:04}-02-28")));
        assert_eq!(matcher.matches(&format!("{year:04}-02-29")), leap, "{year}");
        assert!(!matcher.matches(&format!("{year:04}-02-30")));
    }
    for month in 0..100 {
        for day in 0..100 {
            let last = match month {
                1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
                4 | 6 | 9 | 11 => 30,
                2 => 28,
                _ => 0,
            };
            let valid = (1..=last).contains(&day);
            assert_eq!(
                matcher.matches(&format!("2023-{month:02}-{day:02}")),
                valid,
                "{month} {day}"
            );
        }
    }
}

#[test]
fn a_leap_second_is_at_23_59_utc_and_nowhere_else() {
    let mut matcher = Matcher::new("time", Encoding::Utf8);
    let mut rng = ChaCha8Rng::seed_from_u64(32);
    for local in 0..1440_i32 {
        for _ in 0..8 {
            let east = (local + 1) % 1440;
            let west = 1439 - local;
            let candidates =
                [east, west, rng.random_range(0..1440), (east + 60) % 1440, (west + 1) % 1440];
            let offset = *candidates.choose(&mut rng).unwrap();
            for (sign, utc) in [('+', local - offset), ('-', local + offset)] {
                let text = format!(
                    "{:02}:{:02}:60{sign}{:02}:{:02}",
                    local / 60,
                    local % 60,
                    offset / 60,
                    offset % 60
                );
                assert_eq!(matcher.matches(&text), utc.rem_euclid(1440) == 1439, "{text}");
            }
        }
    }
}

#[test]
fn lengths_of_host_names_and_mailboxes_are_bounded() {
    let mut matcher = Matcher::new("hostname", Encoding::JsonCanonical);
    let label = |n: usize| "a".repeat(n);
    assert!(matcher.matches(&label(63)));
    assert!(!matcher.matches(&label(64)));
    let long = [label(63), label(63), label(63), label(61)].join(".");
    assert_eq!(long.len(), 253);
    assert!(matcher.matches(&long));
    assert!(!matcher.matches(&(long.clone() + "a")));
    assert!(matcher.matches("a--b.b-c.1"));
    for text in ["ab--c", "xn--a", "a.ab--cd", "-a", "a-", "a-.b"] {
        assert!(!matcher.matches(text), "{text}");
    }
    let mut matcher = Matcher::new("email", Encoding::JsonCanonical);
    assert!(matcher.matches(&format!("{}@{long}", label(64))));
    assert!(!matcher.matches(&format!("{}@a", label(65))));
    assert!(matcher.matches(r#""a\"b c"@[ipv6:1::2]"#));
    assert!(!matcher.matches("a@[IPv6:1:2:3:4:5:6:7::]"));
    assert!(!matcher.matches("a@[tag:content]"));
}

#[test]
fn formats_without_a_language_are_told_by_name() {
    let mut arena = Arena::default();
    let name = "idn-hostname";
    assert!(!is_known(name) && not_regular(name).is_some());
    let error = format(&mut arena, name, Side::Within, Encoding::Utf8).unwrap_err();
    let feature = format!("format `{name}`").into();
    assert_eq!(error.kind(), &ErrorKind::UnsupportedFeature { feature });
    for name in ["", "Date", "int32", "date-time "] {
        assert!(!is_known(name) && not_regular(name).is_none());
        assert!(format(&mut arena, name, Side::Within, Encoding::Utf8).unwrap().is_none());
    }
    for name in STANDARD.into_iter().chain(REGISTERED) {
        assert!(is_known(name) && !is_annotation(name));
    }
    for name in ANNOTATIONS {
        assert!(!is_known(name) && is_annotation(name));
    }
}

#[test]
fn formats_stay_small() {
    for name in STANDARD.into_iter().chain(REGISTERED) {
        let mut arena = Arena::default();
        format(&mut arena, name, Side::Within, Encoding::JsonAny).unwrap();
        println!("{name}: {}", arena.len());
        assert!(arena.len() < 4_000, "{name} takes {} expressions", arena.len());
    }
}
