//! A conversation in, the text of a prompt out, by the template that a model file carries.
//!
//! Templates are Jinja as Hugging Face's `apply_chat_template` runs it: blocks are trimmed, Python's
//! methods of strings, lists and dictionaries work, `raise_exception` refuses a conversation, and
//! `tojson` does not escape for HTML. A template is a program that comes with the model file, so it
//! runs on a budget of steps and bytes, and sees nothing but the conversation.

use std::fmt;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Value};
use minijinja::{Environment, context};
use minijinja_contrib::pycompat::unknown_method_callback;

use crate::error::{Error, ErrorKind};

/// Steps, and units of 64 bytes, that one rendering may take. Real templates take some thousands.
const FUEL: u64 = 1_000_000;

/// The name that errors of the template give its source.
const NAME: &str = "chat template";

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who speaks: `system`, `user` or `assistant`.
    pub role: String,
    /// What they say. Names of special tokens in it become special tokens when the prompt is encoded,
    /// as everywhere in a prompt.
    pub content: String,
}

impl Message {
    /// Returns a message.
    #[must_use]
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into() }
    }

    /// Returns a message of the user.
    #[must_use]
    pub fn user(content: impl Into<String>) -> Self {
        Self::new("user", content)
    }
}

/// The chat template of a model.
pub struct ChatTemplate {
    environment: Environment<'static>,
    bos: String,
    eos: String,
}

impl ChatTemplate {
    /// Parses a template. `bos` and `eos` are the names of the tokens that begin and end a text, for
    /// templates that write them; empty if there are none.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Model`] if the template is no valid Jinja.
    pub fn new(source: &str, bos: &str, eos: &str) -> Result<Self, Error> {
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|error| refused(&error))?);
        environment.set_fuel(Some(FUEL));
        environment.set_unknown_method_callback(unknown_method_callback);
        environment.add_function("raise_exception", |text: String| -> Result<Value, _> {
            Err(minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, text))
        });
        environment.add_filter("tojson", to_json);
        environment.add_template_owned(NAME, source.to_owned()).map_err(|error| refused(&error))?;
        Ok(Self { environment, bos: bos.to_owned(), eos: eos.to_owned() })
    }

    /// Returns the prompt that asks for the assistant's next message.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Model`] if the template refuses the conversation, needs what it is not given
    /// (tools, documents), or does not end within its budget.
    pub fn render(&self, messages: &[Message]) -> Result<String, Error> {
        let message = |message: &Message| {
            Value::from_pairs([
                ("role", message.role.as_str()),
                ("content", message.content.as_str()),
            ])
        };
        let values = context! {
            messages => messages.iter().map(message).collect::<Vec<_>>(),
            add_generation_prompt => true,
            bos_token => self.bos.as_str(),
            eos_token => self.eos.as_str(),
        };
        let template = self.environment.get_template(NAME).map_err(|error| refused(&error))?;
        template.render(values).map_err(|error| refused(&error))
    }
}

impl fmt::Debug for ChatTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatTemplate")
            .field("bos", &self.bos)
            .field("eos", &self.eos)
            .finish_non_exhaustive()
    }
}

/// The filter `tojson`: a text is written as JSON without the escapes for HTML that the engine's own
/// filter makes. Other values are left to that filter.
fn to_json(value: Value, options: Kwargs) -> Result<Value, minijinja::Error> {
    match value.as_str() {
        Some(text) => Ok(serde_json::Value::from(text).to_string().into()),
        None => minijinja::filters::tojson(&value, None, options),
    }
}

fn refused(error: &minijinja::Error) -> Error {
    let text = match error.line() {
        Some(line) => format!("line {line} of the chat template: {error}"),
        None => format!("the chat template: {error}"),
    };
    Error::new(ErrorKind::Model, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The template of SmolLM2-Instruct.
    const CHATML: &str = "{% for message in messages %}{% if loop.first and messages[0]['role'] != \
        'system' %}{{ '<|im_start|>system\nBe helpful<|im_end|>\n' }}{% endif %}\
        {{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}\
        {% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

    fn render(source: &str, messages: &[Message]) -> Result<String, Error> {
        ChatTemplate::new(source, "<s>", "</s>")?.render(messages)
    }

    #[test]
    fn a_conversation_becomes_the_prompt_of_the_next_message() {
        assert_eq!(
            render(CHATML, &[Message::user("1 < 2 & 'so'")]).unwrap(),
            "<|im_start|>system\nBe helpful<|im_end|>\n<|im_start|>user\n1 < 2 & 'so'<|im_end|>\n\
             <|im_start|>assistant\n"
        );
        let system = [Message::new("system", "Be brief"), Message::user("Hi")];
        assert_eq!(
            render(CHATML, &system).unwrap(),
            "<|im_start|>system\nBe brief<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n\
             <|im_start|>assistant\n"
        );
    }

    #[test]
    fn what_hugging_face_templates_use_is_there() {
        let source = "{{ bos_token }}\n    {%- set ns = namespace(n=0) %}\n    \
            {% for m in messages if m.role == 'user' %}\n{% set ns.n = ns.n + 1 %}\n\
            [INST] {{ m.content.strip().replace('a', 'b') | tojson }} [/INST]{{ eos_token }}\n\
            {% continue %}never\n{% endfor %}{{ ns.n }}{{ ' tools' if tools is defined }}";
        let messages = [Message::user(" a<'a' "), Message::new("assistant", "x")];
        assert_eq!(render(source, &messages).unwrap(), "<s>[INST] \"b<'b'\" [/INST]</s>\n1");
    }

    #[test]
    fn a_template_that_refuses_or_never_ends_is_an_error() {
        let user = [Message::user("Hi")];
        for source in [
            "{{ raise_exception('roles must alternate') }}",
            "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
            "{% set ns = namespace(s='ab') %}{% for i in range(60) %}\
             {% set ns.s = ns.s ~ ns.s %}{% endfor %}",
            "{{ 'ab' * 9999999999 }}",
            "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
            "{% include 'secret' %}",
            "{% if %}",
            "{{ messages[0].content.nothing() }}",
        ] {
            let error = render(source, &user).unwrap_err();
            assert_eq!(*error.kind(), ErrorKind::Model, "{source}");
        }
        let error = render("\n{{ raise_exception('roles must alternate') }}", &user).unwrap_err();
        assert!(error.message().contains("line 2"), "{}", error.message());
        assert!(error.message().contains("roles must alternate"), "{}", error.message());
    }

    #[test]
    fn deep_nesting_is_an_error_not_a_stack_overflow() {
        for (open, close) in [("{% if a %}", "{% endif %}"), ("{{ (", ") }}"), ("{{ [", "")] {
            let source = open.repeat(50_000) + &close.repeat(50_000);
            assert!(render(&source, &[]).is_err(), "{open}");
        }
        assert!(
            render(&format!("{{{{ {}1{} }}}}", "(".repeat(90_000), ")".repeat(90_000)), &[])
                .is_err()
        );
    }
}
