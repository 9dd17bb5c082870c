//! The front end alone: its errors, its print-outs, and its texts against the oracle's.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{compile, compile_from};
use crate::error::{Error, ErrorKind, Location};
use crate::ids::ExprId;
use crate::ir::{Expr, Grammar, UNBOUNDED};
use crate::limits::Limits;

#[path = "../../../tests/support/gbnf.rs"]
mod oracle;

fn compiled(text: &str) -> Grammar {
    compile(text, &Limits::default()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn error(text: &str) -> Error {
    match compile(text, &Limits::default()) {
        Ok(_) => panic!("compiled:\n{text}"),
        Err(error) => error,
    }
}

/// Where each rule of a grammar can end from each start, like the oracle's table but over the IR.
struct Naive<'a> {
    grammar: &'a Grammar,
    text: &'a [u8],
    table: Vec<Vec<u128>>,
}

impl<'a> Naive<'a> {
    fn accepts(grammar: &'a Grammar, text: &'a [u8]) -> bool {
        let table = vec![vec![0; text.len() + 1]; grammar.rules.len()];
        let mut naive = Self { grammar, text, table };
        loop {
            let next: Vec<Vec<_>> = grammar
                .rules
                .iter()
                .map(|rule| {
                    let body = rule.body.unwrap();
                    (0..=text.len()).map(|start| naive.ends(body, 1 << start)).collect()
                })
                .collect();
            if next == naive.table {
                return naive.ends(grammar.start, 1) >> text.len() & 1 == 1;
            }
            naive.table = next;
        }
    }

    fn ends(&self, expr: ExprId, starts: u128) -> u128 {
        let from = |start: &usize| starts >> start & 1 == 1;
        match self.grammar.arena.get(expr) {
            Expr::Empty => 0,
            Expr::Epsilon => starts,
            Expr::Bytes(set) => (0..self.text.len())
                .filter(from)
                .filter(|&start| set.contains(self.text[start]))
                .fold(0, |ends, start| ends | 1 << (start + 1)),
            &Expr::Concat(a, b) => self.ends(b, self.ends(a, starts)),
            Expr::Alt(parts) => parts.iter().fold(0, |ends, &part| ends | self.ends(part, starts)),
            &Expr::Repeat { body, min, max } => {
                let (mut here, mut all) = (starts, if min == 0 { starts } else { 0 });
                let mut seen = Vec::new();
                for round in 1..=max {
                    here = self.ends(body, here);
                    if round >= min {
                        all |= here;
                        if seen.contains(&here) {
                            break;
                        }
                        seen.push(here);
                    }
                }
                all
            }
            Expr::Call(rule) => (0..=self.text.len())
                .filter(from)
                .fold(0, |ends, start| ends | self.table[rule.index()][start]),
            &Expr::Literals { set, .. } => {
                use fst::Streamer;
                let mut ends = 0;
                let mut stream = self.grammar.arena.literal_set(set).stream();
                while let Some((text, _)) = stream.next() {
                    for start in (0..=self.text.len()).filter(from) {
                        if self.text[start..].starts_with(text) {
                            ends |= 1 << (start + text.len());
                        }
                    }
                }
                ends
            }
            other => panic!("{other:?} does not come from GBNF"),
        }
    }
}

/// Prints an expression, for snapshots.
fn print(grammar: &Grammar, expr: ExprId) -> String {
    let arena = &grammar.arena;
    match arena.get(expr) {
        Expr::Empty => "∅".to_owned(),
        Expr::Epsilon => "ε".to_owned(),
        Expr::Bytes(set) => format!("{set:?}"),
        &Expr::Concat(a, b) => format!("{} {}", print(grammar, a), print(grammar, b)),
        Expr::Alt(parts) => {
            let mut parts: Vec<_> = parts.iter().map(|&part| print(grammar, part)).collect();
            parts.sort();
            format!("({})", parts.join(" | "))
        }
        &Expr::Repeat { body, min, max: UNBOUNDED } => {
            format!("({}){{{min},}}", print(grammar, body))
        }
        &Expr::Repeat { body, min, max } => format!("({}){{{min},{max}}}", print(grammar, body)),
        Expr::Call(rule) => grammar.rules[rule.index()].name.to_string(),
        other => format!("{other:?}"),
    }
}

fn print_all(text: &str) -> String {
    let grammar = compiled(text);
    let mut lines = vec![format!("start: {}", print(&grammar, grammar.start))];
    for rule in &grammar.rules {
        lines.push(format!("{}: {}", rule.name, print(&grammar, rule.body.unwrap())));
    }
    lines.join("\n")
}

/// Calls of rules hold no empty text, so that no repetition has a nullable body.
fn assert_proper(grammar: &Grammar, text: &str) {
    for rule in &grammar.rules {
        let body = rule.body.unwrap();
        assert_ne!(grammar.arena.facts(body).nullable, Some(true), "{}\n{text}", rule.name);
    }
}

#[test]
fn random_grammars_have_the_texts_of_the_oracle() {
    let (mut fine, mut accepted) = (0, 0);
    for seed in 0..2500 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let wanted = oracle::Grammar::random(&mut |n| rng.random_range(0..n));
        let text = wanted.to_gbnf(&mut |n| rng.random_range(0..n));
        let grammar = match (wanted.verdict(), compile(&text, &Limits::default())) {
            (oracle::Verdict::Fine, Ok(grammar)) => grammar,
            (oracle::Verdict::Unsatisfiable, Err(error)) => {
                assert_eq!(*error.kind(), ErrorKind::Unsatisfiable, "{seed}: {error}\n{text}");
                continue;
            }
            (oracle::Verdict::LeftRecursion, Err(error)) => {
                assert_eq!(*error.kind(), ErrorKind::LeftRecursion, "{seed}: {error}\n{text}");
                continue;
            }
            (verdict, result) => panic!("{seed}: {verdict:?} but {result:?}\n{text}"),
        };
        fine += 1;
        assert_proper(&grammar, &text);
        for _ in 0..25 {
            let length = rng.random_range(0..7);
            let instance: String = (0..length)
                .map(|_| oracle::ALPHABET[rng.random_range(0..oracle::ALPHABET.len())])
                .collect();
            let accepts = wanted.accepts(instance.as_bytes());
            accepted += usize::from(accepts);
            assert_eq!(
                Naive::accepts(&grammar, instance.as_bytes()),
                accepts,
                "{seed}: {instance:?}\n{text}"
            );
        }
    }
    assert!(fine > 1000 && accepted > 1000, "{fine} grammars, {accepted} texts");
}

