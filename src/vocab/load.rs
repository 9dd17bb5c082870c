//! A file in, a vocabulary and its encoder out: the one front door to all tokenizer formats. The
//! kind is recognised by content.

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::error::{Error, ErrorKind};
use crate::ids::TokenId;
use crate::vocab::encode::{Encoder, Method, Pieces, Ranks};
use crate::vocab::gguf::{GgufTokenizer, GgufTokenizerModel};
use crate::vocab::{EndToken, TextRules, Vocabulary};
use crate::vocab::{end_tokens, gguf_reader, tiktoken, tokenizer_json};

/// What a file does not say about its vocabulary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadOptions {
    /// The end tokens; if empty, what the file or its neighbours declare, or else the special
    /// tokens named in [`super::WELL_KNOWN_END_TOKENS`].
    pub end_tokens: Vec<EndToken>,
    /// Special tokens of a tiktoken file, which has none itself.
    pub special_tokens: Vec<(Box<str>, TokenId)>,
}

impl LoadOptions {
    /// Adds an end token, by id or by name.
    #[must_use]
    pub fn end_token(mut self, token: impl Into<EndToken>) -> Self {
        self.end_tokens.push(token.into());
        self
    }

    /// Adds a special token of a tiktoken file.
    #[must_use]
    pub fn special_token(mut self, name: &str, id: TokenId) -> Self {
        self.special_tokens.push((name.into(), id));
        self
    }
}

/// The format of a vocabulary's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum VocabularyKind {
    /// The built-in vocabulary.
    Embedded,
    /// A Hugging Face `tokenizer.json`.
    TokenizerJson,
    /// A GGUF model file.
    Gguf,
    /// A tiktoken rank file.
    Tiktoken,
    /// Mistral's `tekken.json`.
    Tekken,
}

/// A vocabulary, and what is needed to talk to it.
#[derive(Clone, Debug)]
pub struct Loaded {
    vocabulary: Arc<Vocabulary>,
    kind: VocabularyKind,
    rules: TextRules,
    reinterpreted: Vec<TokenId>,
    encoder: Arc<Encoder>,
    gguf: Option<Arc<GgufTokenizer>>,
}

/// Loads the vocabulary of `path`: a `tokenizer.json` (or a folder with one), a GGUF model, a
/// tiktoken rank file or a `tekken.json`.
///
/// End tokens of a `tokenizer.json` come from `tokenizer_config.json` (`eos_token`) and
/// `generation_config.json` (`eos_token_id`) in the same folder, unless the options name some.
///
/// # Errors
///
/// [`ErrorKind::Io`] if a file cannot be read; [`ErrorKind::Vocabulary`] if it is none of these, is
/// malformed, or has no end token; [`ErrorKind::UnsupportedFeature`] naming what cannot be done
/// exactly; [`ErrorKind::InvalidOption`] for special tokens where the file has its own.
pub fn load(path: impl AsRef<Path>, options: &LoadOptions) -> Result<Loaded, Error> {
    let mut path = path.as_ref().to_path_buf();
    if path.is_dir() {
        path.push("tokenizer.json");
    }
    let unreadable = |error| unreadable(&path, &error);
    let mut file = File::open(&path).map_err(unreadable)?;
    let len = file.metadata().map_err(unreadable)?.len();
    let mut magic = Vec::new();
    (&mut file).take(4).read_to_end(&mut magic).map_err(unreadable)?;
    file.rewind().map_err(unreadable)?;
    if magic == gguf_reader::MAGIC {
        return from_gguf(GgufTokenizer::read(BufReader::new(file), len)?, options);
    }
    let mut bytes = Vec::new();
    // Devices and pipes without end have no length.
    file.take(len).read_to_end(&mut bytes).map_err(unreadable)?;
    from_text(bytes, options, || declared_beside(&path))
}

