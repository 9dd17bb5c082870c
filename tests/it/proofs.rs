//! Proofs of optional parts: what can never be there is found, with the keywords in conflict.

use schemac::frontend::json_schema::{JsonOptions, PropertyOrder};
use schemac::{Compiler, Vocabulary};

/// Returns the pointers of the parts that can never be there, each with the pointers of the keywords
/// in conflict, and the number of all parts.
fn findings(schema: &str, order: PropertyOrder) -> (Vec<(String, Vec<String>)>, usize) {
    let options = JsonOptions::default().property_order(order);
    let compiler = Compiler::new(Vocabulary::embedded()).json_options(options);
    let automaton = compiler.compile_schema(schema).unwrap_or_else(|e| panic!("{schema}: {e}"));
    let proof = automaton.automaton().prove().unwrap();
    assert!(proof.undecided.is_empty(), "{schema}: {:?}", proof.undecided);
    let place = |location: &schemac::Location| match location {
        schemac::Location::Pointer(pointer) => pointer.clone(),
        other => panic!("{other}"),
    };
    let mut found: Vec<_> = proof
        .findings
        .iter()
        .map(|e| (place(e.location().unwrap()), e.related().iter().map(place).collect()))
        .collect();
    found.sort();
    (found, proof.parts)
}

#[track_caller]
fn check(schema: &str, parts: usize, expected: &[(&str, &[&str])]) {
    for order in [PropertyOrder::Declared, PropertyOrder::Any] {
        let (found, count) = findings(schema, order);
        let found: Vec<_> = found
            .iter()
            .map(|(pointer, keywords)| {
                (pointer.as_str(), keywords.iter().map(String::as_str).collect::<Vec<_>>())
            })
            .collect();
        let expected: Vec<_> =
            expected.iter().map(|&(at, keywords)| (at, keywords.to_vec())).collect();
        assert_eq!(found, expected, "{schema}");
        assert_eq!(count, parts, "{schema}");
    }
}

#[test]
fn a_format_and_a_pattern_that_exclude_each_other_are_named() {
    check(
        r#"{"properties":{"a":{"type":"string","format":"date","pattern":"^x"},"b":{}}}"#,
        2,
        &[(
            "/properties/a",
            &["/properties", "/properties/a/type", "/properties/a/format", "/properties/a/pattern"],
        )],
    );
}

#[test]
fn members_that_conflict_across_schemas_are_named() {
    // `a` is declared twice, and each alone could hold.
    let conflict = [
        "/properties",
        "/properties/a/maximum",
        "/properties/a/type",
        "/allOf",
        "/allOf/0/properties",
        "/allOf/0/properties/a/minimum",
    ];
    check(
        r#"{"properties":{"a":{"maximum":1,"type":"number"}},"allOf":[{"properties":{"a":{"minimum":2}}}]}"#,
        2,
        &[("/allOf/0/properties/a", &conflict), ("/properties/a", &conflict)],
    );
}

#[test]
fn branches_elements_and_conditions_are_looked_at() {
    check(
        r#"{"type":"integer","anyOf":[{"maximum":3},{"type":"string"}]}"#,
        2,
        &[("/anyOf/1", &["/type", "/anyOf/1/type"])],
    );
    check(
        r#"{"prefixItems":[{},{"type":"null","minimum":1},{"not":{}}],"items":{"const":1}}"#,
        4,
        &[
            ("/items", &["/prefixItems", "/prefixItems/2/not", "/items"]),
            ("/prefixItems/2", &["/prefixItems", "/prefixItems/2/not", "/items"]),
        ],
    );
    check(
        r#"{"type":"string","if":{"maxLength":3},"then":{"minLength":4},"else":{"pattern":"^a"}}"#,
        2,
        &[("/then", &["/type", "/if/maxLength", "/then/minLength"])],
    );
}

#[test]
fn what_is_nested_in_members_elements_and_references_is_looked_at() {
    let schema = r##"{
        "properties": {"list": {"items": {"$ref": "#/$defs/node"}}},
        "additionalProperties": {"properties": {"x": {"enum": [1], "type": "string"}}},
        "$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}, "v": {"minLength": 2, "maxLength": 1, "type": "string"}}}}
    }"##;
    let (found, parts) = findings(schema, PropertyOrder::Declared);
    let found: Vec<_> = found.iter().map(|(pointer, _)| pointer.as_str()).collect();
    assert_eq!(found, ["/$defs/node/properties/v", "/additionalProperties/properties/x"]);
    // `list`, its elements, `next`, `v` and `x`.
    assert_eq!(parts, 5);
}

#[test]
fn what_is_possible_somewhere_is_no_finding() {
    // In the first branch `kind` cannot be "b", in the second not "a": each is possible in one.
    check(
        r##"{
            "oneOf": [{"$ref": "#/$defs/base", "properties": {"kind": {"const": "a"}}},
                      {"$ref": "#/$defs/base", "properties": {"kind": {"const": "b"}}}],
            "$defs": {"base": {"properties": {"kind": {"anyOf": [{"const": "a"}, {"const": "b"}]}}, "required": ["kind"]}}
        }"##,
        7,
        &[],
    );
    // What is declared to be never there is meant so, and a tuple that is closed is, too.
    check(
        r#"{"properties":{"a":false},"prefixItems":[{},false],"maxItems":1,"items":{"const":1}}"#,
        1,
        &[],
    );
}

#[test]
fn shipped_schemas_and_grammars_are_proved() {
    for (name, schema) in crate::schemas::shipped() {
        let (found, parts) = findings(&schema, PropertyOrder::Declared);
        assert_eq!(found, [], "{name}");
        assert!(parts > 0, "{name}");
    }
}

#[test]
fn a_rule_that_matches_nothing_is_found() {
    let compiler = Compiler::new(Vocabulary::embedded());
    let automaton =
        compiler.compile_gbnf("root ::= \"a\" | b\nb ::= \"x\" b\nc ::= \"c\"").unwrap();
    let proof = automaton.automaton().prove().unwrap();
    let messages: Vec<_> = proof.findings.iter().map(|e| e.message().to_owned()).collect();
    assert_eq!(messages, ["a text of the rule `b` can never be there"]);
}
