//! A JSON text in, a flat table of its values out, with property order, number spellings and
//! offsets kept; the keyword parser is next.
//!
//! Nothing recurses, and dropping is flat, so depth costs nothing but its own length. Cost: one
//! pass, one hash for each string and member. A later member of the same name replaces an earlier
//! one (RFC 8259 section 4 leaves that open; `serde_json` does the same).

use hashbrown::HashMap;

use super::names::{NameId, Names};
use crate::error::{Error, ErrorKind, Location, Span};
use crate::limits::{BudgetExceeded, Limits};

/// A value of a [`Document`]: ids ascend in the order of the text.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub(super) struct ValueId(u32);

impl ValueId {
    /// Returns this id as a position in a table.
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) enum Kind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it is spelled.
    Number(NameId),
    /// A string, decoded.
    String(NameId),
    /// An array, with its first element.
    Array(Option<ValueId>),
    /// An object, with its first member's value.
    Object(Option<ValueId>),
}

/// How a value is reached from its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) enum Step {
    /// It is a whole document.
    Root,
    /// It is an element of an array.
    Index(u32),
    /// It is the value of a member.
    Member(NameId),
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Value {
    kind: Kind,
    step: Step,
    parent: u32,
    next: Option<ValueId>,
}

/// One or more JSON texts as a table of values.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Document {
    values: Vec<Value>,
    /// All strings, member names and number spellings.
    pub(super) names: Names,
    /// The canonical spelling of each number that stands in `enum` or `const`, sorted.
    canonical: Vec<(NameId, NameId)>,
    /// The same, the other way round.
    #[serde(skip)]
    spellings: Vec<(NameId, NameId)>,
    #[serde(skip)]
    members: HashMap<(u32, NameId), ValueId, foldhash::fast::FixedState>,
}

impl Document {
    /// Returns the kind of `id`.
    pub(super) fn kind(&self, id: ValueId) -> Kind {
        self.values[id.index()].kind
    }

    /// Returns the number of values.
    pub(super) const fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns how `id` is reached from its parent.
    pub(super) fn step(&self, id: ValueId) -> Step {
        self.values[id.index()].step
    }

    /// Returns the array or object around `id`.
    pub(super) fn parent(&self, id: ValueId) -> Option<ValueId> {
        let value = &self.values[id.index()];
        (value.step != Step::Root).then_some(ValueId(value.parent))
    }

    /// Returns the root of the document that `id` belongs to.
    pub(super) fn root_of(&self, id: ValueId) -> ValueId {
        let mut root = id;
        while let Some(parent) = self.parent(root) {
            root = parent;
        }
        root
    }

    /// Returns the value of the member `name` of `object`.
    pub(super) fn member(&self, object: ValueId, name: NameId) -> Option<ValueId> {
        self.members.get(&(object.0, name)).copied()
    }

    /// Returns the value of the member called `name` of `object`.
    pub(super) fn member_named(&self, object: ValueId, name: &str) -> Option<ValueId> {
        self.member(object, self.names.find(name)?)
    }

    /// Returns the element number `index` of `array`; linear in `index`.
    pub(super) fn element(&self, array: ValueId, index: usize) -> Option<ValueId> {
        self.children(array).nth(index).filter(|_| matches!(self.kind(array), Kind::Array(_)))
    }

    /// Returns the element or member after `id`.
    pub(super) fn next(&self, id: ValueId) -> Option<ValueId> {
        self.values[id.index()].next
    }

    /// Returns the canonical spelling of a number that stands in `enum` or `const`.
    pub(super) fn canonical(&self, spelling: NameId) -> Option<NameId> {
        let at = self.canonical.binary_search_by_key(&spelling, |&(name, _)| name).ok()?;
        Some(self.canonical[at].1)
    }

