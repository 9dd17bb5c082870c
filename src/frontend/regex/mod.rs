//! Regular expressions in the dialect of `regex-syntax` to grammar.
//!
//! In goes the text of a regex with Unicode on, out comes a grammar of the UTF-8 texts that it
//! matches from their first to their last byte; the automaton is next. `regex-syntax` parses and
//! lowers to its HIR, whose nodes become a [`Tree`]. Laziness and captures do not change a language.
//! All assertions are exact (`^ $ \A \z \b \B`, their halves, multi-line, CRLF). Back-references and
//! look-around are no part of the dialect and refused by name. `(?-u)` is allowed as far as the regex
//! can match valid UTF-8 only, as in the `regex` crate; `regex-syntax` refuses the rest.

use regex_syntax::ast::{self, Ast};
use regex_syntax::hir::{self, Class, Hir, HirKind};

use crate::error::{Error, ErrorKind, Location, Span};
use crate::frontend::pattern::{Look, Mode, NodeId, Side, Tree, lower};
use crate::ir::chars::{CharSet, Encoding, char_set};
use crate::ir::{Grammar, UNBOUNDED};
use crate::limits::{Budget, BudgetExceeded, Limits};

/// How deep groups and classes may nest, whatever [`Limits::source_depth`] says: `regex-syntax`
/// compares sub-expressions recursively, and 1,000 levels of it need less than 1 MiB of stack.
const MAX_NESTING: u32 = 1_000;

/// Steps that a Unicode class costs: it has up to about that many ranges.
const CLASS_WORK: u64 = 1_000;

/// Returns the grammar of the texts that `pattern` matches from start to end.
///
/// ```
/// let grammar = schemac::frontend::regex::compile(r"\d{4}-\d\d", &schemac::Limits::default())?;
/// assert!(grammar.rules.is_empty());
/// # Ok::<(), schemac::Error>(())
/// ```
///
/// # Errors
///
/// [`ErrorKind::Syntax`] or [`ErrorKind::UnsupportedFeature`] with the place in `pattern`;
/// [`ErrorKind::BudgetExceeded`] when the regex is larger or deeper than `limits` allow.
pub fn compile(pattern: &str, limits: &Limits) -> Result<Grammar, Error> {
    if pattern.len() > limits.pattern_bytes {
        return Err(BudgetExceeded::new("pattern_bytes", limits.pattern_bytes as u64).into());
    }
    let hir = parse(pattern, limits)?;
    let converter = Converter { tree: Tree::default(), nodes: Vec::new(), word: None };
    let (tree, root) = hir::visit(&hir, converter).map_err(|error| error.at(whole(pattern)))?;
    let mut grammar = Grammar::new(limits.expressions);
    let start = lower(&mut grammar.arena, &tree, root, Mode::Whole, Encoding::Utf8, limits)
        .map_err(|error| error.at(whole(pattern)))?;
    grammar.start = start;
    Ok(grammar)
}

fn whole(pattern: &str) -> Location {
    Location::Text(Span::new(pattern, 0, pattern.len()))
}

fn parse(pattern: &str, limits: &Limits) -> Result<Hir, Error> {
    let nesting = u32::try_from(limits.source_depth).unwrap_or(u32::MAX).min(MAX_NESTING);
    let mut parser = ast::parse::ParserBuilder::new().nest_limit(nesting).build();
    let ast = parser.parse(pattern).map_err(|error| {
        let kind = match error.kind() {
            ast::ErrorKind::UnsupportedBackreference => unsupported("back-reference"),
            ast::ErrorKind::UnsupportedLookAround => unsupported("look-around"),
            ast::ErrorKind::NestLimitExceeded(limit) => {
                ErrorKind::BudgetExceeded(BudgetExceeded::new("source_depth", u64::from(*limit)))
            }
            _ => ErrorKind::Syntax,
        };
        located(pattern, kind, &error.kind().to_string(), error.span())
    })?;
    let work = Budget::new("compile_work", limits.compile_work);
    ast::visit(&ast, ClassCounter(work)).map_err(|error| Error::from(error).at(whole(pattern)))?;
    hir::translate::Translator::new().translate(pattern, &ast).map_err(|error| {
        located(pattern, ErrorKind::Syntax, &error.kind().to_string(), error.span())
    })
}

fn unsupported(feature: &str) -> ErrorKind {
    ErrorKind::UnsupportedFeature { feature: feature.into() }
}

fn located(pattern: &str, kind: ErrorKind, message: &str, span: &ast::Span) -> Error {
    let message = message.replace('\n', " ");
    Error::new(kind, message.trim_end_matches('.')).at(Location::Text(Span::new(
        pattern,
        span.start.offset,
        span.end.offset,
    )))
}

/// Bounds what translating takes: three bytes of a pattern can name a class of 800 ranges.
struct ClassCounter(Budget);

impl ast::Visitor for ClassCounter {
    type Output = ();
    type Err = BudgetExceeded;

