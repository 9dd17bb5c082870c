//! What people say in, the tokens a model starts from out, by the tokenizer and the chat template of
//! its own GGUF file.

use std::sync::Arc;

use super::chat::{ChatTemplate, Message};
use crate::error::{Error, ErrorKind};
use crate::ids::TokenId;
use crate::vocab::{Encoder, GgufTokenizer, GgufTokenizerModel, Loaded};

/// Encodes prompts for a model.
#[derive(Debug)]
pub struct PromptEncoder {
    encoder: Arc<Encoder>,
    template: Option<ChatTemplate>,
    /// What a text starts with, if the model was trained so.
    prefix: Option<TokenId>,
    /// What stands for a prompt without any token.
    start: Option<TokenId>,
}

impl PromptEncoder {
    /// Takes tokenizer and chat template from what [`crate::vocab::load`] read of a GGUF file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidOption`] if the vocabulary is not from a GGUF file;
    /// [`ErrorKind::Model`] if the template is no valid Jinja.
    pub fn new(loaded: &Loaded) -> Result<Self, Error> {
        let Some(gguf) = loaded.gguf() else {
            let text = "prompts need the tokenizer of a GGUF file";
            return Err(Error::new(ErrorKind::InvalidOption, text));
        };
        let name = |token: Option<TokenId>| name(gguf, token);
        let template = match &gguf.chat_template {
            Some(source) => Some(ChatTemplate::new(source, name(gguf.bos), name(gguf.eos))?),
            None => None,
        };
        // Converters write the flag unless it is the tokenizer model's default.
        let adds_bos = gguf.add_bos.unwrap_or(gguf.model == GgufTokenizerModel::Llama);
        Ok(Self {
            encoder: Arc::clone(loaded.encoder()),
            template,
            prefix: gguf.bos.filter(|_| adds_bos),
            start: gguf.bos.or(gguf.eos),
        })
    }

    /// Returns whether the model has a chat template.
    #[must_use]
    pub const fn has_template(&self) -> bool {
        self.template.is_some()
    }

    /// Returns the tokens of a text that the model goes on with. Names of special tokens in it are
    /// those tokens. The token that begins a text is put before it if the model was trained so, or if
    /// there would be no token.
    ///
    /// # Errors
    ///
    /// As [`Encoder::encode_prompt`]; [`ErrorKind::InvalidOption`] for an empty text if the model has
    /// no token to begin with.
    pub fn text(&self, text: &str) -> Result<Vec<TokenId>, Error> {
        let mut tokens: Vec<TokenId> = self.prefix.into_iter().collect();
        tokens.extend(self.encoder.encode_prompt(text)?);
        if tokens.is_empty() {
            tokens.extend(self.start);
        }
        if tokens.is_empty() {
            let text = "the prompt is empty, and the model has no token to begin with";
            return Err(Error::new(ErrorKind::InvalidOption, text));
        }
        Ok(tokens)
    }

    /// Returns the tokens of a conversation, up to where the assistant's next message begins.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidOption`] if the model has no chat template; else as
    /// [`ChatTemplate::render`] and [`Encoder::encode_prompt`].
    pub fn chat(&self, messages: &[Message]) -> Result<Vec<TokenId>, Error> {
        let Some(template) = &self.template else {
            let text = "the model has no chat template";
            return Err(Error::new(ErrorKind::InvalidOption, text));
        };
        self.encoder.encode_prompt(&template.render(messages)?)
    }
}

fn name(gguf: &GgufTokenizer, token: Option<TokenId>) -> &str {
    token.and_then(|id| gguf.tokens.get(id.index())).map_or("", String::as_str)
}
