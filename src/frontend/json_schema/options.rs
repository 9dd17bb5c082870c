//! The choices that the standard leaves open, with their defaults, and the switches that depart from
//! it on request.

use super::number::IntegerSpelling;

/// An edition of the JSON Schema standard.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Draft {
    /// Draft 4.
    #[serde(rename = "4")]
    Draft4,
    /// Draft 6.
    #[serde(rename = "6")]
    Draft6,
    /// Draft 7.
    #[serde(rename = "7")]
    Draft7,
    /// Draft 2019-09.
    #[serde(rename = "2019-09")]
    Draft201909,
    /// Draft 2020-12.
    #[serde(rename = "2020-12")]
    Draft202012,
}

impl Draft {
    /// Returns the draft whose meta-schema has this address, with or without an empty fragment.
    #[must_use]
    pub fn from_meta_schema(uri: &str) -> Option<Self> {
        let uri = uri.strip_suffix('#').unwrap_or(uri);
        let path = uri.strip_prefix("http://").or_else(|| uri.strip_prefix("https://"))?;
        Some(match path {
            "json-schema.org/draft-04/schema" => Self::Draft4,
            "json-schema.org/draft-06/schema" => Self::Draft6,
            "json-schema.org/draft-07/schema" => Self::Draft7,
            "json-schema.org/draft/2019-09/schema" => Self::Draft201909,
            "json-schema.org/draft/2020-12/schema" | "json-schema.org/schema" => Self::Draft202012,
            _ => return None,
        })
    }
}

/// Where white space may stand in a document. None stands before it or after it, nor before `,` and
/// `:`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Whitespace {
    /// None at all.
    Compact,
    /// One space after every `,` and `:`, as Python's `json.dumps` writes.
    Spaced,
    /// After `{ [ , :` and before `} ]`, nothing, one space, or a line break with an indentation of
    /// at most [`Whitespace::MAX_INDENT`] spaces and tabs.
    #[default]
    Flexible,
    /// Every member and element on its own line, indented by this many spaces for each level, and
    /// one space after `:`; empty objects and arrays without a break.
    Pretty(u8),
}

impl Whitespace {
    /// The greatest indentation under [`Whitespace::Flexible`]: sixteen levels of four spaces.
    pub const MAX_INDENT: u32 = 64;
}

/// Which order the members of an object stand in.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PropertyOrder {
    /// The order of the schema: names by their first occurrence in a walk of the schema in the order
    /// of its text (targets of references where they are referenced), then names that only
    /// `required` and the like mention, then all others.
    #[default]
    Declared,
    /// Any.
    Any,
}

/// How characters of string values may be spelled. Names and values that the schema itself spells
/// (`properties`, `enum`, `const`) are always canonical.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Escapes {
    /// In every way that RFC 8259 allows.
    #[default]
    Any,
    /// In one way: raw, but for `"`, `\` and control characters, which have their shortest escape.
    Canonical,
}

/// What `format` does.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Formats {
    /// It is enforced; a format that is not known, or cannot be enforced, is an error.
    #[default]
    Assert,
    /// It is enforced where it is known; others are annotations, and reported.
    AssertKnown,
    /// It is enforced where the standard defines it; others, those of OpenAPI too, are annotations, and
    /// reported.
    AssertStandard,
    /// It is an annotation.
    Annotate,
}

/// What becomes of a vocabulary that a meta-schema requires, or a meta-schema that is not known.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Vocabularies {
    /// It is an error: nobody knows what it asserts.
    #[default]
    Known,
    /// It asserts nothing, and is reported.
    Any,
}

/// The choices of compiling a JSON Schema.
///
/// ```
/// use schemac::frontend::json_schema::{JsonOptions, Whitespace};
///
/// let options = JsonOptions::default().whitespace(Whitespace::Compact).lenient(true);
/// assert_eq!(options.whitespace, Whitespace::Compact);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct JsonOptions {
    /// The draft of schemas without a `$schema`; `None` is 2020-12, with the boolean
    /// `exclusiveMinimum` of draft 4 and the array form of `items` of 2019-09 read as there.
    pub draft: Option<Draft>,
    /// White space. Default [`Whitespace::Flexible`].
    pub whitespace: Whitespace,
    /// The order of members. Default [`PropertyOrder::Declared`].
    pub property_order: PropertyOrder,
    /// Spellings of characters. Default [`Escapes::Any`].
    pub escapes: Escapes,
    /// What `format` does. Default [`Formats::Assert`].
    pub formats: Formats,
    /// How integers are written. Default [`IntegerSpelling::Digits`].
    pub integers: IntegerSpelling,
    /// What becomes of unknown vocabularies. Default [`Vocabularies::Known`].
    pub vocabularies: Vocabularies,
    /// Whether what cannot be enforced exactly is left out and listed in
    /// [`crate::ir::Grammar::departures`]. Default no: it is an error.
    pub lenient: bool,
    /// A departure from the standard: an object whose schema declares members, and does not say
    /// which others it takes, takes none. Default no.
    pub closed_objects: bool,
    /// A departure from the standard: `oneOf` is read as `anyOf`. Default no.
    pub one_of_as_any_of: bool,
}

impl JsonOptions {
    /// Sets [`JsonOptions::draft`].
    #[must_use]
    pub const fn draft(mut self, draft: Draft) -> Self {
        self.draft = Some(draft);
        self
    }

    /// Sets [`JsonOptions::whitespace`].
    #[must_use]
    pub const fn whitespace(mut self, whitespace: Whitespace) -> Self {
        self.whitespace = whitespace;
        self
    }

    /// Sets [`JsonOptions::property_order`].
    #[must_use]
    pub const fn property_order(mut self, order: PropertyOrder) -> Self {
        self.property_order = order;
        self
    }

    /// Sets [`JsonOptions::escapes`].
    #[must_use]
    pub const fn escapes(mut self, escapes: Escapes) -> Self {
        self.escapes = escapes;
        self
    }

    /// Sets [`JsonOptions::formats`].
    #[must_use]
    pub const fn formats(mut self, formats: Formats) -> Self {
        self.formats = formats;
        self
    }

    /// Sets [`JsonOptions::integers`].
    #[must_use]
    pub const fn integers(mut self, spelling: IntegerSpelling) -> Self {
        self.integers = spelling;
        self
    }

    /// Sets [`JsonOptions::vocabularies`].
    #[must_use]
    pub const fn vocabularies(mut self, vocabularies: Vocabularies) -> Self {
        self.vocabularies = vocabularies;
        self
    }

    /// Sets [`JsonOptions::lenient`].
    #[must_use]
    pub const fn lenient(mut self, lenient: bool) -> Self {
        self.lenient = lenient;
        self
    }

    /// Sets [`JsonOptions::closed_objects`].
    #[must_use]
    pub const fn closed_objects(mut self, closed: bool) -> Self {
        self.closed_objects = closed;
        self
    }

    /// Sets [`JsonOptions::one_of_as_any_of`].
    #[must_use]
    pub const fn one_of_as_any_of(mut self, as_any_of: bool) -> Self {
        self.one_of_as_any_of = as_any_of;
        self
    }
}
