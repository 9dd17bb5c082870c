//! A generation loop on candle: a GGUF model, a JSON Schema and a prompt in, a valid document out.
//!
//! ```sh
//! cargo run --release --features candle --example smollm2 -- \
//!     "$(scripts/fetch_smollm2.sh)" schemas/person.json "Ada Lovelace, 36, speaks English and French."
//! ```
//!
//! The first run writes the model once more as Q8_0 beside itself, which candle runs about three times
//! as fast as Q4_1. On a busy machine set `RAYON_NUM_THREADS=1`.

use std::error::Error;
use std::fs;
use std::fs::File;
use std::io::{BufReader, Write, stdout};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::Content;
use candle_core::{Device, Tensor};
use candle_transformers::models::quantized_llama::ModelWeights;
use schemac::adapter::candle::{Message, PromptEncoder, requantize};
use schemac::vocab::{LoadOptions, load};
use schemac::{Compiler, ConstrainedSampler, Policy};

/// The most tokens of the document.
const MAX_TOKENS: NonZeroUsize = NonZeroUsize::new(400).unwrap();

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(model), Some(schema), Some(prompt)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("usage: smollm2 MODEL.gguf SCHEMA.json PROMPT".into());
    };
    let model = as_q8_0(Path::new(&model))?;

    // The model file alone is enough: its tokenizer is the vocabulary that the schema is compiled for.
    let loaded = load(&model, &LoadOptions::default())?;
    let automaton =
        Compiler::new(loaded.vocabulary().clone()).compile_schema(&fs::read_to_string(schema)?)?;
    let mut sampler = ConstrainedSampler::new(automaton, Policy::greedy().max_tokens(MAX_TOKENS))?;
    let prompt = PromptEncoder::new(&loaded)?.chat(&[Message::user(prompt)])?;

    let device = Device::Cpu;
    let mut reader = BufReader::new(File::open(&model)?);
    let content = Content::read(&mut reader)?;
    let mut weights = ModelWeights::from_gguf(content, &mut reader, &device)?;

    let mut position = 0;
    let mut input: Vec<u32> = prompt.iter().map(|token| token.get()).collect();
    while !sampler.is_finished() {
        let tokens = Tensor::new(input.as_slice(), &device)?.unsqueeze(0)?;
        let logits = weights.forward(&tokens, position)?;
        position += input.len();
        let token = sampler.next_token_from(&logits)?;
        input = vec![token.get()];
        // Bytes, not text: a token may end inside a character.
        stdout().write_all(loaded.vocabulary().bytes(token))?;
        stdout().flush()?;
    }
    writeln!(stdout())?;
    Ok(())
}

/// Returns the same model as Q8_0, from an earlier run if there was one.
fn as_q8_0(model: &Path) -> Result<PathBuf, Box<dyn Error>> {
    if model.to_string_lossy().ends_with("Q8_0.gguf") {
        return Ok(model.to_path_buf());
    }
    let target = model.with_extension("Q8_0.gguf");
    if !target.exists() {
        requantize(model, &target, GgmlDType::Q8_0)?;
    }
    Ok(target)
}
