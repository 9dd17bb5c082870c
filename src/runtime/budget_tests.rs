//! Budgets of tokens against a search that tries everything.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::budget::WayOut;
use super::{Beam, ConstrainedSampler, Policy, Reason, Stage, speculate, uniform};
use crate::frontend::gbnf;
use crate::ids::TokenId;
use crate::limits::Limits;
use crate::step_error::StepError;
use crate::token::{Matcher, TokenAutomaton};
use crate::vocab::{Token, Vocabulary};

fn automaton(grammar: &str, limits: Limits) -> Arc<TokenAutomaton> {
    let texts = ["a", "b", "c", "ab", "aaaa", "ca", ")", "))", "(("];
    let mut tokens: Vec<Token> = texts.map(|text| Token::Text(text.as_bytes().into())).into();
    tokens.push(Token::Special("end".into()));
    let vocabulary = Vocabulary::new(tokens, [TokenId::new(9)]).unwrap();
    let grammar = gbnf::compile(grammar, &limits).unwrap();
    Arc::new(TokenAutomaton::new(grammar, Arc::new(vocabulary), limits).unwrap())
}

/// The fewest tokens, an end token included, that complete the output; at most `most`.
fn least(from: &Matcher, most: usize) -> Option<usize> {
    let bytes = |matcher: &Matcher| matcher.shortest_completion().unwrap();
    let mut level = vec![(from.clone(), Vec::new())];
    for tokens in 1..=most {
        let mut seen: BTreeSet<Vec<u8>> = BTreeSet::new();
        let mut next = Vec::new();
        for (matcher, text) in &level {
            if bytes(matcher).is_empty() {
                return Some(tokens);
            }
            for token in matcher.mask().unwrap().iter() {
                let mut text: Vec<u8> = text.clone();
                text.extend_from_slice(matcher.automaton().vocabulary().bytes(token));
                // What goes on alike is told by the text.
                if seen.insert(text.clone()) {
                    let mut after = matcher.clone();
                    after.accept(token).unwrap();
                    next.push((after, text));
                }
            }
        }
        level = next;
    }
    None
}

/// The byte that is nearest to the end is often not the token that is: `aaaa` is one token and `bc` two.
const GRAMMARS: [&str; 5] = [
    "root ::= \"aaaa\" | \"bc\"",
    "root ::= [abc]{2,5}",
    "root ::= \"(\" (\"a\" | root)? \")\"",
    "root ::= (\"ca\" | \"bcb\") (\"aaaa\" | \"cb\") \"c\"?",
    "root ::= (\"a\" root \"b\") | \"c\" (\"aaaa\")*",
];

#[test]
fn tokens_that_fit_are_those_that_a_search_of_everything_finds() {
    for grammar in GRAMMARS {
        let automaton = automaton(grammar, Limits::default());
        let start = Matcher::new(automaton.clone());
        let mut places = vec![(start.clone(), 0)];
        let mut checked = 0;
        while let Some((matcher, depth)) = places.pop() {
            for left in 1..=5 {
                let mut way_out = WayOut::within(&start, 9).unwrap();
                way_out.forget();
                for token in matcher.mask().unwrap().iter() {
                    let mut after = matcher.clone();
                    after.accept(token).unwrap();
                    let expected = after.is_finished() || least(&after, left - 1).is_some();
                    let found = way_out.fits(&matcher, token, left).unwrap();
                    assert_eq!(found, expected, "{grammar} {depth} {left} {}", token.get());
                    checked += 1;
                    if left == 1 && depth < 3 && !after.is_finished() {
                        places.push((after, depth + 1));
                    }
                }
            }
        }
        assert!(checked > 10, "{grammar} {checked}");
    }
}

/// What the stages leave of tokens with these logits, by their definitions: each filter speaks of what
/// the one before left, renormalised.
fn filtered(policy: &Policy, tokens: &[(TokenId, f32)]) -> Vec<(TokenId, f64)> {
    let mut left: Vec<(TokenId, f64)> = tokens
        .iter()
        .map(|&(token, logit)| (token, (f64::from(logit) / policy.temperature).exp()))
        .collect();
    left.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let normalise = |left: &mut Vec<(TokenId, f64)>| {
        let total: f64 = left.iter().map(|(_, p)| p).sum();
        left.iter_mut().for_each(|(_, p)| *p /= total);
    };
    left.truncate(policy.top_k.map_or(usize::MAX, NonZeroUsize::get));
    normalise(&mut left);
    let mut before = 0.0;
    left.retain(|(_, p)| {
        let keep = before < policy.top_p;
        before += p;
        keep
    });
    normalise(&mut left);
    let least = policy.min_p * left[0].1;
    left.retain(|&(_, p)| p >= least);
    normalise(&mut left);
    left
}

