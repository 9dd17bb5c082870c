//! Exact decimal numbers: the text of a JSON number in, a value with exact order and arithmetic out.
//!
//! A value is kept as its significant decimal digits, because everything done with it (comparing,
//! building digit-wise ranges) walks digits. Comparing is linear in the digits, conversion to a
//! binary integer quadratic; the number of digits is bounded by `Limits::number_digits`.

use std::cmp::Ordering;
use std::fmt;

use num_bigint::BigUint;

use crate::error::{Error, ErrorKind};
use crate::limits::{BudgetExceeded, Limits};

/// A decimal number of any size and precision, equal and ordered by value.
///
/// ```
/// use schemac::Limits;
/// use schemac::frontend::json_schema::number::Decimal;
///
/// let limits = Limits::default();
/// let half = Decimal::parse("5.0e-1", &limits)?;
/// assert_eq!(half, Decimal::parse("0.50", &limits)?);
/// assert_eq!(half.to_string(), "0.5");
/// assert!(half < Decimal::from(1));
/// # Ok::<(), schemac::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Decimal {
    negative: bool,
    /// The digits 0 to 9 of the value 0.d₁d₂d₃… × 10^point, without zeros at either end. Zero has
    /// none, a point of 0, and is not negative.
    digits: Box<[u8]>,
    point: i64,
}

impl Decimal {
    /// Returns the value of the JSON number `text` (RFC 8259 section 6).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Syntax`] if `text` is not a JSON number; [`ErrorKind::BudgetExceeded`] if the
    /// value written without an exponent has more than [`Limits::number_digits`] digits.
    pub fn parse(text: &str, limits: &Limits) -> Result<Self, Error> {
        let parts = split(text).ok_or_else(|| {
            Error::new(ErrorKind::Syntax, "a number is not written as JSON writes numbers")
        })?;
        let all = parts.integer.bytes().chain(parts.fraction.bytes());
        let mut digits: Vec<u8> = all.map(|b| b - b'0').skip_while(|&d| d == 0).collect();
        let integer_zeros = parts.integer.len() + parts.fraction.len() - digits.len();
        while digits.last() == Some(&0) {
            digits.pop();
        }
        if digits.is_empty() {
            return Ok(Self::zero());
        }
        let over =
            || Error::budget(BudgetExceeded::new("number_digits", limits.number_digits as u64));
        let exponent = parts.exponent.ok_or_else(over)?;
        let point = i64::try_from(parts.integer.len())
            .ok()
            .and_then(|integer| integer.checked_sub(i64::try_from(integer_zeros).ok()?))
            .and_then(|point| point.checked_add(exponent))
            .ok_or_else(over)?;
        let value = Self { negative: parts.negative, digits: digits.into(), point };
        if value.plain_digits() > limits.number_digits as u64 {
            return Err(over());
        }
        Ok(value)
    }

    /// Returns zero.
    #[must_use]
    pub fn zero() -> Self {
        Self { negative: false, digits: Box::default(), point: 0 }
    }

    /// Returns ±`units` × 10^−`scale`.
    #[must_use]
    pub(super) fn from_units(negative: bool, units: &BigUint, scale: u64) -> Self {
        let mut digits = units.to_radix_be(10);
        if *units == BigUint::ZERO {
            return Self::zero();
        }
        let scale = i64::try_from(scale).unwrap_or(i64::MAX);
        let point = i64::try_from(digits.len()).unwrap_or(i64::MAX).saturating_sub(scale);
        while digits.last() == Some(&0) {
            digits.pop();
        }
        Self { negative, digits: digits.into(), point }
    }

    /// Returns the absolute value in units of 10^−`scale`, rounded down.
    #[must_use]
    pub(super) fn units(&self, scale: u64) -> BigUint {
        let scale = i64::try_from(scale).unwrap_or(i64::MAX);
        let Ok(wanted) = usize::try_from(self.point.saturating_add(scale)) else {
            return BigUint::ZERO;
        };
        let mut digits = self.digits.to_vec();
        digits.resize(wanted, 0);
        BigUint::from_radix_be(&digits, 10).unwrap_or_default()
    }