/// The kind of the error of `text`, where it stands, and its message.
fn report(text: &str) -> String {
    let error = error(text);
    let Some(Location::Text(span)) = error.location() else { panic!("{error}: no place") };
    format!("{} {}:{} {}", error.kind().name(), span.line, span.column, error.message())
}

#[test]
fn errors_say_what_was_expected_and_where() {
    let texts = [
        "root::=\"",
        "root ::= \"a\" [a-",
        "root ::= []",
        "root ::= [^]",
        "root ::= [z-a]",
        "root ::= \"\\q\"",
        "root ::= \"\\x4\"",
        "root ::= \"\\uD83D\\uDE00\"",
        "root ::= [\\U00110000]",
        "root ::= \"é\" (\"b\"\r\n  \"c\"\r\nx ::= \"d\"",
        "root ::= (\"a\"",
        "root ::= \"a\")",
        "root ::= * \"a\"",
        "root ::= (\"a\" | +)",
        "root ::= \"a\"{}",
        "root ::= \"a\"{,}",
        "root ::= \"a\"{2,1}",
        "root ::= \"a\"{4294967295}",
        "root ::= \"a\"{3",
        "root ::= 'a'",
        "root ::= \"a\" x ::= \"b\"",
        "root = \"a\"",
        "root ::= x\nx\n::= \"a\"",
        "\"a\"",
        "root ::= \"a\" // b",
        "root ::= naïve",
        "root ::= \"a\"\nroot ::= \"b\"",
        "root ::= \"a\"\n  mising",
        "Root ::= \"a\"\n",
        "",
        "root ::= <think> .*",
        "root ::= !<[12]>",
    ];
    let reports: Vec<_> =
        texts.iter().map(|text| format!("{}\n  {}", text.escape_debug(), report(text))).collect();
    insta::assert_snapshot!(reports.join("\n"));
}

