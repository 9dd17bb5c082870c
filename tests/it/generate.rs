//! Random generation under the shipped schemas: every output is valid by the independent validator
//! of the `jsonschema` crate, within its budget, also at the least budget that there is.
//!
//! `SCHEMAC_GENERATIONS` sets the number of outputs for each schema.

use std::num::NonZeroUsize;
use std::sync::Arc;

use schemac::frontend::json_schema::{JsonOptions, compile};
use schemac::runtime::{ConstrainedSampler, Policy, RandomModel};
use schemac::token::TokenAutomaton;
use schemac::{Limits, StepError, Vocabulary};
use serde_json::Value;

use crate::schemas::shipped;

/// Outputs for each schema, unless the environment says otherwise.
const GENERATIONS: u64 = 40;

fn generations() -> u64 {
    std::env::var("SCHEMAC_GENERATIONS").map_or(GENERATIONS, |count| count.parse().unwrap())
}

fn automaton(schema: &str) -> Arc<TokenAutomaton> {
    let limits = Limits::default();
    let grammar = compile(schema, &JsonOptions::default(), &limits).unwrap();
    Arc::new(TokenAutomaton::new(grammar, Vocabulary::embedded(), limits).unwrap())
}

fn validator(schema: &str) -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(schema).unwrap();
    jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
}

/// Generates with one seed and returns the text.
fn generate(
    automaton: &Arc<TokenAutomaton>,
    model: &mut RandomModel,
    policy: Policy,
) -> ConstrainedSampler {
    model.reseed(policy.seed);
    let mut sampler = ConstrainedSampler::new(automaton.clone(), policy).unwrap();
    sampler.generate(model).unwrap();
    sampler
}

fn check(validator: &jsonschema::Validator, name: &str, sampler: &ConstrainedSampler) {
    let text = String::from_utf8(sampler.bytes()).unwrap();
    let value: Value =
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}: {text}"));
    if let Err(error) = validator.validate(&value) {
        panic!("{name}: {error}: {text}");
    }
}

fn budget(tokens: usize) -> NonZeroUsize {
    NonZeroUsize::new(tokens).unwrap()
}

#[test]
fn random_outputs_of_every_shipped_schema_are_valid() {
    let mut model = RandomModel::new(&Vocabulary::embedded(), 0);
    for (name, schema) in shipped() {
        let (automaton, validator) = (automaton(&schema), validator(&schema));
        for seed in 0..generations() {
            let policy = Policy::sample(1.0).seed(seed).max_tokens(budget(600));
            check(&validator, &name, &generate(&automaton, &mut model, policy));
        }
        let greedy = Policy::greedy().max_tokens(budget(600));
        check(&validator, &name, &generate(&automaton, &mut model, greedy));
    }
}

#[test]
fn the_least_budget_of_every_shipped_schema_suffices() {
    let mut model = RandomModel::new(&Vocabulary::embedded(), 0);
    for (name, schema) in shipped() {
        let (automaton, validator) = (automaton(&schema), validator(&schema));
        let one = Policy::sample(1.0).max_tokens(budget(1));
        let least = match ConstrainedSampler::new(automaton.clone(), one) {
            Err(StepError::TokenBudget { needed, .. }) => needed,
            other => panic!("{name}: {other:?}"),
        };
        for tokens in [least, least + 5, least + 50] {
            for seed in 0..generations() / 10 {
                let policy = Policy::sample(1.0).seed(seed).max_tokens(budget(tokens));
                let sampler = generate(&automaton, &mut model, policy);
                assert!(sampler.tokens().len() <= tokens);
                check(&validator, &name, &sampler);
            }
        }
    }
}

#[test]
fn clones_and_rollbacks_keep_what_was_written_apart() {
    // Keys and items must differ from earlier ones, so the matcher remembers them.
    let schema = r#"{
        "type": "object", "minProperties": 4, "additionalProperties": {
            "type": "array", "minItems": 2, "maxItems": 6, "uniqueItems": true,
            "items": {"enum": [0, 1, 2, "a", "b", true, null, 10]}
        }
    }"#;
    let (automaton, validator) = (automaton(schema), validator(schema));
    let mut model = RandomModel::new(&Vocabulary::embedded(), 0);
    for seed in 0..generations() / 10 {
        let policy = Policy::sample(1.0).seed(seed).max_tokens(budget(150));
        let whole = generate(&automaton, &mut model, policy.clone());
        check(&validator, "unique", &whole);
        let mut walked = ConstrainedSampler::new(automaton.clone(), policy).unwrap();
        for (i, &token) in whole.tokens().iter().enumerate() {
            // Another sequence goes on from here in another way, and is forgotten.
            let mut other = if i % 2 == 0 { walked.clone() } else { walked.fork() };
            other.reseed(seed + 1_000);
            other.generate(&mut model).unwrap();
            check(&validator, "unique", &other);
            let mut back = other;
            if i % 2 == 0 {
                back.rollback(back.tokens().len() - i).unwrap();
                assert_eq!(back.mask().unwrap(), walked.mask().unwrap());
            }
            walked.accept(token).unwrap();
        }
        assert!(walked.is_finished());
    }
}