#[test]
fn filters_speak_of_the_tokens_that_leave_enough_and_of_no_others() {
    let policies = [
        Policy::sample(1.0),
        Policy::sample(1.0).top_k(NonZeroUsize::new(2).unwrap()),
        Policy::sample(0.7).top_p(0.6),
        Policy::sample(1.0).min_p(0.4),
        Policy::sample(1.3).top_k(NonZeroUsize::new(3).unwrap()).top_p(0.7).min_p(0.2),
    ];
    let (mut compared, mut restricted) = (0, 0);
    for grammar in GRAMMARS {
        let automaton = automaton(grammar, Limits::default());
        let mut places = vec![Matcher::new(automaton.clone())];
        let mut paths: Vec<Vec<TokenId>> = vec![Vec::new()];
        while let (Some(matcher), Some(path)) = (places.pop(), paths.pop()) {
            let legal = matcher.mask().unwrap();
            let mut next: Vec<(Matcher, TokenId)> = Vec::new();
            for token in legal.iter() {
                let mut after = matcher.clone();
                after.accept(token).unwrap();
                next.push((after, token));
            }
            for left in 1..=5 {
                let row: Vec<f32> = (0..10)
                    .map(|i| (uniform(left as u64, path.len() * 10 + i) * 3.0) as f32)
                    .collect();
                let fitting: Vec<(TokenId, f32)> = next
                    .iter()
                    .filter(|(after, _)| after.is_finished() || least(after, left - 1).is_some())
                    .map(|&(_, token)| (token, row[token.index()]))
                    .collect();
                if fitting.is_empty() {
                    continue;
                }
                restricted += usize::from(fitting.len() < legal.count());
                for policy in &policies {
                    let policy =
                        policy.clone().max_tokens(NonZeroUsize::new(path.len() + left).unwrap());
                    let mut sampler = ConstrainedSampler::new(automaton.clone(), policy).unwrap();
                    path.iter().for_each(|&token| sampler.accept(token).unwrap());
                    let expected = filtered(sampler.policy(), &fitting);
                    let found = sampler.distribution(&row).unwrap();
                    assert_eq!(
                        found.len(),
                        expected.len(),
                        "{grammar} {left} {}",
                        sampler.policy()
                    );
                    for (found, expected) in found.iter().zip(&expected) {
                        assert_eq!(found.0, expected.0);
                        assert!((found.1 - expected.1).abs() < 1e-6, "{found:?} {expected:?}");
                    }
                    let choice = sampler.sample(&row).unwrap();
                    let p = expected.iter().find(|(token, _)| *token == choice.token).unwrap().1;
                    assert!((choice.log_probability - p.ln()).abs() < 1e-6);
                    compared += 1;
                }
            }
            for (after, token) in next {
                if path.len() < 3 && !after.is_finished() {
                    places.push(after);
                    paths.push([&path[..], &[token]].concat());
                }
            }
        }
    }
    assert!(compared > 1_000 && restricted > 100, "{compared} {restricted}");
}

#[test]
fn an_impossible_budget_names_the_least_one_that_would_do() {
    let refused = |grammar: &str, limits: Limits, budget: usize| {
        let policy = Policy::greedy().max_tokens(NonZeroUsize::new(budget).unwrap());
        match ConstrainedSampler::new(automaton(grammar, limits), policy) {
            Err(StepError::TokenBudget { needed, exact, .. }) => Some((needed, exact)),
            Err(error) => panic!("{error}"),
            Ok(_) => None,
        }
    };
    for grammar in GRAMMARS {
        let start = Matcher::new(automaton(grammar, Limits::default()));
        let least = least(&start, 9).unwrap();
        assert_eq!(refused(grammar, Limits::default(), least - 1), Some((least, true)));
        assert_eq!(refused(grammar, Limits::default(), least), None);
        let closing = ConstrainedSampler::new(start.automaton().clone(), Policy::greedy()).unwrap();
        let closing = closing.close_now().unwrap();
        assert_eq!((closing.tokens.len(), closing.exact), (least, true));
        let mut matcher = start;
        closing.tokens.iter().for_each(|&token| matcher.accept(token).unwrap());
        assert!(matcher.is_finished());
    }
    // A search without work leaves what spells the fewest bytes: `bc` is two tokens.
    let lazy = Limits::default().max_closing_work(1);
    assert_eq!(refused(GRAMMARS[0], lazy, 1), Some((3, false)));
    assert_eq!(refused(GRAMMARS[0], Limits::default(), 1), Some((2, true)));
}

