//! JSON Schema: compiled schemas against what suites and the independent `jsonschema` crate call valid.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::{Rng, SeedableRng, rngs::StdRng};
use schemac::frontend::json_schema::{
    self, Draft, Formats, JsonOptions, PropertyOrder, Retrieve, Whitespace,
};
use schemac::token::{Matcher, TokenAutomaton};
use schemac::vocab::Token;
use schemac::{Error, ErrorKind, Limits, StepError, TokenId, Vocabulary};
use serde_json::Value;

use crate::schemas::{instances, shipped};
use crate::support::reference::check_walk;

/// A vocabulary of all single bytes and an end token.
fn bytes_vocabulary() -> Arc<Vocabulary> {
    let mut tokens: Vec<Token> = (0..=255).map(|b: u8| Token::Text([b].into())).collect();
    tokens.push(Token::Special("end".into()));
    Arc::new(Vocabulary::new(tokens, [TokenId::new(256)]).unwrap())
}

fn automaton_with(
    schema: &str,
    options: &JsonOptions,
    retrieve: Option<&dyn Retrieve>,
) -> Result<Arc<TokenAutomaton>, Error> {
    let limits = Limits::default();
    let grammar = json_schema::compile_with(schema, options, &limits, retrieve)?;
    Ok(Arc::new(TokenAutomaton::new(grammar, bytes_vocabulary(), limits)?))
}

pub(crate) fn automaton(schema: &str, options: &JsonOptions) -> Result<Arc<TokenAutomaton>, Error> {
    automaton_with(schema, options, None)
}

/// Returns whether `text` is a complete output; an error of the engine fails the test.
pub(crate) fn accepts(automaton: &Arc<TokenAutomaton>, text: &str) -> bool {
    let mut matcher = Matcher::new(automaton.clone());
    match matcher.accept_bytes(text.as_bytes()) {
        Ok(()) => matcher.is_accepting().unwrap(),
        Err(StepError::BytesRejected { .. }) => false,
        Err(error) => panic!("{text}: {error}"),
    }
}

/// Checks what a schema accepts and refuses.
#[track_caller]
pub(crate) fn check(schema: &str, options: &JsonOptions, accepted: &[&str], refused: &[&str]) {
    let automaton = automaton(schema, options).unwrap_or_else(|error| panic!("{schema}: {error}"));
    let shown = &schema[..schema.len().min(500)];
    for text in accepted {
        assert!(accepts(&automaton, text), "{shown} must accept {text}");
    }
    for text in refused {
        assert!(!accepts(&automaton, text), "{shown} must refuse {text}");
    }
}

/// Writes an output at random: any legal byte, and the shortest way out when it gets long.
fn random_output(automaton: &Arc<TokenAutomaton>, rng: &mut StdRng, most: usize) -> String {
    let mut matcher = Matcher::new(automaton.clone());
    let mut output = Vec::new();
    loop {
        let legal = matcher.legal_bytes().unwrap();
        let may_end = matcher.is_accepting().unwrap();
        assert!(may_end || !legal.is_empty(), "a dead end after {output:?}");
        if may_end && (legal.is_empty() || rng.random_bool(0.3)) {
            return String::from_utf8(output).unwrap();
        }
        let next = if output.len() < most {
            // Quotes and brackets often, so that strings do not take all of the output.
            let closing: Vec<u8> =
                legal.iter().copied().filter(|b| b"\"{}[],:".contains(b)).collect();
            let from = if closing.is_empty() || rng.random_bool(0.6) { &legal } else { &closing };
            vec![from[rng.random_range(0..from.len())]]
        } else {
            matcher.shortest_completion().unwrap()
        };
        matcher.accept_bytes(&next).unwrap();
        output.extend_from_slice(&next);
        if output.len() >= most && matcher.is_accepting().unwrap() {
            return String::from_utf8(output).unwrap();
        }
    }
}

/// Checks that random outputs of a schema are valid.
#[track_caller]
fn check_outputs(schema: &Value, options: &JsonOptions, seed: u64, outputs: usize) {
    let validator = jsonschema::options().should_validate_formats(true).build(schema).unwrap();
    let automaton =
        automaton(&schema.to_string(), options).unwrap_or_else(|error| panic!("{schema}: {error}"));
    let mut rng = StdRng::seed_from_u64(seed);
    for _ in 0..outputs {
        let text = random_output(&automaton, &mut rng, 200);
        let value: Value =
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("{schema} wrote {text}: {e}"));
        // The validator computes with 53 bits, so it cannot judge longer numbers.
        let long = text.split(|c: char| !c.is_ascii_digit() && c != '.').any(|n| n.len() > 15);
        let exponent = text.contains(['e', 'E']);
        assert!(long || exponent || validator.is_valid(&value), "{schema} wrote {text}");
    }
}

