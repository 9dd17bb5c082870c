//! Masks against brute force: a mask must equal the set of tokens whose bytes, fed one by one to the
//! byte automaton, stay in the grammar; and that automaton must equal a naive matcher.

use std::sync::Arc;

use rand::{Rng, SeedableRng, rngs::StdRng};
use rand_chacha::rand_core::RngCore;
use schemac::ir::{Arena, ByteSet, Expr, Grammar, UNBOUNDED};
use schemac::token::{Matcher, TokenAutomaton};
use schemac::vocab::Token;
use schemac::{ExprId, Limits, StepError, TokenId, Vocabulary};

use crate::support::reference::{check_walk, legal_tokens};

/// Returns a small vocabulary over a small alphabet: all short strings, and some longer ones.
pub(crate) fn small_vocabulary(alphabet: &[u8], seed: u64) -> Arc<Vocabulary> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut tokens: Vec<Token> = alphabet.iter().map(|&b| Token::Text([b].into())).collect();
    for _ in 0..150 {
        let length = rng.random_range(2..=7);
        let text: Vec<u8> =
            (0..length).map(|_| alphabet[rng.random_range(0..alphabet.len())]).collect();
        tokens.push(Token::Text(text.into()));
    }
    tokens.push(Token::Special("end".into()));
    tokens.push(Token::Unused);
    tokens.push(Token::Special("also end".into()));
    let ends = [tokens.len() - 3, tokens.len() - 1].map(|i| TokenId::from_index(i).unwrap());
    Arc::new(Vocabulary::new(tokens, ends).unwrap())
}

/// A random grammar over an alphabet: rules that call each other, never before a byte.
pub(crate) fn random_grammar(rng: &mut StdRng, alphabet: &[u8]) -> Grammar {
    let mut grammar = Grammar::new(100_000);
    let count = rng.random_range(1..=4);
    let rules: Vec<_> = (0..count).map(|i| grammar.scope().declare(format!("r{i}"))).collect();
    for &rule in &rules {
        let mut scope = grammar.scope();
        let body = random_expr(rng, scope.arena, alphabet, &rules, 4);
        // A byte first, so that no rule calls itself before it consumes anything.
        let first = scope.arena.byte(alphabet[rng.random_range(0..alphabet.len())]);
        let body = scope.arena.concat2(first, body);
        scope.define(rule, body);
    }
    grammar.start = random_expr(rng, &mut grammar.arena, alphabet, &rules, 4);
    grammar
}

fn random_expr(
    rng: &mut StdRng,
    arena: &mut Arena,
    alphabet: &[u8],
    rules: &[schemac::RuleId],
    depth: usize,
) -> ExprId {
    let byte = |rng: &mut StdRng| alphabet[rng.random_range(0..alphabet.len())];
    if depth == 0 {
        return match rng.random_range(0..4) {
            0 if !rules.is_empty() => arena.call(rules[rng.random_range(0..rules.len())]),
            1 => {
                let set: ByteSet = (0..3).map(|_| byte(rng)).collect();
                arena.bytes(set)
            }
            2 => Arena::EPSILON,
            _ => arena.byte(byte(rng)),
        };
    }
    let part =
        |rng: &mut StdRng, arena: &mut Arena| random_expr(rng, arena, alphabet, rules, depth - 1);
    match rng.random_range(0..8) {
        0 | 1 => {
            let (a, b) = (part(rng, arena), part(rng, arena));
            arena.concat2(a, b)
        }
        2 => {
            let parts: Vec<_> = (0..rng.random_range(2..4)).map(|_| part(rng, arena)).collect();
            arena.alt(&parts)
        }
        3 => {
            let body = part(rng, arena);
            let min = rng.random_range(0..4);
            let max = if rng.random_bool(0.4) { UNBOUNDED } else { min + rng.random_range(0..20) };
            arena.repeat(body, min, max)
        }
        4 => {
            let (a, b) = (
                random_expr(rng, arena, alphabet, &[], depth - 1),
                random_expr(rng, arena, alphabet, &[], depth - 1),
            );
            let all: ByteSet = alphabet.iter().copied().collect();
            let any = arena.bytes(all);
            let any = arena.star(any);
            let not = arena.not(b);
            arena.and(&[a, not, any])
        }
        5 => {
            let (a, b) = (
                random_expr(rng, arena, alphabet, &[], depth - 1),
                random_expr(rng, arena, alphabet, &[], depth - 1),
            );
            let star = arena.star(b);
            arena.and(&[a, star])
        }
        6 => {
            let count = rng.random_range(1..20);
            let texts: Vec<Vec<u8>> = (0..count)
                .map(|_| (0..rng.random_range(0..4)).map(|_| byte(rng)).collect())
                .collect();
            arena.literals(texts)
        }
        _ => random_expr(rng, arena, alphabet, rules, 0),
    }
}

