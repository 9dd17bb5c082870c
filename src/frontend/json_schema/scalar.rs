//! Strings and numbers: a formula about one in, the regular language of its spellings out.

use super::formula::{Atom, AtomId, Formula, FormulaId, Formulas};
use super::names::NameId;
use super::number::{self, NumberConstraint};
use super::schema::PatternId;
use crate::error::Error;
use crate::frontend::ecma;
use crate::frontend::json_schema::format::{self, Side};
use crate::ids::ExprId;
use crate::ir::chars::{self, Encoding};
use crate::ir::{Arena, UNBOUNDED};

use hashbrown::HashMap;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Above this many refused strings, the string is spelled canonically instead of refusing every
/// spelling of each.
const MAX_RESPELLED: usize = 64;

/// More alternatives than this of bounds and multiples are not told apart.
const MAX_ALTERNATIVES: usize = 256;

/// The languages made so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Languages {
    strings: Map<(FormulaId, Encoding), ExprId>,
    numbers: Map<FormulaId, ExprId>,
    patterns: Map<(PatternId, Encoding), ExprId>,
    formats: Map<(NameId, Side, Encoding), ExprId>,
    characters: Map<Encoding, ExprId>,
}

impl Languages {
    /// Returns any one character.
    fn character(&mut self, arena: &mut Arena, encoding: Encoding) -> ExprId {
        *self
            .characters
            .entry(encoding)
            .or_insert_with(|| chars::char_class(arena, &chars::all_chars(), encoding))
    }

    /// Returns all strings, without quotes.
    pub(super) fn any_string(&mut self, arena: &mut Arena, encoding: Encoding) -> ExprId {
        let any = self.character(arena, encoding);
        arena.star(any)
    }

    /// Returns the strings that satisfy `formula`, without quotes.
    pub(super) fn string(
        &mut self,
        formulas: &mut Formulas,
        arena: &mut Arena,
        formula: FormulaId,
        encoding: Encoding,
    ) -> Result<ExprId, Error> {
        if let Some(&known) = self.strings.get(&(formula, encoding)) {
            return Ok(known);
        }
        let root = formulas.spelled_out(formula)?;
        for id in formulas.parts_of(root) {
            if self.strings.contains_key(&(id, encoding)) {
                continue;
            }
            let expr = match formulas.get(id).clone() {
                Formula::False | Formula::One { .. } => Arena::EMPTY,
                Formula::Or(parts) => {
                    let parts = self.known_strings(&parts, encoding);
                    arena.alt(&parts)
                }
                Formula::True => self.any_string(arena, encoding),
                Formula::Literal { .. } => {
                    self.string_conjunction(formulas, arena, &[id], encoding)?
                }
                Formula::And(parts) => {
                    self.string_conjunction(formulas, arena, &parts, encoding)?
                }
            };
            arena.check()?;
            self.strings.insert((id, encoding), expr);
        }
        let expr = self.strings.get(&(root, encoding)).copied().unwrap_or(Arena::EMPTY);
        self.strings.insert((formula, encoding), expr);
        Ok(expr)
    }

    fn known_strings(&self, parts: &[FormulaId], encoding: Encoding) -> Vec<ExprId> {
        parts.iter().filter_map(|&p| self.strings.get(&(p, encoding))).copied().collect()
    }

    fn string_conjunction(
        &mut self,
        formulas: &Formulas,
        arena: &mut Arena,
        parts: &[FormulaId],
        encoding: Encoding,
    ) -> Result<ExprId, Error> {
        let mut all = Vec::with_capacity(parts.len() + 1);
        // A complement is within the texts only beside something that is.
        let mut within_text = false;
        for &part in parts {
            let &Formula::Literal { atom, positive } = formulas.get(part) else {
                all.extend(self.known_strings(&[part], encoding));
                within_text = true;
                continue;
            };
            // Not at least, and not at most, are lengths as well.
            let (atom, positive) = match (formulas.atom(atom), positive) {
                (&Atom::Length(min @ 1.., UNBOUNDED), false) => (&Atom::Length(0, min - 1), true),
                (&Atom::Length(0, max), false) if max < UNBOUNDED => {
                    (&Atom::Length(max + 1, UNBOUNDED), true)
                }
                (atom, positive) => (atom, positive),
            };
            let expr = match *atom {
                Atom::Length(min, max) => {
                    let any = self.character(arena, encoding);
                    arena.repeat(any, min, max)
                }
                Atom::Pattern(id) => self.pattern(formulas, arena, id, encoding)?,
                Atom::Format(name) => {
                    let side = if positive { Side::Within } else { Side::Around };
                    self.format(formulas, arena, (name, side, encoding))?
                }
                Atom::Strings(list) => {
                    let list = formulas.list(list);
                    if !positive && list.len() > MAX_RESPELLED {
                        all.push(self.any_string(arena, Encoding::JsonCanonical));
                        within_text = true;
                    }
                    strings_of(formulas, arena, list, positive, encoding)
                }
                _ => Arena::ALL,
            };
            within_text |= positive;
            all.push(if positive { expr } else { arena.not(expr) });
        }
        if !within_text {
            all.push(self.any_string(arena, encoding));
        }
        Ok(arena.and(&all))
    }

