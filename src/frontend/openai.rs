//! What a request of OpenAI's Chat Completions asks of an answer: JSON in, a [`Layout`] out.

use serde_json::{Map, Value, json};

use crate::error::{Error, ErrorKind};
use crate::frontend::layout::Layout;

/// How a model writes the call of a tool. Models differ; this is a matter of their chat template.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolStyle {
    /// What stands before a call, and nowhere else.
    pub open: String,
    /// What stands after it.
    pub close: String,
    /// What stands between two calls of which nothing but calls is asked.
    pub between: String,
    /// The member with the name of the tool.
    pub name: String,
    /// The member with its arguments.
    pub arguments: String,
}

impl Default for ToolStyle {
    /// The calls of Hermes and Qwen: `<tool_call>`, a line with `{"name": …, "arguments": …}`,
    /// `</tool_call>`.
    fn default() -> Self {
        Self {
            open: "<tool_call>\n".into(),
            close: "\n</tool_call>".into(),
            between: "\n".into(),
            name: "name".into(),
            arguments: "arguments".into(),
        }
    }
}

impl ToolStyle {
    /// Returns the style in which calls stand between these two texts.
    pub fn tags(open: impl Into<String>, close: impl Into<String>) -> Self {
        Self { open: open.into(), close: close.into(), ..Self::default() }
    }
}

/// Returns the layout of the answer that `request` asks for.
///
/// - `response_format`: text (the default), `json_object`, or `json_schema` with its schema.
/// - `tools` with `tool_choice` `"auto"` (the default): an answer as above in which calls may stand
///   between free texts; for an answer in JSON either that or calls. `"required"`: calls and nothing
///   else. `"none"`: no call. A tool by name: one call of it. `allowed_tools`: `"auto"` or `"required"`
///   for some of the tools.
/// - `parallel_tool_calls: false`: at most one call.
///
/// The arguments of a call meet the schema of its own tool. Other members of the request are not
/// looked at ([`crate::runtime::Dialect`] reads those of decoding).
///
/// # Errors
///
/// [`ErrorKind::InvalidKeyword`] naming the member that is not as OpenAI describes it, or asks for
/// something else (custom tools, a choice of tools that are not there).
pub fn layout(request: &Value, style: &ToolStyle) -> Result<Layout, Error> {
    let member = |name: &str| request.get(name).filter(|value| !value.is_null());
    let answer = response_format(member("response_format"))?;
    let mut tools = match member("tools") {
        None => Vec::new(),
        Some(Value::Array(list)) => list.iter().map(tool).collect::<Result<Vec<_>, _>>()?,
        Some(_) => return Err(invalid("tools", "it must be a list")),
    };
    let parallel = match member("parallel_tool_calls") {
        None => true,
        Some(value) => value
            .as_bool()
            .ok_or_else(|| invalid("parallel_tool_calls", "it must be true or false"))?,
    };
    let choice = choice(member("tool_choice"), &mut tools)?;
    let text_only = match &answer {
        Some(schema) => Layout::Schema(schema.clone()),
        None => Layout::Free { without: Vec::new() },
    };
    if tools.is_empty() || choice == Choice::None {
        return Ok(text_only);
    }
    let call = Layout::Choice(tools.iter().map(|tool| style.call(tool)).collect());
    let most = if choice == Choice::One || !parallel { Some(1) } else { None };
    let more = most.map(|most: u32| most - 1);
    let next = Layout::Sequence(vec![Layout::text(&style.between), call.clone()]);
    let next = Layout::Repeat { part: Box::new(next), min: 0, max: more };
    let only_calls = Layout::Sequence(vec![call.clone(), next]);
    if choice != Choice::Auto {
        return Ok(only_calls);
    }
    if answer.is_some() {
        return Ok(Layout::Choice(vec![text_only, only_calls]));
    }
    let free = Layout::Free { without: vec![style.open.clone()] };
    let with_text = Layout::Sequence(vec![call, free.clone()]);
    let calls = Layout::Repeat { part: Box::new(with_text), min: 0, max: most };
    Ok(Layout::Sequence(vec![free, calls]))
}

/// What may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    None,
    Auto,
    Required,
    /// The one tool that is left.
    One,
}

/// A tool that can be called.
struct Tool {
    name: String,
    /// The schema of its arguments.
    arguments: String,
}

