//! An oracle for GBNF: grammars as plain trees, their text, and a naive recogniser over bytes.
//!
//! Nothing here is shared with the front end or the engine. The recogniser fills a table of where
//! each rule can end from each start, again and again until nothing changes, so it needs no care
//! about recursion, ambiguity or the empty text. Texts have at most 120 bytes.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each user takes what it needs; writing to a string cannot fail"
)]

use std::fmt::Write as _;

/// A grammar; rule 0 is `root`, rule `i` is `r<i>`.
#[derive(Clone, Debug)]
pub(crate) struct Grammar {
    /// The rules, each the alternatives of its body.
    pub(crate) rules: Vec<Choice>,
}

/// Alternatives.
pub(crate) type Choice = Vec<Vec<Item>>;

/// A part of a sequence.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    /// A literal.
    Literal(String),
    /// A class: negated or not, and its ranges.
    Class(bool, Vec<(char, char)>),
    /// `.`
    Any,
    /// The rule of this number.
    Rule(usize),
    /// A group.
    Group(Choice),
    /// A least and a greatest number of times.
    Repeat(Box<Item>, u32, Option<u32>),
}

/// What compiling a grammar must answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It has texts and no left recursion.
    Fine,
    /// `root` has no text.
    Unsatisfiable,
    /// A rule that `root` needs begins with itself.
    LeftRecursion,
}

/// The characters that random grammars and texts are made of.
pub(crate) const ALPHABET: [char; 6] = ['a', 'b', 'é', '"', '\n', '\\'];

impl Grammar {
    /// Returns a grammar made by `choose`, which returns a number below its argument.
    pub(crate) fn random(choose: &mut impl FnMut(usize) -> usize) -> Self {
        let rules = 1 + choose(4);
        Self { rules: (0..rules).map(|_| random_choice(choose, rules, 3)).collect() }
    }

    /// Returns the grammar as GBNF, in a layout made by `choose`.
    pub(crate) fn to_gbnf(&self, choose: &mut impl FnMut(usize) -> usize) -> String {
        let mut text = String::new();
        for (index, rule) in self.rules.iter().enumerate() {
            write_blank(choose, &mut text, true);
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&name(index));
            text.push_str([" ::= ", "::=", "\t::=\n  "][choose(3)]);
            write_choice(rule, choose, &mut text, false);
            text.push_str(["\n", "\r\n", " # end\n"][choose(3)]);
        }
        text
    }

    /// Returns what compiling the grammar must answer.
    pub(crate) fn verdict(&self) -> Verdict {
        let productive = self.productive();
        if !productive[0] {
            return Verdict::Unsatisfiable;
        }
        let nullable: Vec<_> = (0..self.rules.len()).map(|rule| self.matches(rule, b"")).collect();
        // `needs` is which rules each rule calls, `begins` which it may call before any character.
        let (mut needs, mut begins) = (Vec::new(), Vec::new());
        for rule in &self.rules {
            let mut called = (vec![false; self.rules.len()], vec![false; self.rules.len()]);
            collect_choice(rule, &productive, &nullable, true, &mut called);
            needs.push(called.0);
            begins.push(called.1);
        }
        let needs = closure(needs);
        let begins = closure(begins);
        let left = (0..self.rules.len()).any(|i| (i == 0 || needs[0][i]) && begins[i][i]);
        if left { Verdict::LeftRecursion } else { Verdict::Fine }
    }

    /// Returns whether `text` is one of the grammar's.
    pub(crate) fn accepts(&self, text: &[u8]) -> bool {
        self.matches(0, text)
    }

    /// Returns whether some text of the grammar begins with `prefix`.
    pub(crate) fn is_live(&self, prefix: &[u8]) -> bool {
        let table = self.table(prefix);
        let ends = table[0][0];
        ends.cut || ends.at >> prefix.len() & 1 == 1
    }

    fn matches(&self, rule: usize, text: &[u8]) -> bool {
        self.table(text)[rule][0].at >> text.len() & 1 == 1
    }

    /// By rule: has some text.
    fn productive(&self) -> Vec<bool> {
        let mut productive = vec![false; self.rules.len()];
        loop {
            let next: Vec<_> =
                self.rules.iter().map(|rule| choice_is_productive(rule, &productive)).collect();
            if next == productive {
                return productive;
            }
            productive = next;
        }
    }

    /// By rule and start: where it can end.
    fn table(&self, text: &[u8]) -> Vec<Vec<Ends>> {
        assert!(text.len() <= 120, "the table has 128 columns");
        let productive = self.productive();
        let mut table = vec![vec![Ends::default(); text.len() + 1]; self.rules.len()];
        loop {
            let run = Run { text, table: &table, productive: &productive };
            let next: Vec<Vec<_>> = self
                .rules
                .iter()
                .map(|rule| (0..=text.len()).map(|start| run.choice(rule, 1 << start)).collect())
                .collect();
            if next == table {
                return table;
            }
            table = next;
        }
    }
}

