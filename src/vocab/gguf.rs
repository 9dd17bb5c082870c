//! The metadata of a GGUF model file in, its tokenizer out: the vocabulary, and what is needed to
//! encode prompts for it.
//!
//! Cost: the metadata is streamed; tensors are never read. See [`super::gguf_reader`] for how
//! hostile files are kept in bounds.

use std::io::Read;

use crate::error::{Error, ErrorKind};
use crate::ids::TokenId;
use crate::vocab::bytes::{Spelling, fallback_byte};
use crate::vocab::gguf_reader::{Kind, Reader, malformed};
use crate::vocab::{EndToken, TextRules, Token, Vocabulary, end_tokens};

/// How the tokenizer of a GGUF file cuts text (`tokenizer.ggml.model`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GgufTokenizerModel {
    /// Byte-level BPE (`gpt2`).
    Gpt2,
    /// SentencePiece BPE by scores (`llama`).
    Llama,
    /// SentencePiece Unigram (`t5`).
    T5,
}

/// What a token of a GGUF file is for (`tokenizer.ggml.token_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GgufTokenType {
    /// Text.
    Normal,
    /// Stands for what has no token.
    Unknown,
    /// Special: has no text.
    Control,
    /// Text that is recognised before all other.
    UserDefined,
    /// Not used by the model.
    Unused,
    /// A single byte, `<0xNN>`.
    Byte,
}

/// The tokenizer that a GGUF file carries.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GgufTokenizer {
    /// How text is cut.
    pub model: GgufTokenizerModel,
    /// The name of the rules by which text is split before BPE.
    pub pre: Option<String>,
    /// The strings of the tokens as the file spells them; position = id.
    pub tokens: Vec<String>,
    /// What each token is for; one for each of `tokens`.
    pub types: Vec<GgufTokenType>,
    /// The score of each token; empty, or one for each of `tokens`.
    pub scores: Vec<f32>,
    /// The merges of BPE in order, two strings with a space between them.
    pub merges: Vec<String>,
    /// The token that begins a text.
    pub bos: Option<TokenId>,
    /// The token that ends a text.
    pub eos: Option<TokenId>,
    /// The token that ends a turn.
    pub eot: Option<TokenId>,
    /// The token that ends a message.
    pub eom: Option<TokenId>,
    /// The token that stands for what has no token.
    pub unknown: Option<TokenId>,
    /// The token that fills up rows.
    pub padding: Option<TokenId>,
    /// Whether prompts begin with `bos`; `None` if the file does not say.
    pub add_bos: Option<bool>,
    /// Whether a space is put before the text; `None` if the file does not say.
    pub add_space_prefix: Option<bool>,
    /// The template (Jinja) that turns a conversation into a prompt.
    pub chat_template: Option<String>,
}

/// Values that come one after another, until all are there.
#[derive(Default)]
struct Found {
    model: Option<String>,
    pre: Option<String>,
    tokens: Vec<String>,
    types: Vec<i128>,
    scores: Vec<f32>,
    merges: Vec<String>,
    ids: [Option<i128>; 6],
    add_bos: Option<bool>,
    add_space_prefix: Option<bool>,
    chat_template: Option<String>,
}

/// Keys of the ids in [`Found::ids`], in its order.
const ID_KEYS: [&str; 6] = [
    "tokenizer.ggml.bos_token_id",
    "tokenizer.ggml.eos_token_id",
    "tokenizer.ggml.eot_token_id",
    "tokenizer.ggml.eom_token_id",
    "tokenizer.ggml.unknown_token_id",
    "tokenizer.ggml.padding_token_id",
];