/// The naive meaning of a grammar: whether `text[from..to]` matches, by structure, memoised.
struct Naive<'a> {
    grammar: &'a Grammar,
    text: &'a [u8],
    memo: std::collections::HashMap<(ExprId, usize, usize), bool>,
}

impl Naive<'_> {
    fn matches(&mut self, expr: ExprId, from: usize, to: usize) -> bool {
        if let Some(&known) = self.memo.get(&(expr, from, to)) {
            return known;
        }
        // Least fixpoint: a rule met again over the same text adds nothing.
        self.memo.insert((expr, from, to), false);
        let result = match self.grammar.arena.get(expr).clone() {
            Expr::Empty => false,
            Expr::Epsilon => from == to,
            Expr::Bytes(set) => to == from + 1 && set.contains(self.text[from]),
            Expr::Concat(a, b) => {
                (from..=to).any(|mid| self.matches(a, from, mid) && self.matches(b, mid, to))
            }
            Expr::Alt(parts) => parts.iter().any(|&part| self.matches(part, from, to)),
            Expr::And(parts) => parts.iter().all(|&part| self.matches(part, from, to)),
            Expr::Not(inner) => !self.matches(inner, from, to),
            Expr::Repeat { body, min, max } => self.repeats(body, min, max, from, to),
            Expr::Call(rule) => {
                let body = self.grammar.rules[rule.index()].body.unwrap();
                self.matches(body, from, to)
            }
            Expr::Literals { set, node } => {
                let fst = self.grammar.arena.literal_set(set);
                let mut at = fst.node(usize::try_from(node).unwrap());
                let mut alive = true;
                for &byte in &self.text[from..to] {
                    match at.find_input(byte) {
                        Some(index) => at = fst.node(at.transition_addr(index)),
                        None => alive = false,
                    }
                    if !alive {
                        break;
                    }
                }
                alive && at.is_final()
            }
            other => panic!("{other:?} in a random grammar"),
        };
        self.memo.insert((expr, from, to), result);
        result
    }

    /// Positions reachable with each number of copies.
    fn repeats(&mut self, body: ExprId, min: u32, max: u32, from: usize, to: usize) -> bool {
        let nullable = self.matches(body, from, from);
        let mut reached = vec![from];
        let mut count = 0;
        loop {
            if count >= min && reached.contains(&to) {
                return true;
            }
            if count == max || reached.is_empty() || count > min + 64 {
                return false;
            }
            let mut next = Vec::new();
            for mid in from..=to {
                // Copies of nothing change only the count, which a nullable body makes free.
                if reached.iter().any(|&start| {
                    (start < mid || nullable && start == mid) && self.matches(body, start, mid)
                }) {
                    next.push(mid);
                }
            }
            reached = next;
            count += 1;
        }
    }
}

#[test]
fn masks_equal_brute_force_on_random_grammars() {
    let alphabet = b"ab\",\xc3\xa9";
    let (mut compared, mut grammars) = (0, 0);
    for seed in 0..600 {
        let mut rng = StdRng::seed_from_u64(seed);
        let vocabulary = small_vocabulary(alphabet, seed);
        let grammar = random_grammar(&mut rng, alphabet);
        let Ok(automaton) = TokenAutomaton::new(grammar, vocabulary, Limits::default()) else {
            continue;
        };
        let automaton = Arc::new(automaton);
        grammars += 1;
        for _ in 0..3 {
            compared += check_walk(&automaton, &mut rng, 12);
        }
    }
    println!("{compared} masks of {grammars} grammars");
    assert!(grammars > 300 && compared > 3_000, "{compared} masks of {grammars} grammars");
}

