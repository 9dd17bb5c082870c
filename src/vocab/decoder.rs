//! The `decoder` of a `tokenizer.json` in, per-token byte rules out ([`Spelling`]), or a refusal
//! where the bytes of a token depend on its neighbours.

use serde_json::Value;

use crate::error::{Error, ErrorKind};
use crate::vocab::bytes::{Replacement, Spelling};

/// What a decoder does: to each token, and to the whole text afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DecoderRules {
    pub(crate) spelling: Spelling,
    /// One leading space of the whole text is removed.
    pub(crate) strip_leading_space: bool,
    /// The tokens have been joined; what follows applies to the whole text.
    fused: bool,
}

/// Returns the rules of the `decoder` member.
///
/// # Errors
///
/// [`ErrorKind::UnsupportedFeature`] naming the decoder, if its effect on a token cannot be said
/// exactly; [`ErrorKind::Vocabulary`] if it is malformed.
pub(crate) fn parse(decoder: Option<&Value>) -> Result<DecoderRules, Error> {
    let mut rules = DecoderRules::default();
    let Some(decoder) = decoder.filter(|decoder| !decoder.is_null()) else {
        return Err(unsupported("no decoder", "joins tokens with spaces"));
    };
    // Sequences nest; the stack holds what is still to be read, the next on top.
    let mut stack = vec![decoder];
    while let Some(decoder) = stack.pop() {
        match kind(decoder)? {
            "Sequence" => {
                let parts = decoder.get("decoders").and_then(Value::as_array);
                stack.extend(parts.ok_or_else(|| malformed("decoders"))?.iter().rev());
            }
            "ByteLevel" => rules.byte_level()?,
            "ByteFallback" => rules.byte_fallback()?,
            "Fuse" => rules.fused = true,
            "Replace" => rules.replace(&pattern(decoder)?, string(decoder, "content")?)?,
            "Metaspace" => rules.metaspace(decoder)?,
            "Strip" => rules.strip(decoder)?,
            other => {
                return Err(unsupported(other, "joins tokens by rules about their neighbours"));
            }
        }
    }
    Ok(rules)
}

impl DecoderRules {
    fn byte_level(&mut self) -> Result<(), Error> {
        if self.fused || self.spelling.byte_fallback {
            return Err(unsupported(
                "ByteLevel",
                "follows a decoder that it does not combine with",
            ));
        }
        self.spelling.byte_level = true;
        self.fused = true;
        Ok(())
    }

    fn byte_fallback(&mut self) -> Result<(), Error> {
        if self.fused {
            return Err(unsupported("ByteFallback", "comes after the tokens are joined"));
        }
        self.spelling.byte_fallback = true;
        Ok(())
    }

    /// A replacement after byte fallback or joining also sees text that several tokens make up.
    /// For one character that is no single byte this changes only texts that spell the character
    /// in bytes (`<0xE2><0x96><0x81>` for `▁`), where the bytes are kept.
    fn replace(&mut self, from: &str, to: &str) -> Result<(), Error> {
        let late = self.fused || self.spelling.byte_fallback;
        let one_wide_char = from.chars().count() == 1 && !from.is_ascii();
        if from.is_empty() || self.spelling.byte_level || (late && !one_wide_char) {
            return Err(unsupported("Replace", "sees more than one token at a time"));
        }
        self.spelling.replacements.push(Replacement { from: from.into(), to: to.into() });
        Ok(())
    }

    fn metaspace(&mut self, decoder: &Value) -> Result<(), Error> {
        let from = string(decoder, "replacement")?;
        let never = decoder.get("prepend_scheme").and_then(Value::as_str) == Some("never")
            || decoder.get("add_prefix_space").and_then(Value::as_bool) == Some(false);
        if self.fused && !never {
            return Err(unsupported("Metaspace", "comes after the tokens are joined"));
        }
        self.strip_leading_space |= !never;
        self.replace(from, " ")
    }

    fn strip(&mut self, decoder: &Value) -> Result<(), Error> {
        let count = |name| decoder.get(name).and_then(Value::as_u64).ok_or_else(|| malformed(name));
        match (string(decoder, "content")?, count("start")?, count("stop")?) {
            (_, 0, 0) => Ok(()),
            (" ", 1, 0) if self.fused && !self.strip_leading_space => {
                self.strip_leading_space = true;
                Ok(())
            }
            _ => Err(unsupported("Strip", "removes more than one leading space of the text")),
        }
    }
}

/// Returns the text that a `Replace` looks for; a regex counts where it is a literal.
fn pattern(decoder: &Value) -> Result<String, Error> {
    let pattern = decoder.get("pattern").ok_or_else(|| malformed("pattern"))?;
    if let Some(text) = pattern.get("String").and_then(Value::as_str) {
        return Ok(text.to_owned());
    }
    let regex = pattern.get("Regex").and_then(Value::as_str).ok_or_else(|| malformed("pattern"))?;
    match regex_syntax::parse(regex).map(regex_syntax::hir::Hir::into_kind) {
        Ok(regex_syntax::hir::HirKind::Literal(literal)) => {
            String::from_utf8(literal.0.into()).map_err(|_| malformed("pattern"))
        }
        _ => Err(unsupported("Replace", "looks for a regular expression")),
    }
}

