//! JSON text as it is written: valid JSON in, the same text with other white space or the byte
//! spans of its parts out. Numbers, key order and escapes stay verbatim, which a parse into values
//! would lose.
//!
//! Everything here is one pass over the bytes without recursion.

use std::ops::Range;

/// What to write between the tokens of a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Spacing {
    /// Nothing.
    Compact,
    /// `", "` and `": "`, as Python's `json.dumps` writes.
    Spaced,
}

/// Returns `text`, which is valid JSON, with its insignificant white space replaced.
pub(crate) fn respace(text: &str, spacing: Spacing) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_string = false;
    let mut escaped = false;
    for c in text.chars() {
        if in_string {
            out.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            ' ' | '\t' | '\n' | '\r' => continue,
            '"' => in_string = true,
            _ => {}
        }
        out.push(c);
        if spacing == Spacing::Spaced && matches!(c, ',' | ':') {
            out.push(' ');
        }
    }
    out
}

/// The parts of a JSON text and where they stand.
#[derive(Debug)]
pub(crate) struct Parts<'t> {
    text: &'t str,
    /// In the order in which they start, so the first is the whole document.
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    span: Range<usize>,
    /// The key literal, with its quotes, of an object's member.
    key: Option<Range<usize>>,
    /// One past the last node inside this one.
    after: usize,
}

/// One value of a [`Parts`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'p, 't> {
    parts: &'p Parts<'t>,
    index: usize,
}

impl<'t> Parts<'t> {
    /// Returns the parts of `text`.
    ///
    /// # Errors
    ///
    /// Where and why the text is not JSON.
    pub(crate) fn new(text: &'t str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<serde::de::IgnoredAny>(text)?;
        let bytes = text.as_bytes();
        let mut nodes: Vec<Node> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        let mut key = None;
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let start = at;
            at += 1;
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' => continue,
                b'}' | b']' => {
                    if let Some(index) = open.pop() {
                        nodes[index].span.end = at;
                        nodes[index].after = nodes.len();
                    }
                    continue;
                }
                b'{' | b'[' => open.push(nodes.len()),
                b'"' => {
                    at = string_end(bytes, at);
                    let in_object =
                        open.last().is_some_and(|&i| bytes[nodes[i].span.start] == b'{');
                    if in_object && key.is_none() {
                        key = Some(start..at);
                        continue;
                    }
                }
                _ => {
                    let len = bytes[at..].iter().take_while(|b| !b" \t\n\r,]}".contains(b)).count();
                    at += len;
                }
            }
            let after = nodes.len() + 1;
            nodes.push(Node { span: start..at, key: key.take(), after });
        }
        Ok(Self { text, nodes })
    }

    /// Returns the whole document.
    pub(crate) fn root(&self) -> Part<'_, 't> {
        Part { parts: self, index: 0 }
    }

    /// Returns the part at a JSON Pointer (RFC 6901), if there is one.
    pub(crate) fn at(&self, pointer: &str) -> Option<Part<'_, 't>> {
        let mut part = self.root();
        let Some(path) = pointer.strip_prefix('/') else {
            return pointer.is_empty().then_some(part);
        };
        for segment in path.split('/') {
            let name = segment.replace("~1", "/").replace("~0", "~");
            part = if part.text().starts_with('[') {
                part.children().nth(name.parse().ok()?)?
            } else {
                part.member(&name)?
            };
        }
        Some(part)
    }
}

impl<'p, 't> Part<'p, 't> {
    fn node(self) -> &'p Node {
        &self.parts.nodes[self.index]
    }

    /// Returns the text of the value.
    pub(crate) fn text(self) -> &'t str {
        &self.parts.text[self.span()]
    }

    /// Returns the bytes of the value.
    pub(crate) fn span(self) -> Range<usize> {
        self.node().span.clone()
    }

    /// Returns the bytes of the key literal, if the value is a member of an object.
    pub(crate) fn key_span(self) -> Option<Range<usize>> {
        self.node().key.clone()
    }

    /// Returns the items of an array or the values of an object.
    pub(crate) fn children(self) -> impl Iterator<Item = Part<'p, 't>> {
        let Self { parts, index } = self;
        let end = self.node().after;
        let mut next = index + 1;
        std::iter::from_fn(move || {
            let index = next;
            (index < end).then(|| {
                next = parts.nodes[index].after;
                Part { parts, index }
            })
        })
    }

    /// Returns the member `name` of an object; of several, the last, as most parsers do.
    pub(crate) fn member(self, name: &str) -> Option<Part<'p, 't>> {
        self.children()
            .filter(|part| {
                let key = part.key_span().map(|span| &part.parts.text[span]);
                key.and_then(|key| serde_json::from_str::<String>(key).ok()).as_deref()
                    == Some(name)
            })
            .last()
    }

    /// Returns the text that a string literal stands for.
    pub(crate) fn string(self) -> Option<String> {
        serde_json::from_str(self.text()).ok()
    }

    /// Returns the value, if it is `true` or `false`.
    pub(crate) fn boolean(self) -> Option<bool> {
        self.text().parse().ok()
    }

    /// Maps bytes `inner` of the text that a string literal stands for to bytes of the document.
    pub(crate) fn span_in_string(self, inner: &Range<usize>) -> Range<usize> {
        let literal = self.text();
        let mut decoded = 0;
        let (mut start, mut end) = (None, None);
        let mut at = 1;
        while at + 1 < literal.len() {
            if decoded >= inner.start {
                start.get_or_insert(at);
            }
            if decoded >= inner.end {
                end.get_or_insert(at);
            }
            let len = escape_len(&literal[at..]);
            let piece = format!("\"{}\"", &literal[at..at + len]);
            decoded += serde_json::from_str::<String>(&piece).map_or(1, |text| text.len());
            at += len;
        }
        let offset = self.span().start;
        let start = start.unwrap_or(at);
        offset + start..offset + end.unwrap_or(at).max(start)
    }
}

