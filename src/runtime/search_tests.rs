//! Beam search and the choice among candidates, against enumerations of small trees.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::{
    Beam, Candidate, ConstrainedSampler, Model, Policy, best, candidates, deduplicate,
    generate_each, minimum_bayes_risk, most_common, uniform,
};
use crate::frontend::gbnf;
use crate::ids::TokenId;
use crate::limits::Limits;
use crate::step_error::StepError;
use crate::token::{Matcher, TokenAutomaton};
use crate::vocab::{Token, Vocabulary};

/// a, b, c, ab and two end tokens.
fn automaton(grammar: &str) -> Arc<TokenAutomaton> {
    let mut tokens: Vec<Token> =
        ["a", "b", "c", "ab"].map(|text| Token::Text(text.as_bytes().into())).into();
    tokens.extend(["end", "stop"].map(|name| Token::Special(name.into())));
    let vocabulary = Vocabulary::new(tokens, [TokenId::new(4), TokenId::new(5)]).unwrap();
    let limits = Limits::default();
    let grammar = gbnf::compile(grammar, &limits).unwrap();
    Arc::new(TokenAutomaton::new(grammar, Arc::new(vocabulary), limits).unwrap())
}

fn n(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

fn start(grammar: &str, max_tokens: usize) -> ConstrainedSampler {
    let policy = Policy::sample(1.0).max_tokens(n(max_tokens));
    ConstrainedSampler::new(automaton(grammar), policy).unwrap()
}

/// A row that depends on the tokens before alone.
fn row(seed: u64, tokens: &[TokenId]) -> Vec<f32> {
    let place = tokens.iter().fold(7, |hash: u64, t| hash * 31 + u64::from(t.get()) + 1);
    (0..6).map(|i| (uniform(seed ^ (place << 20), i) * 6.0) as f32).collect()
}

fn model(seed: u64) -> impl FnMut(&[TokenId]) -> Result<Vec<f32>, Infallible> {
    move |tokens| Ok(row(seed, tokens))
}

fn log_softmax(row: &[f32]) -> Vec<f64> {
    let total: f64 = row.iter().map(|&x| f64::from(x).exp()).sum();
    row.iter().map(|&x| f64::from(x) - total.ln()).collect()
}

type Path = (Vec<TokenId>, f64);

/// All complete outputs of at most `max` tokens, with their log-probabilities.
fn enumerate(automaton: &Arc<TokenAutomaton>, seed: u64, max: usize) -> Vec<Path> {
    let mut found = Vec::new();
    let mut pending = vec![(Matcher::new(automaton.clone()), Vec::new(), 0.0)];
    while let Some((matcher, tokens, log)) = pending.pop() {
        if matcher.is_finished() {
            found.push((tokens, log));
            continue;
        }
        if tokens.len() == max {
            continue;
        }
        let logs = log_softmax(&row(seed, &tokens));
        for token in matcher.mask().unwrap().iter() {
            let mut next = matcher.clone();
            next.accept(token).unwrap();
            let mut tokens: Vec<TokenId> = tokens.clone();
            tokens.push(token);
            pending.push((next, tokens, log + logs[token.index()]));
        }
    }
    found
}

fn rank(paths: &mut [Path], exponent: f64) {
    let score = |p: &Path| p.1 / (p.0.len() as f64).powf(exponent);
    paths.sort_by(|a, b| score(b).total_cmp(&score(a)).then_with(|| a.0.cmp(&b.0)));
}

const GRAMMARS: [&str; 3] = [
    "root ::= [abc]{1,4}",
    "root ::= (\"a\" root \"b\") | \"c\"",
    "root ::= \"ab\" [ac]* | \"cc\" [ab]? \"c\"",
];

/// A has .6 and B .4; after B the end has .9, after A it has `end_after_a`, and X the rest. Here `c` is X,
/// after which only an end is legal and certain.
fn two_steps(end_after_a: f64) -> impl FnMut(&[TokenId]) -> Result<Vec<f32>, Infallible> {
    move |tokens| {
        let p: [f64; 6] = match tokens.iter().map(|t| t.get()).collect::<Vec<_>>()[..] {
            [] => [0.6, 0.4, 0.0, 0.0, 0.0, 0.0],
            [0] => [0.0, 0.0, 1.0 - end_after_a, 0.0, end_after_a, 0.0],
            [1] => [0.0, 0.0, 0.1, 0.0, 0.9, 0.0],
            _ => [0.0, 0.0, 0.0, 0.0, 1.0, 0.0],
        };
        Ok(p.map(|p| p.ln() as f32).to_vec())
    }
}

#[test]
fn greedy_loses_to_a_beam_of_two() {
    // The end after A .55: greedy finds .33, the beam .36.
    let mut model = two_steps(0.55);
    let automaton = automaton("root ::= [ab] \"c\"?");
    let start = ConstrainedSampler::new(automaton, Policy::greedy().max_tokens(n(3))).unwrap();
    let mut greedy = start.clone();
    greedy.generate(&mut model).unwrap();
    assert_eq!(greedy.text(), "a");
    let one = Beam::new(n(1)).search(&start, &mut model).unwrap();
    assert_eq!(one[0].sampler.text(), "a");
    assert!((one[0].log_probability.exp() - 0.33).abs() < 1e-6);
    let two = Beam::new(n(2)).search(&start, &mut model).unwrap();
    assert_eq!(two.iter().map(|h| h.sampler.text()).collect::<Vec<_>>(), ["b", "a"]);
    assert!((two[0].log_probability.exp() - 0.36).abs() < 1e-6);
    // With .4 there, A and X have .6 · .6 = .36 too, and greedy is as good.
    let two = Beam::new(n(2)).search(&start, &mut two_steps(0.4)).unwrap();
    let mut texts: Vec<_> = two.iter().map(|h| h.sampler.text()).collect();
    texts.sort();
    assert_eq!(texts, ["ac", "b"]);
    assert!(two.iter().all(|found| (found.log_probability.exp() - 0.36).abs() < 1e-6));
    let mut greedy = start.clone();
    greedy.generate(&mut two_steps(0.4)).unwrap();
    assert_eq!(greedy.text(), "ac");
}

#[test]
fn a_table_of_transitions_is_followed_by_each_policy() {
    // Rows: what follows a and b, as a, b and the end. The output begins after an a.
    let mut table = |tokens: &[TokenId]| {
        let p: [f64; 3] = match tokens.last().map(|token| token.get()) {
            None | Some(0) => [0.6, 0.3, 0.1],
            _ => [0.2, 0.5, 0.3],
        };
        let [a, b, end] = p.map(|p| p.ln() as f32);
        let no = f32::NEG_INFINITY;
        Ok::<_, Infallible>(vec![a, b, no, no, end, no])
    };
    let start = |policy: Policy| {
        ConstrainedSampler::new(automaton("root ::= [ab]*"), policy.max_tokens(n(8))).unwrap()
    };
    // Greedy decoding repeats itself for as long as it may.
    let mut greedy = start(Policy::greedy());
    greedy.generate(&mut table).unwrap();
    assert_eq!(greedy.text(), "aaaaaaa");
    // Of two at T = .7: 2^(1/.7) = 2.6918 to 1 after a, and (5/3)^(1/.7) = 2.0746 to 1 after b.
    let mut two = start(Policy::sample(0.7).top_k(n(2)));
    for (before, expected) in [(0, [(0, 0.72913), (1, 0.27087)]), (1, [(1, 0.67475), (4, 0.32525)])]
    {
        two.accept(TokenId::new(before)).unwrap();
        let row = table(two.tokens()).unwrap();
        let found = two.distribution(&row).unwrap();
        assert_eq!(found.len(), 2);
        for (found, (token, p)) in found.iter().zip(expected) {
            assert!(found.0.get() == token && (found.1 - p).abs() < 1e-5, "{found:?} {p}");
        }
    }
    // .5 and .3 after b are less than .9: the nucleus is all.
    let mut nucleus = start(Policy::sample(1.0).top_p(0.9));
    nucleus.accept(TokenId::new(1)).unwrap();
    let row = table(nucleus.tokens()).unwrap();
    assert_eq!(nucleus.distribution(&row).unwrap().len(), 3);
}

#[test]
fn a_wide_beam_is_exhaustive_enumeration() {
    for grammar in GRAMMARS {
        let automaton = automaton(grammar);
        for seed in 0..6 {
            let mut all = enumerate(&automaton, seed, 6);
            assert!(all.len() > 5);
            for exponent in [0.0, 1.0, 0.6, -0.5] {
                rank(&mut all, exponent);
                let beam = Beam::new(n(1_000)).length_exponent(exponent);
                let found = beam.search(&start(grammar, 6), &mut model(seed)).unwrap();
                assert_eq!(found.len(), all.len().min(1_000));
                for (found, (tokens, log)) in found.iter().zip(&all) {
                    assert_eq!(found.sampler.tokens(), tokens);
                    assert!((found.log_probability - log).abs() < 1e-5);
                }
            }
        }
    }
}

/// A beam that goes on to the last token and keeps everything that is complete.
fn plain_beam(automaton: &Arc<TokenAutomaton>, seed: u64, width: usize, max: usize) -> Vec<Path> {
    let completable: Vec<Vec<TokenId>> =
        enumerate(automaton, seed, max).into_iter().map(|path| path.0).collect();
    let mut open: Vec<Path> = vec![(Vec::new(), 0.0)];
    let mut done = Vec::new();
    while !open.is_empty() {
        let mut next: Vec<(Vec<TokenId>, f64, usize)> = Vec::new();
        for (parent, (tokens, log)) in open.iter().enumerate() {
            let logs = log_softmax(&row(seed, tokens));
            for id in 0..6 {
                let mut tokens = tokens.clone();
                tokens.push(TokenId::new(id));
                if completable.contains(&tokens) {
                    done.push((tokens, log + logs[id as usize]));
                } else if completable.iter().any(|path| path.starts_with(&tokens)) {
                    next.push((tokens, log + logs[id as usize], parent));
                }
            }
        }
        next.sort_by(|a, b| {
            b.1.total_cmp(&a.1).then(a.2.cmp(&b.2)).then(a.0.last().cmp(&b.0.last()))
        });
        next.truncate(width);
        open = next.into_iter().map(|(tokens, log, _)| (tokens, log)).collect();
    }
    done
}

#[test]
fn stopping_early_gives_what_going_on_would_give() {
    for grammar in GRAMMARS {
        let automaton = automaton(grammar);
        for seed in 0..20 {
            for (width, exponent) in [(1, 0.0), (2, 0.0), (3, 1.0), (2, 0.5), (3, -1.0)] {
                let mut all = plain_beam(&automaton, seed, width, 6);
                rank(&mut all, exponent);
                let beam = Beam::new(n(width)).length_exponent(exponent);
                let found = beam.search(&start(grammar, 6), &mut model(seed)).unwrap();
                let found: Vec<_> = found.iter().map(|h| h.sampler.tokens().to_vec()).collect();
                let expected: Vec<_> = all.into_iter().take(width).map(|path| path.0).collect();
                assert_eq!(found, expected, "{grammar} {seed} {width} {exponent}");
            }
        }
    }
}

#[test]
fn groups_that_must_differ_do() {
    let start = start("root ::= [abc]{3}", 5);
    let mut flat = |_: &[TokenId]| Ok::<_, Infallible>(vec![1.0, 0.9, 0.8, -9.0, 0.0, -9.0]);
    let alike = Beam::new(n(2)).groups(n(2), 0.0).search(&start, &mut flat).unwrap();
    assert_eq!(alike.len(), 1, "two groups find the same");
    let apart = Beam::new(n(3)).groups(n(3), 5.0).search(&start, &mut flat).unwrap();
    let texts: Vec<_> = apart.iter().map(|h| h.sampler.text()).collect();
    assert_eq!(texts, ["aaa", "bbb", "ccc"]);
    // Scores are those of the model.
    let normal: f64 = [1.0, 0.9, 0.8, -9.0, 0.0, -9.0].map(f64::exp).iter().sum::<f64>().ln();
    assert!((apart[1].log_probability - (2.7 - 4.0 * normal)).abs() < 1e-6);
}

#[test]
fn an_open_output_that_can_reach_the_same_score_is_followed() {
    // `a` is certain; then the end and another `a` are alike, and after that the end is certain: both
    // outputs have 1/2, and `a a end` comes before `a end`.
    let no = f32::NEG_INFINITY;
    let mut model = |tokens: &[TokenId]| {
        Ok::<_, Infallible>(match tokens.len() {
            0 => vec![0.0, no, no, no, no, no],
            1 => vec![0.0, no, no, no, 0.0, no],
            _ => vec![no, no, no, no, 0.0, no],
        })
    };
    let found = Beam::new(n(1)).search(&start("root ::= \"a\"{1,2}", 4), &mut model).unwrap();
    assert_eq!(found[0].sampler.text(), "aa");
    assert_eq!(found[0].log_probability, -std::f64::consts::LN_2);
}

#[test]
fn outputs_that_no_token_can_follow_are_given_up_and_the_others_go_on() {
    let no = f32::NEG_INFINITY;
    // After `a`, which is most probable, the model knows nothing.
    let mut silent = |tokens: &[TokenId]| {
        let after_a = tokens.first() == Some(&TokenId::new(0));
        Ok::<_, Infallible>(if after_a { vec![no; 6] } else { vec![2.0, 1.0, 0.0, no, 0.0, no] })
    };
    let texts = |found: Vec<super::Hypothesis>| -> Vec<String> {
        found.iter().map(|found| found.sampler.text()).collect()
    };
    let two = start("root ::= [ab] \"c\"", 4);
    assert_eq!(texts(Beam::new(n(2)).search(&two, &mut silent).unwrap()), ["bc"]);
    let error = Beam::new(n(1)).search(&two, &mut silent).unwrap_err();
    let none = StepError::NoFiniteLegalLogit { step: 1 };
    assert_eq!(error.to_string(), none.to_string());
    // The same by a phrase that is banned; a group of its own too.
    let policy = Policy::greedy().ban("ac").max_tokens(n(4));
    let banned = ConstrainedSampler::new(automaton("root ::= [ab] \"c\""), policy).unwrap();
    let mut flat = |_: &[TokenId]| Ok::<_, Infallible>(vec![2.0, 1.0, 0.0, no, 0.0, no]);
    assert_eq!(texts(Beam::new(n(2)).search(&banned, &mut flat).unwrap()), ["bc"]);
    let groups = Beam::new(n(2)).groups(n(2), 5.0);
    assert_eq!(texts(groups.search(&banned, &mut flat).unwrap()), ["bc"]);
    let error = Beam::new(n(1)).search(&banned, &mut flat).unwrap_err();
    assert!(error.to_string().contains("banned phrase"), "{error}");
}

#[test]
fn a_beam_needs_a_budget_and_options_in_range() {
    let unbounded =
        ConstrainedSampler::new(automaton("root ::= \"a\"*"), Policy::greedy()).unwrap();
    let refused = |beam: Beam, start: &ConstrainedSampler| {
        let error = beam.search(start, &mut model(1)).unwrap_err();
        assert!(error.to_string().contains("invalid policy"), "{error}");
        error.to_string()
    };
    assert!(refused(Beam::new(n(2)), &unbounded).contains("`max_tokens`"));
    let start = start("root ::= \"a\"*", 9);
    assert!(refused(Beam::new(n(4)).groups(n(3), 0.0), &start).contains("`groups` is 3"));
    assert!(refused(Beam::new(n(4)).length_exponent(f64::NAN), &start).contains("NaN"));
    assert!(refused(Beam::new(n(4)).groups(n(2), -1.0), &start).contains("`diversity` is -1"));
}

fn candidate(text: &str, log_probability: f64) -> Candidate {
    let tokens = text.bytes().map(|b| TokenId::new(b.into())).collect();
    Candidate { tokens, text: text.into(), log_probability, count: 1 }
}

#[test]
fn the_best_of_candidates_by_each_way_of_choosing() {
    let all = [
        candidate("{\"n\":1}", -7.0),
        candidate("2", -2.0),
        candidate("{\"n\":1.0}", -3.6),
        candidate("3", -2.5),
        candidate("2", -1.9),
        candidate("{ \"n\": 1 }", -20.0),
    ];
    let text = |found: Option<&Candidate>| found.unwrap().text.clone();
    assert_eq!(text(best(&all, |c| c.log_probability)), "2");
    // −3.6 / 9 = −0.4 is the highest mean.
    assert_eq!(text(best(&all, Candidate::mean_log_probability)), "{\"n\":1.0}");
    let valid = |c: &Candidate| match c.json() {
        Some(value) if value.is_object() => c.log_probability,
        _ => f64::NAN,
    };
    assert_eq!(text(best(&all, valid)), "{\"n\":1.0}");
    assert!(best(&all[1..2], valid).is_none());
    // Three spellings of one value against two of `2`.
    let (agreed, count) = most_common(&all, Candidate::canonical_json).unwrap();
    assert_eq!((agreed.text.as_str(), count), ("{\"n\":1}", 3));
    let distinct = deduplicate(&all);
    assert_eq!(distinct.len(), 5);
    assert_eq!((distinct[1].count, distinct[1].log_probability), (2, -1.9));
    let (_, count) = most_common(&distinct, |c| (c.text.len() == 1).then_some(())).unwrap();
    assert_eq!(count, 3);
    // |x − y| on 1, 2, 2, 3, 10: the median has the least mean, (1 + 0 + 0 + 1 + 8) / 5.
    let numbers = deduplicate(&["10", "1", "2", "3", "2"].map(|t| candidate(t, 0.0)));
    let value = |c: &Candidate| c.text.parse::<f64>().unwrap();
    let loss = |a: &Candidate, b: &Candidate| (value(a) - value(b)).abs();
    let (median, risk) = minimum_bayes_risk(&numbers, loss).unwrap();
    assert_eq!((median.text.as_str(), risk), ("2", 2.0));
}

#[test]
fn candidates_are_what_each_seed_alone_would_give() {
    let start = start("root ::= [abc]{1,4}", 6);
    let found = candidates(&start, &mut model(3), 40).unwrap();
    for (seed, found) in found.iter().enumerate() {
        let mut alone = start.fork();
        alone.reseed(seed as u64);
        alone.generate(&mut model(3)).unwrap();
        assert_eq!(found.tokens, alone.tokens());
        let mut log = 0.0;
        for (at, token) in found.tokens.iter().enumerate() {
            log += log_softmax(&row(3, &found.tokens[..at]))[token.index()];
        }
        assert!((found.log_probability - log).abs() < 1e-5);
    }
    let distinct = deduplicate(&found);
    assert!((5..40).contains(&distinct.len()));
    assert_eq!(distinct.iter().map(|c| c.count).sum::<usize>(), 40);
}

/// A model that is asked for several sequences at a time, and counts how often.
struct Batches(u64, usize);

impl Model for Batches {
    type Error = Infallible;

    fn logits(&mut self, tokens: &[TokenId], row: &mut Vec<f32>) -> Result<(), Infallible> {
        *row = self::row(self.0, tokens);
        Ok(())
    }

    fn batch_size(&self) -> usize {
        5
    }

    fn logits_each(
        &mut self,
        sequences: &[&[TokenId]],
        rows: &mut Vec<Vec<f32>>,
    ) -> Result<(), Infallible> {
        assert!((1..=5).contains(&sequences.len()));
        self.1 += 1;
        *rows = sequences.iter().map(|tokens| row(self.0, tokens)).collect();
        Ok(())
    }
}

#[test]
fn a_batch_gives_each_sequence_what_it_would_get_alone() {
    let policy = |seed| Policy::sample(1.0).seed(seed).max_tokens(n(9));
    let mut samplers: Vec<_> = (0..12)
        .map(|seed| {
            let grammar = GRAMMARS[seed % 3];
            ConstrainedSampler::new(automaton(grammar), policy(seed as u64)).unwrap()
        })
        .collect();
    let mut alone = samplers.clone();
    // One that cannot go on does not stop the others.
    let banned = (0..6).fold(Policy::greedy(), |p, id| p.bias(TokenId::new(id), f64::NEG_INFINITY));
    samplers.push(ConstrainedSampler::new(automaton(GRAMMARS[0]), banned).unwrap());
    let mut batched = samplers.clone();
    let mut batches = Batches(5, 0);
    assert_eq!(generate_each(&mut batched, &mut batches).unwrap().len(), 13);
    let results = generate_each(&mut samplers, &mut model(5)).unwrap();
    assert!(samplers.iter().zip(&batched).all(|(a, b)| a.tokens() == b.tokens()));
    let tokens: usize = samplers.iter().map(|sampler| sampler.tokens().len()).sum();
    assert!(batches.1 > 3 && batches.1 < tokens, "{} runs for {tokens} tokens", batches.1);
    assert!(matches!(results[12], Err(StepError::NoFiniteLegalLogit { step: 0 })));
    for (sampler, alone) in samplers.iter().zip(&mut alone) {
        alone.generate(&mut model(5)).unwrap();
        assert_eq!(sampler.tokens(), alone.tokens());
    }
}