/// Where something can end: a bit for each position, and whether the text can end inside it.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Ends {
    at: u128,
    cut: bool,
}

struct Run<'a> {
    text: &'a [u8],
    table: &'a [Vec<Ends>],
    productive: &'a [bool],
}

impl Run<'_> {
    /// Returns where `choice` can end, from any of the positions of `starts`.
    fn choice(&self, choice: &Choice, starts: u128) -> Ends {
        let mut all = Ends::default();
        for sequence in choice {
            if !sequence.iter().all(|item| is_productive(item, self.productive)) {
                continue;
            }
            let mut here = Ends { at: starts, cut: false };
            for item in sequence {
                let next = self.item(item, here.at);
                here = Ends { at: next.at, cut: here.cut || next.cut };
            }
            all = Ends { at: all.at | here.at, cut: all.cut || here.cut };
        }
        all
    }

    fn item(&self, item: &Item, starts: u128) -> Ends {
        match item {
            Item::Group(choice) => self.choice(choice, starts),
            Item::Repeat(body, min, max) => self.repeat(body, *min, *max, starts),
            _ => {
                let mut all = Ends::default();
                for start in (0..=self.text.len()).filter(|start| starts >> start & 1 == 1) {
                    let ends = self.leaf(item, start);
                    all = Ends { at: all.at | ends.at, cut: all.cut || ends.cut };
                }
                all
            }
        }
    }

    fn leaf(&self, item: &Item, start: usize) -> Ends {
        let rest = &self.text[start..];
        match item {
            Item::Rule(rule) => self.table[*rule][start],
            Item::Literal(literal) => Ends {
                at: if rest.starts_with(literal.as_bytes()) {
                    1 << (start + literal.len())
                } else {
                    0
                },
                cut: rest.len() < literal.len() && literal.as_bytes().starts_with(rest),
            },
            Item::Any => one_char(rest, start, &|_, _| true),
            Item::Class(negated, ranges) => one_char(rest, start, &|low, high| {
                // A negated class has a character in low..=high unless the ranges cover it.
                if *negated {
                    (low..=high)
                        .any(|c| !ranges.iter().any(|&(a, b)| a as u32 <= c && c <= b as u32))
                } else {
                    ranges.iter().any(|&(a, b)| a as u32 <= high && low <= b as u32)
                }
            }),
            Item::Group(_) | Item::Repeat(..) => unreachable!("not a leaf"),
        }
    }

    fn repeat(&self, body: &Item, min: u32, max: Option<u32>, starts: u128) -> Ends {
        let mut all = Ends { at: if min == 0 { starts } else { 0 }, cut: false };
        if !is_productive(body, self.productive) {
            return all;
        }
        let mut here = starts;
        let mut seen = Vec::new();
        for round in 1..=max.unwrap_or(u32::MAX) {
            let next = self.item(body, here);
            all.cut |= next.cut;
            here = next.at;
            if round >= min {
                all.at |= here;
                if seen.contains(&here) {
                    break;
                }
                seen.push(here);
            }
        }
        all
    }
}

