//! The command line: one structure per command, and those that commands share.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::exit;
use crate::json_args::JsonArgs;
use crate::json_text::Spacing;
use crate::output::{ColorChoice, Format};
use crate::sampling_args::SamplingArgs;

/// Constrained structured output: JSON Schema, regex and GBNF grammars compiled to token masks.
#[derive(Debug, Parser)]
#[command(name = "schemac", version, max_term_width = 100, after_help = exit::HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub command: Command,

    /// The form of results on standard output.
    #[arg(long, global = true, value_enum, default_value_t)]
    pub format: Format,

    /// When to use colours.
    #[arg(long, global = true, value_enum, default_value_t)]
    pub color: ColorChoice,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compile a grammar against a vocabulary and save it as an artifact.
    Compile(CompileArgs),
    /// Tell whether a text matches a grammar, and where it stops matching.
    Check(CheckArgs),
    /// Generate texts that match a grammar.
    Generate(Box<GenerateArgs>),
    /// Describe a tokenizer file and check it against its own decoder.
    Tokenizer(TokenizerArgs),
    /// Describe a grammar, its automaton, and the legal tokens after a text.
    Explain(ExplainArgs),
    /// Run test suites.
    Suite(SuiteArgs),
}

/// What to compile.
#[derive(Args, Debug)]
#[group(skip)]
pub(crate) struct GrammarArgs {
    /// A grammar or artifact; its kind is told by its extension (.json, .gbnf, .regex, .schemac),
    /// else by its content. `-` is standard input.
    #[arg(value_name = "GRAMMAR", required_unless_present_any = ["schema", "regex", "gbnf"],
          conflicts_with_all = ["schema", "regex", "gbnf"])]
    pub file: Option<PathBuf>,

    /// A file with a JSON Schema.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["regex", "gbnf"])]
    pub schema: Option<PathBuf>,

    /// A regular expression; it must match the whole output.
    #[arg(long, value_name = "REGEX", conflicts_with = "gbnf", allow_hyphen_values = true)]
    pub regex: Option<String>,

    /// A file with a GBNF grammar.
    #[arg(long, value_name = "FILE")]
    pub gbnf: Option<PathBuf>,

    #[command(flatten)]
    pub vocabulary: VocabularyArgs,

    #[command(flatten)]
    pub json: JsonArgs,

    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Which vocabulary to compile for.
#[derive(Args, Debug)]
#[command(next_help_heading = "Vocabulary")]
pub(crate) struct VocabularyArgs {
    /// A Hugging Face `tokenizer.json` or a folder with one, a GGUF model, a tiktoken rank file or a
    /// `tekken.json`. Without one, the embedded vocabulary is used.
    #[arg(long, value_name = "FILE")]
    pub tokenizer: Option<PathBuf>,

    /// A token that ends the output, by name or id, instead of those that the file names. May be
    /// given several times.
    #[arg(long, value_name = "TOKEN")]
    pub end_token: Vec<String>,
}

/// Bounds on work and memory.
#[derive(Args, Debug)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// Sets one bound of the engine, such as `states=200000`. May be given several times; the
    /// error of an exceeded bound names it.
    #[arg(long, value_name = "NAME=NUMBER", value_parser = budget)]
    pub budget: Vec<(String, u64)>,
}

fn budget(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=NUMBER")?;
    let value = value.replace('_', "").parse().map_err(|error| format!("{value:?}: {error}"))?;
    Ok((name.to_owned(), value))
}

#[derive(Args, Debug)]
pub(crate) struct CompileArgs {
    #[command(flatten)]
    pub grammar: GrammarArgs,

    /// Where to write the artifact. By default, the name of the grammar's file with the extension
    /// `.schemac`, in the current folder.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Do not explore the automaton beforehand: a small file, whose masks are computed in use.
    #[arg(long)]
    pub lazy: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub grammar: GrammarArgs,

    /// The text.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["text_file", "lines"], allow_hyphen_values = true)]
    pub text: Option<String>,

    /// A file with the text; `-` is standard input, and so is neither `--text` nor this. One line
    /// break at its end is not part of the text.
    #[arg(long = "file", id = "text_file", value_name = "FILE")]
    pub text_file: Option<PathBuf>,

    /// Take each line of the file as a text.
    #[arg(long)]
    pub lines: bool,

