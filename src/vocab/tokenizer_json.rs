//! A Hugging Face `tokenizer.json` in, tokens with exact bytes out. The bytes follow the file's
//! `decoder`; its model and merges are not built.
//!
//! Cost: one pass over the file; merges and scores are skipped without being stored. The table of
//! ids is never longer than the file, so a hostile id costs no memory.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::error::{Error, ErrorKind};
use crate::ids::TokenId;
use crate::vocab::decoder;
use crate::vocab::{TextRules, Token};

/// What a `tokenizer.json` says about its tokens.
#[derive(Debug)]
pub(crate) struct TokenizerJson {
    /// Position = id; holes are unused.
    pub(crate) tokens: Vec<Token>,
    pub(crate) rules: TextRules,
    /// Added tokens whose content is not what the file's own decoder writes for them.
    pub(crate) reinterpreted: Vec<TokenId>,
}

#[derive(serde::Deserialize)]
struct File {
    #[serde(default)]
    added_tokens: Vec<AddedToken>,
    normalizer: Option<Value>,
    pre_tokenizer: Option<Value>,
    decoder: Option<Value>,
    model: Option<Model>,
}

#[derive(serde::Deserialize)]
struct AddedToken {
    id: u32,
    content: String,
    #[serde(default)]
    special: bool,
}

#[derive(serde::Deserialize)]
struct Model {
    #[serde(default)]
    vocab: Pieces,
    unk_token: Option<String>,
    unk_id: Option<u32>,
}

/// The strings and ids of a model: a map (BPE, WordLevel) or an array with scores (Unigram).
#[derive(Default)]
struct Pieces(Vec<(String, u32)>);

impl<'de> Deserialize<'de> for Pieces {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PiecesVisitor)
    }
}

struct PiecesVisitor;

impl<'de> Visitor<'de> for PiecesVisitor {
    type Value = Pieces;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a map from token to id, or an array of tokens with scores")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pieces, A::Error> {
        let mut pieces = Vec::new();
        while let Some(piece) = map.next_entry()? {
            pieces.push(piece);
        }
        Ok(Pieces(pieces))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Pieces, A::Error> {
        let mut pieces = Vec::new();
        let mut id = 0_u32;
        while let Some((piece, _score)) = seq.next_element::<(String, IgnoredAny)>()? {
            pieces.push((piece, id));
            id = id.checked_add(1).ok_or_else(|| serde::de::Error::custom("too many tokens"))?;
        }
        Ok(Pieces(pieces))
    }
}

/// Returns the tokens of the `tokenizer.json` in `bytes`, or `None` if it is JSON without the
/// `model` that such a file has.
///
/// # Errors
///
/// [`ErrorKind::Vocabulary`] if the text is not JSON or not of this shape, and as
/// [`decoder::parse`] for decoders that cannot be followed exactly.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<TokenizerJson>, Error> {
    let file: File = serde_json::from_slice(bytes).map_err(|error| {
        Error::new(ErrorKind::Vocabulary, format!("not a tokenizer in JSON: {error}"))
    })?;
    let Some(model) = file.model else { return Ok(None) };
    check_charsmaps(file.normalizer.as_ref())?;
    let decoder = decoder::parse(file.decoder.as_ref())?;
    let spelling = &decoder.spelling;
    let mut table = Table { tokens: Vec::new(), bound: bytes.len() };
    for (piece, id) in &model.vocab.0 {
        let unknown = model.unk_id == Some(*id) || model.unk_token.as_ref() == Some(piece);
        let token = if unknown {
            Token::Special(piece.as_str().into())
        } else {
            Token::Text(spelling.decoded(piece).into())
        };
        table.set(*id, token)?;
    }
    let mut reinterpreted = Vec::new();
    for AddedToken { id, content, special } in file.added_tokens {
        if special {
            table.set(id, Token::Special(content.into()))?;
        } else {
            let bytes = spelling.added(&content);
            if bytes != spelling.decoded(&content) {
                reinterpreted.push(TokenId::new(id));
            }
            table.set(id, Token::Text(bytes.into()))?;
        }
    }
    let rules = TextRules {
        strip_leading_space: decoder.strip_leading_space,
        prepend_space: prepends(file.normalizer.as_ref()) || prepends(file.pre_tokenizer.as_ref()),
    };
    Ok(Some(TokenizerJson { tokens: table.tokens, rules, reinterpreted }))
}

/// Tokens by id.
struct Table {
    tokens: Vec<Token>,
    /// Ids are below this.
    bound: usize,
}

impl Table {
    fn set(&mut self, id: u32, token: Token) -> Result<(), Error> {
        let index = TokenId::new(id).index();
        if index >= self.bound {
            let text = format!("token id {id} is larger than the whole file is long");
            return Err(Error::new(ErrorKind::Vocabulary, text));
        }
        if index >= self.tokens.len() {
            self.tokens.resize(index + 1, Token::Unused);
        }
        self.tokens[index] = token;
        Ok(())
    }
}

/// Returns the stages of a normalizer or pre-tokenizer, sequences opened.
fn stages(stage: Option<&Value>) -> Vec<&Value> {
    let mut stages: Vec<&Value> = stage.into_iter().collect();
    let mut at = 0;
    while let Some(&stage) = stages.get(at) {
        at += 1;
        for parts in ["normalizers", "pretokenizers"] {
            stages.extend(stage.get(parts).and_then(Value::as_array).into_iter().flatten());
        }
    }
    stages
}

/// Returns whether a normalizer or pre-tokenizer puts a space before the text.
fn prepends(stage: Option<&Value>) -> bool {
    stages(stage).into_iter().any(|stage| {
        let flag = |name: &str| stage.get(name).and_then(Value::as_bool);
        match stage.get("type").and_then(Value::as_str) {
            Some("Prepend") => true,
            Some("ByteLevel") => flag("add_prefix_space") == Some(true),
            Some("Metaspace") => {
                stage.get("prepend_scheme").and_then(Value::as_str) != Some("never")
                    && flag("add_prefix_space") != Some(false)
            }
            _ => false,
        }
    })
}

/// Checks the length inside SentencePiece character tables: the `tokenizers` crate, which may be
/// given this file later, allocates what it says.
fn check_charsmaps(normalizer: Option<&Value>) -> Result<(), Error> {
    for stage in stages(normalizer) {
        let Some(charsmap) = stage.get("precompiled_charsmap") else { continue };
        let table = charsmap.as_str().and_then(|text| STANDARD.decode(text).ok());
        let sound = table.is_some_and(|table| {
            table.split_first_chunk().is_some_and(|(len, rest)| {
                usize::try_from(u32::from_le_bytes(*len)).is_ok_and(|len| len <= rest.len())
            })
        });
        if !sound {
            let text = "the normalizer of the tokenizer has a malformed `precompiled_charsmap`";
            return Err(Error::new(ErrorKind::Vocabulary, text));
        }
    }
    Ok(())
}
