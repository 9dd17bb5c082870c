//! Token strings in, exact bytes out, by the rules of the tokenizer's own decoder. The loaders of
//! this folder call it; nothing else in the crate turns token strings into bytes.
//!
//! Three spellings are in use: the byte map of GPT-2 (each byte is one printable character),
//! the metaspace of SentencePiece (`▁` is a space) and byte fallback (`<0x0A>` is byte 0A). Cost:
//! linear in the string.

/// The character that SentencePiece writes for a space.
pub(crate) const METASPACE: char = '\u{2581}';

/// How the strings of one vocabulary spell bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spelling {
    /// Applied to every token in this order.
    pub(crate) replacements: Vec<Replacement>,
    /// Whether `<0xNN>` is a byte.
    pub(crate) byte_fallback: bool,
    /// Whether characters stand for bytes, after the replacements. Excludes byte fallback.
    pub(crate) byte_level: bool,
}

/// Every `from` of a token is written as `to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replacement {
    pub(crate) from: Box<str>,
    pub(crate) to: Box<str>,
}

impl Spelling {
    /// Returns the spelling of GPT-2 and its descendants.
    pub(crate) const fn byte_level() -> Self {
        Self { replacements: Vec::new(), byte_fallback: false, byte_level: true }
    }

    /// Returns the spelling of SentencePiece, without byte fallback.
    pub(crate) fn metaspace() -> Self {
        let space = Replacement { from: METASPACE.to_string().into(), to: " ".into() };
        Self { replacements: vec![space], byte_fallback: false, byte_level: false }
    }

    /// Returns the bytes that the decoder writes for the token string `token`.
    pub(crate) fn decoded(&self, token: &str) -> Vec<u8> {
        let replaced = self.replaced(token);
        if self.byte_fallback
            && let Some(byte) = fallback_byte(&replaced)
        {
            return vec![byte];
        }
        if self.byte_level
            && let Some(bytes) = mapped_bytes(&replaced)
        {
            return bytes;
        }
        replaced.into_bytes()
    }

    /// Returns the bytes that a model means by the added token `content`.
    ///
    /// This is what the decoder writes, except that the byte map does not apply: the text that
    /// becomes this token contains `content` itself, also where a decoder would read an added `é`
    /// as byte E9.
    pub(crate) fn added(&self, content: &str) -> Vec<u8> {
        if self.byte_level { self.replaced(content).into_bytes() } else { self.decoded(content) }
    }

    fn replaced(&self, token: &str) -> String {
        let mut text = token.to_owned();
        for Replacement { from, to } in &self.replacements {
            if text.contains(&**from) {
                text = text.replace(&**from, to);
            }
        }
        text
    }
}

/// Returns the byte that a byte-fallback token stands for: `<0x0A>` is 10.
pub(crate) fn fallback_byte(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    // As lenient as the decoder of `tokenizers`, which takes `<0x+A>` for a byte too.
    (digits.len() == 2).then(|| u8::from_str_radix(digits, 16).ok())?
}

/// Returns the bytes that the characters of `token` stand for in GPT-2's byte map, or `None` if one
/// of them stands for none. The decoder then writes the token as it is.
pub(crate) fn mapped_bytes(token: &str) -> Option<Vec<u8>> {
    token.chars().map(mapped_byte).collect()
}

/// Returns the byte that `c` stands for.
///
/// The printable bytes `!`..=`~`, A1..=AC and AE..=FF stand for themselves; the other 68 are
/// written, in ascending order, as the characters from U+0100 (the table of the GPT-2 encoder,
/// which every byte-level tokenizer shares).
fn mapped_byte(c: char) -> Option<u8> {
    match u32::from(c) {
        code @ (0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) => u8::try_from(code).ok(),
        code @ 0x100..=0x120 => u8::try_from(code - 0x100).ok(),
        code @ 0x121..=0x142 => u8::try_from(code - 0x121 + 0x7f).ok(),
        0x143 => Some(0xad),
        _ => None,
    }
}

/// Returns the character that stands for `byte` in GPT-2's byte map.
#[cfg(test)]
pub(crate) fn mapped_char(byte: u8) -> char {
    (0..0x144).filter_map(char::from_u32).find(|&c| mapped_byte(c) == Some(byte)).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_map_is_a_bijection_that_fixes_printable_bytes() {
        let chars: Vec<char> = (0..=255).map(mapped_char).collect();
        let back: Vec<u8> = mapped_bytes(&chars.iter().collect::<String>()).unwrap();
        assert_eq!(back, (0..=255).collect::<Vec<u8>>());
        // Characters that appear in every published byte-level vocabulary.
        assert_eq!(mapped_bytes("ĠĊĉčÃ©").unwrap(), b" \n\t\r\xc3\xa9");
        assert_eq!(mapped_bytes("a b"), None);
        assert_eq!(mapped_bytes("日"), None);
        assert_eq!(mapped_bytes("\u{144}"), None);
    }

    #[test]
    fn byte_fallback_takes_exactly_two_digits() {
        assert_eq!(fallback_byte("<0x0A>"), Some(10));
        assert_eq!(fallback_byte("<0xff>"), Some(255));
        for text in ["<0xA>", "<0x0AB>", "<0xGG>", "0x0A", "<0x0A", "<0xé>", ""] {
            assert_eq!(fallback_byte(text), None, "{text}");
        }
    }

    #[test]
    fn spellings_decode_their_own_tokens_only() {
        let sentence_piece = Spelling { byte_fallback: true, ..Spelling::metaspace() };
        assert_eq!(sentence_piece.decoded("▁▁de"), b"  de");
        assert_eq!(sentence_piece.decoded("<0xE2>"), b"\xe2");
        assert_eq!(sentence_piece.added("▁▁"), b"  ");
        assert_eq!(sentence_piece.decoded("Ġ"), "Ġ".as_bytes());
        assert_eq!(Spelling::metaspace().decoded("<0xE2>"), b"<0xE2>");

        let byte_level = Spelling::byte_level();
        assert_eq!(byte_level.decoded("Ġthe"), b" the");
        assert_eq!(byte_level.decoded("<0xE2>"), b"<0xE2>");
        assert_eq!(byte_level.decoded("▁the"), "▁the".as_bytes());
        assert_eq!(byte_level.decoded("é"), b"\xe9");
        assert_eq!(byte_level.added("é"), "é".as_bytes());
    }
}
