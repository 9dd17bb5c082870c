//! What the README says about keywords is true.

use schemac::frontend::json_schema::{JsonOptions, compile, format, number};
use schemac::{ErrorKind, Limits};

const README: &str = include_str!("../../README.md");
const JSON_SCHEMA: &str = include_str!("../../docs/json_schema.md");

/// Returns the words in backquotes of the table row of the README that starts with `title`.
fn row(title: &str) -> Vec<&'static str> {
    row_of(README, &format!("{title} |"))
}

fn row_of(document: &'static str, title: &str) -> Vec<&'static str> {
    let line = document.lines().find(|line| line.starts_with(&format!("| {title}"))).unwrap();
    line.split('`').skip(1).step_by(2).collect()
}

/// Returns a schema that uses `keyword`, a text that it allows, and one that it forbids because of
/// the keyword.
fn sample(keyword: &str) -> (&'static str, &'static str, &'static str) {
    match keyword {
        "type" => (r#"{"type":"null"}"#, "null", "1"),
        "enum" => (r#"{"enum":[1,"a"]}"#, "1", "2"),
        "const" => (r#"{"const":[null]}"#, "[null]", "[]"),
        "properties" => (r#"{"properties":{"a":{"type":"null"}}}"#, r#"{"a":null}"#, r#"{"a":1}"#),
        "required" => (r#"{"required":["a"]}"#, r#"{"a":1}"#, "{}"),
        "additionalProperties" => {
            (r#"{"additionalProperties":{"type":"null"}}"#, r#"{"a":null}"#, r#"{"a":1}"#)
        }
        "patternProperties" => {
            (r#"{"patternProperties":{"^a":{"type":"null"}}}"#, r#"{"ab":null}"#, r#"{"ab":1}"#)
        }
        "propertyNames" => (r#"{"propertyNames":{"maxLength":1}}"#, r#"{"a":1}"#, r#"{"ab":1}"#),
        "minProperties" => (r#"{"minProperties":1}"#, r#"{"a":1}"#, "{}"),
        "maxProperties" => (r#"{"maxProperties":1}"#, r#"{"a":1}"#, r#"{"a":1,"b":1}"#),
        "dependentRequired" => (
            r#"{"properties":{"a":true,"b":true},"dependentRequired":{"a":["b"]}}"#,
            r#"{"a":1,"b":1}"#,
            r#"{"a":1}"#,
        ),
        "dependentSchemas" => {
            (r#"{"dependentSchemas":{"a":{"minProperties":2}}}"#, r#"{"a":1,"b":1}"#, r#"{"a":1}"#)
        }
        "items" => (r#"{"items":{"type":"null"}}"#, "[null]", "[1]"),
        "prefixItems" => (r#"{"prefixItems":[{"type":"null"}]}"#, "[null,1]", "[1]"),
        "contains" => (r#"{"contains":{"type":"null"}}"#, "[1,null]", "[1]"),
        "minContains" => {
            (r#"{"contains":{"type":"null"},"minContains":2}"#, "[null,null]", "[null]")
        }
        "maxContains" => {
            (r#"{"contains":{"type":"null"},"maxContains":1}"#, "[null]", "[null,null]")
        }
        "minItems" => (r#"{"minItems":1}"#, "[1]", "[]"),
        "maxItems" => (r#"{"maxItems":1}"#, "[1]", "[1,1]"),
        "minLength" => (r#"{"minLength":1}"#, r#""a""#, r#""""#),
        "maxLength" => (r#"{"maxLength":1}"#, r#""a""#, r#""ab""#),
        "pattern" => (r#"{"pattern":"^a(?!b)"}"#, r#""ac""#, r#""ab""#),
        "minimum" => (r#"{"minimum":5}"#, "5", "4"),
        "maximum" => (r#"{"maximum":5}"#, "5", "6"),
        "exclusiveMinimum" => (r#"{"exclusiveMinimum":5}"#, "6", "5"),
        "exclusiveMaximum" => (r#"{"exclusiveMaximum":5}"#, "4", "5"),
        "multipleOf" => (r#"{"multipleOf":3,"minimum":0,"maximum":99}"#, "9", "10"),
        "allOf" => (r#"{"allOf":[{"minimum":1},{"maximum":2}]}"#, "2", "3"),
        "anyOf" => (r#"{"anyOf":[{"const":1},{"const":2}]}"#, "2", "3"),
        "oneOf" => (r#"{"oneOf":[{"enum":[1,2]},{"enum":[2,3]}]}"#, "1", "2"),
        "not" => (r#"{"not":{"type":"null"}}"#, "1", "null"),
        "if" | "then" => {
            (r#"{"if":{"type":"string"},"then":{"maxLength":1}}"#, r#""a""#, r#""ab""#)
        }
        "else" => (r#"{"if":{"type":"null"},"then":true,"else":{"const":1}}"#, "null", "2"),
        "unevaluatedItems" => {
            (r#"{"prefixItems":[true],"unevaluatedItems":false}"#, "[1]", "[1,1]")
        }
        "unevaluatedProperties" => (
            r#"{"properties":{"a":true},"unevaluatedProperties":false}"#,
            r#"{"a":1}"#,
            r#"{"b":1}"#,
        ),
        "$ref" | "$defs" => (r##"{"$ref":"#/$defs/a","$defs":{"a":{"const":1}}}"##, "1", "2"),
        "$anchor" => (r##"{"$ref":"#x","$defs":{"a":{"$anchor":"x","const":1}}}"##, "1", "2"),
        "$id" => (
            r#"{"$id":"https://example.com/r","$ref":"a","$defs":{"a":{"$id":"a","const":1}}}"#,
            "1",
            "2",
        ),
        "$dynamicRef" => {
            (r##"{"$dynamicRef":"#x","$defs":{"a":{"$dynamicAnchor":"x","const":1}}}"##, "1", "2")
        }
        other => panic!("`{other}` has no sample"),
    }
}

#[test]
fn keywords_listed_as_enforced_are() {
    let compiler = schemac::Compiler::new(schemac::Vocabulary::embedded());
    let keywords = row("enforced");
    assert!(keywords.len() > 35, "{keywords:?}");
    for keyword in keywords {
        let (schema, allowed, forbidden) = sample(keyword);
        assert!(schema.contains(&format!("{keyword:?}:")), "{keyword}: {schema}");
        let validator = crate::schemas::validator(schema);
        let automaton = compiler.compile_schema(schema).unwrap();
        for (text, expected) in [(allowed, true), (forbidden, false)] {
            assert_eq!(validator.is_valid(&serde_json::from_str(text).unwrap()), expected);
            let mut matcher = schemac::Matcher::new(automaton.clone());
            let legal = matcher.accept_bytes(text.as_bytes()).is_ok();
            assert_eq!(legal && matcher.is_accepting().unwrap(), expected, "{keyword}: {text}");
        }
    }
}

#[test]
fn the_listed_formats_are_the_known_ones() {
    let words = row("enforced in part");
    let mut listed: Vec<_> =
        words.iter().copied().skip(1).take_while(|word| *word != "--formats").collect();
    listed.sort_unstable();
    assert_eq!(listed, format::STANDARD);
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

#[test]
fn keywords_listed_as_annotations_change_nothing() {
    for keyword in row("say nothing about validity") {
        let schema = format!(r#"{{"{keyword}":"text","type":"null"}}"#);
        let grammar = compile(&schema, &JsonOptions::default(), &Limits::default());
        assert!(grammar.is_ok(), "{keyword}: {grammar:?}");
    }
}
