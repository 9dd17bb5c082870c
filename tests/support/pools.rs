//! The names, texts and numbers that random schemas and instances are made of.
#![allow(dead_code, reason = "each user takes what it needs")]

use schemac::frontend::json_schema::Draft;
use serde_json::Value;

/// Names of members.
pub(crate) const NAMES: &[&str] = &["a", "b", "ab", "c", "é", "a/b~\"", "", "x1"];

/// Patterns of names, many of which overlap.
pub(crate) const NAME_PATTERNS: &[&str] = &[
    "^a",
    "b$",
    "^[ab]$",
    "",
    "^(a|c)$",
    "^.$",
    "^(?!a)",
    "^[a-c]{1,2}$",
    r"\d",
    "^x",
    "a",
    "é",
    "^(?:ab?|c)$",
];

/// Patterns of strings.
pub(crate) const PATTERNS: &[&str] = &[
    "^a",
    "b$",
    "^[ab]*$",
    "a|b",
    "^(a|ab)*$",
    "^.{2}$",
    "^.{1,3}$",
    r"\d",
    r"^\d+$",
    r"^\w*$",
    r"\s",
    "^[^a]*$",
    "^(?!a)",
    "(?=.*b)a",
    "^(?=.*a)(?=.*b).*$",
    "(?<=a)b",
    "(?<!a)b",
    r"\bab\b",
    r"\Ba",
    r"^\p{L}+$",
    r"^\p{Lu}",
    r"\P{L}",
    "^[a-c]{2,4}$",
    "^(?:aa)+$",
    "^(?:aaa)+$",
    "^$",
    "",
    r"^-?\d{1,3}(\.\d)?$",
    r"^[\w-]+$",
    "^a?b?c?$",
    "^(?!.*aa)",
    r"^\S*$",
    r"^[\u0061-\u0063]+$",
    r"^\x61",
    "é",
    r"^[^\d\s]$",
    "^[0-9a-f]{3,30}$",
    r"\p{Script=Greek}",
];

/// Strings, many of which match some patterns.
pub(crate) const STRINGS: &[&str] = &[
    "",
    "a",
    "b",
    "ab",
    "ba",
    "abc",
    "aa",
    "aaa",
    "aab",
    "é",
    "😀",
    "1",
    "12",
    "-3.5",
    "A",
    " ",
    "a b",
    "a-b",
    "\n",
    "\"\\",
    "aé",
    "c",
    "ca",
    "éb",
    "aaaaaa",
    "x1",
    "α",
    "\u{7f}\u{2028}",
];

/// Numbers, also in other spellings than the canonical one.
pub(crate) const NUMBERS: &[&str] = &[
    "0", "1", "2", "3", "-1", "-2", "5", "10", "0.5", "1.5", "2.5", "-0.5", "100", "0.1", "1e2",
    "1.0", "12", "-10", "0.25", "2000006", "-0", "1e9",
];

/// Values of `multipleOf`.
pub(crate) const STEPS: &[&str] = &[
    "1", "2", "3", "0.5", "0.1", "1.5", "0.25", "7", "100", "1000003", "1e9", "0.01", "2.5", "1.0",
];

/// A format, with the first draft that has it, and texts that are of it or almost are.
pub(crate) struct Format {
    pub(crate) name: &'static str,
    pub(crate) since: Draft,
    pub(crate) texts: &'static [&'static str],
}

const fn format(name: &'static str, since: Draft, texts: &'static [&'static str]) -> Format {
    Format { name, since, texts }
}

/// Formats of strings that both sides assert.
pub(crate) const FORMATS: &[Format] = &[
    format("date", Draft::Draft7, &["2024-02-29", "2023-02-29", "0000-01-01", "2024-13-01"]),
    format("time", Draft::Draft7, &["12:00:00Z", "23:59:60Z", "12:00:60Z", "01:02:03.5+01:00"]),
    format(
        "date-time",
        Draft::Draft4,
        &["2024-02-29T12:00:00Z", "2024-02-29t12:00:00.25-08:00", "2024-02-30T12:00:00Z"],
    ),
    format("duration", Draft::Draft201909, &["P1D", "PT1H", "P1W", "P", "P1YT", "P1Y2M3DT4H5M6S"]),
    format("email", Draft::Draft4, &["a@b", "a@b.c", "a", "@b", "a b@c", "\"a b\"@c"]),
    format("hostname", Draft::Draft6, &["a", "a.b", "-a", "a-b.c", "a..b"]),
    format("ipv4", Draft::Draft4, &["1.2.3.4", "0.0.0.0", "256.1.1.1", "1.2.3"]),
    format(
        "ipv6",
        Draft::Draft4,
        &["::", "::1", "1::2", "1:2:3:4:5:6:7:8", "::1.2.3.4", "1::2::3"],
    ),
    format("uri", Draft::Draft4, &["a:b", "http://a/b?c#d", "a", "http://[::1]/", "a:%41", "a:%4"]),
    format("uri-reference", Draft::Draft6, &["", "a", "/b", "#c", "a b", "?d", "//e"]),
    format("iri", Draft::Draft7, &["a:é", "a:b", "é:b", "http://é/"]),
    format("iri-reference", Draft::Draft7, &["é", "", "a b"]),
    format("uri-template", Draft::Draft6, &["", "a{b}", "{", "{+b,c*}", "{b:3}"]),
    format(
        "uuid",
        Draft::Draft201909,
        &[
            "00000000-0000-0000-0000-000000000000",
            "0000-0000",
            "12345678-ABCD-abcd-0000-123456789abc",
        ],
    ),
    format("json-pointer", Draft::Draft6, &["", "/a", "/~0", "/~", "a", "//"]),
    format("relative-json-pointer", Draft::Draft7, &["0", "1/a", "2#", "01", "-1", "0/~"]),
    format("regex", Draft::Draft4, &["a", "(", "[ab]*", ""]),
];

/// Returns the number that `text` spells.
pub(crate) fn number(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}