impl Loaded {
    /// Loads a vocabulary from the bytes of a file, as [`load`] does without the files beside it.
    ///
    /// # Errors
    ///
    /// As [`load`].
    pub fn from_bytes(bytes: Vec<u8>, options: &LoadOptions) -> Result<Self, Error> {
        if bytes.starts_with(gguf_reader::MAGIC) {
            let len = bytes.len() as u64;
            return from_gguf(GgufTokenizer::read(Cursor::new(bytes), len)?, options);
        }
        from_text(bytes, options, || Ok(Vec::new()))
    }

    /// Returns the built-in vocabulary.
    #[must_use]
    pub fn embedded() -> Self {
        let vocabulary = Vocabulary::embedded();
        Self::new(vocabulary, VocabularyKind::Embedded, TextRules::default(), Method::Greedy)
    }

    fn new(
        vocabulary: Arc<Vocabulary>,
        kind: VocabularyKind,
        rules: TextRules,
        method: Method,
    ) -> Self {
        let encoder = Arc::new(Encoder::new(Arc::clone(&vocabulary), method));
        Self { vocabulary, kind, rules, reinterpreted: Vec::new(), encoder, gguf: None }
    }

    /// Returns the tokens.
    #[must_use]
    pub const fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Returns the format that the tokens came from.
    #[must_use]
    pub const fn kind(&self) -> VocabularyKind {
        self.kind
    }

    /// Returns what the bytes of single tokens do not tell about whole texts.
    #[must_use]
    pub const fn text_rules(&self) -> TextRules {
        self.rules
    }

    /// Returns the added tokens whose text is taken as the file writes it although the tokenizer's
    /// own decoder prints something else (an added `é` in a byte-level vocabulary, which decodes
    /// to the lone byte E9).
    #[must_use]
    pub fn reinterpreted(&self) -> &[TokenId] {
        &self.reinterpreted
    }

    /// Returns what turns text into tokens.
    #[must_use]
    pub const fn encoder(&self) -> &Arc<Encoder> {
        &self.encoder
    }

    /// Returns the tokenizer of a GGUF file, with its chat template.
    #[must_use]
    pub const fn gguf(&self) -> Option<&Arc<GgufTokenizer>> {
        self.gguf.as_ref()
    }
}

fn from_gguf(tokenizer: GgufTokenizer, options: &LoadOptions) -> Result<Loaded, Error> {
    no_special_tokens(options)?;
    let vocabulary = Arc::new(tokenizer.vocabulary(&options.end_tokens)?);
    let tokenizer = Arc::new(tokenizer);
    let method = match tokenizer.model {
        GgufTokenizerModel::Llama => Method::Pieces(Box::new(Pieces::new(Arc::clone(&tokenizer)))),
        GgufTokenizerModel::Gpt2 | GgufTokenizerModel::T5 => hugging_face_gguf(&tokenizer),
    };
    let rules = tokenizer.text_rules();
    let loaded = Loaded::new(vocabulary, VocabularyKind::Gguf, rules, method);
    Ok(Loaded { gguf: Some(tokenizer), ..loaded })
}

fn from_text(
    bytes: Vec<u8>,
    options: &LoadOptions,
    declared: impl FnOnce() -> Result<Vec<EndToken>, Error>,
) -> Result<Loaded, Error> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if first != Some(&b'{') {
        if !tiktoken::is_tiktoken(&bytes) {
            return Err(Error::new(
                ErrorKind::Vocabulary,
                "the file is none of tokenizer.json, GGUF, tiktoken ranks and tekken.json",
            ));
        }
        let file = tiktoken::parse_tiktoken(&bytes, &options.special_tokens)?;
        return from_ranks(file, VocabularyKind::Tiktoken, options);
    }
    no_special_tokens(options)?;
    let Some(file) = tokenizer_json::parse(&bytes)? else {
        return from_ranks(tiktoken::parse_tekken(&bytes)?, VocabularyKind::Tekken, options);
    };
    let declared = if options.end_tokens.is_empty() { declared()? } else { Vec::new() };
    let ends = end_tokens::choose(&file.tokens, &options.end_tokens, &declared)?;
    let vocabulary = Arc::new(Vocabulary::new(file.tokens, ends)?);
    let method = hugging_face_json(bytes);
    let loaded = Loaded::new(vocabulary, VocabularyKind::TokenizerJson, file.rules, method);
    Ok(Loaded { reinterpreted: file.reinterpreted, ..loaded })
}

