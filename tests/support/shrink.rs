//! Makes a schema smaller while something stays true of it.
#![allow(dead_code, reason = "each user takes what it needs")]

use serde_json::{Value, json};

/// Returns a small schema of which `holds` is true, as it is of `schema`.
pub(crate) fn shrink(schema: &Value, holds: &mut dyn FnMut(&Value) -> bool) -> Value {
    let mut best = schema.clone();
    // Every round tries each change once; a change that succeeds gives others another chance.
    for _ in 0..12 {
        let before = best.clone();
        let mut at = 0;
        while let Some(smaller) = nth_change(&best, at) {
            if smaller != best && holds(&smaller) {
                best = smaller;
            } else {
                at += 1;
            }
        }
        if best == before {
            break;
        }
    }
    best
}

/// Returns `value` after the change number `n`, if there are so many.
fn nth_change(value: &Value, n: usize) -> Option<Value> {
    let mut left = n;
    change(value, &mut left)
}

/// Counts `left` down; the change that it reaches 0 at is made.
fn change(value: &Value, left: &mut usize) -> Option<Value> {
    let mut make = |changed: Value| -> Option<Value> {
        if *left == 0 {
            return Some(changed);
        }
        *left -= 1;
        None
    };
    match value {
        Value::Object(members) => {
            for name in members.keys() {
                let mut less = members.clone();
                less.shift_remove(name);
                if let Some(changed) = make(less.into()) {
                    return Some(changed);
                }
            }
            for part in members.values().filter(|part| part.is_object()) {
                if let Some(changed) = make(part.clone()) {
                    return Some(changed);
                }
            }
            for parts in members.values().filter_map(Value::as_array) {
                for part in parts.iter().filter(|part| part.is_object()) {
                    if let Some(changed) = make(part.clone()) {
                        return Some(changed);
                    }
                }
            }
            for (name, part) in members {
                if let Some(changed) = change(part, left) {
                    let mut members = members.clone();
                    members.insert(name.clone(), changed);
                    return Some(members.into());
                }
            }
            None
        }
        Value::Array(elements) => {
            for i in 0..elements.len() {
                let mut less = elements.clone();
                less.remove(i);
                if let Some(changed) = make(less.into()) {
                    return Some(changed);
                }
            }
            for (i, part) in elements.iter().enumerate() {
                if let Some(changed) = change(part, left) {
                    let mut elements = elements.clone();
                    elements[i] = changed;
                    return Some(elements.into());
                }
            }
            None
        }
        Value::Bool(false) => make(json!(true)),
        _ => None,
    }
}
