//! Artifacts: what is loaded behaves as what was saved, and damaged files are refused.

use std::sync::Arc;

use rand::{Rng, SeedableRng, rngs::StdRng};
use schemac::token::{Matcher, PrecomputeOptions, TokenAutomaton};
use schemac::{ErrorKind, Limits, TokenId, artifact};

use crate::masks::{random_grammar, small_vocabulary};
use crate::support::reference::check_walk;

/// Walks automata side by side: their masks must be equal.
fn check_alike(automata: &[Arc<TokenAutomaton>], rng: &mut StdRng, steps: usize) {
    let mut matchers: Vec<Matcher> = automata.iter().cloned().map(Matcher::new).collect();
    for _ in 0..steps {
        let masks: Vec<_> =
            matchers.iter().map(|m| m.mask().map_err(|error| error.to_string())).collect();
        for mask in &masks[1..] {
            match (&masks[0], mask) {
                (Ok(first), Ok(mask)) => assert_eq!(first, mask),
                (Err(_), Err(_)) => return,
                other => panic!("{other:?}"),
            }
        }
        let Ok(mask) = &masks[0] else { return };
        let legal: Vec<TokenId> = mask.iter().collect();
        let token = legal[rng.random_range(0..legal.len())];
        matchers.iter_mut().for_each(|matcher| matcher.accept(token).unwrap());
        if matchers[0].is_finished() {
            return;
        }
    }
}

#[test]
fn lazy_precomputed_and_loaded_masks_are_equal() {
    let limits = Limits::default();
    let mut complete = 0;
    for seed in 0..300 {
        let mut rng = StdRng::seed_from_u64(seed);
        let vocabulary = small_vocabulary(b"ab\",", seed);
        let grammar = random_grammar(&mut rng, b"ab\",");
        let new = || TokenAutomaton::new(grammar.clone(), vocabulary.clone(), limits.clone());
        let Ok(lazy) = new() else { continue };
        let warm = new().unwrap();
        let report = warm
            .precompute(&PrecomputeOptions::default().max_states(3_000), &mut |_, _| {})
            .unwrap();
        let cold = artifact::from_bytes(&artifact::to_bytes(&lazy).unwrap(), &limits).unwrap();
        let loaded = artifact::from_bytes(&artifact::to_bytes(&warm).unwrap(), &limits).unwrap();
        assert_eq!(loaded.stats().local_masks, warm.stats().local_masks);
        let before = loaded.stats();
        let automata = [lazy, warm, cold, loaded].map(Arc::new);
        for _ in 0..4 {
            check_alike(&automata, &mut rng, 15);
        }
        if report.complete {
            complete += 1;
            let after = automata[3].stats();
            assert_eq!(
                (before.states, before.local_masks, before.rests),
                (after.states, after.local_masks, after.rests),
                "seed {seed}: a complete automaton grew"
            );
        }
        check_walk(&automata[3], &mut rng, 6);
    }
    assert!(complete > 150, "{complete}");
}

#[test]
fn foreign_truncated_and_corrupted_files_are_refused_with_the_reason() {
    let mut rng = StdRng::seed_from_u64(1);
    let grammar = random_grammar(&mut rng, b"ab");
    let automaton =
        TokenAutomaton::new(grammar, small_vocabulary(b"ab", 1), Limits::default()).unwrap();
    let bytes = artifact::to_bytes(&automaton).unwrap();
    let refusal = |bytes: &[u8]| {
        let error = artifact::from_bytes(bytes, &Limits::default()).unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Artifact);
        error.message().to_owned()
    };
    assert!(refusal(b"{\"type\":\"object\"}").contains("not a schemac artifact"));
    assert!(refusal(&bytes[..20]).contains("truncated"));
    assert!(refusal(&bytes[..bytes.len() - 1]).contains("truncated"));
    let mut other = bytes.clone();
    other[8] = 99;
    assert!(refusal(&other).contains("format 99"));
    let mut flipped = bytes.clone();
    flipped[60] ^= 1;
    assert!(refusal(&flipped).contains("checksum"));
    let mut renamed = bytes.clone();
    renamed[24] ^= 1;
    assert!(refusal(&renamed).contains("vocabulary"));
}

#[test]
fn hostile_files_with_a_right_checksum_never_panic() {
    let mut loaded = 0;
    for seed in 0..40 {
        let mut rng = StdRng::seed_from_u64(seed);
        let grammar = random_grammar(&mut rng, b"ab\",");
        let vocabulary = small_vocabulary(b"ab\",", seed);
        let Ok(automaton) = TokenAutomaton::new(grammar, vocabulary, Limits::default()) else {
            continue;
        };
        automaton
            .precompute(&PrecomputeOptions::default().max_states(200), &mut |_, _| {})
            .unwrap();
        let bytes = artifact::to_bytes(&automaton).unwrap();
        for _ in 0..60 {
            let mut hostile = bytes.clone();
            for _ in 0..rng.random_range(1..4) {
                // Past the vocabulary, where the grammar, the rows and the masks stand.
                let at = rng.random_range(1_000..hostile.len());
                hostile[at] = hostile[at].wrapping_add(rng.random_range(1..=255));
            }
            let checksum = crc32fast::hash(&hostile[40..]).to_le_bytes();
            hostile[12..16].copy_from_slice(&checksum);
            if let Ok(automaton) = artifact::from_bytes(&hostile, &Limits::default()) {
                loaded += 1;
                let mut matcher = Matcher::new(Arc::new(automaton));
                for _ in 0..8 {
                    let Ok(mask) = matcher.mask() else { break };
                    let Some(token) = mask.iter().nth(rng.random_range(0..mask.count())) else {
                        break;
                    };
                    if matcher.accept(token).is_err() {
                        break;
                    }
                }
            }
        }
    }
    assert!(loaded > 40, "{loaded} hostile files were loaded");
}
