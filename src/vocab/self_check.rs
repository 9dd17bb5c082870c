//! A loaded vocabulary in, a report out: what it holds, and where its bytes disagree with the
//! tokenizer's own decoder.
//!
//! Every id is decoded alone, behind a plain letter, so that what a decoder does at the start of a
//! text does not count. Then probe texts are encoded and must come back byte by byte. Cost: about a
//! second for 128,000 tokens, most of it building the tokenizer.

use std::fmt;

use hashbrown::HashSet;

use crate::error::Error;
use crate::ids::TokenId;
#[cfg(feature = "tokenizers")]
use crate::vocab::Token;
#[cfg(feature = "tokenizers")]
use crate::vocab::hugging_face::HuggingFace;
use crate::vocab::{Loaded, TextRules, Vocabulary, VocabularyKind};

/// What a vocabulary holds, and whether it agrees with its tokenizer.
#[derive(Clone, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct TokenizerReport {
    /// The format that it was read from.
    pub kind: VocabularyKind,
    /// The number of ids: the largest plus one.
    pub ids: usize,
    /// How many of them are text.
    pub text_tokens: usize,
    /// How many ids stand for nothing.
    pub unused_ids: usize,
    /// How many text tokens have the bytes of a token with a lower id.
    pub duplicates: usize,
    /// How many text tokens are no whole characters.
    pub not_utf8_alone: usize,
    /// The bytes that are no token alone. Texts with such a byte may be impossible to spell, and
    /// are not probed.
    pub missing_bytes: Vec<u8>,
    /// The token with most bytes.
    pub longest: Option<LongestToken>,
    /// The special tokens, by id.
    pub special_tokens: Vec<NamedToken>,
    /// The tokens of which any ends the output, by id.
    pub end_tokens: Vec<NamedToken>,
    /// What single tokens do not tell about whole texts.
    pub text_rules: TextRules,
    /// The stable name of the vocabulary.
    pub fingerprint: String,
    /// Whether there is a decoder of the tokenizer's own that was compared: not for rank files,
    /// SentencePiece models in GGUF files and the built-in vocabulary, which have none, nor without
    /// the feature `tokenizers`.
    pub decoder_compared: bool,
    /// How many probe texts were encoded.
    pub probes: usize,
    /// The ids whose bytes disagree with the tokenizer's own decoder.
    pub mismatches: Vec<Mismatch>,
    /// The probe texts that did not come back as they were.
    pub probe_failures: Vec<ProbeFailure>,
}

/// A token and its name.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct NamedToken {
    /// The id.
    pub id: TokenId,
    /// The name.
    pub name: String,
}

/// The token with most bytes.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LongestToken {
    /// The id, the lowest of several.
    pub id: TokenId,
    /// The number of bytes.
    pub bytes: usize,
    /// The text, with bytes that are no character replaced.
    pub text: String,
}

/// An id whose bytes disagree with the tokenizer's own decoder.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Mismatch {
    /// The id.
    pub id: TokenId,
    /// What it stands for here, bytes outside of ASCII escaped.
    pub here: String,
    /// What the tokenizer's decoder writes.
    pub decoder: String,
}

/// A probe text that did not come back as it was.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ProbeFailure {
    /// What is special about the text.
    pub probe: &'static str,
    /// How it came back.
    pub failure: String,
}

/// Texts that tell the ways of spelling apart.
pub(crate) const PROBES: [(&str, &str); 11] = [
    ("words", "The quick brown fox jumps over the lazy dog"),
    ("leading space", " leading and  double spaces "),
    ("white space", "a\tb\n\nc \r\n    d\n\t\te   \n"),
    ("accents", "Žluťoučký kůň, naïve café, Ångström, ｆｕｌｌ"),
    ("combining marks", "e\u{301} n\u{303} \u{feff}o\u{308}"),
    ("other scripts", "Привет мир, 日本語のテキスト, 你好世界, 한국어, العربية, हिन्दी"),
    ("emoji", "👍🏽 👩‍💻 🏳️‍🌈 🎉"),
    ("digits", "0 12 345 6789 3.14159 1e-10 1,000,000"),
    (
        "json",
        r#"{"name": "Ada \"L\"", "tags": ["a", "b\\n"], "n": -1.5e+3, "ok": true, "x": null}"#,
    ),
    ("code", "fn main() {\n    let x = a[0] != b && !c; // ok?\n}\n"),
    ("rare characters", "\u{1d49c}\u{10ffff}\u{e000}\u{2028}\u{200b}"),
];