impl GgufTokenizer {
    /// Reads the tokenizer of a GGUF file of `len` bytes. Give it a buffered reader.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Vocabulary`] if the file is no GGUF file of version 2 or 3, is malformed, or has
    /// no tokenizer; [`ErrorKind::UnsupportedFeature`] naming a tokenizer model that is not
    /// supported; [`ErrorKind::Io`] if reading fails.
    pub fn read(reader: impl Read, len: u64) -> Result<Self, Error> {
        let (mut reader, entries) = Reader::new(reader, len)?;
        let mut found = Found::default();
        for _ in 0..entries {
            let (key, kind) = reader.key()?;
            found.take(&mut reader, &key, kind).map_err(|error| named(&key, error))?;
        }
        found.finish()
    }

    /// Returns the vocabulary, where `end_tokens` replace those that the file names if there are
    /// any.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Vocabulary`] if an end token is not in the vocabulary or there is none.
    pub fn vocabulary(&self, end_tokens: &[EndToken]) -> Result<Vocabulary, Error> {
        let declared: Vec<_> =
            [self.eos, self.eot, self.eom].into_iter().flatten().map(EndToken::Id).collect();
        let tokens = self.tokens_in_bytes();
        let ends = end_tokens::choose(&tokens, end_tokens, &declared)?;
        Vocabulary::new(tokens, ends)
    }

    /// Returns what the text of single tokens does not tell.
    #[must_use]
    pub fn text_rules(&self) -> TextRules {
        let sentence_piece = self.model != GgufTokenizerModel::Gpt2;
        let prepend_space = self.add_space_prefix.unwrap_or(sentence_piece);
        TextRules { strip_leading_space: sentence_piece && prepend_space, prepend_space }
    }

    /// Returns what each token stands for: control and unknown tokens have no bytes.
    pub(crate) fn tokens_in_bytes(&self) -> Vec<Token> {
        let spelling = match self.model {
            GgufTokenizerModel::Gpt2 => Spelling::byte_level(),
            GgufTokenizerModel::Llama | GgufTokenizerModel::T5 => Spelling::metaspace(),
        };
        let token = |(text, kind): (&String, &GgufTokenType)| match kind {
            GgufTokenType::Normal => Token::Text(spelling.decoded(text).into()),
            GgufTokenType::UserDefined => Token::Text(spelling.added(text).into()),
            GgufTokenType::Byte => match fallback_byte(text) {
                Some(byte) => Token::Text([byte].into()),
                None => Token::Text(spelling.decoded(text).into()),
            },
            GgufTokenType::Unknown | GgufTokenType::Control => Token::Special(text.as_str().into()),
            GgufTokenType::Unused => Token::Unused,
        };
        self.tokens.iter().zip(&self.types).map(token).collect()
    }
}

impl Found {
    fn take<R: Read>(
        &mut self,
        reader: &mut Reader<R>,
        key: &str,
        kind: Kind,
    ) -> Result<(), Error> {
        match key {
            "tokenizer.ggml.model" => self.model = Some(reader.text_value(kind)?),
            "tokenizer.ggml.pre" => self.pre = Some(reader.text_value(kind)?),
            "tokenizer.ggml.tokens" => {
                self.tokens = reader.array_value(kind, Reader::text_value)?
            }
            "tokenizer.ggml.merges" => {
                self.merges = reader.array_value(kind, Reader::text_value)?
            }
            "tokenizer.ggml.scores" => {
                self.scores = reader.array_value(kind, Reader::float_value)?;
            }
            "tokenizer.ggml.token_type" => {
                self.types = reader.array_value(kind, Reader::integer_value)?;
            }
            "tokenizer.ggml.add_bos_token" => self.add_bos = Some(reader.bool_value(kind)?),
            "tokenizer.ggml.add_space_prefix" => {
                self.add_space_prefix = Some(reader.bool_value(kind)?);
            }
            "tokenizer.chat_template" => self.chat_template = Some(reader.text_value(kind)?),
            _ => match ID_KEYS.iter().position(|id| *id == key) {
                Some(index) => self.ids[index] = Some(reader.integer_value(kind)?),
                None => reader.skip(kind)?,
            },
        }
        Ok(())
    }

