//! `schemac generate --model`: a GGUF model that goes on from a prompt, through its own tokenizer and
//! chat template.

use std::num::NonZeroUsize;
use std::path::Path;

use candle_core::Device;
use schemac::adapter::candle::{GgufModel, Message, PromptEncoder};
use schemac::vocab::Loaded;
use schemac::{Error, ErrorKind, TokenId};

use crate::args::GenerateArgs;
use crate::exit::Failure;
use crate::progress::Progress;

/// Returns the tokens of the prompt.
pub(crate) fn prompt(args: &GenerateArgs, loaded: &Loaded) -> Result<Vec<TokenId>, Failure> {
    let prompts = PromptEncoder::new(loaded)?;
    let text = args.prompt.as_deref().unwrap_or_default();
    Ok(if args.raw_prompt || !prompts.has_template() {
        prompts.text(text)?
    } else {
        prompts.chat(&[Message::user(text)])?
    })
}

/// Loads the model of a file whose vocabulary is `loaded`, to go on from `prompt`.
pub(crate) fn load(
    path: &Path,
    loaded: &Loaded,
    prompt: Vec<TokenId>,
) -> Result<GgufModel, Failure> {
    let _progress = Progress::start("loading the model", None);
    let mut model = GgufModel::load(path, &Device::Cpu)?;
    let (has, needed) = (model.row_len(), loaded.vocabulary().len());
    if has < needed {
        let text = format!("the model has {has} logits, and its tokenizer {needed} tokens");
        return Err(Error::new(ErrorKind::Model, text).into());
    }
    model.set_prompt(prompt);
    Ok(model)
}

/// Returns the most tokens of a text that the model can remember.
pub(crate) fn most_tokens(model: &GgufModel) -> Result<NonZeroUsize, Failure> {
    let (prompt, context) = (model.prompt().len(), model.context_length());
    // The last token of a text is not given back to the model.
    let fits = (context + 1).checked_sub(prompt).and_then(NonZeroUsize::new);
    fits.ok_or_else(|| {
        Failure::Usage(format!(
            "the prompt has {prompt} tokens, and the model can remember {context}"
        ))
    })
}
