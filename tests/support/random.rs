//! Random regexes and JSON Schemas, made by a function `choose` that returns a number below its
//! argument. Choosing always 0 ends, so an exhausted source of choices is no problem.
#![allow(dead_code, reason = "each user takes what it needs")]

use serde_json::{Value, json};

/// Returns a regex of at most `depth` levels.
pub(crate) fn regex(choose: &mut impl FnMut(usize) -> usize, depth: usize) -> String {
    const ATOMS: [&str; 14] =
        ["a", "b", "é", "ab", "[ab]", "[^a]", ".", r"\d", r"\w", r"\s", r"\b", "^", "$", r"\p{Lu}"];
    const REPEATS: [&str; 9] =
        ["*", "+", "?", "{2}", "{0,3}", "{2,}", "{1,40}", "{100,}", "{7,300}"];
    if depth == 0 {
        return ATOMS[choose(ATOMS.len())].to_owned();
    }
    match choose(6) {
        0 => regex(choose, 0),
        1 | 2 => regex(choose, depth - 1) + &regex(choose, depth - 1),
        3 => format!("(?:{}|{})", regex(choose, depth - 1), regex(choose, depth - 1)),
        4 => format!("(?i:{})", regex(choose, depth - 1)),
        _ => format!("(?:{}){}", regex(choose, depth - 1), REPEATS[choose(REPEATS.len())]),
    }
}

/// Returns a schema of at most `depth` levels with some definitions that refer to each other.
pub(crate) fn schema(choose: &mut impl FnMut(usize) -> usize, depth: usize) -> Value {
    let mut root = subschema(choose, depth);
    let definitions = json!({
        "x": subschema(choose, depth.saturating_sub(1)),
        "y": subschema(choose, depth.saturating_sub(1)),
    });
    if let Value::Object(members) = &mut root {
        members.insert("$defs".into(), definitions);
    }
    root
}

const KEYS: [&str; 4] = ["a", "b", "ab", "é"];

fn subschema(choose: &mut impl FnMut(usize) -> usize, depth: usize) -> Value {
    if depth == 0 {
        return scalar(choose);
    }
    match choose(12) {
        0..=3 => scalar(choose),
        4 | 5 => object(choose, depth - 1),
        6 | 7 => array(choose, depth - 1),
        8 => {
            let keyword = ["anyOf", "allOf", "oneOf"][choose(3)];
            json!({ keyword: subschemas(choose, depth - 1) })
        }
        9 => json!({ "$ref": (["#/$defs/x", "#/$defs/y", "#"][choose(3)]) }),
        10 => json!({ "not": subschema(choose, depth - 1) }),
        _ => {
            let mut both = subschema(choose, depth - 1);
            if let (Value::Object(both), Value::Object(other)) =
                (&mut both, subschema(choose, depth - 1))
            {
                both.extend(other);
            }
            both
        }
    }
}

fn subschemas(choose: &mut impl FnMut(usize) -> usize, depth: usize) -> Vec<Value> {
    (0..1 + choose(3)).map(|_| subschema(choose, depth)).collect()
}

fn value(choose: &mut impl FnMut(usize) -> usize) -> Value {
    const VALUES: [&str; 14] = [
        "0",
        "\"\"",
        "\"a\"",
        "\"ab\"",
        "1",
        "-1",
        "1.5",
        "10",
        "true",
        "false",
        "null",
        "[]",
        "{}",
        "{\"a\":[1]}",
    ];
    serde_json::from_str(VALUES[choose(VALUES.len())]).unwrap_or(Value::Null)
}

fn scalar(choose: &mut impl FnMut(usize) -> usize) -> Value {
    let numbers = [0, 1, 2, -3, 10, 250, 100_000];
    match choose(9) {
        0 => json!({ "type": (["null", "boolean", "string", "integer", "number"][choose(5)]) }),
        1 => json!({ "const": value(choose) }),
        2 => json!({ "enum": (0..1 + choose(4)).map(|_| value(choose)).collect::<Vec<_>>() }),
        3 => json!({ "type": "string", "pattern": regex(choose, 2) }),
        4 => {
            let least = choose(4);
            json!({ "type": "string", "minLength": least, "maxLength": least + choose(60) })
        }
        5 => {
            let (a, b) = (numbers[choose(7)], numbers[choose(7)]);
            json!({ "type": "integer", "minimum": a.min(b), "maximum": a.max(b) })
        }
        6 => {
            let keyword = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"][choose(4)];
            json!({ "type": "number", keyword: numbers[choose(7)] })
        }
        7 => json!({ "type": "integer", "multipleOf": 1 + choose(12) }),
        _ => [json!({}), json!(true), json!(false), json!({ "type": ["string", "null"] })]
            [choose(4)]
        .clone(),
    }
}

fn object(choose: &mut impl FnMut(usize) -> usize, depth: usize) -> Value {
    let mut members = serde_json::Map::new();
    members.insert("type".into(), json!("object"));
    let properties: serde_json::Map<String, Value> =
        (0..choose(4)).map(|i| (KEYS[i].to_owned(), subschema(choose, depth))).collect();
    members.insert("properties".into(), properties.into());
    let required: Vec<_> = KEYS.iter().filter(|_| choose(3) == 1).collect();
    members.insert("required".into(), json!(required));
    match choose(5) {
        1 => drop(members.insert("additionalProperties".into(), json!(false))),
        2 => drop(members.insert("additionalProperties".into(), subschema(choose, depth))),
        3 => drop(members.insert("maxProperties".into(), json!(choose(4)))),
        4 => drop(
            members.insert("patternProperties".into(), json!({ "^a": subschema(choose, depth) })),
        ),
        _ => {}
    }
    members.into()
}

fn array(choose: &mut impl FnMut(usize) -> usize, depth: usize) -> Value {
    let mut members = serde_json::Map::new();
    members.insert("type".into(), json!("array"));
    if choose(3) > 0 {
        members.insert("items".into(), subschema(choose, depth));
    }
    match choose(6) {
        1 => drop(members.insert("prefixItems".into(), json!(subschemas(choose, depth)))),
        2 => drop(members.insert("minItems".into(), json!(choose(4)))),
        3 => drop(members.insert("maxItems".into(), json!(choose(40)))),
        4 => drop(members.insert("uniqueItems".into(), json!(true))),
        5 => drop(members.insert("contains".into(), subschema(choose, depth))),
        _ => {}
    }
    members.into()
}
