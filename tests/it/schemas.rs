//! The shipped schemas and their instances, against the independent `jsonschema` validator.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The keywords that a shipped schema may use: all of them are enforced.
const KEYWORDS: &[&str] = &[
    "$defs",
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
    "prefixItems",
    "properties",
    "required",
    "type",
];

/// Keywords that say nothing about validity.
const ANNOTATIONS: &[&str] = &["$schema", "description", "title"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas")
}

/// Returns the shipped schemas: name and text, sorted by name.
pub(crate) fn shipped() -> Vec<(String, String)> {
    let mut schemas: Vec<_> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    schemas.sort();
    schemas
}

/// Returns the lines of `schemas/<name>.<kind>.jsonl`.
pub(crate) fn instances(name: &str, kind: &str) -> Vec<String> {
    let path = folder().join(format!("{name}.{kind}.jsonl"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(str::to_owned).collect()
}

/// Returns the independent validator of a schema.
pub(crate) fn validator(schema: &str) -> jsonschema::Validator {
    jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap()
}

#[test]
fn shipped_instances_are_valid_exactly_when_they_are_listed_as_accepted() {
    assert!(shipped().len() >= 8, "the shipped schemas are not found");
    for (name, schema) in shipped() {
        let validator = validator(&schema);
        for (kind, valid) in [("accept", true), ("reject", false)] {
            let lines = instances(&name, kind);
            assert!(lines.len() >= 2, "{name}.{kind}.jsonl has too few instances");
            for line in lines {
                let instance: Value = serde_json::from_str(&line).unwrap();
                assert_eq!(validator.is_valid(&instance), valid, "{name}: {line}");
                assert_eq!(instance.to_string(), line, "{name}: not compact");
            }
        }
    }
}

#[test]
fn shipped_schemas_use_enforced_keywords_only() {
    for (name, schema) in shipped() {
        let mut used = BTreeSet::new();
        let mut open = vec![serde_json::from_str::<Value>(&schema).unwrap()];
        while let Some(schema) = open.pop() {
            let Value::Object(members) = schema else { continue };
            for (keyword, value) in members {
                match (keyword.as_str(), value) {
                    ("properties" | "$defs", Value::Object(named)) => {
                        open.extend(named.into_iter().map(|(_, schema)| schema));
                    }
                    ("anyOf" | "allOf" | "prefixItems", Value::Array(list)) => open.extend(list),
                    ("items" | "additionalProperties", schema) => open.push(schema),
                    _ => {}
                }
                used.insert(keyword);
            }
        }
        for keyword in &used {
            let keyword = keyword.as_str();
            assert!(
                KEYWORDS.contains(&keyword) || ANNOTATIONS.contains(&keyword),
                "{name}: {keyword}"
            );
        }
    }
}
