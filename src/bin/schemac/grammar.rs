//! Arguments in, a compiled grammar out: what every command but `tokenizer` begins with.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use schemac::token::TokenAutomaton;
use schemac::vocab::{EndToken, LoadOptions, Loaded, load};
use schemac::{Compiler, Error, ErrorKind, Limits, TokenId, Vocabulary, artifact};

use crate::args::{GrammarArgs, VocabularyArgs};
use crate::diagnostic::{self, SourceText};
use crate::exit::Failure;
use crate::progress::Progress;
use crate::source::{GrammarSource, Language};

/// A compiled grammar and how it came about.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub automaton: Arc<TokenAutomaton>,
    /// The language, unless the grammar comes from an artifact.
    pub language: Option<Language>,
    /// The text of the grammar, unless it comes from an artifact.
    pub source: Option<SourceText>,
    /// How long compiling or loading took, without reading files.
    pub time: Duration,
}

impl Compiled {
    /// Returns what the grammar was, for people.
    pub(crate) fn kind(&self) -> &'static str {
        self.language.map_or("artifact", Language::name)
    }

    /// Returns an error about the grammar as a report.
    pub(crate) fn error_text(&self, error: &Error, color: bool) -> String {
        match &self.source {
            Some(source) => diagnostic::of_error(error, source).render(source, color),
            None => format!("{error}\n"),
        }
    }

    /// Returns the number of rules so far.
    pub(crate) fn rules(&self) -> usize {
        self.automaton.automaton().with_grammar(|grammar| grammar.rules.len())
    }
}

/// Compiles what the arguments name.
pub(crate) fn compile(args: &GrammarArgs) -> Result<Compiled, Failure> {
    let vocabulary = || Ok(Arc::clone(args.vocabulary.load()?.vocabulary()));
    compile_source(args, args.vocabulary.tokenizer.is_some(), vocabulary)
}

/// As [`compile`], for a vocabulary that was loaded before.
pub(crate) fn compile_for(
    args: &GrammarArgs,
    vocabulary: &Arc<Vocabulary>,
) -> Result<Compiled, Failure> {
    compile_source(args, true, || Ok(Arc::clone(vocabulary)))
}

/// Compiles for `vocabulary`, which an artifact must be for if `given`.
fn compile_source(
    args: &GrammarArgs,
    given: bool,
    vocabulary: impl FnOnce() -> Result<Arc<Vocabulary>, Failure>,
) -> Result<Compiled, Failure> {
    let limits = args.limits.limits()?;
    match GrammarSource::read(args, limits.source_bytes)? {
        GrammarSource::Artifact(bytes) => {
            let compiled = load_artifact(&bytes, &limits)?;
            if given {
                let vocabulary: Arc<Vocabulary> = vocabulary()?;
                check_fingerprint(&compiled, &vocabulary)?;
            }
            Ok(compiled)
        }
        GrammarSource::Text(language, source) => {
            compile_text(args, limits, vocabulary()?, language, source)
        }
    }
}

fn compile_text(
    args: &GrammarArgs,
    limits: Limits,
    vocabulary: Arc<Vocabulary>,
    language: Language,
    source: SourceText,
) -> Result<Compiled, Failure> {
    let compiler = args.json.apply(Compiler::new(vocabulary).limits(limits))?;
    let progress = Progress::start("compiling", None);
    let start = Instant::now();
    let result = compile_with(&compiler, language, &source.text);
    let time = start.elapsed();
    drop(progress);
    match result {
        Ok(automaton) => {
            Ok(Compiled { automaton, language: Some(language), source: Some(source), time })
        }
        Err(error) => Err(Failure::Library(error, Some(source))),
    }
}

fn load_artifact(bytes: &[u8], limits: &Limits) -> Result<Compiled, Failure> {
    let start = Instant::now();
    let automaton = Arc::new(artifact::from_bytes(bytes, limits)?);
    Ok(Compiled { automaton, language: None, source: None, time: start.elapsed() })
}

fn check_fingerprint(compiled: &Compiled, vocabulary: &Vocabulary) -> Result<(), Failure> {
    let (has, wanted) = (compiled.automaton.vocabulary().fingerprint(), vocabulary.fingerprint());
    if has != wanted {
        let message =
            format!("the artifact is for the vocabulary {has}, and the tokenizer has {wanted}");
        return Err(Error::new(ErrorKind::Artifact, message).into());
    }
    Ok(())
}

/// Compiles the text of a grammar.
pub(crate) fn compile_with(
    compiler: &Compiler,
    language: Language,
    text: &str,
) -> Result<Arc<TokenAutomaton>, Error> {
    match language {
        Language::Schema => compiler.compile_schema(text),
        Language::Regex => compiler.compile_regex(text),
        Language::Gbnf => compiler.compile_gbnf(text),
    }
}

impl VocabularyArgs {
    /// Loads the vocabulary: that of the file, or else the embedded one.
    pub(crate) fn load(&self) -> Result<Loaded, Failure> {
        load_vocabulary(self.tokenizer.as_deref(), &self.end_token)
    }
}

/// Loads the vocabulary of a file, or the embedded one, with these end tokens if there are any.
pub(crate) fn load_vocabulary(
    file: Option<&Path>,
    end_tokens: &[String],
) -> Result<Loaded, Failure> {
    let Some(path) = file else {
        if end_tokens.is_empty() {
            return Ok(Loaded::embedded());
        }
        let message = "--end-token needs the tokenizer file that it changes";
        return Err(Failure::Usage(message.to_owned()));
    };
    let mut options = LoadOptions::default();
    for text in end_tokens {
        options = options.end_token(match text.parse() {
            Ok(id) => EndToken::Id(TokenId::new(id)),
            Err(_) => EndToken::Name(text.as_str().into()),
        });
    }
    let _progress = Progress::start("loading the vocabulary", None);
    Ok(load(path, &options)?)
}
