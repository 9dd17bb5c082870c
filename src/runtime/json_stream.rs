//! JSON that is being written: bytes in as they come, typed events out, and at any time the document so
//! far, repaired.

use std::ops::Range;

/// The kind of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JsonKind {
    /// An object.
    Object,
    /// An array.
    Array,
    /// A string.
    String,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// `null`.
    Null,
}

/// Something that became known. A `pointer` is the JSON Pointer (RFC 6901) of a value.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum JsonEvent {
    /// The key of a member of the object `pointer` begins.
    KeyBegins {
        /// Of the object.
        pointer: String,
    },
    /// A key is complete.
    Key {
        /// Of the member's value, which is still to come.
        pointer: String,
        /// The key.
        key: String,
    },
    /// A value begins.
    ValueBegins {
        /// Of the value.
        pointer: String,
        /// What it will be.
        kind: JsonKind,
    },
    /// More of the text of a string that is a value.
    StringDelta {
        /// Of the string.
        pointer: String,
        /// Whole characters, unescaped.
        text: String,
    },
    /// A value is complete.
    ValueComplete {
        /// Of the value.
        pointer: String,
        /// Where it stands in the text.
        text: Range<usize>,
    },
}

/// A byte with which the text is no JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotJson {
    /// Its place in the text.
    pub at: usize,
}

impl std::fmt::Display for NotJson {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the text is no JSON at byte {}", self.at)
    }
}

impl std::error::Error for NotJson {}

/// A reader of JSON that comes in pieces.
///
/// It is not a validator: of numbers and of control characters in strings it takes any spelling.
///
/// ```
/// use schemac::runtime::{JsonEvent, JsonStream};
///
/// let mut stream = JsonStream::default();
/// stream.push(br#"{"name": "Ad"#)?;
/// assert_eq!(stream.pointer(), "/name");
/// assert_eq!(stream.repaired().as_deref(), Some(r#"{"name": "Ad"}"#));
/// let events = stream.push(br#"a", "ag"#)?;
/// assert_eq!(events[0], JsonEvent::StringDelta { pointer: "/name".into(), text: "a".into() });
/// assert_eq!(stream.repaired().as_deref(), Some(r#"{"name": "Ada"}"#));
/// # Ok::<(), schemac::runtime::NotJson>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct JsonStream {
    text: Vec<u8>,
    open: Vec<Open>,
    place: Place,
    /// Where the value or key began that is being written.
    start: usize,
    /// Where to cut to be rid of the member or element that is being written.
    safe: usize,
    string: StringState,
}

/// An object or array that is open.
#[derive(Clone, Debug)]
struct Open {
    kind: JsonKind,
    start: usize,
    /// The key of the present member.
    key: String,
    /// The number of the present element.
    index: usize,
}

/// What is being written, or may come next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Value,
    FirstElement,
    FirstKey,
    NextKey,
    Key,
    Colon,
    String,
    Number,
    /// A literal of this length.
    Literal(usize),
    AfterValue,
    End,
}

/// What is known inside a string.
#[derive(Clone, Debug, Default)]
struct StringState {
    /// Whole characters that were not told yet.
    text: String,
    /// Bytes of a character that is not whole yet.
    part: Vec<u8>,
    escape: Escape,
    /// The first half of a surrogate pair.
    high: Option<u32>,
    /// The length of the whole characters in the text, up to where a cut leaves a string.
    whole: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    Begun,
    /// The digits of `\uXXXX` so far, and their value.
    Unicode(u8, u32),
}

