//! The formats of JSON Schema 2020-12 (validation, section 7.3) as languages, and of the formats of
//! strings that the OpenAPI Format Registry and `schemars` add those that say what a string is.
//!
//! In goes a name, out comes the language of the strings of that format; the string goal of a schema
//! intersects it with the rest. Each is written as an ECMA-262 pattern after the grammar of its RFC.
//!
//! | format | source | beyond the grammar |
//! | --- | --- | --- |
//! | `date`, `time`, `date-time` | RFC 3339, 5.6 | days of the month, leap years; a second 60 only at 23:59 UTC, on any day |
//! | `duration` | RFC 3339, appendix A | |
//! | `email` | RFC 5321, 4.1.2 `Mailbox` | at most 64 characters before the `@`; a domain is a `hostname`; of the address literals the registered ones |
//! | `idn-email` | RFC 6531, 3.3 | as `email`; a label may have any characters beyond ASCII |
//! | `hostname` | RFC 1123, 2.1 | labels of 63 characters, names of 253; no label with `--` as its third and fourth character |
//! | `ipv4`, `ipv6` | RFC 2673, 3.2; RFC 4291, 2.2 | |
//! | `uri`, `uri-reference` | RFC 3986, appendix A | |
//! | `iri`, `iri-reference` | RFC 3987, 2.2 | |
//! | `uri-template` | RFC 6570, 2, with erratum 6937 | |
//! | `uuid` | RFC 4122, 3 | any version and variant |
//! | `json-pointer` | RFC 6901, 3 | |
//! | `regex` | ECMA-262, 22.2.1, with the flag `u` | groups nest 8 deep at most; no named groups, back-references, `\\0` or `\\k`; of `\\p` the general categories; the ends of a range in a class are ASCII characters as they are; a minimum of a quantifier with two ends is below 100 |
//! | `relative-json-pointer` | its draft, 3 | without index manipulation (`0+1`), which not all versions of the draft have |
//! | `byte` | RFC 4648, 4 | padded, and the bits that pad are 0 |
//! | `base64url` | RFC 4648, 5 | as `byte`, but the padding may be left out |
//! | `char` | OpenAPI | one character |
//! | `int64`, `uint64` | OpenAPI | digits without zeros before them, within the range |
//! | `date-time-local`, `time-local` | OpenAPI; RFC 3339, 5.6 `partial-time` | without a second 60: whether there is one depends on the offset |
//! | `partial-date-time`, `partial-time` | `schemars` | the same |
//! | `ip` | `schemars` | `ipv4` or `ipv6` |
//!
//! Formats of numbers are in [`super::number`]. Formats that say how a string is to be treated, and
//! that every string has, are known and assert nothing: [`is_annotation`].
//!
//! A host name with an A-label (`xn--…`) is never generated, although some are valid: whether one is
//! asks for Punycode and the IDNA tables. That narrows `hostname` and the two e-mail formats; drafts
//! before 7, which do not know A-labels, would also take other labels with those two hyphens. What is
//! left out of a format here is not taken for its negation either, see [`Side`]. One format is
//! refused by name, see [`not_regular`].

mod encoded;
mod internet;
mod syntax;
mod time;

use crate::error::{Error, ErrorKind};
use crate::frontend::ecma::Pattern;
use crate::ids::ExprId;
use crate::ir::Arena;
use crate::ir::chars::Encoding;
use crate::limits::Limits;

/// The formats of the standard that [`format()`] knows.
pub const STANDARD: [&str; 18] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// The other formats that [`format()`] knows.
pub const REGISTERED: [&str; 10] = [
    "base64url",
    "byte",
    "char",
    "date-time-local",
    "int64",
    "ip",
    "partial-date-time",
    "partial-time",
    "time-local",
    "uint64",
];

/// The formats of [`is_annotation`].
pub const ANNOTATIONS: [&str; 4] = ["binary", "commonmark", "html", "password"];

/// Returns whether [`format()`] knows `name`. Names are case-sensitive.
#[must_use]
pub fn is_known(name: &str) -> bool {
    STANDARD.contains(&name) || REGISTERED.contains(&name)
}

/// Returns whether the standard defines the format `name`, known to [`format()`] or not.
#[must_use]
pub fn is_standard(name: &str) -> bool {
    STANDARD.contains(&name) || not_regular(name).is_some()
}

/// Returns whether `name` is a format that every string has by its definition: `binary` is any sequence
/// of octets, `password` a hint to hide the text, and any text is CommonMark and is HTML to a parser.
#[must_use]
pub fn is_annotation(name: &str) -> bool {
    ANNOTATIONS.contains(&name)
}