/// Returns where the string literal ends whose first byte after the quote is at `at`.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = bytes.get(at) {
        at += match byte {
            b'"' => return at + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    bytes.len()
}

/// Returns the length of the character or escape (a pair of surrogates is one) that `text` begins
/// with.
fn escape_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    match bytes {
        [b'\\', b'u', b'd' | b'D', b'8'..=b'9' | b'a'..=b'b' | b'A'..=b'B', ..] => 12,
        [b'\\', b'u', ..] => 6,
        [b'\\', ..] => 2,
        _ => text.chars().next().map_or(1, char::len_utf8),
    }
    .min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_goes_and_everything_else_stays_verbatim() {
        let text =
            " { \"a b\\\" ,\" : [ 1.0e+2 , -0 ,\t1E400 ],\r\n\"\\u0041\":\"\\\\\" , \"z\":{ } } ";
        assert_eq!(
            respace(text, Spacing::Compact),
            r#"{"a b\" ,":[1.0e+2,-0,1E400],"\u0041":"\\","z":{}}"#
        );
        assert_eq!(
            respace(text, Spacing::Spaced),
            r#"{"a b\" ,": [1.0e+2, -0, 1E400], "\u0041": "\\", "z": {}}"#
        );
    }

    #[test]
    fn pointers_find_their_spans() {
        let text = r#" {"a": [1, {"b/~c": "x"}, []], "e": {}, "": null, "\u0061b": true} "#;
        let parts = Parts::new(text).unwrap();
        let at = |pointer: &str| parts.at(pointer).map(Part::text);
        assert_eq!(at(""), Some(text.trim()));
        assert_eq!(at("/a/0"), Some("1"));
        assert_eq!(at("/a/1/b~1~0c"), Some("\"x\""));
        assert_eq!(at("/a/2"), Some("[]"));
        assert_eq!(at("/e"), Some("{}"));
        assert_eq!(at("/"), Some("null"));
        assert_eq!(at("/ab"), Some("true"));
        for missing in ["a", "/a/3", "/a/x", "/e/x", "/a/0/x", "/nothing"] {
            assert_eq!(at(missing), None, "{missing}");
        }
        assert_eq!(&text[parts.at("/e").unwrap().key_span().unwrap()], "\"e\"");
    }

    #[test]
    fn every_pointer_of_a_document_finds_the_value_that_serde_json_finds() {
        let text = r#"{"a":[1,[2,3,{"x":[]}],"s,]}"],"b":{"c":{"d":-1.5e3,"e":"\\\""}},"f":false}"#;
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        let parts = Parts::new(text).unwrap();
        let mut open = vec![String::new()];
        let mut seen = 0;
        while let Some(pointer) = open.pop() {
            let expected = value.pointer(&pointer).unwrap();
            let found = parts.at(&pointer).unwrap().text();
            assert_eq!(&serde_json::from_str::<serde_json::Value>(found).unwrap(), expected);
            seen += 1;
            match expected {
                serde_json::Value::Array(items) => {
                    open.extend((0..items.len()).map(|i| format!("{pointer}/{i}")));
                }
                serde_json::Value::Object(members) => {
                    open.extend(members.keys().map(|key| format!("{pointer}/{key}")));
                }
                _ => {}
            }
        }
        assert_eq!(seen, 14);
    }

    #[test]
    fn spans_inside_a_string_skip_its_escapes() {
        let text = r#"["\\d\u00e9\ud83d\ude00x"]"#;
        let parts = Parts::new(text).unwrap();
        let part = parts.at("/0").unwrap();
        assert_eq!(part.string().unwrap(), "\\dé😀x");
        assert_eq!(&text[part.span_in_string(&(0..1))], r"\\");
        assert_eq!(&text[part.span_in_string(&(1..2))], "d");
        assert_eq!(&text[part.span_in_string(&(2..4))], r"\u00e9");
        assert_eq!(&text[part.span_in_string(&(4..8))], r"\ud83d\ude00");
        assert_eq!(&text[part.span_in_string(&(8..9))], "x");
        assert_eq!(part.span_in_string(&(9..9)).len(), 0);
    }

    #[test]
    fn deep_nesting_is_no_problem() {
        let text = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let parts = Parts::new(&text).unwrap();
        assert_eq!(parts.at(&"/0".repeat(99_999)).unwrap().text(), "[]");
    }
}
