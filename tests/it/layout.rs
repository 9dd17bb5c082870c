//! Layouts of text and JSON, and the requests that ask for them.

use std::num::NonZeroUsize;
use std::sync::Arc;

use schemac::frontend::layout::Layout;
use schemac::frontend::openai::{ToolStyle, layout};
use schemac::runtime::{ConstrainedSampler, Policy, RandomModel};
use schemac::{Compiler, ErrorKind, Matcher, TokenAutomaton, Vocabulary};
use serde_json::{Value, json};

fn accepts(automaton: &Arc<TokenAutomaton>, text: &str) -> bool {
    let mut matcher = Matcher::new(automaton.clone());
    matcher.accept_bytes(text.as_bytes()).is_ok() && matcher.is_accepting().unwrap()
}

fn compile(layout: &Layout) -> Arc<TokenAutomaton> {
    Compiler::new(Vocabulary::embedded()).compile_layout(layout).unwrap()
}

fn check(automaton: &Arc<TokenAutomaton>, accepted: &[&str], refused: &[&str]) {
    for text in accepted {
        assert!(accepts(automaton, text), "refused {text:?}");
    }
    for text in refused {
        assert!(!accepts(automaton, text), "accepted {text:?}");
    }
}

#[test]
fn free_text_ends_at_the_first_occurrence() {
    let until = compile(&Layout::until("aab"));
    check(&until, &["aab", "aaab", "xaab", "é aab"], &["", "aa", "aabx", "aabaab", "aab aab"]);
    // A text that overlaps itself: the first `aa` of `aaa` ends after two.
    check(&compile(&Layout::until("aa")), &["aa", "baa", "abaa"], &["aaa", "a", "baaa"]);
    let free = compile(&Layout::Free { without: vec!["ab".into(), "c".into()] });
    check(&free, &["", "ba", "aéb", "bbaa"], &["ab", "xaby", "c"]);
    let bytes = |text: &[u8]| Matcher::new(free.clone()).accept_bytes(text).is_ok();
    assert!(bytes(b"\xc3\xa9") && !bytes(b"\xff"), "free text is UTF-8");
}

#[test]
fn reasoning_comes_before_the_answer_and_tokens_cross_the_border() {
    let schema = json!({"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}},
        "required": ["n"], "additionalProperties": false,
        "$defs": {"n": {"enum": [1, 2]}}});
    let whole = Layout::Sequence(vec![
        Layout::until("</think>\n"),
        Layout::Schema(schema.to_string()),
        Layout::Repeat { part: Box::new(Layout::text("!")), min: 1, max: Some(2) },
    ]);
    let automaton = compile(&whole);
    check(
        &automaton,
        &["</think>\n{\"n\":1}!", "x < y </think> \"</think>\n{\"n\": 2}!!"],
        &["{\"n\":1}!", "</think>\n{\"n\":3}!", "</think>\n{\"n\":1}", "</think>\n{\"n\":1}!!!"],
    );
    // ">\n" is no border of tokens, and neither is `\n{`.
    let mut matcher = Matcher::new(automaton.clone());
    matcher.accept_bytes(b"so</think>").unwrap();
    let legal: Vec<_> = matcher.mask().unwrap().iter().collect();
    let vocabulary = Vocabulary::embedded();
    assert!(legal.iter().any(|&token| vocabulary.bytes(token) == b"\n"));
    // A budget holds for the whole.
    let mut model = RandomModel::new(&vocabulary, 0);
    for seed in 0..30 {
        model.reseed(seed);
        let policy = Policy::sample(1.0).seed(seed).max_tokens(NonZeroUsize::new(30).unwrap());
        let mut sampler = ConstrainedSampler::new(automaton.clone(), policy).unwrap();
        sampler.generate(&mut model).unwrap();
        assert!(sampler.tokens().len() <= 30 && accepts(&automaton, &sampler.text()));
    }
}

#[test]
fn several_schemas_keep_their_references_and_drafts_apart() {
    let draft7 = r##"{"$schema": "http://json-schema.org/draft-07/schema#",
        "$ref": "#/definitions/x", "definitions": {"x": {"const": 7}}}"##;
    let other = r##"{"$ref": "#/$defs/x", "$defs": {"x": {"const": 20}}}"##;
    let choice = Layout::Choice(vec![
        Layout::Sequence(vec![Layout::text("a"), Layout::Schema(draft7.into())]),
        Layout::Sequence(vec![Layout::text("b"), Layout::Schema(other.into())]),
    ]);
    check(&compile(&choice), &["a7", "b20"], &["a20", "b7", "7", "a"]);
    let broken = Layout::Schema(r##"{"$ref": "#/$defs/missing"}"##.into());
    assert!(Compiler::new(Vocabulary::embedded()).compile_layout(&broken).is_err());
    let text = Layout::Schema("[1".into());
    assert!(Compiler::new(Vocabulary::embedded()).compile_layout(&text).is_err());
}

fn request(more: &[(&str, Value)]) -> Value {
    let mut request = json!({"tools": [
        {"type": "function", "function": {"name": "weather", "parameters": {
            "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
            "additionalProperties": false}}},
        {"type": "function", "function": {"name": "now"}}
    ]});
    for (name, value) in more {
        request[*name] = value.clone();
    }
    request
}

fn answers(request: &Value) -> Arc<TokenAutomaton> {
    let compiler = Compiler::new(Vocabulary::embedded());
    compiler.compile_request(request, &ToolStyle::default()).unwrap()
}

