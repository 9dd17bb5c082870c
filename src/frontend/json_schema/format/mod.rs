//! The formats of JSON Schema 2020-12 (validation, section 7.3) as languages.
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
//! | `relative-json-pointer` | its draft, 3 | without index manipulation (`0+1`), which not all versions of the draft have |
//!
//! A host name with an A-label (`xn--…`) is never generated, although some are valid: whether one is
//! asks for Punycode and the IDNA tables. That narrows `hostname` and the two e-mail formats; drafts
//! before 7, which do not know A-labels, would also take other labels with those two hyphens. Two
//! formats are refused by name, see [`not_regular`].

mod internet;
mod time;

use crate::error::{Error, ErrorKind};
use crate::frontend::ecma::Pattern;
use crate::ids::ExprId;
use crate::ir::Arena;
use crate::ir::chars::Encoding;
use crate::limits::Limits;

/// The names of the formats that [`format()`] knows.
pub const NAMES: [&str; 17] = [
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
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// Returns whether [`format()`] knows `name`. Names are case-sensitive.
#[must_use]
pub fn is_known(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Returns why a standard format has no language here, or `None` if it has one or is no standard format.
#[must_use]
pub fn not_regular(name: &str) -> Option<&'static str> {
    match name {
        "regex" => Some("the groups of a regular expression nest, which is not regular"),
        "idn-hostname" => {
            Some("the length of a label is that of its Punycode, which is not regular in practice")
        }
        _ => None,
    }
}

/// Returns the language of the strings of format `name`, spelled in `encoding` (for JSON: without the
/// quotes), or `None` if there is no such format.
///
/// # Errors
///
/// [`ErrorKind::UnsupportedFeature`] for the formats of [`not_regular`];
/// [`ErrorKind::BudgetExceeded`] if the arena is full.
pub fn format(arena: &mut Arena, name: &str, encoding: Encoding) -> Result<Option<ExprId>, Error> {
    if let Some(reason) = not_regular(name) {
        let feature = format!("format `{name}`").into();
        return Err(Error::new(ErrorKind::UnsupportedFeature { feature }, reason));
    }
    let mut builder = Builder { arena, encoding, limits: Limits::default() };
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
        "relative-json-pointer" => builder.pattern(&format!(r"(?:0|[1-9]\d*)(?:#|{JSON_POINTER})")),
        _ => return Ok(None),
    }?;
    builder.arena.check()?;
    Ok(Some(language))
}

const JSON_POINTER: &str = "(?:/(?:[^~/]|~[01])*)*";

/// What a format is built with.
struct Builder<'a> {
    arena: &'a mut Arena,
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
