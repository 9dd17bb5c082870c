//! Speculative decoding gives what plain sampling gives: χ² tests at fixed seeds, against
//! distributions worked out by enumeration.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::{
    Beam, ConstrainedSampler, GenerateError, Model, Policy, SpeculateError, WrongRows, candidates,
    generate_each, speculate, uniform,
};
use crate::frontend::gbnf;
use crate::ids::TokenId;
use crate::limits::Limits;
use crate::step_error::StepError;
use crate::token::{Matcher, TokenAutomaton};
use crate::vocab::{Token, Vocabulary};

fn automaton(grammar: &str) -> Arc<TokenAutomaton> {
    let mut tokens: Vec<Token> =
        ["a", "b", "c", "ab"].map(|text| Token::Text(text.as_bytes().into())).into();
    tokens.push(Token::Special("end".into()));
    let vocabulary = Vocabulary::new(tokens, [TokenId::new(4)]).unwrap();
    let limits = Limits::default();
    let grammar = gbnf::compile(grammar, &limits).unwrap();
    Arc::new(TokenAutomaton::new(grammar, Arc::new(vocabulary), limits).unwrap())
}

fn n(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

fn row(seed: u64, tokens: &[TokenId]) -> Vec<f32> {
    let place = tokens.iter().fold(7, |hash: u64, t| hash * 31 + u64::from(t.get()) + 1);
    (0..5).map(|i| (uniform(seed ^ (place << 20), i) * 4.0) as f32).collect()
}

fn model(seed: u64) -> impl FnMut(&[TokenId]) -> Result<Vec<f32>, Infallible> {
    move |tokens| Ok(row(seed, tokens))
}

type Tokens = Vec<TokenId>;

/// The outputs and their probabilities: at each step those of `target` at temperature 1 over the legal
/// tokens after which the output can end within `most` tokens.
fn enumerate(automaton: &Arc<TokenAutomaton>, target: u64, most: usize) -> BTreeMap<Tokens, f64> {
    fn ends(matcher: &Matcher, left: usize) -> bool {
        matcher.is_finished()
            || left > 0
                && matcher.mask().unwrap().iter().any(|token| {
                    let mut after = matcher.clone();
                    after.accept(token).unwrap();
                    ends(&after, left - 1)
                })
    }
    let mut found = BTreeMap::new();
    let mut pending = vec![(Matcher::new(automaton.clone()), Tokens::new(), 1.0)];
    while let Some((matcher, tokens, p)) = pending.pop() {
        if matcher.is_finished() {
            found.insert(tokens, p);
            continue;
        }
        let row = row(target, &tokens);
        let mut next = Vec::new();
        for token in matcher.mask().unwrap().iter() {
            let mut after = matcher.clone();
            after.accept(token).unwrap();
            if ends(&after, most - tokens.len() - 1) {
                next.push((after, token, f64::from(row[token.index()]).exp()));
            }
        }
        let total: f64 = next.iter().map(|(.., weight)| weight).sum();
        for (after, token, weight) in next {
            let mut tokens = tokens.clone();
            tokens.push(token);
            pending.push((after, tokens, p * weight / total));
        }
    }
    found
}

/// Checks that counts are those of a distribution: a deviation that is this large has a probability below
/// 1e-6.
fn check(counts: &BTreeMap<Tokens, u32>, expected: &BTreeMap<Tokens, f64>) {
    let total: f64 = counts.values().map(|&count| f64::from(count)).sum();
    assert!(counts.keys().all(|tokens| expected.contains_key(tokens)), "an impossible output");
    // Rare outputs are one.
    let (mut rare, mut rare_count, mut chi, mut bins) = (0.0, 0.0, 0.0, 0);
    for (tokens, p) in expected {
        let count = f64::from(counts.get(tokens).copied().unwrap_or(0));
        if p * total < 10.0 {
            rare += p * total;
            rare_count += count;
        } else {
            chi += (count - p * total).powi(2) / (p * total);
            bins += 1;
        }
    }
    if rare > 0.0 {
        chi += (rare_count - rare).powi(2) / rare.max(1.0);
        bins += 1;
    }
    assert!(bins > 1);
    // Wilson and Hilferty's approximation of the quantile; 4.76 standard deviations.
    let part = 2.0 / (9.0 * f64::from(bins - 1));
    let limit = f64::from(bins - 1) * (1.0 - part + 4.76 * part.sqrt()).powi(3);
    assert!(chi < limit, "chi² {chi} of {bins} bins, limit {limit}");
}

const GRAMMARS: [&str; 3] = [
    "root ::= [abc]{1,3}",
    "root ::= (\"a\" root \"b\") | \"c\"",
    "root ::= \"ab\" [ac]? | \"c\" [ab]*",
];

const OUTPUTS: u64 = 20_000;

#[test]
fn outputs_are_distributed_as_by_plain_sampling() {
    for (number, grammar) in GRAMMARS.into_iter().enumerate() {
        let automaton = automaton(grammar);
        let expected = enumerate(&automaton, 1, 6);
        assert!((expected.values().sum::<f64>() - 1.0).abs() < 1e-9);
        let policy = Policy::sample(1.0).max_tokens(n(6));
        let start = ConstrainedSampler::new(automaton, policy).unwrap();
        let mut plain = BTreeMap::new();
        let mut speculated = BTreeMap::new();
        let (mut drafted, mut accepted) = (0, 0);
        for seed in 0..OUTPUTS {
            let mut sampler = start.fork();
            sampler.reseed(seed);
            sampler.generate(&mut model(1)).unwrap();
            *plain.entry(sampler.tokens().to_vec()).or_insert(0) += 1;
            let mut sampler = start.fork();
            sampler.reseed(seed);
            while !sampler.is_finished() {
                let before = sampler.tokens().len();
                let round =
                    speculate(&mut sampler, &mut model(1), &mut model(2), n(number + 1)).unwrap();
                assert_eq!(sampler.tokens().len() - before, round.gained);
                assert!(round.accepted <= round.drafted && round.gained <= round.drafted + 1);
                drafted += round.drafted;
                accepted += round.accepted;
            }
            *speculated.entry(sampler.tokens().to_vec()).or_insert(0) += 1;
        }
        check(&plain, &expected);
        check(&speculated, &expected);
        assert!(accepted * 10 > drafted && accepted < drafted, "{accepted} of {drafted}");
    }
}

#[test]
fn filters_penalties_and_temperature_count_for_both_models() {
    let policy = Policy::sample(0.8)
        .top_k(n(3))
        .top_p(0.9)
        .frequency_penalty(0.7)
        .bias(TokenId::new(1), 0.4)
        .min_tokens(2);
    let start = ConstrainedSampler::new(automaton(GRAMMARS[0]), policy.max_tokens(n(9))).unwrap();
    // What each path is worth by the sampler's own distributions, step by step.
    let mut expected = BTreeMap::new();
    let mut pending = vec![(start.fork(), 1.0)];
    while let Some((mut sampler, p)) = pending.pop() {
        if sampler.is_finished() {
            expected.insert(sampler.tokens().to_vec(), p);
            continue;
        }
        for (token, q) in
            sampler.distribution(&row(1, sampler.tokens().to_vec().as_slice())).unwrap()
        {
            let mut next = sampler.fork();
            next.accept(token).unwrap();
            pending.push((next, p * q));
        }
    }
    let mut counts = BTreeMap::new();
    for seed in 0..OUTPUTS {
        let mut sampler = start.fork();
        sampler.reseed(seed);
        while !sampler.is_finished() {
            speculate(&mut sampler, &mut model(1), &mut model(9), n(3)).unwrap();
        }
        *counts.entry(sampler.tokens().to_vec()).or_insert(0) += 1;
    }
    check(&counts, &expected);
}

#[test]
fn what_the_draft_favours_is_not_counted_twice() {
    // Target .5 and .5, draft .9 and .1: drawing again from the target would give .9 · .556 +
    // .9 · .444 · .5 = .7 in place of .5.
    let start = ConstrainedSampler::new(automaton("root ::= [ab]"), Policy::sample(1.0)).unwrap();
    let fixed = |p: f64| {
        move |_: &[TokenId]| {
            let logs = [p, 1.0 - p, 1.0, 1.0, 1.0].map(|p: f64| p.ln() as f32);
            Ok::<_, Infallible>(logs.to_vec())
        }
    };
    let (mut first, mut accepted) = (0_u32, 0_u32);
    let rounds = 100_000;
    for seed in 0..rounds {
        let mut sampler = start.fork();
        sampler.reseed(seed);
        let round = speculate(&mut sampler, &mut fixed(0.5), &mut fixed(0.9), n(1)).unwrap();
        first += u32::from(sampler.tokens()[0] == TokenId::new(0));
        accepted += u32::from(round.accepted == 1);
    }
    let share = |count: u32| f64::from(count) / rounds as f64;
    // Six standard deviations of 100,000 are 0.0095.
    assert!((share(first) - 0.5).abs() < 0.0095, "{}", share(first));
    // .9 · .556 + .1 = .6: 1 less the distance of the two distributions.
    assert!((share(accepted) - 0.6).abs() < 0.0095, "{}", share(accepted));
}

#[test]
fn a_draft_is_judged_from_left_to_right_and_dropped_after_the_first_refusal() {
    // Of the draft's a, b, c, … the first has .8 against .7 and is certain, the second .5 against .5 too,
    // and the third .2 against .6: one in three. In its place comes a or b, by max(p − q, 0) = .3 and .1.
    let target =
        [[0.8, 0.1, 0.1], [0.25, 0.5, 0.25], [0.5, 0.3, 0.2], [1.0; 3], [1.0; 3], [1.0; 3]];
    let draft = [[0.7, 0.2, 0.1], [0.25, 0.5, 0.25], [0.2, 0.2, 0.6], [1.0; 3], [1.0; 3], [1.0; 3]];
    let row = |table: &[[f64; 3]; 6], tokens: &[TokenId]| {
        let [a, b, c] = table[tokens.len()].map(|p| p.ln() as f32);
        Ok::<_, Infallible>(vec![a, b, c, f32::NEG_INFINITY, 0.0])
    };
    let start =
        ConstrainedSampler::new(automaton("root ::= [abc]{6}"), Policy::sample(1.0)).unwrap();
    let abc = [0, 1, 2].map(TokenId::new);
    let (mut all, mut accepted, mut replaced) = (0_u32, 0_u32, [0_u32; 3]);
    for seed in 0..20_000 {
        let mut sampler = start.fork();
        sampler.reseed(seed);
        let mut proposed = Vec::new();
        let mut judge = |tokens: &[TokenId]| {
            proposed = tokens.to_vec();
            row(&target, tokens)
        };
        let mut propose = |tokens: &[TokenId]| row(&draft, tokens);
        let round = speculate(&mut sampler, &mut judge, &mut propose, n(5)).unwrap();
        assert_eq!((round.drafted, proposed.len()), (5, 5));
        if proposed[..3] != abc {
            continue;
        }
        all += 1;
        assert_eq!(sampler.tokens()[..2], abc[..2]);
        if round.accepted > 2 {
            accepted += 1;
            assert_eq!(sampler.tokens()[2], abc[2]);
        } else {
            // Two and the one in place of the third; the rest of the draft is dropped.
            assert_eq!((round.accepted, round.gained, sampler.tokens().len()), (2, 3, 3));
            replaced[sampler.tokens()[2].index()] += 1;
        }
    }
    // .7 · .5 · .6 = .21 of the drafts; bounds of six standard deviations.
    let share = |part: u32, of: u32| f64::from(part) / f64::from(of);
    assert!((share(all, 20_000) - 0.21).abs() < 0.018, "{all}");
    assert!((share(accepted, all) - 1.0 / 3.0).abs() < 0.045, "{accepted} of {all}");
    assert_eq!(replaced[2], 0, "what was refused does not come back");
    assert!((share(replaced[0], replaced[0] + replaced[1]) - 0.75).abs() < 0.05, "{replaced:?}");
}

#[test]
fn greedy_speculation_is_greedy_decoding() {
    for grammar in GRAMMARS {
        for target in 0..20 {
            let policy = Policy::greedy().max_tokens(n(40));
            let start = ConstrainedSampler::new(automaton(grammar), policy).unwrap();
            let mut plain = start.fork();
            plain.generate(&mut model(target)).unwrap();
            // Near the budget the draft, which does not look at it, proposes what does not fit.
            let roomy = plain.tokens().len() < 20;
            for draft in [target, 100] {
                let mut sampler = start.fork();
                let mut rounds = 0;
                while !sampler.is_finished() {
                    let round =
                        speculate(&mut sampler, &mut model(target), &mut model(draft), n(3))
                            .unwrap();
                    rounds += 1;
                    assert!(draft != target || !roomy || round.accepted == round.drafted);
                }
                assert_eq!(sampler.tokens(), plain.tokens());
                // Three drafts and one of the target's own at a time.
                assert!(draft != target || !roomy || rounds == plain.tokens().len().div_ceil(4));
            }
        }
    }
}

#[test]
fn a_draft_may_end_the_output_and_nothing_follows() {
    let start = ConstrainedSampler::new(automaton("root ::= \"a\"*"), Policy::greedy()).unwrap();
    let mut wants_the_end = |_: &[TokenId]| Ok::<_, Infallible>(vec![0.0, 0.0, 0.0, 0.0, 9.0]);
    let mut asked = 0;
    let mut counting = |tokens: &[TokenId]| {
        asked += 1;
        Ok::<_, Infallible>(if tokens.is_empty() {
            vec![9.0; 5]
        } else {
            vec![0.0, 0.0, 0.0, 0.0, 9.0]
        })
    };
    let mut sampler = start.fork();
    let round =
        speculate(&mut sampler, &mut wants_the_end.clone(), &mut wants_the_end, n(5)).unwrap();
    assert_eq!((round.drafted, round.accepted, round.gained), (1, 1, 1));
    assert!(sampler.is_finished());
    let finished = speculate(&mut sampler, &mut wants_the_end.clone(), &mut wants_the_end, n(5));
    assert!(matches!(finished, Err(SpeculateError::Step(StepError::Finished))));
    // The target goes on where the draft would have ended.
    let mut sampler = start.fork();
    let round = speculate(&mut sampler, &mut counting, &mut wants_the_end, n(5)).unwrap();
    assert_eq!((round.drafted, round.accepted, round.gained), (1, 0, 1));
    assert_eq!((sampler.text().as_str(), asked), ("a", 1));
}

#[test]
fn rows_of_minus_infinity_are_told_apart() {
    let no = f32::NEG_INFINITY;
    let policy = Policy::sample(1.0);
    let start = ConstrainedSampler::new(automaton("root ::= [ab]{3}"), policy).unwrap();
    let mut none = |_: &[TokenId]| Ok::<_, Infallible>(vec![no, no, 9.0, no, 9.0]);
    let mut some = |_: &[TokenId]| Ok::<_, Infallible>(vec![1.0, 0.0, 0.0, no, 0.0]);
    let mut first = |tokens: &[TokenId]| {
        Ok::<_, Infallible>(if tokens.is_empty() { vec![1.0; 5] } else { vec![no; 5] })
    };
    // A draft that knows nothing proposes nothing.
    let mut sampler = start.fork();
    let round = speculate(&mut sampler, &mut some, &mut none, n(3)).unwrap();
    assert_eq!((round.drafted, round.accepted, round.gained), (0, 0, 1));
    // A target that knows nothing is an error, at the first token of a round.
    let error = speculate(&mut sampler, &mut none, &mut some, n(2)).unwrap_err();
    assert!(matches!(error, SpeculateError::Step(StepError::NoFiniteLegalLogit { step: 1 })));
    let mut sampler = start.fork();
    let round = speculate(&mut sampler, &mut first, &mut some, n(3)).unwrap();
    assert_eq!((round.gained, sampler.tokens().len()), (1, 1));
    let error = speculate(&mut sampler, &mut first, &mut some, n(3)).unwrap_err();
    assert!(matches!(error, SpeculateError::Step(StepError::NoFiniteLegalLogit { step: 1 })));
    // NaN is one in either model.
    let mut broken = |_: &[TokenId]| Ok::<_, Infallible>(vec![f32::NAN; 5]);
    for error in [
        speculate(&mut start.fork(), &mut broken, &mut some, n(1)).unwrap_err(),
        speculate(&mut start.fork(), &mut some, &mut broken, n(1)).unwrap_err(),
    ] {
        assert!(matches!(error, SpeculateError::Step(StepError::InvalidLogits(_))));
    }
    let mut failing = |_: &[TokenId]| Err("gone");
    let error = speculate(&mut start.fork(), &mut some, &mut failing, n(1)).unwrap_err();
    assert!(matches!(error, SpeculateError::Draft("gone")));
    let error = speculate(&mut start.fork(), &mut failing, &mut some, n(1)).unwrap_err();
    assert!(matches!(error, SpeculateError::Target("gone")));
}

/// A model that gives so many rows, whatever it is asked for.
struct Rows(usize);

impl Model for Rows {
    type Error = Infallible;

    fn logits(&mut self, _: &[TokenId], row: &mut Vec<f32>) -> Result<(), Infallible> {
        *row = vec![0.0; 5];
        Ok(())
    }

    fn logits_each(
        &mut self,
        _: &[&[TokenId]],
        rows: &mut Vec<Vec<f32>>,
    ) -> Result<(), Infallible> {
        *rows = vec![vec![0.0; 5]; self.0];
        Ok(())
    }

    fn logits_along(
        &mut self,
        _: &[TokenId],
        _: usize,
        rows: &mut Vec<Vec<f32>>,
    ) -> Result<(), Infallible> {
        self.logits_each(&[], rows)
    }
}

#[test]
fn a_model_that_gives_another_number_of_rows_is_an_error_not_a_loop() {
    let policy = Policy::sample(1.0).max_tokens(n(5));
    let start = ConstrainedSampler::new(automaton("root ::= [ab]{3}"), policy).unwrap();
    for given in [0, 1, 4] {
        let mut sampler = start.fork();
        let error = speculate(&mut sampler, &mut Rows(given), &mut model(1), n(2)).unwrap_err();
        assert!(
            matches!(error, SpeculateError::Rows(WrongRows { asked: 3, given: g }) if g == given)
        );
        assert!(sampler.tokens().is_empty());
    }
    for given in [0, 1, 3] {
        let mut samplers = vec![start.fork(); 2];
        // One by one, so that one row is right.
        let one = generate_each(&mut samplers, &mut Rows(given));
        assert_eq!(one.is_ok(), given == 1);
        let all = candidates(&start, &mut Rows(given), 2);
        assert_eq!(all.is_ok(), given == 1);
        let found = Beam::new(n(2)).search(&start, &mut Rows(given));
        assert!(
            matches!(found, Err(GenerateError::Rows(WrongRows { given: g, .. })) if g == given)
        );
    }
}