impl JsonStream {
    /// Reads the next bytes, and returns what became known.
    ///
    /// # Errors
    ///
    /// [`NotJson`]; what came before that byte is read, and what comes after it is not.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<JsonEvent>, NotJson> {
        let mut events = Vec::new();
        for &byte in bytes {
            self.byte(byte, &mut events)?;
            self.text.push(byte);
        }
        if self.place == Place::String {
            self.tell_string(&mut events);
        }
        Ok(events)
    }

    /// Tells that the text has ended, which completes a number that stands alone.
    pub fn finish(&mut self) -> Vec<JsonEvent> {
        let mut events = Vec::new();
        if self.place == Place::Number {
            self.complete(&mut events);
        }
        events
    }

    /// Returns the JSON Pointer of the value that is being written, or comes next; of the whole
    /// document once it is complete.
    #[must_use]
    pub fn pointer(&self) -> String {
        let mut pointer = String::new();
        for open in &self.open {
            pointer.push('/');
            match open.kind {
                JsonKind::Object => {
                    pointer.push_str(&open.key.replace('~', "~0").replace('/', "~1"));
                }
                _ => pointer.push_str(&open.index.to_string()),
            }
        }
        pointer
    }

    /// Returns whether the document is complete. A number that stands alone never is: more digits
    /// may follow.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.place == Place::End
    }

    /// Returns the text so far as a valid document: open strings, arrays and objects are closed,
    /// literals completed, and members without a value and other beginnings left out. `None` if no
    /// value has begun.
    #[must_use]
    pub fn repaired(&self) -> Option<String> {
        let mut text = match self.place {
            Place::Value | Place::Colon | Place::Key | Place::NextKey => {
                self.text[..self.safe].to_vec()
            }
            Place::FirstElement | Place::FirstKey | Place::AfterValue | Place::End => {
                self.text.clone()
            }
            Place::String => {
                let mut text = self.text[..self.string.whole].to_vec();
                text.push(b'"');
                text
            }
            Place::Number => {
                let number = &self.text[self.start..];
                let whole = number.iter().rposition(u8::is_ascii_digit);
                match whole {
                    // `1e5` ends with a digit, `1e` and `1.` do not, `1e+` neither.
                    Some(last) => self.text[..=self.start + last].to_vec(),
                    None => self.text[..self.safe].to_vec(),
                }
            }
            Place::Literal(_) => {
                let mut text = self.text[..self.start].to_vec();
                text.extend(literal(self.text[self.start]).map_or(&b""[..], |(word, _)| word));
                text
            }
        };
        for open in self.open.iter().rev() {
            text.push(if open.kind == JsonKind::Object { b'}' } else { b']' });
        }
        if text.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        String::from_utf8(text).ok()
    }

    fn byte(&mut self, byte: u8, events: &mut Vec<JsonEvent>) -> Result<(), NotJson> {
        let at = self.text.len();
        let wrong = Err(NotJson { at });
        match self.place {
            Place::String | Place::Key => return self.string_byte(byte, events),
            Place::Literal(len) => {
                let (word, _) = literal(self.text[self.start]).ok_or(NotJson { at })?;
                if word.get(at - self.start) != Some(&byte) {
                    return wrong;
                }
                if at - self.start + 1 == len {
                    self.complete_at(at + 1, events);
                }
                return Ok(());
            }
            Place::Number => {
                if matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E') {
                    return Ok(());
                }
                self.complete(events);
            }
            _ => {}
        }
        if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
            return Ok(());
        }
        match (self.place, byte) {
            (Place::Value | Place::FirstElement, _) if byte != b']' => self.begin(byte, events),
            (Place::FirstKey | Place::NextKey, b'"') => {
                let object = self.open.len();
                let mut pointer = self.pointer();
                pointer.truncate(pointer.rfind('/').unwrap_or(0));
                debug_assert!(object > 0);
                events.push(JsonEvent::KeyBegins { pointer });
                self.begin_string(at, Place::Key);
                Ok(())
            }
            (Place::Colon, b':') => {
                self.place = Place::Value;
                Ok(())
            }
            (Place::AfterValue, b',') => {
                self.safe = at;
                let Some(open) = self.open.last_mut() else { return wrong };
                open.index += 1;
                self.place = match open.kind {
                    JsonKind::Object => Place::NextKey,
                    _ => Place::Value,
                };
                Ok(())
            }
            (Place::AfterValue | Place::FirstElement, b']') => self.close(JsonKind::Array, events),
            (Place::AfterValue | Place::FirstKey, b'}') => self.close(JsonKind::Object, events),
            _ => wrong,
        }
    }

    fn begin(&mut self, byte: u8, events: &mut Vec<JsonEvent>) -> Result<(), NotJson> {
        let at = self.text.len();
        let kind = match byte {
            b'{' => JsonKind::Object,
            b'[' => JsonKind::Array,
            b'"' => JsonKind::String,
            b'-' | b'0'..=b'9' => JsonKind::Number,
            _ => literal(byte).ok_or(NotJson { at })?.1,
        };
        events.push(JsonEvent::ValueBegins { pointer: self.pointer(), kind });
        self.start = at;
        match kind {
            JsonKind::Object | JsonKind::Array => {
                self.open.push(Open { kind, start: at, key: String::new(), index: 0 });
                self.safe = at + 1;
                let object = kind == JsonKind::Object;
                self.place = if object { Place::FirstKey } else { Place::FirstElement };
            }
            JsonKind::String => self.begin_string(at, Place::String),
            JsonKind::Number => self.place = Place::Number,
            JsonKind::Boolean | JsonKind::Null => {
                self.place = Place::Literal(literal(byte).map_or(0, |(word, _)| word.len()));
            }
        }
        Ok(())
    }

    fn begin_string(&mut self, at: usize, place: Place) {
        self.start = at;
        self.place = place;
        self.string = StringState { whole: at + 1, ..StringState::default() };
    }

    fn close(&mut self, kind: JsonKind, events: &mut Vec<JsonEvent>) -> Result<(), NotJson> {
        let at = self.text.len();
        match self.open.pop() {
            Some(open) if open.kind == kind => {
                self.start = open.start;
                self.complete_at(at + 1, events);
                Ok(())
            }
            other => {
                self.open.extend(other);
                Err(NotJson { at })
            }
        }
    }

    fn complete(&mut self, events: &mut Vec<JsonEvent>) {
        self.complete_at(self.text.len(), events);
    }

    fn complete_at(&mut self, end: usize, events: &mut Vec<JsonEvent>) {
        events.push(JsonEvent::ValueComplete { pointer: self.pointer(), text: self.start..end });
        self.place = if self.open.is_empty() { Place::End } else { Place::AfterValue };
    }

    fn string_byte(&mut self, byte: u8, events: &mut Vec<JsonEvent>) -> Result<(), NotJson> {
        let at = self.text.len();
        let string = &mut self.string;
        match string.escape {
            Escape::None => match byte {
                b'"' => {
                    string.flush_half();
                    self.end_string(events);
                    return Ok(());
                }
                b'\\' => string.escape = Escape::Begun,
                _ => {
                    string.flush_half();
                    string.raw(byte);
                }
            },
            Escape::Begun => {
                string.escape = Escape::None;
                let plain = match byte {
                    b'u' => {
                        string.escape = Escape::Unicode(0, 0);
                        return Ok(());
                    }
                    b'"' | b'\\' | b'/' => byte,
                    b'b' => 8,
                    b'f' => 12,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    _ => return Err(NotJson { at }),
                };
                string.flush_half();
                string.text.push(char::from(plain));
            }
            Escape::Unicode(digits, value) => {
                let digit = char::from(byte).to_digit(16).ok_or(NotJson { at })?;
                let value = value << 4 | digit;
                if digits < 3 {
                    string.escape = Escape::Unicode(digits + 1, value);
                } else {
                    string.escape = Escape::None;
                    string.unit(value);
                }
            }
        }
        if string.escape == Escape::None && string.part.is_empty() && string.high.is_none() {
            string.whole = at + 1;
        }
        Ok(())
    }

    fn end_string(&mut self, events: &mut Vec<JsonEvent>) {
        if self.place == Place::Key {
            let key = std::mem::take(&mut self.string.text);
            if let Some(open) = self.open.last_mut() {
                open.key.clone_from(&key);
            }
            events.push(JsonEvent::Key { pointer: self.pointer(), key });
            self.place = Place::Colon;
            return;
        }
        self.tell_string(events);
        self.complete_at(self.text.len() + 1, events);
    }

    fn tell_string(&mut self, events: &mut Vec<JsonEvent>) {
        if !self.string.text.is_empty() {
            let text = std::mem::take(&mut self.string.text);
            events.push(JsonEvent::StringDelta { pointer: self.pointer(), text });
        }
    }
}

