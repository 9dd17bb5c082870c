//! The options of JSON, the same for every command that compiles.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use schemac::Compiler;
use schemac::frontend::json_schema::{
    Draft, Escapes, Formats, JsonOptions, PropertyOrder, Retrieve, Whitespace,
};

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
    /// known; it says nothing.
    #[arg(long, value_name = "POLICY", default_value = "assert",
          value_parser = PossibleValuesParser::new(["assert", "assert-known", "annotate"]).map(formats))]
    pub formats: Formats,

    /// The draft of schemas that do not name theirs.
    #[arg(long, value_name = "DRAFT",
          value_parser = PossibleValuesParser::new(["4", "6", "7", "2019-09", "2020-12"]).map(draft))]
    pub draft: Option<Draft>,

    /// Where other documents are that schemas refer to: addresses that begin with URI are files in
    /// FOLDER. May be given several times. Nothing is fetched.
    #[arg(long, value_name = "URI=FOLDER", value_parser = documents)]
    pub documents: Vec<(String, PathBuf)>,

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

fn documents(text: &str) -> Result<(String, PathBuf), String> {
    let (uri, folder) = text.rsplit_once('=').ok_or("expected URI=FOLDER")?;
    Ok((uri.to_owned(), PathBuf::from(folder)))
}

fn draft(name: String) -> Draft {
    draft_named(&name).unwrap_or(Draft::Draft202012)
}

/// Folders with the documents of some addresses.
struct Folders(Vec<(String, PathBuf)>);

impl Retrieve for Folders {
    fn retrieve(&self, uri: &str) -> Option<String> {
        let mut places = self.0.iter();
        places.find_map(|(start, folder)| {
            let rest = Path::new(uri.strip_prefix(start)?.trim_start_matches('/'));
            // An address does not lead out of its folder.
            let inside = rest.components().all(|part| matches!(part, Component::Normal(_)));
            inside.then(|| std::fs::read_to_string(folder.join(rest)).ok())?
        })
    }
}

impl JsonArgs {
    /// Returns the compiler with these options.
    pub(crate) fn apply(&self, compiler: Compiler) -> Compiler {
        let compiler = compiler.json_options(self.options());
        if self.documents.is_empty() {
            return compiler;
        }
        compiler.documents(Arc::new(Folders(self.documents.clone())))
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
                    --formats assert-known --draft 2019-09 --lenient --closed-objects \
                    --one-of-as-any-of";
        let expected = JsonOptions::default()
            .property_order(PropertyOrder::Any)
            .whitespace(Whitespace::Pretty(4))
            .escapes(Escapes::Canonical)
            .formats(Formats::AssertKnown)
            .draft(Draft::Draft201909)
            .lenient(true)
            .closed_objects(true)
            .one_of_as_any_of(true);
        assert_eq!(options(&args.split_whitespace().collect::<Vec<_>>()), expected);
    }

    #[test]
    fn documents_are_found_inside_their_folder_only() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let line = Line::try_parse_from([
            "x",
            "--documents",
            &format!("http://a.example/x={}", root.join("schemas").display()),
        ]);
        let folders = Folders(line.unwrap().json.documents);
        assert!(folders.retrieve("http://a.example/x/person.json").is_some());
        for outside in [
            "http://a.example/x/../Cargo.toml",
            "http://b.example/person.json",
            "http://a.example/x/no.json",
        ] {
            assert_eq!(folders.retrieve(outside), None, "{outside}");
        }
        assert!(Line::try_parse_from(["x", "--documents", "folder"]).is_err());
    }

    #[test]
    fn an_unknown_value_is_refused() {
        assert!(Line::try_parse_from(["x", "--whitespace", "none"]).is_err());
    }
}