/// Returns the folder of shared suites, if there is one.
fn suites() -> Option<PathBuf> {
    let folder = std::env::var_os("SCHEMAC_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    let suites = folder.join("suites");
    suites.is_dir().then_some(suites)
}

#[test]
fn shipped_schemas_accept_and_refuse_their_instances_in_any_order_too() {
    for (name, schema) in shipped() {
        for order in [PropertyOrder::Declared, PropertyOrder::Any] {
            let options = JsonOptions::default().property_order(order);
            let automaton = automaton(&schema, &options).unwrap();
            for text in instances(&name, "accept") {
                assert!(accepts(&automaton, &text), "{name} must accept {text}");
            }
            for text in instances(&name, "reject") {
                assert!(!accepts(&automaton, &text), "{name} must refuse {text}");
            }
        }
    }
}

#[test]
fn random_outputs_of_shipped_schemas_are_valid() {
    for (i, (_, schema)) in shipped().into_iter().enumerate() {
        let schema: Value = serde_json::from_str(&schema).unwrap();
        check_outputs(&schema, &JsonOptions::default(), i as u64, 10);
        let options = JsonOptions::default()
            .property_order(PropertyOrder::Any)
            .whitespace(Whitespace::Pretty(2));
        check_outputs(&schema, &options, i as u64, 10);
    }
}

#[test]
fn random_outputs_of_every_keyword_are_valid() {
    let schemas = [
        r#"{"properties":{"a":{"type":"string"},"b":{}},"required":["b","z"],"additionalProperties":{"type":"integer"}}"#,
        r#"{"type":"object","patternProperties":{"^x":{"type":"integer"},"y$":{"minimum":3}},"additionalProperties":{"type":"null"}}"#,
        r#"{"type":"object","propertyNames":{"enum":["a","b","c"]},"minProperties":2,"maxProperties":2}"#,
        r#"{"type":"object","properties":{"x":{"const":1}},"patternProperties":{"^[a-c]$":{"type":"null"},"^(?:b|de?)$":{"maximum":3}},"additionalProperties":false}"#,
        r#"{"type":"object","propertyNames":{"pattern":"^(?:x|yz)?$"},"additionalProperties":{"type":"boolean"},"minProperties":1}"#,
        r#"{"type":"object","additionalProperties":{"type":"boolean"},"minProperties":2,"maxProperties":3}"#,
        r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"dependentRequired":{"a":["b"]},"dependentSchemas":{"b":{"properties":{"c":{"const":1}},"required":["c"]}}}"#,
        r#"{"oneOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"b":{"type":"string"}},"required":["b"]}],"type":"object","additionalProperties":{"type":["integer","string"]}}"#,
        r#"{"oneOf":[{"type":"integer"},{"minimum":2}]}"#,
        r#"{"not":{"type":["object","array"]}}"#,
        r#"{"not":{"required":["a"]},"type":"object","properties":{"a":{},"b":{}}}"#,
        r#"{"type":"object","properties":{"k":{"enum":["x","y"]},"v":{}},"required":["k","v"],"if":{"properties":{"k":{"const":"x"}}},"then":{"properties":{"v":{"type":"integer"}}},"else":{"properties":{"v":{"type":"string"}}}}"#,
        r#"{"anyOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"a":{"type":"string"},"b":{"const":null}},"required":["a","b"]}],"type":"object","unevaluatedProperties":false}"#,
        r#"{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"boolean"},"minItems":1,"maxItems":4}"#,
        r#"{"type":"array","items":{"enum":[1,2,"a"]},"uniqueItems":true,"minItems":2}"#,
        r#"{"type":"array","items":{"type":"string","maxLength":1},"uniqueItems":true,"minItems":1}"#,
        r#"{"type":"array","items":{"type":"integer","minimum":1,"maximum":3},"uniqueItems":true}"#,
        r#"{"type":"array","items":{"pattern":"^[ab]?$","type":["string","null","boolean"]},"uniqueItems":true}"#,
        r#"{"type":"array","items":{"type":["number","string"]},"uniqueItems":true,"minItems":1}"#,
        r#"{"type":"array","prefixItems":[{"const":"a"},{"const":1}],"items":{"type":["integer","string"]},"uniqueItems":true}"#,
        r#"{"type":"array","items":{"type":"object","properties":{"a":{"type":"boolean"},"b":{"enum":[1,[],{"c":1.0}]},"n":{"type":"integer"}}},"uniqueItems":true}"#,
        r#"{"type":"array","items":{"type":"array","items":{"type":"array","items":{"type":"boolean"},"uniqueItems":true},"uniqueItems":true},"uniqueItems":true}"#,
        r#"{"type":"array","items":{"type":"string","maxLength":2,"pattern":"^[a-i]*$"},"uniqueItems":true}"#,
        r#"{"type":"array","items":{"type":"integer","minimum":0,"maximum":120},"uniqueItems":true}"#,
        r#"{"type":"array","items":{"enum":[[1],[1.0],{"a":1,"b":[2]},{"b":[2e0],"a":1.0},[],"x"]},"uniqueItems":true}"#,
        r#"{"type":"array","uniqueItems":true,"minItems":2}"#,
        r#"{"anyOf":[{"uniqueItems":true,"items":{"type":"string"}},{"items":{"type":"integer"}}],"type":"array"}"#,
        r#"{"type":"array","items":{"type":["integer","null"]},"contains":{"type":"null"},"minContains":1,"maxContains":2}"#,
        r#"{"type":"array","prefixItems":[{"const":1}],"anyOf":[{"prefixItems":[true,{"const":2}]},{"contains":{"const":3}}],"unevaluatedItems":{"const":4}}"#,
        r#"{"type":"string","pattern":"^a","maxLength":4,"not":{"const":"ab"}}"#,
        r#"{"type":"number","minimum":-1.5,"exclusiveMaximum":20,"multipleOf":0.5}"#,
        r#"{"enum":[[1,{"a":[]}],{"b":null,"a":[true]},"x",0.5,null]}"#,
        r##"{"$defs":{"t":{"type":"object","properties":{"l":{"$ref":"#/$defs/t"},"v":{"type":"integer"}},"additionalProperties":false}},"$ref":"#/$defs/t"}"##,
        r#"{"allOf":[{"properties":{"a":{"type":"integer"}}},{"properties":{"a":{"minimum":5}},"required":["a"]}],"type":"object"}"#,
        r#"{"type":"string","format":"date"}"#,
        r#"{}"#,
    ];
    for (i, schema) in schemas.into_iter().enumerate() {
        let schema: Value = serde_json::from_str(schema).unwrap();
        for order in [PropertyOrder::Declared, PropertyOrder::Any] {
            check_outputs(&schema, &JsonOptions::default().property_order(order), i as u64, 20);
        }
    }
}

