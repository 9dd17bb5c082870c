//! Masks on rows of logits and draws from them, against copying and filling the same row.
//!
//! `cargo bench --bench apply` prints the least time of each in µs and its ratio to a `memcpy` of the
//! row, on Llama 3's number of ids. Least times and ratios of one run are what a busy machine leaves
//! comparable. "hot" works on one row, "cycling" on 64 rows (33 MB), which leave the caches.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a report")]

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use schemac::runtime::{History, Policy, Scratch, Step, draw, uniform};
use schemac::{TokenId, TokenMask};

/// The number of ids of Llama 3's vocabulary.
const WIDTH: usize = 128_256;

/// Rows that are cycled through.
const ROWS: usize = 64;

/// How long each measurement goes on.
const TIME: Duration = Duration::from_millis(150);

fn main() {
    let hot = Bench::new("hot", 1);
    hot.report();
    // `--test` (as CI passes it) only proves that everything runs.
    if !std::env::args().any(|argument| argument == "--test") {
        Bench::new("cycling", ROWS).report();
    }
}

struct Bench {
    name: &'static str,
    rows: Vec<Vec<f32>>,
}

impl Bench {
    fn new(name: &'static str, count: usize) -> Self {
        // Logits as language models have them: a bell around 0, some far above it.
        let logit = |i: usize| {
            let bell: f64 = (0..4).map(|part| uniform(1, 4 * i + part)).sum::<f64>() - 2.0;
            let peak = if uniform(2, i) < 1e-3 { 8.0 } else { 0.0 };
            #[expect(clippy::cast_possible_truncation, reason = "a logit")]
            return (bell * 4.0 + peak * uniform(3, i)) as f32;
        };
        let row: Vec<f32> = (0..WIDTH).map(logit).collect();
        let rows = (0..count).map(|shift| {
            let mut row = row.clone();
            row.rotate_left(shift * 1_001);
            row
        });
        Self { name, rows: rows.collect() }
    }

    /// Returns the least time in µs of `work` on a row.
    fn least(&self, mut work: impl FnMut(&[f32], usize)) -> f64 {
        let (mut least, mut number) = (f64::INFINITY, 0);
        let start = Instant::now();
        // All rows at once, so that cycling rows are not the fastest of them.
        while start.elapsed() < TIME {
            let before = Instant::now();
            for row in &self.rows {
                work(black_box(row), number);
                number += 1;
            }
            least = least.min(before.elapsed().as_secs_f64() * 1e6 / self.rows.len() as f64);
        }
        least
    }

    /// As [`Bench::least`], for work that writes to the row.
    fn least_mut(&self, mut work: impl FnMut(&mut [f32])) -> f64 {
        let mut rows = self.rows.clone();
        let mut least = f64::INFINITY;
        let start = Instant::now();
        while start.elapsed() < TIME {
            let before = Instant::now();
            for row in &mut rows {
                work(black_box(row));
            }
            least = least.min(before.elapsed().as_secs_f64() * 1e6 / self.rows.len() as f64);
        }
        least
    }

    fn report(&self) {
        let mut copies = self.rows.clone();
        let memcpy = self.least(|row, i| {
            copies[i % self.rows.len()].copy_from_slice(row);
            black_box(&copies[i % self.rows.len()]);
        });
        let print = |name: &str, time: f64| {
            println!("{:8} {name:34} {time:9.2} µs {:7.2}", self.name, time / memcpy);
        };
        print("memcpy", memcpy);
        print("fill", self.least_mut(|row| row.fill(0.0)));
        for (name, mask) in masks() {
            print(&format!("apply, {name}"), self.least_mut(|row| mask.apply(row).unwrap()));
            let argmax = self.least(|row, _| {
                black_box(mask.argmax(row).unwrap());
            });
            print(&format!("argmax, {name}"), argmax);
            for (policy_name, policy) in policies() {
                let history = History::new();
                let mut scratch = Scratch::default();
                let time = self.least(|logits, number| {
                    let (mask, policy, history) = (&mask, &policy, &history);
                    let step = Step { logits, mask, policy, history, end_tokens: &[] };
                    black_box(draw(&step, &mut scratch, || uniform(9, number)).unwrap());
                });
                print(&format!("draw {policy_name}, {name}"), time);
            }
        }
        let mut halves: Vec<Vec<u16>> = vec![vec![0x3c00; WIDTH]; self.rows.len()];
        let (_, half_legal) = &masks()[0];
        let mut number = 0;
        let time = self.least(|_, _| {
            number = (number + 1) % halves.len();
            half_legal.apply_f16(&mut halves[number]).unwrap();
        });
        print("apply to f16, 50 %", time);
    }
}

/// Masks of several densities: scattered, and such as a string has them (whole words legal).
fn masks() -> Vec<(&'static str, TokenMask)> {
    let scattered = |share: f64| {
        let ids = (0..WIDTH).filter(|&i| uniform(5, i) < share);
        TokenMask::from_ids(WIDTH, ids.filter_map(TokenId::from_index).collect())
    };
    let few = |count: usize| {
        let ids = (0..count).map(|i| i * (WIDTH / count) + i);
        TokenMask::from_ids(WIDTH, ids.filter_map(TokenId::from_index).collect())
    };
    vec![
        ("50 %", scattered(0.5)),
        ("95 %", scattered(0.95)),
        ("99.9 %", scattered(0.999)),
        ("1 %", scattered(0.01)),
        ("50 ids", few(50)),
        ("5 ids", few(5)),
    ]
}

fn policies() -> Vec<(&'static str, Policy)> {
    let k = |k| NonZeroUsize::new(k).unwrap();
    vec![
        ("T=1", Policy::sample(1.0)),
        ("T=1 k=50", Policy::sample(1.0).top_k(k(50))),
        ("T=0.7 p=0.9", Policy::sample(0.7).top_p(0.9)),
        ("T=1 min-p=0.05", Policy::sample(1.0).min_p(0.05)),
        ("T=0 bias", Policy::greedy().bias(TokenId::new(7), 1.0)),
    ]
}
