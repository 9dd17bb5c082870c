//! Escapes, and the fixed classes of ECMA-262.

use crate::error::{Error, ErrorKind};
use crate::frontend::ecma::parse::Cursor;
use crate::frontend::ecma::property::property;
use crate::frontend::pattern::Look;
use crate::ir::chars::{CharRange, CharSet, char_set};

/// What an escape stands for.
#[derive(Clone, Debug)]
pub(super) enum Escape {
    /// One code point, perhaps a surrogate.
    Code(u32),
    /// A set of characters.
    Set(CharSet),
    /// An assertion.
    Look(Look),
}

/// `\d`.
fn digit() -> CharSet {
    char_set(&[('0', '9')])
}

/// `\w`, the word characters of `\b` too.
fn word() -> CharSet {
    char_set(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')])
}

/// `\s`: WhiteSpace and LineTerminator of ECMA-262 sections 12.2 and 12.3.
fn space() -> CharSet {
    char_set(&[
        ('\t', '\r'),
        (' ', ' '),
        ('\u{a0}', '\u{a0}'),
        ('\u{1680}', '\u{1680}'),
        ('\u{2000}', '\u{200a}'),
        ('\u{2028}', '\u{2029}'),
        ('\u{202f}', '\u{202f}'),
        ('\u{205f}', '\u{205f}'),
        ('\u{3000}', '\u{3000}'),
        ('\u{feff}', '\u{feff}'),
    ])
}

/// `.`: everything but LineTerminator.
pub(super) fn dot() -> CharSet {
    complement(char_set(&[('\n', '\n'), ('\r', '\r'), ('\u{2028}', '\u{2029}')]))
}

pub(super) fn complement(mut set: CharSet) -> CharSet {
    set.negate();
    set
}

/// Returns the characters from `first` to `last`; surrogates are none.
pub(super) fn code_points(first: u32, last: u32) -> CharSet {
    let first = if (0xd800..0xe000).contains(&first) { 0xe000 } else { first };
    let last = if (0xd800..0xe000).contains(&last) { 0xd7ff } else { last };
    match (char::from_u32(first), char::from_u32(last)) {
        (Some(first), Some(last)) if first <= last => CharSet::new([CharRange::new(first, last)]),
        _ => CharSet::empty(),
    }
}

/// Reads an escape, of which the backslash (at `start`) has been read.
pub(super) fn escape(
    cursor: &mut Cursor<'_>,
    start: usize,
    in_class: bool,
) -> Result<Escape, Error> {
    let Some(c) = cursor.next() else {
        return Err(cursor.syntax(start, "a backslash at the end of the pattern"));
    };
    Ok(match c {
        'd' => Escape::Set(digit()),
        'D' => Escape::Set(complement(digit())),
        'w' => Escape::Set(word()),
        'W' => Escape::Set(complement(word())),
        's' => Escape::Set(space()),
        'S' => Escape::Set(complement(space())),
        'b' if in_class => Escape::Code(8),
        'b' => Escape::Look(Look::word_boundary(&word())),
        'B' if !in_class => Escape::Look(Look::no_word_boundary(&word())),
        'p' | 'P' => {
            let set = named_property(cursor, start)?;
            Escape::Set(if c == 'P' { complement(set) } else { set })
        }
        't' => Escape::Code(9),
        'n' => Escape::Code(10),
        'v' => Escape::Code(11),
        'f' => Escape::Code(12),
        'r' => Escape::Code(13),
        'c' => match cursor.next() {
            Some(letter) if letter.is_ascii_alphabetic() => Escape::Code(u32::from(letter) % 32),
            _ => return Err(cursor.syntax(start, r"`\c` needs a letter after it")),
        },
        '0' if !cursor.peek().is_some_and(|c| c.is_ascii_digit()) => Escape::Code(0),
        '0' => return Err(cursor.syntax(start, "octal escapes are no part of ECMA-262 patterns")),
        '1'..='9' if in_class => {
            return Err(cursor.syntax(start, "octal escapes are no part of ECMA-262 patterns"));
        }
        '1'..='9' | 'k' => {
            return Err(cursor.unsupported(
                start,
                "back-reference",
                "a back-reference is not regular",
            ));
        }
        'x' => match hex(cursor, 2) {
            Some(code) => Escape::Code(code),
            None => return Err(cursor.syntax(start, r"`\x` needs two hex digits after it")),
        },
        'u' => Escape::Code(unicode(cursor, start)?),
        c if c.is_ascii_alphabetic() => {
            let message = format!(r"`\{c}` means nothing in ECMA-262 patterns");
            return Err(cursor.syntax(start, &message));
        }
        c => Escape::Code(u32::from(c)),
    })
}

/// Reads exactly `count` hex digits, or nothing.
fn hex(cursor: &mut Cursor<'_>, count: usize) -> Option<u32> {
    let digits = cursor.rest().get(..count)?;
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let code = u32::from_str_radix(digits, 16).ok()?;
    cursor.skip(count);
    Some(code)
}

/// Reads what follows `\u`: four hex digits, perhaps of a surrogate pair, or a code point in braces.
fn unicode(cursor: &mut Cursor<'_>, start: usize) -> Result<u32, Error> {
    if let Some(inside) = cursor.rest().strip_prefix('{') {
        let digits = inside.split('}').next().unwrap_or_default();
        let closed = inside.len() > digits.len();
        let significant = digits.trim_start_matches('0');
        let code =
            if significant.is_empty() { Ok(0) } else { u32::from_str_radix(significant, 16) };
        return match code {
            Ok(code)
                if closed
                    && code <= u32::from(char::MAX)
                    && digits.bytes().all(|b| b.is_ascii_hexdigit())
                    && !digits.is_empty() =>
            {
                cursor.skip(digits.len() + 2);
                Ok(code)
            }
            _ => Err(cursor.syntax(start, r"`\u{` needs a code point in hex and `}` after it")),
        };
    }
    let Some(code) = hex(cursor, 4) else {
        return Err(cursor.syntax(start, r"`\u` needs four hex digits or `{…}` after it"));
    };
    if (0xd800..0xdc00).contains(&code) && cursor.rest().starts_with(r"\u") {
        let before = *cursor;
        cursor.skip(2);
        match hex(cursor, 4) {
            Some(low) if (0xdc00..0xe000).contains(&low) => {
                return Ok(0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00));
            }
            _ => *cursor = before,
        }
    }
    Ok(code)
}

fn named_property(cursor: &mut Cursor<'_>, start: usize) -> Result<CharSet, Error> {
    let inside = cursor.rest().strip_prefix('{').and_then(|rest| rest.split_once('}'));
    let Some((name, _)) = inside else {
        return Err(cursor.syntax(start, r"`\p` needs a property in braces after it"));
    };
    cursor.skip(name.len() + 2);
    property(name).ok_or_else(|| {
        let kind = ErrorKind::UnsupportedFeature { feature: format!("\\p{{{name}}}").into() };
        cursor.error(start, kind, &format!("there is no Unicode property `{name}`"))
    })
}
