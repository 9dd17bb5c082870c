//! One compiled grammar under several threads: known masks and commits a second on each number of
//! threads. Prints the ratio to one thread; nothing is shared but what a lookup reads.

use std::path::PathBuf;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Instant;

use clap::Parser;
use schemac::vocab::{LoadOptions, load};
use schemac::{Compiler, Matcher, TokenId};

#[derive(Parser)]
struct Args {
    tokenizer: PathBuf,
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Times that each thread writes the text.
    #[arg(long, default_value_t = 20_000)]
    rounds: usize,
    /// Measurements, of which the best counts.
    #[arg(long, default_value_t = 7)]
    passes: usize,
}

const SCHEMA: &str = r#"{"type":"object","properties":{"name":{"type":"string"},
    "age":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}}}}"#;
const TEXT: &str = r#"{"name":"Ada Lovelace","age":36,"tags":["mathematics","first programmer"]}"#;

fn main() {
    let args = Args::parse();
    let loaded = load(&args.tokenizer, &LoadOptions::default()).expect("a tokenizer");
    let tokens: Vec<TokenId> = loaded.encoder().encode(TEXT).expect("a text");
    let compiler = Compiler::new(Arc::clone(loaded.vocabulary()));
    let automaton = compiler.compile_schema(SCHEMA).expect("a grammar");
    let write = |rounds: usize| {
        for _ in 0..rounds {
            let mut matcher = Matcher::new(Arc::clone(&automaton));
            for &token in &tokens {
                assert!(matcher.mask().expect("a mask").contains(token));
                matcher.accept(token).expect("a legal token");
            }
        }
    };
    write(10);
    // Masks a second in millions: the best of the passes, which take turns.
    let mut best = vec![0_f64; args.threads];
    for _ in 0..args.passes {
        for count in 1..=args.threads {
            let barrier = Barrier::new(count + 1);
            let seconds = thread::scope(|scope| {
                for _ in 0..count {
                    scope.spawn(|| {
                        barrier.wait();
                        write(args.rounds);
                        barrier.wait();
                    });
                }
                barrier.wait();
                let start = Instant::now();
                barrier.wait();
                start.elapsed().as_secs_f64()
            });
            let rate = (count * args.rounds * tokens.len()) as f64 / seconds / 1e6;
            best[count - 1] = best[count - 1].max(rate);
        }
    }
    for (count, rate) in best.iter().enumerate() {
        println!(
            "{} threads: {rate:.2} million masks and commits a second, {:.2} times one thread",
            count + 1,
            rate / best[0]
        );
    }
}
