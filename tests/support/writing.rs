//! What an automaton writes and takes: random outputs, and values in some order of their members.
#![allow(dead_code, reason = "each user takes what it needs")]

use std::rc::Rc;
use std::sync::Arc;

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use schemac::StepError;
use schemac::token::{Matcher, TokenAutomaton};
use serde_json::Value;

use super::instances::spelled;

/// Returns whether `text` is a complete output.
pub(crate) fn accepts(automaton: &Arc<TokenAutomaton>, text: &str) -> Result<bool, StepError> {
    let mut matcher = Matcher::new(automaton.clone());
    Ok(takes(&mut matcher, text)? && matcher.is_accepting()?)
}

/// The texts that generated outputs have mostly.
const LIKED: &[u8] = b"aabbc1x2-. A\xc3\xa9\xf0";

/// Writes an output: legal bytes or tokens at random, and the shortest way out when it gets long.
pub(crate) fn generate(
    automaton: &Arc<TokenAutomaton>,
    rng: &mut StdRng,
) -> Result<String, StepError> {
    let most = *[12, 30, 60, 120].choose(rng).unwrap_or(&30);
    let by_token = rng.random_bool(0.2);
    let mut matcher = Matcher::new(automaton.clone());
    let mut output = Vec::new();
    loop {
        if matcher.is_accepting()? && (output.len() >= most || rng.random_bool(0.35)) {
            break;
        }
        if output.len() >= most {
            let end = matcher.shortest_completion()?;
            matcher.accept_bytes(&end)?;
            output.extend(end);
            break;
        }
        if by_token {
            let mask = matcher.mask()?;
            let tokens: Vec<_> = mask.iter().collect();
            let token = *tokens.choose(rng).unwrap_or(&tokens[0]);
            matcher.accept(token)?;
            if matcher.is_finished() {
                break;
            }
            output.extend(automaton.vocabulary().bytes(token));
            continue;
        }
        let legal = matcher.legal_bytes()?;
        if legal.is_empty() {
            // Complete, or `mask` has the error for it.
            matcher.mask()?;
            break;
        }
        let byte = liked(&legal, rng);
        matcher.accept_bytes(&[byte])?;
        output.push(byte);
    }
    Ok(String::from_utf8_lossy(&output).into_owned())
}

/// Chooses a byte, so that texts and white space are mostly short and values many.
fn liked(legal: &[u8], rng: &mut StdRng) -> u8 {
    let among = |set: &[u8]| -> Vec<u8> {
        set.iter().copied().filter(|byte| legal.binary_search(byte).is_ok()).collect()
    };
    let in_text = legal.len() > 40;
    let preferred = match rng.random_range(0..10) {
        0..=2 => among(b"\"]},:"),
        3..=7 if in_text => among(LIKED),
        8 if in_text => among(b"\\\""),
        3..=8 => legal.iter().copied().filter(|byte| !b" \n\t\\".contains(byte)).collect(),
        _ => Vec::new(),
    };
    *preferred.choose(rng).or_else(|| legal.choose(rng)).unwrap_or(&legal[0])
}

/// Returns whether `value` is accepted in its canonical spelling with its members in some order; `None`
/// if there are too many orders to try.
pub(crate) fn in_some_order(
    automaton: &Arc<TokenAutomaton>,
    value: &Value,
) -> Result<Option<bool>, StepError> {
    let whole = Rc::new(Rest { next: Part::Value(value), then: None });
    let mut pending = vec![(Matcher::new(automaton.clone()), Some(whole))];
    for _ in 0..10_000 {
        let Some((mut at, rest)) = pending.pop() else { return Ok(Some(false)) };
        let Some(rest) = rest else {
            if at.is_accepting()? {
                return Ok(Some(true));
            }
            continue;
        };
        let then = |part| Some(Rc::new(Rest { next: part, then: rest.then.clone() }));
        let text = match &rest.next {
            Part::Value(Value::Array(elements)) => {
                pending.push((at, then(Part::Elements(elements, true))));
                continue;
            }
            Part::Value(Value::Object(members)) => {
                pending.push((at, then(Part::Members(members.iter().collect(), true))));
                continue;
            }
            Part::Value(scalar) => spelled(scalar),
            Part::Elements([], first) => (if *first { "[]" } else { "]" }).to_owned(),
            Part::Elements([next, others @ ..], first) => {
                if takes(&mut at, if *first { "[" } else { "," })? {
                    let others = then(Part::Elements(others, false));
                    pending
                        .push((at, Some(Rc::new(Rest { next: Part::Value(next), then: others }))));
                }
                continue;
            }
            Part::Members(left, first) if left.is_empty() => {
                (if *first { "{}" } else { "}" }).to_owned()
            }
            Part::Members(left, first) => {
                for (i, (name, value)) in left.iter().enumerate() {
                    let open = if *first { '{' } else { ',' };
                    let start = format!("{open}{}:", Value::from(name.as_str()));
                    let mut next = at.fork();
                    if !takes(&mut next, &start)? {
                        continue;
                    }
                    let mut left = left.clone();
                    left.remove(i);
                    let then = then(Part::Members(left, false));
                    pending.push((next, Some(Rc::new(Rest { next: Part::Value(value), then }))));
                }
                continue;
            }
        };
        if takes(&mut at, &text)? {
            pending.push((at, rest.then.clone()));
        }
    }
    Ok(None)
}

/// Accepts `text` if it is legal, and returns whether it is.
fn takes(matcher: &mut Matcher, text: &str) -> Result<bool, StepError> {
    match matcher.accept_bytes(text.as_bytes()) {
        Ok(()) => Ok(true),
        Err(StepError::BytesRejected { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// What is left to write, as a list whose ends are shared.
struct Rest<'v> {
    next: Part<'v>,
    then: Option<Rc<Self>>,
}

/// A part of a text; of elements and members, whether the first is still to come.
enum Part<'v> {
    Value(&'v Value),
    Elements(&'v [Value], bool),
    Members(Vec<(&'v String, &'v Value)>, bool),
}
