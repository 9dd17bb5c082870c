//! Bytes and tokens in words.

use schemac::{Matcher, TokenId, TokenMask, Vocabulary};
use serde_json::{Value, json};

/// A shortest text that completes an output, or why none is known: the search has a bound, and where texts
/// must differ there may be none.
#[derive(Debug)]
pub(crate) struct Completion(Result<Vec<u8>, String>);

impl Completion {
    /// Returns how the output of `matcher` is completed.
    pub(crate) fn of(matcher: &Matcher) -> Self {
        Self(matcher.shortest_completion().map_err(|error| error.to_string()))
    }

    /// Returns the completion in words.
    pub(crate) fn to_text(&self) -> String {
        match &self.0 {
            Ok(found) => text(found),
            Err(reason) => format!("not known ({reason})"),
        }
    }

    /// Returns the completion as a string, or null.
    pub(crate) fn to_json(&self) -> Value {
        self.0.as_ref().map_or(Value::Null, |found| json!(String::from_utf8_lossy(found)))
    }
}

/// Returns a byte as text: itself if it is printable, else an escape.
fn byte(byte: u8) -> String {
    match byte {
        b' ' => "space".to_owned(),
        b'!'..=b'~' => char::from(byte).to_string(),
        _ => byte.escape_ascii().to_string(),
    }
}

/// Returns ascending bytes as text, runs of three or more as ranges.
pub(crate) fn bytes(set: &[u8]) -> String {
    let runs = set.chunk_by(|a, b| a.checked_add(1) == Some(*b));
    let words = runs.flat_map(|run| match run {
        [first, _, .., last] => vec![format!("{}–{}", byte(*first), byte(*last))],
        _ => run.iter().copied().map(byte).collect(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the text of bytes in quotes: characters as they are, what is none of them escaped.
pub(crate) fn text(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        out.extend(chunk.valid().chars().flat_map(|c| {
            let escape = c.is_control() || matches!(c, '"' | '\\');
            let escaped = escape.then(|| c.escape_default());
            let plain = (!escape).then_some(c);
            escaped.into_iter().flatten().chain(plain)
        }));
        out.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    out.push('"');
    out
}

/// Returns a token as text: its bytes, or the name of a special one.
pub(crate) fn token(vocabulary: &Vocabulary, id: TokenId) -> String {
    vocabulary
        .special_name(id)
        .map_or_else(|| text(vocabulary.bytes(id)), |name| text(name.as_bytes()))
}

/// The first tokens of a mask, for people and programs.
#[derive(Debug)]
pub(crate) struct Tokens {
    shown: Vec<(TokenId, String)>,
    count: usize,
}

impl Tokens {
    /// Returns the tokens of `mask`, of which at most `limit` will be shown: those with the fewest
    /// bytes, of equal ones those with the lowest id. Special tokens come last.
    pub(crate) fn of(mask: &TokenMask, vocabulary: &Vocabulary, limit: usize) -> Self {
        let mut ids: Vec<_> = mask.iter().collect();
        let count = ids.len();
        ids.sort_by_key(|&id| match vocabulary.bytes(id).len() {
            0 => (usize::MAX, id),
            len => (len, id),
        });
        ids.truncate(limit);
        let shown = ids.into_iter().map(|id| (id, token(vocabulary, id))).collect();
        Self { shown, count }
    }

    /// Returns the number of all tokens of the mask.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// Returns the tokens as text on one line.
    pub(crate) fn to_text(&self) -> String {
        let mut words: Vec<_> = self.shown.iter().map(|(_, text)| text.as_str()).collect();
        let more = self.count - self.shown.len();
        let rest = format!("and {more} more");
        if more > 0 {
            words.push(&rest);
        }
        words.join(" ")
    }

    /// Returns the tokens as a JSON object.
    pub(crate) fn to_json(&self) -> Value {
        let shown: Vec<_> =
            self.shown.iter().map(|(id, text)| json!({ "id": id, "text": text })).collect();
        json!({ "count": self.count, "shown": shown })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_bytes_become_ranges() {
        assert_eq!(bytes(b" \"09abcd}\xff"), "space \" 0 9 a–d } \\xff");
        assert_eq!(bytes(b"ab"), "a b");
        assert_eq!(bytes(b""), "");
        assert_eq!(bytes(&(0..=255).collect::<Vec<_>>()), "\\x00–\\xff");
    }

    #[test]
    fn text_escapes_what_is_no_character() {
        assert_eq!(text("é\"\n".as_bytes()), r#""é\"\n""#);
        assert_eq!(text(b"a\xc3"), r#""a\xc3""#);
        assert_eq!(text("\u{1b}\u{9b}".as_bytes()), r#""\u{1b}\u{9b}""#);
    }
}
