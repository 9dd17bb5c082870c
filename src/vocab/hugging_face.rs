//! A `tokenizer.json` or the tokenizer of a GGUF file in, a `tokenizers::Tokenizer` out, built when
//! it is first needed. [`super::encode`] and [`super::self_check`] use it; its types stay inside
//! the crate.
//!
//! Cost: about 0.4 s and 150 MB for a vocabulary of 128,000 tokens.
//!
//! The `tokenizers` crate panics on some malformed files (a merge that is shorter than the prefix
//! it should have, a table of characters with an index outside). Files come from strangers, so
//! every call into it is made by [`guarded`]; this is the only place of the crate that catches a
//! panic of other code.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use tokenizers::decoders::byte_fallback::ByteFallback;
use tokenizers::decoders::fuse::Fuse;
use tokenizers::decoders::strip::Strip;
use tokenizers::decoders::{self, DecoderWrapper};
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::models::unigram::Unigram;
use tokenizers::normalizers::{self, NFC, NormalizerWrapper, Replace};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{
    AddedToken, ModelWrapper, PreTokenizerWrapper, SplitDelimiterBehavior, Tokenizer,
};

use crate::error::{Error, ErrorKind};
use crate::ids::TokenId;
use crate::vocab::bytes::METASPACE;
use crate::vocab::gguf::{GgufTokenType, GgufTokenizer, GgufTokenizerModel};
use crate::vocab::split;

/// What a tokenizer is built from.
pub(crate) enum Source {
    /// The text of a `tokenizer.json`.
    Json(Box<[u8]>),
    /// The metadata of a GGUF file.
    Gguf(Arc<GgufTokenizer>),
}

/// The tokenizer as it is shipped, and one that keeps every text as it is.
pub(crate) struct HuggingFace {
    source: Source,
    shipped: OnceLock<Result<Tokenizer, Error>>,
    exact: OnceLock<Result<Tokenizer, Error>>,
}

impl HuggingFace {
    pub(crate) const fn new(source: Source) -> Self {
        Self { source, shipped: OnceLock::new(), exact: OnceLock::new() }
    }

    /// Returns the tokens of `text` as the file's tokenizer cuts it.
    pub(crate) fn encode_prompt(&self, text: &str) -> Result<Vec<TokenId>, Error> {
        encode(self.shipped()?, text)?.map_err(foreign)
    }

    /// Returns the tokens of `text` without what changes the text or reads special tokens from it
    /// (see [`keep_text`]), or `None` if the tokenizer has none for it.
    pub(crate) fn encode_exact(&self, text: &str) -> Result<Option<Vec<TokenId>>, Error> {
        let tokenizer = self
            .exact
            .get_or_init(|| self.build().and_then(|own| guarded(|| keep_text(own))))
            .as_ref()
            .map_err(Clone::clone)?;
        encode(tokenizer, text).map(Result::ok)
    }

    /// Returns the text that the file's tokenizer writes for `tokens`, special tokens included.
    pub(crate) fn decode(&self, tokens: &[TokenId]) -> Result<String, Error> {
        let tokenizer = self.shipped()?;
        let ids: Vec<u32> = tokens.iter().map(|token| token.get()).collect();
        guarded(|| tokenizer.decode(&ids, false).map_err(foreign))
    }

    /// Returns the token with this spelling.
    pub(crate) fn token_of(&self, spelling: &str) -> Result<Option<TokenId>, Error> {
        Ok(self.shipped()?.token_to_id(spelling).map(TokenId::new))
    }

    /// Returns the spelling of a token.
    pub(crate) fn spelling(&self, token: TokenId) -> Result<Option<String>, Error> {
        Ok(self.shipped()?.id_to_token(token.get()))
    }

    fn shipped(&self) -> Result<&Tokenizer, Error> {
        self.shipped.get_or_init(|| self.build()).as_ref().map_err(Clone::clone)
    }

    fn build(&self) -> Result<Tokenizer, Error> {
        guarded(|| match &self.source {
            Source::Json(json) => Tokenizer::from_bytes(json).map_err(foreign),
            Source::Gguf(gguf) => from_gguf(gguf),
        })
    }
}

/// The outer error is a panic, the inner one a text that cannot be encoded.
fn encode(
    tokenizer: &Tokenizer,
    text: &str,
) -> Result<Result<Vec<TokenId>, tokenizers::Error>, Error> {
    let encoding = guarded(|| Ok(tokenizer.encode_fast(text, false)))?;
    let tokens = |ids: &[u32]| ids.iter().copied().map(TokenId::new).collect();
    Ok(encoding.map(|encoding| tokens(encoding.get_ids())))
}

