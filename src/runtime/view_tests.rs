//! Views of decisions, with values worked out by hand.

use super::{
    Choice, DrawError, History, Policy, Reason, Scratch, Stage, Step, Summary, draw, stages, view,
};
use crate::ids::TokenId;
use crate::mask::TokenMask;
use crate::step_error::LogitsError;

fn id(index: u32) -> TokenId {
    TokenId::new(index)
}

fn logs(probabilities: &[f64]) -> Vec<f32> {
    probabilities.iter().map(|p| p.ln() as f32).collect()
}

fn step<'a>(
    logits: &'a [f32],
    mask: &'a TokenMask,
    policy: &'a Policy,
    history: &'a History,
) -> Step<'a> {
    Step { logits, mask, policy, history, end_tokens: &[] }
}

fn chosen(step: &Step<'_>, u: f64) -> Choice {
    draw(step, &mut Scratch::default(), || u).unwrap()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6
}

#[test]
fn every_stage_shows_its_distribution() {
    // Token 0 is illegal; the rest renormalises to 1/2, 1/4, 1/4, the squares to 2/3, 1/6, 1/6, and
    // the nucleus of 0.8 has two of them with 4/5 and 1/5.
    let logits = logs(&[0.2, 0.4, 0.2, 0.2]);
    let mask = TokenMask::from_ids(4, vec![id(1), id(2), id(3)]);
    let policy = Policy::sample(0.5).top_p(0.8);
    let history = History::new();
    let found = stages(&step(&logits, &mask, &policy, &history)).unwrap();
    let expected: [(Stage, &[(u32, f64)]); 4] = [
        (Stage::Model, &[(1, 0.4), (0, 0.2), (2, 0.2), (3, 0.2)]),
        (Stage::Mask, &[(1, 0.5), (2, 0.25), (3, 0.25)]),
        (Stage::Temperature, &[(1, 2.0 / 3.0), (2, 1.0 / 6.0), (3, 1.0 / 6.0)]),
        (Stage::TopP, &[(1, 0.8), (2, 0.2)]),
    ];
    assert_eq!(found.len(), expected.len());
    for (found, (stage, expected)) in found.iter().zip(expected) {
        assert_eq!(found.stage, stage);
        assert_eq!(found.probabilities.len(), expected.len());
        for (f, e) in found.probabilities.iter().zip(expected) {
            assert!(f.0 == id(e.0) && near(f.1, e.1), "{stage} {f:?} {e:?}");
        }
        let entropy: f64 = expected.iter().map(|(_, p)| -p * p.ln()).sum();
        assert!(near(found.entropy, entropy));
    }
}

#[test]
fn a_view_tells_what_the_mask_took_and_where_the_token_stood() {
    let logits = logs(&[0.5, 0.3, 0.1, 0.1]);
    let mask = TokenMask::from_ids(4, vec![id(1), id(3)]);
    let policy = Policy::sample(1.0);
    let history = History::new();
    let step = step(&logits, &mask, &policy, &history);
    // The legal ones have 3/4 and 1/4: 0.8 draws the second.
    let choice = chosen(&step, 0.8);
    assert_eq!(choice.token, id(3));
    let found = view(&step, &choice).unwrap();
    assert!(found.argmax_masked && near(found.mass_removed, 0.6));
    assert_eq!((found.before.rank, found.after.rank), (4, 2));
    assert!(near(found.before.log_probability, 0.1_f64.ln()));
    assert!(near(found.after.log_probability, 0.25_f64.ln()));
    assert_eq!((found.legal, found.nucleus), (2, 2));
    let mut summary = Summary::default();
    summary.add(&found);
    let choice = chosen(&step, 0.0);
    summary.add(&view(&step, &choice).unwrap());
    assert!(near(summary.mass_removed, 1.2));
    assert!(near(summary.log_probability_before, 0.03_f64.ln()));
    assert!(near(summary.log_probability_after, (3.0_f64 / 16.0).ln()));
    assert_eq!((summary.steps, summary.argmax_masked, summary.forced), (2, 2, 0));
}

#[test]
fn penalties_are_no_part_of_the_model_and_no_work_of_the_mask() {
    // Token 0 was seen: its logit goes from 2 to 2 / 4 = 0.5, below that of token 1.
    let logits = [2.0, 1.0, 0.0];
    let mask = TokenMask::from_ids(3, vec![id(1)]);
    let policy = Policy::greedy().repetition_penalty(4.0);
    let mut history = History::counting(&[], None);
    history.push(id(0));
    let step = step(&logits, &mask, &policy, &history);
    let found = view(&step, &chosen(&step, 0.0)).unwrap();
    assert_eq!((found.before.rank, found.reason), (2, Reason::Highest));
    assert!(!found.argmax_masked);
    let (e, root) = (1_f64.exp(), 0.5_f64.exp());
    assert!(near(found.mass_removed, (root + 1.0) / (e + root + 1.0)));
    assert_eq!((found.legal, found.nucleus, found.after.log_probability), (1, 1, 0.0));
    let names: Vec<_> = found.stages.iter().map(|s| s.stage.name()).collect();
    assert_eq!(names, ["model", "penalties", "mask", "temperature"]);
}

#[test]
fn a_view_reads_illegal_logits_and_says_which_is_wrong() {
    let mask = TokenMask::from_ids(2, vec![id(0)]);
    let (policy, history) = (Policy::greedy(), History::new());
    let logits = [0.0, f32::NAN];
    let broken = step(&logits, &mask, &policy, &history);
    let error = DrawError::Logits(LogitsError::NotANumber { index: 1 });
    assert_eq!(stages(&broken), Err(error));
    assert_eq!(chosen(&broken, 0.0).token, id(0), "a draw does not");
    let none = [f32::NEG_INFINITY, 0.0];
    assert_eq!(stages(&step(&none, &mask, &policy, &history)), Err(DrawError::NoFiniteLegalLogit));
}