impl Loaded {
    /// Returns what the vocabulary holds, and every disagreement with its tokenizer.
    ///
    /// # Errors
    ///
    /// As [`super::Encoder::encode`], if the tokenizer cannot be built. Disagreements are no
    /// errors: see [`TokenizerReport::is_consistent`].
    pub fn self_check(&self) -> Result<TokenizerReport, Error> {
        let mut report = self.describe();
        self.compare_decoder(&mut report)?;
        let ascii: String =
            (0..128).filter(|byte| !report.missing_bytes.contains(byte)).map(char::from).collect();
        for (probe, text) in PROBES.into_iter().chain([("all of ASCII", ascii.as_str())]) {
            if text.bytes().any(|byte| report.missing_bytes.contains(&byte)) {
                continue;
            }
            report.probes += 1;
            if let Some(failure) = self.probe(text)? {
                report.probe_failures.push(ProbeFailure { probe, failure });
            }
        }
        Ok(report)
    }

    /// Returns what the vocabulary holds, without comparing it with its tokenizer.
    #[must_use]
    pub fn describe(&self) -> TokenizerReport {
        let vocabulary = &**self.vocabulary();
        let text: Vec<_> = vocabulary
            .ids()
            .map(|id| (id, vocabulary.bytes(id)))
            .filter(|(_, bytes)| !bytes.is_empty())
            .collect();
        let distinct: HashSet<&[u8]> = text.iter().map(|(_, bytes)| *bytes).collect();
        let longest = text.iter().rev().max_by_key(|(_, bytes)| bytes.len());
        TokenizerReport {
            kind: self.kind(),
            ids: vocabulary.len(),
            text_tokens: text.len(),
            unused_ids: vocabulary.len() - text.len() - vocabulary.specials().len(),
            duplicates: text.len() - distinct.len(),
            not_utf8_alone: text.iter().filter(|(_, b)| std::str::from_utf8(b).is_err()).count(),
            missing_bytes: (0..=255)
                .filter(|byte| !distinct.contains(&[*byte].as_slice()))
                .collect(),
            longest: longest.map(|(id, bytes)| LongestToken {
                id: *id,
                bytes: bytes.len(),
                text: String::from_utf8_lossy(bytes).into_owned(),
            }),
            special_tokens: named(vocabulary, vocabulary.specials().iter().map(|(id, _)| *id)),
            end_tokens: named(vocabulary, vocabulary.end_tokens().iter().copied()),
            text_rules: self.text_rules(),
            fingerprint: vocabulary.fingerprint().to_string(),
            decoder_compared: false,
            probes: 0,
            mismatches: Vec::new(),
            probe_failures: Vec::new(),
        }
    }

    /// Encodes `text`, every byte of which is a token; returns how it comes back if that is not as
    /// it was.
    fn probe(&self, text: &str) -> Result<Option<String>, Error> {
        let Some(tokens) = self.encoder().propose(text)? else {
            return Ok(Some("the tokenizer has no tokens for it".into()));
        };
        let bytes = self.vocabulary().decode(&tokens);
        if bytes != text.as_bytes() {
            return Ok(Some(format!("the tokens spell `{}`", bytes.escape_ascii())));
        }
        self.decode(text, &tokens)
    }

    #[cfg(not(feature = "tokenizers"))]
    fn compare_decoder(&self, _: &mut TokenizerReport) -> Result<(), Error> {
        Ok(())
    }

    #[cfg(not(feature = "tokenizers"))]
    fn decode(&self, _: &str, _: &[TokenId]) -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// Decodes every id with the tokenizer's own decoder.
    #[cfg(feature = "tokenizers")]
    fn compare_decoder(&self, report: &mut TokenizerReport) -> Result<(), Error> {
        let Some(decoder) = Decoder::new(self)? else { return Ok(()) };
        let vocabulary = self.vocabulary();
        report.decoder_compared = true;
        for id in vocabulary.ids() {
            let decoded = decoder.decode(&[id])?;
            let spelling = || decoder.tokenizer.spelling(id);
            let (agrees, here) = match vocabulary.token(id) {
                Token::Text(bytes) => {
                    (decoded == String::from_utf8_lossy(&bytes), bytes.escape_ascii().to_string())
                }
                Token::Special(own) => {
                    let agrees = decoded == *own || spelling()?.as_deref() == Some(&*own);
                    (agrees, format!("special token {own}"))
                }
                // A GGUF file declares which tokens are unused; they still have a text there.
                Token::Unused => {
                    let declared = self.kind() == VocabularyKind::Gguf;
                    (declared || decoded.is_empty() || spelling()?.is_none(), "nothing".into())
                }
            };
            if !agrees {
                report.mismatches.push(Mismatch { id, here, decoder: decoded });
            }
        }
        Ok(())
    }

