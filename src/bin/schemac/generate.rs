//! `schemac generate`: texts that match a grammar, from a model or at random.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use schemac::runtime::{Beam, ConstrainedSampler, GenerateError, Model, RandomModel};
use schemac::token::TokenAutomaton;
use schemac::{Error, ErrorKind, StepError, TokenId, Vocabulary};
use serde_json::json;

use crate::args::GenerateArgs;
use crate::exit::Failure;
use crate::grammar;
#[cfg(feature = "candle")]
use crate::model;
use crate::output::Output;
use crate::progress::Progress;
use crate::sampling_args::Sampling;
use crate::steps::Steps;

/// Runs the command.
pub(crate) fn run(args: &GenerateArgs, output: Output) -> Result<ExitCode, Failure> {
    if let Some(path) = &args.model {
        return with_model(args, path, output);
    }
    let sampling = args.sampling.read(0)?;
    let automaton = match sampling.names_ends() {
        Some(_) if args.grammar.vocabulary.tokenizer.is_some() => {
            let loaded = args.grammar.vocabulary.load()?;
            let vocabulary = ending(args, &sampling, loaded.vocabulary())?;
            grammar::compile_for(&args.grammar, &vocabulary)?.automaton
        }
        Some(_) => {
            let text = "the parameters name end tokens by number: \
                        name the file of their tokenizer with --tokenizer";
            return Err(Failure::Usage(text.to_owned()));
        }
        None => grammar::compile(&args.grammar)?.automaton,
    };
    let mut model = RandomModel::new(automaton.vocabulary(), sampling.policy.seed);
    write(args, output, &automaton, sampling, (&mut model, &[]), RandomModel::reseed)
}

#[cfg(feature = "candle")]
fn with_model(args: &GenerateArgs, path: &Path, output: Output) -> Result<ExitCode, Failure> {
    let loaded = grammar::load_vocabulary(Some(path), &args.grammar.vocabulary.end_token)?;
    let prompt = model::prompt(args, &loaded)?;
    let mut sampling = args.sampling.read(prompt.len())?;
    let vocabulary = ending(args, &sampling, loaded.vocabulary())?;
    let automaton = grammar::compile_for(&args.grammar, &vocabulary)?.automaton;
    let mut model = model::load(path, &loaded, prompt.clone())?;
    let most = model::most_tokens(&model)?;
    sampling.policy.max_tokens = sampling.policy.max_tokens.map(|asked| asked.min(most));
    write(args, output, &automaton, sampling, (&mut model, &prompt), |_, _| ())
}

#[cfg(not(feature = "candle"))]
fn with_model(_: &GenerateArgs, path: &Path, _: Output) -> Result<ExitCode, Failure> {
    Err(Failure::Usage(format!(
        "{}: this build cannot run models; build it with `--features candle`",
        path.display()
    )))
}

/// Returns the vocabulary with the end tokens that parameters of another project name, unless the
/// arguments name some.
fn ending(
    args: &GenerateArgs,
    sampling: &Sampling,
    vocabulary: &Arc<Vocabulary>,
) -> Result<Arc<Vocabulary>, Failure> {
    let Some(imported) =
        sampling.names_ends().filter(|_| args.grammar.vocabulary.end_token.is_empty())
    else {
        return Ok(Arc::clone(vocabulary));
    };
    let ends = imported.ends(vocabulary.end_tokens());
    Ok(Arc::new(vocabulary.with_end_tokens(ends)?))
}

/// Generates and writes the texts.
fn write<M: Model>(
    args: &GenerateArgs,
    output: Output,
    automaton: &Arc<TokenAutomaton>,
    sampling: Sampling,
    (model, prompt): (&mut M, &[TokenId]),
    reseed: impl Fn(&mut M, u64),
) -> Result<ExitCode, Failure>
where
    Failure: From<M::Error>,
{
    let penalises_prompt = sampling.penalises_prompt();
    let Sampling { policy, imported } = sampling;
    let first_seed = policy.seed;
    let mut sampler = ConstrainedSampler::new(Arc::clone(automaton), policy)?;
    if penalises_prompt {
        sampler = sampler.with_penalised_prompt(prompt);
    }
    let asked = imported.as_ref().map_or(1, |imported| imported.candidates);
    let count = args.count.unwrap_or(u64::try_from(asked).unwrap_or(u64::MAX));
    let beam = args.beam.map(|width| Beam::new(width).length_exponent(args.length_exponent));
    if let Some(beam) = beam.or_else(|| imported?.beam) {
        if args.explain || args.plot.is_some() || args.sampling.filters() {
            let text = "the parameters ask for a beam search: it draws nothing, so temperature and \
                        filters play no part, and --explain and --plot have nothing to show";
            return Err(Failure::Usage(text.to_owned()));
        }
        return search(count, output, beam, &sampler, model);
    }
    if args.explain {
        let policy = sampler.policy();
        output.result(|| format!("policy: {policy}\n"), || json!({ "policy": policy }))?;
    }
    let progress = Progress::start("generating", Some(count));
    let mut steps = Steps::default();
    for seed in (0..count).map(|index| first_seed.wrapping_add(index)) {
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
    count: u64,
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
    for found in found.iter().take(usize::try_from(count).unwrap_or(usize::MAX)) {
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
