//! `schemac generate`: texts that match a grammar, from a model or at random.

use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use schemac::runtime::{ConstrainedSampler, GenerateError, Model, Policy, RandomModel};
use schemac::token::TokenAutomaton;
use serde_json::json;

use crate::args::GenerateArgs;
use crate::exit::Failure;
use crate::grammar;
#[cfg(feature = "candle")]
use crate::model;
use crate::output::Output;
use crate::progress::Progress;

/// Runs the command.
pub(crate) fn run(args: &GenerateArgs, output: Output) -> Result<ExitCode, Failure> {
    if let Some(path) = &args.model {
        return with_model(args, path, output);
    }
    let automaton = grammar::compile(&args.grammar)?.automaton;
    let mut model = RandomModel::new(automaton.vocabulary(), args.seed);
    write(args, output, &automaton, args.max_tokens, &mut model, RandomModel::reseed)
}

#[cfg(feature = "candle")]
fn with_model(args: &GenerateArgs, path: &Path, output: Output) -> Result<ExitCode, Failure> {
    let loaded = grammar::load_vocabulary(Some(path), &args.grammar.vocabulary.end_token)?;
    let automaton = grammar::compile_for(&args.grammar, loaded.vocabulary())?.automaton;
    let mut model = model::load(args, path, &loaded)?;
    let max_tokens = model::max_tokens(args, &model)?;
    write(args, output, &automaton, max_tokens, &mut model, |_, _| ())
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
    model: &mut M,
    reseed: impl Fn(&mut M, u64),
) -> Result<ExitCode, Failure>
where
    Failure: From<M::Error>,
{
    let policy = policy(args).max_tokens(max_tokens);
    let mut sampler = ConstrainedSampler::new(Arc::clone(automaton), policy)?;
    let progress = Progress::start("generating", Some(args.count));
    for seed in (0..args.count).map(|index| args.seed.wrapping_add(index)) {
        reseed(model, seed);
        sampler.reset();
        sampler.reseed(seed);
        generate(&mut sampler, model)?;
        output.result(
            || sampler.text() + "\n",
            || json!({ "text": sampler.text(), "tokens": sampler.tokens().len(), "seed": seed }),
        )?;
        progress.step();
    }
    Ok(ExitCode::SUCCESS)
}

fn policy(args: &GenerateArgs) -> Policy {
    let policy = Policy::sample(args.temperature)
        .top_p(args.top_p)
        .min_p(args.min_p)
        .repetition_penalty(args.repetition_penalty)
        .seed(args.seed);
    match args.top_k {
        Some(k) => policy.top_k(k),
        None => policy,
    }
}

fn generate<M: Model>(sampler: &mut ConstrainedSampler, model: &mut M) -> Result<(), Failure>
where
    Failure: From<M::Error>,
{
    sampler.generate(model).map_err(|error| match error {
        GenerateError::Step(error) => error.into(),
        GenerateError::Model(error) => error.into(),
    })
}