    /// Returns whether the value is 0.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Returns whether the value is below 0.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// Returns whether the value is an integer.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        self.fraction_digits() == 0
    }

    /// Returns whether the value is `divisor` times an integer; every value is of divisor 0.
    #[must_use]
    pub fn is_multiple_of(&self, divisor: &Self) -> bool {
        let scale = self.fraction_digits().max(divisor.fraction_digits());
        divisor.is_zero() || self.units(scale) % divisor.units(scale) == BigUint::ZERO
    }

    /// Returns the number of digits after the decimal point.
    #[must_use]
    pub(super) fn fraction_digits(&self) -> u64 {
        let len = i64::try_from(self.digits.len()).unwrap_or(i64::MAX);
        u64::try_from(len.saturating_sub(self.point)).unwrap_or(0)
    }

    /// Returns the number of digits of the plain notation.
    #[must_use]
    pub(super) fn plain_digits(&self) -> u64 {
        u64::try_from(self.point).unwrap_or(0).max(1).saturating_add(self.fraction_digits())
    }

    /// Returns the digits before the point (none for a value below 1) and those after it.
    #[must_use]
    pub(super) fn plain_parts(&self) -> (Vec<u8>, Vec<u8>) {
        let len = self.digits.len();
        match usize::try_from(self.point) {
            Ok(point) if point >= len => {
                let mut integer = self.digits.to_vec();
                integer.resize(point, 0);
                (integer, Vec::new())
            }
            Ok(point) => (self.digits[..point].to_vec(), self.digits[point..].to_vec()),
            Err(_) => {
                let zeros = usize::try_from(self.point.unsigned_abs()).unwrap_or(usize::MAX);
                let mut fraction = vec![0; zeros];
                fraction.extend_from_slice(&self.digits);
                (Vec::new(), fraction)
            }
        }
    }

    /// Returns the absolute value as a mantissa in [1, 10) and a power of ten; `None` for 0.
    #[must_use]
    pub(super) fn scientific(&self) -> Option<(Self, i64)> {
        if self.is_zero() {
            return None;
        }
        let mantissa = Self { negative: false, digits: self.digits.clone(), point: 1 };
        Some((mantissa, self.point - 1))
    }

    /// Returns the absolute value.
    #[must_use]
    pub fn magnitude(&self) -> Self {
        Self { negative: false, ..self.clone() }
    }

    /// Returns the value with its sign changed.
    #[must_use]
    pub fn negated(&self) -> Self {
        Self { negative: !self.negative && !self.is_zero(), ..self.clone() }
    }

    /// Returns the greatest integer that is not above the value.
    #[must_use]
    pub fn floor(&self) -> Self {
        let mut units = self.units(0);
        if self.negative && !self.is_integer() {
            units += 1_u8;
        }
        Self::from_units(self.negative, &units, 0)
    }

    /// Returns the least integer that is not below the value.
    #[must_use]
    pub fn ceil(&self) -> Self {
        self.negated().floor().negated()
    }

    /// Returns the least integer that is above the value.
    #[must_use]
    pub(super) fn next_integer(&self) -> Self {
        let floor = self.floor();
        let units = floor.units(0);
        if floor.negative {
            Self::from_units(true, &(units - 1_u8), 0)
        } else {
            Self::from_units(false, &(units + 1_u8), 0)
        }
    }

    /// Orders the absolute values.
    fn cmp_magnitude(&self, other: &Self) -> Ordering {
        // Without zeros at either end, digits at equal points compare as text does. Zero, the only
        // value without digits, may stand left of any point.
        match (self.is_zero(), other.is_zero()) {
            (true, _) | (_, true) => self.digits.len().cmp(&other.digits.len()),
            _ => self.point.cmp(&other.point).then_with(|| self.digits.cmp(&other.digits)),
        }
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Self {
        Self::from_units(value < 0, &BigUint::from(value.unsigned_abs()), 0)
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.cmp_magnitude(other),
            (true, true) => other.cmp_magnitude(self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Decimal {
    /// Writes the plain notation: no exponent, no superfluous zero.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |digits: Vec<u8>| -> String {
            digits.into_iter().map(|digit| char::from(b'0' + digit)).collect()
        };
        let (integer, fraction) = self.plain_parts();
        let sign = if self.negative { "-" } else { "" };
        let integer = if integer.is_empty() { "0".to_owned() } else { text(integer) };
        write!(f, "{sign}{integer}")?;
        if fraction.is_empty() { Ok(()) } else { write!(f, ".{}", text(fraction)) }
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Decimal({self})")
    }
}

/// The parts of a JSON number's text.
struct Parts<'a> {
    negative: bool,
    integer: &'a str,
    fraction: &'a str,
    /// `None` if it does not fit.
    exponent: Option<i64>,
}