/// Runs code of the `tokenizers` crate; a panic in it is an error.
fn guarded<T>(run: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    // A tokenizer has only caches to leave half written, and their locks then fail here again.
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err(foreign("it panics")))
}

fn foreign(error: impl std::fmt::Display) -> Error {
    let text = format!("the `tokenizers` crate refuses this tokenizer: {error}");
    Error::new(ErrorKind::Vocabulary, text)
}

/// Returns `tokenizer` without normalizers that change more than the spelling, without prepended
/// spaces, and with the names of special tokens read as text.
fn keep_text(mut tokenizer: Tokenizer) -> Result<Tokenizer, Error> {
    let mut spelling = Vec::new();
    let mut stack: Vec<_> = tokenizer.get_normalizer().cloned().into_iter().collect();
    while let Some(normalizer) = stack.pop() {
        match normalizer {
            NormalizerWrapper::Sequence(sequence) => stack.extend(sequence.into_iter().rev()),
            NormalizerWrapper::Replace(_) | NormalizerWrapper::ByteLevel(_) => {
                spelling.push(normalizer);
            }
            _ => {}
        }
    }
    tokenizer.with_normalizer(Some(normalizers::Sequence::new(spelling))).map_err(foreign)?;
    if let Some(mut pre_tokenizer) = tokenizer.get_pre_tokenizer().cloned() {
        let mut stack = vec![&mut pre_tokenizer];
        while let Some(pre_tokenizer) = stack.pop() {
            match pre_tokenizer {
                PreTokenizerWrapper::Sequence(sequence) => stack.extend(sequence.as_mut()),
                PreTokenizerWrapper::Metaspace(own) => {
                    own.set_prepend_scheme(PrependScheme::Never);
                }
                PreTokenizerWrapper::ByteLevel(own) => own.add_prefix_space = false,
                _ => {}
            }
        }
        tokenizer.with_pre_tokenizer(Some(pre_tokenizer));
    }
    tokenizer.with_truncation(None).map_err(foreign)?;
    tokenizer.with_padding(None);
    tokenizer.set_encode_special_tokens(true);
    Ok(tokenizer)
}

/// Returns the tokenizer of a GGUF file whose model is byte-level BPE or Unigram.
///
/// Control tokens are special, user-defined ones are not. A SentencePiece BPE model (`llama`) has
/// no exact counterpart: its merges are ordered by the score of the result alone, so
/// [`super::encode`] does them itself.
///
/// # Errors
///
/// [`ErrorKind::UnsupportedFeature`] naming the pre-tokenizer (`tokenizer.ggml.pre`) or model;
/// [`ErrorKind::Vocabulary`] if merges or scores are malformed.
fn from_gguf(gguf: &GgufTokenizer) -> Result<Tokenizer, Error> {
    let mut tokenizer = match gguf.model {
        GgufTokenizerModel::Gpt2 => byte_level(gguf)?,
        GgufTokenizerModel::T5 => unigram(gguf)?,
        GgufTokenizerModel::Llama => {
            let feature = "tokenizer.ggml.model llama".into();
            let text = "SentencePiece BPE is not built as a Hugging Face tokenizer";
            return Err(Error::new(ErrorKind::UnsupportedFeature { feature }, text));
        }
    };
    let of = |special: bool, wanted: &'static [GgufTokenType]| {
        gguf.tokens
            .iter()
            .zip(&gguf.types)
            .filter(move |(text, kind)| wanted.contains(kind) && !text.is_empty())
            .map(move |(text, _)| AddedToken::from(text.as_str(), special).normalized(false))
    };
    let specials = of(true, &[GgufTokenType::Control, GgufTokenType::Unknown]);
    tokenizer.add_special_tokens(specials).map_err(foreign)?;
    tokenizer.add_tokens(of(false, &[GgufTokenType::UserDefined])).map_err(foreign)?;
    Ok(tokenizer)
}

/// How the text of a byte-level model is split before merging.
struct Rules {
    /// Digits stand alone, before anything else.
    digits: bool,
    pattern: &'static str,
    normalize: bool,
    /// A word that is a token needs no merges. True of vocabularies that come from tiktoken files.
    whole_words: bool,
}