fn kind(value: &Value) -> Result<&str, Error> {
    string(value, "type")
}

fn string<'v>(value: &'v Value, name: &str) -> Result<&'v str, Error> {
    value.get(name).and_then(Value::as_str).ok_or_else(|| malformed(name))
}

fn malformed(member: &str) -> Error {
    let text = format!("the decoder of the tokenizer has no valid `{member}`");
    Error::new(ErrorKind::Vocabulary, text)
}

fn unsupported(decoder: &str, why: &str) -> Error {
    let text = format!("the bytes of single tokens are not defined: the decoder ({decoder}) {why}");
    Error::new(ErrorKind::UnsupportedFeature { feature: format!("decoder {decoder}").into() }, text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules(decoder: &Value) -> DecoderRules {
        parse(Some(decoder)).unwrap()
    }

    #[test]
    fn llama_2_decoder_is_metaspace_with_fallback_and_strip() {
        let rules = rules(&json!({"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"},
            {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        ]}));
        assert_eq!(rules.spelling, Spelling { byte_fallback: true, ..Spelling::metaspace() });
        assert!(rules.strip_leading_space);
    }

    #[test]
    fn metaspace_strips_unless_it_never_prepends() {
        let metaspace = |scheme: &str| {
            rules(&json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme}))
        };
        assert!(metaspace("always").strip_leading_space);
        assert!(metaspace("first").strip_leading_space);
        assert!(!metaspace("never").strip_leading_space);
        let old = json!({"type": "Metaspace", "replacement": "_", "add_prefix_space": true});
        assert_eq!(rules(&old).spelling.decoded("_a"), b" a");
    }

    #[test]
    fn nested_sequences_read_in_order() {
        let nested = json!({"type": "Sequence", "decoders": [
            {"type": "Sequence", "decoders": [
                {"type": "Replace", "pattern": {"Regex": "\\."}, "content": "a"},
                {"type": "Replace", "pattern": {"String": "a"}, "content": "Ġ"},
            ]},
            {"type": "ByteLevel"},
        ]});
        assert_eq!(rules(&nested).spelling.decoded("x.y"), b"x y");
    }

    #[test]
    fn decoders_that_look_at_neighbours_are_refused_by_name() {
        let strip = |start: u32, stop: u32| json!({"type": "Strip", "content": " ", "start": start, "stop": stop});
        let fuse = json!({"type": "Fuse"});
        let refused = [
            (json!({"type": "WordPiece", "prefix": "##", "cleanup": true}), "decoder WordPiece"),
            (json!({"type": "CTC"}), "decoder CTC"),
            (json!({"type": "BPEDecoder", "suffix": "</w>"}), "decoder BPEDecoder"),
            (strip(1, 0), "decoder Strip"),
            (json!({"type": "Sequence", "decoders": [fuse, strip(2, 0)]}), "decoder Strip"),
            (json!({"type": "Sequence", "decoders": [fuse, strip(0, 1)]}), "decoder Strip"),
            (
                json!({"type": "Sequence", "decoders": [fuse, {"type": "ByteFallback"}]}),
                "decoder ByteFallback",
            ),
            (
                json!({"type": "Sequence", "decoders": [fuse, {"type": "ByteLevel"}]}),
                "decoder ByteLevel",
            ),
            (
                json!({"type": "Replace", "pattern": {"Regex": "a|b"}, "content": ""}),
                "decoder Replace",
            ),
            (
                json!({"type": "Sequence", "decoders": [fuse, {"type": "Replace", "pattern": {"String": "ab"}, "content": ""}]}),
                "decoder Replace",
            ),
            (Value::Null, "decoder no decoder"),
        ];
        for (decoder, feature) in refused {
            let error = parse(Some(&decoder)).unwrap_err();
            let expected = ErrorKind::UnsupportedFeature { feature: feature.into() };
            assert_eq!(error.kind(), &expected, "{decoder}");
        }
    }

    #[test]
    fn malformed_decoders_are_refused() {
        for decoder in [
            json!(5),
            json!({}),
            json!({"type": 5}),
            json!({"type": "Sequence"}),
            json!({"type": "Replace", "content": ""}),
            json!({"type": "Replace", "pattern": "x", "content": ""}),
            json!({"type": "Strip", "content": " "}),
            json!({"type": "Metaspace"}),
        ] {
            assert_eq!(parse(Some(&decoder)).unwrap_err().kind(), &ErrorKind::Vocabulary);
        }
    }
}