#[test]
fn automaton_equals_naive_meaning_on_random_grammars() {
    let alphabet = b"ab,";
    let vocabulary = small_vocabulary(alphabet, 0);
    let (mut accepted, mut refused) = (0, 0);
    for seed in 0..400 {
        let mut rng = StdRng::seed_from_u64(seed);
        let grammar = random_grammar(&mut rng, alphabet);
        let automaton = TokenAutomaton::new(grammar.clone(), vocabulary.clone(), Limits::default())
            .map(Arc::new);
        for _ in 0..60 {
            let length = rng.random_range(0..8);
            let text: Vec<u8> =
                (0..length).map(|_| alphabet[rng.next_u32() as usize % alphabet.len()]).collect();
            let mut naive =
                Naive { grammar: &grammar, text: &text, memo: std::collections::HashMap::new() };
            let expected = naive.matches(grammar.start, 0, length);
            let actual = automaton.as_ref().is_ok_and(|_| true) && {
                let mut matcher = Matcher::new(Arc::new(
                    TokenAutomaton::new(grammar.clone(), vocabulary.clone(), Limits::default())
                        .unwrap(),
                ));
                matcher.accept_bytes(&text).is_ok() && matcher.is_accepting().unwrap()
            };
            assert_eq!(actual, expected, "seed {seed}, {:?}", String::from_utf8_lossy(&text));
            if expected { accepted += 1 } else { refused += 1 }
        }
    }
    assert!(accepted > 500 && refused > 500, "{accepted} accepted, {refused} refused");
}

/// Objects whose keys must be fresh, nested, as the JSON Schema front end builds them.
fn fresh_keys_grammar() -> Grammar {
    let mut grammar = Grammar::new(10_000);
    let mut scope = grammar.scope();
    let object = scope.declare("object");
    let arena = &mut *scope.arena;
    let plain = arena.bytes(ByteSet::of(b"ab,:{}\xc3\xa9"));
    let text = arena.star(plain);
    let quote = arena.byte(b'"');
    let declared = arena.literal(b"\"a\"");
    let string = arena.concat(&[quote, text, quote]);
    let not_declared = arena.not(declared);
    let other = arena.and(&[string, not_declared]);
    let fresh = arena.fresh(other);
    let call = arena.call(object);
    let value = arena.alt(&[string, call]);
    let colon = arena.byte(b':');
    let comma = arena.byte(b',');
    let known = arena.concat(&[declared, colon, value]);
    let member = arena.concat(&[fresh, colon, value]);
    let (more, open, close) = (arena.concat2(comma, member), arena.byte(b'{'), arena.byte(b'}'));
    let more = arena.star(more);
    let others = arena.concat2(member, more);
    let after_known = arena.optional(more);
    let first = arena.concat2(known, after_known);
    let members = arena.alt(&[first, others, Arena::EPSILON]);
    let body = arena.concat(&[open, members, close]);
    scope.define(object, body);
    grammar.start = grammar.arena.call(object);
    grammar
}