/// Returns why a standard format has no language here, or `None` if it has one or is no standard format.
#[must_use]
pub fn not_regular(name: &str) -> Option<&'static str> {
    match name {
        "idn-hostname" => {
            Some("the length of a label is that of its Punycode, which is not regular in practice")
        }
        _ => None,
    }
}

/// Which way the language of a format may differ from the format.
///
/// They are equal but for the texts that the table of this module leaves open. Those are of neither side's
/// certain kind: a string that must be of the format is [`Side::Within`], one that must not is not
/// [`Side::Around`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Every text of the language is of the format.
    Within,
    /// Every text of the format is in the language.
    Around,
}

/// Returns the language of the strings of format `name`, spelled in `encoding` (for JSON: without the
/// quotes), or `None` if there is no such format.
///
/// # Errors
///
/// [`ErrorKind::UnsupportedFeature`] for the formats of [`not_regular`];
/// [`ErrorKind::BudgetExceeded`] if the arena is full.
pub fn format(
    arena: &mut Arena,
    name: &str,
    side: Side,
    encoding: Encoding,
) -> Result<Option<ExprId>, Error> {
    if let Some(reason) = not_regular(name) {
        let feature = format!("format `{name}`").into();
        return Err(Error::new(ErrorKind::UnsupportedFeature { feature }, reason));
    }
    let around = side == Side::Around;
    let mut builder = Builder { arena, around, encoding, limits: Limits::default() };
    let language = match name {
        "date" => builder.pattern(time::DATE),
        "time" => builder.time(),
        "date-time" => builder.date_time(),
        "duration" => builder.pattern(&time::duration()),
        "email" => builder.email(false),
        "idn-email" => builder.email(true),
        "hostname" => builder.hostname(),
        "ipv4" => builder.pattern(&internet::ipv4()),
        "ipv6" => builder.pattern(&internet::ipv6(7)),
        "uri" => builder.pattern(&internet::uri(false, false)),
        "uri-reference" => builder.pattern(&internet::uri(false, true)),
        "iri" => builder.pattern(&internet::uri(true, false)),
        "iri-reference" => builder.pattern(&internet::uri(true, true)),
        "uri-template" => builder.pattern(&internet::uri_template()),
        "uuid" => builder.pattern("[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"),
        "json-pointer" => builder.pattern(JSON_POINTER),
        "regex" if around => Ok(Arena::ALL),
        "regex" => builder.regex(),
        "relative-json-pointer" => {
            let index = if around { r"(?:[+-][1-9]\d*)?" } else { "" };
            builder.pattern(&format!(r"(?:0|[1-9]\d*){index}(?:#|{JSON_POINTER})"))
        }
        "byte" => builder.pattern(&encoded::base64("+/", false, around)),
        "base64url" => builder.pattern(&encoded::base64(r"\-_", true, around)),
        "char" => builder.pattern("[^]"),
        "int64" => builder.pattern(&encoded::int64(around)),
        "uint64" => builder.pattern(&encoded::uint64(around)),
        "date-time-local" | "partial-date-time" => builder.pattern(&time::local_date_time(around)),
        "time-local" | "partial-time" => builder.pattern(&time::local_time(around)),
        "ip" => builder.pattern(&format!("{}|{}", internet::ipv4(), internet::ipv6(7))),
        _ => return Ok(None),
    }?;
    builder.arena.check()?;
    Ok(Some(language))
}

const JSON_POINTER: &str = "(?:/(?:[^~/]|~[01])*)*";

/// What a format is built with.
struct Builder<'a> {
    arena: &'a mut Arena,
    /// Whether the language may be greater than the format, not smaller.
    around: bool,
    encoding: Encoding,
    limits: Limits,
}

impl Builder<'_> {
    /// Returns the language of the texts that `pattern` matches from start to end.
    fn pattern(&mut self, pattern: &str) -> Result<ExprId, Error> {
        Pattern::parse(pattern, &self.limits)?.to_whole_expr(
            self.arena,
            self.encoding,
            &self.limits,
        )
    }

    /// Returns the texts of `language` with at most `max` characters.
    fn at_most(&mut self, language: ExprId, max: u32) -> Result<ExprId, Error> {
        let short = self.pattern(&format!("[^]{{0,{max}}}"))?;
        Ok(self.arena.and(&[language, short]))
    }
}

#[cfg(test)]
mod tests;
