//! Arguments in, a compiled grammar out: what every command but `tokenizer` begins with.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use schemac::token::TokenAutomaton;
use schemac::vocab::{EndToken, LoadOptions, Loaded, load};
use schemac::{Compiler, Error, ErrorKind, Limits, TokenId, artifact};

use crate::args::{GrammarArgs, VocabularyArgs};
use crate::diagnostic::SourceText;
use crate::exit::Failure;
use crate::progress::Progress;
use crate::source::{GrammarSource, Language};

/// A compiled grammar and how it came about.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub automaton: Arc<TokenAutomaton>,
    /// The language, unless the grammar comes from an artifact.
    pub language: Option<Language>,
    /// How long compiling or loading took, without reading files.
    pub time: Duration,
}

impl Compiled {
    /// Returns what the grammar was, for people.
    pub(crate) fn kind(&self) -> &'static str {
        self.language.map_or("artifact", Language::name)
    }

    /// Returns the number of rules so far.
    pub(crate) fn rules(&self) -> usize {
        self.automaton.automaton().with_grammar(|grammar| grammar.rules.len())
    }
}

/// Compiles what the arguments name.
pub(crate) fn compile(args: &GrammarArgs) -> Result<Compiled, Failure> {
    let limits = args.limits.limits()?;
    match GrammarSource::read(args, limits.source_bytes)? {
        GrammarSource::Artifact(bytes) => load_artifact(args, &bytes),
        GrammarSource::Text(language, source) => compile_text(args, limits, language, source),
    }
}

fn compile_text(
    args: &GrammarArgs,
    limits: Limits,
    language: Language,
    source: SourceText,
) -> Result<Compiled, Failure> {
    let loaded = args.vocabulary.load()?;
    let compiler = args.json.apply(Compiler::new(Arc::clone(loaded.vocabulary())).limits(limits));
    let progress = Progress::start("compiling", None);
    let start = Instant::now();
    let result = compile_with(&compiler, language, &source.text);
    let time = start.elapsed();
    drop(progress);
    match result {
        Ok(automaton) => Ok(Compiled { automaton, language: Some(language), time }),
        Err(error) => Err(Failure::Library(error, Some(source))),
    }
}

fn load_artifact(args: &GrammarArgs, bytes: &[u8]) -> Result<Compiled, Failure> {
    let start = Instant::now();
    let automaton = Arc::new(artifact::from_bytes(bytes)?);
    let time = start.elapsed();
    if args.vocabulary.tokenizer.is_some() {
        let (has, wanted) = (
            automaton.vocabulary().fingerprint(),
            args.vocabulary.load()?.vocabulary().fingerprint(),
        );
        if has != wanted {
            let message =
                format!("the artifact is for the vocabulary {has}, and the tokenizer has {wanted}");
            return Err(Error::new(ErrorKind::Artifact, message).into());
        }
    }
    Ok(Compiled { automaton, language: None, time })
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
