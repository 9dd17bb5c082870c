//! What README and documentation list of formats, and of what is refused, is true.

use schemac::frontend::json_schema::{JsonOptions, compile, format, number};
use schemac::{ErrorKind, Limits};

const JSON_SCHEMA: &str = include_str!("../../docs/json_schema.md");

fn row_of(document: &'static str, title: &str) -> Vec<&'static str> {
    let line = document.lines().find(|line| line.starts_with(&format!("| {title}"))).unwrap();
    line.split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_formats_of_the_documentation_are_the_known_ones() {
    // `schemars` is in the title of two rows.
    let listed = |title| row_of(JSON_SCHEMA, title).into_iter().filter(|&w| w != "schemars");
    let is = |title, names: &[&str]| assert!(listed(title).eq(names.iter().copied()), "{title}");
    is("of the standard |", &format::STANDARD);
    is("of strings, registered", &format::REGISTERED);
    is("of numbers, registered", &number::FORMATS);
    is("known to assert nothing |", &format::ANNOTATIONS);
    for name in listed("not enforced |") {
        assert!(format::not_regular(name).is_some(), "{name}");
    }
}

#[test]
fn what_is_listed_as_refused_is() {
    for schema in [
        r#"{"format":"made-up"}"#,
        r#"{"format":"idn-hostname"}"#,
        r#"{"not":{"type":"array","uniqueItems":true}}"#,
        r#"{"pattern":"(a)\\1"}"#,
    ] {
        let error = compile(schema, &JsonOptions::default(), &Limits::default()).unwrap_err();
        assert!(
            matches!(
                error.kind(),
                ErrorKind::UnsupportedKeyword { .. } | ErrorKind::UnsupportedFeature { .. }
            ),
            "{schema}: {error}"
        );
        assert!(error.pointer().is_some(), "{schema}: {error}");
    }
}