/// Splits a JSON number, or returns `None` if `text` is not one.
fn split(text: &str) -> Option<Parts<'_>> {
    fn digits(text: &str) -> (&str, &str) {
        text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
    }
    let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (integer, rest) = digits(rest);
    if integer.is_empty() || (integer.len() > 1 && integer.starts_with('0')) {
        return None;
    }
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    if fraction.is_empty() && text.contains('.') {
        return None;
    }
    let exponent = match rest.strip_prefix(['e', 'E']) {
        Some(exponent) => {
            let (minus, rest) = match exponent.strip_prefix('-') {
                Some(rest) => (true, rest),
                None => (false, exponent.strip_prefix('+').unwrap_or(exponent)),
            };
            let (digits, rest) = digits(rest);
            if digits.is_empty() || !rest.is_empty() {
                return None;
            }
            digits.parse::<i64>().ok().map(|e| if minus { -e } else { e })
        }
        None if rest.is_empty() => Some(0),
        None => return None,
    };
    Some(Parts { negative, integer, fraction, exponent })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text, &Limits::default()).unwrap()
    }

    #[test]
    fn spellings_of_one_value_are_equal_and_print_plainly() {
        for (spellings, plain) in [
            (&["0", "-0", "0.00", "0e999999999999999999999", "-0.0E-5"][..], "0"),
            (&["100", "1e2", "1.00e+2", "0.1E3", "10000e-2"], "100"),
            (&["-0.0125", "-1.25e-2", "-125E-4"], "-0.0125"),
            (&["12.5", "1.25e1"], "12.5"),
        ] {
            for text in spellings {
                assert_eq!(decimal(text), decimal(plain), "{text}");
                assert_eq!(decimal(text).to_string(), plain);
            }
        }
    }

    #[test]
    fn order_is_by_value() {
        let sorted = [
            "-1e30", "-100", "-99.9", "-1", "-0.5", "-0.05", "0", "1e-30", "0.05", "0.49999",
            "0.5", "0.50001", "1", "2", "10", "10.01", "99", "1e2", "1e30",
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(decimal(a).cmp(&decimal(b)), i.cmp(&j), "{a} {b}");
            }
        }
    }

    #[test]
    fn rounding_goes_to_the_neighbouring_integers() {
        for (text, floor, ceil) in [
            ("1.5", "1", "2"),
            ("-1.5", "-2", "-1"),
            ("0.001", "0", "1"),
            ("-0.001", "-1", "0"),
            ("7", "7", "7"),
            ("-70", "-70", "-70"),
            ("9.999", "9", "10"),
        ] {
            assert_eq!(decimal(text).floor(), decimal(floor), "{text}");
            assert_eq!(decimal(text).ceil(), decimal(ceil), "{text}");
        }
    }

    #[test]
    fn multiples_are_exact() {
        assert!(decimal("0.3").is_multiple_of(&decimal("0.1")));
        assert!(decimal("-1e20").is_multiple_of(&decimal("3.2")));
        assert!(!decimal("1e20").is_multiple_of(&decimal("3")));
        assert!(decimal("0").is_multiple_of(&decimal("7")));
        assert!(!decimal("0.75").is_multiple_of(&decimal("0.5")));
    }

    #[test]
    fn what_is_no_json_number_is_a_syntax_error() {
        for text in [
            "", "-", "+1", "01", "1.", ".5", "1e", "1e+", "1 ", " 1", "0x1", "1.e5", "--1", "1e5.0",
        ] {
            let error = Decimal::parse(text, &Limits::default()).unwrap_err();
            assert_eq!(error.kind(), &ErrorKind::Syntax, "{text}");
        }
    }

    #[test]
    fn sizes_past_the_limit_are_a_budget_error() {
        for text in ["1e1000", "1e-1000", "1e99999999999999999999", "1e-9223372036854775808"] {
            let error = Decimal::parse(text, &Limits::default()).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::BudgetExceeded(_)), "{text}");
        }
        assert!(Decimal::parse("1e999", &Limits::default()).is_ok());
    }
}