#[test]
fn left_recursion_is_refused_however_it_hides() {
    let direct = report("root ::= e\ne ::= e \"+\" t | t\nt ::= [0-9]+");
    let texts = [
        "root ::= root \"a\" | \"b\"",
        "root ::= a\na ::= b \"x\" | \"y\"\nb ::= a \"z\"",
        "root ::= b root \"c\" | \"d\"\nb ::= \"\" | \"x\"",
        "root ::= \"x\"? [a]* (\"b\"? root) \"c\" | \"d\"",
        "root ::= (\"x\" | root \"y\")",
        "root ::= root | \"x\"",
        "root ::= (root \"x\")* \"y\"",
        "root ::= \"a\" x\nx ::= (\"\" | \"b\") y | \"c\"\ny ::= \"d\"{0,2} z\nz ::= \"\" x \"e\"",
    ];
    let mut reports = vec![direct];
    reports.extend(texts.iter().map(|text| report(text)));
    insta::assert_snapshot!(reports.join("\n"));
}

#[test]
fn a_long_cycle_is_named_by_its_first_rules_and_its_places() {
    let mut text = "root ::= r0".to_owned();
    for i in 0..20 {
        text.push_str(&format!("\nr{i} ::= r{} \"a\" | \"b\"", (i + 1) % 20));
    }
    let error = error(&text);
    assert!(error.message().contains("`r7` calls 12 more rules, the last calls `r0`"), "{error}");
    assert_eq!(error.related().len(), 7);
}

#[test]
fn only_what_root_needs_must_be_free_of_left_recursion() {
    compiled("root ::= \"a\"\nunused ::= unused \"b\" | \"c\"");
    compiled("root ::= \"a\" | dead\ndead ::= dead \"b\"");
    compiled("root ::= \"a\" root{0} | \"b\"\n");
    // `x` begins with `root` only where `x` has no text.
    compiled("root ::= \"a\" | x\nx ::= root never | \"b\"\nnever ::= \"c\" never");
}

#[test]
fn a_root_without_text_is_refused_with_the_reason() {
    let texts = [
        "root ::= \"x\" root",
        "ok ::= \"a\"\nroot ::= \"x\" a | ok b\na ::= \"y\" b\nb ::= \"z\" a",
        "root ::= \"a\" [^\\x00-\\U0010FFFF]",
    ];
    insta::assert_snapshot!(texts.map(report).join("\n"));
}

#[test]
fn rules_become_loops_and_parts_of_their_callers() {
    insta::assert_snapshot!(print_all(
        r#"
root   ::= object
value  ::= object | array | number
object ::= "{" ws (pair ("," ws pair)*)? "}" ws
pair   ::= number ":" ws value
array  ::= "[" ws (value ("," ws value)*)? "]" ws
number ::= digits ws
digits ::= [0-9] digits | [0-9]
ws     ::= | " " ws | ("\t" | "\r"? "\n") ws
"#
    ));
}

#[test]
fn forms_are_plain() {
    let texts = [
        // Nullable repetitions lose nothing but ambiguity.
        "root ::= (\"a\"*)* \"b\"",
        "root ::= ws \"x\"\nws ::= (sp | nl)*\nsp ::= [ \\t]*\nnl ::= \"\\r\"? \"\\n\"",
        "root ::= (\"a\"? \"b\"?){3,5}",
        "root ::= (\"\" | \"\")+ | (\"\"{7})*",
        // A rule that stays has no empty text.
        "root ::= (\"(\" root \")\")*",
        "root ::= a \"x\"\na ::= \"<\" a \">\" b | \"\"\nb ::= a? \"!\"?",
        // Recursion at the ends of alternatives is a loop.
        "root ::= \"a\" (\"b\" root | \"c\") | \"d\" root?",
        "root ::= \"x\" a\na ::= \"a\" b | \"\"\nb ::= \"b\" a | \"c\"",
        // Parts without text are dropped.
        "root ::= \"a\" (dead \"b\")? | \"c\" dead | dead* \"d\"\ndead ::= \"e\" dead",
    ];
    let forms: Vec<_> = texts
        .iter()
        .map(|text| format!("{text}\n  {}", print_all(text).replace('\n', "\n  ")))
        .collect();
    insta::assert_snapshot!(forms.join("\n"));
}