    fn format(
        &mut self,
        formulas: &Formulas,
        arena: &mut Arena,
        key: (NameId, Side, Encoding),
    ) -> Result<ExprId, Error> {
        if let Some(&known) = self.formats.get(&key) {
            return Ok(known);
        }
        let (name, side, encoding) = key;
        let text = formulas.program.document.names.get(name);
        let expr = format::format(arena, text, side, encoding)?.unwrap_or(Arena::ALL);
        self.formats.insert(key, expr);
        Ok(expr)
    }

    /// Returns the strings that match a pattern, without quotes.
    pub(super) fn pattern(
        &mut self,
        formulas: &Formulas,
        arena: &mut Arena,
        id: PatternId,
        encoding: Encoding,
    ) -> Result<ExprId, Error> {
        if let Some(&known) = self.patterns.get(&(id, encoding)) {
            return Ok(known);
        }
        let program = &formulas.program;
        let pattern = &program.schemas.patterns[id.index()];
        let text = program.document.names.get(pattern.text);
        let expr = ecma::Pattern::parse(text, &program.limits)
            .and_then(|parsed| parsed.to_expr(arena, encoding, &program.limits))
            .map_err(|error| error.at_pointer(program.document.pointer(pattern.value)))?;
        self.patterns.insert((id, encoding), expr);
        Ok(expr)
    }

    /// Returns the numbers that satisfy `formula`.
    pub(super) fn number(
        &mut self,
        formulas: &mut Formulas,
        arena: &mut Arena,
        formula: FormulaId,
    ) -> Result<ExprId, Error> {
        if let Some(&known) = self.numbers.get(&formula) {
            return Ok(known);
        }
        let root = formulas.spelled_out(formula)?;
        let root = formulas.multiples_apart(root)?;
        for id in formulas.parts_of(root) {
            if self.numbers.contains_key(&id) {
                continue;
            }
            let expr = match formulas.get(id).clone() {
                Formula::False | Formula::One { .. } => Arena::EMPTY,
                Formula::Or(parts) => {
                    let parts: Vec<_> =
                        parts.iter().filter_map(|p| self.numbers.get(p)).copied().collect();
                    arena.alt(&parts)
                }
                Formula::True => number::any_number(arena),
                Formula::Literal { .. } => self.number_conjunction(formulas, arena, &[id])?,
                Formula::And(parts) => self.number_conjunction(formulas, arena, &parts)?,
            };
            arena.check()?;
            self.numbers.insert(id, expr);
        }
        let expr = self.numbers.get(&root).copied().unwrap_or(Arena::EMPTY);
        self.numbers.insert(formula, expr);
        Ok(expr)
    }

    fn number_conjunction(
        &mut self,
        formulas: &Formulas,
        arena: &mut Arena,
        parts: &[FormulaId],
    ) -> Result<ExprId, Error> {
        let mut required: Option<NumberConstraint> = None;
        let mut forbidden = Vec::new();
        let mut all = Vec::new();
        for &part in parts {
            let &Formula::Literal { atom, positive } = formulas.get(part) else {
                all.extend(self.numbers.get(&part));
                continue;
            };
            match (formulas.atom(atom), positive) {
                (&Atom::Bounds(id), true) => match &mut required {
                    Some(required) => required.intersect(formulas.bounds(id)),
                    None => required = Some(formulas.bounds(id).clone()),
                },
                (&Atom::Bounds(id), false) => forbidden.push(formulas.bounds(id).clone()),
                (&Atom::Numbers(list), true) => {
                    let mut spellings: Vec<Vec<u8>> = Vec::new();
                    for &name in formulas.list(list) {
                        spellings.extend(spellings_of(formulas, name));
                    }
                    all.push(arena.literals(spellings));
                }
                (&Atom::Numbers(list), false) => {
                    let values = formulas.list(list).iter().filter_map(|&n| formulas.decimal(n));
                    forbidden.extend(values.map(|value| NumberConstraint::exactly(&value)));
                }
                _ => {}
            }
        }
        if required.is_some() || !forbidden.is_empty() {
            let mut required = required.unwrap_or_default();
            required.integer_spelling = formulas.program.options.integers;
            let limits = &formulas.program.limits;
            all.push(number::conjunction(arena, &required, &forbidden, limits)?);
        }
        Ok(if all.is_empty() { number::any_number(arena) } else { arena.and(&all) })
    }
}