    fn finish(self) -> Result<GgufTokenizer, Error> {
        let model = match self.model.as_deref() {
            Some("gpt2") => GgufTokenizerModel::Gpt2,
            Some("llama") => GgufTokenizerModel::Llama,
            Some("t5") => GgufTokenizerModel::T5,
            Some(other) => {
                let feature = format!("tokenizer.ggml.model {other}").into();
                let text =
                    format!("the tokenizer model `{other}` of the GGUF file is not supported");
                return Err(Error::new(ErrorKind::UnsupportedFeature { feature }, text));
            }
            None => return Err(malformed("it has no tokenizer (`tokenizer.ggml.model`)")),
        };
        let len = self.tokens.len();
        if len == 0 {
            return Err(malformed("it has no tokens (`tokenizer.ggml.tokens`)"));
        }
        for (name, own) in [("token_type", self.types.len()), ("scores", self.scores.len())] {
            if own != 0 && own != len {
                let text = format!("`tokenizer.ggml.{name}` has {own} entries for {len} tokens");
                return Err(malformed(&text));
            }
        }
        let ids = self.checked_ids(len)?;
        let [bos, eos, eot, eom, unknown, padding] = ids;
        let types = if self.types.is_empty() {
            guessed_types(model, &self.tokens, &ids)
        } else {
            self.types.iter().map(|&number| token_type(number)).collect::<Result<_, _>>()?
        };
        Ok(GgufTokenizer {
            model,
            pre: self.pre,
            tokens: self.tokens,
            types,
            scores: self.scores,
            merges: self.merges,
            bos,
            eos,
            eot,
            eom,
            unknown,
            padding,
            add_bos: self.add_bos,
            add_space_prefix: self.add_space_prefix,
            chat_template: self.chat_template,
        })
    }

    /// Converters write -1, or 2^32 - 1, for "none".
    fn checked_ids(&self, len: usize) -> Result<[Option<TokenId>; 6], Error> {
        let mut ids = [None; 6];
        for ((slot, key), number) in ids.iter_mut().zip(ID_KEYS).zip(self.ids) {
            *slot = match number {
                None | Some(-1) => None,
                Some(number) if number == i128::from(u32::MAX) => None,
                Some(number) => {
                    let id = usize::try_from(number).ok().filter(|&id| id < len);
                    let id = id.and_then(TokenId::from_index);
                    Some(id.ok_or_else(|| {
                        malformed(&format!("`{key}` is {number}, outside the {len} tokens"))
                    })?)
                }
            };
        }
        Ok(ids)
    }
}

fn token_type(number: i128) -> Result<GgufTokenType, Error> {
    Ok(match number {
        1 => GgufTokenType::Normal,
        2 => GgufTokenType::Unknown,
        3 => GgufTokenType::Control,
        4 => GgufTokenType::UserDefined,
        5 => GgufTokenType::Unused,
        6 => GgufTokenType::Byte,
        other => return Err(malformed(&format!("the token type {other} is unknown"))),
    })
}

/// Types for a file that has none: ids that the file names are control tokens, and in SentencePiece
/// vocabularies `<0xNN>` is a byte.
fn guessed_types(
    model: GgufTokenizerModel,
    tokens: &[String],
    ids: &[Option<TokenId>; 6],
) -> Vec<GgufTokenType> {
    let mut types: Vec<_> = tokens
        .iter()
        .map(|token| match fallback_byte(token) {
            Some(_) if model != GgufTokenizerModel::Gpt2 => GgufTokenType::Byte,
            _ => GgufTokenType::Normal,
        })
        .collect();
    for id in ids.iter().flatten() {
        types[id.index()] = GgufTokenType::Control;
    }
    types
}

/// Returns `error` with the key in front, unless it is about reading.
fn named(key: &str, error: Error) -> Error {
    match error.kind() {
        ErrorKind::Io => error,
        kind => Error::new(kind.clone(), format!("{} (at `{key}`)", error.message())),
    }
}
