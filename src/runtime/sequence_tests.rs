//! Sequences over more than one step: texts that stop and phrases that are banned, phases, states, and
//! the reasons why a token may not come.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::{
    Beam, ConstrainedSampler, Phase, PhasedSampler, Policy, SamplerState, Verdict, heal, uniform,
};
use crate::frontend::{gbnf, json_schema, regex};
use crate::ids::TokenId;
use crate::limits::Limits;
use crate::step_error::StepError;
use crate::token::TokenAutomaton;
use crate::vocab::{Token, Vocabulary};

/// All bytes, some pairs, and two special tokens, of which `end` ends.
fn vocabulary(end: &str) -> Arc<Vocabulary> {
    let mut tokens: Vec<Token> = (0..=u8::MAX).map(|byte| Token::Text([byte].into())).collect();
    let pairs = ["ab", "bc", "abc", "\":", "{\"", "://", "http", "http://", "é"];
    tokens.extend(pairs.map(|text| Token::Text(text.as_bytes().into())));
    tokens.extend(["</think>", "end"].map(|name| Token::Special(name.into())));
    let end = tokens.iter().position(|t| *t == Token::Special(end.into())).unwrap();
    Arc::new(Vocabulary::new(tokens, TokenId::from_index(end)).unwrap())
}

fn token(text: &str) -> TokenId {
    let vocabulary = vocabulary("end");
    let same = |&id: &TokenId| {
        vocabulary.bytes(id) == text.as_bytes() && vocabulary.special_name(id).is_none()
    };
    vocabulary.special_named(text).or_else(|| vocabulary.ids().find(same)).unwrap()
}

fn automaton(grammar: &str) -> Arc<TokenAutomaton> {
    let limits = Limits::default();
    let grammar = gbnf::compile(grammar, &limits).unwrap();
    Arc::new(TokenAutomaton::new(grammar, vocabulary("end"), limits).unwrap())
}

