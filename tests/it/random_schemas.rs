//! Random schemas of all drafts against the independent `jsonschema` crate.
//!
//! `SCHEMAC_RANDOM_SCHEMAS` sets the number of schemas, `SCHEMAC_RANDOM_SEED` the first seed,
//! `SCHEMAC_RANDOM_WALKS` the outputs generated for each. `SCHEMAC_RANDOM_SCHEMA` is the text of the one
//! schema to examine instead.

use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::json;

use crate::support::differential::{Effort, Tally, examine};
use crate::support::schemas::{DRAFTS, schema};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |number| number.parse().unwrap())
}

#[test]
fn random_schemas_generate_and_accept_what_the_validator_calls_valid() {
    let first = setting("SCHEMAC_RANDOM_SEED", 0);
    let count = setting("SCHEMAC_RANDOM_SCHEMAS", 100);
    let walks = setting("SCHEMAC_RANDOM_WALKS", 10);
    let effort = Effort { walks: usize::try_from(walks).unwrap(), candidates: 60 };
    let mut tally = Tally::default();
    let mut findings = 0;
    for seed in first..first + count {
        let mut rng = StdRng::seed_from_u64(seed);
        // Half of the schemas are of the latest draft.
        let draft = DRAFTS[rng.random_range(0..8_usize).saturating_sub(3)];
        let schema = match std::env::var("SCHEMAC_RANDOM_SCHEMA") {
            Ok(text) => serde_json::from_str(&text).unwrap(),
            Err(_) => schema(&mut |n| rng.random_range(0..n), draft),
        };
        if std::env::var_os("SCHEMAC_RANDOM_PRINT").is_some() {
            println!("{seed}: {schema}");
        }
        if let Some(finding) = examine(&schema, seed, effort, &mut tally).first() {
            findings += 1;
            println!("seed {seed}: {}\n", finding.shrunk());
        }
    }
    println!("{tally:#?}");
    assert_eq!(findings, 0);
    // Elements run out where few are left for hidden reasons only, which is rare: of a hundred schemas never.
    assert!(tally.ran_out.len() * 1_000 <= tally.schemas, "{:?}", tally.ran_out);
    assert!(tally.valid > 0 && tally.invalid > 0 && tally.outputs > 0, "nothing was compared");
}

#[test]
fn schemas_of_the_kinds_that_once_were_wrong_are_right() {
    const META_4: &str = "http://json-schema.org/draft-04/schema#";
    let schemas = [
        // Few names are left, and it is known when none is.
        json!({"propertyNames": {"maxLength": 0}}),
        json!({"propertyNames": {"pattern": "^a?b?$", "maxLength": 1}, "minProperties": 2}),
        json!({"propertyNames": {"pattern": "^[ab]*$", "maxLength": 2}, "minProperties": 7}),
        json!({"propertyNames": {"pattern": "^[ab]*$", "maxLength": 2}, "maxProperties": 3}),
        json!({"patternProperties": {"^[a-c]{1,2}$": {}, "b$": {"type": "integer"}},
            "additionalProperties": false, "minProperties": 3}),
        json!({"patternProperties": {"^[a-c]{1,2}$": {}}, "not": {"required": ["a"]}}),
        json!({"items": {"propertyNames": {"pattern": "^[ab]?$"},
            "additionalProperties": {"type": "boolean"}}, "uniqueItems": true}),
        json!({"if": {"required": ["x"]}, "then": {"propertyNames": {"pattern": "^[xy]$"}}}),
        // Which few are left is hidden behind formats.
        json!({"type": "object", "propertyNames": {"if": {"if": {"format": "hostname",
            "enum": ["x1", " "], "if": {"format": "email"}, "then": {"minLength": 2}},
            "then": {"maxLength": 1}, "else": {"type": "string", "format": "date"}},
            "then": {"pattern": "^(a|ab)*$"}, "else": {"enum": ["b", "\u{3b1}"]}}}),
        // A count leaves no room for a name that is tried first.
        json!({"properties": {"b": {}, "c": {}, "d": {}, "e": {}, "f": {}, "g": {}, "ab": {}},
            "required": ["a/b"], "maxProperties": 1}),
        // The empty array is not always an element.
        json!({"prefixItems": [{"enum": [[]], "contains": {}}], "uniqueItems": true}),
        json!({"items": {"enum": [[], [1]], "minItems": 1}, "uniqueItems": true}),
        // So is the empty object or array, where nothing can be a member or an element.
        json!({"items": {"type": ["object", "null"],
            "additionalProperties": {"minLength": 2, "maxLength": 1, "type": "string"}},
            "uniqueItems": true}),
        json!({"oneOf": [{"unevaluatedItems": {"type": ["array", "null"], "uniqueItems": true,
            "prefixItems": [{"$ref": "#", "type": "string"}, {"type": "string"}]}, "type": "array"}],
            "uniqueItems": true}),
        json!({"items": {"type": ["array", "null"], "maxItems": 0}, "uniqueItems": true}),
        // Multiples are told apart as other numbers are.
        json!({"contains": {"multipleOf": 0.25}, "uniqueItems": true}),
        json!({"items": {"multipleOf": 3, "type": "integer"}, "uniqueItems": true, "minItems": 2}),
        json!({"items": {"multipleOf": 0.5, "minimum": 0, "maximum": 1, "type": "number"},
            "uniqueItems": true, "minItems": 3}),
        // Large multiples beside what is not arithmetic.
        json!({"multipleOf": 1000003, "anyOf": [{"maximum": 10}, {"minimum": 2_000_000}]}),
        json!({"multipleOf": 1000003, "not": {"multipleOf": 7}, "type": "integer"}),
        json!({"type": "number", "not": {"anyOf": [{"type": "integer"}, {"multipleOf": 1000003}]}}),
        json!({"items": {"multipleOf": 1000003, "type": "number"}, "uniqueItems": true}),
        // In draft 4, 1.0 is no integer.
        json!({"$schema": META_4, "type": "integer", "enum": [1, 2.0, "a"]}),
        json!({"$schema": META_4, "enum": [1, 2.0, 2.5], "items": {"type": "integer"}}),
        // Formats beside tests of the same text.
        json!({"format": "regex", "minLength": 1, "type": "string"}),
        json!({"dependentSchemas": {"c": {"propertyNames": {"format": "regex"}}}}),
        json!({"anyOf": [{"dependentSchemas": {"a": {"propertyNames": {"format": "date-time"}}},
            "propertyNames": {"const": 1}}, {"propertyNames": {"minLength": 1}}]}),
        json!({"format": "time", "maxLength": 20, "pattern": "0"}),
    ];
    let effort = Effort { walks: 15, candidates: 60 };
    for schema in schemas {
        let mut tally = Tally::default();
        let findings = examine(&schema, 1, effort, &mut tally);
        assert!(findings.is_empty(), "{}", findings[0]);
        assert!(tally.ran_out.is_empty(), "elements ran out: {schema}");
    }
}
