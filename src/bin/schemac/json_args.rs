//! The options of JSON, the same for every command that compiles.

use std::sync::Arc;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use schemac::Compiler;
use schemac::frontend::json_schema::number::IntegerSpelling;
use schemac::frontend::json_schema::{
    Draft, Escapes, Formats, JsonOptions, PropertyOrder, Vocabularies, Whitespace,
};

use crate::documents::DocumentArgs;
use crate::exit::Failure;

/// How JSON Schemas are read, and how JSON is written.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "JSON")]
pub(crate) struct JsonArgs {
    /// The order of an object's members.
    #[arg(long, value_name = "ORDER", default_value = "declared",
          value_parser = PossibleValuesParser::new(["declared", "any"]).map(property_order))]
    pub property_order: PropertyOrder,

    /// Where white space may stand: nowhere; one space after `,` and `:`; nothing, a space or an
    /// indented line break at every place; or each member on its own line.
    #[arg(long, value_name = "STYLE", default_value = "flexible",
          value_parser = PossibleValuesParser::new(["compact", "spaced", "flexible", "pretty"]).map(whitespace))]
    pub whitespace: Whitespace,

    /// Spaces of each level of `--whitespace pretty`.
    #[arg(long, value_name = "NUMBER", default_value_t = 2, value_parser = clap::value_parser!(u8).range(0..=16))]
    pub indent: u8,

    /// How characters of strings may be spelled: in any way that JSON allows, or raw wherever
    /// possible.
    #[arg(long, value_name = "STYLE", default_value = "any",
          value_parser = PossibleValuesParser::new(["any", "canonical"]).map(escapes))]
    pub escapes: Escapes,

    /// What `format` does: it is enforced and an unknown one refused; it is enforced where it is
    /// known; it is enforced where the standard defines it; it says nothing.
    #[arg(long, value_name = "POLICY", default_value = "assert",
          value_parser = PossibleValuesParser::new(["assert", "assert-known", "assert-standard", "annotate"]).map(formats))]
    pub formats: Formats,

    /// The draft of schemas that do not name theirs.
    #[arg(long, value_name = "DRAFT",
          value_parser = PossibleValuesParser::new(["4", "6", "7", "2019-09", "2020-12"]).map(draft))]
    pub draft: Option<Draft>,

    #[command(flatten)]
    pub documents: DocumentArgs,

    /// How integers are written: as digits; or also with a fraction of zeros, `1.0`; or also with an
    /// exponent, `1e2`.
    #[arg(long, value_name = "STYLE", default_value = "digits",
          value_parser = PossibleValuesParser::new(["digits", "fraction", "scientific"]).map(integers))]
    pub integers: IntegerSpelling,

    /// What becomes of meta-schemas, and of vocabularies that one requires, which are not known: they
    /// are an error, or assert nothing and are reported.
    #[arg(long, value_name = "POLICY", default_value = "known",
          value_parser = PossibleValuesParser::new(["known", "any"]).map(vocabularies))]
    pub vocabularies: Vocabularies,

    /// Leave out what cannot be enforced exactly, and report it, instead of refusing the schema.
    #[arg(long)]
    pub lenient: bool,

    /// Objects that declare members and do not say which others they take, take none.
    #[arg(long)]
    pub closed_objects: bool,

    /// Read `oneOf` as `anyOf`.
    #[arg(long)]
    pub one_of_as_any_of: bool,
}

// Each of these gets only the names that its parser lists; the last one needs no test.

fn property_order(name: String) -> PropertyOrder {
    if name == "any" { PropertyOrder::Any } else { PropertyOrder::Declared }
}

fn whitespace(name: String) -> Whitespace {
    match name.as_str() {
        "compact" => Whitespace::Compact,
        "spaced" => Whitespace::Spaced,
        "pretty" => Whitespace::Pretty(0),
        _ => Whitespace::Flexible,
    }
}

fn escapes(name: String) -> Escapes {
    if name == "canonical" { Escapes::Canonical } else { Escapes::Any }
}

fn formats(name: String) -> Formats {
    match name.as_str() {
        "annotate" => Formats::Annotate,
        "assert-known" => Formats::AssertKnown,
        "assert-standard" => Formats::AssertStandard,
        _ => Formats::Assert,
    }
}

/// Returns the draft of this name; also the name of a folder of the official suite without its
/// `draft`.
pub(crate) fn draft_named(name: &str) -> Option<Draft> {
    Some(match name {
        "4" => Draft::Draft4,
        "6" => Draft::Draft6,
        "7" => Draft::Draft7,
        "2019-09" => Draft::Draft201909,
        "2020-12" => Draft::Draft202012,
        _ => return None,
    })
}

fn integers(name: String) -> IntegerSpelling {
    match name.as_str() {
        "fraction" => IntegerSpelling::Fraction,
        "scientific" => IntegerSpelling::Scientific,
        _ => IntegerSpelling::Digits,
    }
}

fn vocabularies(name: String) -> Vocabularies {
    if name == "any" { Vocabularies::Any } else { Vocabularies::Known }
}

fn draft(name: String) -> Draft {
    draft_named(&name).unwrap_or(Draft::Draft202012)
}

impl JsonArgs {
    /// Returns the compiler with these options and documents.
    pub(crate) fn apply(&self, compiler: Compiler) -> Result<Compiler, Failure> {
        let compiler = compiler.json_options(self.options());
        match self.documents.read()? {
            Some(documents) => Ok(compiler.documents(Arc::new(documents))),
            None => Ok(compiler),
        }
    }

    /// Returns the options of the library.
    pub(crate) fn options(&self) -> JsonOptions {
        let whitespace = match self.whitespace {
            Whitespace::Pretty(_) => Whitespace::Pretty(self.indent),
            other => other,
        };
        let options = JsonOptions::default()
            .property_order(self.property_order)
            .whitespace(whitespace)
            .escapes(self.escapes)
            .formats(self.formats)
            .integers(self.integers)
            .vocabularies(self.vocabularies)
            .lenient(self.lenient)
            .closed_objects(self.closed_objects)
            .one_of_as_any_of(self.one_of_as_any_of);
        match self.draft {
            Some(draft) => options.draft(draft),
            None => options,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        json: JsonArgs,
    }

    fn options(args: &[&str]) -> JsonOptions {
        Line::try_parse_from([&["x"], args].concat()).unwrap().json.options()
    }

    #[test]
    fn no_option_gives_the_defaults_of_the_library() {
        assert_eq!(options(&[]), JsonOptions::default());
    }

    #[test]
    fn every_option_reaches_the_library() {
        let args = "--property-order any --whitespace pretty --indent 4 --escapes canonical \
                    --formats assert-known --draft 2019-09 --integers scientific \
                    --vocabularies any --lenient --closed-objects \
                    --one-of-as-any-of";
        let expected = JsonOptions::default()
            .property_order(PropertyOrder::Any)
            .whitespace(Whitespace::Pretty(4))
            .escapes(Escapes::Canonical)
            .formats(Formats::AssertKnown)
            .integers(IntegerSpelling::Scientific)
            .vocabularies(Vocabularies::Any)
            .draft(Draft::Draft201909)
            .lenient(true)
            .closed_objects(true)
            .one_of_as_any_of(true);
        assert_eq!(options(&args.split_whitespace().collect::<Vec<_>>()), expected);
    }

    #[test]
    fn an_unknown_value_is_refused() {
        assert!(Line::try_parse_from(["x", "--whitespace", "none"]).is_err());
    }
}