/// Returns the rules of `tokenizer.ggml.pre`, as the tokenizer files of the models publish them.
fn rules(pre: Option<&str>) -> Result<Rules, Error> {
    let rules = |pattern| Rules { digits: false, pattern, normalize: false, whole_words: false };
    Ok(match pre.unwrap_or("default") {
        "default" | "gpt-2" | "gpt2" => rules(split::GPT_2),
        "smollm" | "starcoder" | "refact" => Rules { digits: true, ..rules(split::GPT_2) },
        "command-r" => Rules { digits: true, normalize: true, ..rules(split::GPT_2) },
        "llama-bpe" | "llama3" | "llama-v3" => Rules { whole_words: true, ..rules(split::LLAMA_3) },
        "qwen2" | "deepseek-r1-qwen" => Rules { normalize: true, ..rules(split::QWEN_2) },
        "gpt-4o" | "llama4" => Rules { whole_words: true, ..rules(split::O200K) },
        "tekken" => Rules { whole_words: true, ..rules(split::TEKKEN) },
        other => {
            let feature = format!("tokenizer.ggml.pre {other}").into();
            let text = format!("the pre-tokenizer `{other}` of the GGUF file is not supported");
            return Err(Error::new(ErrorKind::UnsupportedFeature { feature }, text));
        }
    })
}

fn byte_level(gguf: &GgufTokenizer) -> Result<Tokenizer, Error> {
    let rules = rules(gguf.pre.as_deref())?;
    let merges = gguf.merges.iter().map(|merge| {
        let pair = merge.split_once(' ').map(|(left, right)| (left.into(), right.into()));
        pair.ok_or_else(|| foreign(format_args!("the merge `{merge}` is no pair")))
    });
    let model = BPE::builder()
        .vocab_and_merges(ids(gguf), merges.collect::<Result<Vec<_>, _>>()?)
        .ignore_merges(rules.whole_words)
        .build()
        .map_err(foreign)?;
    let mut tokenizer = Tokenizer::new(ModelWrapper::BPE(model));
    let mut stages: Vec<PreTokenizerWrapper> = Vec::new();
    if rules.digits {
        stages.push(Digits::new(true).into());
    }
    let pattern = SplitPattern::Regex(rules.pattern.into());
    stages.push(
        Split::new(pattern, SplitDelimiterBehavior::Isolated, false).map_err(foreign)?.into(),
    );
    stages.push(ByteLevel::new(gguf.add_space_prefix == Some(true), true, false).into());
    tokenizer.with_pre_tokenizer(Some(Sequence::new(stages)));
    tokenizer.with_decoder(Some(ByteLevel::default()));
    if rules.normalize {
        tokenizer.with_normalizer(Some(NFC)).map_err(foreign)?;
    }
    Ok(tokenizer)
}

fn unigram(gguf: &GgufTokenizer) -> Result<Tokenizer, Error> {
    let pieces: Vec<_> =
        gguf.tokens.iter().cloned().zip(gguf.scores.iter().copied().map(f64::from)).collect();
    let marked = || gguf.types.iter().position(|kind| *kind == GgufTokenType::Unknown);
    let unknown = gguf.unknown.map(TokenId::index).or_else(marked);
    let fallback = gguf.types.contains(&GgufTokenType::Byte);
    let model = Unigram::from(pieces, unknown, fallback).map_err(foreign)?;
    let mut tokenizer = Tokenizer::new(ModelWrapper::Unigram(model));
    let scheme = match gguf.text_rules().prepend_space {
        true => PrependScheme::Always,
        false => PrependScheme::Never,
    };
    tokenizer.with_pre_tokenizer(Some(Metaspace::new(METASPACE, scheme, true)));
    let mut decoders: Vec<DecoderWrapper> = vec![
        Replace::new(METASPACE.to_string(), " ").map_err(foreign)?.into(),
        ByteFallback::new().into(),
        Fuse::new().into(),
    ];
    if gguf.text_rules().strip_leading_space {
        decoders.push(Strip::new(' ', 1, 0).into());
    }
    tokenizer.with_decoder(Some(decoders::sequence::Sequence::new(decoders)));
    Ok(tokenizer)
}

fn ids(gguf: &GgufTokenizer) -> Vocab {
    (0..).zip(&gguf.tokens).map(|(id, text)| (text.clone(), id)).collect()
}

impl std::fmt::Debug for HuggingFace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HuggingFace").finish_non_exhaustive()
    }
}