fn n(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

/// Rows that favour letters, then the end.
fn row(tokens: &[TokenId]) -> Vec<f32> {
    let width = vocabulary("end").len();
    let place = tokens.iter().fold(3, |hash: u64, t| hash * 31 + u64::from(t.get()));
    (0..width).map(|i| (uniform(place, i) * 5.0) as f32).collect()
}

fn model() -> impl FnMut(&[TokenId]) -> Result<Vec<f32>, Infallible> {
    |tokens| Ok(row(tokens))
}

#[test]
fn banned_phrases_do_not_occur_however_they_are_cut() {
    let automaton = automaton("root ::= [abc]{6,12}");
    let mut seen = [false; 2];
    for seed in 0..300 {
        let policy = Policy::sample(1.0).seed(seed).ban("abc").ban("cc");
        let mut sampler = ConstrainedSampler::new(automaton.clone(), policy).unwrap();
        sampler.generate(&mut model()).unwrap();
        let text = sampler.text();
        assert!(!text.contains("abc") && !text.contains("cc"), "{text}");
        seen[0] |= text.contains("ab");
        let policy = Policy::sample(1.0).seed(seed);
        let mut free = ConstrainedSampler::new(automaton.clone(), policy).unwrap();
        free.generate(&mut model()).unwrap();
        seen[1] |= free.text().contains("abc");
    }
    assert_eq!(seen, [true, true], "what is not banned is there, and would be");
}

#[test]
fn a_ban_that_leaves_nothing_is_an_error_and_is_undone_by_going_back() {
    let policy = Policy::greedy().ban("bb");
    let mut sampler =
        ConstrainedSampler::new(automaton("root ::= \"a\" \"bb\" | \"ac\""), policy).unwrap();
    sampler.replay(&[token("ab")]).unwrap();
    assert!(matches!(sampler.mask(), Err(StepError::AllTokensBanned { step: 1 })));
    assert!(matches!(sampler.next_token(&row(&[])), Err(StepError::AllTokensBanned { step: 1 })));
    let refused = sampler.accept(token("b"));
    assert!(matches!(refused, Err(StepError::TokenBanned { step: 1, .. })));
    assert_eq!(sampler.explain_token(token("b")).unwrap(), Verdict::Banned);
    sampler.rollback(1).unwrap();
    sampler.replay(&[token("a"), token("c")]).unwrap();
    assert!(sampler.is_accepting().unwrap());
    assert!(Policy::greedy().ban("").check(10).is_err());
    assert!(Policy::greedy().stop("").check(10).is_err());
}

#[test]
fn a_text_stops_the_output_wherever_it_begins_and_ends() {
    let free = automaton("root ::= [a-z]*");
    let stopped = |stop: &str, tokens: &[&str]| {
        let policy = Policy::greedy().stop(stop);
        let mut sampler = ConstrainedSampler::new(free.clone(), policy).unwrap();
        for (at, text) in tokens.iter().enumerate() {
            assert!(!sampler.is_finished(), "{stop} {at}");
            sampler.accept(token(text)).unwrap();
        }
        sampler
    };
    for (stop, tokens, text) in [
        ("bc", vec!["a", "b", "c"], "a"),
        ("bc", vec!["x", "abc"], "xa"),
        ("ca", vec!["abc", "ab"], "ab"),
        ("cab", vec!["bc", "abc"], "b"),
        ("http", vec!["a", "http"], "a"),
    ] {
        let mut sampler = stopped(stop, &tokens);
        assert!(sampler.is_finished() && sampler.text() == text, "{stop} {}", sampler.text());
        assert_eq!(sampler.tokens().len(), tokens.len());
        assert!(matches!(sampler.next_token(&row(&[])), Err(StepError::Finished)));
        assert!(matches!(sampler.accept(token("a")), Err(StepError::Finished)));
        sampler.rollback(1).unwrap();
        assert!(!sampler.is_finished());
    }
    assert!(!stopped("bc", &["b", "a", "c"]).is_finished());
    // A beam ends where its outputs stop.
    let policy = Policy::greedy().stop("b").max_tokens(n(6));
    let start = ConstrainedSampler::new(automaton("root ::= [ab]{5}"), policy).unwrap();
    for found in Beam::new(n(4)).search(&start, &mut model()).unwrap() {
        assert!(found.sampler.is_finished() && !found.sampler.text().contains('b'));
    }
}

#[test]
fn phases_follow_each_other_at_special_tokens() {
    let limits = Limits::default();
    let compile = |pattern: &str, end: &str| {
        let grammar = regex::compile(pattern, &limits).unwrap();
        Arc::new(TokenAutomaton::new(grammar, vocabulary(end), limits.clone()).unwrap())
    };
    let (thinking, answer) = (compile("[a-z ]*", "</think>"), compile("yes|no", "end"));
    let (think_end, end) = (token("</think>"), token("end"));
    let phases = vec![
        Phase::last(thinking.clone(), Policy::sample(1.0).max_tokens(n(8))).then(think_end, 1),
        Phase::last(answer.clone(), Policy::sample(1.0)),
    ];
    let start = PhasedSampler::new(phases.clone()).unwrap();
    let mut outputs = Vec::new();
    for seed in 0..40 {
        let mut sampler = start.clone();
        let mut seeded = |tokens: &[TokenId]| {
            let mut row = row(tokens);
            row.rotate_left(seed);
            Ok::<_, Infallible>(row)
        };
        sampler.generate(&mut seeded).unwrap();
        let tokens = sampler.tokens().to_vec();
        let border = tokens.iter().position(|&t| t == think_end).unwrap();
        assert!(border < 8 && *tokens.last().unwrap() == end);
        let answer = vocabulary("end").decode(&tokens[border..]);
        assert!(answer == b"yes" || answer == b"no");
        // Back into the first phase and on again: the same tokens.
        let mut back = sampler.clone();
        back.rollback(tokens.len() - border / 2).unwrap();
        assert_eq!(back.phase(), 0);
        back.generate(&mut seeded).unwrap();
        assert_eq!(back.tokens(), tokens);
        let mut replayed = start.clone();
        replayed.replay(&tokens).unwrap();
        assert!(replayed.is_finished() && replayed.text() == sampler.text());
        outputs.push(tokens);
    }
    outputs.sort();
    outputs.dedup();
    assert!(outputs.len() > 5);
    // Any number of times: an answer may lead back.
    let mut round = phases.clone();
    round[1].next = BTreeMap::from([(end, 0)]);
    let mut sampler = PhasedSampler::new(round).unwrap();
    let text = [&["a", "</think>", "n", "o", "end"][..]; 2].concat();
    text.iter().for_each(|text| sampler.accept(token(text)).unwrap());
    assert_eq!((sampler.phase(), sampler.parts().len(), sampler.text().as_str()), (0, 5, "anoano"));
    assert!(matches!(
        sampler.rollback(11),
        Err(StepError::RollbackTooFar { asked: 11, available: 10 })
    ));
    sampler.rollback(10).unwrap();
    assert!(sampler.tokens().is_empty());
    for wrong in [
        Vec::new(),
        vec![Phase::last(thinking.clone(), Policy::greedy()).then(think_end, 1)],
        vec![Phase::last(answer, Policy::greedy()).then(think_end, 0)],
    ] {
        assert!(matches!(PhasedSampler::new(wrong), Err(StepError::InvalidPolicy(_))));
    }
    let short = Policy::greedy().max_tokens(n(1));
    assert!(PhasedSampler::new(vec![Phase::last(compile("ab", "end"), short)]).is_err());
}

#[test]
fn penalties_look_across_phases_and_at_a_prompt_that_is_given() {
    let limits = Limits::default();
    let phase = |end: &str| {
        let grammar = regex::compile("[ab]{2}", &limits).unwrap();
        let automaton = TokenAutomaton::new(grammar, vocabulary(end), limits.clone()).unwrap();
        Phase::last(Arc::new(automaton), Policy::greedy().frequency_penalty(1.0))
    };
    let phases = vec![phase("</think>").then(token("</think>"), 1), phase("end")];
    let start = PhasedSampler::new(phases).unwrap();
    let mut wants = vec![-50.0; vocabulary("end").len()];
    wants[token("a").index()] = 2.0;
    wants[token("b").index()] = 0.5;
    let generate = |start: &PhasedSampler| {
        let mut sampler = start.clone();
        sampler.generate(&mut |_: &[TokenId]| Ok::<_, Infallible>(wants.clone())).unwrap();
        sampler
    };
    // `a` is 1.5 ahead: after two of them `b`, also where a phase began between.
    let plain = generate(&start);
    assert_eq!(plain.text(), "aaba");
    // A prompt of two.
    let prompt = [token("a"), token("a")];
    let prompted = generate(&start.clone().with_penalised_prompt(&prompt));
    assert_eq!(prompted.text(), "baba");
    assert_eq!(generate(&plain.with_penalised_prompt(&prompt)).tokens(), prompted.tokens());
}

#[test]
fn a_stored_state_goes_on_as_the_first_would_have() {
    let automaton = automaton("root ::= [abc]{5,20}");
    for seed in 0..20 {
        let policy = Policy::sample(1.0)
            .frequency_penalty(0.5)
            .bias(token("bc"), f64::NEG_INFINITY)
            .bias(token("c"), 1.0 / 3.0)
            .seed(seed)
            .stop("cacb")
            .ban("bbb")
            .max_tokens(n(15));
        let start = ConstrainedSampler::new(automaton.clone(), policy)
            .unwrap()
            .with_penalised_prompt(&[token("a"), token("a")]);
        let mut whole = start.clone();
        whole.generate(&mut model()).unwrap();
        let mut half = start.clone();
        half.replay(&whole.tokens()[..3]).unwrap();
        let stored = serde_json::to_string(&half.state()).unwrap();
        let state: SamplerState = serde_json::from_str(&stored).unwrap();
        let mut resumed = ConstrainedSampler::resume(automaton.clone(), state.clone()).unwrap();
        assert_eq!(resumed.state(), state);
        resumed.generate(&mut model()).unwrap();
        assert_eq!(resumed.tokens(), whole.tokens());
        // Of another version, vocabulary or grammar.
        let newer = stored.replace("\"version\":1", "\"version\":2");
        let newer: SamplerState = serde_json::from_str(&newer).unwrap();
        let error = ConstrainedSampler::resume(automaton.clone(), newer).unwrap_err();
        assert!(error.to_string().contains("version 2"), "{error}");
        let other = self::automaton("root ::= [xyz]{9}");
        let error = ConstrainedSampler::resume(other, state.clone()).unwrap_err();
        assert!(matches!(error, StepError::TokenRejected { step: 0, .. }));
        let grammar = gbnf::compile("root ::= \"a\"*", &Limits::default()).unwrap();
        let other =
            TokenAutomaton::new(grammar, vocabulary("</think>"), Limits::default()).unwrap();
        let error = ConstrainedSampler::resume(Arc::new(other), state).unwrap_err();
        assert!(error.to_string().contains("vocabulary"), "{error}");
    }
}

#[test]
fn the_reason_why_a_token_may_not_come_names_byte_and_place() {
    let schema = r#"{"type": "object", "properties": {"n": {"type": "array", "items":
        {"enum": [1, 20]}}}, "required": ["n"], "additionalProperties": false}"#;
    let options = json_schema::JsonOptions::default();
    let grammar = json_schema::compile(schema, &options, &Limits::default()).unwrap();
    let automaton = TokenAutomaton::new(grammar, vocabulary("end"), Limits::default()).unwrap();
    let mut sampler =
        ConstrainedSampler::new(Arc::new(automaton), Policy::greedy().max_tokens(n(12))).unwrap();
    let why =
        |sampler: &ConstrainedSampler, text: &str| sampler.explain_token(token(text)).unwrap();
    assert_eq!(why(&sampler, "{\""), Verdict::Legal);
    match why(&sampler, "end") {
        Verdict::NotComplete { legal_bytes, pointer, .. } => {
            assert!(legal_bytes.contains(&b'{') && pointer.as_deref() == Some(""));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(why(&sampler, "</think>"), Verdict::NoText { name: Some("</think>".into()) });
    sampler.accept(token("{\"")).unwrap();
    sampler.accept(token("n")).unwrap();
    sampler.accept(token("\":")).unwrap();
    sampler.accept(token("[")).unwrap();
    sampler.accept(token("1")).unwrap();
    sampler.accept(token(",")).unwrap();
    match why(&sampler, "3") {
        Verdict::LeavesGrammar {
            legal_prefix: 0, byte, legal_bytes, complete, pointer, ..
        } => {
            assert_eq!((byte, complete, pointer.as_deref()), (b'3', false, Some("/n/1")));
            assert!(legal_bytes.contains(&b'2') && !legal_bytes.contains(&b'3'));
        }
        other => panic!("{other:?}"),
    }
    match why(&sampler, "bc") {
        Verdict::LeavesGrammar { legal_prefix, .. } => assert_eq!(legal_prefix, 0),
        other => panic!("{other:?}"),
    }
    // 8 of 12 tokens are there: `1 ] } end` fit, and `2 0 ] } end` do not.
    sampler.accept(token("1")).unwrap();
    sampler.accept(token(",")).unwrap();
    assert_eq!(why(&sampler, "1"), Verdict::Legal);
    assert_eq!(why(&sampler, "2"), Verdict::OverBudget);
    for text in ["1", "]", "}", "end"] {
        sampler.accept(token(text)).unwrap();
    }
    assert_eq!(why(&sampler, "end"), Verdict::Finished);
}

#[test]
fn a_token_is_legal_by_its_reason_exactly_if_the_mask_has_it() {
    let policies = [
        Policy::sample(1.0),
        Policy::sample(1.0).ban("cc").ban("aab"),
        Policy::sample(1.0).min_tokens(4),
        Policy::sample(1.0).max_tokens(n(5)),
        Policy::sample(1.0).max_tokens(n(6)).min_tokens(3).ban("cab"),
    ];
    let mut verdicts = [0; 5];
    for grammar in ["root ::= [abc]{1,7}", "root ::= \"a\" root? \"c\" | \"b\"*"] {
        let automaton = automaton(grammar);
        for policy in &policies {
            for seed in 0..8 {
                let policy = policy.clone().seed(seed);
                let mut sampler = ConstrainedSampler::new(automaton.clone(), policy).unwrap();
                while !sampler.is_finished() {
                    // A ban may leave nothing.
                    let Ok(mask) = sampler.mask().map(Cow::into_owned) else { break };
                    for id in vocabulary("end").ids() {
                        let verdict = sampler.explain_token(id).unwrap();
                        let legal = verdict == Verdict::Legal;
                        assert_eq!(legal, mask.contains(id), "{grammar} {id:?} {verdict:?}");
                        verdicts[match verdict {
                            Verdict::Legal => 0,
                            Verdict::TooEarly => 1,
                            Verdict::Banned => 2,
                            Verdict::OverBudget => 3,
                            _ => 4,
                        }] += 1;
                    }
                    let token = sampler.next_token(&row(sampler.tokens())).unwrap();
                    assert!(mask.contains(token));
                }
            }
        }
    }
    assert!(verdicts.iter().all(|&count| count > 20), "{verdicts:?}");
}

#[test]
fn the_reason_why_a_token_may_not_come_names_the_rule() {
    let grammar = "root ::= \"a\" list \"b\"\nlist ::= \"1\" list? \"2\"";
    let mut sampler =
        ConstrainedSampler::new(automaton(grammar), Policy::greedy().max_tokens(n(9))).unwrap();
    let rule = |sampler: &ConstrainedSampler, text: &str| match sampler
        .explain_token(token(text))
        .unwrap()
    {
        Verdict::LeavesGrammar { rule, .. } | Verdict::NotComplete { rule, .. } => rule,
        other => panic!("{other:?}"),
    };
    sampler.accept(token("a")).unwrap();
    assert_eq!(rule(&sampler, "a"), None, "no rule has begun");
    sampler.accept(token("1")).unwrap();
    assert_eq!(rule(&sampler, "3").as_deref(), Some("list"));
    assert_eq!(rule(&sampler, "end").as_deref(), Some("list"));
    sampler.accept(token("2")).unwrap();
    assert_eq!(rule(&sampler, "2"), None, "it has ended");
}

#[test]
fn healing_takes_back_what_longer_tokens_begin_with() {
    let vocabulary = vocabulary("end");
    let healed = |tokens: &[&str]| {
        let prompt: Vec<_> = tokens.iter().map(|text| token(text)).collect();
        let healed = heal(&vocabulary, &prompt).unwrap();
        (healed.prompt.len(), healed.begins_with)
    };
    assert_eq!(healed(&["a", "http"]), (1, "http".into()), "`http://` begins with it");
    assert_eq!(healed(&["a", "bc"]), (2, String::new()), "no token is longer");
    assert_eq!(healed(&["ab", "end"]), (2, String::new()));
    assert_eq!(healed(&[]), (0, String::new()));
}