/// Matches one character at the start of `rest`; `has(low, high)` tells whether one of the characters
/// from `low` to `high` is wanted.
fn one_char(rest: &[u8], start: usize, has: &dyn Fn(u32, u32) -> bool) -> Ends {
    let Some(&lead) = rest.first() else { return Ends { at: 0, cut: has(0, 0x10_ffff) } };
    let (length, least) = match lead {
        0..0x80 => (1, 0),
        0xc0..0xe0 => (2, 0x80),
        0xe0..0xf0 => (3, 0x800),
        0xf0..0xf8 => (4, 0x1_0000),
        _ => return Ends::default(),
    };
    let given = &rest[..rest.len().min(length)];
    if given[1..].iter().any(|byte| byte & 0xc0 != 0x80) {
        return Ends::default();
    }
    let mut low = if length == 1 { u32::from(lead) } else { u32::from(lead) & (0x7f >> length) };
    for byte in &given[1..] {
        low = low << 6 | u32::from(byte & 0x3f);
    }
    let open = 6 * (length - given.len());
    let (low, high) = (low << open, ((low + 1) << open) - 1);
    let (low, high) = (low.max(least), high.min(0x10_ffff));
    let mut parts = vec![(low, high)];
    if low <= 0xdfff && high >= 0xd800 {
        parts = vec![(low, 0xd7ff), (0xe000, high)];
    }
    let wanted = parts.into_iter().any(|(low, high)| low <= high && has(low, high));
    if given.len() == length {
        Ends { at: u128::from(wanted) << (start + length), cut: false }
    } else {
        Ends { at: 0, cut: wanted }
    }
}

fn choice_is_productive(choice: &Choice, rules: &[bool]) -> bool {
    choice.iter().any(|sequence| sequence.iter().all(|item| is_productive(item, rules)))
}

fn is_productive(item: &Item, rules: &[bool]) -> bool {
    match item {
        Item::Literal(_) | Item::Class(..) | Item::Any => true,
        Item::Rule(rule) => rules[*rule],
        Item::Group(choice) => choice_is_productive(choice, rules),
        Item::Repeat(body, min, _) => *min == 0 || is_productive(body, rules),
    }
}

/// Notes the rules that `choice` calls, and those that it calls before any character; returns
/// whether it can be empty.
fn collect_choice(
    choice: &Choice,
    productive: &[bool],
    nullable: &[bool],
    first: bool,
    called: &mut (Vec<bool>, Vec<bool>),
) -> bool {
    let mut empty = false;
    for sequence in choice {
        if !sequence.iter().all(|item| is_productive(item, productive)) {
            continue;
        }
        let mut first_here = first;
        let mut empty_here = true;
        for item in sequence {
            let item_empty = collect_item(item, productive, nullable, first_here, called);
            first_here &= item_empty;
            empty_here &= item_empty;
        }
        empty |= empty_here;
    }
    empty
}

fn collect_item(
    item: &Item,
    productive: &[bool],
    nullable: &[bool],
    first: bool,
    called: &mut (Vec<bool>, Vec<bool>),
) -> bool {
    match item {
        Item::Literal(literal) => literal.is_empty(),
        Item::Class(..) | Item::Any => false,
        Item::Rule(rule) => {
            called.0[*rule] = true;
            called.1[*rule] |= first;
            nullable[*rule]
        }
        Item::Group(choice) => collect_choice(choice, productive, nullable, first, called),
        Item::Repeat(_, _, Some(0)) => true,
        Item::Repeat(body, min, _) => {
            is_productive(body, productive)
                && collect_item(body, productive, nullable, first, called)
                || *min == 0
        }
    }
}

fn closure(mut relation: Vec<Vec<bool>>) -> Vec<Vec<bool>> {
    let n = relation.len();
    for k in 0..n {
        for i in 0..n {
            for j in 0..n {
                relation[i][j] |= relation[i][k] && relation[k][j];
            }
        }
    }
    relation
}

fn random_choice(choose: &mut impl FnMut(usize) -> usize, rules: usize, depth: usize) -> Choice {
    let alternatives = [1, 1, 2, 3][choose(4)];
    (0..alternatives)
        .map(|_| {
            let items = [0, 1, 1, 2, 2, 3][choose(6)];
            (0..items).map(|_| random_item(choose, rules, depth)).collect()
        })
        .collect()
}

