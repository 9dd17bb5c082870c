//! One spelling for each JSON value: text in, text out that is equal exactly if the value is.

use std::fmt::Write;

use serde_json::Value;

/// Returns the one spelling of the JSON value `text`, or `None` if it is none or is nested deeper than
/// 127 levels.
///
/// No white space; members sorted by key, of several with one key the last; numbers by value, so
/// that `1`, `1.0` and `10e-1` are the same, whatever their size.
///
/// ```
/// use schemac::runtime::canonical_json;
///
/// let spelled = r#" {"b": 1.50, "a": "\u0061"} "#;
/// assert_eq!(canonical_json(spelled).as_deref(), Some(r#"{"a":"a","b":15e-1}"#));
/// ```
#[must_use]
pub fn canonical_json(text: &str) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    let mut out = String::new();
    write(&value, &mut out);
    Some(out)
}

/// Recursion is bounded by the parser's depth of 127.
fn write(value: &Value, out: &mut String) {
    match value {
        Value::Number(number) => out.push_str(&canonical_number(&number.to_string())),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (i, (key, value)) in members.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(&Value::String(key.clone()), out);
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
        // A string that cannot be written is none that was read.
        other => drop(write!(out, "{other}")),
    }
}

/// Returns a number as its digits without zeros at either end, and the power of ten that they count.
fn canonical_number(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return "0".into();
    }
    // Exponents without bound: those outside 64 bits stay as they are written, which keeps different
    // spellings apart and never makes different values equal.
    let zeros = i64::try_from(digits.len() - significant.len()).unwrap_or(i64::MAX);
    let places = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    let shift =
        exponent.parse::<i64>().ok().and_then(|e| e.checked_add(zeros)?.checked_sub(places));
    match shift {
        Some(0) => format!("{sign}{significant}"),
        Some(shift) => format!("{sign}{significant}e{shift}"),
        None => format!("{sign}{mantissa}e{exponent}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_one_spelling_and_others_have_others() {
        let classes: [&[&str]; 9] = [
            &["1", "1.0", "10e-1", "0.1E+1", "1.000"],
            &["-1", "-1.0"],
            &["0", "-0", "0.0", "0e9"],
            &["1e400", "10e399", "1.0e400"],
            &["12345678901234567890123", "12345678901234567890123.0"],
            &[r#""a/é""#, r#" "\u0061\/\u00e9" "#],
            &[r#"{"a":[1,2],"b":{}}"#, r#"{ "b" : { }, "a" : [ 1.0, 2 ] }"#],
            &[r#"{"a":2}"#, r#"{"a":1,"a":2}"#],
            &["[2,1]", "[2, 1.0]"],
        ];
        let mut all = Vec::new();
        for class in classes {
            let spelled: Vec<_> = class.iter().map(|text| canonical_json(text).unwrap()).collect();
            assert!(spelled.iter().all(|s| *s == spelled[0]), "{spelled:?}");
            assert_eq!(canonical_json(&spelled[0]).as_ref(), Some(&spelled[0]), "it is JSON");
            all.push(spelled[0].clone());
        }
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), classes.len());
        assert_eq!(canonical_json("[1"), None);
    }
}
