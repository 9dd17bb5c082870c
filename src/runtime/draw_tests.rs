//! The rules of decoding, with values worked out by hand or by a reference in `f64` that sorts and
//! sums everything.

use std::num::NonZeroUsize;

use super::{
    Choice, DrawError, History, Order, Policy, Reason, Scratch, Stage, Step, distribution, draw,
    uniform,
};
use crate::ids::TokenId;
use crate::mask::TokenMask;
use crate::step_error::LogitsError;

fn id(index: usize) -> TokenId {
    TokenId::from_index(index).unwrap()
}

fn k(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

fn all(width: usize) -> TokenMask {
    TokenMask::from_words(width, vec![u64::MAX; width.div_ceil(64)])
}

fn logs(probabilities: &[f64]) -> Vec<f32> {
    probabilities.iter().map(|p| p.ln() as f32).collect()
}

fn history(policy: &Policy, tokens: &[usize]) -> History {
    let mut history = History::counting(&[], policy.penalty_window);
    tokens.iter().for_each(|&token| history.push(id(token)));
    history
}

fn order(filters: &[Stage]) -> Order {
    Order::DEFAULT.with_filters(filters.iter().copied()).unwrap()
}

fn decide(
    logits: &[f32],
    mask: &TokenMask,
    policy: &Policy,
    history: &History,
    u: f64,
) -> Result<Choice, DrawError> {
    let end_tokens = [id(mask.width() - 1)];
    let step = Step { logits, mask, policy, history, end_tokens: &end_tokens };
    draw(&step, &mut Scratch::default(), || u)
}

/// The token at temperature 0, all legal.
fn greedy(logits: &[f32], policy: &Policy, seen: &[usize]) -> usize {
    let mask = all(logits.len());
    let choice = decide(logits, &mask, policy, &history(policy, seen), 0.5).unwrap();
    assert_eq!(choice.reason, Reason::Highest);
    choice.token.index()
}

fn support(logits: &[f32], mask: &TokenMask, policy: &Policy, seen: &[usize]) -> Vec<(usize, f64)> {
    policy.check(mask.width()).unwrap();
    let history = history(policy, seen);
    let step = Step { logits, mask, policy, history: &history, end_tokens: &[] };
    let all = distribution(&step, &mut Scratch::default()).unwrap();
    all.into_iter().map(|(token, p)| (token.index(), p)).collect()
}

fn probabilities(logits: &[f32], policy: &Policy) -> Vec<(usize, f64)> {
    support(logits, &all(logits.len()), policy, &[])
}

fn close(found: &[(usize, f64)], expected: &[(usize, f64)], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (f, e) in found.iter().zip(expected) {
        assert!(f.0 == e.0 && (f.1 - e.1).abs() <= tolerance, "{f:?} {e:?}");
    }
}

/// The stages after the mask, by definition, in the policy's order.
fn reference(logits: &[f32], mask: &TokenMask, policy: &Policy) -> Vec<(usize, f64)> {
    let mut tokens: Vec<(usize, f64)> = mask
        .iter()
        // −0 is 0.
        .map(|token| (token.index(), f64::from(logits[token.index()]) + 0.0))
        .filter(|(_, logit)| logit.is_finite())
        .collect();
    tokens.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut temperature = 1.0;
    let softmax = |tokens: &[(usize, f64)], temperature: f64| -> Vec<f64> {
        let max = tokens.iter().map(|t| t.1).fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = tokens.iter().map(|t| ((t.1 - max) / temperature).exp()).collect();
        let total: f64 = weights.iter().sum();
        weights.iter().map(|w| w / total).collect()
    };
    // The positions up to the one that crosses `p`, in an order of positions.
    let crossing = |order: &[usize], probabilities: &[f64], p: f64| -> Vec<usize> {
        let mut before = 0.0;
        let mut kept = Vec::new();
        for &at in order {
            if before < p {
                kept.push(at);
            }
            before += probabilities[at];
        }
        kept.sort_unstable();
        kept
    };
    for stage in &policy.order.stages()[3..] {
        let p = softmax(&tokens, temperature);
        let all: Vec<usize> = (0..tokens.len()).collect();
        let kept = match stage {
            Stage::Temperature => {
                temperature = policy.temperature;
                continue;
            }
            Stage::TopK => all[..policy.top_k.map_or(all.len(), |k| k.get().min(all.len()))].into(),
            Stage::TopP if policy.top_p < 1.0 => crossing(&all, &p, policy.top_p),
            Stage::MinP => all.into_iter().filter(|&i| p[i] >= policy.min_p * p[0]).collect(),
            Stage::TypicalP if policy.typical_p < 1.0 => {
                let entropy: f64 = p.iter().map(|p| if *p > 0.0 { -p * p.ln() } else { 0.0 }).sum();
                let mut order = all;
                order.sort_by(|&a, &b| {
                    let distance = |i: usize| (-p[i].ln() - entropy).abs();
                    distance(a).total_cmp(&distance(b)).then(a.cmp(&b))
                });
                crossing(&order, &p, policy.typical_p)
            }
            _ => all,
        };
        tokens = kept.into_iter().map(|i| tokens[i]).collect();
    }
    let p = softmax(&tokens, temperature);
    tokens.iter().zip(p).map(|(t, p)| (t.0, p)).collect()
}

#[test]
fn temperature_sharpens_and_flattens_as_in_the_table() {
    // softmax([4, 2, 1, 0.5] / T), worked out with 30 digits.
    let logits = [4.0, 2.0, 1.0, 0.5];
    let table = [
        (0.5, [0.978_754_879_4, 0.017_926_520_93, 0.002_426_090_788, 0.000_892_508_923_2]),
        (1.0, [0.822_828_734_8, 0.111_357_759_9, 0.040_966_230_48, 0.024_847_274_8]),
        (2.0, [0.566_641_729_5, 0.208_455_842_8, 0.126_434_859_8, 0.098_467_567_86]),
    ];
    for (temperature, row) in table {
        let expected: Vec<_> = row.into_iter().enumerate().collect();
        close(&probabilities(&logits, &Policy::sample(temperature)), &expected, 1e-7);
    }
}

#[test]
fn halving_the_temperature_squares_the_probabilities() {
    let p = [0.5, 0.25, 0.125, 0.125];
    let squares: f64 = p.iter().map(|p| p * p).sum();
    let expected: Vec<_> = p.iter().map(|p| p * p / squares).enumerate().collect();
    close(&probabilities(&logs(&p), &Policy::sample(0.5)), &expected, 1e-7);
}

#[test]
fn the_nucleus_stops_at_exact_equality_and_keeps_the_crossing_token() {
    let logits = logs(&[0.5, 0.25, 0.125, 0.125]);
    for (p, kept) in
        [(0.5, 1), (0.500_001, 2), (0.75, 2), (0.76, 3), (0.875, 3), (0.875_001, 4), (1e-300, 1)]
    {
        assert_eq!(probabilities(&logits, &Policy::sample(1.0).top_p(p)).len(), kept, "{p}");
    }
    let found = probabilities(&logits, &Policy::sample(1.0).top_p(0.75));
    close(&found, &[(0, 0.5 / 0.75), (1, 0.25 / 0.75)], 1e-12);
}

/// Python .72, R .10, Julia .06, Rust .04, JavaScript .03 and 50,000 tail tokens of .05 together.
fn languages() -> Vec<f32> {
    let mut p = vec![0.72, 0.10, 0.06, 0.04, 0.03];
    p.resize(50_005, 0.05 / 50_000.0);
    logs(&p)
}

#[test]
fn the_nucleus_at_temperature_1_is_the_first_four() {
    let found = probabilities(&languages(), &Policy::sample(1.0).top_p(0.9));
    let expected = [0.72, 0.10, 0.06, 0.04].map(|p| p / 0.92);
    close(&found, &expected.into_iter().enumerate().collect::<Vec<_>>(), 1e-6);
}

#[test]
fn the_nucleus_is_chosen_after_the_temperature() {
    // At T = 0.7: p^(1/0.7) is 0.6254, 0.0373, 0.0180, …, tail 50,000 · (1e-6)^(1/0.7) = 0.000134;
    // the sum is 0.6977, so Python has 0.8964 and R is the crossing token.
    let cold = probabilities(&languages(), &Policy::sample(0.7).top_p(0.9));
    assert_eq!(cold.iter().map(|t| t.0).collect::<Vec<_>>(), [0, 1]);
    let p = |x: f64| x.powf(1.0 / 0.7);
    close(&cold, &[(0, p(0.72) / (p(0.72) + p(0.1))), (1, p(0.1) / (p(0.72) + p(0.1)))], 1e-6);
    // At T = 1.5 the tail weighs 50,000 · (1e-6)^(2/3) = 5.0 against 1.38 for the head: most of
    // it is needed, and ties in it go to the lower ids.
    let hot = probabilities(&languages(), &Policy::sample(1.5).top_p(0.9));
    let expected = reference(&languages(), &all(50_005), &Policy::sample(1.5).top_p(0.9));
    assert!(hot.len() > 40_000 && hot.len().abs_diff(expected.len()) <= 1);
    assert!(hot.iter().enumerate().all(|(i, t)| i == t.0));
}

#[test]
fn top_k_keeps_exactly_k_and_ties_go_to_the_lower_ids() {
    let found = probabilities(&[0.0; 4], &Policy::sample(1.0).top_k(k(2)));
    close(&found, &[(0, 0.5), (1, 0.5)], 0.0);
    // Across blocks, with ties at the border.
    let mut logits = vec![1.0; 1_000];
    (0..1_000).step_by(10).for_each(|i| logits[i] = 2.0);
    for count in [1, 2, 99, 100, 101, 150, 999, 1_000] {
        let found = probabilities(&logits, &Policy::sample(1.0).top_k(k(count)));
        let expected = reference(&logits, &all(1_000), &Policy::sample(1.0).top_k(k(count)));
        close(&found, &expected, 1e-9);
        assert_eq!(found.len(), count);
    }
    // Fewer legal tokens than k.
    let three = TokenMask::from_ids(1_000, vec![id(3), id(500), id(999)]);
    let found = support(&logits, &three, &Policy::sample(1.0).top_k(k(50)), &[]);
    assert_eq!(found.iter().map(|t| t.0).collect::<Vec<_>>(), [500, 3, 999]);
}

#[test]
fn top_k_counts_and_the_nucleus_follows_how_sure_the_model_is() {
    let kept = |logits: &[f32], policy: &Policy| probabilities(logits, policy).len();
    let (top_k, top_p) = (Policy::sample(1.0).top_k(k(50)), Policy::sample(1.0).top_p(0.9));
    // One token has .95: of 50 that are kept 49 are wrong, and the nucleus is that one.
    let mut sure = vec![0.95];
    sure.resize(1_000, 0.05 / 999.0);
    assert_eq!((kept(&logs(&sure), &top_k), kept(&logs(&sure), &top_p)), (50, 1));
    // 500 tokens have .002 each: 450 of them are lost, and the nucleus has 450.
    let unsure = logs(&[0.002; 500]);
    assert_eq!((kept(&unsure, &top_k), kept(&unsure, &top_p)), (50, 450));
}

#[test]
fn top_p_after_top_k_measures_the_renormalised_rest() {
    // Of the two kept by top-k the first has 2/3: enough for p = 0.6, though it has 0.5 of all.
    let logits = logs(&[0.5, 0.25, 0.125, 0.125]);
    let found = probabilities(&logits, &Policy::sample(1.0).top_k(k(2)).top_p(0.6));
    close(&found, &[(0, 1.0)], 0.0);
    assert_eq!(probabilities(&logits, &Policy::sample(1.0).top_p(0.6)).len(), 2);
}

#[test]
fn min_p_is_a_part_of_the_highest_probability() {
    // 0.4 allows 0.02 at 0.05; 0.9 allows 0.045.
    let broad = logs(&[0.4, 0.3, 0.265, 0.021, 0.014]);
    assert_eq!(probabilities(&broad, &Policy::sample(1.0).min_p(0.05)).len(), 4);
    let narrow = logs(&[0.9, 0.046, 0.044, 0.01]);
    assert_eq!(probabilities(&narrow, &Policy::sample(1.0).min_p(0.05)).len(), 2);
    // Equality stays, 1 keeps the ties at the top, 0 keeps all.
    let logits = logs(&[0.5, 0.25, 0.125, 0.125]);
    assert_eq!(probabilities(&logits, &Policy::sample(1.0).min_p(0.5)).len(), 2);
    assert_eq!(probabilities(&[1.0, 1.0, 0.0], &Policy::sample(1.0).min_p(1.0)).len(), 2);
    assert_eq!(probabilities(&logits, &Policy::sample(1.0).min_p(0.0)).len(), 4);
}

#[test]
fn typical_p_keeps_what_is_nearest_to_the_entropy() {
    // H = −Σ p ln p = 1.0889; the distances |−ln p − H| are 0.520 (0.2), 0.578 (0.6), 1.214 (0.1, 0.1).
    let logits = logs(&[0.6, 0.2, 0.1, 0.1]);
    let kept = |p: f64| -> Vec<usize> {
        probabilities(&logits, &Policy::sample(1.0).typical_p(p)).iter().map(|t| t.0).collect()
    };
    assert_eq!(kept(0.19), [1]);
    assert_eq!(kept(0.21), [0, 1]);
    assert_eq!(kept(0.81), [0, 1, 2], "ties by id");
    assert_eq!(kept(1.0), [0, 1, 2, 3]);
    // The most probable token can be too predictable: H = 2.0545 here; 0.4 is 1.138 away, and the ten
    // of 0.06 are 0.759 away.
    let mut p = vec![0.4];
    p.resize(11, 0.06);
    let found = probabilities(&logs(&p), &Policy::sample(1.0).typical_p(0.1));
    close(&found, &[(1, 0.5), (2, 0.5)], 1e-9);
    // Greedy decoding takes the highest all the same.
    assert_eq!(greedy(&logs(&p), &Policy::greedy().typical_p(0.1), &[]), 0);
}

#[test]
fn the_order_of_the_stages_matters_and_is_printed() {
    // At T = 2 the square roots of 0.5, 0.25, 0.125, 0.125 weigh .366, .259, .183 and .183 + .009: the
    // nucleus of 0.6 has two tokens either way, that of 0.7 has two before and three after T.
    let logits = logs(&[0.5, 0.25, 0.125, 0.125]);
    let after = Policy::sample(2.0).top_p(0.7);
    let before = after.clone().order(order(&[Stage::TopP, Stage::Temperature]));
    assert_eq!(probabilities(&logits, &after).len(), 3);
    let found = probabilities(&logits, &before);
    let root = 2_f64.sqrt();
    close(&found, &[(0, root / (1.0 + root)), (1, 1.0 / (1.0 + root))], 1e-6);
    let bias_first = Policy::greedy()
        .repetition_penalty(2.0)
        .bias(id(0), 1.5)
        .order(Order::DEFAULT.bias_first());
    // (2 + 1.5) / 2 = 1.75 loses against 2.4; the other way round it is 2 / 2 + 1.5 = 2.5.
    assert_eq!(greedy(&[2.0, 2.4], &bias_first, &[0]), 1);
    assert_eq!(
        before.seed(3).to_string(),
        "temperature 2, seed 3, top_p 0.7; order: penalties, logit_bias, mask, top_p, temperature, \
         top_k, min_p, typical_p"
    );
    assert_eq!(
        bias_first.to_string(),
        "greedy, repetition_penalty 2, biased tokens 1; order: logit_bias, penalties, mask, \
         temperature, top_k, top_p, min_p, typical_p"
    );
}

#[test]
fn small_tails_survive_at_p_1() {
    let found = probabilities(&[0.0, -40.0], &Policy::sample(1.0).top_p(1.0));
    assert!((found[1].1 / (-40_f64).exp() - 1.0).abs() < 1e-6);
    assert!(probabilities(&[0.0, -700.0], &Policy::sample(1.0))[1].1 > 0.0);
    // A sum in f32 would have reached 1 long before the last of these.
    let mut tail = vec![0.0; 3];
    tail.resize(100_000, -30.0);
    assert_eq!(probabilities(&tail, &Policy::sample(1.0)).len(), 100_000);
    let policy = Policy::sample(1.0);
    let last = decide(&tail, &all(100_000), &policy, &History::new(), 1.0 - 0.5_f64.powi(53));
    assert_eq!(last.unwrap().token.index(), 99_999);
}

#[test]
fn temperature_0_takes_the_lowest_id_among_the_highest() {
    assert_eq!(greedy(&[0.0; 4], &Policy::greedy(), &[]), 0);
    let mut logits = vec![0.0; 1_000];
    logits[70] = 5.0;
    logits[700] = 5.0;
    assert_eq!(greedy(&logits, &Policy::greedy(), &[]), 70);
    // The same by the way that changes logits.
    assert_eq!(greedy(&logits, &Policy::greedy().bias(id(3), 0.0), &[]), 70);
    assert_eq!(greedy(&[-0.0, 0.0], &Policy::greedy(), &[]), 0);
    // Filters keep the highest.
    assert_eq!(greedy(&logits, &Policy::greedy().top_p(0.1).min_p(1.0).top_k(k(1)), &[]), 70);
}

#[test]
fn tiny_temperatures_do_not_overflow() {
    for temperature in [1e-320, 1e-300, 1e-30, 1e-9] {
        let policy = Policy::sample(temperature);
        close(&probabilities(&[1.0, 1.0], &policy), &[(0, 0.5), (1, 0.5)], 0.0);
        close(&probabilities(&[1.0, 0.0], &policy), &[(0, 1.0), (1, 0.0)], 0.0);
        close(&probabilities(&[-1e38, 1e38], &policy), &[(1, 1.0), (0, 0.0)], 0.0);
        let choice = decide(&[1.0, 0.0], &all(2), &policy, &History::new(), 0.999_999);
        assert_eq!(choice.unwrap().token.index(), 0, "a weight of 0 is never drawn");
    }
}

#[test]
fn huge_temperatures_and_logits_stay_exact() {
    let found = probabilities(&[3e38, -3e38], &Policy::sample(1e38));
    assert!((found[1].1 / found[0].1 / (-6_f64).exp() - 1.0).abs() < 1e-6);
    close(&probabilities(&[5.0, -5.0], &Policy::sample(f64::MAX)), &[(0, 0.5), (1, 0.5)], 1e-9);
    let rows: [&[f32]; 3] = [&[f32::MAX, f32::MIN], &[-1e38, -1e38, 1e38], &[f32::MAX; 3]];
    for logits in rows {
        for policy in [Policy::sample(1.0), Policy::sample(1e30).top_p(0.5).min_p(0.01)] {
            let sum: f64 = probabilities(logits, &policy).iter().map(|t| t.1).sum();
            assert!((sum - 1.0).abs() < 1e-12);
        }
    }
}

#[test]
fn repetition_penalty_follows_the_sign_and_counts_a_token_once() {
    let policy = Policy::sample(1.0).repetition_penalty(1.2);
    // [2, −1] with 1 seen: −1 · 1.2 = −1.2, not −1 / 1.2 = −0.83.
    for seen in [[1].as_slice(), &[1, 1, 1]] {
        let found = support(&[2.0, -1.0], &all(2), &policy, seen);
        assert!((found[1].1 / found[0].1 - (-3.2_f64).exp()).abs() < 1e-8);
    }
    // 2 / 1.2 = 1.667 loses against 1.9; 100 / 1.2 = 83.3 stays above 1.
    let greedy_policy = Policy::greedy().repetition_penalty(1.2);
    assert_eq!(greedy(&[2.0, 1.9], &greedy_policy, &[0]), 1);
    assert_eq!(greedy(&[100.0, 1.0], &greedy_policy, &[0]), 0);
    assert_eq!(greedy(&[2.0, 1.9], &greedy_policy, &[]), 0);
    // 0 stays 0.
    assert_eq!(greedy(&[0.0, -0.1], &Policy::greedy().repetition_penalty(1e6), &[0]), 0);
}

#[test]
fn frequency_counts_and_presence_does_not() {
    // Five times at 0.5: lower by 2.5.
    let seen = [0, 0, 0, 0, 0];
    let gap = |policy: &Policy| {
        let found = support(&[3.0, 0.0], &all(2), policy, &seen);
        let of = |token| found.iter().find(|t| t.0 == token).unwrap().1;
        (of(0) / of(1)).ln()
    };
    assert!((gap(&Policy::sample(1.0).frequency_penalty(0.5)) - 0.5).abs() < 1e-6);
    assert!((gap(&Policy::sample(1.0).presence_penalty(0.5)) - 2.5).abs() < 1e-6);
    // Repetition first, then the others: 3 / 2 − 0.25 − 5 · 0.1 = 0.75.
    let both = Policy::sample(1.0).repetition_penalty(2.0).presence_penalty(0.25);
    assert!((gap(&both.frequency_penalty(0.1)) - 0.75).abs() < 1e-6);
    // The window holds two of them.
    let window = Policy::sample(1.0).frequency_penalty(0.5).penalty_window(k(2));
    assert!((gap(&window) - 2.0).abs() < 1e-6);
}

#[test]
fn bias_comes_after_penalties_and_before_the_mask() {
    let policy = Policy::greedy().repetition_penalty(2.0).bias(id(0), 1.5);
    // 2 / 2 + 1.5 = 2.5 wins against 2.4; biased first it would be 3.5 / 2 = 1.75.
    assert_eq!(greedy(&[2.0, 2.4], &policy, &[0]), 0);
    // What is illegal stays illegal.
    let mask = TokenMask::from_ids(3, vec![id(1)]);
    let policy = Policy::greedy().bias(id(0), 1e30);
    let choice = decide(&[0.0, -5.0, 0.0], &mask, &policy, &History::new(), 0.0).unwrap();
    assert_eq!(choice.token, id(1));
    // A ban.
    assert_eq!(greedy(&[9.0, 1.0], &Policy::greedy().bias(id(0), f64::NEG_INFINITY), &[]), 1);
}

#[test]
fn overflowing_penalties_are_errors_and_illegal_tokens_are_not_penalised() {
    let policy = Policy::sample(1.0).repetition_penalty(10.0);
    let seen = history(&policy, &[1]);
    let row = [0.0, -1e38, 0.0];
    let error = DrawError::Logits(LogitsError::Overflow { index: 1 });
    assert_eq!(decide(&row, &all(3), &policy, &seen, 0.0), Err(error));
    let mask = TokenMask::from_ids(3, vec![id(0)]);
    assert_eq!(decide(&row, &mask, &policy, &seen, 0.0).unwrap().token, id(0));
    assert_eq!(row, [0.0, -1e38, 0.0]);
}

#[test]
fn min_tokens_holds_end_tokens_back_and_yields_where_nothing_else_is_legal() {
    let logits = [0.0, 1.0, 9.0]; // The last is the end token.
    for policy in [Policy::greedy(), Policy::sample(1e-9)] {
        let policy = policy.min_tokens(2);
        for (seen, token) in [(0, 1), (1, 1), (2, 2), (3, 2)] {
            let seen = history(&policy, &vec![0; seen]);
            let choice = decide(&logits, &all(3), &policy, &seen, 0.5).unwrap();
            assert_eq!((choice.token, choice.min_tokens_yielded), (id(token), false));
        }
        let end = TokenMask::from_ids(3, vec![id(2)]);
        let choice = decide(&logits, &end, &policy, &History::new(), 0.5).unwrap();
        assert_eq!((choice.token, choice.min_tokens_yielded), (id(2), true));
    }
}

#[test]
fn invalid_rows_are_refused_with_the_position() {
    let no = f32::NEG_INFINITY;
    let policies = [
        Policy::greedy(),
        Policy::greedy().bias(id(0), 1.0),
        Policy::sample(1.0),
        Policy::sample(1.0).top_p(0.5),
        Policy::sample(1.0).top_k(k(2)),
        Policy::sample(1.0).bias(id(1), f64::NEG_INFINITY),
    ];
    for policy in policies {
        let decide =
            |logits: &[f32], mask: &TokenMask| decide(logits, mask, &policy, &History::new(), 0.5);
        let nan = DrawError::Logits(LogitsError::NotANumber { index: 1 });
        assert_eq!(decide(&[0.0, f32::NAN, 0.0], &all(3)), Err(nan));
        let infinite = DrawError::Logits(LogitsError::PositiveInfinity { index: 1 });
        assert_eq!(decide(&[0.0, f32::INFINITY, 0.0], &all(3)), Err(infinite));
        let narrow = DrawError::Logits(LogitsError::TooNarrow { len: 2, width: 3 });
        assert_eq!(decide(&[0.0, 0.0], &all(3)), Err(narrow));
        assert_eq!(decide(&[no; 3], &all(3)), Err(DrawError::NoFiniteLegalLogit));
        let one = TokenMask::from_ids(3, vec![id(1)]);
        assert_eq!(decide(&[9.0, no, 9.0], &one), Err(DrawError::NoFiniteLegalLogit));
        assert_eq!(decide(&[0.0; 3], &TokenMask::empty(3)), Err(DrawError::NoLegalToken));
        // What is illegal or padding is not read.
        let two = TokenMask::from_ids(3, vec![id(0), id(2)]);
        let row = [5.0, f32::NAN, no, f32::INFINITY, f32::NAN];
        assert_eq!(decide(&row, &two).unwrap().token, id(0));
    }
    // Legal, finite, and all banned by bias.
    let ban = Policy::greedy().bias(id(1), f64::NEG_INFINITY);
    let one = TokenMask::from_ids(3, vec![id(1)]);
    let found = decide(&[0.0; 3], &one, &ban, &History::new(), 0.5);
    assert_eq!(found, Err(DrawError::NoFiniteLegalLogit));
}

#[test]
fn a_mask_may_remove_the_highest_logit_and_one_legal_token_is_certain() {
    let logits = [1.0, 50.0, 0.5];
    let mask = TokenMask::from_ids(3, vec![id(0), id(2)]);
    let choice = decide(&logits, &mask, &Policy::greedy(), &History::new(), 0.0).unwrap();
    assert_eq!(choice.token, id(0));
    let one = TokenMask::from_ids(3, vec![id(2)]);
    let choice = decide(&logits, &one, &Policy::sample(1.0), &History::new(), 0.999).unwrap();
    assert_eq!((choice.token, choice.log_probability), (id(2), 0.0));
}

#[test]
fn every_policy_agrees_with_the_reference_on_random_rows_and_masks() {
    let mut step = 0;
    let mut random = || {
        step += 1;
        uniform(7, step)
    };
    let policies =
        [
            Policy::sample(1.0),
            Policy::sample(0.3),
            Policy::sample(2.5).top_k(k(40)),
            Policy::sample(1.0).top_k(k(3)).top_p(0.7),
            Policy::sample(1.0).top_p(0.9),
            Policy::sample(0.5).top_p(0.99).min_p(0.01),
            Policy::sample(1.0).min_p(0.1),
            Policy::sample(1.0).top_k(k(700)).top_p(0.95).min_p(0.02),
            Policy::sample(3.0).top_p(0.999_999),
            Policy::sample(1.3).typical_p(0.8),
            Policy::sample(0.9).top_k(k(60)).top_p(0.97).min_p(0.001).typical_p(0.5),
            // The orders of vLLM and of llama.cpp, and one backwards.
            Policy::sample(1.5)
                .top_k(k(90))
                .top_p(0.8)
                .min_p(0.03)
                .order(order(&[Stage::Temperature, Stage::MinP])),
            Policy::sample(0.4).top_k(k(40)).top_p(0.9).min_p(0.05).typical_p(0.95).order(order(
                &[Stage::TopK, Stage::TypicalP, Stage::TopP, Stage::MinP, Stage::Temperature],
            )),
            Policy::sample(2.0).top_k(k(9)).top_p(0.6).min_p(0.2).typical_p(0.7).order(order(&[
                Stage::TypicalP,
                Stage::MinP,
                Stage::TopP,
                Stage::TopK,
                Stage::Temperature,
            ])),
        ];
    for round in 0..40 {
        let width = [700, 1_000, 3_001][round % 3];
        // Gumbel noise, partly rounded so that there are ties.
        let logits: Vec<f32> = (0..width + 9)
            .map(|i| {
                let x = -(-(random().max(1e-300)).ln()).ln() * 3.0;
                if i % 5 == 0 { x.round() as f32 } else { x as f32 }
            })
            .collect();
        let share = [0.001, 0.02, 0.5, 0.99, 1.0][round % 5];
        let mut ids: Vec<_> = (0..width).filter(|_| random() < share).map(id).collect();
        ids.push(id(round));
        let mask = TokenMask::from_ids(width, ids);
        for policy in &policies {
            let found = support(&logits, &mask, policy, &[]);
            close(&found, &reference(&logits, &mask, policy), 1e-6);
            // What is drawn is in it, with the probability that it says.
            let u = random();
            let choice = decide(&logits, &mask, policy, &History::new(), u).unwrap();
            let of = found.iter().find(|t| t.0 == choice.token.index()).unwrap();
            assert!((choice.log_probability - of.1.ln()).abs() < 1e-6);
        }
    }
}

#[test]
fn draws_follow_the_distribution() {
    // χ² with 7 degrees of freedom; 40.5 has probability 1e-6.
    let p = [0.4, 0.2, 0.15, 0.1, 0.05, 0.05, 0.03, 0.02];
    let mut logits = logs(&p);
    logits.resize(300, -1e4);
    for policy in [Policy::sample(1.0), Policy::sample(1.0).top_k(k(8)).top_p(0.999_999_9)] {
        let mut counts = [0_u32; 8];
        let draws = 100_000;
        for step in 0..draws {
            let u = uniform(11, step);
            let choice = decide(&logits, &all(300), &policy, &History::new(), u).unwrap();
            counts[choice.token.index()] += 1;
        }
        let expected = p.map(|p| p * draws as f64);
        let chi: f64 =
            (0..8).map(|i| (f64::from(counts[i]) - expected[i]).powi(2) / expected[i]).sum();
        assert!(chi < 40.5, "{chi} {counts:?}");
    }
}

#[test]
fn a_draw_is_the_inverse_of_the_cumulative_distribution_over_ids() {
    let logits = logs(&[0.25, 0.5, 0.25]);
    let policy = Policy::sample(1.0);
    for (u, token) in [(0.0, 0), (0.249, 0), (0.25, 1), (0.749, 1), (0.75, 2), (0.999, 2)] {
        let choice = decide(&logits, &all(3), &policy, &History::new(), u).unwrap();
        assert_eq!(choice.token.index(), token, "{u}");
    }
    // With a filter it is over descending logits.
    let policy = policy.top_k(k(2));
    for (u, token) in [(0.0, 1), (0.666, 1), (0.667, 0), (0.999, 0)] {
        let choice = decide(&logits, &all(3), &policy, &History::new(), u).unwrap();
        assert_eq!(choice.token.index(), token, "{u}");
    }
}

#[test]
fn log_probabilities_before_and_after_differ_by_what_the_stages_removed() {
    let logits = logs(&[0.5, 0.25, 0.25]);
    let before = super::log_softmax(&logits, id(1)).unwrap();
    assert!((before - 0.25_f64.ln()).abs() < 1e-6);
    let mask = TokenMask::from_ids(3, vec![id(1), id(2)]);
    let choice = decide(&logits, &mask, &Policy::sample(1.0), &History::new(), 0.1).unwrap();
    assert!((choice.log_probability - 0.5_f64.ln()).abs() < 1e-6);
    assert!(super::log_softmax(&[0.0, f32::NAN], id(0)).is_err());
    let banned = super::log_softmax(&[0.0, f32::NEG_INFINITY], id(1)).unwrap();
    assert_eq!(banned, f64::NEG_INFINITY);
}

#[test]
fn options_out_of_range_are_refused_by_name() {
    let cases = [
        (Policy::sample(-1.0), "`temperature` is -1;"),
        (Policy::sample(f64::NAN), "`temperature` is NaN;"),
        (Policy::sample(f64::INFINITY), "`temperature` is inf;"),
        (Policy::greedy().top_k(k(5)), "`top_k` is 5; it must be from 1 to 4,"),
        (Policy::greedy().top_p(0.0), "`top_p` is 0;"),
        (Policy::greedy().top_p(1.000_1), "`top_p` is 1.0001;"),
        (Policy::greedy().top_p(f64::NAN), "`top_p` is NaN;"),
        (Policy::greedy().min_p(-0.1), "`min_p` is -0.1;"),
        (Policy::greedy().min_p(1.1), "`min_p` is 1.1;"),
        (Policy::greedy().typical_p(0.0), "`typical_p` is 0;"),
        (Policy::greedy().repetition_penalty(0.0), "`repetition_penalty` is 0;"),
        (Policy::greedy().repetition_penalty(f64::INFINITY), "`repetition_penalty` is inf;"),
        (Policy::greedy().presence_penalty(f64::NAN), "`presence_penalty` is NaN;"),
        (Policy::greedy().frequency_penalty(f64::INFINITY), "`frequency_penalty` is inf;"),
        (Policy::greedy().bias(id(4), 1.0), "`logit_bias` is 4; it must be for ids below 4,"),
        (Policy::greedy().bias(id(1), f64::INFINITY), "`logit_bias` is inf;"),
        (Policy::greedy().bias(id(1), f64::NAN), "`logit_bias` is NaN;"),
        (Policy::greedy().min_tokens(7).max_tokens(k(7)), "`min_tokens` is 7; it must be below"),
    ];
    for (policy, text) in cases {
        let error = policy.check(4).unwrap_err();
        assert_eq!(*error.kind(), crate::ErrorKind::InvalidOption);
        assert!(error.message().starts_with(text), "{error}");
    }
    let full = Policy::sample(0.7)
        .top_k(k(4))
        .top_p(1.0)
        .min_p(1.0)
        .repetition_penalty(1.1)
        .presence_penalty(-2.0)
        .frequency_penalty(2.0)
        .bias(id(3), f64::NEG_INFINITY)
        .min_tokens(6)
        .max_tokens(k(7));
    assert!(full.check(4).is_ok());
}

#[test]
fn policies_are_read_from_json_and_unknown_or_zero_options_are_errors() {
    let policy: Policy =
        serde_json::from_str(r#"{"temperature":0.7,"top_k":40,"logit_bias":{"3":-1.5}}"#).unwrap();
    assert_eq!(policy, Policy::sample(0.7).top_k(k(40)).bias(id(3), -1.5));
    let text = serde_json::to_string(&policy).unwrap();
    assert_eq!(serde_json::from_str::<Policy>(&text).unwrap(), policy);
    assert_eq!(serde_json::from_str::<Policy>("{}").unwrap(), Policy::default());
    assert!(serde_json::from_str::<Policy>(r#"{"top_k":0}"#).is_err());
    assert!(serde_json::from_str::<Policy>(r#"{"temprature":0.7}"#).is_err());
}

#[test]
fn every_valid_policy_comes_back_from_json_bit_by_bit() {
    let ban = Policy::greedy().bias(id(3), f64::NEG_INFINITY).bias(id(4), -1.5);
    let text = serde_json::to_string(&ban).unwrap();
    assert!(text.contains(r#""logit_bias":{"3":null,"4":-1.5}"#), "{text}");
    assert_eq!(serde_json::from_str::<Policy>(&text).unwrap(), ban);
    for wrong in [f64::INFINITY, f64::NAN] {
        assert!(serde_json::to_string(&Policy::greedy().bias(id(3), wrong)).is_err());
    }
    // Most of these take 17 digits.
    for step in 0..2_000 {
        let number = |more: usize| uniform(3, 5 * step + more);
        let policy = Policy::sample(number(0) * 3.0)
            .top_p(number(1))
            .min_p(number(2) * 1e-3)
            .frequency_penalty(-number(3) / 3.0)
            .bias(id(step), number(4) * 1e9)
            .seed(u64::MAX - step as u64);
        let text = serde_json::to_string(&policy).unwrap();
        assert_eq!(serde_json::from_str::<Policy>(&text).unwrap(), policy, "{text}");
    }
}