#[test]
fn repetitions_are_counted_and_not_copied() {
    let grammar = compiled(
        "root ::= ([a-z]{0,5000} \"!\"){1000000} item{4294967294}\nitem ::= \"(\" item? \")\"",
    );
    assert!(grammar.arena.len() < 40, "{} expressions", grammar.arena.len());
}

#[test]
fn many_literals_become_one_set() {
    let words: Vec<_> = (0..500).map(|i| format!("\"word{i}\"")).collect();
    let grammar = compiled(&format!("root ::= {} | [0-9]+ | \"x\" | \"\"", words.join(" | ")));
    assert!(grammar.arena.len() < 5000 && matches!(grammar.arena.get(grammar.start), Expr::Alt(_)));
    for (text, accepts) in [
        ("word7", true),
        ("word499", true),
        ("word500", false),
        ("x", true),
        ("", true),
        ("12", true),
    ] {
        assert_eq!(Naive::accepts(&grammar, text.as_bytes()), accepts, "{text}");
    }
    let Expr::Alt(parts) = grammar.arena.get(grammar.start) else { panic!("not a choice") };
    assert!(parts.iter().any(|&part| matches!(grammar.arena.get(part), Expr::Literals { .. })));
}

#[test]
fn any_rule_can_be_the_start() {
    let limits = Limits::default();
    let text = "root ::= item+\nitem ::= \"a\" | \"b\"";
    let grammar = compile_from(text, "item", &limits).unwrap();
    assert!(Naive::accepts(&grammar, b"a") && !Naive::accepts(&grammar, b"ab"));
    let error = compile_from(text, "itm", &limits).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::UnresolvedReference);
}

#[test]
fn layout_has_one_meaning() {
    let texts = [
        "\u{feff}# note\r\nroot ::=\r\n  \"a\" |\r\n  # note\r\n  \"b\"\r\n\r\n",
        "root ::= \"a\"\n  | \"b\"",
        "root ::= (\n\"a\" # )\n|\n\"b\")",
        "x-1_Y::=\"b\"\nroot::=\"a\"|x-1_Y",
        "root ::= [ab]",
        "root ::= [\\x61-\\u0062]{1}",
    ];
    for text in texts {
        let grammar = compiled(text);
        assert_eq!(print(&grammar, grammar.start), "[a-b]", "{text:?}");
    }
}

#[test]
fn class_members_are_read_as_the_guide_says() {
    let cases: [(&str, &str, &str); 7] = [
        ("[a-]", "a-", "b]"),
        ("[-a]", "a-", "b]"),
        ("[a-c-e]", "abc-e", "d"),
        ("[\\]\\[\\-\\\\^]", "][-\\^", "a"),
        ("[^\"\\\\\\x7F\\x00-\\x1F]", "aé\u{10ffff} ", "\"\\\n\u{7f}"),
        ("[😀-🙏]", "😀🙏😃", "a🚀"),
        (".", "a\n\0\u{10ffff}", ""),
    ];
    for (class, inside, outside) in cases {
        let grammar = compiled(&format!("root ::= {class}"));
        let accepts = |c: char| Naive::accepts(&grammar, c.encode_utf8(&mut [0; 4]).as_bytes());
        assert!(inside.chars().all(accepts), "{class}");
        assert!(!outside.chars().any(accepts), "{class}");
    }
}

