//! The properties that are fuzzed, on the seeds, on the inputs that once failed, and on some random
//! ones.

use std::path::Path;

use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::support::properties;

/// Checks every file of `tests/data/fuzz/<kind>/<property>/` and returns their number.
#[expect(clippy::print_stdout, reason = "a failing test shows its input")]
fn replay(kind: &str) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fuzz").join(kind);
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if !entry.file_type().unwrap().is_dir() {
            continue;
        }
        let property = entry.file_name().into_string().unwrap();
        for input in std::fs::read_dir(entry.path()).unwrap() {
            let path = input.unwrap().path();
            println!("{}", path.display());
            properties::check(&property, &std::fs::read(path).unwrap());
            count += 1;
        }
    }
    count
}

#[test]
fn inputs_that_once_failed_do_not_fail_again() {
    println!("{} inputs", replay("regressions"));
}

#[test]
fn seeds_hold() {
    assert!(replay("seeds") >= properties::PROPERTIES.len(), "the seeds are not found");
}

/// `PROPERTY_ROUNDS` makes a campaign of it, without coverage but on any tool chain.
#[test]
fn properties_hold_on_random_inputs() {
    let rounds = std::env::var("PROPERTY_ROUNDS").map_or(60, |rounds| rounds.parse().unwrap());
    for (name, _) in properties::PROPERTIES {
        for seed in 0..rounds {
            let mut rng = StdRng::seed_from_u64(seed);
            let length = rng.random_range(0..200);
            let data: Vec<u8> = (0..length).map(|_| rng.random()).collect();
            println!("{name} {seed}");
            properties::check(name, &data);
        }
    }
}
