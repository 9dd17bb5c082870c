//! Parameters of other projects, each with the meaning that its project gives it.

use std::num::NonZeroUsize;

use serde_json::{Value, json};

use super::{Dialect, Imported};
use crate::error::ErrorKind;
use crate::ids::TokenId;
use crate::runtime::{Beam, Policy, Stage};

fn n(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

fn read(dialect: Dialect, parameters: &Value) -> Imported {
    let imported = dialect.read(parameters, 10).unwrap();
    imported.policy.check(100_000).unwrap();
    imported
}

fn refused(dialect: Dialect, parameters: &Value) -> String {
    let error = dialect.read(parameters, 10).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::InvalidOption);
    error.message().to_owned()
}

#[test]
fn defaults_are_those_of_each_project() {
    let none = json!({});
    assert_eq!(read(Dialect::OpenAi, &none).policy, Policy::sample(1.0));
    assert_eq!(read(Dialect::HuggingFace, &none).policy, Policy::greedy());
    let vllm = read(Dialect::Vllm, &none).policy;
    assert_eq!(vllm.clone().order(Default::default()), Policy::sample(1.0).max_tokens(n(16)));
    assert_eq!(
        vllm.order.to_string(),
        "logit_bias, penalties, mask, temperature, min_p, top_k, top_p, typical_p"
    );
    let llama = read(Dialect::LlamaCpp, &none).policy;
    let expected = Policy::sample(0.8).top_k(n(40)).top_p(0.95).min_p(0.05).penalty_window(n(64));
    assert_eq!(llama.clone().order(Default::default()), expected);
    assert_eq!(
        llama.order.to_string(),
        "logit_bias, penalties, mask, top_k, typical_p, top_p, min_p, temperature"
    );
    let sampled = read(Dialect::HuggingFace, &json!({"do_sample": true})).policy;
    assert_eq!(sampled, Policy::sample(1.0).top_k(n(50)));
}

#[test]
fn zero_and_minus_one_switch_top_k_off_there() {
    for (dialect, k, expected) in [
        (Dialect::Vllm, 0, None),
        (Dialect::Vllm, -1, None),
        (Dialect::Vllm, 7, NonZeroUsize::new(7)),
        (Dialect::LlamaCpp, 0, None),
        (Dialect::LlamaCpp, -1, None),
        (Dialect::LlamaCpp, 7, NonZeroUsize::new(7)),
        (Dialect::HuggingFace, 0, None),
    ] {
        let parameters = json!({"top_k": k, "do_sample": true});
        let mut parameters = parameters.as_object().unwrap().clone();
        if dialect != Dialect::HuggingFace {
            parameters.remove("do_sample");
        }
        assert_eq!(read(dialect, &parameters.into()).policy.top_k, expected, "{dialect:?} {k}");
    }
    assert!(refused(Dialect::OpenAi, &json!({"top_k": 5})).contains("`top_k`"));
}

#[test]
fn a_request_of_open_ai_is_translated_whole() {
    let request = json!({
        "model": "m", "messages": [], "temperature": 0.0, "top_p": 0.5, "frequency_penalty": 0.25,
        "presence_penalty": -1, "logit_bias": {"5": -100, "7": 2.5}, "max_completion_tokens": 30,
        "seed": 9, "n": 3, "stop": ["\n", "END"], "response_format": {"type": "json_object"},
        "user": null
    });
    let imported = read(Dialect::OpenAi, &request);
    let expected = Policy::greedy()
        .top_p(0.5)
        .frequency_penalty(0.25)
        .presence_penalty(-1.0)
        .bias(TokenId::new(5), -100.0)
        .bias(TokenId::new(7), 2.5)
        .max_tokens(n(30))
        .stop("\n")
        .stop("END")
        .seed(9);
    assert_eq!(imported.policy, expected);
    assert_eq!((imported.candidates, imported.penalise_prompt), (3, false));
    for (name, value) in [
        ("temperature", json!(2.1)),
        ("temperature", json!("1")),
        ("top_p", json!(0)),
        ("top_p", json!(1.5)),
        ("frequency_penalty", json!(3)),
        ("logit_bias", json!({"5": 101})),
        ("logit_bias", json!({"x": 1})),
        ("max_tokens", json!(0)),
        ("n", json!(0)),
        ("seed", json!(-1)),
        ("stop", json!([1])),
        ("temprature", json!(1)),
    ] {
        let text = refused(Dialect::OpenAi, &json!({ name: value }));
        assert!(text.contains(&format!("`{name}`")) || text.contains("max_completion"), "{text}");
    }
}

