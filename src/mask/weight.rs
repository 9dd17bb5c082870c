//! The weight `exp((logit − max) / T)` of a token, with the same bits on every machine.
//!
//! Only additions, multiplications and integer operations are used, in one order, so that scalar
//! code and vectors of any width agree and a seed draws the same tokens everywhere. A weight has 24
//! significant bits, as many as a logit, and the range of `f64`: distributions that are exact in
//! `f32` stay exact (logits ln ½, ln ¼ weigh 1 and ½, so a nucleus can stop at exact equality), and
//! tails down to e⁻⁷⁰⁸ survive.
//!
//! Method: in powers of two, `2ᵗ = 2ᵏ · 2ᶠ`, `k = round(t)`, `|f| ≤ ½` (Cody and Waite, *Software
//! Manual for the Elementary Functions*, 1980, chapter 6), `2ᶠ ≈ 1 + f·q(f)` with `q` of degree 6
//! through the Chebyshev nodes, summed in pairs (Estrin) so that a CPU can do several steps at once;
//! relative error below 2⁻³³ before rounding.

/// Below this power of two, a weight is 0: lower ones would be subnormal.
const LOWEST: f64 = -1021.0;

/// 1.5 · 2⁵²: adding it rounds to an integer, which is then in the lowest bits.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// The coefficients of `q`, lowest first.
const Q: [f64; 7] = [
    std::f64::consts::LN_2,
    0.240_226_509_225_607_6,
    0.055_504_108_839_305_55,
    0.009_618_056_620_501_08,
    0.001_333_350_234_150_156,
    0.000_154_614_679_052_859_86,
    0.000_015_297_341_622_832_27,
];

/// What the weights of a row are relative to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weights {
    /// The highest logit, which weighs 1.
    max: f64,
    /// What a difference of logits is multiplied by to get a power of two.
    scale: f64,
}

impl Weights {
    /// Returns the weights of a row whose highest legal logit is `max`, which is finite, at a
    /// temperature above 0.
    pub(crate) fn new(max: f32, temperature: f64) -> Self {
        // Finite, so that a difference of 0 stays 0 at the least temperatures.
        let scale = (std::f64::consts::LOG2_E / temperature).min(f64::MAX);
        Self { max: f64::from(max), scale }
    }

    /// Returns the weight of `logit`, which is not above the highest: 24 significant bits, 0 for −∞.
    #[inline(always)]
    pub(crate) fn of(self, logit: f32) -> f64 {
        let power = (f64::from(logit) - self.max) * self.scale;
        let t = if power > LOWEST { power } else { LOWEST };
        let shifted = t + ROUND;
        let f = t - (shifted - ROUND);
        let square = f * f;
        let low = (Q[0] + Q[1] * f) + (Q[2] + Q[3] * f) * square;
        let high = (Q[4] + Q[5] * f) + Q[6] * square;
        let mantissa = 1.0 + f * (low + high * (square * square));
        // The integer is added to the exponent. 52 − 23 = 29 bits of the mantissa go.
        let bits = mantissa.to_bits().wrapping_add(shifted.to_bits() << 52);
        let short = bits.wrapping_add(1 << 28) & !((1 << 29) - 1);
        let keep = 0_u64.wrapping_sub(u64::from(power > LOWEST));
        f64::from_bits(short & keep)
    }

    /// Returns the natural logarithm of the weight of `logit`, unrounded.
    pub(crate) fn log_of(self, logit: f32) -> f64 {
        (f64::from(logit) - self.max) * self.scale * std::f64::consts::LN_2
    }

    /// Returns a logit below all those whose weight is `least` or more.
    pub(crate) fn floor(self, least: f64) -> f32 {
        /// In powers of two; the rounding of a weight moves it by less than 1e-7.
        const MARGIN: f64 = 1e-6;
        let logit = self.max + (least.log2() - MARGIN) / self.scale;
        #[expect(clippy::cast_possible_truncation, reason = "rounded, then made lower")]
        (logit as f32).next_down()
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "logits are rounded")]
mod tests {
    use super::*;

    fn weight(logit: f32, max: f32, temperature: f64) -> f64 {
        Weights::new(max, temperature).of(logit)
    }

    #[test]
    fn weights_are_exponentials_to_24_bits() {
        let mut worst = 0.0_f64;
        for i in 0..2_000_000_u32 {
            let logit = -707.0 * (f64::from(i) / 2e6).powi(2);
            let logit = f32::from_bits((logit as f32).to_bits() ^ (i & 7));
            let exact = f64::from(logit).exp();
            if logit <= 0.0 {
                worst = worst.max((weight(logit, 0.0, 1.0) / exact - 1.0).abs());
            }
        }
        assert!(worst <= 0.5_f64.powi(24) * 1.01, "relative error {worst:e}");
    }

    #[test]
    fn exact_distributions_stay_exact() {
        // The logits are rounded; up to here that does not reach the 24th bit of the weight.
        for power in 0..4 {
            let logit = 0.5_f64.powi(power).ln() as f32;
            assert_eq!(weight(logit, 0.0, 1.0), 0.5_f64.powi(power));
        }
        assert_eq!(weight(0.5_f32.ln(), 0.0, 0.5), 0.25);
        assert_eq!(weight(7.25, 7.25, 1e-300), 1.0);
    }

    #[test]
    fn extremes_neither_overflow_nor_become_nan() {
        for temperature in [5e-324, 1e-320, 1e-30, 1.0, 1e30, f64::MAX] {
            assert_eq!(weight(f32::NEG_INFINITY, 0.0, temperature), 0.0);
            assert_eq!(weight(1e38, 1e38, temperature), 1.0);
        }
        assert_eq!(weight(-1e38, 1e38, 1.0), 0.0);
        assert_eq!(weight(0.0, f32::MIN_POSITIVE, 1e-320), 0.0);
        let e_to_minus_6 = weight(-3e38, 3e38, 1e38);
        assert!((e_to_minus_6 / (-6_f64).exp() - 1.0).abs() < 1e-6);
        assert!(weight(-700.0, 0.0, 1.0) > 0.0);
    }

    #[test]
    fn the_floor_is_below_what_reaches_a_weight() {
        for temperature in [1e-30, 0.3, 1.0, 50.0] {
            for max in [-1e38_f32, -3.0, 0.0, 17.5, 1e30] {
                let weights = Weights::new(max, temperature);
                for step in 1..400_u16 {
                    let logit = (f64::from(max) - temperature * f64::from(step) * 0.07) as f32;
                    assert!(weights.floor(weights.of(logit)) < logit);
                }
                assert_eq!(weights.floor(0.0), f32::NEG_INFINITY);
            }
        }
    }
}
