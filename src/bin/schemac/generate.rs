//! `schemac generate`: texts that match a grammar, from a model or at random.

use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use schemac::runtime::{Beam, ConstrainedSampler, GenerateError, Model, RandomModel};
use schemac::token::TokenAutomaton;
use schemac::{Error, ErrorKind, StepError, TokenId};
use serde_json::json;

use crate::args::GenerateArgs;
use crate::exit::Failure;
use crate::grammar;
#[cfg(feature = "candle")]
use crate::model;
use crate::output::Output;
use crate::progress::Progress;
use crate::steps::Steps;

/// Runs the command.
pub(crate) fn run(args: &GenerateArgs, output: Output) -> Result<ExitCode, Failure> {
    if let Some(path) = &args.model {
        return with_model(args, path, output);
    }
    let automaton = grammar::compile(&args.grammar)?.automaton;
    let mut model = RandomModel::new(automaton.vocabulary(), args.seed);
    write(args, output, &automaton, args.max_tokens, (&mut model, &[]), RandomModel::reseed)
}

#[cfg(feature = "candle")]
fn with_model(args: &GenerateArgs, path: &Path, output: Output) -> Result<ExitCode, Failure> {
    let loaded = grammar::load_vocabulary(Some(path), &args.grammar.vocabulary.end_token)?;
    let automaton = grammar::compile_for(&args.grammar, loaded.vocabulary())?.automaton;
    let mut model = model::load(args, path, &loaded)?;
    let max_tokens = model::max_tokens(args, &model)?;
    let prompt = model.prompt().to_vec();
    write(args, output, &automaton, max_tokens, (&mut model, &prompt), |_, _| ())
}

#[cfg(not(feature = "candle"))]
fn with_model(_: &GenerateArgs, path: &Path, _: Output) -> Result<ExitCode, Failure> {
    Err(Failure::Usage(format!(
        "{}: this build cannot run models; build it with `--features candle`",
        path.display()
    )))
}

/// Generates and writes the texts.
fn write<M: Model>(
    args: &GenerateArgs,
    output: Output,
    automaton: &Arc<TokenAutomaton>,
    max_tokens: NonZeroUsize,
    (model, prompt): (&mut M, &[TokenId]),
    reseed: impl Fn(&mut M, u64),
) -> Result<ExitCode, Failure>
where
    Failure: From<M::Error>,
{
    let (mut policy, penalise_prompt) = args.sampling.policy()?;
    policy.seed = args.seed;
    // What a file of parameters allows can be less.
    policy.max_tokens = Some(policy.max_tokens.map_or(max_tokens, |most| most.min(max_tokens)));
    let mut sampler = ConstrainedSampler::new(Arc::clone(automaton), policy)?;
    if penalise_prompt {
        sampler = sampler.with_penalised_prompt(prompt);
    }
    if let Some(width) = args.beam {
        let beam = Beam::new(width).length_exponent(args.length_exponent);
        return search(args, output, beam, &sampler, model);
    }
    if args.explain {
        let policy = sampler.policy();
        output.result(|| format!("policy: {policy}\n"), || json!({ "policy": policy }))?;
    }
    let progress = Progress::start("generating", Some(args.count));
    let mut steps = Steps::default();
    for seed in (0..args.count).map(|index| args.seed.wrapping_add(index)) {
        reseed(model, seed);
        sampler.reset();
        sampler.reseed(seed);
        steps = Steps::default();
        generate(args, &mut sampler, model, &mut steps)?;
        let vocabulary = automaton.vocabulary();
        output.result(
            || {
                let table = if args.explain { steps.to_table(vocabulary) } else { String::new() };
                sampler.text() + "\n" + &table
            },
            || {
                let text = sampler.text();
                let mut result =
                    json!({ "text": text, "tokens": sampler.tokens().len(), "seed": seed });
                if args.explain {
                    result["explanation"] = steps.to_json(vocabulary);
                }
                result
            },
        )?;
        progress.step();
    }
    if let Some(path) = &args.plot {
        std::fs::write(path, steps.to_svg()).map_err(|error| Failure::io(path, &error))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Searches, and writes the best texts.
fn search<M: Model>(
    args: &GenerateArgs,
    output: Output,
    beam: Beam,
    start: &ConstrainedSampler,
    model: &mut M,
) -> Result<ExitCode, Failure>
where
    Failure: From<M::Error>,
{
    let found = beam.search(start, model).map_err(|error| match error {
        GenerateError::Step(error) => of_step(error),
        GenerateError::Model(error) => error.into(),
        GenerateError::Rows(error) => Error::new(ErrorKind::Model, error.to_string()).into(),
    })?;
    for found in found.iter().take(usize::try_from(args.count).unwrap_or(usize::MAX)) {
        let text = found.sampler.text();
        output.result(
            || format!("{text}\n"),
            || {
                json!({
                    "text": text,
                    "tokens": found.sampler.tokens().len(),
                    "log_probability": found.log_probability,
                    "score": found.score,
                })
            },
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Generates one text, and looks at its decisions if they are asked for.
fn generate<M: Model>(
    args: &GenerateArgs,
    sampler: &mut ConstrainedSampler,
    model: &mut M,
    steps: &mut Steps,
) -> Result<(), Failure>
where
    Failure: From<M::Error>,
{
    let explains = args.explain || args.plot.is_some();
    let mut row = Vec::new();
    while !sampler.is_finished() {
        model.logits(sampler.tokens(), &mut row)?;
        let choice = sampler.sample(&row)?;
        if explains {
            steps.push(sampler.view(&row, &choice)?);
        }
        sampler.accept(choice.token)?;
    }
    Ok(())
}

/// As `into`, where the compiler also knows a conversion of a model's error.
fn of_step(error: StepError) -> Failure {
    error.into()
}
