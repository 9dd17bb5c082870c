//! Tests of the loaders: small files made here, and the real tokenizers where they are at hand.

mod fixtures;
mod gguf;
mod hostile;
#[cfg(feature = "tokenizers")]
mod real;
mod tokenizer_json;
mod vocabulary;
