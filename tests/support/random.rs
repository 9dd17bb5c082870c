//! Random regexes, made by a function `choose` that returns a number below its
//! argument. Choosing always 0 ends, so an exhausted source of choices is no problem.
#![allow(dead_code, reason = "each user takes what it needs")]

/// Returns a regex of at most `depth` levels.
pub(crate) fn regex(choose: &mut impl FnMut(usize) -> usize, depth: usize) -> String {
    const ATOMS: [&str; 14] =
        ["a", "b", "é", "ab", "[ab]", "[^a]", ".", r"\d", r"\w", r"\s", r"\b", "^", "$", r"\p{Lu}"];
    const REPEATS: [&str; 9] =
        ["*", "+", "?", "{2}", "{0,3}", "{2,}", "{1,40}", "{100,}", "{7,300}"];
    if depth == 0 {
        return ATOMS[choose(ATOMS.len())].to_owned();
    }
    match choose(6) {
        0 => regex(choose, 0),
        1 | 2 => regex(choose, depth - 1) + &regex(choose, depth - 1),
        3 => format!("(?:{}|{})", regex(choose, depth - 1), regex(choose, depth - 1)),
        4 => format!("(?i:{})", regex(choose, depth - 1)),
        _ => format!("(?:{}){}", regex(choose, depth - 1), REPEATS[choose(REPEATS.len())]),
    }
}