/// The documents that the official suite refers to.
struct Remotes(PathBuf);

impl Retrieve for Remotes {
    fn retrieve(&self, uri: &str) -> Option<String> {
        let path = uri.strip_prefix("http://localhost:1234/")?;
        std::fs::read_to_string(self.0.join(path)).ok()
    }
}

/// What one run over a suite found.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    accepted_invalid: Vec<String>,
    refused_valid: Vec<String>,
    errors: Vec<String>,
}

impl Tally {
    /// Runs the tests of one schema; one of which every test is invalid may be unsatisfiable.
    fn add<'a>(
        &mut self,
        name: &str,
        schema: &str,
        options: &JsonOptions,
        retrieve: Option<&dyn Retrieve>,
        tests: impl Iterator<Item = (&'a Value, bool)> + Clone,
    ) {
        let automaton = match automaton_with(schema, options, retrieve) {
            Ok(automaton) => automaton,
            Err(error) => {
                let impossible = *error.kind() == ErrorKind::Unsatisfiable;
                if !impossible || tests.clone().any(|(_, valid)| valid) {
                    self.errors.push(format!("{name}: {error}"));
                }
                return;
            }
        };
        for (data, valid) in tests {
            let text = data.to_string();
            if accepts(&automaton, &text) != valid {
                let list = if valid { &mut self.refused_valid } else { &mut self.accepted_invalid };
                list.push(format!("{name}: {text}"));
            }
        }
    }
}

