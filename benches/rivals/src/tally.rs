//! What the engines did over a suite, and the tables of it.

use crate::protocol::{CAUSES, Reply};

/// One engine's name and what it did.
pub(crate) struct Tally {
    pub(crate) name: String,
    pub(crate) cases: Vec<Case>,
    /// Resident memory before the first schema and at the most, in kB.
    pub(crate) idle: u64,
    pub(crate) peak: u64,
}

/// What one engine did with one schema, once for each pass.
pub(crate) struct Case {
    /// Its place in the suite.
    pub(crate) number: usize,
    pub(crate) valid: Vec<bool>,
    pub(crate) passes: Vec<Reply>,
}

impl Case {
    pub(crate) fn compiled(&self) -> bool {
        self.passes.iter().all(|reply| reply.error.is_none() && !reply.timed_out)
    }

    fn last(&self) -> &Reply {
        self.passes.last().expect("a pass")
    }

    /// Whether each text was accepted.
    pub(crate) fn accepted(&self) -> &[bool] {
        &self.last().accepted
    }

    fn wrong(&self, accepted: bool) -> usize {
        let verdicts = self.accepted().iter().zip(&self.valid);
        verdicts.filter(|&(&got, &valid)| got == accepted && got != valid).count()
    }
}

/// Times in nanoseconds, ascending.
#[derive(Clone)]
pub(crate) struct Times(Vec<u64>);

impl Times {
    pub(crate) fn new(mut times: Vec<u64>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn average(&self) -> f64 {
        self.0.iter().sum::<u64>() as f64 / self.0.len().max(1) as f64 / 1e3
    }

    /// Returns the nearest rank of a share of 1 in µs.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let rank = (share * self.0.len() as f64).ceil().max(1.0) as usize;
        self.0.get(rank - 1).map_or(0.0, |&nanos| nanos as f64 / 1e3)
    }
}

/// The columns of the tables of times.
const SHARES: [(&str, f64); 7] = [
    ("p25", 0.25),
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("max", 1.0),
];

/// Which time of a schema.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    First,
    Mask,
    Warm,
}

impl Tally {
    /// Returns the times of pass number `pass` over the cases of which `keep` says so.
    fn times(&self, kind: Kind, pass: usize, keep: &dyn Fn(usize) -> bool) -> Times {
        let mut all = Vec::new();
        for case in self.cases.iter().filter(|case| case.compiled() && keep(case.number)) {
            let reply = &case.passes[pass];
            match kind {
                Kind::First => all.push(reply.first),
                Kind::Mask => all.extend(&reply.masks),
                Kind::Warm => all.extend(&reply.warm),
            }
        }
        Times::new(all)
    }

    fn passes(&self) -> usize {
        self.cases.first().map_or(0, |case| case.passes.len())
    }

    /// Returns for each time the least of its passes.
    pub(crate) fn least(&self, kind: Kind, keep: &dyn Fn(usize) -> bool) -> Times {
        let mut all = Vec::new();
        for case in self.cases.iter().filter(|case| case.compiled() && keep(case.number)) {
            match kind {
                Kind::First => all.extend(case.passes.iter().map(|reply| reply.first).min()),
                Kind::Warm => all.extend(case.passes.iter().flat_map(|reply| &reply.warm)),
                Kind::Mask => {
                    let least = |i| case.passes.iter().filter_map(|r: &Reply| r.masks.get(i)).min();
                    all.extend((0..).map_while(least));
                }
            }
        }
        Times::new(all)
    }

    /// Prints a row for each kind of time: all passes together, but of p99.9 and the maximum the
    /// least that a pass had. The row *least* takes each time as the least of its passes.
    pub(crate) fn print_times(&self, keep: &dyn Fn(usize) -> bool) {
        let schemas = self.cases.iter().filter(|c| c.compiled() && keep(c.number)).count();
        for (name, kind) in [("first mask", Kind::First), ("mask", Kind::Mask)] {
            let passes: Vec<Times> =
                (0..self.passes()).map(|pass| self.times(kind, pass, keep)).collect();
            let all = Times::new(passes.iter().flat_map(|times| times.0.iter().copied()).collect());
            let column = |&(_, share): &(&str, f64)| match share {
                0.999.. => {
                    let of = |times: &Times| times.quantile(share);
                    passes.iter().map(of).min_by(f64::total_cmp).unwrap_or(0.0)
                }
                _ => all.quantile(share),
            };
            self.print_row(name, schemas, all.average(), SHARES.iter().map(column));
            if self.passes() > 1 {
                self.print_least(&format!("{name}, least"), schemas, kind, keep);
            }
        }
        self.print_least("mask, second pass", schemas, Kind::Warm, keep);
    }