impl ToolStyle {
    fn call(&self, tool: &Tool) -> Layout {
        let member = |name: &str| Value::String(name.to_owned());
        let head = format!(
            "{}{{{}: {}, {}: ",
            self.open,
            member(&self.name),
            member(&tool.name),
            member(&self.arguments)
        );
        Layout::Sequence(vec![
            Layout::Text(head),
            Layout::Schema(tool.arguments.clone()),
            Layout::Text(format!("}}{}", self.close)),
        ])
    }
}

fn invalid(member: &str, text: &str) -> Error {
    let keyword = member.into();
    Error::new(ErrorKind::InvalidKeyword { keyword }, format!("`{member}` of the request: {text}"))
}

/// Returns the schema that the answer must meet, if there is one.
fn response_format(format: Option<&Value>) -> Result<Option<String>, Error> {
    const NAME: &str = "response_format";
    let Some(format) = format else { return Ok(None) };
    match format.get("type").and_then(Value::as_str) {
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(json!({"type": "object"}).to_string())),
        Some("json_schema") => match format.pointer("/json_schema/schema") {
            Some(schema) => Ok(Some(schema.to_string())),
            None => Err(invalid(NAME, "there is no `json_schema.schema`")),
        },
        _ => Err(invalid(NAME, "its `type` must be text, json_object or json_schema")),
    }
}

fn tool(tool: &Value) -> Result<Tool, Error> {
    if tool.get("type").and_then(Value::as_str) != Some("function") {
        return Err(invalid("tools", "only tools of `type` function have arguments with a schema"));
    }
    let name = tool.pointer("/function/name").and_then(Value::as_str).unwrap_or_default();
    let good = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if name.is_empty() || name.len() > 64 || !name.bytes().all(good) {
        let text = "a name has 1 to 64 letters, digits, underscores and hyphens";
        return Err(invalid("tools", text));
    }
    // Without parameters there are no arguments.
    let none = json!({"type": "object", "properties": Map::new(), "additionalProperties": false});
    let arguments = tool.pointer("/function/parameters").filter(|value| !value.is_null());
    Ok(Tool { name: name.to_owned(), arguments: arguments.unwrap_or(&none).to_string() })
}

/// Reads `tool_choice`, and leaves the tools that it names.
fn choice(choice: Option<&Value>, tools: &mut Vec<Tool>) -> Result<Choice, Error> {
    const NAME: &str = "tool_choice";
    const FORMS: &str = "it must be none, auto, required, allowed_tools or a function";
    const MISSING: &str = "it asks for a tool that is not among `tools`";
    let found = match choice {
        None => return Ok(Choice::Auto),
        Some(Value::String(word)) => match word.as_str() {
            "none" => Choice::None,
            "auto" => Choice::Auto,
            "required" => Choice::Required,
            _ => return Err(invalid(NAME, FORMS)),
        },
        Some(object) if object["type"] == "allowed_tools" => {
            let allowed = &object["allowed_tools"];
            let names: Option<Vec<&str>> = allowed["tools"]
                .as_array()
                .and_then(|list| list.iter().map(named_function).collect());
            let names = names.ok_or_else(|| {
                invalid(NAME, "`allowed_tools.tools` must be a list of functions with names")
            })?;
            if names.iter().any(|&name| tools.iter().all(|tool| tool.name != name)) {
                return Err(invalid(NAME, MISSING));
            }
            tools.retain(|tool| names.contains(&tool.name.as_str()));
            match allowed["mode"].as_str() {
                Some("auto") => Choice::Auto,
                Some("required") => Choice::Required,
                _ => return Err(invalid(NAME, "`allowed_tools.mode` must be auto or required")),
            }
        }
        Some(object) => {
            let Some(name) = named_function(object) else { return Err(invalid(NAME, FORMS)) };
            tools.retain(|tool| tool.name == name);
            Choice::One
        }
    };
    if tools.is_empty() && matches!(found, Choice::Required | Choice::One) {
        return Err(invalid(NAME, MISSING));
    }
    Ok(found)
}

/// Returns the name in `{"type": "function", "function": {"name": …}}`.
fn named_function(object: &Value) -> Option<&str> {
    let name = object.pointer("/function/name").and_then(Value::as_str);
    name.filter(|_| object["type"] == "function")
}