#[test]
fn depth_is_bounded_and_never_overflows() {
    let nested = |depth| format!("root ::= {}\"a\"{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(error(&nested(130_000)).kind().name(), "budget_exceeded");
    let limits = Limits { source_depth: usize::MAX, ..Limits::default() };
    for depth in [20_000, 300_000] {
        let grammar = compile(&nested(depth), &limits).unwrap();
        assert_eq!(print(&grammar, grammar.start), "[a]");
    }
}

/// Grammars that would be slow or deep for an algorithm that is not linear or that recurses.
fn large() -> Vec<String> {
    let n = 10_000;
    let many = |make: &dyn Fn(usize) -> String| (0..n).map(make).collect::<Vec<_>>();
    let around = |open: &str, inner: &str, close: &dyn Fn(usize) -> String| {
        format!("root ::= {}{inner}{}", open.repeat(n), many(close).concat())
    };
    vec![
        around("(", "\"a\"", &|i| format!(" | \"w{i}\" \"x\")")),
        around("(", "\"a\"", &|i| format!(" \"w{i}\")")),
        around("(", "\"a\"", &|_| ")*".to_owned()),
        around("(", "\"a\"?", &|i| format!(" \"w{i}\"?)*")),
        around("(\"b\" ", "\"a\"", &|_| ")?".to_owned()),
        format!("root ::= \"a\"{}", "*".repeat(n)),
        format!("root ::= \"a\"{}", "?+".repeat(n)),
        // Chains of rules, down and up.
        format!(
            "root ::= r0\n{}r{n} ::= \"a\"",
            many(&|i| format!("r{i} ::= r{}\n", i + 1)).concat()
        ),
        format!(
            "root ::= r0\n{}r{n} ::= \"a\"",
            many(&|i| format!("r{i} ::= r{} | \"w{i}\"\n", i + 1)).concat()
        ),
        format!(
            "root ::= r0\n{}r{n} ::= \"a\"",
            many(&|i| format!("r{i} ::= r{} \"w{i}\"\n", i + 1)).concat()
        ),
        // Doubling: 2^20000 copies if each call were copied.
        format!(
            "root ::= r0\n{}r{n} ::= \"a\"",
            many(&|i| format!("r{i} ::= r{0} r{0}\n", i + 1)).concat()
        ),
        format!(
            "root ::= r0\n{}r{n} ::= \"a\"",
            many(&|i| format!("r{i} ::= r{0} \"x\" | r{0} \"y\" r{0}\n", i + 1)).concat()
        ),
        // One large cycle, and many small ones.
        format!(
            "root ::= \"x\" r0 | \"\"\n{}r{n} ::= root",
            many(&|i| format!("r{i} ::= \"w{i}\" r{}\n", i + 1)).concat()
        ),
        format!(
            "root ::= {}\n{}",
            many(&|i| format!("r{i}")).join(" | "),
            many(&|i| format!("r{i} ::= \"w{i}\" r{i} \"x\" | \"y\"\n")).concat()
        ),
        format!("root ::= {}", many(&|i| format!("\"w{i}\" [a-z]* | \"v{i}\" | ")).concat()),
        format!("root ::= ({})*", many(&|i| format!("\"w{i}\"? ")).concat()),
    ]
}

#[test]
fn large_and_deep_grammars_compile_within_the_default_limits() {
    for (index, text) in large().iter().enumerate() {
        let result = compile(text, &Limits::default());
        assert!(result.is_ok(), "{index}: {:?}", result.err());
    }
}

#[test]
fn limits_are_kept() {
    let small = Limits::default().max_source_bytes(10);
    let budget = |limits: &Limits| match compile("root ::= \"abc\" [d-é] | \"f\"+", limits) {
        Err(error) => match error.kind() {
            ErrorKind::BudgetExceeded(budget) => Some(budget.limit),
            other => panic!("{other:?}"),
        },
        Ok(_) => None,
    };
    assert_eq!(budget(&small), Some("source_bytes"));
    assert_eq!(budget(&Limits::default().max_expressions(16)), Some("expressions"));
    assert_eq!(budget(&Limits::default().max_compile_work(3)), Some("compile_work"));
    assert_eq!(budget(&Limits::default()), None);
}
