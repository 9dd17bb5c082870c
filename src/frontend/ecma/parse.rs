//! The parser: text to tree, with a stack of open groups instead of recursion.

use crate::error::{Error, ErrorKind, Location, Span};
use crate::frontend::ecma::escape::{Escape, code_points, complement, dot, escape};
use crate::frontend::pattern::{Look, NodeId, Side, Tree};
use crate::ir::UNBOUNDED;
use crate::ir::chars::CharSet;
use crate::limits::{Budget, BudgetExceeded, Limits};

/// A place in a pattern.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Moves on by `bytes`, which must end at a character.
    pub(super) const fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Moves past `prefix` if it comes next.
    fn eat(&mut self, prefix: &str) -> bool {
        let found = self.rest().starts_with(prefix);
        if found {
            self.at += prefix.len();
        }
        found
    }

    /// Returns the error for what stands from `start` to here.
    pub(super) fn error(&self, start: usize, kind: ErrorKind, message: &str) -> Error {
        Error::new(kind, message).at(Location::Text(Span::new(self.text, start, self.at)))
    }

    pub(super) fn syntax(&self, start: usize, message: &str) -> Error {
        self.error(start, ErrorKind::Syntax, message)
    }

    pub(super) fn unsupported(&self, start: usize, feature: &str, message: &str) -> Error {
        self.error(start, ErrorKind::UnsupportedFeature { feature: feature.into() }, message)
    }
}

/// What a group is.
#[derive(Clone, Copy, Debug)]
enum Group {
    Plain,
    Around { ahead: bool, negated: bool },
}

/// A group that is not closed, or the whole pattern.
#[derive(Debug)]
struct Open {
    group: Group,
    start: usize,
    alternatives: Vec<NodeId>,
    sequence: Vec<NodeId>,
    /// Whether the last of the sequence may take a quantifier.
    quantifiable: bool,
}

impl Open {
    const fn new(group: Group, start: usize) -> Self {
        Self { group, start, alternatives: Vec::new(), sequence: Vec::new(), quantifiable: false }
    }

    fn push(&mut self, node: NodeId, quantifiable: bool) {
        self.sequence.push(node);
        self.quantifiable = quantifiable;
    }

    fn end_alternative(&mut self, tree: &mut Tree) {
        let node = tree.concat(std::mem::take(&mut self.sequence));
        self.alternatives.push(node);
        self.quantifiable = false;
    }
}

/// Returns the tree of the pattern `text`.
pub(super) fn parse(text: &str, limits: &Limits) -> Result<(Tree, NodeId), Error> {
    if text.len() > limits.pattern_bytes {
        return Err(BudgetExceeded::new("pattern_bytes", limits.pattern_bytes as u64).into());
    }
    Parser {
        cursor: Cursor { text, at: 0 },
        tree: Tree::default(),
        groups: Vec::new(),
        max_depth: limits.source_depth,
        work: Budget::new("compile_work", limits.compile_work),
    }
    .pattern()
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    tree: Tree,
    /// The groups around the current one.
    groups: Vec<Open>,
    max_depth: usize,
    work: Budget,
}

