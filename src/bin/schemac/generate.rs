//! `schemac generate`: texts that match a grammar, from a model or at random.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use schemac::runtime::{ConstrainedSampler, GenerateError, Model, Policy, RandomModel};
use serde_json::json;

use crate::args::GenerateArgs;
use crate::exit::Failure;
use crate::grammar;
use crate::output::Output;
use crate::progress::Progress;

/// Runs the command.
pub(crate) fn run(args: &GenerateArgs, output: Output) -> Result<ExitCode, Failure> {
    if let Some(path) = &args.model {
        return Err(no_models(path));
    }
    let compiled = grammar::compile(&args.grammar)?;
    let mut model = RandomModel::new(compiled.automaton.vocabulary(), args.seed);
    let mut sampler = ConstrainedSampler::new(Arc::clone(&compiled.automaton), policy(args))?;
    let progress = Progress::start("generating", Some(args.count));
    for seed in (0..args.count).map(|index| args.seed.wrapping_add(index)) {
        model.reseed(seed);
        sampler.reset();
        sampler.reseed(seed);
        generate(&mut sampler, &mut model)?;
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
        .max_tokens(args.max_tokens)
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

/// Returns why a model cannot be asked.
fn no_models(path: &Path) -> Failure {
    Failure::Usage(format!(
        "{}: this build cannot run models; build it with `--features candle`",
        path.display()
    ))
}
