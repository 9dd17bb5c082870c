//! A generation loop around a model of one's own: `cargo run --example generate_loop`.
//!
//! The loop is the usual one: logits for the tokens so far in, one more token out. The sampler takes
//! the place of the code that would have drawn the token. A model without knowledge stands in for a
//! real one, and the embedded vocabulary for its tokenizer.
#![expect(clippy::print_stdout, reason = "an example prints what it made")]

use std::error::Error;
use std::num::NonZeroUsize;

use schemac::runtime::{ConstrainedSampler, Model, Policy, RandomModel};
use schemac::{Compiler, Vocabulary};

/// The output is complete within so many tokens.
const MAX_TOKENS: NonZeroUsize = NonZeroUsize::new(200).unwrap();

fn main() -> Result<(), Box<dyn Error>> {
    // Once for each grammar and vocabulary; to be shared by all sequences and threads.
    let vocabulary = Vocabulary::embedded();
    let compiler = Compiler::new(vocabulary.clone());
    let automaton = compiler.compile_schema(include_str!("../schemas/invoice.json"))?;

    let mut model = RandomModel::new(&vocabulary, 7);
    let mut logits = Vec::new();

    // Once for each sequence.
    let policy = Policy::sample(0.8).top_p(0.95).max_tokens(MAX_TOKENS).seed(7);
    let mut sampler = ConstrainedSampler::new(automaton, policy)?;
    while !sampler.is_finished() {
        model.logits(sampler.tokens(), &mut logits)?;
        sampler.next_token(&logits)?;
    }

    let invoice: serde_json::Value = serde_json::from_str(&sampler.text())?;
    println!("{invoice:#}");
    println!("{} tokens", sampler.tokens().len());
    Ok(())
}
