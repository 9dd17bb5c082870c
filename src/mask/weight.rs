//! The weight `exp((logit − max) / T)` of a token, with the same bits on every machine.
//!
//! Only additions, multiplications and integer operations are used, in one order, so that scalar
//! code and vectors of any width agree and a seed draws the same tokens everywhere. A weight has 24
//! significant bits, as many as a logit, and the range of `f64`: distributions that are exact in
//! `f32` stay exact (logits ln ½, ln ¼ weigh 1 and ½, so a nucleus can stop at exact equality), and
//! tails down to e⁻⁷⁰⁸ survive.
//!
//! Method: `exp(x) = 2ᵏ · exp(r)`, `k = round(x / ln 2)`, `|r| ≤ ln 2 / 2` (Cody and Waite, *Software
//! Manual for the Elementary Functions*, 1980, chapter 6), `exp(r) ≈ 1 + r·q(r)` with `q` of degree 6
//! through the Chebyshev nodes; relative error below 2⁻³³ before rounding.

/// Below this, a weight is 0: the next lower power of two would be subnormal.
const LOWEST: f64 = -708.0;

/// 1.5 · 2⁵²: adding it rounds to an integer, which is then in the lowest bits.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// ln 2 to 32 bits, so that its products with `k` are exact, and the rest.
const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// The coefficients of `q`, lowest first.
const Q: [f64; 7] = [
    1.0,
    0.500_000_004_714_605_7,
    0.166_666_667_190_289_36,
    0.041_666_352_771_112_21,
    0.008_333_298_469_800_59,
    0.001_394_111_889_583_7,
    0.000_198_992_855_758_962_82,
];

/// Returns `exp((logit - max) * scale)`, rounded to 24 significant bits; 1 where `logit` is `max`, 0
/// for −∞. `max` is finite and not below `logit`, `scale` is positive and finite.
#[inline(always)]
pub(crate) fn weight(logit: f32, max: f32, scale: f64) -> f64 {
    let x = (f64::from(logit) - f64::from(max)) * scale;
    let clamped = if x > LOWEST { x } else { LOWEST };
    let rounded = clamped * std::f64::consts::LOG2_E + ROUND;
    let k = rounded - ROUND;
    let r = (clamped - k * LN_2_HIGH) - k * LN_2_LOW;
    let mut q = Q[6];
    q = q * r + Q[5];
    q = q * r + Q[4];
    q = q * r + Q[3];
    q = q * r + Q[2];
    q = q * r + Q[1];
    q = q * r + Q[0];
    let mantissa = (1.0 + r * q).to_bits();
    let bits = mantissa.wrapping_add(rounded.to_bits() << 52);
    // 52 − 23 = 29 bits of the mantissa go.
    let short = f64::from_bits(bits.wrapping_add(1 << 28) & !((1 << 29) - 1));
    if x > LOWEST { short } else { 0.0 }
}

/// Returns `1 / temperature`, kept finite where the temperature is so small that it would not be.
pub(crate) fn scale(temperature: f64) -> f64 {
    (1.0 / temperature).min(f64::MAX)
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "logits are rounded")]
mod tests {
    use super::*;

    #[test]
    fn weights_are_exponentials_to_24_bits() {
        let mut worst = 0.0_f64;
        for i in 0..2_000_000_u32 {
            let logit = -708.0 * (f64::from(i) / 2e6).powi(2);
            let logit = f32::from_bits(((logit as f32).to_bits() ^ (i & 7)) & !1);
            let exact = f64::from(logit).exp();
            if logit <= 0.0 && f64::from(logit) > LOWEST {
                worst = worst.max((weight(logit, 0.0, 1.0) / exact - 1.0).abs());
            }
        }
        assert!(worst <= 0.5_f64.powi(24) * 1.01, "relative error {worst:e}");
    }

    #[test]
    fn exact_distributions_stay_exact() {
        for power in 0..100 {
            let logit = (0.5_f64.powi(power)).ln() as f32;
            // The logit itself is rounded; up to here that does not reach the 24th bit.
            if power < 4 {
                assert_eq!(weight(logit, 0.0, 1.0), 0.5_f64.powi(power));
            }
        }
        assert_eq!(weight(0.5_f32.ln(), 0.0, 2.0), 0.25);
        assert_eq!(weight(7.25, 7.25, 1e300), 1.0);
    }

    #[test]
    fn extremes_neither_overflow_nor_become_nan() {
        assert_eq!(weight(f32::NEG_INFINITY, 0.0, scale(1.0)), 0.0);
        assert_eq!(weight(f32::NEG_INFINITY, 0.0, scale(f64::MAX)), 0.0);
        assert_eq!(weight(-1e38, 1e38, scale(1.0)), 0.0);
        assert_eq!(weight(1e38, 1e38, scale(1e-320)), 1.0);
        assert_eq!(weight(0.0, f32::MIN_POSITIVE, scale(1e-320)), 0.0);
        let e_to_minus_6 = weight(-3e38, 3e38, scale(1e38));
        assert!((e_to_minus_6 / (-6_f64).exp() - 1.0).abs() < 1e-6);
        assert!(weight(-700.0, 0.0, 1.0) > 0.0);
    }
}