    fn print_least(&self, name: &str, n: usize, kind: Kind, keep: &dyn Fn(usize) -> bool) {
        let least = self.least(kind, keep);
        if !least.is_empty() {
            let columns = SHARES.iter().map(|&(_, share)| least.quantile(share));
            self.print_row(name, n, least.average(), columns);
        }
    }

    fn print_row(&self, name: &str, n: usize, average: f64, rest: impl Iterator<Item = f64>) {
        let numbers: Vec<String> =
            std::iter::once(average).chain(rest).map(|time| micros(time)).collect();
        println!("| {} | {n} | {name} | {} |", self.name, numbers.join(" | "));
    }

    pub(crate) fn print_coverage(&self) {
        let compiled: Vec<&Case> = self.cases.iter().filter(|case| case.compiled()).collect();
        let timeouts = self.cases.iter().filter(|c| c.passes.iter().any(|r| r.timed_out)).count();
        let right = compiled.iter().filter(|case| case.accepted() == case.valid).count();
        println!(
            "| {} | {} | {} | {} | {timeouts} | {} | {} | {right} |",
            self.name,
            self.cases.len(),
            compiled.len(),
            self.cases.len() - compiled.len() - timeouts,
            compiled.iter().map(|case| case.wrong(true)).sum::<usize>(),
            compiled.iter().map(|case| case.wrong(false)).sum::<usize>(),
        );
    }

    pub(crate) fn print_memory(&self) {
        let mb = |kb: u64| kb as f64 / 1024.0;
        println!("| {} | {:.1} | {:.1} |", self.name, mb(self.idle), mb(self.peak));
    }

    /// Prints how many masks had which cause and how long they took, if the engine tells.
    pub(crate) fn print_causes(&self) {
        let mut by_cause: [Vec<u64>; CAUSES.len()] = Default::default();
        for reply in self.cases.iter().flat_map(|case| &case.passes) {
            for (&cause, &time) in reply.causes.iter().zip(&reply.masks) {
                by_cause[cause as usize].push(time);
            }
        }
        let all: u64 = by_cause.iter().flatten().sum();
        if all == 0 {
            return;
        }
        println!("\n{}: what had to be made for a mask\n", self.name);
        println!("| made | masks | share of time | avg | p50 | p90 | p99 | p99.9 | max |");
        println!("|---|---|---|---|---|---|---|---|---|");
        for (name, times) in CAUSES.iter().zip(by_cause) {
            let (count, sum) = (times.len(), times.iter().sum::<u64>());
            let times = Times::new(times);
            let columns: Vec<String> = SHARES
                .iter()
                .skip(1)
                .filter(|column| column.0 != "p75")
                .map(|&(_, share)| micros(times.quantile(share)))
                .collect();
            let share = sum as f64 / all as f64 * 100.0;
            println!(
                "| {name} | {count} | {share:.1} % | {} | {} |",
                micros(times.average()),
                columns.join(" | ")
            );
        }
    }

    /// Returns the masks that were compared with brute force, and those that differed.
    pub(crate) fn checks(&self) -> (usize, usize) {
        let replies = self.cases.iter().flat_map(|case| &case.passes);
        replies.fold((0, 0), |sum, reply| (sum.0 + reply.checked, sum.1 + reply.wrong))
    }
}

pub(crate) fn print_head() {
    let names: Vec<&str> = SHARES.iter().map(|column| column.0).collect();
    println!("| engine | schemas | time | avg | {} |", names.join(" | "));
    println!("|---|---|---|{}", "---|".repeat(SHARES.len() + 1));
}

/// Three digits are more than a busy machine repeats.
fn micros(time: f64) -> String {
    match time {
        ..10.0 => format!("{time:.2}"),
        ..100.0 => format!("{time:.1}"),
        _ => format!("{time:.0}"),
    }
}
