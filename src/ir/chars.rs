//! Sets of characters, and their encodings as bytes: UTF-8, or the inside of a JSON string.
//!
//! A grammar that speaks of characters (a regex, a `pattern`, a GBNF class) is built once over
//! [`CharSet`]s and an [`Encoding`]. Decoding is a function from bytes to characters, so taking the
//! preimage commutes with union, intersection and complement: `pattern` and length constraints may
//! be combined on the encoded bytes, as long as complements are intersected with [`any_text`].

use regex_syntax::utf8::Utf8Sequences;

use crate::ids::ExprId;
use crate::ir::{Arena, ByteSet};

pub use regex_syntax::hir::{ClassUnicode as CharSet, ClassUnicodeRange as CharRange};

/// How a character is written in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum Encoding {
    /// UTF-8.
    Utf8,
    /// The inside of a JSON string, where each character has exactly one spelling: raw UTF-8 but
    /// for `\"`, `\\`, `\b \f \n \r \t` and `\u00xx` (lower case) for the other controls.
    JsonCanonical,
    /// The inside of a JSON string with every spelling that RFC 8259 section 7 allows: raw UTF-8,
    /// short escapes, `\uXXXX` in either case, surrogate pairs. A lone surrogate is no character.
    JsonAny,
}

/// The single-letter escapes of RFC 8259 section 7.
const SHORT: [(char, u8); 8] = [
    ('"', b'"'),
    ('\\', b'\\'),
    ('/', b'/'),
    ('\u{8}', b'b'),
    ('\u{c}', b'f'),
    ('\n', b'n'),
    ('\r', b'r'),
    ('\t', b't'),
];

/// Returns the set of all characters.
#[must_use]
pub fn all_chars() -> CharSet {
    CharSet::new([CharRange::new('\0', char::MAX)])
}

/// Returns the set of these ranges, both ends included.
#[must_use]
pub fn char_set(ranges: &[(char, char)]) -> CharSet {
    CharSet::new(ranges.iter().map(|&(a, b)| CharRange::new(a, b)))
}

/// Returns the language of one character of `set`, written in `encoding`.
pub fn char_class(arena: &mut Arena, set: &CharSet, encoding: Encoding) -> ExprId {
    match encoding {
        Encoding::Utf8 => utf8_class(arena, set),
        Encoding::JsonCanonical | Encoding::JsonAny => json_class(arena, set, encoding),
    }
}

/// Returns the language of all texts in `encoding` (for JSON: without the quotes).
pub fn any_text(arena: &mut Arena, encoding: Encoding) -> ExprId {
    let any = char_class(arena, &all_chars(), encoding);
    arena.star(any)
}

/// Returns the language of exactly `text`, in every spelling of `encoding`.
pub fn text(arena: &mut Arena, text: &str, encoding: Encoding) -> ExprId {
    let mut result = Arena::EPSILON;
    for c in text.chars().rev() {
        let one = char_class(arena, &char_set(&[(c, c)]), encoding);
        result = arena.concat2(one, result);
    }
    result
}

