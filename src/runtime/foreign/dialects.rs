//! The meaning of each project's parameters.

use std::num::NonZeroUsize;

use serde_json::{Value, json};

use crate::error::Error;
use crate::runtime::Beam;
use crate::runtime::foreign::Imported;
use crate::runtime::foreign::params::Params;
use crate::runtime::order::{Order, Stage};
use crate::runtime::policy::Policy;

/// Returns what was read, with nothing asked for but one output.
fn imported(policy: Policy) -> Imported {
    Imported {
        policy,
        penalise_prompt: false,
        end_tokens: Vec::new(),
        stop_tokens: Vec::new(),
        candidates: 1,
        beam: None,
    }
}

fn top_k(params: &mut Params, default: i64) -> Result<Option<NonZeroUsize>, Error> {
    let k = params.integer(&["top_k"], default)?;
    Ok(usize::try_from(k).ok().and_then(NonZeroUsize::new))
}

fn seed(params: &mut Params) -> Result<u64, Error> {
    let seed = params.integer(&["seed"], 0)?;
    u64::try_from(seed).map_err(|_| params.refuse("seed", "is negative: name a seed"))
}

pub(super) fn open_ai(params: &mut Params) -> Result<Imported, Error> {
    params.pass_over(&[
        "model",
        "messages",
        "stream",
        "stream_options",
        "user",
        "metadata",
        "store",
        "service_tier",
        "logprobs",
        "top_logprobs",
        "response_format",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "safety_identifier",
        "prompt_cache_key",
    ]);
    let mut policy = Policy::sample(params.within(&["temperature"], 1.0, 0.0..=2.0)?)
        .top_p(params.within(&["top_p"], 1.0, 0.0..=1.0)?)
        .presence_penalty(params.within(&["presence_penalty"], 0.0, -2.0..=2.0)?)
        .frequency_penalty(params.within(&["frequency_penalty"], 0.0, -2.0..=2.0)?)
        .seed(seed(params)?);
    if policy.top_p == 0.0 {
        return Err(params.refuse("top_p", "is 0, which keeps no token; use a temperature of 0"));
    }
    policy.logit_bias = params.bias(-100.0..=100.0)?;
    policy.max_tokens = params.positive(&["max_completion_tokens", "max_tokens"])?;
    let mut imported = imported(policy);
    imported.candidates = params.positive(&["n"])?.map_or(1, NonZeroUsize::get);
    imported.policy.stop = params.texts("stop")?;
    Ok(imported)
}

pub(super) fn hugging_face(params: &mut Params) -> Result<Imported, Error> {
    params.pass_over(&[
        "_from_model_config",
        "transformers_version",
        "bos_token_id",
        "pad_token_id",
        "decoder_start_token_id",
        "use_cache",
        "cache_implementation",
        "cache_config",
        "return_dict_in_generate",
        "output_scores",
        "output_logits",
        "output_attentions",
        "output_hidden_states",
        "max_time",
        "trust_remote_code",
    ]);
    for (name, off) in [
        ("penalty_alpha", json!(0)),
        ("epsilon_cutoff", json!(0)),
        ("eta_cutoff", json!(0)),
        ("no_repeat_ngram_size", json!(0)),
        ("encoder_no_repeat_ngram_size", json!(0)),
        ("encoder_repetition_penalty", json!(1)),
        ("guidance_scale", json!(1)),
        ("renormalize_logits", json!(false)),
        ("remove_invalid_values", json!(false)),
        ("token_healing", json!(false)),
        ("low_memory", json!(false)),
    ] {
        params.off(name, &[off])?;
    }
    let samples = params.flag("do_sample", false)?;
    let temperature = params.number(&["temperature"], 1.0)?;
    if samples && temperature <= 0.0 {
        return Err(params.refuse("temperature", "must be above 0 where `do_sample` is true"));
    }
    let mut policy = Policy::sample(temperature)
        .top_p(params.number(&["top_p"], 1.0)?)
        .min_p(params.number(&["min_p"], 0.0)?)
        .typical_p(params.number(&["typical_p"], 1.0)?);
    policy.top_k = top_k(params, 50)?;
    if !samples {
        // Without `do_sample` they are not looked at.
        policy = Policy::greedy();
    }
    policy.repetition_penalty = params.number(&["repetition_penalty"], 1.0)?;
    let prompt = params.prompt_tokens;
    // `max_new_tokens` wins over `max_length`, which counts the prompt.
    let whole = params.positive(&["max_length"])?;
    policy.max_tokens = match (params.positive(&["max_new_tokens"])?, whole) {
        (Some(new), _) => Some(new),
        (None, Some(whole)) => {
            let rest = whole.get().checked_sub(prompt).and_then(NonZeroUsize::new);
            Some(rest.ok_or_else(|| params.refuse("max_length", "the prompt takes all of it"))?)
        }
        (None, None) => None,
    };
    let least = params.count(&["min_length"])?.map(|whole| whole.saturating_sub(prompt));
    policy.min_tokens = params.count(&["min_new_tokens"])?.or(least).unwrap_or(0);
    let mut imported = imported(policy);
    imported.penalise_prompt = imported.policy.has_penalties();
    imported.end_tokens = params.ids("eos_token_id")?;
    imported.policy.stop = params.texts("stop_strings")?;
    imported.candidates = params.positive(&["num_return_sequences"])?.map_or(1, NonZeroUsize::get);
    imported.beam = hugging_face_beam(params, samples)?;
    Ok(imported)
}

