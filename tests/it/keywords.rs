//! The table of keywords in `docs/json_schema.md`: it is made from the one here, of which every row is
//! checked in every draft, against the independent `jsonschema` crate too.
//!
//! `SCHEMAC_WRITE_DOCS=1` writes it.

use std::fmt::Write as _;

use schemac::frontend::json_schema::{self, Draft, JsonOptions, Status};
use schemac::{Compiler, Limits, Matcher, Vocabulary};
use serde_json::Value;

use Draft::{Draft4, Draft6, Draft7, Draft201909, Draft202012};

const DRAFTS: [(Draft, &str, jsonschema::Draft); 5] = [
    (Draft4, "4", jsonschema::Draft::Draft4),
    (Draft6, "6", jsonschema::Draft::Draft6),
    (Draft7, "7", jsonschema::Draft::Draft7),
    (Draft201909, "2019-09", jsonschema::Draft::Draft201909),
    (Draft202012, "2020-12", jsonschema::Draft::Draft202012),
];

/// What becomes of a keyword in other drafts.
#[derive(Clone, Copy, PartialEq)]
enum Elsewhere {
    /// It asserts nothing.
    Annotation,
    /// Its value is an error.
    Error,
    /// It asserts the same, because schemas mean it.
    Same,
}

struct Row {
    keyword: &'static str,
    /// What is told of its form, if it has several.
    form: &'static str,
    first: Draft,
    last: Draft,
    elsewhere: Elsewhere,
    becomes: &'static str,
    schema: &'static str,
    allowed: &'static str,
    forbidden: &'static str,
}

