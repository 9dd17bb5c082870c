use std::path::PathBuf;

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use super::*;
use crate::error::{ErrorKind, Location};
use crate::frontend::pattern::testing::{
    Derivatives, Ingredients, LETTERS, ends, random_tree, short_texts,
};
use crate::frontend::pattern::{Around, Look, Side};
use crate::ir::chars::{CharSet, write_json_canonical};
use crate::ir::{Expr, UNBOUNDED};

/// A pattern's language in one encoding, to match texts against.
struct Matcher {
    derivatives: Derivatives,
    language: ExprId,
    encoding: Encoding,
}

impl Matcher {
    fn new(pattern: &str, encoding: Encoding) -> Result<Self, Error> {
        let limits = Limits::default();
        let mut arena = Arena::default();
        let language = Pattern::parse(pattern, &limits)?.to_expr(&mut arena, encoding, &limits)?;
        Ok(Self { derivatives: Derivatives::new(arena), language, encoding })
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

#[track_caller]
fn check(pattern: &str, accepted: &[&str], refused: &[&str]) {
    for encoding in [Encoding::Utf8, Encoding::JsonCanonical, Encoding::JsonAny] {
        let mut matcher = Matcher::new(pattern, encoding).unwrap();
        for text in accepted {
            assert!(matcher.matches(text), "{pattern:?} must match {text:?} in {encoding:?}");
        }
        for text in refused {
            assert!(!matcher.matches(text), "{pattern:?} must not match {text:?} in {encoding:?}");
        }
    }
}

#[track_caller]
fn error(pattern: &str) -> Error {
    match Pattern::parse(pattern, &Limits::default()) {
        Ok(_) => panic!("{pattern:?} is no error"),
        Err(error) => error,
    }
}

#[test]
fn a_pattern_matches_anywhere_unless_anchored() {
    check("b", &["b", "abc", "bb"], &["", "ac"]);
    check("^b", &["b", "bc"], &["", "ab"]);
    check("b$", &["b", "ab"], &["", "bc"]);
    check("^b$", &["b"], &["", "ab", "bc", "b\n"]);
    check("", &["", "x"], &[]);
    check("^a|b$", &["ac", "cb", "a", "b"], &["ca", "bc", ""]);
    check("^(?:^a|b$)$", &["a", "b"], &["ab", ""]);
    check("(^|,)x($|,)", &["x", "a,x", "x,", "a,x,b"], &["ax", "xa", ""]);
}

#[test]
fn anchors_may_stand_inside_loops() {
    check(
        r"^(\/?((\.{2})|([a-z0-9\-]*))($|\/))*$",
        &["", "/", "../a/b", "a//b", "/.."],
        &[".", "a/.", "A"],
    );
    check("^(?:(?:^|,)x)*$", &["", "x", ",x", "x,x"], &["xx", "x,", ","]);
    check("(a$)+", &["a", "ba", "aa"], &["ab", ""]);
    check(r"^(?:\w+\b\W*)+$", &["a", "ab cd", "a b"], &["", " a", "é"]);
}

#[test]
fn classes_and_escapes_are_those_of_ecma_262() {
    check(r"^\d$", &["0", "9"], &["a", "\u{7c0}", ""]);
    check(r"^\D$", &["a", "\u{7c0}"], &["0"]);
    check(r"^\w$", &["a", "Z", "_", "5"], &["é", "-"]);
    check(r"^\W$", &["é", "-"], &["a"]);
    check(
        r"^\s$",
        &[" ", "\t", "\u{b}", "\u{feff}", "\u{a0}", "\u{2003}", "\u{2029}"],
        &["\u{1}", "\u{85}", "\u{180e}", "\u{200b}"],
    );
    check(
        r"^.$",
        &["a", "\u{85}", "\u{1f600}", "\u{b}"],
        &["\n", "\r", "\u{2028}", "\u{2029}", ""],
    );
    check(r"^\t\n\v\f\r\0\cA\ca$", &["\t\n\u{b}\u{c}\r\0\u{1}\u{1}"], &[]);
    check(r"^\x41\u0042\u{43}\u{0000044}$", &["ABCD"], &[]);
    check(r"^\uD83D\uDE00$", &["\u{1f600}"], &["\u{1f601}"]);
    check(r"^[\uD83D\uDE00-\uD83D\uDE02]$", &["\u{1f601}"], &["\u{1f603}"]);
    check(r"^[\ud800-\udfff]$", &[], &["\u{1f600}", "a", "\u{d7ff}", "\u{e000}"]);
    check(r"^[^\ud800-\udfff]$", &["\u{1f600}", "a"], &[""]);
    check(r"^\-\/\_\@\ \é\.$", &["-/_@ é."], &[]);
    check("^[]$", &[], &["", "a", "]"]);
    check("^[^]$", &["a", "\n", "\u{1f600}"], &["", "aa"]);
    check(r"^[\w-.]+$", &["a-.", "-"], &[",", ""]);
    check(r"^[a-\d]+$", &["a-5"], &["b"]);
    check(r"^[a\-z]+$", &["a-z"], &["b"]);
    check(r"^[-a]+$", &["a-"], &["b"]);
    check(r"^[a-]+$", &["a-"], &["b"]);
    check(r"^[\b]$", &["\u{8}"], &["b"]);
    check(r"^[^a-c\s]$", &["d", "-"], &["a", "c", " "]);
    check(r"^[\]\\^]+$", &["]\\^"], &["["]);
    check("^a]{$", &["a]{"], &["a"]);
    check("^a{b}{1$", &["a{b}{1"], &[]);
    check("^a{$", &["a{"], &[]);
    check("^{}$", &["{}"], &[""]);
}

#[test]
fn unicode_properties_have_their_names() {
    check(r"^\p{Letter}+$", &["aé字"], &["1", ""]);
    check(r"^\p{Lu}\p{Script=Greek}\p{scx=Deva}\P{L}$", &["Aαद1"], &["aαद1"]);
    check(r"^[\p{Lu}\d]+$", &["A1É"], &["a"]);
    check(r"^\p{Emoji_Presentation}$", &["\u{1f600}"], &["1"]);
    for name in ["Nothing", "Greek", "Script=Nothing", "Lu=Lu"] {
        let error = error(&format!(r"a\p{{{name}}}"));
        let feature = format!(r"\p{{{name}}}").into();
        assert_eq!(error.kind(), &ErrorKind::UnsupportedFeature { feature });
    }
}

#[test]
fn quantifiers_groups_and_alternatives() {
    check("^a{2}b{1,2}c{2,}d?e*?f+?$", &["aabccf", "aabbcccdeef"], &["abccf", "aabbbccf"]);
    check("^(a|bc)+$", &["a", "abc", "bcbca"], &["", "b"]);
    check("^(?<year>\\d{4})-(?:x|)$", &["2020-", "2020-x"], &["2020"]);
    check("^(|a)$", &["", "a"], &["aa"]);
    check("^a{0}$", &[""], &["a"]);
    check("^(a{0,2}){0,2}$", &["", "aaaa"], &["aaaaa"]);
    check("^(?=a)*b$", &["b"], &["a"]);
    check("^(?=a){2}[ab]$", &["a"], &["b"]);
}

#[test]
fn look_around_is_exact() {
    check("^(?!@@)[@a-z]+$", &["@a", "a@@"], &["@@a", "@@", ""]);
    check("^(?=.*[0-9])(?=.*[A-Z]).{4,}$", &["a1Bc", "A1xx"], &["abcd", "A1x", "1234"]);
    check("^((?!mode)(?!Mode).)*$", &["", "mod", "mmod e"], &["mode", "xMode", "mmode"]);
    check(
        "^(?!^lucene\\.|builtin\\.|mongodb\\.).*",
        &["", "lucene", "xbuiltin."],
        &["lucene.", "builtin.x"],
    );
    check("<!--(?:(?!-->)[^])*-->", &["<!---->", "x<!-- a -- b -->y"], &["<!-- a --", "<!--->"]);
    check(
        r"^@([\da-z](?:(?!.*--)[\da-z-]*[\da-z])?)/x$",
        &["@a/x", "@a-b/x"],
        &["@a--b/x", "@a-/x"],
    );
    check("(?<=a)b", &["ab", "cab"], &["b", "cb"]);
    check("(?<!a)b", &["b", "cb", "abb"], &["ab", "a"]);
    check("(?<=foo)bar", &["foobar", "xfoobarx"], &["bar", "fobar", "foo"]);
    check("(?<!foo)bar", &["bar", "fobar", "foobarbar"], &["foobar", "foo"]);
    check("^.*(?<!/|\\.js)$", &["a", "", "js"], &["a/", "a.js"]);
    check("(?<=a+)b", &["aab"], &["cb"]);
    check("(?<=a(?=bc)b)c", &["abc"], &["bc"]);
    check("(?=)a(?!)|b", &["b"], &["a"]);
}

#[test]
fn word_boundaries_are_ascii() {
    check(r"\bfoo\b", &["foo", "a foo.", "éfooé"], &["food", "xfoo"]);
    check(r"^\B.\B$", &[".", "é"], &["a", ""]);
    check(r"\b", &["a", ".a"], &["", "é."]);
}

#[test]
fn what_is_not_translated_is_refused_with_its_place() {
    for (pattern, feature, column) in [
        (r"(a)\1", "back-reference", 4),
        (r"(?<n>a)\k<n>", "back-reference", 8),
        ("a(?i)b", "inline modifiers", 2),
        ("(?i:b)", "inline modifiers", 1),
        ("(?-s:b)", "inline modifiers", 1),
        ("é(?P<n>b)", "(?P…) group", 2),
        ("(?>b)", "atomic group", 1),
        ("(?#b)", "(?#…) comment", 1),
        ("a{4294967295}", "a quantifier above 4,294,967,294", 2),
    ] {
        let error = error(pattern);
        assert_eq!(error.kind(), &ErrorKind::UnsupportedFeature { feature: feature.into() });
        let Some(Location::Text(span)) = error.location() else { panic!("{error:?}") };
        assert_eq!(span.column, column, "{pattern:?}");
    }
    for (pattern, column) in [
        ("(a", 1),
        ("a(b(c)", 2),
        ("a)", 2),
        ("[a", 1),
        (r"[\]", 1),
        ("a\\", 2),
        ("*a", 1),
        ("a**", 3),
        ("a{2}{3}", 5),
        ("^*", 2),
        (r"\b+", 3),
        ("(?<=a)*", 7),
        ("a{3,2}", 2),
        ("a{,3}", 2),
        ("{2}", 1),
        ("[b-a]", 2),
        (r"\A", 1),
        (r"a\Z", 2),
        (r"\a", 1),
        (r"\x4", 1),
        (r"\u12", 1),
        (r"\u{110000}", 1),
        (r"\u{}", 1),
        (r"\u{41", 1),
        (r"\c1", 1),
        (r"\01", 1),
        (r"[\1]", 2),
        (r"\p", 1),
        (r"\pL", 1),
        ("(?<1>a)", 1),
        ("(?<a", 1),
        ("(?", 1),
        ("(?*)", 1),
        (r"[\B]", 2),
    ] {
        let error = error(pattern);
        assert_eq!(error.kind(), &ErrorKind::Syntax, "{pattern:?}: {error}");
        let Some(Location::Text(span)) = error.location() else { panic!("{error:?}") };
        assert_eq!(span.column, column, "{pattern:?}: {error}");
    }
}

#[test]
fn plain_patterns_stay_small() {
    let limits = Limits::default();
    let expr = |pattern: &str| {
        let mut arena = Arena::default();
        let pattern = Pattern::parse(pattern, &limits).unwrap();
        let id = pattern.to_expr(&mut arena, Encoding::Utf8, &limits).unwrap();
        (arena, id)
    };
    let (arena, id) = expr("^[a-z]+$");
    assert!(matches!(*arena.get(id), Expr::Repeat { body, min: 1, max: UNBOUNDED }
            if matches!(arena.get(body), Expr::Bytes(_))));
    let (arena, id) = expr("^(?:[a-z]{2,20000})$");
    assert!(matches!(arena.get(id), Expr::Repeat { min: 2, max: 20_000, .. }));
    // Idle ends of a pattern that matches anywhere say nothing.
    let (mut arena, id) = expr(".*a.*");
    let any = crate::ir::chars::any_text(&mut arena, Encoding::Utf8);
    let a = arena.byte(b'a');
    let expected = arena.concat(&[any, a, any]);
    assert_eq!(id, expected);
    let (mut arena, id) = expr("^x-");
    let any = crate::ir::chars::any_text(&mut arena, Encoding::Utf8);
    assert_eq!(id, arena.literal_then(b"x-", any));
    for pattern in ["", "a*", "(?:x|y?)", ".*"] {
        let (mut arena, id) = expr(pattern);
        assert_eq!(id, crate::ir::chars::any_text(&mut arena, Encoding::Utf8), "{pattern:?}");
    }
}

#[test]
fn facts_tell_literal_and_anchored_patterns() {
    let parse = |pattern: &str| Pattern::parse(pattern, &Limits::default()).unwrap();
    assert_eq!(parse("^abc$").exact_text().as_deref(), Some("abc"));
    assert_eq!(parse(r"^(a\.)b$").exact_text().as_deref(), Some("a.b"));
    assert_eq!(parse("^$").exact_text().as_deref(), Some(""));
    assert_eq!(parse("^abc").exact_text(), None);
    assert_eq!(parse("^a.c$").exact_text(), None);
    assert_eq!(parse("^x-").exact_prefix().as_deref(), Some("x-"));
    assert_eq!(parse("^").exact_prefix().as_deref(), Some(""));
    assert_eq!(parse("x-").exact_prefix(), None);
    assert_eq!(parse("^x$").exact_prefix(), None);
    assert!(parse("^a|b$").exact_prefix().is_none());
    assert!(parse("^a+$").is_anchored());
    assert!(parse("^a$|^b$").is_anchored());
    assert!(!parse("^a|b$").is_anchored());
    assert!(!parse("^a|^b$").is_anchored());
}

#[test]
fn limits_bound_length_nesting_work_and_copies() {
    let exceeded = |pattern: &str, limits: &Limits| {
        let mut arena = Arena::new(limits.expressions);
        let result = Pattern::parse(pattern, limits)
            .and_then(|pattern| pattern.to_expr(&mut arena, Encoding::JsonAny, limits));
        match result.unwrap_err().kind() {
            ErrorKind::BudgetExceeded(budget) => budget.limit,
            other => panic!("{other:?}"),
        }
    };
    let limits = Limits::default();
    assert_eq!(exceeded("aaaa", &limits.clone().max_pattern_bytes(3)), "pattern_bytes");
    assert_eq!(exceeded(&"(".repeat(130_000), &limits), "source_depth");
    assert_eq!(exceeded(&r"\p{L}".repeat(200_000), &limits), "compile_work");
    assert_eq!(exceeded(r"(?:\ba){20000}", &limits), "unroll");
    assert_eq!(exceeded("(?:(?:(?!ab)[^]){100}){101}", &limits), "unroll");
    assert_eq!(
        exceeded("(a{2,200}b|[^]{20,30}){2,10}", &limits.clone().max_expressions(20)),
        "expressions"
    );
    let deep = format!("{}a{}", "(?=a".repeat(40), ")".repeat(40));
    let pattern = Pattern::parse(&format!("(?:{deep}a)*"), &limits).unwrap();
    let error = pattern.to_expr(&mut Arena::default(), Encoding::Utf8, &limits).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::UnsupportedFeature { .. }));
}

