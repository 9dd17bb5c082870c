//! How `generate` chooses tokens: arguments in, a policy out.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use schemac::runtime::{Dialect, Imported, Preset, Stage};
use schemac::{Error, ErrorKind, Policy};

use crate::exit::Failure;
use crate::source;

/// The most tokens of a text, if nothing else is said.
const MAX_TOKENS: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();

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

    /// The seed of the first text; each further one has the next. Without, that of the policy, else 0.
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,

    /// The most tokens of a text. Near them, the text takes its shortest way to its end, so that it
    /// is always complete. Without, those of the policy, else 1000.
    #[arg(long, value_name = "NUMBER")]
    pub max_tokens: Option<NonZeroUsize>,

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

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Sampling {
    /// The policy; it has a budget of tokens.
    pub policy: Policy,
    /// All that parameters of another project ask for. Its policy is that before options changed it.
    pub imported: Option<Imported>,
}

impl SamplingArgs {
    /// Reads what is asked for, for a prompt of so many tokens.
    pub(crate) fn read(&self, prompt_tokens: usize) -> Result<Sampling, Failure> {
        let Sampling { mut policy, imported } = self.start(prompt_tokens)?;
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
        policy.seed = self.seed.unwrap_or(policy.seed);
        policy.max_tokens = self.max_tokens.or(policy.max_tokens).or(Some(MAX_TOKENS));
        policy.top_k = self.top_k.or(policy.top_k);
        policy.penalty_window = self.penalty_window.or(policy.penalty_window);
        policy.min_tokens = self.min_tokens.unwrap_or(policy.min_tokens);
        policy.stop.extend_from_slice(&self.stop);
        policy.ban.extend_from_slice(&self.ban);
        policy.order = policy.order.with_filters(self.order.iter().copied())?;
        Ok(Sampling { policy, imported })
    }

    /// Returns whether options ask for a temperature or filters.
    pub(crate) const fn filters(&self) -> bool {
        let number = self.temperature.is_some() || self.top_k.is_some() || self.top_p.is_some();
        number || self.min_p.is_some() || self.typical_p.is_some() || !self.order.is_empty()
    }

    fn start(&self, prompt_tokens: usize) -> Result<Sampling, Failure> {
        let own = |policy| Ok(Sampling { policy, imported: None });
        if let Some(preset) = self.preset {
            return own(preset.policy());
        }
        let Some(path) = &self.policy else { return own(Policy::sample(1.0)) };
        let text = source::read_text(path, PARAMETERS_BYTES)?;
        let name = source::name(path);
        let invalid = |error: serde_json::Error| {
            Error::new(ErrorKind::InvalidOption, format!("{name}: {error}"))
        };
        let Some(dialect) = self.policy_of else {
            return own(serde_json::from_str(&text).map_err(invalid)?);
        };
        let parameters = serde_json::from_str(&text).map_err(invalid)?;
        let imported = dialect.read(&parameters, prompt_tokens)?;
        Ok(Sampling { policy: imported.policy.clone(), imported: Some(imported) })
    }
}

impl Sampling {
    /// Returns whether penalties look at the prompt.
    pub(crate) fn penalises_prompt(&self) -> bool {
        self.imported.as_ref().is_some_and(|imported| imported.penalise_prompt)
    }

    /// Returns the parameters of another project, if they name tokens that end a text.
    pub(crate) fn names_ends(&self) -> Option<&Imported> {
        let names = |i: &&Imported| !i.end_tokens.is_empty() || !i.stop_tokens.is_empty();
        self.imported.as_ref().filter(names)
    }
}