#[test]
fn hugging_face_counts_the_prompt_and_searches_beams() {
    let config = json!({
        "_from_model_config": true, "transformers_version": "4.57.1", "bos_token_id": 1,
        "eos_token_id": [2, 32000], "max_length": 110, "min_length": 15, "num_beams": 4,
        "num_beam_groups": 2, "diversity_penalty": 0.5, "length_penalty": 0.8,
        "repetition_penalty": 1.1, "early_stopping": "never", "temperature": 0.6,
        "no_repeat_ngram_size": 0, "num_return_sequences": 2
    });
    let imported = read(Dialect::HuggingFace, &config);
    let policy = Policy::greedy().repetition_penalty(1.1).max_tokens(n(100)).min_tokens(5);
    assert_eq!(imported.policy, policy);
    assert!(imported.penalise_prompt);
    assert_eq!(imported.end_tokens, [TokenId::new(2), TokenId::new(32_000)]);
    let beam = Beam::new(n(4)).length_exponent(0.8).groups(n(2), 0.5);
    assert_eq!((imported.beam, imported.candidates), (Some(beam), 2));
    let both = json!({"max_new_tokens": 7, "max_length": 5});
    assert_eq!(read(Dialect::HuggingFace, &both).policy.max_tokens, Some(n(7)));
    for (name, config) in [
        ("max_length", json!({"max_length": 10})),
        ("no_repeat_ngram_size", json!({"no_repeat_ngram_size": 3})),
        ("penalty_alpha", json!({"penalty_alpha": 0.6})),
        ("temperature", json!({"do_sample": true, "temperature": 0.0})),
        ("num_beams", json!({"do_sample": true, "num_beams": 2})),
        ("early_stopping", json!({"num_beams": 2, "early_stopping": true})),
        ("bad_words_ids", json!({"bad_words_ids": [[1]]})),
    ] {
        assert!(refused(Dialect::HuggingFace, &config).contains(&format!("`{name}`")));
    }
}

#[test]
fn vllm_has_its_own_temperatures_and_penalties() {
    let temperature = |t: f64| read(Dialect::Vllm, &json!({"temperature": t})).policy.temperature;
    assert_eq!([0.0, 9e-6, 0.001, 0.5].map(temperature), [0.0, 0.0, 0.01, 0.5]);
    let repetition = read(Dialect::Vllm, &json!({"repetition_penalty": 1.2}));
    assert!(repetition.penalise_prompt);
    assert!(!read(Dialect::Vllm, &json!({"presence_penalty": 1.2})).penalise_prompt);
    let both = json!({"repetition_penalty": 1.2, "presence_penalty": 0.5});
    assert!(refused(Dialect::Vllm, &both).contains("`repetition_penalty`"));
    assert!(refused(Dialect::Vllm, &json!({"ignore_eos": true})).contains("`ignore_eos`"));
    assert!(refused(Dialect::Vllm, &json!({"best_of": 4})).contains("`best_of`"));
    let stops = read(Dialect::Vllm, &json!({"stop_token_ids": [3], "stop": "x", "n": 2}));
    assert_eq!((stops.stop_tokens, stops.candidates), (vec![TokenId::new(3)], 2));
}

#[test]
fn the_samplers_of_llama_cpp_are_an_order_and_those_left_out_are_off() {
    let parameters = json!({
        "samplers": ["top_k", "temperature", "xtc"], "top_k": 5, "temp": 1.5, "repeat_penalty": 1.1,
        "logit_bias": [[3, false], [4, -1.5]], "n_predict": -1, "xtc_probability": 0.0
    });
    let imported = read(Dialect::LlamaCpp, &parameters);
    let policy = imported.policy;
    assert_eq!(policy.order.stages()[3..5], [Stage::TopK, Stage::Temperature]);
    assert_eq!((policy.top_k, policy.top_p, policy.min_p), (Some(n(5)), 1.0, 0.0));
    assert_eq!((policy.temperature, policy.repetition_penalty), (1.5, 1.0));
    assert_eq!(policy.logit_bias[&TokenId::new(3)], f64::NEG_INFINITY);
    assert_eq!(policy.max_tokens, None);
    let window = |last: i64| {
        let parameters = json!({"repeat_penalty": 1.3, "repeat_last_n": last});
        let imported = read(Dialect::LlamaCpp, &parameters);
        assert_eq!(imported.penalise_prompt, last != 0);
        (imported.policy.repetition_penalty, imported.policy.penalty_window)
    };
    assert_eq!([0, -1, 9].map(window), [(1.0, None), (1.3, None), (1.3, Some(n(9)))]);
    for (name, parameters) in [
        ("mirostat", json!({"mirostat": 2})),
        ("xtc_probability", json!({"xtc_probability": 0.1})),
        ("dry_multiplier", json!({"dry_multiplier": 0.8})),
        ("samplers", json!({"samplers": ["top_k", "penalties"]})),
        ("samplers", json!({"samplers": ["infill"]})),
        ("n_predict", json!({"n_predict": -2})),
    ] {
        assert!(refused(Dialect::LlamaCpp, &parameters).contains(&format!("`{name}`")));
    }
}

#[test]
fn end_tokens_of_hugging_face_replace_the_tokenizers_and_stop_tokens_of_vllm_join_them() {
    let declared = [TokenId::new(7), TokenId::new(9)];
    let ends = |dialect, parameters: &Value| -> Vec<u32> {
        let ends = read(dialect, parameters).ends(&declared);
        ends.into_iter().map(TokenId::get).collect()
    };
    assert_eq!(ends(Dialect::HuggingFace, &json!({"eos_token_id": [9, 2]})), [2, 9]);
    assert_eq!(ends(Dialect::HuggingFace, &json!({"eos_token_id": 5})), [5]);
    assert_eq!(ends(Dialect::HuggingFace, &json!({})), [7, 9]);
    assert_eq!(ends(Dialect::Vllm, &json!({"stop_token_ids": [8, 7]})), [7, 8, 9]);
    assert_eq!(ends(Dialect::OpenAi, &json!({"stop": "x"})), [7, 9]);
}

#[test]
fn only_objects_are_parameters() {
    assert!(refused(Dialect::OpenAi, &json!([1])).contains("not a JSON object"));
    for dialect in Dialect::ALL {
        let read: Dialect = serde_json::from_value(dialect.name().into()).unwrap();
        assert_eq!(read, dialect);
    }
}
