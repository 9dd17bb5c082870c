//! The sampler over whole sequences: what it generates is valid and within its budget, errors leave
//! it as it was, and clones, forks and rollbacks go on as the original would.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::Arc;

use schemac::frontend::gbnf;
use schemac::runtime::{ConstrainedSampler, GenerateError, Model, Policy, RandomModel, Reason};
use schemac::token::TokenAutomaton;
use schemac::vocab::Token;
use schemac::{ErrorKind, Limits, LogitsError, StepError, TokenId, Vocabulary};

/// All bytes, and some longer tokens of JSON and arithmetic; two end tokens, an unused id.
fn vocabulary() -> Arc<Vocabulary> {
    let longer = [
        "{\"", "\":", "\",\"", "\"}", "{}", "[]", "[[", "]]", "},{", "null", "true", "false",
        "\"\"", "name", "id", "12", "00", "3.14", "e10", "\\n", "\\\"", "\\u00", "é", "日本",
        " + ", " * ", "max(", ", ", "((", "))", "the ", "ing", "\n\n", "  ", "\":\"", "\":[",
        "\":{", "]}", "}}", "}]", "null}", "true,",
    ];
    let mut tokens: Vec<Token> = (0..=u8::MAX).map(|byte| Token::Text([byte].into())).collect();
    tokens.extend(longer.iter().map(|text| Token::Text(text.as_bytes().into())));
    tokens.push(Token::Special("<end>".into()));
    tokens.push(Token::Unused);
    tokens.push(Token::Special("<turn>".into()));
    let ends = [tokens.len() - 3, tokens.len() - 1].map(|i| TokenId::from_index(i).unwrap());
    Arc::new(Vocabulary::new(tokens, ends).unwrap())
}

fn automaton(grammar: &str) -> Arc<TokenAutomaton> {
    let limits = Limits::default();
    let grammar = gbnf::compile(grammar, &limits).unwrap();
    Arc::new(TokenAutomaton::new(grammar, vocabulary(), limits).unwrap())
}

const JSON: &str = include_str!("../../grammars/json.gbnf");
const ARITHMETIC: &str = include_str!("../../grammars/arithmetic.gbnf");

/// Members of several lengths, nested, where most tokens lead far from the end.
const NESTED: &str = r#"
root ::= "{\"kind\":" ("\"leaf\"" | "\"tree\",\"left\":" root ",\"right\":" root) "}"
"#;

