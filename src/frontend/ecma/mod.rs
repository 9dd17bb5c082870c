//! ECMA-262 patterns (JSON Schema `pattern`, `patternProperties`) to expressions.
//!
//! In goes the text of a pattern, out comes a [`Pattern`], and from it the language of the texts in
//! which it matches somewhere, in any [`Encoding`]. Every part is translated exactly or refused by a
//! typed error with its place.
//!
//! The meaning is that of ECMA-262 (2025, section 22.2) with the `u` flag and no other, as JSON Schema
//! 2020-12 (core, 6.4) recommends: characters are code points, `\d` and `\w` are ASCII, `\s` has
//! U+FEFF and all of category Zs, `.` leaves out four line terminators, `^` and `$` are the ends of
//! the text. Beyond the `u` flag, these forms of Annex B are taken because schemas are full of them
//! and mean one thing only: `\` before any character that is no ASCII letter or digit (`\-`, `\_`,
//! `\@`), a literal `]`, `{` or `}`, a class escape beside `-` in a class (`[\w-.]`), a quantified
//! look-ahead. Forms that other dialects read otherwise stay errors: `\` before a letter without
//! meaning (`\A`, `\Z`), octal escapes, `{,n}`, `(?i)`, `(?P<n>…)`. Unicode properties are those of
//! `regex-syntax`, whose loose spelling of names is accepted. Back-references are refused: they are
//! not regular. A text is a sequence of Unicode scalar values, so a lone surrogate matches nothing.

mod escape;
mod parse;
mod property;

use crate::error::Error;
use crate::frontend::pattern::{Mode, Node, NodeId, Tree, lower};
use crate::ids::ExprId;
use crate::ir::Arena;
use crate::ir::chars::Encoding;
use crate::limits::Limits;

/// A parsed pattern.
///
/// ```
/// use schemac::frontend::ecma::Pattern;
/// use schemac::ir::{Arena, chars::Encoding};
///
/// let limits = schemac::Limits::default();
/// let pattern = Pattern::parse(r"^x-(?!\d)", &limits)?;
/// let mut arena = Arena::default();
/// let language = pattern.to_expr(&mut arena, Encoding::Utf8, &limits)?;
/// assert!(arena.facts(language).regular);
/// # Ok::<(), schemac::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pattern {
    tree: Tree,
    root: NodeId,
}

impl Pattern {
    /// Parses `text`.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Syntax`] or [`crate::ErrorKind::UnsupportedFeature`], with the place in
    /// `text`; [`crate::ErrorKind::BudgetExceeded`] if it is longer or deeper than `limits` allow.
    pub fn parse(text: &str, limits: &Limits) -> Result<Self, Error> {
        let (tree, root) = parse::parse(text, limits)?;
        Ok(Self { tree, root })
    }

    /// Returns the language of all texts in which the pattern matches somewhere, spelled in `encoding`
    /// (for JSON: without the quotes). It is a subset of [`crate::ir::chars::any_text`].
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::BudgetExceeded`] if the language takes more work or expressions than
    /// `limits` allow, [`crate::ErrorKind::UnsupportedFeature`] if look-around nests too deep.
    pub fn to_expr(
        &self,
        arena: &mut Arena,
        encoding: Encoding,
        limits: &Limits,
    ) -> Result<ExprId, Error> {
        lower(arena, &self.tree, self.root, Mode::Search, encoding, limits)
    }

    /// Returns the language of the texts that the pattern matches from start to end.
    ///
    /// # Errors
    ///
    /// As [`Pattern::to_expr`].
    pub fn to_whole_expr(
        &self,
        arena: &mut Arena,
        encoding: Encoding,
        limits: &Limits,
    ) -> Result<ExprId, Error> {
        lower(arena, &self.tree, self.root, Mode::Whole, encoding, limits)
    }

    /// Returns the only text in which the pattern matches, if it is as plain as `^abc$`.
    #[must_use]
    pub fn exact_text(&self) -> Option<String> {
        let (literal, anchored) = self.literal_after_start()?;
        anchored.then_some(literal)
    }

    /// Returns the text with which exactly the matching texts begin, if the pattern is as plain as
    /// `^x-`.
    #[must_use]
    pub fn exact_prefix(&self) -> Option<String> {
        let (literal, anchored) = self.literal_after_start()?;
        (!anchored).then_some(literal)
    }

    /// The literal of `^literal` or `^literal$`, and whether it has the `$`.
    fn literal_after_start(&self) -> Option<(String, bool)> {
        let is_start = |id| self.is_look(id, false);
        let parts = match self.tree.node(self.root) {
            Node::Look(_) if is_start(self.root) => return Some((String::new(), false)),
            Node::Concat(parts) => parts,
            _ => return None,
        };
        let (&start, parts) = parts.split_first()?;
        if !is_start(start) {
            return None;
        }
        let (parts, anchored) = match parts.split_last() {
            Some((&end, parts)) if self.is_look(end, true) => (parts, true),
            _ => (parts, false),
        };
        let literals: Option<Vec<_>> = parts.iter().map(|&part| self.tree.literal(part)).collect();
        Some((literals?.concat(), anchored))
    }

    /// Returns whether `id` asserts exactly the start, or the end, of the text.
    fn is_look(&self, id: NodeId, end: bool) -> bool {
        let Node::Look(look) = self.tree.node(id) else { return false };
        let [(before, after)] = &look.cases[..] else { return false };
        let (edge, any) = if end { (after, before) } else { (before, after) };
        any.is_any() && edge.edge && edge.set.ranges().is_empty()
    }

    /// Returns whether a match can only be the whole text: the pattern begins with `^` and ends with
    /// `$`, in each of its alternatives.
    #[must_use]
    pub fn is_anchored(&self) -> bool {
        let whole = |id: NodeId| match self.tree.node(id) {
            Node::Concat(parts) => {
                parts.first().is_some_and(|&id| self.is_look(id, false))
                    && parts.last().is_some_and(|&id| self.is_look(id, true))
            }
            _ => false,
        };
        match self.tree.node(self.root) {
            Node::Alt(parts) => parts.iter().all(|&part| whole(part)),
            _ => whole(self.root),
        }
    }
}

#[cfg(test)]
mod tests;