fn random_item(choose: &mut impl FnMut(usize) -> usize, rules: usize, depth: usize) -> Item {
    let kinds = if depth == 0 { 6 } else { 10 };
    match choose(kinds) {
        0..=1 => {
            let length = [0, 1, 1, 2, 3][choose(5)];
            Item::Literal((0..length).map(|_| ALPHABET[choose(ALPHABET.len())]).collect())
        }
        2 => {
            let ranges = (0..1 + choose(2)).map(|_| {
                let (a, b) = (ALPHABET[choose(ALPHABET.len())], ALPHABET[choose(ALPHABET.len())]);
                (a.min(b), a.max(b))
            });
            let ranges = ranges.collect();
            Item::Class(choose(3) == 0, ranges)
        }
        3 if choose(4) == 0 => Item::Any,
        3..=5 => Item::Rule(choose(rules)),
        6..=7 => Item::Group(random_choice(choose, rules, depth - 1)),
        _ => {
            let body = Box::new(random_item(choose, rules, depth - 1));
            let (min, max) = [
                (0, None),
                (0, None),
                (1, None),
                (0, Some(1)),
                (0, Some(0)),
                (1, Some(1)),
                (2, Some(2)),
                (2, Some(4)),
                (0, Some(3)),
                (2, None),
            ][choose(10)];
            Item::Repeat(body, min, max)
        }
    }
}

fn name(rule: usize) -> String {
    if rule == 0 { "root".to_owned() } else { format!("r{rule}") }
}

/// Writes what may stand between two terminals; newlines only if `lines`.
fn write_blank(choose: &mut impl FnMut(usize) -> usize, text: &mut String, lines: bool) {
    text.push_str(match choose(if lines { 7 } else { 4 }) {
        0..=2 => " ",
        3 => "\t ",
        4 => "\n ",
        5 => " # note | \"\n  ",
        _ => "\r\n  ",
    });
}

fn write_choice(
    choice: &Choice,
    choose: &mut impl FnMut(usize) -> usize,
    text: &mut String,
    nested: bool,
) {
    for (index, sequence) in choice.iter().enumerate() {
        if index > 0 {
            text.push('|');
            write_blank(choose, text, true);
        }
        for item in sequence {
            write_item(item, choose, text);
            write_blank(choose, text, nested);
        }
    }
}

fn write_item(item: &Item, choose: &mut impl FnMut(usize) -> usize, text: &mut String) {
    match item {
        Item::Literal(literal) => {
            text.push('"');
            literal.chars().for_each(|c| write_char(c, choose, text));
            text.push('"');
        }
        Item::Class(negated, ranges) => {
            text.push_str(if *negated { "[^" } else { "[" });
            for &(a, b) in ranges {
                write_char(a, choose, text);
                if a != b {
                    text.push('-');
                    write_char(b, choose, text);
                }
            }
            text.push(']');
        }
        Item::Any => text.push('.'),
        Item::Rule(rule) => text.push_str(&name(*rule)),
        Item::Group(choice) => {
            text.push('(');
            write_blank(choose, text, true);
            write_choice(choice, choose, text, true);
            text.push(')');
        }
        Item::Repeat(body, min, max) => {
            write_item(body, choose, text);
            match (min, max) {
                (0, None) => text.push('*'),
                (1, None) => text.push('+'),
                (0, Some(1)) => text.push('?'),
                (min, None) => write!(text, "{{{min},}}").unwrap(),
                (min, Some(max)) if min == max => write!(text, "{{{min}}}").unwrap(),
                (min, Some(max)) => write!(text, "{{{min},{max}}}").unwrap(),
            }
        }
    }
}

fn write_char(c: char, choose: &mut impl FnMut(usize) -> usize, text: &mut String) {
    let code = u32::from(c);
    match (c, choose(4)) {
        ('\n', _) => text.push_str("\\n"),
        (_, 0) if code < 0x100 => write!(text, "\\x{code:02X}").unwrap(),
        (_, 1) => write!(text, "\\u{code:04x}").unwrap(),
        (_, 2) => write!(text, "\\U{code:08X}").unwrap(),
        ('"' | '\\', _) => text.extend(['\\', c]),
        _ => text.push(c),
    }
}