impl Parser<'_> {
    fn pattern(mut self) -> Result<(Tree, NodeId), Error> {
        let mut open = Open::new(Group::Plain, 0);
        loop {
            let start = self.cursor.at;
            let Some(c) = self.cursor.next() else { break };
            match c {
                '|' => open.end_alternative(&mut self.tree),
                '(' => {
                    let group = self.group(start)?;
                    if self.groups.len() >= self.max_depth {
                        return Err(
                            BudgetExceeded::new("source_depth", self.max_depth as u64).into()
                        );
                    }
                    self.groups.push(std::mem::replace(&mut open, Open::new(group, start)));
                }
                ')' => {
                    let Some(outer) = self.groups.pop() else {
                        return Err(self.cursor.syntax(start, "`)` without `(` before it"));
                    };
                    let inner = std::mem::replace(&mut open, outer);
                    let (node, quantifiable) = self.close(inner);
                    open.push(node, quantifiable);
                }
                '^' => {
                    let node = self.tree.look(Look::before(Side::edge()));
                    open.push(node, false);
                }
                '$' => {
                    let node = self.tree.look(Look::after(Side::edge()));
                    open.push(node, false);
                }
                '*' => self.quantify(&mut open, start, (0, UNBOUNDED))?,
                '+' => self.quantify(&mut open, start, (1, UNBOUNDED))?,
                '?' => self.quantify(&mut open, start, (0, 1))?,
                '{' => match self.braces(start)? {
                    Some(bounds) => self.quantify(&mut open, start, bounds)?,
                    None => self.set(&mut open, code_points('{'.into(), '{'.into()))?,
                },
                '.' => self.set(&mut open, dot())?,
                '[' => {
                    let set = self.class(start)?;
                    self.set(&mut open, set)?;
                }
                '\\' => match escape(&mut self.cursor, start, false)? {
                    Escape::Code(code) => self.set(&mut open, code_points(code, code))?,
                    Escape::Set(set) => self.set(&mut open, set)?,
                    Escape::Look(look) => {
                        let node = self.tree.look(look);
                        open.push(node, false);
                    }
                },
                c => self.set(&mut open, code_points(c.into(), c.into()))?,
            }
        }
        if !self.groups.is_empty() {
            return Err(self.cursor.syntax(open.start, "a group that is not closed"));
        }
        let (root, _) = self.close(open);
        Ok((self.tree, root))
    }

    /// Charges for the ranges of a set: a few characters of a pattern can name a thousand.
    fn set(&mut self, open: &mut Open, set: CharSet) -> Result<(), Error> {
        self.work.spend(4 + 8 * set.ranges().len() as u64)?;
        let node = self.tree.set(set);
        open.push(node, true);
        Ok(())
    }

    /// Reads what follows `(`.
    fn group(&mut self, start: usize) -> Result<Group, Error> {
        let cursor = &mut self.cursor;
        if !cursor.eat("?") || cursor.eat(":") {
            return Ok(Group::Plain);
        }
        for (prefix, ahead, negated) in
            [("=", true, false), ("!", true, true), ("<=", false, false), ("<!", false, true)]
        {
            if cursor.eat(prefix) {
                return Ok(Group::Around { ahead, negated });
            }
        }
        if cursor.eat("<") {
            let name = cursor.rest().split('>').next().unwrap_or_default();
            let letter = |c: char| c.is_alphabetic() || matches!(c, '$' | '_');
            let valid =
                name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_numeric());
            if !valid || name.len() == cursor.rest().len() {
                return Err(
                    cursor.syntax(start, "the name of a group is no identifier followed by `>`")
                );
            }
            cursor.skip(name.len() + 1);
            return Ok(Group::Plain);
        }
        let feature = match cursor.next() {
            Some('P') => "(?P…) group",
            Some('#') => "(?#…) comment",
            Some('>') => "atomic group",
            Some('|') => "branch reset group",
            Some('-' | 'a'..='z') => "inline modifiers",
            _ => return Err(cursor.syntax(start, "`(?` begins no group of ECMA-262")),
        };
        let message = format!("{feature}: not a group of ECMA-262 patterns without flags");
        Err(cursor.unsupported(start, feature, &message))
    }

    /// Makes the node of a group; tells whether a quantifier may follow.
    fn close(&mut self, mut open: Open) -> (NodeId, bool) {
        open.end_alternative(&mut self.tree);
        let body = self.tree.alt(open.alternatives);
        match open.group {
            Group::Plain => (body, true),
            // Annex B lets a quantifier follow a look-ahead, but not a look-behind.
            Group::Around { ahead, negated } => (self.tree.around(ahead, negated, body), ahead),
        }
    }

    fn quantify(
        &mut self,
        open: &mut Open,
        start: usize,
        (min, max): (u32, u32),
    ) -> Result<(), Error> {
        // Laziness chooses among matches; it does not change whether there is one.
        self.cursor.eat("?");
        let Some(body) = open.sequence.pop().filter(|_| open.quantifiable) else {
            return Err(self.cursor.syntax(start, "a quantifier without anything to repeat"));
        };
        if min > max {
            return Err(self
                .cursor
                .syntax(start, "a quantifier whose minimum is above its maximum"));
        }
        let node = self.tree.repeat(body, min, max);
        open.push(node, false);
        Ok(())
    }

    /// Reads the bounds after `{`; `None` (and nothing read) if it is a literal brace.
    fn braces(&mut self, start: usize) -> Result<Option<(u32, u32)>, Error> {
        // Only what can belong to a quantifier is looked at, so that many braces take linear time.
        let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
        let rest = self.cursor.rest();
        let (min, after) = rest.split_at(digits(rest));
        let (max, after) = match after.strip_prefix(',') {
            Some(after) => {
                let (max, after) = after.split_at(digits(after));
                (Some(max), after)
            }
            None => (None, after),
        };
        if !after.starts_with('}') || (min.is_empty() && max.is_none_or(str::is_empty)) {
            return Ok(None);
        }
        self.cursor.skip(rest.len() - after.len() + 1);
        if min.is_empty() {
            let message = "`{,n}` is a quantifier in other dialects only; write `{0,n}`";
            return Err(self.cursor.syntax(start, message));
        }
        let count = |digits: &str| digits.parse::<u32>().ok().filter(|&n| n != UNBOUNDED);
        let bounds = match max {
            None => count(min).map(|n| (n, n)),
            Some("") => count(min).map(|n| (n, UNBOUNDED)),
            Some(max) => count(min).zip(count(max)),
        };
        match bounds {
            Some(bounds) => Ok(Some(bounds)),
            None => {
                let message = "a quantifier above 4,294,967,294";
                Err(self.cursor.unsupported(start, message, message))
            }
        }
    }

    /// Reads a class, of which the bracket (at `start`) has been read.
    fn class(&mut self, start: usize) -> Result<CharSet, Error> {
        let negated = self.cursor.eat("^");
        let mut ranges = Vec::new();
        loop {
            let from = self.cursor.at;
            let Some(first) = self.class_atom(start)? else { break };
            self.work.spend(1)?;
            let before = self.cursor;
            let dash = self.cursor.eat("-") && self.cursor.peek().is_some_and(|c| c != ']');
            if !dash {
                self.cursor = before;
                self.add(&mut ranges, first)?;
                continue;
            }
            let Some(last) = self.class_atom(start)? else { break };
            match (first, last) {
                (Escape::Code(first), Escape::Code(last)) if first <= last => {
                    ranges.extend(code_points(first, last).iter());
                }
                (Escape::Code(_), Escape::Code(_)) => {
                    return Err(self.cursor.syntax(from, "a range of a class that runs backwards"));
                }
                (first, last) => {
                    // Annex B: a class escape is no end of a range, so the dash is literal.
                    self.add(&mut ranges, first)?;
                    ranges.extend(code_points('-'.into(), '-'.into()).iter());
                    self.add(&mut ranges, last)?;
                }
            }
        }
        let set = CharSet::new(ranges);
        Ok(if negated { complement(set) } else { set })
    }

    fn add(
        &mut self,
        ranges: &mut Vec<crate::ir::chars::CharRange>,
        atom: Escape,
    ) -> Result<(), Error> {
        match atom {
            Escape::Code(code) => ranges.extend(code_points(code, code).iter()),
            Escape::Set(set) => {
                self.work.spend(8 * set.ranges().len() as u64)?;
                ranges.extend(set.iter());
            }
            Escape::Look(_) => {}
        }
        Ok(())
    }

    /// Reads one member of the class at `start`, or the bracket that closes it.
    fn class_atom(&mut self, start: usize) -> Result<Option<Escape>, Error> {
        let from = self.cursor.at;
        match self.cursor.next() {
            Some(']') => Ok(None),
            Some('\\') => escape(&mut self.cursor, from, true).map(Some),
            Some(c) => Ok(Some(Escape::Code(c.into()))),
            None => Err(self.cursor.syntax(start, "a class that is not closed")),
        }
    }
}