fn tokens(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

fn end() -> TokenId {
    *vocabulary().end_tokens().first().unwrap()
}

fn token(text: &str) -> TokenId {
    let vocabulary = vocabulary();
    vocabulary.ids().find(|&id| vocabulary.bytes(id) == text.as_bytes()).unwrap()
}

fn sampler(grammar: &str, policy: Policy) -> ConstrainedSampler {
    ConstrainedSampler::new(automaton(grammar), policy).unwrap()
}

/// Zeros, with these tokens raised.
fn row(raised: &[(TokenId, f32)]) -> Vec<f32> {
    let mut row = vec![0.0; vocabulary().len()];
    raised.iter().for_each(|&(token, logit)| row[token.index()] = logit);
    row
}

#[test]
fn random_outputs_are_valid() {
    let automaton = automaton(JSON);
    let mut model = RandomModel::new(&vocabulary(), 0);
    let mut lengths = Vec::new();
    for seed in 0..400 {
        model.reseed(seed);
        let policy = Policy::sample(1.0).seed(seed).max_tokens(tokens(300));
        let mut sampler = ConstrainedSampler::new(automaton.clone(), policy).unwrap();
        sampler.generate(&mut model).unwrap();
        let text = String::from_utf8(sampler.bytes()).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
        assert!(vocabulary().is_end(*sampler.tokens().last().unwrap()));
        lengths.push(sampler.tokens().len());
    }
    lengths.sort_unstable();
    // Short ones and long ones.
    assert!(lengths[40] <= 10 && lengths[360] >= 20, "{lengths:?}");
}

#[test]
fn the_least_budget_suffices_and_less_is_an_error_at_the_start() {
    let fixed = "root ::= \"[\" [0-9]{8} \",\" [a-f]{3,900} \"]\"";
    for grammar in [JSON, ARITHMETIC, NESTED, fixed] {
        let automaton = automaton(grammar);
        let new = |budget: usize, seed| {
            let policy = Policy::sample(1.0).seed(seed).max_tokens(tokens(budget));
            ConstrainedSampler::new(automaton.clone(), policy)
        };
        let least = match new(1, 0) {
            Err(StepError::TokenBudget { left: 1, needed, .. }) => needed,
            other => panic!("{other:?}"),
        };
        assert!(new(least - 1, 0).is_err());
        let mut model = RandomModel::new(&vocabulary(), 0);
        for budget in [least, least + 1, least + 5, least + 50] {
            let mut forced = 0;
            for seed in 0..100 {
                model.reseed(seed);
                let mut sampler = new(budget, seed).unwrap();
                let mut row = Vec::new();
                while !sampler.is_finished() {
                    model.logits(sampler.tokens(), &mut row).unwrap();
                    let choice = sampler.sample(&row).unwrap();
                    forced += usize::from(choice.reason == Reason::Budget);
                    sampler.accept(choice.token).unwrap();
                }
                assert!(sampler.tokens().len() <= budget);
                let mut check = schemac::token::Matcher::new(automaton.clone());
                check.accept_bytes(&sampler.bytes()).unwrap();
                assert!(check.is_accepting().unwrap());
            }
            assert!(forced > 0 || budget > least + 1, "a tight budget must bind");
        }
    }
}

#[test]
fn a_budget_holds_against_a_model_that_never_wants_to_end() {
    // The model always wants another level, or another letter.
    let nest = "root ::= \"(\" root? \")\"";
    for (grammar, wanted) in
        [(JSON, "[["), (JSON, "a"), (nest, "("), (ARITHMETIC, "("), (ARITHMETIC, "12")]
    {
        for budget in [4, 5, 9, 40, 400] {
            let mut sampler = sampler(grammar, Policy::greedy().max_tokens(tokens(budget)));
            let want = [(token(wanted), 9.0), (token("\""), 5.0), (token("["), 3.0)];
            let mut model = |_: &[TokenId]| Ok::<_, Infallible>(row(&want));
            sampler.generate(&mut model).unwrap();
            assert!(sampler.tokens().len() <= budget);
            assert!(sampler.tokens().len() + 4 >= budget, "it uses what it has");
            if grammar == JSON {
                serde_json::from_str::<serde_json::Value>(&sampler.text()).unwrap_or_else(|e| {
                    // serde_json stops at depth 128, and the grammar does not.
                    assert!(e.to_string().contains("recursion limit"), "{e}: {}", sampler.text());
                    serde_json::Value::Null
                });
            }
        }
    }
}

#[test]
fn a_budget_spent_by_hand_is_an_error_and_can_be_rolled_back() {
    let mut sampler =
        sampler("root ::= \"a\"+ \"bcdefgh\"", Policy::greedy().max_tokens(tokens(10)));
    sampler.accept(token("a")).unwrap();
    sampler.accept(token("a")).unwrap();
    let found = sampler.next_token(&row(&[]));
    assert!(
        matches!(found, Err(StepError::TokenBudget { left: 8, needed: 8, .. })) || found.is_ok()
    );
    sampler.reset();
    for _ in 0..5 {
        sampler.accept(token("a")).unwrap();
    }
    let error = sampler.next_token(&row(&[])).unwrap_err();
    assert!(matches!(error, StepError::TokenBudget { left: 5, needed: 8, .. }), "{error:?}");
    assert_eq!(sampler.tokens().len(), 5);
    sampler.rollback(3).unwrap();
    let mut model = |_: &[TokenId]| Ok::<_, Infallible>(row(&[(token("a"), 1.0)]));
    sampler.generate(&mut model).unwrap();
    assert_eq!(sampler.text(), "aabcdefgh");
}

#[test]
fn the_same_seed_gives_the_same_output_and_others_differ() {
    let automaton = automaton(JSON);
    let generate = |model_seed, seed| {
        let policy = Policy::sample(1.0).top_p(0.95).seed(seed).max_tokens(tokens(60));
        let mut sampler = ConstrainedSampler::new(automaton.clone(), policy).unwrap();
        sampler.generate(&mut RandomModel::new(&vocabulary(), model_seed)).unwrap();
        sampler.tokens().to_vec()
    };
    let outputs: Vec<_> = (0..20).map(|seed| generate(1, seed)).collect();
    assert_eq!(outputs, (0..20).map(|seed| generate(1, seed)).collect::<Vec<_>>());
    let mut distinct = outputs;
    distinct.sort();
    distinct.dedup();
    assert!(distinct.len() > 10, "{}", distinct.len());
}

#[test]
fn clones_forks_and_rollbacks_go_on_as_the_original_would() {
    let automaton = automaton(JSON);
    let mut model = RandomModel::new(&vocabulary(), 3);
    for seed in 0..60 {
        let policy = Policy::sample(1.0)
            .repetition_penalty(1.3)
            .frequency_penalty(0.2)
            .penalty_window(tokens(7))
            .seed(seed)
            .max_tokens(tokens(80));
        let mut whole = ConstrainedSampler::new(automaton.clone(), policy).unwrap();
        whole.generate(&mut model).unwrap();
        let all = whole.tokens().to_vec();

        let half = all.len() / 2;
        let mut back = whole.clone();
        back.rollback(all.len() - half).unwrap();
        assert_eq!(back.tokens(), &all[..half]);
        assert!(!back.is_finished() || half == all.len());
        let (mut clone, mut fork) = (back.clone(), back.fork());
        for sampler in [&mut back, &mut clone, &mut fork] {
            sampler.generate(&mut model).unwrap();
            assert_eq!(sampler.tokens(), all);
        }
        let far = fork.rollback(all.len() - half + 1);
        assert!(half == 0 || matches!(far, Err(StepError::RollbackTooFar { .. })), "{far:?}");
        // From the start, and by accepting tokens that were chosen elsewhere.
        back.reset();
        assert!(back.tokens().is_empty());
        all.iter().for_each(|&token| back.accept(token).unwrap());
        assert!(back.is_finished());
        back.reset();
        back.generate(&mut model).unwrap();
        assert_eq!(back.tokens(), all);
    }
}

#[test]
fn after_the_end_there_is_only_finished() {
    let mut sampler = sampler("root ::= \"a\"", Policy::greedy());
    let mut zeros = row(&[]);
    assert_eq!(sampler.next_token(&zeros).unwrap(), token("a"));
    assert!(sampler.is_accepting().unwrap() && !sampler.is_finished());
    assert_eq!(sampler.next_token(&zeros).unwrap(), end(), "the lowest of two end tokens");
    assert!(sampler.is_finished());
    assert!(matches!(sampler.next_token(&zeros), Err(StepError::Finished)));
    assert!(matches!(sampler.sample(&[f32::NAN]), Err(StepError::Finished)));
    assert!(matches!(sampler.accept(token("a")), Err(StepError::Finished)));
    assert!(matches!(sampler.mask(), Err(StepError::Finished)));
    assert!(matches!(sampler.apply_mask(&mut zeros), Err(StepError::Finished)));
    let mut model = |_: &[TokenId]| Err("not asked");
    sampler.generate(&mut model).unwrap();
    assert_eq!(sampler.text(), "a");
    sampler.rollback(1).unwrap();
    assert!(!sampler.is_finished());
    assert_eq!(sampler.next_token(&row(&[])).unwrap(), end());
}

#[test]
fn errors_leave_the_sequence_as_it_was() {
    let mut sampler = sampler("root ::= [ab]{2}", Policy::sample(1.0));
    sampler.next_token(&row(&[])).unwrap();
    let nan = row(&[(token("b"), f32::NAN), (token("c"), f32::NAN)]);
    let invalid = sampler.next_token(&nan).unwrap_err();
    let expected = LogitsError::NotANumber { index: token("b").index() };
    assert!(matches!(invalid, StepError::InvalidLogits(error) if error == expected));
    let narrow = sampler.next_token(&[0.0; 9]).unwrap_err();
    assert!(matches!(narrow, StepError::InvalidLogits(LogitsError::TooNarrow { len: 9, .. })));
    assert!(matches!(sampler.apply_mask(&mut [0.0; 9]), Err(StepError::InvalidLogits(_))));
    let no = f32::NEG_INFINITY;
    let none = row(&[(token("a"), no), (token("b"), no)]);
    let found = sampler.next_token(&none).unwrap_err();
    assert!(matches!(found, StepError::NoFiniteLegalLogit { step: 1 }), "{found:?}");
    let rejected = sampler.accept(token("c")).unwrap_err();
    assert!(matches!(rejected, StepError::TokenRejected { step: 1, .. }));
    assert_eq!(sampler.tokens().len(), 1);
    let only_b = row(&[(token("a"), no)]);
    assert_eq!(sampler.next_token(&only_b).unwrap(), token("b"));

    let mut applied = row(&[]);
    sampler.apply_mask(&mut applied).unwrap();
    let legal = applied.iter().filter(|&&logit| logit > no).count();
    assert_eq!(legal, 2, "two end tokens");
}

#[test]
fn what_the_vocabulary_cannot_spell_is_all_tokens_illegal() {
    let tokens = vec![Token::Text(b"a".as_slice().into()), Token::Special("end".into())];
    let vocabulary = Arc::new(Vocabulary::new(tokens, [TokenId::new(1)]).unwrap());
    let limits = Limits::default();
    let grammar = gbnf::compile("root ::= \"ab\"", &limits).unwrap();
    let automaton = Arc::new(TokenAutomaton::new(grammar, vocabulary, limits).unwrap());
    let budgeted = Policy::greedy().max_tokens(self::tokens(50));
    let refused = ConstrainedSampler::new(automaton.clone(), budgeted).unwrap_err();
    assert!(matches!(refused, StepError::TokenBudget { left: 50, needed: usize::MAX, .. }));
    let mut sampler = ConstrainedSampler::new(automaton, Policy::greedy()).unwrap();
    sampler.next_token(&[0.0; 2]).unwrap();
    match sampler.next_token(&[0.0; 2]).unwrap_err() {
        StepError::AllTokensIllegal { step: 1, legal_bytes, .. } => assert_eq!(legal_bytes, b"b"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn penalties_and_min_tokens_follow_the_sequence() {
    let policy = Policy::greedy().frequency_penalty(1.0).min_tokens(4);
    let mut sampler = sampler("root ::= [ab]{0,6}", policy);
    // The end is wanted most, then `a`, and `b` 1.5 less: a a b a, and then the end.
    let wants = row(&[(end(), 50.0), (token("a"), 2.0), (token("b"), 0.5)]);
    while !sampler.is_finished() {
        sampler.next_token(&wants).unwrap();
    }
    assert_eq!(sampler.text(), "aaba");
    // The same with a prompt of two `a` in the window: b a b a.
    let policy = sampler.policy().clone();
    let automaton = sampler.matcher().automaton().clone();
    let prompt = [token("a"), token("a")];
    let mut sampler =
        ConstrainedSampler::new(automaton, policy).unwrap().with_penalised_prompt(&prompt);
    while !sampler.is_finished() {
        sampler.next_token(&wants).unwrap();
    }
    assert_eq!(sampler.text(), "baba");
    assert_eq!(sampler.tokens().len(), 5);
}

#[test]
fn policies_out_of_range_are_refused_at_the_start() {
    let automaton = automaton("root ::= \"a\"");
    let error = ConstrainedSampler::new(automaton, Policy::sample(f64::NAN)).unwrap_err();
    let StepError::InvalidPolicy(error) = error else { panic!("{error:?}") };
    assert_eq!(*error.kind(), ErrorKind::InvalidOption);
}

#[test]
fn a_model_that_fails_ends_the_generation_where_it_is() {
    let mut sampler = sampler("root ::= \"abc\"", Policy::greedy());
    let mut model = |tokens: &[TokenId]| match tokens.len() {
        2 => Err("no more"),
        _ => Ok(row(&[])),
    };
    let error = sampler.generate(&mut model).unwrap_err();
    assert!(matches!(error, GenerateError::Model("no more")));
    assert_eq!(sampler.text(), "ab");
}

#[test]
fn samplers_can_be_sent_and_share_their_grammar() {
    fn check<T: Send + Sync>() {}
    check::<ConstrainedSampler>();
    check::<Policy>();
    let automaton = automaton(JSON);
    let outputs: Vec<Vec<TokenId>> = std::thread::scope(|scope| {
        let run = || {
            let policy = Policy::sample(1.0).seed(5).max_tokens(tokens(40));
            let mut sampler = ConstrainedSampler::new(automaton.clone(), policy).unwrap();
            sampler.generate(&mut RandomModel::new(&vocabulary(), 5)).unwrap();
            sampler.tokens().to_vec()
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(outputs.iter().all(|output| *output == outputs[0]));
}