/// Appends the canonical JSON spelling of `text`, without quotes, to `out`.
pub fn write_json_canonical(text: &str, out: &mut Vec<u8>) {
    for c in text.chars() {
        match SHORT.iter().find(|&&(short, _)| short == c && c != '/') {
            Some(&(_, letter)) => out.extend_from_slice(&[b'\\', letter]),
            None if c < ' ' => out.extend_from_slice(format!("\\u{:04x}", u32::from(c)).as_bytes()),
            None => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// One node of a UTF-8 decoder for a set: leading byte range, then the sequences after it.
fn utf8_class(arena: &mut Arena, set: &CharSet) -> ExprId {
    let mut ascii = ByteSet::EMPTY;
    let mut long: Vec<Vec<(u8, u8)>> = Vec::new();
    for range in set.iter() {
        for sequence in Utf8Sequences::new(range.start(), range.end()) {
            let ranges = sequence.as_slice();
            match ranges {
                [one] => ascii = ascii.union(&ByteSet::range(one.start, one.end)),
                _ => long.push(ranges.iter().map(|r| (r.start, r.end)).collect()),
            }
        }
    }
    let mut parts = vec![arena.bytes(ascii)];
    parts.push(sequence_tree(arena, &long, 0));
    arena.alt(&parts)
}

/// Builds the trie of sorted byte-range sequences from column `depth`; at most four deep.
fn sequence_tree(arena: &mut Arena, sequences: &[Vec<(u8, u8)>], depth: usize) -> ExprId {
    let mut branches: Vec<(ByteSet, ExprId)> = Vec::new();
    let mut rest = sequences;
    while let Some(first) = rest.first() {
        let lead = first[depth];
        let count = rest.iter().take_while(|s| s[depth] == lead).count();
        let (group, after) = rest.split_at(count);
        let tail = if first.len() == depth + 1 {
            Arena::EPSILON
        } else {
            sequence_tree(arena, group, depth + 1)
        };
        let bytes = ByteSet::range(lead.0, lead.1);
        match branches.iter_mut().find(|(_, t)| *t == tail) {
            Some((set, _)) => *set = set.union(&bytes),
            None => branches.push((bytes, tail)),
        }
        rest = after;
    }
    let parts: Vec<_> = branches
        .into_iter()
        .map(|(set, tail)| {
            let head = arena.bytes(set);
            arena.concat2(head, tail)
        })
        .collect();
    arena.alt(&parts)
}

fn json_class(arena: &mut Arena, set: &CharSet, encoding: Encoding) -> ExprId {
    let mut raw = set.clone();
    raw.difference(&char_set(&[('\0', '\x1f'), ('"', '"'), ('\\', '\\')]));
    let raw = utf8_class(arena, &raw);
    let contains = |c: char| set.iter().any(|r| r.start() <= c && c <= r.end());
    let any = encoding == Encoding::JsonAny;
    let letters: ByteSet = SHORT
        .iter()
        .filter(|&&(c, _)| (any || c != '/') && contains(c))
        .map(|&(_, letter)| letter)
        .collect();
    let letters = arena.bytes(letters);
    let hex = if any { escapes_any(arena, set) } else { escapes_canonical(arena, set) };
    let hex = {
        let u = arena.byte(b'u');
        arena.concat2(u, hex)
    };
    let after = arena.alt2(letters, hex);
    let escaped = {
        let backslash = arena.byte(b'\\');
        arena.concat2(backslash, after)
    };
    arena.alt2(raw, escaped)
}

/// The four digits of the controls of `set` that have no short escape.
fn escapes_canonical(arena: &mut Arena, set: &CharSet) -> ExprId {
    let mut digits = Vec::new();
    for range in set.iter().take_while(|r| r.start() < ' ') {
        for c in range.start()..=range.end().min('\x1f') {
            if !SHORT.iter().any(|&(short, _)| short == c) {
                digits.push(arena.literal(format!("{:04x}", u32::from(c)).as_bytes()));
            }
        }
    }
    arena.alt(&digits)
}

/// The digits after `\u` of every character of `set`, with surrogate pairs.
fn escapes_any(arena: &mut Arena, set: &CharSet) -> ExprId {
    let mut basic: Vec<(u32, u32)> = Vec::new();
    let mut astral: Vec<(u32, u32)> = Vec::new();
    for range in set.iter() {
        let (start, end) = (u32::from(range.start()), u32::from(range.end()));
        if start < 0x1_0000 {
            // Two ranges around the surrogates, which are no characters.
            basic.push((start, end.min(0xd7ff)));
            basic.push((start.max(0xe000), end.min(0xffff)));
        }
        if end >= 0x1_0000 {
            astral.push((start.max(0x1_0000) - 0x1_0000, end - 0x1_0000));
        }
    }
    basic.retain(|(start, end)| start <= end);
    let mut parts = vec![hex_ranges(arena, &basic, 4)];
    // Surrogate pairs: high ten bits, then low ten bits, grouped by equal low parts.
    let mut pairs: Vec<(u32, u32, (u32, u32))> = Vec::new();
    for &(start, end) in &astral {
        let (first, last) = (start >> 10, end >> 10);
        if first == last {
            pairs.push((first, first, (start & 0x3ff, end & 0x3ff)));
            continue;
        }
        let low = u32::from(start & 0x3ff != 0);
        let high = u32::from(end & 0x3ff != 0x3ff);
        if low == 1 {
            pairs.push((first, first, (start & 0x3ff, 0x3ff)));
        }
        if first + low <= last - high {
            pairs.push((first + low, last - high, (0, 0x3ff)));
        }
        if high == 1 {
            pairs.push((last, last, (0, end & 0x3ff)));
        }
    }
    for (first, last, (low, high)) in pairs {
        let head = hex_ranges(arena, &[(0xd800 + first, 0xd800 + last)], 4);
        let tail = hex_ranges(arena, &[(0xdc00 + low, 0xdc00 + high)], 4);
        let u = arena.literal(b"\\u");
        parts.push(arena.concat(&[head, u, tail]));
    }
    arena.alt(&parts)
}

/// The numbers of sorted disjoint `ranges` as exactly `digits` (at most four) hex digits.
fn hex_ranges(arena: &mut Arena, ranges: &[(u32, u32)], digits: u32) -> ExprId {
    if digits == 0 {
        return if ranges.is_empty() { Arena::EMPTY } else { Arena::EPSILON };
    }
    let width = 1_u32 << (4 * (digits - 1));
    if let [(0, end)] = *ranges
        && end == 16 * width - 1
    {
        // All of them: without this, every number of four digits would be visited.
        let any: ByteSet = (b'0'..=b'9').chain(b'a'..=b'f').chain(b'A'..=b'F').collect();
        let any = arena.bytes(any);
        let tail = hex_ranges(arena, &[(0, width - 1)], digits - 1);
        return arena.concat2(any, tail);
    }
    let mut branches: Vec<(ByteSet, ExprId)> = Vec::new();
    for digit in 0..16_u32 {
        let (low, high) = (digit * width, digit * width + width - 1);
        let inside: Vec<_> = ranges
            .iter()
            .filter(|&&(start, end)| start <= high && end >= low)
            .map(|&(start, end)| (start.max(low) - low, end.min(high) - low))
            .collect();
        if inside.is_empty() {
            continue;
        }
        let tail = hex_ranges(arena, &inside, digits - 1);
        let bytes: ByteSet = char::from_digit(digit, 16)
            .into_iter()
            .flat_map(|c| [c.to_ascii_lowercase(), c.to_ascii_uppercase()])
            .filter_map(|c| u8::try_from(c).ok())
            .collect();
        match branches.iter_mut().find(|(_, t)| *t == tail) {
            Some((set, _)) => *set = set.union(&bytes),
            None => branches.push((bytes, tail)),
        }
    }
    let parts: Vec<_> = branches
        .into_iter()
        .map(|(set, tail)| {
            let head = arena.bytes(set);
            arena.concat2(head, tail)
        })
        .collect();
    arena.alt(&parts)
}