fn hugging_face_beam(params: &mut Params, samples: bool) -> Result<Option<Beam>, Error> {
    let width = params.positive(&["num_beams"])?.filter(|width| width.get() > 1);
    let groups = params.positive(&["num_beam_groups"])?;
    let diversity = params.number(&["diversity_penalty"], 0.0)?;
    let exponent = params.number(&["length_penalty"], 1.0)?;
    // Ours is exact, so it never stops sooner than "never".
    let early = params.take(&["early_stopping"]);
    let Some(width) = width else { return Ok(None) };
    if samples {
        return Err(params.refuse("num_beams", "together with `do_sample` has no equal here"));
    }
    if early == Some(Value::Bool(true)) {
        return Err(params.refuse("early_stopping", "true gives up exactness: no equal here"));
    }
    let beam = Beam::new(width).length_exponent(exponent);
    Ok(Some(match groups {
        Some(groups) => beam.groups(groups, diversity),
        None => beam,
    }))
}

pub(super) fn vllm(params: &mut Params) -> Result<Imported, Error> {
    params.pass_over(&[
        "logprobs",
        "prompt_logprobs",
        "detokenize",
        "skip_special_tokens",
        "spaces_between_special_tokens",
        "truncate_prompt_tokens",
        "output_kind",
        "structured_outputs",
        "guided_decoding",
        "extra_args",
    ]);
    params.off("ignore_eos", &[json!(false)])?;
    params.off("include_stop_str_in_output", &[json!(false)])?;
    params.off("bad_words", &[json!([])])?;
    params.off("logits_processors", &[json!([])])?;
    let temperature = match params.number(&["temperature"], 1.0)? {
        t if t < 0.0 => return Err(params.refuse("temperature", "is negative")),
        t if t < 1e-5 => 0.0,
        t => t.max(0.01),
    };
    let order = Order::DEFAULT.bias_first().with_filters([
        Stage::Temperature,
        Stage::MinP,
        Stage::TopK,
        Stage::TopP,
    ])?;
    let mut policy = Policy::sample(temperature)
        .top_p(params.number(&["top_p"], 1.0)?)
        .min_p(params.number(&["min_p"], 0.0)?)
        .repetition_penalty(params.number(&["repetition_penalty"], 1.0)?)
        .presence_penalty(params.within(&["presence_penalty"], 0.0, -2.0..=2.0)?)
        .frequency_penalty(params.within(&["frequency_penalty"], 0.0, -2.0..=2.0)?)
        .min_tokens(params.count(&["min_tokens"])?.unwrap_or(0))
        .seed(seed(params)?)
        .order(order);
    policy.top_k = top_k(params, 0)?;
    policy.logit_bias = params.bias(-100.0..=100.0)?;
    policy.max_tokens = params.positive(&["max_tokens"])?.or(NonZeroUsize::new(16));
    let additive = policy.presence_penalty != 0.0 || policy.frequency_penalty != 0.0;
    if policy.repetition_penalty != 1.0 && additive {
        let text = "looks at the prompt and the other penalties do not: no equal here";
        return Err(params.refuse("repetition_penalty", text));
    }
    let mut imported = imported(policy);
    imported.penalise_prompt = imported.policy.repetition_penalty != 1.0;
    imported.candidates = params.positive(&["n"])?.map_or(1, NonZeroUsize::get);
    imported.policy.stop = params.texts("stop")?;
    imported.stop_tokens = params.ids("stop_token_ids")?;
    Ok(imported)
}