fn from_ranks(
    file: tiktoken::RankFile,
    kind: VocabularyKind,
    options: &LoadOptions,
) -> Result<Loaded, Error> {
    let ends = end_tokens::choose(&file.tokens, &options.end_tokens, &[])?;
    let vocabulary = Arc::new(Vocabulary::new(file.tokens, ends)?);
    let method = Method::Ranks(Box::new(Ranks::new(file.pattern)));
    Ok(Loaded::new(vocabulary, kind, TextRules::default(), method))
}

fn no_special_tokens(options: &LoadOptions) -> Result<(), Error> {
    match options.special_tokens.first() {
        None => Ok(()),
        Some((name, _)) => {
            let text = format!(
                "the special token `{name}` is given, but only tiktoken files leave theirs out"
            );
            Err(Error::new(ErrorKind::InvalidOption, text))
        }
    }
}

#[cfg(feature = "tokenizers")]
fn hugging_face_json(bytes: Vec<u8>) -> Method {
    use crate::vocab::hugging_face::{HuggingFace, Source};
    Method::HuggingFace(Box::new(HuggingFace::new(Source::Json(bytes.into()))))
}

#[cfg(not(feature = "tokenizers"))]
fn hugging_face_json(_bytes: Vec<u8>) -> Method {
    Method::Unavailable
}

#[cfg(feature = "tokenizers")]
fn hugging_face_gguf(tokenizer: &Arc<GgufTokenizer>) -> Method {
    use crate::vocab::hugging_face::{HuggingFace, Source};
    Method::HuggingFace(Box::new(HuggingFace::new(Source::Gguf(Arc::clone(tokenizer)))))
}

#[cfg(not(feature = "tokenizers"))]
fn hugging_face_gguf(_tokenizer: &Arc<GgufTokenizer>) -> Method {
    Method::Unavailable
}

/// Returns the end tokens that the files beside a `tokenizer.json` declare.
fn declared_beside(path: &Path) -> Result<Vec<EndToken>, Error> {
    let mut ends = Vec::new();
    if let Some((name, config)) = sibling(path, "tokenizer_config.json")? {
        let eos = config.get("eos_token").filter(|eos| !eos.is_null());
        // Older files write the whole added token.
        let text = eos.map(|eos| eos.get("content").unwrap_or(eos).as_str());
        match text {
            Some(Some(text)) => ends.push(EndToken::from(text)),
            Some(None) => return Err(malformed(&name, "eos_token")),
            None => {}
        }
    }
    if let Some((name, config)) = sibling(path, "generation_config.json")? {
        let ids = match config.get("eos_token_id") {
            None | Some(Value::Null) => &[],
            Some(Value::Array(ids)) => ids.as_slice(),
            Some(id) => std::slice::from_ref(id),
        };
        for id in ids {
            let id = id.as_u64().and_then(|id| u32::try_from(id).ok());
            let id = id.ok_or_else(|| malformed(&name, "eos_token_id"))?;
            ends.push(EndToken::Id(TokenId::new(id)));
        }
    }
    Ok(ends)
}

/// Returns the JSON of the file `name` beside `path`, and its path, if there is one.
fn sibling(path: &Path, name: &str) -> Result<Option<(PathBuf, Value)>, Error> {
    let path = path.with_file_name(name);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(&path, &error)),
    };
    let value = serde_json::from_slice(&bytes).map_err(|error| {
        Error::new(ErrorKind::Vocabulary, format!("`{}` is not JSON: {error}", path.display()))
    })?;
    Ok(Some((path, value)))
}

fn malformed(path: &Path, member: &str) -> Error {
    let text = format!("`{}` has a malformed `{member}`", path.display());
    Error::new(ErrorKind::Vocabulary, text)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot read `{}`: {error}", path.display()))
}