    fn finish(self) -> Result<(), BudgetExceeded> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), BudgetExceeded> {
        self.0.spend(match ast {
            Ast::ClassUnicode(_) | Ast::ClassPerl(_) => CLASS_WORK,
            _ => 1,
        })
    }

    fn visit_class_set_item_pre(&mut self, item: &ast::ClassSetItem) -> Result<(), BudgetExceeded> {
        self.0.spend(match item {
            ast::ClassSetItem::Unicode(_) | ast::ClassSetItem::Perl(_) => CLASS_WORK,
            _ => 1,
        })
    }
}

/// Turns a HIR into a tree, children first.
struct Converter {
    tree: Tree,
    nodes: Vec<NodeId>,
    /// The Unicode word characters, once needed.
    word: Option<CharSet>,
}

impl hir::Visitor for Converter {
    type Output = (Tree, NodeId);
    type Err = Error;

    fn finish(mut self) -> Result<Self::Output, Error> {
        let root = self.nodes.pop().unwrap_or_else(|| self.tree.empty());
        Ok((self.tree, root))
    }

    fn visit_post(&mut self, hir: &Hir) -> Result<(), Error> {
        let node = match hir.kind() {
            HirKind::Empty => self.tree.empty(),
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).map_err(|_| not_utf8())?;
                let parts = text.chars().map(|c| self.tree.set(char_set(&[(c, c)]))).collect();
                self.tree.concat(parts)
            }
            HirKind::Class(Class::Unicode(set)) => self.tree.set(set.clone()),
            HirKind::Class(Class::Bytes(bytes)) => {
                self.tree.set(bytes.to_unicode_class().ok_or_else(not_utf8)?)
            }
            HirKind::Look(look) => {
                let look = self.look(*look)?;
                self.tree.look(look)
            }
            HirKind::Repetition(repetition) => {
                let Some(body) = self.nodes.pop() else { return Ok(()) };
                let max = repetition.max.unwrap_or(UNBOUNDED);
                self.tree.repeat(body, repetition.min, max)
            }
            HirKind::Capture(_) => return Ok(()),
            HirKind::Concat(parts) => {
                let parts = self.nodes.split_off(self.nodes.len().saturating_sub(parts.len()));
                self.tree.concat(parts)
            }
            HirKind::Alternation(parts) => {
                let parts = self.nodes.split_off(self.nodes.len().saturating_sub(parts.len()));
                self.tree.alt(parts)
            }
        };
        self.nodes.push(node);
        Ok(())
    }
}

fn not_utf8() -> Error {
    Error::new(
        unsupported("bytes that are not UTF-8"),
        "the regex can match text that is not UTF-8",
    )
}

impl Converter {
    /// Returns the two-sided condition of an assertion, as the documentation of [`hir::Look`] has it.
    fn look(&mut self, look: hir::Look) -> Result<Look, Error> {
        use hir::Look as L;
        let word = match look {
            L::WordUnicode
            | L::WordUnicodeNegate
            | L::WordStartUnicode
            | L::WordEndUnicode
            | L::WordStartHalfUnicode
            | L::WordEndHalfUnicode => self.unicode_word()?,
            _ => char_set(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]),
        };
        let inside = Side::of(word.clone());
        let outside = inside.complement();
        let one = |c: char| Side::of(char_set(&[(c, c)]));
        Ok(match look {
            L::Start => Look::before(Side::edge()),
            L::End => Look::after(Side::edge()),
            L::StartLF => Look::before(one('\n').union(&Side::edge())),
            L::EndLF => Look::after(one('\n').union(&Side::edge())),
            L::StartCRLF => Look::any_of([
                (one('\n').union(&Side::edge()), Side::any()),
                (one('\r'), one('\n').complement()),
            ]),
            L::EndCRLF => Look::any_of([
                (Side::any(), one('\r').union(&Side::edge())),
                (one('\r').complement(), one('\n')),
            ]),
            L::WordAscii | L::WordUnicode => Look::word_boundary(&word),
            L::WordAsciiNegate | L::WordUnicodeNegate => Look::no_word_boundary(&word),
            L::WordStartAscii | L::WordStartUnicode => Look::any_of([(outside, inside)]),
            L::WordEndAscii | L::WordEndUnicode => Look::any_of([(inside, outside)]),
            L::WordStartHalfAscii | L::WordStartHalfUnicode => Look::before(outside),
            L::WordEndHalfAscii | L::WordEndHalfUnicode => Look::after(outside),
        })
    }

    fn unicode_word(&mut self) -> Result<CharSet, Error> {
        if let Some(word) = &self.word {
            return Ok(word.clone());
        }
        let hir = parse(r"\w", &Limits::default())?;
        let HirKind::Class(Class::Unicode(word)) = hir.into_kind() else { return Err(not_utf8()) };
        self.word = Some(word.clone());
        Ok(word)
    }
}

#[cfg(test)]
mod tests;
