//! Forced tokens, against the tokenizer's own cut of whole documents.

use std::num::NonZeroUsize;

use schemac::frontend::json_schema::{JsonOptions, Whitespace};
use schemac::frontend::layout::Layout;
use schemac::runtime::{ConstrainedSampler, Model, Policy, RandomModel, heal};
use schemac::vocab::Loaded;
use schemac::{Compiler, ErrorKind, Matcher, StepError, Vocabulary};

use crate::schemas::{instances, shipped};

fn compiler(loaded: &Loaded) -> Compiler {
    let options = JsonOptions::default().whitespace(Whitespace::Compact);
    Compiler::new(loaded.vocabulary().clone()).json_options(options)
}

#[test]
fn forced_tokens_are_those_of_the_whole_document() {
    let loaded = Loaded::embedded();
    let (mut forced, mut all) = (0, 0);
    for (name, schema) in shipped() {
        let automaton = compiler(&loaded).compile_schema(&schema).unwrap();
        for document in instances(&name, "accept") {
            let text = document.trim();
            let tokens = loaded.encoder().encode(text).unwrap();
            let mut matcher = Matcher::new(automaton.clone());
            // Instances that are not spelled compactly.
            if matcher.accept_bytes(text.as_bytes()).is_err() {
                continue;
            }
            let mut sampler = ConstrainedSampler::new(automaton.clone(), Policy::greedy()).unwrap();
            while sampler.tokens().len() < tokens.len() {
                forced += sampler.jump_forward(loaded.encoder()).unwrap();
                assert!(tokens.starts_with(sampler.tokens()), "{name}: {text}");
                if let Some(&next) = tokens.get(sampler.tokens().len()) {
                    sampler.accept(next).unwrap();
                }
            }
            assert_eq!(sampler.tokens(), tokens);
            all += tokens.len();
        }
    }
    assert!(all > 500 && forced * 10 > all, "{forced} of {all} tokens were forced");
}

#[test]
fn jumping_forward_keeps_outputs_valid_and_within_their_budget() {
    let loaded = Loaded::embedded();
    let schema = r#"{"type": "object", "properties": {"first_name": {"type": "string"},
        "last_name": {"const": "Lovelace"}, "born": {"enum": [1815, 1816]}},
        "required": ["first_name", "last_name", "born"], "additionalProperties": false}"#;
    let automaton = compiler(&loaded).compile_schema(schema).unwrap();
    let mut model = RandomModel::new(loaded.vocabulary(), 0);
    let (mut row, mut forced) = (Vec::new(), 0);
    for seed in 0..40 {
        model.reseed(seed);
        let policy = Policy::sample(1.0).seed(seed).max_tokens(NonZeroUsize::new(40).unwrap());
        let mut sampler = ConstrainedSampler::new(automaton.clone(), policy).unwrap();
        while !sampler.is_finished() {
            forced += sampler.jump_forward(loaded.encoder()).unwrap();
            model.logits(sampler.tokens(), &mut row).unwrap();
            sampler.next_token(&row).unwrap();
        }
        assert!(sampler.tokens().len() <= 40);
        let value: serde_json::Value = serde_json::from_str(&sampler.text()).unwrap();
        assert_eq!(value["last_name"], "Lovelace");
    }
    assert!(forced > 200, "{forced}");
}

#[test]
fn a_healed_prompt_goes_on_with_the_tokens_that_it_was_cut_off_from() {
    let loaded = Loaded::embedded();
    let vocabulary = loaded.vocabulary();
    // `{"` would be followed by `name":` cut in two; `{"` is taken back.
    let prompt = loaded.encoder().encode("Answer: {\"").unwrap();
    let healed = heal(vocabulary, &prompt).unwrap();
    assert!(healed.prompt.len() < prompt.len());
    let layout = Layout::Sequence(vec![
        Layout::text(&healed.begins_with),
        Layout::text("na"),
        Layout::Free { without: vec!["x".into()] },
    ]);
    let automaton = compiler(&loaded).compile_layout(&layout).unwrap();
    let matcher = Matcher::new(automaton);
    let mask = matcher.mask().unwrap();
    let first: Vec<_> = mask.iter().map(|token| vocabulary.bytes(token).to_vec()).collect();
    let begins = healed.begins_with.as_bytes();
    assert!(first.iter().all(|bytes| bytes.starts_with(begins) || begins.starts_with(bytes)));
    assert!(first.iter().any(|bytes| bytes.len() <= begins.len()));
}

#[test]
fn what_may_follow_in_a_document_is_what_json_and_its_schema_say() {
    let schema = r#"{"type": "object", "properties": {"name": {"type": "string"},
        "age": {"type": "integer"}}, "required": ["name", "age"], "additionalProperties": false}"#;
    let automaton = compiler(&Loaded::embedded()).compile_schema(schema).unwrap();
    let legal_after = |text: &str| {
        let mut matcher = Matcher::new(automaton.clone());
        matcher.accept_bytes(text.as_bytes()).unwrap();
        matcher.legal_bytes().unwrap()
    };
    // A number begins with a digit or a sign: no letter, quote or brace.
    assert_eq!(legal_after(r#"{"name":"Alice","age":"#), b"-0123456789");
    // In a string all characters are, what has a meaning outside too; control characters are not.
    let in_string = legal_after(r#"{"name":""#);
    assert!((b' '..=b'~').all(|byte| in_string.contains(&byte)) && !in_string.contains(&b'\n'));
}

#[test]
fn where_every_element_was_written_there_is_no_completion_and_that_is_an_error() {
    // No member can be there, which is seen when one is begun only: `{}` is the only element.
    let schema = r#"{"type":"array","uniqueItems":true,"items":{"type":"object",
        "additionalProperties":{"type":"string","allOf":[{"pattern":"^a"},{"pattern":"^b"}]}}}"#;
    let automaton = Compiler::new(Vocabulary::embedded()).compile_schema(schema).unwrap();
    let mut matcher = Matcher::new(automaton);
    assert_eq!(matcher.shortest_completion().unwrap(), b"[]");
    matcher.accept_bytes(b"[{}").unwrap();
    assert_eq!(matcher.shortest_completion().unwrap(), b"]");
    matcher.accept_bytes(b",").unwrap();
    match matcher.shortest_completion() {
        Err(StepError::Grammar(error)) => assert_eq!(*error.kind(), ErrorKind::Unsatisfiable),
        other => panic!("{other:?}"),
    }
}
