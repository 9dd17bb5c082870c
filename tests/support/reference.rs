//! The slow reference of masks: the bytes of every token are fed one by one to clones of the matcher.
//!
//! It uses no mask, no trie and no memo of the token automaton, only single bytes of the byte
//! automaton; what the byte automaton itself means is tested against naive recognisers.
#![allow(
    dead_code,
    clippy::panic,
    clippy::unwrap_used,
    reason = "each user takes what it needs; a difference is a panic"
)]

use std::sync::Arc;

use rand::Rng;
use schemac::token::{Matcher, TokenAutomaton};
use schemac::{StepError, TokenId};

/// Returns the tokens that are legal next, ascending, or `None` if a budget does not let one be
/// decided.
pub(crate) fn legal_tokens(matcher: &Matcher) -> Option<Vec<TokenId>> {
    let vocabulary = matcher.automaton().vocabulary();
    let mut tokens: Vec<_> =
        vocabulary.ids().filter(|&token| !vocabulary.bytes(token).is_empty()).collect();
    tokens.sort_by_key(|&token| vocabulary.bytes(token));
    let mut legal = if matcher.is_accepting().ok()? && !matcher.is_finished() {
        vocabulary.end_tokens().to_vec()
    } else {
        Vec::new()
    };
    // The matchers after each prefix of the token before, so that common prefixes are fed once; after
    // an illegal byte there is none.
    let mut prefixes = vec![matcher.fork()];
    let mut before: &[u8] = &[];
    for token in tokens {
        let bytes = vocabulary.bytes(token);
        let common = before.iter().zip(bytes).take_while(|(a, b)| a == b).count();
        before = bytes;
        if prefixes.len() <= common {
            continue; // An illegal byte stands in the common prefix.
        }
        prefixes.truncate(common + 1);
        for &byte in &bytes[common..] {
            let mut next = prefixes.last().unwrap().fork();
            match next.accept_bytes(&[byte]) {
                Ok(()) => prefixes.push(next),
                Err(StepError::BudgetExceeded(_)) => return None,
                Err(_) => break,
            }
        }
        if prefixes.len() == bytes.len() + 1 {
            legal.push(token);
        }
    }
    legal.sort_unstable();
    legal.dedup();
    Some(legal)
}

/// Walks at random, compares every mask on the way with the reference, and accepts one of its tokens.
/// Returns the number of masks compared.
///
/// # Panics
///
/// If a mask differs from the reference, or a token that the mask allows is not accepted.
pub(crate) fn check_walk(
    automaton: &Arc<TokenAutomaton>,
    rng: &mut impl Rng,
    steps: usize,
) -> usize {
    let mut matcher = Matcher::new(automaton.clone());
    let mut compared = 0;
    for _ in 0..steps {
        let Some(expected) = legal_tokens(&matcher) else { break };
        let mask = match matcher.mask() {
            Ok(mask) => mask,
            Err(StepError::BudgetExceeded(_)) => break,
            Err(error) => {
                assert!(expected.is_empty(), "{error} where {expected:?} are legal");
                break;
            }
        };
        let legal: Vec<TokenId> = mask.iter().collect();
        assert_eq!(legal, expected, "after {} steps at {}", matcher.steps(), matcher.describe());
        assert_eq!(mask.count(), legal.len());
        compared += 1;
        let token = legal[rng.random_range(0..legal.len())];
        let accepted = matcher.accept(token);
        assert!(accepted.is_ok(), "{token:?} is legal: {accepted:?} at {}", matcher.describe());
        if matcher.is_finished() {
            break;
        }
    }
    compared
}
