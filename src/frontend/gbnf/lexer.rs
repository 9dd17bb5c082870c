//! GBNF text in, terminals of the grammar notation out, one at a time, for [`super::parser`].
//!
//! A rule name followed by `::=` is one terminal, so that newlines need no meaning of their own: a
//! rule lasts until the next head at the start of a line. Linear time, no recursion.

use std::ops::Range;

use crate::error::{Error, ErrorKind, Location, Span};
use crate::ir::UNBOUNDED;
use crate::ir::chars::{CharRange, CharSet, all_chars};

/// A terminal of the notation and the bytes of the text that it takes.
#[derive(Clone, Debug)]
pub(super) struct Lexeme {
    pub(super) kind: Kind,
    pub(super) range: Range<usize>,
}

/// What a terminal of the notation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `name ::=`; the range is that of the name.
    Head,
    /// A rule name that is not followed by `::=`.
    Name,
    /// `"…"`, with its escapes read.
    Literal(String),
    /// `[…]`, `[^…]` or `.`.
    Class(CharSet),
    /// `(`
    Open,
    /// `)`
    Close,
    /// `|`
    Or,
    /// `*`, `+`, `?` or `{…}`: the least and the greatest number of times.
    Repeat(u32, u32),
    /// The end of the text.
    End,
}

/// Reads terminals from a text.
#[derive(Debug)]
pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
    /// Nothing but blanks and comments stands before `at` on its line.
    fresh_line: bool,
}

/// Returns the error that `text` is not GBNF at `range`.
pub(super) fn syntax(text: &str, range: Range<usize>, message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Syntax, message).at(place(text, range))
}

/// Returns the location of `range` in `text`.
pub(super) fn place(text: &str, range: Range<usize>) -> Location {
    Location::Text(Span::new(text, range.start, range.end))
}

const fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

impl<'t> Lexer<'t> {
    /// Returns a reader of `text` from its start.
    pub(super) fn new(text: &'t str) -> Self {
        let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Self { text, at, fresh_line: true }
    }