pub(super) fn llama_cpp(params: &mut Params) -> Result<Imported, Error> {
    params.pass_over(&[
        "prompt",
        "messages",
        "model",
        "stream",
        "cache_prompt",
        "id_slot",
        "n_probs",
        "return_tokens",
        "timings_per_token",
        "post_sampling_probs",
        "grammar",
        "json_schema",
        "n_keep",
    ]);
    for (name, off) in [
        ("mirostat", json!(0)),
        ("xtc_probability", json!(0)),
        ("dry_multiplier", json!(0)),
        ("dynatemp_range", json!(0)),
        ("top_n_sigma", json!(-1)),
        ("ignore_eos", json!(false)),
        ("min_keep", json!(0)),
    ] {
        params.off(name, &[off])?;
    }
    // What belongs to stages that are off.
    params.pass_over(&[
        "mirostat_tau",
        "mirostat_eta",
        "xtc_threshold",
        "dry_base",
        "dry_allowed_length",
        "dry_penalty_last_n",
        "dry_sequence_breakers",
        "dynatemp_exponent",
    ]);
    let (order, penalties) = llama_cpp_order(params)?;
    let mut policy = Policy::sample(params.number(&["temperature", "temp"], 0.8)?.max(0.0))
        .top_p(params.number(&["top_p"], 0.95)?)
        .min_p(params.number(&["min_p"], 0.05)?)
        .typical_p(params.number(&["typical_p", "typ_p"], 1.0)?)
        .repetition_penalty(params.number(&["repeat_penalty"], 1.0)?)
        .presence_penalty(params.number(&["presence_penalty"], 0.0)?)
        .frequency_penalty(params.number(&["frequency_penalty"], 0.0)?)
        .seed(seed(params)?);
    policy.top_k = top_k(params, 40)?;
    if order.is_empty() && policy.temperature > 0.0 {
        return Err(params.refuse("samplers", "is empty"));
    }
    for stage in Order::DEFAULT.after_mask() {
        if !order.contains(stage) {
            // A sampler that is not named is off.
            match stage {
                Stage::TopK => policy.top_k = None,
                Stage::TopP => policy.top_p = 1.0,
                Stage::MinP => policy.min_p = 0.0,
                Stage::TypicalP => policy.typical_p = 1.0,
                _ if policy.temperature > 0.0 => policy.temperature = 1.0,
                _ => {}
            }
        }
    }
    policy.order = Order::DEFAULT.bias_first().with_filters(order)?;
    policy.logit_bias = params.bias(-f64::MAX..=f64::MAX)?;
    match params.integer(&["repeat_last_n"], 64)? {
        window if window == 0 || !penalties => {
            policy = policy.repetition_penalty(1.0).presence_penalty(0.0).frequency_penalty(0.0);
        }
        window => {
            // −1 is the size of the context: all.
            policy.penalty_window = usize::try_from(window).ok().and_then(NonZeroUsize::new);
        }
    }
    let most = params.integer(&["n_predict", "max_tokens"], -1)?;
    if most == 0 || most < -1 {
        return Err(params.refuse("n_predict", "0 and -2 have no equal here"));
    }
    policy.max_tokens = usize::try_from(most).ok().and_then(NonZeroUsize::new);
    let mut imported = imported(policy);
    imported.penalise_prompt = imported.policy.has_penalties();
    imported.policy.stop = params.texts("stop")?;
    Ok(imported)
}

/// Takes the samplers of llama.cpp, by name, and whether penalties are among them.
fn llama_cpp_order(params: &mut Params) -> Result<(Vec<Stage>, bool), Error> {
    let mut names = params.texts("samplers")?;
    if names.is_empty() {
        names = ["penalties", "top_k", "typ_p", "top_p", "min_p", "temperature"]
            .map(str::to_owned)
            .into();
    }
    let mut order = Vec::new();
    for (at, name) in names.iter().enumerate() {
        order.push(match name.as_str() {
            // Off, or refused before.
            "dry" | "xtc" | "top_n_sigma" => continue,
            "penalties" if at == 0 => continue,
            "top_k" => Stage::TopK,
            "typ_p" | "typical_p" => Stage::TypicalP,
            "top_p" => Stage::TopP,
            "min_p" => Stage::MinP,
            "temperature" | "temp" => Stage::Temperature,
            name => return Err(params.refuse("samplers", &format!("`{name}` has no equal here"))),
        });
    }
    Ok((order, names[0] == "penalties"))
}