    /// Returns a text of `value`, which stands in `enum` or `const`, that is the same for equal values.
    pub(super) fn canonical_text(&self, value: ValueId) -> Vec<u8> {
        /// What is still to be written.
        enum Rest {
            Value(ValueId),
            Name(NameId),
            Byte(u8),
        }
        let string = |name: NameId, text: &mut Vec<u8>| {
            text.push(b'"');
            crate::ir::chars::write_json_canonical(self.names.get(name), text);
            text.push(b'"');
        };
        let mut text = Vec::new();
        let mut pending = vec![Rest::Value(value)];
        while let Some(rest) = pending.pop() {
            let value = match rest {
                Rest::Byte(byte) => {
                    text.push(byte);
                    continue;
                }
                Rest::Name(name) => {
                    string(name, &mut text);
                    continue;
                }
                Rest::Value(value) => value,
            };
            match self.kind(value) {
                Kind::Null => text.extend(b"null"),
                Kind::Bool(truth) => text.extend(if truth { &b"true"[..] } else { b"false" }),
                Kind::Number(spelling) => {
                    let name = self.canonical(spelling).unwrap_or(spelling);
                    text.extend(self.names.get(name).as_bytes());
                }
                Kind::String(name) => string(name, &mut text),
                Kind::Array(_) => {
                    text.push(b'[');
                    pending.push(Rest::Byte(b']'));
                    let mut parts = Vec::new();
                    for element in self.children(value) {
                        parts.extend([Rest::Value(element), Rest::Byte(b',')]);
                    }
                    pending.extend(parts.into_iter().rev());
                }
                Kind::Object(_) => {
                    text.push(b'{');
                    pending.push(Rest::Byte(b'}'));
                    let mut members: Vec<_> = self.entries(value).collect();
                    members.sort_unstable();
                    for (name, member) in members.into_iter().rev() {
                        pending.extend([
                            Rest::Byte(b','),
                            Rest::Value(member),
                            Rest::Byte(b':'),
                            Rest::Name(name),
                        ]);
                    }
                }
            }
        }
        text
    }

