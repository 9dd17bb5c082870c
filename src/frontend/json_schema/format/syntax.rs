//! Regular expressions of ECMA-262 with the flag `u`, which are valid without it, too.
//!
//! Their grammar is not regular: groups nest, group names differ, ends of ranges and quantifiers are in
//! order. The language here is a part of it that is: see the table of [`super`].

use std::fmt::Write;

use crate::error::Error;
use crate::frontend::json_schema::format::Builder;
use crate::ids::ExprId;
use crate::ir::Arena;

/// So deep groups and assertions nest.
const DEPTH: usize = 8;
/// The least number of copies is below this where there is a greatest, too.
const COPIES: u32 = 100;

/// `CharacterClassEscape`, and the escapes of characters that are the same inside and outside of a class.
const ESCAPE: &str = r"\\(?:[dDsSwWfnrtv]|c[A-Za-z]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|u\{0*(?:[0-9A-Fa-f]{1,5}|10[0-9A-Fa-f]{4})\}|[pP]\{(?:L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|C[cfsno]?)\}|[\^$\\.*+?()[\]{}|/])";

/// `Quantifier`.
fn quantifier() -> String {
    let mut pattern = r"(?:[*+?]|\{\d+,?\}".to_owned();
    for least in 0..COPIES {
        // Writing to a string cannot fail.
        let (tens, ones) = (least / 10, least % 10);
        let _ = write!(pattern, r"|\{{{least},(?:");
        if tens == 0 {
            let _ = write!(pattern, r"[{ones}-9]|[1-9]\d");
        } else {
            let _ = write!(pattern, r"{tens}[{ones}-9]");
            if tens < 9 {
                let _ = write!(pattern, r"|[{}-9]\d", tens + 1);
            }
        }
        pattern.push_str(r"|[1-9]\d{2,})\}");
    }
    pattern + r")\??"
}

/// `CharacterClass`: a hyphen stands for itself only at an end.
fn class() -> String {
    let mut range = String::new();
    let plain = |c: &char| !['\\', ']', '[', '-', '^'].contains(c);
    for first in ('!'..='~').filter(plain) {
        let _ = write!(range, "|{}-[", escaped(first));
        for last in (first..='~').filter(plain) {
            range.push_str(&escaped(last));
        }
        range.push(']');
    }
    format!(r"\[\^?-?(?:[^\\\]\-]|\\[b\-]|{ESCAPE}{range})*-?\]")
}

/// Returns a character as a pattern, inside or outside of a class.
fn escaped(c: char) -> String {
    if c.is_ascii_alphanumeric() { c.to_string() } else { format!(r"\x{:02x}", u32::from(c)) }
}

impl Builder<'_> {
    /// `Pattern`.
    pub(super) fn regex(&mut self) -> Result<ExprId, Error> {
        let class = class();
        let unit = self.pattern(&format!(r"[^\^$\\*+?()[\]{{}}|]|{ESCAPE}|{class}"))?;
        let quantifier = self.pattern(&quantifier())?;
        let quantifier = self.arena.optional(quantifier);
        let simple = self.pattern(r"[\^$]|\\[bB]")?;
        let group = self.pattern(r"\((?:\?:)?")?;
        let assertion = self.pattern(r"\(\?<?[=!]")?;
        let close = self.pattern(r"\)")?;
        let bar = self.pattern(r"\|")?;
        let mut inner = Arena::EMPTY;
        for _ in 0..=DEPTH {
            let group = self.arena.concat(&[group, inner, close]);
            let atom = self.arena.alt2(unit, group);
            let atom = self.arena.concat2(atom, quantifier);
            let assertion = self.arena.concat(&[assertion, inner, close]);
            let term = self.arena.alt(&[atom, simple, assertion, bar]);
            inner = self.arena.star(term);
        }
        Ok(inner)
    }
}
