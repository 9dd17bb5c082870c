//! Formats of numbers: those of the OpenAPI Format Registry, and those that `schemars` gives the
//! other integer types of Rust.
//!
//! | format | numbers |
//! | --- | --- |
//! | `int8` `int16` `int32` `int64` `int128` | the integers of two's complement of this width |
//! | `uint8` `uint16` `uint32` `uint64` `uint128` | the integers from 0 of this width |
//! | `int` `uint` | as `int64` and `uint64`: Rust's `isize` and `usize` |
//! | `double-int` | the integers that a double tells apart from their neighbours: below 2⁵³ |
//! | `float` `double` | the numbers between the least and the greatest finite number of binary32 and binary64; one between two of them is read as the nearer one |

use num_bigint::BigUint;

use super::{Bound, Decimal, NumberConstraint};

/// The names that [`of_format`] knows.
pub const FORMATS: [&str; 15] = [
    "double",
    "double-int",
    "float",
    "int",
    "int128",
    "int16",
    "int32",
    "int64",
    "int8",
    "uint",
    "uint128",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
];

/// Returns what the format `name` demands of a number, or `None` if it is no format of numbers.
#[must_use]
pub fn of_format(name: &str) -> Option<NumberConstraint> {
    let power = |bits: u32| BigUint::from(1_u8) << bits;
    let below = |bits: u32| power(bits) - BigUint::from(1_u8);
    // The least number, without its sign, and the greatest.
    let (least, greatest) = match name {
        "int8" => (power(7), below(7)),
        "int16" => (power(15), below(15)),
        "int32" => (power(31), below(31)),
        "int64" | "int" => (power(63), below(63)),
        "int128" => (power(127), below(127)),
        "uint8" => (BigUint::ZERO, below(8)),
        "uint16" => (BigUint::ZERO, below(16)),
        "uint32" => (BigUint::ZERO, below(32)),
        "uint64" | "uint" => (BigUint::ZERO, below(64)),
        "uint128" => (BigUint::ZERO, below(128)),
        "double-int" => (below(53), below(53)),
        // All bits of the significand are set, and the exponent is the greatest.
        "float" => (below(24) << 104_u32, below(24) << 104_u32),
        "double" => (below(53) << 971_u32, below(53) << 971_u32),
        _ => return None,
    };
    let bound = |negative, units| Some(Bound::inclusive(Decimal::from_units(negative, &units, 0)));
    Some(NumberConstraint {
        integer: !matches!(name, "float" | "double"),
        minimum: bound(true, least),
        maximum: bound(false, greatest),
        ..NumberConstraint::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    #[test]
    fn formats_have_the_ranges_of_the_types_of_rust() {
        let range = |name: &str| {
            let constraint = of_format(name).expect(name);
            let value = |bound: Option<Bound>| bound.expect(name).value.to_string();
            assert_eq!(constraint.integer, !["float", "double"].contains(&name), "{name}");
            (value(constraint.minimum), value(constraint.maximum))
        };
        macro_rules! check {
            ($($name:literal $type:ty),*) => {
                $(assert_eq!(range($name), (<$type>::MIN.to_string(), <$type>::MAX.to_string()));)*
            };
        }
        // The plain form of a float's text is its exact value.
        check!("int8" i8, "int16" i16, "int32" i32, "int64" i64, "int128" i128, "int" i64);
        check!("uint8" u8, "uint16" u16, "uint32" u32, "uint64" u64, "uint128" u128, "uint" u64);
        for (name, max) in [("float", f64::from(f32::MAX)), ("double", f64::MAX)] {
            let (least, greatest) = range(name);
            let expected = format!("{max:.0}");
            assert_eq!(greatest, expected);
            assert_eq!(least, format!("-{expected}"));
        }
        assert_eq!(range("double-int").1, "9007199254740991");
        for name in FORMATS {
            range(name);
        }
        assert_eq!(of_format("int24"), None);
        assert!(FORMATS.is_sorted());
        let limits = Limits::default();
        let over = Decimal::parse("1.8e308", &limits).expect("a number");
        assert!(!of_format("double").expect("known").admits(&over));
    }
}
