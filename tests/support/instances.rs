//! Instances for a schema that do not come from what the schema compiles to: values near its own
//! constants, bounds and names, and changes of given values.
#![allow(dead_code, clippy::unwrap_used, reason = "each user takes what it needs")]

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Map, Value, json};

use super::pools::{FORMATS, NAMES, STRINGS};

/// Returns the value in its canonical spelling: no white space, shortest escapes, numbers as digits
/// without superfluous zeros and exponents.
pub(crate) fn spelled(value: &Value) -> String {
    match value {
        Value::Number(number) => {
            let text = number.to_string();
            ticks(&text).map_or(text, of_ticks)
        }
        Value::Array(elements) => {
            let elements: Vec<_> = elements.iter().map(spelled).collect();
            format!("[{}]", elements.join(","))
        }
        Value::Object(members) => {
            let members: Vec<_> =
                members.iter().map(|(name, value)| member(name, &spelled(value))).collect();
            format!("{{{}}}", members.join(","))
        }
        other => other.to_string(),
    }
}

fn member(name: &str, value: &str) -> String {
    format!("{}:{value}", json!(name))
}

/// Returns whether every number has a canonical spelling that [`spelled`] finds.
pub(crate) fn has_spelling(value: &Value) -> bool {
    match value {
        Value::Number(number) => ticks(&number.to_string()).is_some(),
        Value::Array(elements) => elements.iter().all(has_spelling),
        Value::Object(members) => members.values().all(has_spelling),
        _ => true,
    }
}

/// Digits after the point that numbers are made with.
const PLACES: usize = 4;

/// Returns the number that `text` spells in units of the last place, if it is one of them.
pub(crate) fn ticks(text: &str) -> Option<i128> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().ok()?;
    let (digits, negative) = mantissa.strip_prefix('-').map_or((mantissa, false), |d| (d, true));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let units: i128 = format!("{whole}{fraction}").parse().ok()?;
    let shift = exponent + i32::try_from(PLACES).ok()? - i32::try_from(fraction.len()).ok()?;
    let power = 10_i128.checked_pow(shift.unsigned_abs())?;
    let units = if shift >= 0 {
        units.checked_mul(power)?
    } else if units % power == 0 {
        units / power
    } else {
        return None;
    };
    Some(if negative { -units } else { units })
}