const WEATHER: &str =
    "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\":\"Oslo\"}}\n</tool_call>";
const NOW: &str = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
const WRONG: &str =
    "<tool_call>\n{\"name\": \"now\", \"arguments\": {\"city\":\"Oslo\"}}\n</tool_call>";

#[test]
fn tools_are_called_by_name_with_their_own_arguments() {
    let text_and_call = format!("Let me look. {WEATHER} and {NOW}");
    let two = format!("{WEATHER}\n{NOW}");
    check(
        &answers(&request(&[])),
        &["", "No call <tool>.", NOW, &text_and_call, &two],
        &[WRONG, "<tool_call>\n", "<tool_call>\n{}\n</tool_call>"],
    );
    check(
        &answers(&request(&[("tool_choice", json!("required"))])),
        &[WEATHER, NOW, &two],
        &["", "text", WRONG, &text_and_call],
    );
    let one = [("tool_choice", json!("required")), ("parallel_tool_calls", json!(false))];
    check(&answers(&request(&one)), &[WEATHER, NOW], &["", &two]);
    let auto_one = [("parallel_tool_calls", json!(false))];
    check(&answers(&request(&auto_one)), &["text", NOW, "a<tool_call"], &[&two, &text_and_call]);
    let named = json!({"type": "function", "function": {"name": "now"}});
    check(&answers(&request(&[("tool_choice", named)])), &[NOW], &[WEATHER, &two, "", WRONG]);
    check(&answers(&request(&[("tool_choice", json!("none"))])), &["text", WRONG], &[]);
    let allowed = |mode: &str| {
        let tools = json!([{"type": "function", "function": {"name": "now"}}]);
        let allowed = json!({"mode": mode, "tools": tools});
        let choice = json!({"type": "allowed_tools", "allowed_tools": allowed});
        answers(&request(&[("tool_choice", choice)]))
    };
    check(&allowed("auto"), &["text", NOW], &[WEATHER, WRONG]);
    check(&allowed("required"), &[NOW], &["text", WEATHER, WRONG]);
}

#[test]
fn the_format_of_an_answer_is_text_json_or_a_schema() {
    let object = [("response_format", json!({"type": "json_object"})), ("tools", Value::Null)];
    check(&answers(&request(&object)), &["{}", "{\"a\":[1]}"], &["[]", "text", NOW]);
    let schema = json!({"type": "json_schema", "json_schema": {"name": "n", "strict": true,
        "schema": {"type": "integer", "minimum": 10}}});
    check(
        &answers(&request(&[("response_format", schema)])),
        &["10", "123", NOW],
        &["9", "text", "10 <tool_call>"],
    );
    check(&answers(&json!({"response_format": {"type": "text"}})), &["", "any"], &[]);
}

#[test]
fn requests_that_are_not_as_described_are_refused_by_member() {
    for (name, wrong) in [
        ("response_format", json!({"type": "xml"})),
        ("response_format", json!({"type": "json_schema"})),
        ("tools", json!({})),
        ("tools", json!([{"type": "custom"}])),
        ("tools", json!([{"type": "function", "function": {"name": "a b"}}])),
        ("tool_choice", json!("maybe")),
        ("tool_choice", json!({"type": "function", "function": {"name": "other"}})),
        ("tool_choice", json!({"type": "custom", "custom": {"name": "now"}})),
        ("tool_choice", json!({"type": "allowed_tools", "allowed_tools": {"mode": "auto"}})),
        (
            "tool_choice",
            json!({"type": "allowed_tools", "allowed_tools": {"mode": "any",
            "tools": [{"type": "function", "function": {"name": "now"}}]}}),
        ),
        (
            "tool_choice",
            json!({"type": "allowed_tools", "allowed_tools": {"mode": "auto",
            "tools": [{"type": "function", "function": {"name": "other"}}]}}),
        ),
        ("parallel_tool_calls", json!(1)),
    ] {
        let error = layout(&request(&[(name, wrong)]), &ToolStyle::default()).unwrap_err();
        assert!(error.message().contains(&format!("`{name}`")), "{error}");
    }
    let none = json!({"tool_choice": "required"});
    assert!(layout(&none, &ToolStyle::default()).is_err());
}

#[test]
fn a_schema_that_nothing_satisfies_is_an_error_and_names_its_keywords() {
    let choice = Layout::Choice(vec![
        Layout::Schema(r#"{"type":"null"}"#.to_owned()),
        Layout::Schema(r#"{"type":"string","enum":[1],"minimum":3}"#.to_owned()),
    ]);
    let compiler = Compiler::new(Vocabulary::embedded());
    let error = compiler.compile_layout(&choice).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Unsatisfiable);
    assert_eq!(error.message(), "nothing satisfies these together: `type`, `enum`");
    let never = Layout::Choice(vec![Layout::text("a"), Layout::Schema("false".to_owned())]);
    let error = compiler.compile_layout(&never).unwrap_err();
    assert_eq!(error.message(), "nothing satisfies schema number 1 of the layout");
    // A tool that can never be called would otherwise not be offered, and nobody would know why.
    let request = json!({"tools": [{"type": "function", "function": {"name": "f",
        "parameters": {"type": "object", "required": ["a"], "properties": {"a": false}}}}]});
    let error = compiler.compile_request(&request, &ToolStyle::default()).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Unsatisfiable);
}