impl StringState {
    /// Takes a byte of UTF-8.
    fn raw(&mut self, byte: u8) {
        self.part.push(byte);
        match std::str::from_utf8(&self.part) {
            Ok(text) => {
                self.text.push_str(text);
                self.part.clear();
            }
            Err(error) if error.error_len().is_some() => {
                self.text.push(char::REPLACEMENT_CHARACTER);
                self.part.clear();
            }
            Err(_) => {}
        }
    }

    /// Takes a unit of UTF-16.
    fn unit(&mut self, unit: u32) {
        match (self.high.take(), unit) {
            (Some(high), 0xdc00..=0xdfff) => {
                let scalar = 0x1_0000 + ((high - 0xd800) << 10) + (unit - 0xdc00);
                self.text.push(char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            (half, _) => {
                if half.is_some() {
                    self.text.push(char::REPLACEMENT_CHARACTER);
                }
                match unit {
                    0xd800..=0xdbff => self.high = Some(unit),
                    _ => {
                        self.text.push(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER))
                    }
                }
            }
        }
    }

    /// Gives up a half of a pair whose other half does not come.
    fn flush_half(&mut self) {
        if self.high.take().is_some() {
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// Returns the literal that begins with `byte`.
const fn literal(byte: u8) -> Option<(&'static [u8], JsonKind)> {
    match byte {
        b't' => Some((b"true", JsonKind::Boolean)),
        b'f' => Some((b"false", JsonKind::Boolean)),
        b'n' => Some((b"null", JsonKind::Null)),
        _ => None,
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "random places")]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::runtime::uniform;

    const DOCUMENTS: [&str; 9] = [
        r#"{"name": "Ada", "n": [1, -2.5e+10, {"x": null}], "ok": true, "e": {}, "l": []}"#,
        r#" [ "a\nb\u00e9\ud83d\ude00\\", "\"", "é日😀", "" , false ] "#,
        r#"{"a/b": {"~": [[], [[0]]]}, "": 0, "k\u0041": "v"}"#,
        "-12.5",
        "\"text\"",
        "null",
        "[]",
        "{}",
        r#"[1e5, 10, 0.5, -0]"#,
    ];

    /// The document that events describe, from complete values alone.
    fn rebuilt(document: &str, events: &[JsonEvent]) -> Value {
        let whole = events.iter().rev().find_map(|event| match event {
            JsonEvent::ValueComplete { pointer, text } if pointer.is_empty() => Some(text.clone()),
            _ => None,
        });
        serde_json::from_str(&document[whole.unwrap()]).unwrap()
    }

    #[test]
    fn pieces_tell_the_same_as_the_whole() {
        for document in DOCUMENTS {
            let value: Value = serde_json::from_str(document).unwrap();
            for size in [1, 2, 3, 7, 1_000] {
                let mut stream = JsonStream::default();
                let mut events = Vec::new();
                for piece in document.as_bytes().chunks(size) {
                    events.extend(stream.push(piece).unwrap());
                }
                events.extend(stream.finish());
                assert!(stream.is_complete());
                assert_eq!(rebuilt(document, &events), value);
                let mut strings: Vec<(String, String)> = Vec::new();
                for event in &events {
                    match event {
                        JsonEvent::ValueBegins { pointer, kind: JsonKind::String } => {
                            strings.push((pointer.clone(), String::new()));
                        }
                        JsonEvent::StringDelta { pointer, text } => {
                            let last = strings.last_mut().unwrap();
                            assert_eq!(last.0, *pointer);
                            last.1.push_str(text);
                        }
                        JsonEvent::ValueComplete { pointer, text } => {
                            let own: Value = serde_json::from_str(&document[text.clone()]).unwrap();
                            assert_eq!(value.pointer(pointer), Some(&own), "{pointer}");
                        }
                        JsonEvent::Key { pointer, key } => {
                            assert!(value.pointer(pointer).is_some(), "{pointer} {key}");
                        }
                        _ => {}
                    }
                }
                for (pointer, text) in strings {
                    assert_eq!(value.pointer(&pointer).unwrap().as_str(), Some(text.as_str()));
                }
            }
        }
    }

    #[test]
    fn every_prefix_can_be_repaired_and_keeps_what_was_complete() {
        for document in DOCUMENTS {
            let mut stream = JsonStream::default();
            let mut complete = Vec::new();
            for (at, &byte) in document.as_bytes().iter().enumerate() {
                complete.extend(stream.push(&[byte]).unwrap());
                let Some(repaired) = stream.repaired() else {
                    assert!(complete.is_empty() || document[..=at].trim() == "-");
                    continue;
                };
                let value: Value = serde_json::from_str(&repaired)
                    .unwrap_or_else(|e| panic!("{e}: {repaired} of {}", &document[..=at]));
                for event in &complete {
                    if let JsonEvent::ValueComplete { pointer, text } = event {
                        let own: Value = serde_json::from_str(&document[text.clone()]).unwrap();
                        assert_eq!(value.pointer(pointer), Some(&own));
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_half_written_is_left_out_or_completed() {
        for (text, expected) in [
            ("{", Some("{}")),
            ("{\"a", Some("{}")),
            ("{\"a\"", Some("{}")),
            ("{\"a\": ", Some("{}")),
            ("{\"a\": 1, \"b", Some("{\"a\": 1}")),
            ("{\"a\": 1.", Some("{\"a\": 1}")),
            ("{\"a\": -", Some("{}")),
            ("[1,", Some("[1]")),
            ("[1, 2e", Some("[1, 2]")),
            ("[t", Some("[true]")),
            ("[\"a\\u00", Some("[\"a\"]")),
            ("[\"a\\ud83d\\ude", Some("[\"a\"]")),
            ("[\"a\\", Some("[\"a\"]")),
            (" ", None),
            ("", None),
            ("-", None),
        ] {
            let mut stream = JsonStream::default();
            stream.push(text.as_bytes()).unwrap();
            assert_eq!(stream.repaired().as_deref(), expected, "{text}");
        }
        let mut stream = JsonStream::default();
        stream.push(b"[\"\xf0\x9f").unwrap();
        assert_eq!(stream.repaired().as_deref(), Some("[\"\"]"), "a character that is not whole");
    }

    #[test]
    fn what_is_no_json_is_refused_at_its_byte() {
        for (text, at) in [
            ("[1 2", 3),
            ("{1", 1),
            ("}", 0),
            ("[}", 1),
            ("{\"a\" 1", 5),
            ("[trx", 3),
            ("\"\\x", 2),
            ("1,", 1),
            ("[,", 1),
            ("{,", 1),
            ("[1]]", 3),
        ] {
            let mut stream = JsonStream::default();
            assert_eq!(stream.push(text.as_bytes()), Err(NotJson { at }), "{text}");
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused_and_what_was_read_can_be_repaired() {
        let alphabet = b"{}[]:,\"\\u0dD8e+-.1tfn \xc3\xa9\xf0";
        for round in 0..20_000 {
            let byte = |i| alphabet[(uniform(round, i) * 97.0) as usize % alphabet.len()];
            let mut stream = JsonStream::default();
            for at in 0..12 {
                if stream.push(&[byte(at)]).is_err() {
                    break;
                }
                // What is no character, or a number that none has, is the writer's own.
                if let Some(text) = stream.repaired()
                    && !text.contains(char::REPLACEMENT_CHARACTER)
                {
                    assert!(!text.is_empty());
                }
            }
            let _ = (stream.pointer(), stream.finish(), stream.repaired());
        }
    }
}