const fn row(
    keyword: &'static str,
    first: Draft,
    becomes: &'static str,
    [schema, allowed, forbidden]: [&'static str; 3],
) -> Row {
    Row {
        keyword,
        form: "",
        first,
        last: Draft202012,
        elsewhere: Elsewhere::Annotation,
        becomes,
        schema,
        allowed,
        forbidden,
    }
}

const fn until(mut row: Row, last: Draft, form: &'static str, elsewhere: Elsewhere) -> Row {
    row.last = last;
    row.form = form;
    row.elsewhere = elsewhere;
    row
}

#[rustfmt::skip]
const ROWS: [Row; 54] = [
    row("type", Draft4, "the kinds of value that are offered", [r#"{"type":["null","integer"]}"#, "1", "1.5"]),
    row("enum", Draft4, "the values, in their spellings", [r#"{"enum":[1,"a",[true]]}"#, "[true]", "[false]"]),
    row("const", Draft6, "the value, in its spellings", [r#"{"const":{"a":null}}"#, r#"{"a":null}"#, "{}"]),
    row("minimum", Draft4, "a comparison digit by digit, exact at any size and scale", [r#"{"minimum":5.25}"#, "5.25", "5.2"]),
    row("maximum", Draft4, "the same", [r#"{"maximum":5}"#, "5", "5.1"]),
    row("exclusiveMinimum", Draft6, "the same", [r#"{"exclusiveMinimum":5}"#, "5.1", "5"]).error_before(),
    row("exclusiveMaximum", Draft6, "the same", [r#"{"exclusiveMaximum":5}"#, "4", "5"]).error_before(),
    until(row("exclusiveMinimum", Draft4, "`minimum` without its end", [r#"{"minimum":5,"exclusiveMinimum":true}"#, "6", "5"]), Draft4, "boolean", Elsewhere::Error),
    until(row("exclusiveMaximum", Draft4, "`maximum` without its end", [r#"{"maximum":5,"exclusiveMaximum":true}"#, "4", "5"]), Draft4, "boolean", Elsewhere::Error),
    row("multipleOf", Draft4, "an arithmetic progression, of fractions too, together with bounds", [r#"{"multipleOf":0.25,"minimum":0}"#, "1.75", "1.8"]),
    row("minLength", Draft4, "a count of code points of the decoded string", [r#"{"minLength":2}"#, r#""éé""#, r#""é""#]),
    row("maxLength", Draft4, "the same", [r#"{"maxLength":1}"#, r#""\ud83d\ude00""#, r#""ab""#]),
    row("pattern", Draft4, "a regular language of ECMA-262, matched anywhere", [r#"{"pattern":"a(?!b)"}"#, r#""xac""#, r#""xab""#]),
    row("format", Draft4, "a regular language ([formats](#formats))", [r#"{"format":"ipv4"}"#, r#""10.0.0.1""#, r#""10.0.0.256""#]),
    row("properties", Draft4, "members by name", [r#"{"properties":{"a":{"type":"null"}}}"#, r#"{"a":null}"#, r#"{"a":1}"#]),
    row("patternProperties", Draft4, "members whose name matches, also beside declared ones", [r#"{"patternProperties":{"^a":{"type":"null"}}}"#, r#"{"ab":null}"#, r#"{"ab":1}"#]),
    row("additionalProperties", Draft4, "all other members", [r#"{"properties":{"a":{}},"additionalProperties":false}"#, r#"{"a":1}"#, r#"{"b":1}"#]),
    row("propertyNames", Draft6, "a language of names", [r#"{"propertyNames":{"maxLength":1}}"#, r#"{"a":1}"#, r#"{"ab":1}"#]),
    row("required", Draft4, "members that must follow before the end", [r#"{"required":["a"]}"#, r#"{"a":1}"#, "{}"]),
    row("minProperties", Draft4, "a count", [r#"{"minProperties":1}"#, r#"{"a":1}"#, "{}"]),
    row("maxProperties", Draft4, "a count", [r#"{"maxProperties":1}"#, r#"{"a":1}"#, r#"{"a":1,"b":1}"#]),
    row("dependentRequired", Draft201909, "members that must follow or precede others", [r#"{"properties":{"a":{},"b":{}},"dependentRequired":{"a":["b"]}}"#, r#"{"a":1,"b":1}"#, r#"{"a":1}"#]),
    row("dependentSchemas", Draft201909, "a schema where a member is there", [r#"{"dependentSchemas":{"a":{"minProperties":2}}}"#, r#"{"a":1,"b":1}"#, r#"{"a":1}"#]),
    until(row("dependencies", Draft4, "either of the former two", [r#"{"properties":{"a":{},"b":{}},"dependencies":{"a":["b"]}}"#, r#"{"a":1,"b":1}"#, r#"{"a":1}"#]), Draft7, "", Elsewhere::Same),
    row("unevaluatedProperties", Draft201909, "members that no branch in force evaluates", [r#"{"allOf":[{"properties":{"a":{"type":"null"}}}],"unevaluatedProperties":false}"#, r#"{"a":null}"#, r#"{"a":null,"b":1}"#]),
    row("prefixItems", Draft202012, "the first elements", [r#"{"prefixItems":[{"type":"null"}]}"#, "[null,1]", "[1]"]),
    row("items", Draft4, "all (further) elements", [r#"{"items":{"type":"null"}}"#, "[null]", "[1]"]),
    until(row("items", Draft4, "the first elements; in 2020-12 only if nothing says that the schema is of 2020-12", [r#"{"items":[{"type":"null"}]}"#, "[null,1]", "[1]"]), Draft201909, "array", Elsewhere::Error),
    until(row("additionalItems", Draft4, "all further elements", [r#"{"items":[{}],"additionalItems":{"type":"null"}}"#, "[1,null]", "[1,1]"]), Draft201909, "", Elsewhere::Error),
    row("contains", Draft6, "a count of the elements that match", [r#"{"contains":{"type":"null"}}"#, "[1,null]", "[1]"]),
    row("minContains", Draft201909, "the same", [r#"{"contains":{"type":"null"},"minContains":2}"#, "[null,null]", "[null]"]),
    row("maxContains", Draft201909, "the same", [r#"{"contains":{"type":"null"},"maxContains":1}"#, "[null]", "[null,null]"]),
    row("minItems", Draft4, "a count", [r#"{"minItems":1}"#, "[1]", "[]"]),
    row("maxItems", Draft4, "a count", [r#"{"maxItems":1}"#, "[1]", "[1,1]"]),
    row("uniqueItems", Draft4, "a history of the elements ([how](#elements-that-must-differ))", [r#"{"uniqueItems":true}"#, r#"[1,"1",[1]]"#, "[1,2,1]"]),
    row("unevaluatedItems", Draft201909, "elements that no branch in force evaluates", [r#"{"allOf":[{"minItems":1}],"unevaluatedItems":{"type":"null"}}"#, "[null]", "[1]"]),
    row("allOf", Draft4, "a conjunction", [r#"{"allOf":[{"minimum":1},{"maximum":2}]}"#, "2", "3"]),
    row("anyOf", Draft4, "a disjunction", [r#"{"anyOf":[{"enum":[1]},{"enum":[2]}]}"#, "2", "3"]),
    row("oneOf", Draft4, "exactly one; a disjunction where the branches exclude each other", [r#"{"oneOf":[{"enum":[1,2]},{"enum":[2,3]}]}"#, "1", "2"]),
    row("not", Draft4, "a complement", [r#"{"not":{"type":"null"}}"#, "1", "null"]),
    row("if", Draft7, "with `then` and `else`, two cases", [r#"{"if":{"type":"string"},"then":{"maxLength":1}}"#, r#""a""#, r#""ab""#]),
    row("then", Draft7, "beside `if`", [r#"{"then":{"minimum":1},"if":{"type":"integer"}}"#, "1", "0"]),
    row("else", Draft7, "beside `if`", [r#"{"if":{"type":"null"},"else":{"enum":[1]}}"#, "null", "2"]),
    row("$ref", Draft4, "the schema there; up to draft 7 its siblings are ignored", [r##"{"$ref":"#/definitions/a","definitions":{"a":{"enum":[1]}}}"##, "1", "2"]),
    row("definitions", Draft4, "schemas for references", [r##"{"$ref":"#/definitions/a","definitions":{"a":{"enum":[1]}}}"##, "1", "2"]),
    row("$defs", Draft4, "the same, since 2019-09", [r##"{"$ref":"#/$defs/a","$defs":{"a":{"enum":[1]}}}"##, "1", "2"]),
    until(row("id", Draft4, "an address; with `#name` an anchor", [r##"{"allOf":[{"$ref":"http://a.example/r"}],"definitions":{"a":{"id":"http://a.example/r","enum":[1]}}}"##, "1", "2"]), Draft4, "", Elsewhere::Error),
    row("$id", Draft6, "an address; up to draft 7 with `#name` an anchor", [r##"{"allOf":[{"$ref":"http://a.example/r"}],"definitions":{"a":{"$id":"http://a.example/r","enum":[1]}}}"##, "1", "2"]).error_before(),
    row("$anchor", Draft201909, "an anchor", [r##"{"$ref":"#x","$defs":{"a":{"$anchor":"x","enum":[1]}}}"##, "1", "2"]).error_before(),
    row("$dynamicRef", Draft202012, "the schema of that anchor in the outermost scope that has it", [r##"{"$dynamicRef":"#x","$defs":{"a":{"$dynamicAnchor":"x","enum":[1]}}}"##, "1", "2"]),
    row("$dynamicAnchor", Draft202012, "an anchor, for both kinds of reference", [r##"{"$ref":"#x","$defs":{"a":{"$dynamicAnchor":"x","enum":[1]}}}"##, "1", "2"]).error_before(),
    until(row("$recursiveRef", Draft201909, "the root of the outermost scope that `$recursiveAnchor` marks", [r##"{"$recursiveAnchor":true,"type":"array","items":{"$recursiveRef":"#"}}"##, "[[]]", "[1]"]), Draft201909, "", Elsewhere::Annotation),
    until(row("$recursiveAnchor", Draft201909, "a mark for the former", [r##"{"$recursiveAnchor":true,"type":"array","items":{"$recursiveRef":"#"}}"##, "[[]]", "[1]"]), Draft201909, "", Elsewhere::Annotation),
    row("$schema", Draft4, "the draft, and by `$vocabulary` of the meta-schema which keywords assert", [r#"{"$schema":"http://json-schema.org/draft-07/schema#","if":true,"then":{"enum":[1]}}"#, "1", "2"]),
];

impl Row {
    const fn error_before(mut self) -> Self {
        self.elsewhere = Elsewhere::Error;
        self
    }

    fn is_of(&self, draft: Draft) -> bool {
        (self.first..=self.last).contains(&draft)
    }

    fn title(&self) -> String {
        let form = if self.form.is_empty() { String::new() } else { format!(", {}", self.form) };
        format!("`{}`{form}", self.keyword)
    }
}

/// The annotations of the standard.
const ANNOTATIONS: [&str; 12] = [
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "x-unknown",
];

fn name_of(draft: Draft) -> &'static str {
    DRAFTS.iter().find(|(of, ..)| *of == draft).unwrap().1
}

fn compiler(draft: Draft) -> Compiler {
    Compiler::new(Vocabulary::embedded()).json_options(JsonOptions::default().draft(draft))
}

fn validator(
    row: &Row,
    draft: Draft,
) -> Result<jsonschema::Validator, jsonschema::ValidationError<'static>> {
    let schema: Value = serde_json::from_str(row.schema).unwrap();
    let mut options = jsonschema::options().should_validate_formats(true);
    if row.keyword != "$schema" {
        options = options.with_draft(DRAFTS.iter().find(|(of, ..)| *of == draft).unwrap().2);
    }
    options.build(&schema)
}

fn table() -> String {
    let mut text = "| Keyword | Drafts | Becomes |\n|---|---|---|\n".to_owned();
    for row in &ROWS {
        let (first, last) = (name_of(row.first), name_of(row.last));
        let drafts = match (row.first, row.last) {
            (Draft4, Draft202012) => "all".to_owned(),
            (_, Draft202012) => format!("{first} on"),
            (first, last) if first == last => format!("{} only", name_of(first)),
            (Draft4, _) => format!("up to {last}"),
            _ => format!("{first} to {last}"),
        };
        let drafts = match row.elsewhere {
            Elsewhere::Same => "all, although the standard has it only up to 7".to_owned(),
            _ => drafts,
        };
        writeln!(text, "| {} | {drafts} | {} |", row.title(), row.becomes).unwrap();
    }
    let annotations: Vec<_> =
        ANNOTATIONS[..11].iter().map(|keyword| format!("`{keyword}`")).collect();
    writeln!(text, "| {} | all | nothing: annotations |", annotations.join(" ")).unwrap();
    text
}

#[test]
fn every_keyword_is_enforced_in_its_drafts_and_only_there() {
    for row in &ROWS {
        let pointer = format!("\"{}\":", row.keyword);
        assert!(row.schema.contains(&pointer), "{}: {}", row.title(), row.schema);
        for (draft, name, _) in DRAFTS {
            let title = format!("{} in draft {name}", row.title());
            let compiled = compiler(draft).compile_schema(row.schema);
            if !row.is_of(draft) && row.elsewhere == Elsewhere::Error {
                let error = compiled.expect_err(&title);
                assert!(error.pointer().is_some(), "{title}: {error}");
                continue;
            }
            let automaton = compiled.unwrap_or_else(|error| panic!("{title}: {error}"));
            let enforced = row.is_of(draft) || row.elsewhere == Elsewhere::Same;
            for (text, valid) in [(row.allowed, true), (row.forbidden, !enforced)] {
                let mut matcher = Matcher::new(automaton.clone());
                let legal = matcher.accept_bytes(text.as_bytes()).is_ok();
                assert_eq!(legal && matcher.is_accepting().unwrap(), valid, "{title}: {text}");
                if row.is_of(draft) {
                    let value = serde_json::from_str(text).unwrap();
                    let validator = validator(row, draft).unwrap();
                    assert_eq!(validator.is_valid(&value), valid, "{title}: {text}, by jsonschema");
                }
            }
        }
    }
}

#[test]
fn the_report_tells_what_every_keyword_became() {
    let limits = Limits::default();
    for row in &ROWS {
        for (draft, name, _) in DRAFTS.into_iter().filter(|&(draft, ..)| row.is_of(draft)) {
            let options = JsonOptions::default().draft(draft);
            let reports = json_schema::report(row.schema, &options, &limits, None).unwrap();
            let title = format!("{} in draft {name}", row.title());
            let own: Vec<_> = reports.iter().filter(|r| r.keyword == row.keyword).collect();
            assert!(!own.is_empty(), "{title}");
            for report in own {
                assert!(!report.became.is_empty(), "{title}");
                assert_ne!(report.status, Status::Departs, "{title}");
                let structure = report.status == Status::Structure;
                assert_eq!(report.status == Status::Enforced, !structure, "{title}: {report:?}");
            }
        }
    }
}

#[test]
fn annotations_change_nothing_and_are_reported_as_such() {
    for keyword in ANNOTATIONS {
        let schema = format!(r#"{{"{keyword}":"text","type":"null"}}"#);
        let reports = compiler(Draft202012).report_schema(&schema).unwrap();
        assert_eq!(reports[0].status, Status::Annotation, "{keyword}");
        assert_eq!(reports[1].status, Status::Enforced, "{keyword}");
        compiler(Draft202012).compile_schema(&schema).unwrap();
    }
}

#[test]
fn the_table_of_the_documentation_is_this_one() {
    const MARK: &str = "<!-- keywords -->\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/json_schema.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (before, rest) = text.split_once(MARK).unwrap();
    let at = rest.find("\n\n").unwrap();
    let (written, after) = rest.split_at(at + 1);
    if std::env::var_os("SCHEMAC_WRITE_DOCS").is_some() {
        std::fs::write(path, format!("{before}{MARK}{}{after}", table())).unwrap();
        return;
    }
    assert_eq!(written, table(), "SCHEMAC_WRITE_DOCS=1 writes it");
}