/// Returns the strings of a list: canonical spellings to generate, or every spelling to refuse.
fn strings_of(
    formulas: &Formulas,
    arena: &mut Arena,
    list: &[NameId],
    positive: bool,
    encoding: Encoding,
) -> ExprId {
    let names = &formulas.program.document.names;
    if positive || list.len() > MAX_RESPELLED {
        let spelled = |&name: &NameId| {
            let mut text = Vec::new();
            chars::write_json_canonical(names.get(name), &mut text);
            text
        };
        return arena.literals(list.iter().map(spelled));
    }
    let parts: Vec<_> = list.iter().map(|&n| chars::text(arena, names.get(n), encoding)).collect();
    arena.alt(&parts)
}

/// Returns the spellings of a listed number: as the schema has it, as digits, and an integer also with
/// `.0`.
fn spellings_of(formulas: &Formulas, canonical: NameId) -> Vec<Vec<u8>> {
    let document = &formulas.program.document;
    let plain = document.names.get(canonical);
    let mut spellings: Vec<Vec<u8>> =
        document.spellings(canonical).map(|n| document.names.get(n).as_bytes().to_vec()).collect();
    spellings.push(plain.as_bytes().to_vec());
    if !plain.contains(['.', 'e', 'E']) {
        spellings.push(format!("{plain}.0").into_bytes());
    }
    spellings
}

impl Formulas {
    /// Returns `formula`, which is about numbers and without "exactly one", as alternatives of literals
    /// if it speaks of multiples and they are few.
    ///
    /// Bounds and integers beside multiples are arithmetic. Beside an expression for them, a multiple of a
    /// large number would be looked for digit by digit.
    fn multiples_apart(&mut self, formula: FormulaId) -> Result<FormulaId, Error> {
        let speaks = |&(atom, ..): &(AtomId, bool, bool)| match *self.atom(atom) {
            Atom::Bounds(id) => !self.bounds(id).multiple_of.is_empty(),
            _ => false,
        };
        if !self.atoms_of(formula).iter().any(speaks) {
            return Ok(formula);
        }
        let mut cases: Map<FormulaId, Vec<FormulaId>> = Map::default();
        for id in self.parts_of(formula) {
            let of = |part: &FormulaId| cases.get(part).cloned().unwrap_or_default();
            let mut own = match self.get(id).clone() {
                Formula::Or(parts) => parts.iter().flat_map(of).collect(),
                Formula::And(parts) => {
                    let mut all = vec![Self::yes()];
                    for part in parts {
                        let part = of(&part);
                        let pairs = all.iter().flat_map(|&a| part.iter().map(move |&b| [a, b]));
                        all = pairs.collect::<Vec<_>>().iter().map(|pair| self.and(pair)).collect();
                        all.retain(|&case| case != Self::no());
                        if all.len() > MAX_ALTERNATIVES {
                            return Ok(formula);
                        }
                    }
                    all
                }
                _ => vec![id],
            };
            own.sort_unstable();
            own.dedup();
            if own.len() > MAX_ALTERNATIVES {
                return Ok(formula);
            }
            cases.insert(id, own);
        }
        self.check()?;
        Ok(cases.get(&formula).map_or(formula, |cases| self.or(cases)))
    }

    /// Returns `formula` with every "exactly one" written out.
    pub(super) fn spelled_out(&mut self, formula: FormulaId) -> Result<FormulaId, Error> {
        let mut done: Map<FormulaId, FormulaId> = Map::default();
        for id in self.parts_of(formula) {
            let of = |parts: &[FormulaId]| -> Vec<FormulaId> {
                parts.iter().map(|p| done.get(p).copied().unwrap_or(*p)).collect()
            };
            let result = match self.get(id) {
                Formula::False | Formula::True | Formula::Literal { .. } => id,
                Formula::And(parts) => {
                    let parts = of(parts);
                    self.and(&parts)
                }
                Formula::Or(parts) => {
                    let parts = of(parts);
                    self.or(&parts)
                }
                Formula::One { parts, negated } => {
                    let (parts, negated) = (of(parts), *negated);
                    let one = self.exactly_one(&parts);
                    if negated { self.not(one) } else { one }
                }
            };
            self.check()?;
            done.insert(id, result);
        }
        Ok(done.get(&formula).copied().unwrap_or(formula))
    }

    /// Writes "exactly one" as a balanced tree of pairs (none holds, one holds).
    fn exactly_one(&mut self, parts: &[FormulaId]) -> FormulaId {
        let mut pairs: Vec<(FormulaId, FormulaId)> =
            parts.iter().map(|&part| (self.not(part), part)).collect();
        while pairs.len() > 1 {
            let mut joined = Vec::with_capacity(pairs.len().div_ceil(2));
            for pair in pairs.chunks(2) {
                let &[(none, one), (other_none, other_one)] = pair else {
                    joined.extend_from_slice(pair);
                    continue;
                };
                let (first, second) = (self.and(&[one, other_none]), self.and(&[none, other_one]));
                joined.push((self.and(&[none, other_none]), self.or(&[first, second])));
            }
            pairs = joined;
        }
        pairs.first().map_or(Self::no(), |&(_, one)| one)
    }
}
