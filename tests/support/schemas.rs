//! Random JSON Schemas over all keywords of a draft, made by a function `choose` that returns a number
//! below its argument. Choosing always 0 ends, so an exhausted source of choices is no problem.
//!
//! Names, values, lengths and bounds come from small pools, so that keywords meet, overlap and
//! conflict.
#![allow(dead_code, reason = "each user takes what it needs")]

use schemac::frontend::json_schema::Draft;
use serde_json::{Map, Value, json};

use super::pools::{self, FORMATS, NAME_PATTERNS, NAMES, NUMBERS, PATTERNS, STEPS, STRINGS};

/// Returns a number below its argument, which is at most 256.
pub(crate) type Choose<'a> = dyn FnMut(usize) -> usize + 'a;

/// The drafts, the latest first.
pub(crate) const DRAFTS: [Draft; 5] =
    [Draft::Draft202012, Draft::Draft201909, Draft::Draft7, Draft::Draft6, Draft::Draft4];

/// Returns the address of the meta-schema of a draft.
pub(crate) fn meta_schema(draft: Draft) -> &'static str {
    match draft {
        Draft::Draft4 => "http://json-schema.org/draft-04/schema#",
        Draft::Draft6 => "http://json-schema.org/draft-06/schema#",
        Draft::Draft7 => "http://json-schema.org/draft-07/schema#",
        Draft::Draft201909 => "https://json-schema.org/draft/2019-09/schema",
        _ => "https://json-schema.org/draft/2020-12/schema",
    }
}

/// Returns a schema of `draft` with definitions that refer to each other.
pub(crate) fn schema(choose: &mut Choose, draft: Draft) -> Value {
    let left = [4, 8, 8, 14, 14, 24, 60][choose(7)];
    let ids = choose(6) == 5;
    let mut maker = Maker { choose, draft, left, ids, definition: 0, refers: false };
    let theme = maker.theme();
    let mut root = match maker.keywords(theme, Place::Same) {
        Value::Object(root) => root,
        _ => Map::new(),
    };
    if maker.refers {
        let mut definitions = Map::new();
        for (i, name) in DEFINITIONS.into_iter().enumerate() {
            definitions.insert(name.to_owned(), maker.definition(i));
        }
        let keyword = if draft >= Draft::Draft201909 { "$defs" } else { "definitions" };
        root.insert(keyword.to_owned(), definitions.into());
        if ids {
            let id = if draft == Draft::Draft4 { "id" } else { "$id" };
            root.insert(id.to_owned(), json!("http://schemas.example/root"));
        }
        maker.dynamic_anchor(&mut root);
        if draft <= Draft::Draft7 && root.contains_key("$ref") {
            // The definitions beside a reference would be ignored.
            let reference = root.remove("$ref");
            let reference = json!({ "$ref": reference });
            root.insert("allOf".to_owned(), json!([reference]));
        }
    }
    let mut schema = Map::new();
    if draft != Draft::Draft202012 || (maker.choose)(2) == 1 {
        schema.insert("$schema".to_owned(), json!(meta_schema(draft)));
    }
    schema.extend(root);
    schema.into()
}

const DEFINITIONS: [&str; 3] = ["x", "y", "z"];

/// What most keywords of a schema speak of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Theme {
    Object,
    Array,
    String,
    Number,
}

/// Whether a schema is applied to the value that the schema around it is applied to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Same,
    Below,
}

struct Maker<'m, 'c> {
    choose: &'m mut Choose<'c>,
    draft: Draft,
    /// The schemas that may still be made.
    left: usize,
    /// Whether there is an `$id` for the root and for one of the definitions.
    ids: bool,
    /// The number of the definition that is being made, from 1; 0 in the root.
    definition: usize,
    /// Whether there is any reference.
    refers: bool,
}