#[test]
fn repeated_keys_are_never_legal() {
    let mut tokens: Vec<Token> =
        b"ab,:{}\"\xc3\xa9".iter().map(|&b| Token::Text([b].into())).collect();
    let texts = [
        "{\"",
        "\":\"",
        "\",\"",
        "\"}",
        "{\"a\":",
        "\"b\":",
        ",\"b\":",
        "\"\":\"\"",
        ",\"\":\"\"",
        "{\"\":{\"\":\"",
        "}}",
        "\"},\"b\":\"",
        "b\":\"",
        "b\"",
        "\"b\"",
        "\":\"\",\"b\":",
        "ab",
        "a\"",
        "\"},\"",
        "{}",
        ":{}",
        ":{},\"b\"",
        "\"\":\"\",\"\":\"\"",
        "{\"b\":\"\",\"b\"",
    ];
    tokens.extend(texts.iter().map(|text| Token::Text(text.as_bytes().into())));
    tokens.push(Token::Special("end".into()));
    let end = TokenId::from_index(tokens.len() - 1).unwrap();
    let vocabulary = Arc::new(Vocabulary::new(tokens, [end]).unwrap());
    let automaton =
        Arc::new(TokenAutomaton::new(fresh_keys_grammar(), vocabulary, Limits::default()).unwrap());
    let matches = |text: &str| {
        let mut matcher = Matcher::new(automaton.clone());
        matcher.accept_bytes(text.as_bytes()).is_ok() && matcher.is_accepting().unwrap()
    };
    assert!(matches(r#"{"a":"","b":"","":{"a":"","b":"","":""}}"#));
    for repeated in [
        r#"{"b":"","b":""}"#,
        r#"{"a":{"":"","":""}}"#,
        r#"{"":{"":""},"":""}"#,
        r#"{"b":"","a":""}"#,
    ] {
        assert!(!matches(repeated), "{repeated}");
    }
    let mut compared = 0;
    for seed in 0..400 {
        compared += check_walk(&automaton, &mut StdRng::seed_from_u64(seed), 60);
    }
    assert!(compared > 4_000, "{compared}");
}

#[test]
fn bounded_strings_count_characters_inside_tokens() {
    // The case of DESIGN.md 5: after three of at most five characters `abc"` is illegal, `"` is not.
    let mut tokens: Vec<Token> = (0..=255_u8).map(|b| Token::Text([b].into())).collect();
    let texts = [
        "abc\"",
        "ab\"",
        "abc",
        "é\"",
        "éé",
        "ééé\"",
        "\u{1f600}\"",
        "abcdefgh",
        "\\n",
        "\\u00e9",
        "a\\n\",",
        "ab\",",
        "\",",
    ];
    tokens.extend(texts.iter().map(|text| Token::Text(text.as_bytes().into())));
    tokens.push(Token::Text(b"a\xc3".as_slice().into()));
    tokens.push(Token::Text(b"\xa9\"".as_slice().into()));
    tokens.push(Token::Text(b"\xf0\x9f\x98".as_slice().into()));
    tokens.push(Token::Special("end".into()));
    let end = TokenId::from_index(tokens.len() - 1).unwrap();
    let vocabulary = Arc::new(Vocabulary::new(tokens, [end]).unwrap());
    for (min, max) in
        [(0, 5), (2, 5), (4, 4), (0, UNBOUNDED), (3, UNBOUNDED), (0, 100_000), (90_000, 100_000)]
    {
        let mut grammar = Grammar::new(100_000);
        let mut scope = grammar.scope();
        let rule = scope.declare("string");
        let any = schemac::ir::chars::char_class(
            scope.arena,
            &schemac::ir::chars::all_chars(),
            schemac::ir::chars::Encoding::JsonAny,
        );
        let text = scope.arena.repeat(any, min, max);
        let quote = scope.arena.byte(b'"');
        let body = scope.arena.concat(&[quote, text, quote]);
        scope.define(rule, body);
        let (call, comma) = (scope.arena.call(rule), scope.arena.byte(b','));
        let more = scope.arena.concat2(comma, call);
        let more = scope.arena.star(more);
        grammar.start = grammar.arena.concat2(call, more);
        let automaton =
            Arc::new(TokenAutomaton::new(grammar, vocabulary.clone(), Limits::default()).unwrap());
        for seed in 0..20 {
            check_walk(&automaton, &mut StdRng::seed_from_u64(seed), 12);
        }
    }
}

#[test]
fn length_and_pattern_decide_far_ahead() {
    // `^a*b{200}$` at exactly 1,000 characters: after 500 a's `a` is legal and `b` is not, after 800
    // the reverse.
    let vocabulary = small_vocabulary(b"ab", 1);
    let mut grammar = Grammar::new(1_000_000);
    let arena = &mut grammar.arena;
    let (a, b) = (arena.byte(b'a'), arena.byte(b'b'));
    let (many_a, two_hundred_b) = (arena.star(a), arena.repeat(b, 200, 200));
    let pattern = arena.concat2(many_a, two_hundred_b);
    let any = arena.bytes(ByteSet::of(b"ab"));
    let length = arena.repeat(any, 1_000, 1_000);
    grammar.start = arena.and(&[pattern, length]);
    let automaton = Arc::new(TokenAutomaton::new(grammar, vocabulary, Limits::default()).unwrap());
    let mut matcher = Matcher::new(automaton);
    for (count, expected) in [(0, "a"), (500, "a"), (799, "a"), (800, "b"), (999, "b"), (1_000, "")]
    {
        let text = "a".repeat(count.min(800)) + &"b".repeat(count.max(800) - 800);
        matcher.reset();
        matcher.accept_bytes(text.as_bytes()).unwrap();
        assert_eq!(matcher.legal_bytes().unwrap(), expected.as_bytes(), "after {count}");
        let legal: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
        assert_eq!(Some(legal), legal_tokens(&matcher), "after {count}");
    }
}

#[test]
fn quotients_of_large_vocabularies_equal_brute_force() {
    // Large enough that states with many live bytes are walked in quotient tries.
    let vocabulary = crate::schema_masks::made_vocabulary();
    let patterns = [
        "[a-d]+( [a-d]+){0,3}",
        "(\\w|é|-)*",
        "([^ ]+ ){1,2}[^1]*",
        "(a|b)*1(a|b|2){2}.*",
        "[a-d日]{3,6}|.*-",
    ];
    let mut compared = 0;
    for (index, pattern) in patterns.iter().enumerate() {
        let inner = schemac::frontend::regex::compile(pattern, &Limits::default()).unwrap();
        // As a rule that is called, so that rests go on below, and as the whole output.
        for framed in [true, false] {
            let mut grammar = inner.clone();
            if framed {
                let start = grammar.start;
                let mut scope = grammar.scope();
                let rule = scope.declare("text");
                let quote = scope.arena.byte(b'"');
                let body =
                    if index % 2 == 0 { scope.arena.concat(&[quote, start, quote]) } else { start };
                scope.define(rule, body);
                let (call, comma) =
                    (scope.arena.call(rule), scope.arena.bytes(ByteSet::of(b",:}")));
                let more = scope.arena.concat2(comma, call);
                let more = scope.arena.star(more);
                grammar.start = scope.arena.concat2(call, more);
            }
            let automaton =
                TokenAutomaton::new(grammar, vocabulary.clone(), Limits::default()).unwrap();
            let automaton = Arc::new(automaton);
            for seed in 0..3 {
                compared += check_walk(&automaton, &mut StdRng::seed_from_u64(seed), 5);
            }
        }
    }
    assert!(compared > 60, "{compared}");
}

#[test]
fn a_sequence_goes_alike_whether_its_places_are_kept_or_not() {
    let said = |result: Result<(), StepError>| result.map_err(|error| error.to_string());
    let alphabet = b"ab1\"";
    let vocabulary = small_vocabulary(alphabet, 5);
    let mut rng = StdRng::seed_from_u64(17);
    let (mut steps, mut compiled) = (0, 0);
    for _ in 0..150 {
        let grammar = random_grammar(&mut rng, alphabet);
        let automaton = |limits: Limits| {
            TokenAutomaton::new(grammar.clone(), Arc::clone(&vocabulary), limits).ok().map(Arc::new)
        };
        let limits = Limits::default();
        let few = automaton(limits.clone().max_token_states(3));
        let (Some(all), Some(few)) = (automaton(limits), few) else { continue };
        compiled += 1;
        for _ in 0..4 {
            let seed = rng.next_u64();
            let mut states = None;
            for _ in 0..2 {
                let mut rng = StdRng::seed_from_u64(seed);
                let (mut one, mut other) = (Matcher::new(all.clone()), Matcher::new(few.clone()));
                for _ in 0..12 {
                    let (Ok(mask), Ok(same)) = (one.mask(), other.mask()) else { break };
                    assert_eq!(mask.words(), same.words());
                    let legal: Vec<_> = mask.iter().collect();
                    let token = legal[rng.random_range(0..legal.len())];
                    let illegal =
                        vocabulary.ids().nth(rng.random_range(0..vocabulary.len())).unwrap();
                    if !mask.contains(illegal) {
                        assert_eq!(said(one.accept(illegal)), said(other.accept(illegal)));
                    }
                    assert_eq!(said(one.accept(token)), said(other.accept(token)));
                    if rng.random_bool(0.2) {
                        let back = rng.random_range(0..=one.steps());
                        assert_eq!(said(one.rollback(back)), said(other.rollback(back)));
                    }
                    assert_eq!(one.is_accepting().unwrap(), other.is_accepting().unwrap());
                    steps += 1;
                }
                // The second time everything is known.
                let grown = all.stats().token_states;
                assert!(states.replace(grown).is_none_or(|before| before == grown));
            }
        }
        assert!(few.stats().token_states <= 3);
    }
    assert!(compiled > 50 && steps > 2_000, "{compiled} grammars, {steps} steps");
}