    /// Returns the next terminal; [`Kind::End`] again and again at the end.
    pub(super) fn next(&mut self) -> Result<Lexeme, Error> {
        self.skip_blanks();
        let start = self.at;
        let fresh_line = std::mem::replace(&mut self.fresh_line, false);
        let Some(byte) = self.peek() else {
            return Ok(Lexeme { kind: Kind::End, range: start..start });
        };
        if is_name(byte) {
            return self.name(fresh_line);
        }
        self.at += 1;
        let kind = match byte {
            b'"' => self.literal(start)?,
            b'[' => self.class(start)?,
            b'.' => Kind::Class(all_chars()),
            b'(' => Kind::Open,
            b')' => Kind::Close,
            b'|' => Kind::Or,
            b'*' => Kind::Repeat(0, UNBOUNDED),
            b'+' => Kind::Repeat(1, UNBOUNDED),
            b'?' => Kind::Repeat(0, 1),
            b'{' => self.counts(start)?,
            b'<' | b'!' => return Err(self.token_reference(start)),
            _ => return Err(self.unexpected(start)),
        };
        Ok(Lexeme { kind, range: start..self.at })
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn next_char(&mut self) -> Option<char> {
        let c = self.text[self.at..].chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn skip_while(&mut self, belongs: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&belongs) {
            self.at += 1;
        }
    }

    /// Skips blanks, newlines and comments.
    fn skip_blanks(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' => self.at += 1,
                b'\n' | b'\r' => {
                    self.at += 1;
                    self.fresh_line = true;
                }
                b'#' => self.skip_while(|byte| byte != b'\n' && byte != b'\r'),
                _ => break,
            }
        }
    }

    fn name(&mut self, fresh_line: bool) -> Result<Lexeme, Error> {
        let start = self.at;
        self.skip_while(is_name);
        let range = start..self.at;
        self.skip_while(|byte| byte == b' ' || byte == b'\t');
        if !self.text[self.at..].starts_with("::=") {
            self.at = range.end;
            return Ok(Lexeme { kind: Kind::Name, range });
        }
        self.at += "::=".len();
        if !fresh_line {
            return Err(syntax(self.text, range, "a rule must start on a line of its own"));
        }
        Ok(Lexeme { kind: Kind::Head, range })
    }

    /// Reads the rest of a literal whose opening quote stands at `start`.
    fn literal(&mut self, start: usize) -> Result<Kind, Error> {
        let mut value = String::new();
        loop {
            match self.next_char() {
                None => {
                    let message = "literal without its closing `\"`";
                    return Err(syntax(self.text, start..start + 1, message));
                }
                Some('"') => return Ok(Kind::Literal(value)),
                Some('\\') => value.push(self.escape()?),
                Some(c) => value.push(c),
            }
        }
    }

    /// Reads the rest of a character class whose bracket stands at `start`.
    fn class(&mut self, start: usize) -> Result<Kind, Error> {
        let negated = self.peek() == Some(b'^');
        self.at += usize::from(negated);
        let mut ranges = Vec::new();
        while self.peek() != Some(b']') {
            let from = self.at;
            let first = self.class_char(start)?;
            let mut last = first;
            let rest = &self.text.as_bytes()[self.at..];
            if rest.first() == Some(&b'-') && rest.get(1) != Some(&b']') {
                self.at += 1;
                last = self.class_char(start)?;
            }
            if first > last {
                let message = "range that ends before it starts";
                return Err(syntax(self.text, from..self.at, message));
            }
            ranges.push(CharRange::new(first, last));
        }
        self.at += 1;
        if ranges.is_empty() {
            let message = if negated {
                "empty negated character class; any character is `.`"
            } else {
                "empty character class; a literal `]` is `\\]`"
            };
            return Err(syntax(self.text, start..self.at, message));
        }
        let mut set = CharSet::new(ranges);
        if negated {
            set.negate();
        }
        Ok(Kind::Class(set))
    }

    fn class_char(&mut self, start: usize) -> Result<char, Error> {
        match self.next_char() {
            None => {
                let message = "character class without its closing `]`";
                Err(syntax(self.text, start..start + 1, message))
            }
            Some('\\') => self.escape(),
            Some(c) => Ok(c),
        }
    }

    /// Reads the rest of an escape, after its backslash.
    fn escape(&mut self) -> Result<char, Error> {
        let start = self.at - 1;
        let digits = match self.next_char() {
            Some('n') => return Ok('\n'),
            Some('r') => return Ok('\r'),
            Some('t') => return Ok('\t'),
            Some(c) if c.is_ascii_punctuation() => return Ok(c),
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            _ => {
                let message = "unknown escape; expected `\\n`, `\\r`, `\\t`, `\\xHH`, `\\uHHHH`, \
                               `\\UHHHHHHHH` or a punctuation mark";
                return Err(syntax(self.text, start..self.at, message));
            }
        };
        let mut code = 0_u32;
        for _ in 0..digits {
            let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(16)) else {
                let message = format!("expected {digits} hexadecimal digits in this escape");
                return Err(syntax(self.text, start..self.at, message));
            };
            self.at += 1;
            code = code << 4 | digit;
        }
        char::from_u32(code).ok_or_else(|| {
            let message = if (0xd800..0xe000).contains(&code) {
                format!("U+{code:04X} is half of a surrogate pair; write `\\U` and the whole code")
            } else {
                format!("U+{code:X} is no character; the last one is U+10FFFF")
            };
            syntax(self.text, start..self.at, message)
        })
    }

    /// Reads the rest of `{m}`, `{m,}`, `{m,n}` or `{,n}`, after its brace at `start`.
    fn counts(&mut self, start: usize) -> Result<Kind, Error> {
        self.skip_blanks();
        let min = self.number()?;
        self.skip_blanks();
        let (min, max) = if self.peek() == Some(b',') {
            self.at += 1;
            self.skip_blanks();
            let max = self.number()?;
            self.skip_blanks();
            (min.or(max.and(Some(0))), Some(max.unwrap_or(UNBOUNDED)))
        } else {
            (min, min)
        };
        let (Some(min), Some(max), Some(b'}')) = (min, max, self.peek()) else {
            let message = "expected a repetition such as `{2}`, `{2,}`, `{2,5}` or `{,5}`";
            return Err(syntax(self.text, start..self.at, message));
        };
        self.at += 1;
        if min > max {
            let message = "repetition whose least number is above its greatest";
            return Err(syntax(self.text, start..self.at, message));
        }
        Ok(Kind::Repeat(min, max))
    }

    /// Reads a decimal number if there is one.
    fn number(&mut self) -> Result<Option<u32>, Error> {
        let start = self.at;
        self.skip_while(|byte| byte.is_ascii_digit());
        if self.at == start {
            return Ok(None);
        }
        match self.text[start..self.at].parse() {
            Ok(number) if number < UNBOUNDED => Ok(Some(number)),
            _ => {
                let message = format!("number of repetitions above {}", UNBOUNDED - 1);
                Err(syntax(self.text, start..self.at, message))
            }
        }
    }

    fn token_reference(&mut self, start: usize) -> Error {
        self.skip_while(|byte| !matches!(byte, b'>' | b'\n' | b'\r'));
        self.at += usize::from(self.peek() == Some(b'>'));
        let feature = ErrorKind::UnsupportedFeature { feature: "token reference".into() };
        let message = "references to tokens, such as `<name>`, are not supported";
        Error::new(feature, message).at(place(self.text, start..self.at))
    }

    fn unexpected(&mut self, start: usize) -> Error {
        self.at = start;
        let c = self.next_char().unwrap_or_default();
        let hint = match c {
            '\'' => "literals stand in double quotes",
            ':' | '=' => "a rule is written `name ::= …`, its name and `::=` on one line",
            '/' => "comments start with `#`",
            c if c.is_alphanumeric() => "rule names are made of ASCII letters, digits, `-` and `_`",
            _ => "expected a literal, a class, a rule name, a group, a repetition or `|`",
        };
        let message = format!("unexpected `{}`; {hint}", c.escape_debug());
        syntax(self.text, start..self.at, message)
    }
}