    /// Returns the spellings in the text of the number with this canonical spelling.
    pub(super) fn spellings(&self, canonical: NameId) -> impl Iterator<Item = NameId> + '_ {
        let start = self.spellings.partition_point(|&(c, _)| c < canonical);
        self.spellings[start..].iter().take_while(move |&&(c, _)| c == canonical).map(|&(_, s)| s)
    }

    /// Sets the canonical spellings of numbers.
    pub(super) fn set_canonical(&mut self, mut spellings: Vec<(NameId, NameId)>) {
        spellings.sort_unstable();
        spellings.dedup();
        self.spellings =
            spellings.iter().map(|&(spelling, canonical)| (canonical, spelling)).collect();
        self.spellings.sort_unstable();
        self.canonical = spellings;
    }

    /// Returns the elements, or the members' values, of `id` in the order of the text.
    pub(super) fn children(&self, id: ValueId) -> impl Iterator<Item = ValueId> + '_ {
        let first = match self.kind(id) {
            Kind::Array(first) | Kind::Object(first) => first,
            _ => None,
        };
        std::iter::successors(first, |id| self.values[id.index()].next)
    }

    /// Returns the members of `object` in the order of the text; none if it is no object.
    pub(super) fn entries(&self, object: ValueId) -> impl Iterator<Item = (NameId, ValueId)> + '_ {
        self.children(object).filter_map(|id| match self.step(id) {
            Step::Member(name) => Some((name, id)),
            _ => None,
        })
    }

    /// Returns the text of a string.
    pub(super) fn string(&self, id: ValueId) -> Option<&str> {
        match self.kind(id) {
            Kind::String(name) => Some(self.names.get(name)),
            _ => None,
        }
    }

    /// Returns the JSON Pointer (RFC 6901) of `id` in its own document.
    pub(super) fn pointer(&self, id: ValueId) -> String {
        let mut steps = Vec::new();
        let mut at = id;
        while let Some(parent) = self.parent(at) {
            steps.push(self.step(at));
            at = parent;
        }
        let mut pointer = String::new();
        for step in steps.into_iter().rev() {
            pointer.push('/');
            match step {
                Step::Root => {}
                Step::Index(index) => pointer.push_str(&index.to_string()),
                Step::Member(name) => {
                    pointer.push_str(&self.names.get(name).replace('~', "~0").replace('/', "~1"));
                }
            }
        }
        pointer
    }

    /// Returns the value at the JSON Pointer `pointer` below `root`, with the values passed on the
    /// way there (`root` first).
    pub(super) fn follow(&self, root: ValueId, pointer: &str) -> Option<ValueId> {
        let mut at = root;
        if pointer.is_empty() {
            return Some(at);
        }
        for step in pointer.strip_prefix('/')?.split('/') {
            let step = step.replace("~1", "/").replace("~0", "~");
            at = match self.kind(at) {
                Kind::Object(_) => self.member_named(at, &step)?,
                Kind::Array(_) => {
                    let index: usize = step.parse().ok()?;
                    if step.len() > 1 && step.starts_with('0') {
                        return None;
                    }
                    self.element(at, index)?
                }
                _ => return None,
            };
        }
        Some(at)
    }

    /// Parses `text` as one more document and returns its root.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Syntax`] with the place in the text, or a budget of `limits`.
    pub(super) fn parse(&mut self, text: &str, limits: &Limits) -> Result<ValueId, Error> {
        if text.len() > limits.source_bytes {
            return Err(BudgetExceeded::new("source_bytes", limits.source_bytes as u64).into());
        }
        // Every value takes a byte, so 32-bit ids hold if all texts together are below 4 GiB.
        if text.len().saturating_add(self.values.len()) >= u32::MAX as usize {
            return Err(BudgetExceeded::new("source_bytes", u64::from(u32::MAX)).into());
        }
        Parser { text, bytes: text.as_bytes(), at: 0, document: self }.document(limits.source_depth)
    }

    fn add(&mut self, kind: Kind, step: Step, parent: u32) -> ValueId {
        let id = ValueId(u32::try_from(self.values.len()).unwrap_or(u32::MAX));
        self.values.push(Value { kind, step, parent, next: None });
        id
    }

    /// Appends `child` to its parent's list, whose last child so far is `last`; a member of the
    /// same name is taken out first.
    fn link(&mut self, parent: ValueId, last: &mut Option<ValueId>, child: ValueId) {
        if let Step::Member(name) = self.step(child)
            && let Some(old) = self.members.insert((parent.0, name), child)
        {
            self.unlink(parent, last, old);
        }
        match *last {
            Some(last) => self.values[last.index()].next = Some(child),
            None => match &mut self.values[parent.index()].kind {
                Kind::Array(first) | Kind::Object(first) => *first = Some(child),
                _ => {}
            },
        }
        *last = Some(child);
    }

    fn unlink(&mut self, parent: ValueId, last: &mut Option<ValueId>, old: ValueId) {
        let next = self.values[old.index()].next;
        let before = self.children(parent).take_while(|&id| id != old).last();
        match before {
            Some(before) => self.values[before.index()].next = next,
            None => self.values[parent.index()].kind = Kind::Object(next),
        }
        if *last == Some(old) {
            *last = before;
        }
    }

    /// Rebuilds what is not saved, and checks every id.
    ///
    /// # Errors
    ///
    /// `None` if the table cannot have come from [`Document::parse`].
    pub(super) fn restore(&mut self) -> Option<()> {
        let count = self.values.len();
        let name = |id: NameId| (id.index() < self.names.len()).then_some(());
        for (i, value) in self.values.iter().enumerate() {
            // Links only lead forward and parents back, so walking always ends.
            let forward =
                |id: Option<ValueId>| id.is_none_or(|id| id.index() > i && id.index() < count);
            let first = match value.kind {
                Kind::Null | Kind::Bool(_) => None,
                Kind::Number(id) | Kind::String(id) => {
                    name(id)?;
                    None
                }
                Kind::Array(first) | Kind::Object(first) => first,
            };
            let back = value.step == Step::Root || (value.parent as usize) < i;
            if !(forward(first) && forward(value.next) && back) {
                return None;
            }
            if let Step::Member(id) = value.step {
                name(id)?;
                self.members.insert((value.parent, id), ValueId(u32::try_from(i).ok()?));
            }
        }
        Some(())
    }
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    document: &'a mut Document,
}

