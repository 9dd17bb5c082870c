//! The mean and percentiles of times.

use std::time::Duration;

use serde_json::{Value, json};

/// Returns microseconds, exact to the nanosecond.
pub(crate) fn micros(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1000.0
}

/// The mean and percentiles of times.
///
/// The percentile p of n times is the nearest rank: in ascending order, number ⌈p·n / 100⌉.
/// Everything is 0 if there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Distribution {
    pub average: Duration,
    pub p50: Duration,
    pub p90: Duration,
    pub p99: Duration,
    pub p999: Duration,
    pub max: Duration,
}

impl Distribution {
    /// Returns the distribution of `times`.
    pub(crate) fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let Some(&max) = times.last() else { return Self::default() };
        let rank = |per_mille: usize| times[(per_mille * times.len()).div_ceil(1000).max(1) - 1];
        let sum: u128 = times.iter().map(Duration::as_nanos).sum();
        let average = u64::try_from(sum / times.len() as u128).unwrap_or(u64::MAX);
        Self {
            average: Duration::from_nanos(average),
            p50: rank(500),
            p90: rank(900),
            p99: rank(990),
            p999: rank(999),
            max,
        }
    }

    /// Returns the numbers in microseconds as a JSON object.
    pub(crate) fn to_json(self) -> Value {
        json!({
            "avg": micros(self.average),
            "p50": micros(self.p50),
            "p90": micros(self.p90),
            "p99": micros(self.p99),
            "p999": micros(self.p999),
            "max": micros(self.max),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let d = Distribution::of((1..=1000).rev().map(us).collect());
        assert_eq!(
            (d.p50, d.p90, d.p99, d.p999, d.max),
            (us(500), us(900), us(990), us(999), us(1000))
        );
        assert_eq!(d.average, Duration::from_nanos(500_500));
        let d = Distribution::of(vec![us(3), us(1), us(2)]);
        assert_eq!((d.p50, d.p90, d.max), (us(2), us(3), us(3)));
        assert_eq!(Distribution::of(Vec::new()), Distribution::default());
    }
}