/// Returns what 20,000 characters, no two of which are neighbours, look like between two texts.
fn alternatives(before: &str, after: &str) -> String {
    let chars = (0x4e00..).step_by(2).filter_map(char::from_u32).take(20_000);
    chars.map(|c| format!("{before}{c}{after}")).collect()
}

#[test]
fn deep_and_long_patterns_need_no_stack_and_little_time() {
    let n = 19_000;
    let patterns = [
        format!("{}a{}", "(".repeat(n), ")".repeat(n)),
        format!("{}a{}", "(?:b|".repeat(n), ")*".repeat(n)),
        format!("{}a{}", "(?=b|".repeat(n), ")".repeat(n)),
        format!("^{}a{}$", "(?:b?".repeat(n), ")".repeat(n)),
        format!(r"^{}\b$", "a?".repeat(n)),
        "{".repeat(100_000),
        "a|".repeat(100_000),
        "[".repeat(100_000) + "]",
        format!("{}a{}", "(".repeat(n), "b)".repeat(n)),
        format!("{}ab{}", "(".repeat(n), "|cd)".repeat(n)),
        alternatives("", "|"),
        alternatives("(?<=", ")a|"),
        alternatives("(?:(?<=", ")a)*"),
        alternatives("(?!(?!", r"|\b)|x)"),
        alternatives(r"[\p{L}", "]"),
        format!("^(?:{})*$", alternatives(r"(?!a\b", ")")),
    ];
    let run = move || {
        for pattern in patterns {
            let limits = Limits::default().max_compile_work(5_000_000);
            let mut arena = Arena::new(limits.expressions);
            let result = Pattern::parse(&pattern, &limits)
                .and_then(|p| p.to_expr(&mut arena, Encoding::JsonCanonical, &limits));
            if let Err(error) = result {
                assert!(matches!(error.kind(), ErrorKind::BudgetExceeded(_)), "{error}");
            }
        }
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn(run).unwrap().join().unwrap();
}

fn print_set(set: &CharSet) -> String {
    let ranges: String = set
        .iter()
        .map(|r| format!(r"\u{{{:x}}}-\u{{{:x}}}", u32::from(r.start()), u32::from(r.end())))
        .collect();
    format!("[{ranges}]")
}

fn print_look(look: &Look) -> String {
    if look.cases.is_empty() {
        return "[]".to_owned();
    }
    let side = |side: &Side, ahead: bool| {
        let direction = if ahead { "" } else { "<" };
        let edge = if ahead { "$" } else { "^" };
        let edge = if side.edge { format!("|{edge}") } else { String::new() };
        format!("(?{direction}={}{edge})", print_set(&side.set))
    };
    let cases: Vec<_> =
        look.cases.iter().map(|(b, a)| format!("{}{}", side(b, false), side(a, true))).collect();
    format!("(?:{})", cases.join("|"))
}

fn print(tree: &Tree, node: NodeId) -> String {
    let all = |parts: &[NodeId]| parts.iter().map(|&p| print(tree, p)).collect::<Vec<_>>();
    match tree.node(node) {
        Node::Empty => String::new(),
        Node::Set(set) => print_set(set),
        Node::Concat(parts) => all(parts).concat(),
        Node::Alt(parts) => format!("(?:{})", all(parts).join("|")),
        Node::Repeat { body, min, max: UNBOUNDED } => {
            format!("(?:{}){{{min},}}", print(tree, *body))
        }
        Node::Repeat { body, min, max } => format!("(?:{}){{{min},{max}}}", print(tree, *body)),
        Node::Look(look) => print_look(look),
        Node::Around(Around { ahead, negated, body }) => {
            let direction = if *ahead { "" } else { "<" };
            let sign = if *negated { "!" } else { "=" };
            format!("(?{direction}{sign}{})", print(tree, *body))
        }
    }
}

#[test]
fn printed_trees_parse_to_what_they_say() {
    let mut rng = ChaCha8Rng::seed_from_u64(21);
    let texts = short_texts(3, 3);
    let with = Ingredients { looks: true, ahead: true, behind: true };
    for _ in 0..400 {
        let mut tree = Tree::default();
        let size = rng.random_range(1..10);
        let root = random_tree(&mut tree, &mut rng, size, with);
        let text = print(&tree, root);
        let parsed = Pattern::parse(&text, &Limits::default()).unwrap();
        for sample in &texts {
            let chars: Vec<char> = sample.chars().collect();
            for start in 0..=chars.len() {
                assert_eq!(
                    ends(&parsed.tree, parsed.root, &chars, start),
                    ends(&tree, root, &chars, start),
                    "{text:?} on {sample:?}"
                );
            }
        }
    }
}

/// A random pattern, and the same in the dialect of the `regex` crate.
fn random_pattern(rng: &mut ChaCha8Rng, size: u32) -> (String, String) {
    const ATOMS: &[(&str, &str)] = &[
        ("a", "a"),
        ("b", "b"),
        ("-", "-"),
        (r"\-", "-"),
        ("é", "é"),
        (".", "."),
        (r"\w", "[0-9A-Za-z_]"),
        (r"\W", "[^0-9A-Za-z_]"),
        ("[ab]", "[ab]"),
        ("[^a]", "[^a]"),
        (r"[^\w-]", "[^0-9A-Za-z_-]"),
        ("", ""),
        (r"\u0061", "a"),
        ("[^]", "(?s:.)"),
        (r"\p{Ll}", r"\p{Ll}"),
        ("^", r"\A"),
        ("$", r"\z"),
        (r"\b", r"(?-u:\b)"),
        (r"\B", r"(?-u:\B)"),
    ];
    const REPEATS: &[&str] = &["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "+?", "??", "{0}"];
    if size <= 1 {
        let (ours, theirs) = ATOMS.choose(rng).unwrap();
        return ((*ours).to_owned(), (*theirs).to_owned());
    }
    let left = rng.random_range(1..size);
    match rng.random_range(0..8) {
        kind @ 0..=5 => {
            let (a, x) = random_pattern(rng, left);
            let (b, y) = random_pattern(rng, size - left);
            if kind < 4 {
                (a + &b, x + &y)
            } else {
                (format!("(?:{a}|{b})"), format!("(?:{x}|{y})"))
            }
        }
        _ => {
            let (a, x) = random_pattern(rng, size - 1);
            let repeat = REPEATS.choose(rng).unwrap();
            (format!("({a}){repeat}"), format!("({x}){repeat}"))
        }
    }
}

#[test]
fn random_patterns_match_exactly_what_the_regex_crate_finds() {
    let mut rng = ChaCha8Rng::seed_from_u64(22);
    let letters = [&LETTERS[..], &['\n', '"']].concat();
    let (mut accepted, mut refused) = (0, 0);
    for i in 0..1000 {
        let size = rng.random_range(1..12);
        let (pattern, theirs) = random_pattern(&mut rng, size);
        let oracle = regex::Regex::new(&theirs).unwrap();
        let encoding = if i % 2 == 0 { Encoding::Utf8 } else { Encoding::JsonCanonical };
        let mut matcher = Matcher::new(&pattern, encoding).unwrap();
        for _ in 0..40 {
            let length = rng.random_range(0..7);
            let text: String = (0..length).map(|_| *letters.choose(&mut rng).unwrap()).collect();
            // `is_match` stops at an empty match inside a character and calls it none.
            let expected = oracle.find(&text).is_some();
            if expected {
                accepted += 1;
            } else {
                refused += 1;
            }
            assert_eq!(matcher.matches(&text), expected, "{pattern:?} on {text:?}");
        }
    }
    assert!(accepted > 5_000 && refused > 5_000, "{accepted} accepted, {refused} refused");
}

/// The folder of public suites, where it lies beside the repository or above it.
fn suites() -> Option<PathBuf> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let found = here.ancestors().map(|a| a.join("shared/suites")).find(|path| path.is_dir());
    if found.is_none() {
        println!("skipped: there is no shared/suites beside the repository");
    }
    found
}

#[test]
fn the_official_suite_agrees_on_patterns() {
    let Some(suites) = suites() else { return };
    let folder = suites.join("json-schema-test-suite/tests/draft2020-12");
    let mut checked = 0;
    for file in ["pattern.json", "optional/ecmascript-regex.json", "optional/non-bmp-regex.json"] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let groups: Value = serde_json::from_str(&text).unwrap();
        for group in groups.as_array().unwrap() {
            let schema = &group["schema"];
            let by_name = schema["patternProperties"].as_object();
            let Some(pattern) =
                schema["pattern"].as_str().or_else(|| Some(by_name?.keys().next()?.as_str()))
            else {
                continue;
            };
            let mut matcher = Matcher::new(pattern, Encoding::JsonCanonical).unwrap();
            for test in group["tests"].as_array().unwrap() {
                let valid = test["valid"].as_bool().unwrap();
                let texts: Vec<&str> = match &test["data"] {
                    Value::String(text) => vec![text],
                    // With `additionalProperties: false` every name must match, otherwise the value
                    // of a name that does is to be an integer.
                    Value::Object(members) if schema["additionalProperties"] == false => {
                        members.keys().map(String::as_str).collect()
                    }
                    _ => continue,
                };
                checked += 1;
                assert_eq!(
                    texts.iter().all(|text| matcher.matches(text)),
                    valid,
                    "{pattern:?} on {texts:?}"
                );
            }
        }
    }
    assert!(checked > 70, "{checked}");
}