    /// Decodes `tokens`, which spell `text`, with the tokenizer's own decoder.
    #[cfg(feature = "tokenizers")]
    fn decode(&self, text: &str, tokens: &[TokenId]) -> Result<Option<String>, Error> {
        let Some(decoder) = Decoder::new(self)? else { return Ok(None) };
        let decoded = decoder.decode(tokens)?;
        Ok((decoded != text).then(|| format!("the tokenizer decodes `{decoded}`")))
    }
}

/// The tokenizer's own decoder, in the middle of a text: behind a plain letter.
#[cfg(feature = "tokenizers")]
struct Decoder<'l> {
    tokenizer: &'l HuggingFace,
    anchor: TokenId,
    letter: String,
}

#[cfg(feature = "tokenizers")]
impl<'l> Decoder<'l> {
    /// Returns the decoder, if there is one and a letter of ASCII is a token as it is. (A
    /// byte-fallback token would join the bytes that follow.)
    fn new(loaded: &'l Loaded) -> Result<Option<Self>, Error> {
        let Some(tokenizer) = loaded.encoder().hugging_face() else { return Ok(None) };
        for letter in ('a'..='z').chain('A'..='Z').map(String::from) {
            if let Some(anchor) = tokenizer.token_of(&letter)? {
                return Ok(Some(Self { tokenizer, anchor, letter }));
            }
        }
        Ok(None)
    }

    /// Returns what the decoder writes for `tokens`; its whole text, if it does not even write the
    /// letter before.
    fn decode(&self, tokens: &[TokenId]) -> Result<String, Error> {
        let text = self.tokenizer.decode(&[&[self.anchor], tokens].concat())?;
        Ok(text.strip_prefix(&self.letter).unwrap_or(&text).to_owned())
    }
}

fn named(vocabulary: &Vocabulary, ids: impl Iterator<Item = TokenId>) -> Vec<NamedToken> {
    ids.map(|id| NamedToken { id, name: vocabulary.special_name(id).unwrap_or("").to_owned() })
        .collect()
}

impl TokenizerReport {
    /// Returns whether every id and every probe text agrees with the tokenizer.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        self.mismatches.is_empty() && self.probe_failures.is_empty()
    }
}

impl fmt::Display for TokenizerReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |tokens: &[NamedToken]| {
            let name = |token: &NamedToken| format!("{} {}", token.id.get(), token.name);
            tokens.iter().map(name).collect::<Vec<_>>().join(", ")
        };
        writeln!(f, "kind: {:?}", self.kind)?;
        writeln!(
            f,
            "ids: {} ({} text, {} special, {} unused)",
            self.ids,
            self.text_tokens,
            self.special_tokens.len(),
            self.unused_ids
        )?;
        writeln!(f, "same bytes as a lower id: {}", self.duplicates)?;
        writeln!(f, "no whole characters: {}", self.not_utf8_alone)?;
        if !self.missing_bytes.is_empty() {
            writeln!(f, "bytes that are no token alone: {:02x?}", self.missing_bytes)?;
        }
        if let Some(longest) = &self.longest {
            writeln!(f, "longest: {} bytes, id {}", longest.bytes, longest.id.get())?;
        }
        writeln!(f, "end tokens: {}", names(&self.end_tokens))?;
        writeln!(f, "special tokens: {}", names(&self.special_tokens))?;
        writeln!(f, "leading space: {}", self.leading_space())?;
        write!(f, "fingerprint: {}", self.fingerprint)?;
        for Mismatch { id, here, decoder } in &self.mismatches {
            write!(f, "\nid {}: `{here}` here, `{decoder}` by the tokenizer", id.get())?;
        }
        for ProbeFailure { probe, failure } in &self.probe_failures {
            write!(f, "\nprobe `{probe}`: {failure}")?;
        }
        Ok(())
    }
}

impl TokenizerReport {
    const fn leading_space(&self) -> &'static str {
        match (self.text_rules.prepend_space, self.text_rules.strip_leading_space) {
            (true, true) => "prepended to prompts, stripped from output",
            (true, false) => "prepended to prompts",
            (false, true) => "stripped from output",
            (false, false) => "kept",
        }
    }
}