#[test]
fn where_all_that_fits_has_no_finite_logit_the_way_out_is_taken_by_every_way_of_decoding() {
    // `b` and the end are all that two tokens can hold, and the model wants `a` alone.
    let automaton = automaton("root ::= \"a\"* \"b\"", Limits::default());
    let no = f32::NEG_INFINITY;
    let mut model =
        |_: &[TokenId]| Ok::<_, Infallible>([0.0, no, no, no, no, no, no, no, no, 0.0].to_vec());
    let row = model(&[]).unwrap();
    let two = NonZeroUsize::new(2).unwrap();
    for policy in [Policy::greedy(), Policy::sample(1.0), Policy::sample(1.0).top_p(0.5)] {
        let policy = policy.max_tokens(two);
        let start = ConstrainedSampler::new(automaton.clone(), policy).unwrap();
        let mut sampler = start.clone();
        let choice = sampler.sample(&row).unwrap();
        assert_eq!((choice.token, choice.reason), (TokenId::new(1), Reason::Budget));
        // What is seen is what was looked at, and not an error.
        let view = sampler.view(&row, &choice).unwrap();
        assert_eq!((view.token, view.before.rank, view.reason), (choice.token, 0, Reason::Budget));
        let stages = sampler.stages(&row).unwrap();
        let mask = stages.iter().find(|stage| stage.stage == Stage::Mask).unwrap();
        assert_eq!(mask.probabilities, [(TokenId::new(0), 1.0)]);
        assert_eq!(sampler.distribution(&row).unwrap(), [(TokenId::new(0), 1.0)]);
        sampler.generate(&mut model).unwrap();
        assert_eq!(sampler.text(), "b");
        let mut speculated = start.clone();
        while !speculated.is_finished() {
            speculate(&mut speculated, &mut model.clone(), &mut model, two).unwrap();
        }
        assert_eq!(speculated.tokens(), sampler.tokens());
        // A beam looks for what is probable, and here nothing is possible.
        let error = Beam::new(two).search(&start, &mut model).unwrap_err();
        let none = StepError::NoFiniteLegalLogit { step: 0 };
        assert_eq!(error.to_string(), none.to_string());
    }
}

#[test]
fn a_way_that_only_a_long_search_finds_is_found_again_after_going_back() {
    // `ca aaaa end` are three tokens, and of the shortest texts `ca c b end` four. The work of a step does
    // not suffice to find the three, that of the start does.
    let limits = Limits::default().max_closing_work(199);
    let automaton = automaton(GRAMMARS[3], limits);
    let policy = Policy::greedy().max_tokens(NonZeroUsize::new(3).unwrap());
    let mut sampler = ConstrainedSampler::new(automaton, policy).unwrap();
    let row = [0.0; 10];
    let way = [5, 4, 9].map(TokenId::new);
    for back in 0..4 {
        while !sampler.is_finished() {
            let token = sampler.sample(&row).unwrap().token;
            assert!(sampler.mask().unwrap().contains(token));
            sampler.accept(token).unwrap();
        }
        assert_eq!(sampler.tokens(), way);
        if back == 0 {
            sampler.reset();
        } else {
            sampler.rollback(back).unwrap();
        }
    }
}

#[test]
fn a_tree_of_drafts_has_the_mask_of_each_path() {
    let start = Matcher::new(automaton("root ::= [ab]{1,2} \"c\"", Limits::default()));
    let id = TokenId::new;
    // a, a b, a b b (not legal), below that, c, a c, a c end, ab, after the end.
    let nodes = [
        (None, id(0)),
        (Some(0), id(1)),
        (Some(1), id(1)),
        (Some(2), id(2)),
        (None, id(2)),
        (Some(0), id(2)),
        (Some(5), id(9)),
        (None, id(3)),
    ];
    let masks = start.tree_masks(&nodes);
    let tokens =
        |at: usize| masks[at].as_ref().unwrap().iter().map(TokenId::get).collect::<Vec<_>>();
    assert_eq!(tokens(0), [0, 1, 2]);
    assert_eq!(tokens(1), [2]);
    assert!(matches!(masks[2], Err(StepError::TokenRejected { .. })));
    assert!(matches!(masks[3], Err(StepError::TokenRejected { .. })));
    assert!(matches!(masks[4], Err(StepError::TokenRejected { .. })));
    assert_eq!(tokens(5), [9]);
    assert!(matches!(masks[6], Err(StepError::Finished)));
    assert_eq!(tokens(7), [2]);
    let mut matcher = start.clone();
    assert_eq!(matcher.accept_prefix(&[id(0), id(1), id(1), id(2)]).unwrap(), 2);
    assert_eq!(matcher.accept_prefix(&[id(2), id(9), id(0)]).unwrap(), 2);
    matcher.rollback(4).unwrap();
    assert_eq!(matcher.mask().unwrap(), start.mask().unwrap());
}