impl Parser<'_> {
    fn document(mut self, max_depth: usize) -> Result<ValueId, Error> {
        // The open arrays and objects, each with its last child.
        let mut open: Vec<(ValueId, Option<ValueId>)> = Vec::new();
        let mut step = Step::Root;
        loop {
            self.space();
            let parent = open.last().map_or(0, |(id, _)| id.0);
            let kind = self.value()?;
            let id = self.document.add(kind, step, parent);
            if let Some((parent, last)) = open.last_mut() {
                self.document.link(*parent, last, id);
            }
            match kind {
                Kind::Array(_) if !self.closes(b']') => {
                    open.push((id, None));
                    step = Step::Index(0);
                }
                Kind::Object(_) if !self.closes(b'}') => {
                    open.push((id, None));
                    step = self.member()?;
                }
                _ => match self.after_value(&mut open, id)? {
                    Some(next) => step = next,
                    None => return self.end(id, &open),
                },
            }
            if open.len() > max_depth {
                return Err(BudgetExceeded::new("source_depth", max_depth as u64).into());
            }
        }
    }

    /// Closes what closes after the value `id` and returns the step to the next value, or `None` at
    /// the end of the document.
    fn after_value(
        &mut self,
        open: &mut Vec<(ValueId, Option<ValueId>)>,
        id: ValueId,
    ) -> Result<Option<Step>, Error> {
        let mut id = id;
        loop {
            self.space();
            let Some(&(parent, _)) = open.last() else { return Ok(None) };
            let array = matches!(self.document.kind(parent), Kind::Array(_));
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    self.space();
                    return if array {
                        let Step::Index(index) = self.document.step(id) else { return Ok(None) };
                        Ok(Some(Step::Index(index.saturating_add(1))))
                    } else {
                        self.member().map(Some)
                    };
                }
                Some(b']') if array => self.at += 1,
                Some(b'}') if !array => self.at += 1,
                _ => return Err(self.error(if array { "`,` or `]`" } else { "`,` or `}`" })),
            }
            id = parent;
            open.pop();
            if open.is_empty() {
                self.space();
                return Ok(None);
            }
        }
    }

    fn end(&self, id: ValueId, open: &[(ValueId, Option<ValueId>)]) -> Result<ValueId, Error> {
        debug_assert!(open.is_empty(), "every array and object is closed");
        if self.at < self.bytes.len() {
            return Err(self.error("the end of the text"));
        }
        Ok(self.document.root_of(id))
    }

    fn error(&self, expected: &str) -> Error {
        let end = (self.at + 1).min(self.text.len());
        Error::new(ErrorKind::Syntax, format!("not JSON: expected {expected}"))
            .at(Location::Text(Span::new(self.text, self.at, end)))
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn closes(&mut self, close: u8) -> bool {
        self.space();
        let closes = self.peek() == Some(close);
        self.at += usize::from(closes);
        closes
    }

    fn member(&mut self) -> Result<Step, Error> {
        if self.peek() != Some(b'"') {
            return Err(self.error("a member name"));
        }
        let name = self.string()?;
        self.space();
        if self.peek() != Some(b':') {
            return Err(self.error("`:`"));
        }
        self.at += 1;
        Ok(Step::Member(name))
    }

    fn value(&mut self) -> Result<Kind, Error> {
        let rest = &self.bytes[self.at..];
        let (kind, length) = match rest.first() {
            Some(b'"') => return Ok(Kind::String(self.string()?)),
            Some(b'[') => (Kind::Array(None), 1),
            Some(b'{') => (Kind::Object(None), 1),
            Some(b'-' | b'0'..=b'9') => return self.number(),
            Some(b'n') if rest.starts_with(b"null") => (Kind::Null, 4),
            Some(b't') if rest.starts_with(b"true") => (Kind::Bool(true), 4),
            Some(b'f') if rest.starts_with(b"false") => (Kind::Bool(false), 5),
            _ => return Err(self.error("a value")),
        };
        self.at += length;
        Ok(kind)
    }

    fn digits(&mut self) -> Result<(), Error> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.error("a digit")) } else { Ok(()) }
    }

    fn number(&mut self) -> Result<Kind, Error> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(Kind::Number(self.document.names.intern(&self.text[start..self.at])))
    }

    /// Reads a string whose opening quote is next.
    fn string(&mut self) -> Result<NameId, Error> {
        self.at += 1;
        let start = self.at;
        let mut decoded: Option<String> = None;
        let mut plain = start;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    let text = decoded.get_or_insert_default();
                    text.push_str(&self.text[plain..self.at]);
                    self.at += 1;
                    let c = self.escape()?;
                    text.push(c);
                    plain = self.at;
                }
                Some(0..=0x1f) | None => return Err(self.error("`\"`")),
                Some(_) => self.at += 1,
            }
        }
        let last = &self.text[plain..self.at];
        self.at += 1;
        Ok(match decoded {
            Some(mut text) => {
                text.push_str(last);
                self.document.names.intern(&text)
            }
            None => self.document.names.intern(last),
        })
    }

    fn escape(&mut self) -> Result<char, Error> {
        let letter = self.peek();
        let c = match letter {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode_escape();
            }
            _ => return Err(self.error("an escape")),
        };
        self.at += 1;
        Ok(c)
    }

    fn hex4(&mut self) -> Result<u32, Error> {
        let digits = self.bytes.get(self.at..self.at + 4).unwrap_or_default();
        let mut value = 0;
        for &digit in digits {
            let Some(digit) = char::from(digit).to_digit(16) else { break };
            value = value * 16 + digit;
            self.at += 1;
        }
        let complete = digits.len() == 4 && digits.iter().all(u8::is_ascii_hexdigit);
        if complete { Ok(value) } else { Err(self.error("a hexadecimal digit")) }
    }

    fn unicode_escape(&mut self) -> Result<char, Error> {
        let high = self.hex4()?;
        if (0xd800..0xdc00).contains(&high) && self.bytes[self.at..].starts_with(b"\\u") {
            self.at += 2;
            let low = self.hex4()?;
            if (0xdc00..0xe000).contains(&low)
                && let Some(c) = char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00))
            {
                return Ok(c);
            }
        } else if let Some(c) = char::from_u32(high) {
            return Ok(c);
        }
        Err(self.error("the other half of a surrogate pair"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(Document, ValueId), Error> {
        let mut document = Document::default();
        let root = document.parse(text, &Limits::default())?;
        Ok((document, root))
    }

    /// Prints a document again, recursively: only for small tests.
    fn print(document: &Document, id: ValueId) -> serde_json::Value {
        match document.kind(id) {
            Kind::Null => serde_json::Value::Null,
            Kind::Bool(b) => b.into(),
            Kind::Number(n) => serde_json::from_str(document.names.get(n)).expect("a number"),
            Kind::String(s) => document.names.get(s).into(),
            Kind::Array(_) => document.children(id).map(|id| print(document, id)).collect(),
            Kind::Object(_) => document
                .entries(id)
                .map(|(name, id)| (document.names.get(name).to_owned(), print(document, id)))
                .collect(),
        }
    }

    #[test]
    fn reads_what_serde_json_reads() {
        for text in [
            "null",
            " [ ] ",
            "{}",
            "[1,-0.5e+10,[true,{\"a\":{}}]]",
            r#""\u00e9\ud83d\ude00\n\/""#,
            r#"{"a":1,"b":{"a":[{},[],2]},"c":"x"}"#,
            r#"[[],[[]],{"x":[]}]"#,
            "\t-0\r\n",
            r#"{"b":1,"a":2,"b":3}"#,
            r#"{"a":1,"a":2,"b":[0]}"#,
            "1e400",
            "12345678901234567890123",
        ] {
            let (document, root) = parse(text).expect(text);
            let expected: serde_json::Value = serde_json::from_str(text).expect(text);
            assert_eq!(print(&document, root), expected, "{text}");
        }
    }

    #[test]
    fn refuses_what_serde_json_refuses() {
        for text in [
            "",
            " ",
            "[",
            "]",
            "{",
            "[1",
            "[1,",
            "[1,]",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1,}",
            "{a:1}",
            "01",
            "1.",
            ".5",
            "1e",
            "-",
            "+1",
            "nul",
            "truex",
            "\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\u12g4\"",
            "\"\\ud800\"",
            "\"\\ud800\\u0041\"",
            "\"\\udc00\"",
            "\"\u{1}\"",
            "[1}",
            "{\"a\":1]",
            "1 2",
            "[]]",
            "'a'",
            "[,1]",
        ] {
            assert!(serde_json::from_str::<serde_json::Value>(text).is_err(), "{text}");
            let error = parse(text).expect_err(text);
            assert_eq!(error.kind(), &ErrorKind::Syntax, "{text}");
        }
    }

    #[test]
    fn pointers_lead_back_to_their_value() {
        let (document, root) = parse(r#"{"a/b":[0,{"~":{"":[true]}}],"x":{}}"#).expect("valid");
        for i in 0..document.len() {
            let id = ValueId(u32::try_from(i).expect("small"));
            assert_eq!(document.follow(root, &document.pointer(id)), Some(id));
        }
        for pointer in ["a", "/y", "/a~1b/2", "/a~1b/00", "/x/0", "/a~1b/0/x"] {
            assert_eq!(document.follow(root, pointer), None, "{pointer}");
        }
    }

    #[test]
    fn depth_is_bounded_by_its_limit_and_not_by_the_stack() {
        let deep = format!("{}{}", "[".repeat(15_000), "]".repeat(15_000));
        parse(&deep).expect("within the limit");
        let deeper = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        let error = parse(&deeper).expect_err("past the limit");
        assert!(matches!(error.kind(), ErrorKind::BudgetExceeded(b) if b.limit == "source_depth"));
    }
}