    /// Prove that every member, element and branch that may be absent can be there. Without a text,
    /// that is all.
    #[arg(long)]
    pub prove: bool,

    /// How many legal tokens to show.
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    pub tokens: usize,
}

#[derive(Args, Debug)]
pub(crate) struct GenerateArgs {
    #[command(flatten)]
    pub grammar: GrammarArgs,

    /// How many texts to generate; 1, unless parameters of another project ask for more.
    #[arg(short = 'n', long, value_name = "NUMBER")]
    pub count: Option<u64>,

    /// A GGUF model to ask for logits, whose tokenizer is then used too. Without one, logits are
    /// random: the texts are valid and meaningless. On a busy machine set RAYON_NUM_THREADS=1 in the
    /// environment: the threads of a model spin while they wait for each other.
    #[arg(long, value_name = "FILE", conflicts_with = "tokenizer", help_heading = "Model")]
    pub model: Option<PathBuf>,

    /// What to tell the model: the message of a user, in the chat template of the model's file.
    #[arg(long, value_name = "TEXT", requires = "model", help_heading = "Model")]
    pub prompt: Option<String>,

    /// Let the model go on with the prompt as it is, without the chat template.
    #[arg(long, requires = "model", help_heading = "Model")]
    pub raw_prompt: bool,

    #[command(flatten)]
    pub sampling: SamplingArgs,

    /// Search for the most probable texts, following so many at a time, instead of drawing: temperature
    /// and filters play no part. `--count` is then how many of those that were found to print, the best
    /// first.
    #[arg(long, value_name = "WIDTH", help_heading = "Search", conflicts_with_all =
          ["explain", "plot", "temperature", "top_k", "top_p", "min_p", "typical_p", "order"])]
    pub beam: Option<NonZeroUsize>,

    /// Rank texts by their log-probability divided by this power of their number of tokens.
    #[arg(
        long,
        value_name = "NUMBER",
        requires = "beam",
        allow_hyphen_values = true,
        default_value_t = 0.0,
        help_heading = "Search"
    )]
    pub length_exponent: f64,

    /// Show the policy in force, and for each token what the model wanted, what was legal and what was
    /// drawn.
    #[arg(long, help_heading = "Explanation")]
    pub explain: bool,

    /// Write a drawing (SVG) of the last text: the entropy at each token, and the probability that the
    /// grammar took away.
    #[arg(long, value_name = "FILE", help_heading = "Explanation")]
    pub plot: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub grammar: GrammarArgs,

    /// Show what is legal after this text.
    #[arg(long, value_name = "TEXT", default_value = "", allow_hyphen_values = true)]
    pub at: String,

    /// How many legal tokens to show.
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub tokens: usize,

    /// How many keywords of a schema to show.
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    pub keywords: usize,
}

#[derive(Args, Debug)]
pub(crate) struct TokenizerArgs {
    /// A Hugging Face `tokenizer.json` or a folder with one, a GGUF model, a tiktoken rank file or a
    /// `tekken.json`. Without one, the embedded vocabulary is described.
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// A token that ends the output, by name or id, instead of those that the file names. May be
    /// given several times.
    #[arg(long, value_name = "TOKEN")]
    pub end_token: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct SuiteArgs {
    /// Suite files, or folders of them: lines of schemas with instances, official
    /// JSON-Schema-Test-Suite files, lines of grammars with accepted and refused texts.
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,

    #[command(flatten)]
    pub vocabulary: VocabularyArgs,

    #[command(flatten)]
    pub json: JsonArgs,

    #[command(flatten)]
    pub limits: LimitArgs,

    /// How many cases to run at a time. Times are truest with 1.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: u16,

    /// Run only so many cases.
    #[arg(long, value_name = "NUMBER")]
    pub limit: Option<usize>,

    /// Run only cases whose names contain this.
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,

    /// How the instances of schemas are spelled.
    #[arg(long, value_enum, default_value_t = Spacing::Compact)]
    pub spacing: Spacing,

    /// Leave the times of single masks out of the JSON.
    #[arg(long)]
    pub no_mask_times: bool,

    /// Give a case up after so many seconds.
    #[arg(long, value_name = "NUMBER", default_value_t = 60)]
    pub case_seconds: u64,
}