impl Maker<'_, '_> {
    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[(self.choose)(from.len())].clone()
    }

    fn one_in(&mut self, n: usize) -> bool {
        (self.choose)(n) == n - 1
    }

    fn theme(&mut self) -> Theme {
        self.pick(&[Theme::Number, Theme::String, Theme::Object, Theme::Object, Theme::Array])
    }

    /// Returns a schema for a member, an element or the like.
    fn below(&mut self) -> Value {
        let theme = self.theme();
        self.schema(theme, Place::Below)
    }

    /// Returns a schema that is applied to the value of the schema around it.
    fn same(&mut self, theme: Theme) -> Value {
        let theme = if self.one_in(6) { self.theme() } else { theme };
        self.schema(theme, Place::Same)
    }

    fn schema(&mut self, theme: Theme, place: Place) -> Value {
        self.left = self.left.saturating_sub(1);
        match (self.choose)(12) {
            1 if self.draft >= Draft::Draft6 => json!(self.one_in(2)),
            2 => self
                .reference(place)
                .map_or_else(|| json!({}), |(keyword, to)| json!({ keyword: to })),
            _ => self.keywords(theme, place),
        }
    }

    fn keywords(&mut self, theme: Theme, place: Place) -> Value {
        let mut schema = Map::new();
        let most = self.pick(&[1, 2, 3, 3, 4, 8]);
        for _ in 0..1 + (self.choose)(most) {
            self.keyword(theme, place, &mut schema);
        }
        schema.into()
    }

    /// Inserts a keyword, or some that belong together.
    fn keyword(&mut self, theme: Theme, place: Place, schema: &mut Map<String, Value>) {
        match (self.choose)(if self.left > 0 { 14 } else { 8 }) {
            0 => insert(schema, "type", self.types(theme)),
            1 => self.values(theme, schema),
            2..8 => self.keyword_of(theme, schema),
            8 => {
                let other = self.theme();
                self.keyword_of(other, schema);
            }
            9 => {
                if let Some((keyword, to)) = self.reference(place) {
                    insert(schema, keyword, to);
                }
            }
            10 => insert(schema, "not", self.same(theme)),
            11 if self.draft >= Draft::Draft7 => {
                insert(schema, "if", self.same(theme));
                let branches = (self.choose)(4);
                if branches != 1 {
                    insert(schema, "then", self.same(theme));
                }
                if branches != 2 {
                    insert(schema, "else", self.same(theme));
                }
            }
            _ => {
                let keyword = self.pick(&["anyOf", "allOf", "oneOf"]);
                let branches: Vec<_> =
                    (0..1 + (self.choose)(3)).map(|_| self.same(theme)).collect();
                insert(schema, keyword, branches.into());
            }
        }
    }

    fn keyword_of(&mut self, theme: Theme, schema: &mut Map<String, Value>) {
        match theme {
            Theme::Object => self.object(schema),
            Theme::Array => self.array(schema),
            Theme::String => self.string(schema),
            Theme::Number => self.number(schema),
        }
    }

    fn types(&mut self, theme: Theme) -> Value {
        let own = match theme {
            Theme::Object => "object",
            Theme::Array => "array",
            Theme::String => "string",
            Theme::Number => self.pick(&["integer", "number"]),
        };
        if !self.one_in(3) {
            return json!(own);
        }
        let all = ["null", "boolean", "integer", "number", "string", "array", "object"];
        let mut types = vec![own];
        for _ in 0..(self.choose)(3) {
            let other = self.pick(&all);
            if !types.contains(&other) {
                types.push(other);
            }
        }
        json!(types)
    }

    /// Inserts `enum` or `const`.
    fn values(&mut self, theme: Theme, schema: &mut Map<String, Value>) {
        if self.draft >= Draft::Draft6 && self.one_in(2) {
            return insert(schema, "const", self.value(theme, 2));
        }
        let mut values: Vec<Value> = Vec::new();
        for _ in 0..1 + (self.choose)(4) {
            let theme = if self.one_in(3) { self.theme() } else { theme };
            let value = self.value(theme, 2);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        insert(schema, "enum", values.into());
    }

    fn value(&mut self, theme: Theme, depth: usize) -> Value {
        match theme {
            Theme::Object if depth > 0 => {
                let names = self.names(3);
                let members = names.into_iter().map(|name| {
                    let theme = self.theme();
                    (name, self.value(theme, depth - 1))
                });
                Value::Object(members.collect())
            }
            Theme::Array if depth > 0 => {
                let length = (self.choose)(4);
                let element = |_| {
                    let theme = self.theme();
                    self.value(theme, depth - 1)
                };
                (0..length).map(element).collect()
            }
            Theme::String => json!(self.pick(STRINGS)),
            Theme::Number => pools::number(self.pick(NUMBERS)),
            _ => self.pick(&[json!(null), json!(false), json!(true), json!([]), json!({})]),
        }
    }

    /// Returns at most `most` different names.
    fn names(&mut self, most: usize) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for _ in 0..(self.choose)(most + 1) {
            let name = self.pick(NAMES).to_owned();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Returns a member of each name, or of some patterns of names.
    fn members(&mut self, names: Vec<String>) -> Value {
        Value::Object(names.into_iter().map(|name| (name, self.below())).collect())
    }

    fn object(&mut self, schema: &mut Map<String, Value>) {
        let structural = if self.left > 0 { 12 } else { 4 };
        match (self.choose)(structural) {
            0 => insert(schema, "required", self.name_list()),
            1 => self.counts(schema, "minProperties", "maxProperties"),
            2 => insert(schema, "type", json!("object")),
            3 => {
                let dependent = self.names(2).into_iter().map(|name| (name, self.name_list()));
                let dependent = Value::Object(dependent.collect());
                insert(schema, self.dependencies("dependentRequired"), dependent);
            }
            4 => {
                let theme = Theme::Object;
                let dependent = self.names(2).into_iter().map(|name| (name, self.same(theme)));
                let dependent = Value::Object(dependent.collect());
                insert(schema, self.dependencies("dependentSchemas"), dependent);
            }
            5 => {
                let patterns =
                    (0..1 + (self.choose)(2)).map(|_| self.pick(NAME_PATTERNS).to_owned());
                let patterns = patterns.collect();
                insert(schema, "patternProperties", self.members(patterns));
            }
            6 | 7 => {
                let additional = if self.one_in(2) { json!(false) } else { self.below() };
                insert(schema, "additionalProperties", additional);
            }
            8 if self.draft >= Draft::Draft6 => {
                let names = self.schema(Theme::String, Place::Below);
                insert(schema, "propertyNames", names);
            }
            9 if self.draft >= Draft::Draft201909 => {
                let unevaluated = if self.one_in(2) { json!(false) } else { self.below() };
                insert(schema, "unevaluatedProperties", unevaluated);
            }
            _ => {
                let names = self.names(3);
                insert(schema, "properties", self.members(names));
            }
        }
    }

    /// Returns the name of a keyword in the draft.
    fn dependencies(&self, keyword: &'static str) -> &'static str {
        if self.draft >= Draft::Draft201909 { keyword } else { "dependencies" }
    }

    /// Returns a list of different names; draft 4 wants at least one.
    fn name_list(&mut self) -> Value {
        let mut names = self.names(2);
        if names.is_empty() && self.draft == Draft::Draft4 {
            names.push("a".to_owned());
        }
        names.into()
    }

    fn counts(&mut self, schema: &mut Map<String, Value>, min: &str, max: &str) {
        let counts = [0, 1, 2, 3, 1, 2, 5, 20];
        let (a, b) = (self.pick(&counts), self.pick(&counts));
        match (self.choose)(5) {
            0 => insert(schema, min, json!(a)),
            1 => insert(schema, max, json!(a)),
            // Mostly not in conflict.
            2 | 3 => {
                insert(schema, min, json!(a.min(b)));
                insert(schema, max, json!(a.max(b)));
            }
            _ => {
                insert(schema, min, json!(a));
                insert(schema, max, json!(b));
            }
        }
    }

    fn array(&mut self, schema: &mut Map<String, Value>) {
        let structural = if self.left > 0 { 10 } else { 4 };
        let positional = self.draft >= Draft::Draft202012;
        match (self.choose)(structural) {
            0 => self.counts(schema, "minItems", "maxItems"),
            1 => insert(schema, "type", json!("array")),
            2 | 3 => insert(schema, "uniqueItems", json!(!self.one_in(5))),
            4 | 5 => insert(schema, "items", self.below()),
            6 => {
                let parts: Vec<_> = (0..1 + (self.choose)(3)).map(|_| self.below()).collect();
                insert(schema, if positional { "prefixItems" } else { "items" }, parts.into());
            }
            7 if !positional => {
                let additional = if self.one_in(2) { json!(false) } else { self.below() };
                insert(schema, "additionalItems", additional);
            }
            8 if self.draft >= Draft::Draft201909 => {
                let unevaluated = if self.one_in(2) { json!(false) } else { self.below() };
                insert(schema, "unevaluatedItems", unevaluated);
            }
            _ if self.draft >= Draft::Draft6 => {
                insert(schema, "contains", self.below());
                if self.draft >= Draft::Draft201909 && self.one_in(2) {
                    self.counts(schema, "minContains", "maxContains");
                }
            }
            _ => insert(schema, "items", self.below()),
        }
    }

    fn string(&mut self, schema: &mut Map<String, Value>) {
        match (self.choose)(6) {
            0 | 1 => self.counts(schema, "minLength", "maxLength"),
            2 => insert(schema, "type", json!("string")),
            3 | 4 => insert(schema, "pattern", json!(self.pick(PATTERNS))),
            _ => {
                let draft = self.draft;
                let known = FORMATS.iter().filter(|format| format.since <= draft);
                let known: Vec<_> = known.map(|format| format.name).collect();
                insert(schema, "format", json!(self.pick(&known)));
            }
        }
    }

    fn number(&mut self, schema: &mut Map<String, Value>) {
        let bound = pools::number(self.pick(NUMBERS));
        match (self.choose)(8) {
            0 => insert(schema, "type", json!(self.pick(&["integer", "number"]))),
            1 | 2 => insert(schema, "minimum", bound),
            3 | 4 => insert(schema, "maximum", bound),
            5 => insert(schema, "multipleOf", pools::number(self.pick(STEPS))),
            _ => {
                let side = (self.choose)(2);
                let exclusive = ["exclusiveMinimum", "exclusiveMaximum"][side];
                if self.draft == Draft::Draft4 {
                    let inclusive = ["minimum", "maximum"][side];
                    schema.entry(inclusive).or_insert(bound);
                    insert(schema, exclusive, json!(!self.one_in(4)));
                } else {
                    insert(schema, exclusive, bound);
                }
            }
        }
    }

    /// Returns a keyword that refers to another schema. Those that are applied in place lead further on
    /// but for a few, so that most schemas have no cycle that consumes nothing.
    fn reference(&mut self, place: Place) -> Option<(&'static str, Value)> {
        let forward = place == Place::Same && !self.one_in(24);
        let from = if forward { self.definition } else { 0 };
        if from >= DEFINITIONS.len() {
            return None;
        }
        self.refers = true;
        let dynamic = !forward && self.one_in(3);
        match self.draft {
            Draft::Draft202012 if dynamic => {
                return Some(("$dynamicRef", json!("#node")));
            }
            Draft::Draft201909 if dynamic => return Some(("$recursiveRef", json!("#"))),
            _ => {}
        }
        if !forward && self.one_in(3) {
            let root = if self.ids && self.one_in(2) { "root" } else { "#" };
            return Some(("$ref", json!(root)));
        }
        let index = from + (self.choose)(DEFINITIONS.len() - from);
        let name = DEFINITIONS[index];
        let folder = if self.draft >= Draft::Draft201909 { "$defs" } else { "definitions" };
        let base = if self.ids { "root" } else { "" };
        let anchored = self.draft >= Draft::Draft201909 && index == 0 && self.one_in(2);
        Some((
            "$ref",
            if anchored {
                json!(format!("{base}#anchor"))
            } else if self.ids && index == 2 && self.one_in(2) {
                json!("z")
            } else {
                json!(format!("{base}#/{folder}/{name}"))
            },
        ))
    }

    fn definition(&mut self, index: usize) -> Value {
        self.definition = index + 1;
        self.left = self.left.max(4);
        let theme = self.theme();
        let mut schema = match self.keywords(theme, Place::Same) {
            Value::Object(schema) => schema,
            _ => Map::new(),
        };
        if index == 0 && self.draft >= Draft::Draft201909 {
            insert(&mut schema, "$anchor", json!("anchor"));
        }
        if index == 2 && self.ids {
            if self.draft <= Draft::Draft7
                && let Some(reference) = schema.remove("$ref")
            {
                // An `$id` beside a reference would be ignored.
                insert(&mut schema, "allOf", json!([{ "$ref": reference }]));
            }
            insert(&mut schema, if self.draft == Draft::Draft4 { "id" } else { "$id" }, json!("z"));
            self.dynamic_anchor(&mut schema);
        }
        schema.into()
    }

    /// Makes the root of a document one that dynamic references may lead to.
    fn dynamic_anchor(&mut self, root: &mut Map<String, Value>) {
        match self.draft {
            Draft::Draft202012 => insert(root, "$dynamicAnchor", json!("node")),
            Draft::Draft201909 => {
                let recursive = self.one_in(2);
                insert(root, "$recursiveAnchor", json!(recursive));
            }
            _ => {}
        }
    }
}

fn insert(schema: &mut Map<String, Value>, keyword: &str, value: Value) {
    schema.insert(keyword.to_owned(), value);
}
