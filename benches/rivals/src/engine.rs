//! The procedure of MaskBench for one engine: requests in, times and outcomes out.
//!
//! A schema is compiled and a first mask computed. Then, for each text and each of its tokens, a mask
//! is computed, the token looked up, and accepted: one *mask time*. The end is not timed. A second pass
//! over the same compiled schema goes on until a batch of steps is full.

use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use crate::protocol::{READY, Reply, Request};

/// Steps of one batch of the second pass.
const BATCH: usize = 1_000;

/// An engine under test.
pub(crate) trait Engine {
    type Grammar;
    type State;
    fn compile(&self, schema: &str) -> Result<Self::Grammar, String>;
    fn start(&self, grammar: &Self::Grammar) -> Self::State;
    /// Computes the mask, and returns whether it could be computed.
    fn mask(&self, state: &mut Self::State) -> bool;
    /// Computes the mask, and accepts the token if the mask has it.
    fn mask_and_accept(&self, state: &mut Self::State, token: u32) -> bool;
    fn is_accepting(&self, state: &mut Self::State) -> bool;

    /// Returns what the compiled schema has grown to, to be given to [`Engine::cause`].
    fn size(&self, _: &Self::Grammar) -> [usize; 4] {
        [0; 4]
    }

    /// Returns how the mask came about between two sizes, as a place in [`crate::protocol::CAUSES`].
    fn cause(&self, _before: [usize; 4], _after: [usize; 4]) -> Option<u8> {
        None
    }

    /// Returns whether the mask has exactly the tokens that can be accepted, each being tried.
    fn is_exact(&self, _: &mut Self::State) -> Option<bool> {
        None
    }
}

/// Answers requests until there are no more.
pub(crate) fn serve<E: Engine>(engine: &E) {
    let mut out = std::io::stdout().lock();
    let mut say = |line: &str| writeln!(out, "{line}").and_then(|()| out.flush());
    let mut listening = say(READY);
    for line in std::io::stdin().lock().lines() {
        let (Ok(line), Ok(())) = (line, &listening) else { return };
        let request: Request = serde_json::from_str(&line).expect("a request");
        let reply = answer(engine, &request);
        listening = say(&serde_json::to_string(&reply).expect("numbers"));
    }
}

fn answer<E: Engine>(engine: &E, request: &Request) -> Reply {
    let patience = Duration::from_secs(request.seconds);
    let mut reply = Reply::default();
    let start = Instant::now();
    let grammar = match engine.compile(&request.schema) {
        Ok(grammar) => grammar,
        Err(error) => return Reply { error: Some(error), ..reply },
    };
    let usable = engine.mask(&mut engine.start(&grammar));
    reply.first = nanos(start.elapsed());
    if !usable {
        return Reply { error: Some("no first mask".into()), ..reply };
    }
    for tokens in &request.tests {
        let mut state = engine.start(&grammar);
        let mut accepted = true;
        for &token in tokens {
            let size = engine.size(&grammar);
            let before = Instant::now();
            accepted = engine.mask_and_accept(&mut state, token);
            reply.masks.push(nanos(before.elapsed()));
            reply.causes.extend(engine.cause(size, engine.size(&grammar)));
            if !accepted {
                break;
            }
            if start.elapsed() > patience {
                return Reply { timed_out: true, ..reply };
            }
        }
        reply.accepted.push(accepted && engine.is_accepting(&mut state));
    }
    if request.warm {
        reply.warm = second_pass(engine, &grammar, &request.tests);
    }
    check(engine, &grammar, request, &mut reply);
    reply
}

/// Returns the mean time of a step in each batch.
fn second_pass<E: Engine>(engine: &E, grammar: &E::Grammar, tests: &[Vec<u32>]) -> Vec<u64> {
    let mut batches = Vec::new();
    let (mut steps, mut time) = (0, Duration::ZERO);
    loop {
        for tokens in tests {
            let mut state = engine.start(grammar);
            let start = Instant::now();
            for &token in tokens {
                steps += 1;
                if !engine.mask_and_accept(&mut state, token) {
                    break;
                }
            }
            time += start.elapsed();
            if steps >= BATCH {
                batches.push(nanos(time) / steps as u64);
                (steps, time) = (0, Duration::ZERO);
            }
        }
        // Texts without a token would never fill a batch.
        if !batches.is_empty() || tests.iter().all(Vec::is_empty) {
            return batches;
        }
    }
}

/// Compares masks with brute force at as many positions as were asked for, evenly spread.
fn check<E: Engine>(engine: &E, grammar: &E::Grammar, request: &Request, reply: &mut Reply) {
    let positions: usize = request.tests.iter().map(Vec::len).sum();
    if request.check == 0 || positions == 0 {
        return;
    }
    let gap = positions.div_ceil(request.check);
    let mut position = 0;
    for tokens in &request.tests {
        let mut state = engine.start(grammar);
        for &token in tokens {
            if position % gap == gap / 2 {
                let Some(exact) = engine.is_exact(&mut state) else { return };
                reply.checked += 1;
                reply.wrong += usize::from(!exact);
            }
            position += 1;
            if !engine.mask_and_accept(&mut state, token) {
                break;
            }
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
