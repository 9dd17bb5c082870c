//! Octets and integers written as text.

/// Base 64 with the last two characters of its alphabet as members of a class, and padding that may be
/// left out if it is `optional`. The bits of the last character that stand for nothing are 0, unless
/// they may be `any`: encoders write 0, not every decoder asks for it.
pub(super) fn base64(last_two: &str, optional: bool, any: bool) -> String {
    let character = format!("[A-Za-z0-9{last_two}]");
    // Every 16th character of the alphabet, and every 4th.
    let (two, four) =
        if any { (&*character, &*character) } else { ("[AQgw]", "[AEIMQUYcgkosw048]") };
    let maybe = if optional { "?" } else { "" };
    format!(
        "(?:{character}{{4}})*(?:{character}{two}(?:==){maybe}|{character}{{2}}{four}={maybe})?"
    )
}

/// The integers from 1 up to the one with these digits.
pub(super) fn up_to(digits: &str) -> String {
    let mut parts = vec![digits.to_owned()];
    for (i, digit) in digits.bytes().enumerate() {
        let least = if i == 0 { b'1' } else { b'0' };
        if digit > least {
            // As many digits, equal up to here, where this one is less.
            let (least, most) = (char::from(least), char::from(digit - 1));
            let rest = digits.len() - i - 1;
            parts.push(format!(r"{}[{least}-{most}]\d{{{rest}}}", &digits[..i]));
        }
    }
    if let Some(fewer) = digits.len().checked_sub(2) {
        parts.push(format!(r"[1-9]\d{{0,{fewer}}}"));
    }
    format!("(?:{})", parts.join("|"))
}

/// The signed integers of 64 bits; with `any`, also with a plus sign or zeros before the digits.
pub(super) fn int64(any: bool) -> String {
    let (plus, zeros) = if any { (r"\+?", "0*") } else { ("", "") };
    let (greatest, least) = (up_to("9223372036854775807"), up_to("9223372036854775808"));
    let zero = if any { "[+-]?0+" } else { "0" };
    format!("{zero}|{plus}{zeros}{greatest}|-{zeros}{least}")
}

/// The unsigned integers of 64 bits; `any` as for [`int64`].
pub(super) fn uint64(any: bool) -> String {
    let (plus, zeros) = if any { (r"\+?", "0*") } else { ("", "") };
    let zero = if any { "[+-]?0+" } else { "0" };
    format!("{zero}|{plus}{zeros}{}", up_to("18446744073709551615"))
}