fn official(draft: Draft, folder: &str, order: PropertyOrder) -> Option<Tally> {
    let suite = suites()?.join("json-schema-test-suite");
    let remotes = Remotes(suite.join("remotes"));
    let options =
        JsonOptions::default().draft(draft).property_order(order).formats(Formats::Annotate);
    let mut files: Vec<_> = std::fs::read_dir(suite.join("tests").join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    let mut tally = Tally::default();
    for file in files {
        let groups: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let stem = file.file_stem().unwrap().to_str().unwrap();
        for group in groups.as_array().unwrap() {
            let name = format!("{stem}: {}", group["description"].as_str().unwrap());
            let tests = group["tests"].as_array().unwrap();
            let tests = tests.iter().map(|t| (&t["data"], t["valid"].as_bool().unwrap()));
            tally.add(&name, &group["schema"].to_string(), &options, Some(&remotes), tests);
        }
    }
    Some(tally)
}

/// The valid instances of the official suite that are refused, and why: all others are accepted.
const OFFICIAL_REFUSED: &[&str] = &[
    // Integers are written as digits.
    "type: integer type matches integers: 1.0",
    // Where objects are told apart, each has at most one member that the schema does not mention: there
    // is no one order of more.
    r#"uniqueItems: uniqueItems validation: [{"a":1,"b":2},{"a":2,"b":1}]"#,
];

#[test]
fn official_suites_are_right_but_for_listed_exceptions() {
    let drafts = [
        (Draft::Draft202012, "draft2020-12"),
        (Draft::Draft201909, "draft2019-09"),
        (Draft::Draft7, "draft7"),
        (Draft::Draft6, "draft6"),
        (Draft::Draft4, "draft4"),
    ];
    for (draft, folder) in drafts {
        let Some(tally) = official(draft, folder, PropertyOrder::Any) else { return };
        assert_eq!(tally.accepted_invalid, Vec::<String>::new(), "{folder}");
        let listed = |list: &[&str], name: &str| list.iter().any(|known| name.starts_with(known));
        assert_eq!(tally.errors, Vec::<String>::new(), "{folder}");
        let refused: Vec<_> =
            tally.refused_valid.iter().filter(|name| !listed(OFFICIAL_REFUSED, name)).collect();
        assert_eq!(refused, Vec::<&String>::new(), "{folder}");
    }
}

#[test]
fn no_invalid_instance_of_real_schemas_is_accepted() {
    let Some(suites) = suites() else { return };
    let lines = std::fs::read_to_string(suites.join("maskbench-mini.jsonl")).unwrap();
    let options = JsonOptions::default()
        .formats(Formats::AssertKnown)
        .property_order(PropertyOrder::Declared);
    let mut tally = Tally::default();
    // A sample: `schemac suite` runs them all.
    for line in lines.lines().step_by(8) {
        let case: Value = serde_json::from_str(line).unwrap();
        let tests = case["tests"].as_array().unwrap();
        let tests = tests.iter().map(|t| (&t["data"], t["valid"].as_bool().unwrap()));
        let name = case["name"].as_str().unwrap();
        tally.add(name, &case["schema"].to_string(), &options, None, tests);
    }
    assert_eq!(tally.accepted_invalid, Vec::<String>::new());
    assert!(tally.errors.len() <= 1, "{:?}", tally.errors);
}

#[test]
fn names_stand_in_declared_order_unless_any_is_asked_for() {
    let schema = r#"{"type":"object","required":["z","b"],"properties":{"b":{},"a":{}}}"#;
    let compact = JsonOptions::default();
    check(
        schema,
        &compact,
        &[r#"{"b":1,"z":1}"#, r#"{"b":1,"a":1,"z":1,"c":1,"0":1}"#],
        &[r#"{"a":1,"b":1,"z":1}"#, r#"{"b":1,"c":1,"z":1}"#, r#"{"b":1,"z":1,"c":1,"c":1}"#],
    );
    check(
        schema,
        &compact.property_order(PropertyOrder::Any),
        &[r#"{"c":1,"z":1,"a":1,"b":1}"#, r#"{"z":1,"b":1}"#],
        &[r#"{"z":1,"a":1}"#, r#"{"z":1,"b":1,"z":1}"#, r#"{"z":1,"b":1,"c":1,"c":1}"#],
    );
    // Few names of closed patterns stand as the pattern spells them, and are known to be used up.
    let closed = r#"{"type":"object","patternProperties":{"^(yes|no)$":{"type":"integer"}},
        "additionalProperties":false}"#;
    let yes_no = r#"{"yes":1,"no":2}"#;
    check(
        closed,
        &JsonOptions::default(),
        &["{}", r#"{"no":1}"#, yes_no],
        &[r#"{"no":1,"yes":2}"#],
    );
    for order in [PropertyOrder::Declared, PropertyOrder::Any] {
        let options = JsonOptions::default().property_order(order);
        let mut matcher = Matcher::new(automaton(closed, &options).unwrap());
        matcher.accept_bytes(&yes_no.as_bytes()[..yes_no.len() - 1]).unwrap();
        let legal = matcher.legal_bytes().unwrap();
        assert!(legal.contains(&b'}') && !legal.contains(&b','), "{legal:?}");
    }
}

#[test]
fn white_space_stands_only_where_its_option_says() {
    let schema = r#"{"properties":{"a":{"type":"array","items":{"type":"integer"}}}}"#;
    let with = |whitespace| JsonOptions::default().whitespace(whitespace);
    let [compact, spaced, loose, python] =
        [r#"{"a":[1,2]}"#, r#"{"a": [1, 2]}"#, "{\n  \"a\": [\n\t1, 2 ]\n}", r#"{ "a" : [1,2] }"#];
    let pretty = "{\n  \"a\": [\n    1,\n    2\n  ]\n}";
    check(schema, &with(Whitespace::Compact), &[compact, "{}"], &[spaced, loose, pretty, " {}"]);
    check(schema, &with(Whitespace::Spaced), &[spaced, "{}"], &[compact, loose, pretty, "{ }"]);
    check(
        schema,
        &with(Whitespace::Flexible),
        &[compact, spaced, loose, pretty, "{ }", "{\n}"],
        &[python, "{}\n", "\n{}", "{  }", "{\n\n}"],
    );
    check(schema, &with(Whitespace::Pretty(2)), &[pretty, "{}", "{\n  \"a\": []\n}"], &[compact]);
}

#[test]
fn errors_name_the_keyword_and_its_place() {
    let error = |schema: &str| {
        let error = automaton(schema, &JsonOptions::default()).expect_err(schema);
        (error.kind().name(), error.pointer().unwrap_or("none").to_owned())
    };
    for (schema, kind, pointer) in [
        (r#"{"properties":{"a":{"type":"strin"}}}"#, "invalid_keyword", "/properties/a/type"),
        (r#"{"items":{"minimum":"1"}}"#, "invalid_keyword", "/items/minimum"),
        (r#"{"required":"a"}"#, "invalid_keyword", "/required"),
        (r#"{"allOf":[{"maxLength":-1}]}"#, "invalid_keyword", "/allOf/0/maxLength"),
        (r#"{"not":3}"#, "invalid_keyword", "/not"),
        (r#"{"pattern":"("}"#, "syntax", "/pattern"),
        (r#"{"pattern":"(a)\\1"}"#, "unsupported_feature", "/pattern"),
        (r##"{"$ref":"#/$defs/x"}"##, "unresolved_reference", "/$ref"),
        (r#"{"$ref":"other.json"}"#, "unresolved_reference", "/$ref"),
        (r#"{"format":"colour"}"#, "unsupported_keyword", "/format"),
        (
            r#"{"items":{"not":{"type":"array","uniqueItems":true}}}"#,
            "unsupported_keyword",
            "/items/not/uniqueItems",
        ),
        (
            r#"{"uniqueItems":true,"items":{"type":"object","properties":{"a":{"type":"boolean"}},"additionalProperties":false}}"#,
            "unsupported_keyword",
            "/uniqueItems",
        ),
        (
            r##"{"$defs":{"a":{"not":{"$ref":"#/$defs/a"}}},"$ref":"#/$defs/a"}"##,
            "left_recursion",
            "/$defs/a",
        ),
        (r##"{"anyOf":[{"$ref":"#"},{"type":"null"}]}"##, "left_recursion", ""),
    ] {
        assert_eq!(error(schema), (kind, pointer.to_owned()), "{schema}");
    }
}

#[test]
fn what_is_departures_on_request_is_listed() {
    let schema = r#"{"properties":{"a":{"format":"colour"},"b":{"not":{"uniqueItems":true}}}}"#;
    let automaton = automaton(schema, &JsonOptions::default().lenient(true)).unwrap();
    let listed: Vec<_> =
        automaton.departures().iter().map(|n| (n.pointer.as_str(), n.keyword.as_str())).collect();
    assert_eq!(
        listed,
        [("/properties/a/format", "format"), ("/properties/b/not/uniqueItems", "uniqueItems")]
    );
    assert!(accepts(&automaton, r#"{"a":"x","b":[1,1]}"#));
    assert!(accepts(&automaton, r#"{"a":"x","b":[1,2]}"#));
}

#[test]
fn switches_that_depart_from_the_standard() {
    let closed = JsonOptions::default().closed_objects(true);
    let schema =
        r#"{"allOf":[{"properties":{"a":{}}},{"properties":{"b":{},"c":{"type":"object"}}}]}"#;
    check(schema, &closed, &[r#"{"a":1,"b":2}"#, r#"{"c":{"free":1}}"#], &[r#"{"d":1}"#]);
    let schema = r#"{"oneOf":[{"type":"integer"},{"minimum":2}]}"#;
    check(schema, &JsonOptions::default().one_of_as_any_of(true), &["3", "1", "2.5"], &["1.5"]);
}

#[test]
fn large_and_deep_schemas_are_ordinary() {
    let nested =
        |open: &str, close: &str, n: usize| format!("{}true{}", open.repeat(n), close.repeat(n));
    let deep = nested(r#"{"properties":{"a":"#, "}}", 20_000);
    check(&deep, &JsonOptions::default(), &["{}", r#"{"a":{"a":{}}}"#], &["{"]);
    let deep = nested(r#"{"allOf":["#, "]}", 20_000);
    check(&deep, &JsonOptions::default(), &["1"], &["x"]);
    let many: String =
        (0..10_000).map(|i| format!(r#""property{i}":{{"type":"integer"}},"#)).collect();
    let wide =
        format!(r#"{{"type":"object","properties":{{{many}"last":true}},"required":["last"]}}"#);
    check(
        &wide,
        &JsonOptions::default(),
        &[r#"{"property5":1,"property9999":2,"last":0}"#],
        &[r#"{"property9999":2,"property5":1,"last":0}"#, r#"{"property1":1}"#],
    );
    let branches: String = (0..300)
        .map(|i| format!(r#"{{"type":"object","properties":{{"kind":{{"const":"k{i}"}},"v{i}":{{"type":"integer"}}}},"required":["kind","v{i}"]}},"#))
        .collect();
    for keyword in ["anyOf", "oneOf"] {
        let schema = format!(r#"{{"{keyword}":[{branches}{{"type":"null"}}]}}"#);
        check(
            &schema,
            &JsonOptions::default(),
            &[r#"{"kind":"k7","v7":1}"#, r#"{"kind":"k299","v299":1}"#, "null"],
            &[r#"{"kind":"k7","v8":1}"#, r#"{"kind":"k300","v299":1}"#, "1"],
        );
    }
    // Every seventh of many members is required, and many conditions each ask for one of two members.
    let names: Vec<_> = (0..5_000).map(|i| format!(r#""p{i}""#)).collect();
    let required: Vec<_> = names.iter().step_by(7).cloned().collect();
    let members: Vec<_> =
        names.iter().map(|name| format!(r#"{name}:{{"type":"integer"}}"#)).collect();
    let schema = format!(
        r#"{{"type":"object","properties":{{{}}},"required":[{}]}}"#,
        members.join(","),
        required.join(",")
    );
    check(&schema, &JsonOptions::default(), &[], &[r#"{"p0":1,"p8":1}"#, "{}"]);
    let conditions: Vec<_> = (0..80)
        .map(|i| format!(r#"{{"if":{{"properties":{{"p{i}":{{"const":1}}}}}},"then":{{"required":["q{i}"]}},"else":{{"required":["r{i}"]}}}}"#))
        .collect();
    let schema = format!(r#"{{"allOf":[{}]}}"#, conditions.join(","));
    let all = |first: &str| -> String {
        let rest: Vec<_> = (1..80).map(|i| format!(r#""q{i}":0"#)).collect();
        format!("{{{first},{}}}", rest.join(","))
    };
    check(
        &schema,
        &JsonOptions::default(),
        &[&all(r#""q0":0"#), &all(r#""p0":1,"q0":0"#), &all(r#""p0":2,"r0":0"#), "1"],
        &[&all(r#""p0":2,"q0":0"#), "{}"],
    );
}

#[test]
fn an_expander_survives_its_bytes_and_refuses_others() {
    let schema = r#"{"properties":{"a":{"enum":[1,"x",[2]]}},"patternProperties":{"^x":{"minimum":2}},"unevaluatedProperties":{"type":"null"},"minProperties":1}"#;
    let limits = Limits::default();
    let mut grammar = json_schema::compile(schema, &JsonOptions::default(), &limits).unwrap();
    let bytes = grammar.expander.as_ref().unwrap().to_bytes();
    grammar.expander = Some(json_schema::decode_expander(&bytes, &Limits::default()).unwrap());
    let automaton = Arc::new(TokenAutomaton::new(grammar, bytes_vocabulary(), limits).unwrap());
    assert!(accepts(&automaton, r#"{"a":[2],"x":3,"b":null}"#));
    assert!(!accepts(&automaton, r#"{"a":[3]}"#));
    let mut rng = StdRng::seed_from_u64(1);
    for _ in 0..300 {
        let mut damaged = bytes.clone();
        for _ in 0..rng.random_range(1..4) {
            let at = rng.random_range(0..damaged.len());
            damaged[at] = rng.random();
        }
        damaged.truncate(rng.random_range(0..=damaged.len() * 2));
        // Damage may also make another engine; it must only not panic or hang.
        if let Ok(mut expander) = json_schema::decode_expander(&damaged, &Limits::default()) {
            let mut grammar = schemac::ir::Grammar::new(100_000);
            for family in 0..4 {
                let family = schemac::FamilyId::new(family);
                let _ = expander.expand(family, &mut grammar.scope());
            }
        }
    }
}

#[test]
fn formats_of_numbers_bound_numbers_and_nothing_else() {
    let limits = JsonOptions::default();
    check(
        r#"{"format": "int32"}"#,
        &limits,
        &["0", "-2147483648", "2147483647", "null", r#""x""#, "[1.5]", r#"{"a": 3000000000}"#],
        &["-2147483649", "2147483648", "1.5", "99999999999", "1e99"],
    );
    check(
        r#"{"type": ["integer", "null"], "format": "uint8", "maximum": 200.5, "multipleOf": 10}"#,
        &limits,
        &["0", "200", "null"],
        &["210", "-10", "5", "250", "260"],
    );
    // Large integers may be written as strings.
    check(
        r#"{"type": ["number", "string"], "format": "int64"}"#,
        &limits,
        &["9223372036854775807", r#""-9223372036854775808""#, r#""0""#],
        &["9223372036854775808", r#""9223372036854775808""#, r#""x""#, r#""""#, r#""01""#],
    );
    check(
        r#"{"type": "number", "format": "double"}"#,
        &limits,
        &["1.5", "-1.7976931348623157e308", "1e308", "1e-400", "1E+308"],
        &["1.8e308", "-1e309", "1e1000"],
    );
    check(r#"{"format": "float"}"#, &limits, &["3.4e38", "1"], &["3.5e38", "-1e39"]);
    check(r#"{"not": {"format": "uint8"}, "type": "integer"}"#, &limits, &["-1", "256"], &["7"]);
    check(r#"{"format": "password", "maxLength": 2}"#, &limits, &[r#""é!""#, "1"], &[r#""abc""#]);
}

#[test]
fn what_a_format_leaves_open_is_not_taken_for_its_negation() {
    // It is a valid host name, which is not generated as one.
    for schema in [
        r#"{"type": "string", "format": "hostname"}"#,
        r#"{"type": "string", "not": {"format": "hostname"}}"#,
        r#"{"type": "string", "if": {"format": "hostname"}, "then": false}"#,
        r#"{"type": "string", "oneOf": [{"format": "hostname"}, {"maxLength": 20}]}"#,
    ] {
        check(schema, &JsonOptions::default(), &[], &[r#""xn--nxasmq6b""#]);
    }
    check(r#"{"not": {"format": "hostname"}}"#, &JsonOptions::default(), &[r#""a_b""#], &["1"]);
}

#[test]
fn elements_that_must_differ_are_told_apart_by_value() {
    let options = JsonOptions::default();
    let any = r#"{"type": "array", "uniqueItems": true}"#;
    check(
        any,
        &options,
        &[
            "[]",
            "[1,2,10,12,1.5,-1,0]",
            r#"[1,"1",true,null,[1],[],{},"true",[[]],{"a":1},{"a":[1]}]"#,
            r#"[[1,2],[2,1],[[1,2]],{"a":{"b":[{}]}},{"b":{"a":[{}]}}]"#,
            "[\n  1,\n  2\n]",
            "[1, 2 ]",
        ],
        &[
            "[1,1]",
            "[1,2,1]",
            "[1,2,1 ]",
            "[1, 1\n]",
            r#"["a","b","a"]"#,
            "[null,null]",
            "[true,false,true]",
            "[[1],[1]]",
            r#"[{"a":[1,{}]},2,{"a":[1,{}]}]"#,
            "[[],1,[]]",
            // Other spellings of what was written are not generated.
            "[1,1.0]",
            "[0,-0]",
            r#"["a","\u0061"]"#,
            r#"[{"a":1},{"a":1.0}]"#,
            r#"[{"a":1,"b":2},{"b":2,"a":1}]"#,
            "[[1],[1 ]]",
        ],
    );
    let objects = r#"{"type": "array", "uniqueItems": true, "items": {"type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "array", "uniqueItems": true}}}}"#;
    for order in [PropertyOrder::Declared, PropertyOrder::Any] {
        check(
            objects,
            &JsonOptions::default().property_order(order),
            &[
                r#"[{"a":1},{"a":2},{"a":1,"b":[]},{"a":1,"b":[1,2]},{"a":1,"b":[2,1]},{"x":0}]"#,
                r#"[{},{"a":1,"x":1}]"#,
            ],
            &[
                r#"[{"a":1},{"a":1}]"#,
                r#"[{"a":1,"b":[1,1]}]"#,
                r#"[{"a":1,"b":[]},{"b":[],"a":1}]"#,
                r#"[{"a":1,"b":[1,{"c":2}]},{},{"a":1,"b":[1,{"c":2}]}]"#,
            ],
        );
    }
    let pretty = JsonOptions::default().whitespace(Whitespace::Pretty(1));
    check(objects, &pretty, &["[\n {\n  \"a\": 1\n },\n {}\n]"], &["[\n {},\n {}\n]"]);
    // The last of three leaves nothing to follow.
    check(
        r#"{"items": {"enum": [[1], [1.0], {}, {"a": 1}]}, "uniqueItems": true, "type": "array"}"#,
        &options,
        &[r#"[{"a":1},[1],{}]"#, "[]"],
        &["[[1],[1]]", "[{},{}]"],
    );
}

#[test]
fn masks_under_elements_that_must_differ_equal_brute_force() {
    let mut tokens: Vec<Token> =
        b"[]{},:\"ab01. ".iter().map(|&b| Token::Text([b].into())).collect();
    for text in [
        "[[",
        "]]",
        "],",
        "],[",
        "1,",
        "1]",
        ",1",
        "1,1",
        "0,1]",
        "[1]",
        "[1],",
        "{\"a\":1}",
        "{\"a\":",
        "},",
        "},{",
        "\"a\"",
        "\"a\",",
        "a\"",
        "\",\"",
        ":1}",
        "{}",
        "{},",
        "[],",
        "{}]",
        "10",
        "10,1",
        "true",
        "null,",
        "[1],[1]",
        ",[",
        "\"b\":[",
        "1]}",
        "1]},",
        "]}",
        "\"]",
        ":[1,",
        "]],",
    ] {
        tokens.push(Token::Text(text.as_bytes().into()));
    }
    tokens.push(Token::Special("end".into()));
    let end = TokenId::from_index(tokens.len() - 1).unwrap();
    let vocabulary = Arc::new(Vocabulary::new(tokens, [end]).unwrap());
    for schema in [
        r#"{"type":"array","uniqueItems":true}"#,
        r#"{"type":"array","uniqueItems":true,"items":{"type":["integer","string","array"]}}"#,
        r#"{"type":"array","uniqueItems":true,"items":{"properties":{"a":{"enum":[1,10]},"b":{"type":"array","uniqueItems":true,"items":{"type":"integer"}}},"type":"object","additionalProperties":false}}"#,
        r#"{"type":"array","uniqueItems":true,"items":{"type":"array","items":{"type":"integer"},"maxItems":2}}"#,
        r#"{"anyOf":[{"uniqueItems":true},{"items":{"type":["array","integer"]}}],"type":"array"}"#,
        r#"{"type":"array","uniqueItems":true,"items":{"type":"string","pattern":"^[ab]{0,6}$"}}"#,
        r#"{"type":"array","uniqueItems":true,"items":{"type":"integer","minimum":0,"maximum":111}}"#,
        r#"{"type":"array","uniqueItems":true,"items":{"type":"object","properties":{"a":{"type":"array","items":{"enum":[1,0]}},"b":{"type":["boolean","null"]}},"additionalProperties":false}}"#,
    ] {
        let limits = Limits::default();
        let options = JsonOptions::default().whitespace(Whitespace::Compact);
        let grammar = json_schema::compile(schema, &options, &limits).unwrap();
        let automaton = Arc::new(TokenAutomaton::new(grammar, vocabulary.clone(), limits).unwrap());
        let mut compared = 0;
        for seed in 0..150 {
            compared += check_walk(&automaton, &mut StdRng::seed_from_u64(seed), 60);
        }
        assert!(compared > 500, "{schema}: {compared}");
    }
}

#[test]
fn an_unsatisfiable_schema_names_the_keywords_in_conflict() {
    for (schema, message, places) in [
        ("false", "nothing satisfies `false`", vec![""]),
        (r#"{"title":"x","enum":[]}"#, "nothing satisfies `enum`", vec!["/enum"]),
        (
            r#"{"description":"d","type":"string","minLength":1,"pattern":"^$","maxLength":9}"#,
            "nothing satisfies these together: `type`, `minLength`, `pattern`, `maxLength`",
            vec!["/type", "/minLength", "/pattern", "/maxLength"],
        ),
        (
            r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string","format":"date","pattern":"^x"}},"required":["a","b"]}"#,
            "nothing satisfies these together: `type`, `properties`, `format`, `pattern`, `required`",
            vec![
                "/type",
                "/properties",
                "/properties/b/type",
                "/properties/b/format",
                "/properties/b/pattern",
                "/required",
            ],
        ),
        (
            r##"{"allOf":[{"$ref":"#/$defs/n"},{"type":"string","maxLength":3}],"$defs":{"n":{"type":"integer","minimum":3}}}"##,
            "nothing satisfies these together: `allOf`, `$ref`, `type`",
            vec!["/allOf", "/allOf/0/$ref", "/allOf/1/type", "/$defs/n/type"],
        ),
        (
            r##"{"$defs":{"t":{"type":"array","items":{"$ref":"#/$defs/t"},"minItems":1,"maxItems":5}},"$ref":"#/$defs/t"}"##,
            "nothing satisfies these together: `type`, `items`, `$ref`, `minItems`, `maxItems`",
            vec![
                "/$defs/t/type",
                "/$defs/t/items",
                "/$defs/t/items/$ref",
                "/$defs/t/minItems",
                "/$defs/t/maxItems",
                "/$ref",
            ],
        ),
        (
            r#"{"type":"integer","not":{"type":"number"},"minimum":4}"#,
            "nothing satisfies these together: `type`, `not`",
            vec!["/type", "/not"],
        ),
    ] {
        let error = automaton(schema, &JsonOptions::default()).unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Unsatisfiable, "{schema}");
        assert_eq!(error.message(), message, "{schema}");
        let related = error.related().iter().map(|place| match place {
            schemac::Location::Pointer(pointer) => pointer.as_str(),
            other => panic!("{other}"),
        });
        let found: Vec<&str> = error.pointer().into_iter().chain(related).collect();
        assert_eq!(found, places, "{schema}");
    }
}

#[test]
fn looking_for_a_conflict_in_a_large_schema_is_quick() {
    let many: Vec<String> =
        (0..2_000).map(|i| format!(r#""p{i}":{{"type":"string","maxLength":{i}}}"#)).collect();
    let schema = format!(
        r#"{{"type":"object","properties":{{{},"x":{{"allOf":[{{"minimum":2}},{{"maximum":1,"type":"number"}}]}}}},"required":["p7","x"]}}"#,
        many.join(",")
    );
    let error = automaton(&schema, &JsonOptions::default()).unwrap_err();
    assert_eq!(error.pointer(), Some("/type"));
    assert!(error.message().contains("`minimum`, `maximum`"), "{error}");
}
