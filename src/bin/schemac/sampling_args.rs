//! How `generate` chooses tokens: arguments in, a policy out.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use schemac::runtime::{Dialect, Preset, Stage};
use schemac::{Error, ErrorKind, Policy};

use crate::exit::Failure;
use crate::source;

/// The size up to which a file of parameters is read.
const PARAMETERS_BYTES: usize = 1 << 20;

/// The policy of decoding: that of a file or a preset, else temperature 1; and what is set apart.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct SamplingArgs {
    /// A policy for a usual task, to start from.
    #[arg(long, value_name = "TASK", conflicts_with = "policy",
          value_parser = PossibleValuesParser::new(Preset::ALL.map(Preset::name)).map(preset))]
    pub preset: Option<Preset>,

    /// A JSON file with a policy, to start from; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,

    /// Whose names and meanings the file has. Without, those of schemac.
    #[arg(long, value_name = "PROJECT", requires = "policy",
          value_parser = PossibleValuesParser::new(Dialect::ALL.map(Dialect::name)).map(dialect))]
    pub policy_of: Option<Dialect>,

    /// Divides the logits; 0 takes the most probable legal token.
    #[arg(long, value_name = "NUMBER")]
    pub temperature: Option<f64>,

    /// Keep only so many tokens of the highest probability.
    #[arg(long, value_name = "NUMBER")]
    pub top_k: Option<NonZeroUsize>,

    /// Keep the most probable tokens whose probabilities sum to this.
    #[arg(long, value_name = "NUMBER")]
    pub top_p: Option<f64>,

    /// Keep the tokens with at least this part of the highest probability.
    #[arg(long, value_name = "NUMBER")]
    pub min_p: Option<f64>,

    /// Keep the tokens whose surprisal is nearest to the entropy and whose probabilities sum to this.
    #[arg(long, value_name = "NUMBER")]
    pub typical_p: Option<f64>,

    /// Divide the logits of tokens that were there before.
    #[arg(long, value_name = "NUMBER")]
    pub repetition_penalty: Option<f64>,

    /// Subtract from the logits of tokens that were there before.
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub presence_penalty: Option<f64>,

    /// Subtract from the logits of tokens that were there before, each time.
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub frequency_penalty: Option<f64>,

    /// How many of the latest tokens the penalties look at; all, if not given.
    #[arg(long, value_name = "NUMBER")]
    pub penalty_window: Option<NonZeroUsize>,

    /// The tokens before which a text may not end, unless nothing else is legal.
    #[arg(long, value_name = "NUMBER")]
    pub min_tokens: Option<usize>,

    /// A text at which the output ends; it is no part of it. May be given several times.
    #[arg(long, value_name = "TEXT")]
    pub stop: Vec<String>,

    /// A phrase that must not occur. May be given several times.
    #[arg(long, value_name = "TEXT")]
    pub ban: Vec<String>,

    /// The order of the stages after the mask, such as `top_k,top_p,temperature`; those that are not
    /// named follow in their usual order.
    #[arg(long, value_name = "STAGES", value_delimiter = ',',
          value_parser = PossibleValuesParser::new(FILTERS.map(Stage::name)).map(stage))]
    pub order: Vec<Stage>,
}

/// The stages that can be reordered here.
const FILTERS: [Stage; 5] =
    [Stage::Temperature, Stage::TopK, Stage::TopP, Stage::MinP, Stage::TypicalP];

// Each of these gets only the names that its parser lists.

fn preset(name: String) -> Preset {
    let named = Preset::ALL.into_iter().find(|preset| preset.name() == name);
    named.unwrap_or(Preset::Structured)
}

fn dialect(name: String) -> Dialect {
    Dialect::ALL.into_iter().find(|dialect| dialect.name() == name).unwrap_or(Dialect::OpenAi)
}

fn stage(name: String) -> Stage {
    FILTERS.into_iter().find(|stage| stage.name() == name).unwrap_or(Stage::Temperature)
}

impl SamplingArgs {
    /// Returns the policy, and whether its penalties look at the prompt.
    pub(crate) fn policy(&self) -> Result<(Policy, bool), Failure> {
        let (mut policy, penalise_prompt) = self.start()?;
        let mut set = |value: Option<f64>, to: fn(&mut Policy) -> &mut f64| {
            if let Some(value) = value {
                *to(&mut policy) = value;
            }
        };
        set(self.temperature, |p| &mut p.temperature);
        set(self.top_p, |p| &mut p.top_p);
        set(self.min_p, |p| &mut p.min_p);
        set(self.typical_p, |p| &mut p.typical_p);
        set(self.repetition_penalty, |p| &mut p.repetition_penalty);
        set(self.presence_penalty, |p| &mut p.presence_penalty);
        set(self.frequency_penalty, |p| &mut p.frequency_penalty);
        policy.top_k = self.top_k.or(policy.top_k);
        policy.penalty_window = self.penalty_window.or(policy.penalty_window);
        policy.min_tokens = self.min_tokens.unwrap_or(policy.min_tokens);
        policy.stop.extend_from_slice(&self.stop);
        policy.ban.extend_from_slice(&self.ban);
        policy.order = policy.order.with_filters(self.order.iter().copied())?;
        Ok((policy, penalise_prompt))
    }

    fn start(&self) -> Result<(Policy, bool), Failure> {
        if let Some(preset) = self.preset {
            return Ok((preset.policy(), false));
        }
        let Some(path) = &self.policy else { return Ok((Policy::sample(1.0), false)) };
        let text = source::read_text(path, PARAMETERS_BYTES)?;
        let name = source::name(path);
        let invalid = |error: serde_json::Error| {
            Error::new(ErrorKind::InvalidOption, format!("{name}: {error}"))
        };
        let Some(dialect) = self.policy_of else {
            return Ok((serde_json::from_str(&text).map_err(invalid)?, false));
        };
        let imported = dialect.read(&serde_json::from_str(&text).map_err(invalid)?, 0)?;
        for (name, is_there) in [
            ("end tokens", !imported.end_tokens.is_empty()),
            ("several outputs", imported.candidates > 1),
            ("a beam search", imported.beam.is_some()),
        ] {
            if is_there {
                let text = format!("the parameters ask for {name}, which this command does not do");
                return Err(Failure::Usage(text));
            }
        }
        Ok((imported.policy, imported.penalise_prompt))
    }
}
