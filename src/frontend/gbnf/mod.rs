//! GBNF, the grammar notation of llama.cpp, to [`Grammar`]; the automaton comes next.
//!
//! The notation is that of llama.cpp's grammar guide (`grammars/README.md` there): rules
//! `name ::= …`, literals and character classes with escapes, `.`, groups, `|`, `* + ? {m,n}`,
//! comments. What is read beyond the guide has only one meaning: `{,n}` is `{0,n}`, a backslash
//! before any ASCII punctuation mark stands for that mark, and a rule goes on over lines until the
//! next `name ::=` at the start of a line. References to tokens and left recursion are refused.
//!
//! Nothing is guessed: the texts of the result are exactly those of the grammar, in UTF-8. Parts
//! that no finite text uses are dropped, which changes no text.

mod analysis;
mod lexer;
mod lower;
mod parser;

use crate::error::{Error, ErrorKind};
use crate::ir::Grammar;
use crate::limits::{Budget, BudgetExceeded, Limits};

/// The rule that a whole output must match unless another is chosen.
pub const START: &str = "root";

/// Returns the grammar of a GBNF text, starting at its rule [`START`].
///
/// ```
/// let text = r#"
/// root ::= "[" (item ("," item)*)? "]"
/// item ::= [0-9]+ | root
/// "#;
/// let grammar = schemac::frontend::gbnf::compile(text, &schemac::Limits::default())?;
/// assert_eq!(&*grammar.rules[0].name, "root");
/// # Ok::<(), schemac::Error>(())
/// ```
///
/// # Errors
///
/// All but budgets stand at a place in the text:
/// - `Syntax`: the text is not GBNF, or a rule is defined twice.
/// - `UnresolvedReference`: a rule is used, or the start rule asked for, and not defined.
/// - `UnsupportedFeature`: a token reference, `<name>`.
/// - `LeftRecursion`: a rule that the start rule needs calls itself before any character.
/// - `Unsatisfiable`: no finite text matches the start rule.
/// - `BudgetExceeded`: `source_bytes`, `source_depth`, `expressions` or `compile_work`.
pub fn compile(text: &str, limits: &Limits) -> Result<Grammar, Error> {
    compile_from(text, START, limits)
}

/// Returns the grammar of a GBNF text, starting at its rule `start`.
///
/// # Errors
///
/// As [`compile`].
pub fn compile_from(text: &str, start: &str, limits: &Limits) -> Result<Grammar, Error> {
    if text.len() > limits.source_bytes {
        let budget = BudgetExceeded::new("source_bytes", limits.source_bytes as u64);
        return Err(Error::budget(budget));
    }
    let mut grammar = Grammar::new(limits.expressions);
    let mut budget = Budget::new("compile_work", limits.compile_work);
    let syntax = parser::parse(text, &mut grammar.arena, limits)?;
    grammar.arena.check()?;
    let Some(start) = syntax.find(start) else {
        let message = format!("the start rule `{start}` is not defined");
        return Err(Error::new(ErrorKind::UnresolvedReference, message)
            .at(lexer::place(text, text.len()..text.len())));
    };
    let facts = analysis::analyse(&syntax, &grammar.arena, start)?;
    lower::lower(&syntax, &facts, start, &mut grammar, &mut budget)?;
    grammar.arena.check()?;
    Ok(grammar)
}

#[cfg(test)]
mod tests;