fn patterns_of(schema: &Value, patterns: &mut Vec<String>) {
    let mut stack = vec![schema];
    while let Some(value) = stack.pop() {
        match value {
            Value::Object(members) => {
                patterns.extend(members.get("pattern").and_then(Value::as_str).map(str::to_owned));
                if let Some(Value::Object(by_name)) = members.get("patternProperties") {
                    patterns.extend(by_name.keys().cloned());
                }
                stack.extend(members.values());
            }
            Value::Array(items) => stack.extend(items),
            _ => {}
        }
    }
}

#[test]
fn the_patterns_of_public_schemas_are_translated() {
    let Some(suites) = suites() else { return };
    let mut patterns = Vec::new();
    for entry in std::fs::read_dir(suites.join("maskbench")).unwrap() {
        for line in std::fs::read_to_string(entry.unwrap().path()).unwrap().lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            patterns_of(&case["schema"], &mut patterns);
        }
    }
    patterns.sort_unstable();
    patterns.dedup();
    let limits = Limits::default();
    let mut refused = Vec::new();
    for text in &patterns {
        let mut arena = Arena::new(limits.expressions);
        let result = Pattern::parse(text, &limits)
            .and_then(|pattern| pattern.to_expr(&mut arena, Encoding::JsonCanonical, &limits));
        if let Err(error) = result {
            refused.push(format!("{text:?}: {error}"));
        } else {
            assert!(arena.len() < 5_000, "{text:?} takes {} expressions", arena.len());
        }
    }
    let report = refused.join("\n");
    println!("{} of {} patterns refused\n{report}", refused.len(), patterns.len());
    assert!(refused.len() * 200 <= patterns.len(), "{report}");
}