/// Returns the canonical spelling of a number of [`ticks`].
fn of_ticks(ticks: i128) -> String {
    let sign = if ticks < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", ticks.unsigned_abs(), width = PLACES + 1);
    let (whole, fraction) = digits.split_at(digits.len() - PLACES);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

fn number(ticks: i128) -> Value {
    serde_json::from_str(&of_ticks(ticks)).unwrap()
}

/// What instances for one schema are made of.
pub(crate) struct Instances {
    schema: Value,
    rng: StdRng,
    names: Vec<String>,
    strings: Vec<String>,
    numbers: Vec<i128>,
    constants: Vec<Value>,
}

impl Instances {
    /// Reads the names, texts, numbers and constants of a schema.
    pub(crate) fn new(schema: &Value, seed: u64) -> Self {
        let mut instances = Self {
            schema: schema.clone(),
            rng: StdRng::seed_from_u64(seed),
            names: Vec::new(),
            strings: Vec::new(),
            numbers: vec![0, 10_000, -10_000, 5_000],
            constants: vec![json!(null), json!(true), json!(false), json!([]), json!({})],
        };
        instances.read(schema);
        instances
    }

    fn read(&mut self, schema: &Value) {
        match schema {
            Value::Object(members) => {
                for (name, value) in members {
                    match name.as_str() {
                        "enum" => {
                            self.constants.extend(value.as_array().into_iter().flatten().cloned())
                        }
                        "const" => self.constants.push(value.clone()),
                        "minLength" | "maxLength" => self.read_length(value),
                        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                            if let Some(bound) = ticks(&value.to_string()) {
                                let near = [0, 1, -1, 5_000, -5_000, 10_000, -10_000];
                                self.numbers.extend(near.map(|by| bound + by));
                            }
                        }
                        "multipleOf" => {
                            if let Some(step) = ticks(&value.to_string()) {
                                let times = [1, -1, 2, 3, 4, 7, 20, 100];
                                self.numbers.extend(times.map(|by| step * by));
                            }
                        }
                        "format" => {
                            let of = FORMATS.iter().filter(|format| value == format.name);
                            let texts = of.flat_map(|format| format.texts);
                            self.strings.extend(texts.map(|&text| text.to_owned()));
                        }
                        "properties" => self
                            .names
                            .extend(value.as_object().into_iter().flat_map(|m| m.keys().cloned())),
                        "required" => {
                            let names = value.as_array().into_iter().flatten();
                            self.names.extend(names.filter_map(|v| v.as_str().map(str::to_owned)));
                        }
                        _ => {}
                    }
                    self.read(value);
                }
            }
            Value::Array(elements) => elements.iter().for_each(|element| self.read(element)),
            _ => {}
        }
    }

    fn read_length(&mut self, length: &Value) {
        let Some(length) = length.as_u64().and_then(|n| usize::try_from(n).ok()) else { return };
        for length in length.saturating_sub(1)..=length + 1 {
            let character = ["a", "é", "😀", "1"].choose(&mut self.rng).unwrap();
            self.strings.push(character.repeat(length));
        }
    }

    /// Adds the texts and numbers of a value to those that instances are made of.
    pub(crate) fn learn(&mut self, value: &Value) {
        match value {
            Value::String(text) if self.strings.len() < 200 => self.strings.push(text.clone()),
            Value::Number(number) if self.numbers.len() < 200 => {
                self.numbers.extend(ticks(&number.to_string()));
            }
            Value::Array(elements) => elements.iter().for_each(|element| self.learn(element)),
            Value::Object(members) => members.values().for_each(|value| self.learn(value)),
            _ => {}
        }
    }

    /// Returns a value that meets some keywords of the schema.
    pub(crate) fn near(&mut self) -> Value {
        let schema = self.schema.clone();
        self.near_all(vec![&schema], &schema, 4)
    }

    /// Returns a value that meets some keywords of `schemas` and of those that they apply in place.
    fn near_all<'s>(
        &mut self,
        mut schemas: Vec<&'s Value>,
        root: &'s Value,
        depth: usize,
    ) -> Value {
        in_place(&mut schemas, root);
        schemas.retain(|schema| schema.is_object());
        let keywords = |name: &'static str| schemas.iter().filter_map(move |s| s.get(name));
        if self.rng.random_bool(0.25) {
            let listed = keywords("enum").filter_map(Value::as_array).flatten();
            let constants: Vec<&Value> = keywords("const").chain(listed).collect();
            if let Some(&constant) = constants.choose(&mut self.rng) {
                return constant.clone();
            }
        }
        let typed: Vec<&str> = keywords("type")
            .flat_map(|t| t.as_array().map_or_else(|| vec![t], |list| list.iter().collect()))
            .filter_map(Value::as_str)
            .collect();
        let speaks =
            |names: &[&str]| schemas.iter().any(|s| names.iter().any(|name| s.get(name).is_some()));
        let mut kinds = typed;
        if kinds.is_empty() || self.rng.random_bool(0.3) {
            let object = [
                "properties",
                "required",
                "additionalProperties",
                "patternProperties",
                "minProperties",
            ];
            let more = [
                (&object[..], "object"),
                (&["items", "prefixItems", "contains", "minItems", "uniqueItems"], "array"),
                (&["pattern", "minLength", "maxLength", "format"], "string"),
                (&["minimum", "maximum", "multipleOf", "exclusiveMinimum"], "number"),
            ];
            kinds.extend(more.iter().filter(|(names, _)| speaks(names)).map(|(_, kind)| *kind));
        }
        let kind = kinds.choose(&mut self.rng).copied().unwrap_or("any");
        match kind {
            "object" if depth > 0 => self.near_object(&schemas, root, depth - 1),
            "array" if depth > 0 => self.near_array(&schemas, root, depth - 1),
            "string" => self.string(),
            "number" | "integer" => self.number(),
            "boolean" => json!(self.rng.random_bool(0.5)),
            "null" => json!(null),
            _ => self.any(depth.min(1)),
        }
    }

    fn near_object(&mut self, schemas: &[&Value], root: &Value, depth: usize) -> Value {
        let mut names: Vec<String> = Vec::new();
        for schema in schemas {
            let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
            for name in required.filter_map(Value::as_str) {
                if self.rng.random_bool(0.9) {
                    names.push(name.to_owned());
                }
            }
            for name in
                schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys)
            {
                if self.rng.random_bool(0.5) {
                    names.push(name.clone());
                }
            }
        }
        for _ in 0..self.rng.random_range(0..3) {
            names.push(self.name());
        }
        let mut members = Map::new();
        for name in names {
            let mut below: Vec<&Value> = Vec::new();
            for schema in schemas {
                below.extend(schema.get("properties").and_then(|members| members.get(&name)));
                let patterns = schema.get("patternProperties").and_then(Value::as_object);
                below.extend(patterns.into_iter().flat_map(Map::values));
                if below.is_empty() {
                    below.extend(schema.get("additionalProperties"));
                    below.extend(schema.get("unevaluatedProperties"));
                }
            }
            if !members.contains_key(&name) {
                let value = self.near_all(below, root, depth);
                members.insert(name, value);
            }
        }
        Value::Object(members)
    }

    fn near_array(&mut self, schemas: &[&Value], root: &Value, depth: usize) -> Value {
        let length = *[0, 1, 1, 2, 2, 3, 4].choose(&mut self.rng).unwrap();
        let mut elements = Vec::new();
        for i in 0..length {
            let mut below: Vec<&Value> = Vec::new();
            for schema in schemas {
                let positional = ["prefixItems", "items"].map(|name| schema.get(name));
                let list = positional.iter().flatten().find_map(|items| items.as_array());
                match list.and_then(|list| list.get(i)) {
                    Some(part) => below.push(part),
                    None => {
                        below.extend(schema.get("items").filter(|items| !items.is_array()));
                        below.extend(schema.get("additionalItems"));
                        below.extend(schema.get("unevaluatedItems"));
                    }
                }
                if self.rng.random_bool(0.4) {
                    below.extend(schema.get("contains"));
                }
            }
            elements.push(self.near_all(below, root, depth));
        }
        Value::Array(elements)
    }

    fn name(&mut self) -> String {
        if !self.names.is_empty() && self.rng.random_bool(0.5) {
            return self.names.choose(&mut self.rng).unwrap().clone();
        }
        (*NAMES.choose(&mut self.rng).unwrap()).to_owned()
    }

    fn string(&mut self) -> Value {
        if !self.strings.is_empty() && self.rng.random_bool(0.6) {
            return json!(self.strings.choose(&mut self.rng).unwrap());
        }
        json!(STRINGS.choose(&mut self.rng).unwrap())
    }

    fn number(&mut self) -> Value {
        let near = [0, 0, 0, 10_000, -10_000, 5_000, 1].choose(&mut self.rng).unwrap();
        number(self.numbers.choose(&mut self.rng).unwrap() + near)
    }

    /// Returns any value of at most `depth` levels.
    pub(crate) fn any(&mut self, depth: usize) -> Value {
        match self.rng.random_range(0..if depth > 0 { 8 } else { 5 }) {
            0 | 1 => self.string(),
            2 | 3 => self.number(),
            4 => self.constants.choose(&mut self.rng).unwrap().clone(),
            5 | 6 => {
                let members =
                    (0..self.rng.random_range(0..4)).map(|_| (self.name(), self.any(depth - 1)));
                Value::Object(members.collect())
            }
            _ => (0..self.rng.random_range(0..4)).map(|_| self.any(depth - 1)).collect(),
        }
    }

    /// Changes a value in one place, or in a few.
    pub(crate) fn mutated(&mut self, value: &Value) -> Value {
        let mut value = value.clone();
        self.mutate(&mut value);
        value
    }

    fn mutate(&mut self, value: &mut Value) {
        match value {
            Value::Object(members) if !members.is_empty() && self.rng.random_bool(0.7) => {
                let at = self.rng.random_range(0..members.len());
                let name = members.keys().nth(at).unwrap().clone();
                match self.rng.random_range(0..6) {
                    0 => drop(members.shift_remove(&name)),
                    1 => {
                        let value = self.any(1);
                        members.insert(self.name(), value);
                    }
                    2 => {
                        let value = members.shift_remove(&name).unwrap();
                        members.insert(self.name(), value);
                    }
                    _ => self.mutate(members.get_mut(&name).unwrap()),
                }
            }
            Value::Array(elements) if !elements.is_empty() && self.rng.random_bool(0.7) => {
                let at = self.rng.random_range(0..elements.len());
                match self.rng.random_range(0..7) {
                    0 => drop(elements.remove(at)),
                    1 => elements.insert(at, self.any(1)),
                    2 => elements.push(elements[at].clone()),
                    3 => {
                        let other = self.rng.random_range(0..elements.len());
                        elements.swap(at, other);
                    }
                    _ => self.mutate(&mut elements[at]),
                }
            }
            Value::Number(old) if self.rng.random_bool(0.7) => {
                let by = [10_000, -10_000, 1, -1, 5_000].choose(&mut self.rng).unwrap();
                *value = number(ticks(&old.to_string()).unwrap_or(0) + by);
            }
            Value::String(text) if self.rng.random_bool(0.7) => {
                let mut characters: Vec<char> = text.chars().collect();
                let at = self.rng.random_range(0..=characters.len());
                let new = *['a', 'b', '1', 'é', '-', ' ', '.', 'A'].choose(&mut self.rng).unwrap();
                match self.rng.random_range(0..3) {
                    0 if at < characters.len() => drop(characters.remove(at)),
                    1 if at < characters.len() => characters[at] = new,
                    _ => characters.insert(at, new),
                }
                *text = characters.into_iter().collect();
            }
            _ => *value = self.any(1),
        }
    }

    /// Changes the order of the members of all objects.
    pub(crate) fn shuffled(&mut self, value: &Value) -> Value {
        match value {
            Value::Object(members) => {
                let mut names: Vec<&String> = members.keys().collect();
                rand::seq::SliceRandom::shuffle(&mut names[..], &mut self.rng);
                let members =
                    names.into_iter().map(|name| (name.clone(), self.shuffled(&members[name])));
                Value::Object(members.collect())
            }
            Value::Array(elements) => {
                elements.iter().map(|element| self.shuffled(element)).collect()
            }
            other => other.clone(),
        }
    }
}

/// Appends the schemas that `schemas` may apply to the same value.
fn in_place<'s>(schemas: &mut Vec<&'s Value>, root: &'s Value) {
    let mut i = 0;
    while i < schemas.len() && schemas.len() < 40 {
        let schema = schemas[i];
        for name in ["allOf", "anyOf", "oneOf"] {
            schemas.extend(schema.get(name).and_then(Value::as_array).into_iter().flatten());
        }
        for name in ["not", "if", "then", "else"] {
            schemas.extend(schema.get(name));
        }
        for name in ["dependentSchemas", "dependencies"] {
            schemas.extend(
                schema.get(name).and_then(Value::as_object).into_iter().flat_map(Map::values),
            );
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let definitions = root.get("$defs").or_else(|| root.get("definitions"));
            let name = reference.rsplit('/').next().unwrap_or_default();
            let name = if reference.ends_with("#anchor") { "x" } else { name };
            let target = definitions.and_then(|all| all.get(name)).unwrap_or(root);
            schemas.push(target);
        }
        let dynamic =
            ["$dynamicRef", "$recursiveRef"].iter().any(|name| schema.get(name).is_some());
        if dynamic {
            schemas.push(root);
        }
        i += 1;
    }
}
