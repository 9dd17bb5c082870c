//! Linear equations over languages, solved by Arden's lemma.
//!
//! `x = A x | B`, where `A` does not contain the empty text, has the one solution `A* B`. Equal states
//! are merged first (bisimulation), then states are eliminated in the order of fewest new terms.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use crate::error::Error;
use crate::frontend::pattern::classes::Block;
use crate::frontend::pattern::lower::Lower;
use crate::frontend::pattern::tree::union;
use crate::ids::ExprId;
use crate::ir::Arena;

/// A set of blocks of a partition of the characters, as bits.
pub(super) type Symbols = Box<[u64]>;

/// One equation: `x = symbols x1 | symbols x2 | … | ends`.
#[derive(Clone, Debug, Default)]
pub(super) struct Equation {
    /// Which unknowns follow which symbols.
    pub(super) steps: BTreeMap<usize, Symbols>,
    /// What may follow without a symbol.
    pub(super) ends: Vec<ExprId>,
}

impl Equation {
    /// Adds `symbol` before the unknown `target`.
    pub(super) fn add(&mut self, target: usize, symbol: usize, symbols: usize) {
        let set = self.steps.entry(target).or_insert_with(|| vec![0; symbols.div_ceil(64)].into());
        set[symbol / 64] |= 1 << (symbol % 64);
    }
}

/// A row of the eliminated system: what stands before each unknown and before each end.
#[derive(Clone, Debug, Default)]
struct Row {
    steps: BTreeMap<usize, ExprId>,
    ends: BTreeMap<ExprId, ExprId>,
}

/// Returns the languages of the unknowns `roots`.
///
/// # Errors
///
/// [`crate::ErrorKind::BudgetExceeded`] when elimination takes more than the work budget.
pub(super) fn solve(
    lower: &mut Lower<'_>,
    equations: &[Equation],
    roots: &[usize],
    alphabet: &[Block],
) -> Result<Vec<ExprId>, Error> {
    let blocks = merge_equal(lower, equations)?;
    let count = blocks.iter().max().map_or(0, |&last| last + 1);
    let mut merged: Vec<Equation> = vec![Equation::default(); count];
    for (equation, &block) in equations.iter().zip(&blocks) {
        merged[block] = renamed(equation, &blocks);
    }
    let mut rows: Vec<Row> = Vec::with_capacity(count);
    for equation in &merged {
        let mut row = Row::default();
        for (&target, symbols) in &equation.steps {
            let mut chosen = Vec::new();
            for (index, block) in alphabet.iter().enumerate() {
                if symbols[index / 64] >> (index % 64) & 1 == 1 {
                    chosen.push(&block.set);
                }
            }
            row.steps.insert(target, lower.set(&union(chosen)));
        }
        row.ends = equation.ends.iter().map(|&end| (end, Arena::EPSILON)).collect();
        rows.push(row);
    }
    let roots: Vec<_> = roots.iter().map(|&root| blocks[root]).collect();
    let order = eliminate(lower, &mut rows, &roots)?;
    let mut solved: HashMap<usize, ExprId> = HashMap::new();
    for &root in order.iter().rev() {
        let row = std::mem::take(&mut rows[root]);
        let mut parts = Vec::new();
        for (target, before) in row.steps {
            let after = solved.get(&target).copied().unwrap_or(Arena::EMPTY);
            parts.push(lower.arena.concat2(before, after));
        }
        for (end, before) in row.ends {
            parts.push(lower.arena.concat2(before, end));
        }
        let language = lower.alt(&parts);
        solved.insert(root, language);
    }
    lower.check()?;
    Ok(roots.iter().map(|root| solved.get(root).copied().unwrap_or(Arena::EMPTY)).collect())
}

fn renamed(equation: &Equation, blocks: &[usize]) -> Equation {
    let mut result = Equation { steps: BTreeMap::new(), ends: equation.ends.clone() };
    for (&target, symbols) in &equation.steps {
        match result.steps.entry(blocks[target]) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(symbols.clone());
            }
            std::collections::btree_map::Entry::Occupied(mut entry) => {
                entry.get_mut().iter_mut().zip(symbols).for_each(|(all, &more)| *all |= more);
            }
        }
    }
    result.ends.sort_unstable();
    result.ends.dedup();
    result
}

/// Returns the number of each unknown's block of equal unknowns.
fn merge_equal(lower: &mut Lower<'_>, equations: &[Equation]) -> Result<Vec<usize>, Error> {
    let mut blocks = vec![0; equations.len()];
    let mut count = 1;
    loop {
        lower.work.spend(equations.iter().map(|e| 1 + e.steps.len() as u64).sum())?;
        let mut ids: HashMap<_, usize, foldhash::fast::RandomState> = HashMap::default();
        let next: Vec<_> = equations
            .iter()
            .zip(&blocks)
            .map(|(equation, &block)| {
                let Equation { steps, ends } = renamed(equation, &blocks);
                let id = ids.len();
                *ids.entry((block, steps, ends)).or_insert(id)
            })
            .collect();
        let refined = ids.len();
        blocks = next;
        if refined == count {
            return Ok(blocks);
        }
        count = refined;
    }
}

/// Eliminates every unknown; returns the roots in the order in which they were, each with an
/// equation in later roots only.
fn eliminate(
    lower: &mut Lower<'_>,
    rows: &mut [Row],
    roots: &[usize],
) -> Result<Vec<usize>, Error> {
    let mut sources: Vec<Vec<usize>> = vec![Vec::new(); rows.len()];
    for (source, row) in rows.iter().enumerate() {
        row.steps.keys().for_each(|&target| sources[target].push(source));
    }
    let mut is_root = vec![false; rows.len()];
    roots.iter().for_each(|&root| is_root[root] = true);
    let mut left: Vec<usize> = (0..rows.len()).collect();
    let mut order = Vec::new();
    while !left.is_empty() {
        lower.work.spend(left.len() as u64)?;
        let weight = |&q: &usize| {
            (is_root[q], sources[q].len() * (rows[q].steps.len() + rows[q].ends.len()))
        };
        let Some(at) = (0..left.len()).min_by_key(|&i| weight(&left[i])) else { break };
        let q = left.swap_remove(at);
        let mut row = std::mem::take(&mut rows[q]);
        if let Some(around) = row.steps.remove(&q) {
            let around = lower.arena.star(around);
            for before in row.steps.values_mut().chain(row.ends.values_mut()) {
                *before = lower.arena.concat2(around, *before);
            }
        }
        for source in std::mem::take(&mut sources[q]) {
            if source == q {
                continue;
            }
            let Some(before) = rows[source].steps.remove(&q) else { continue };
            lower.work.spend(8 * (row.steps.len() + row.ends.len()) as u64)?;
            for (&target, &after) in &row.steps {
                let through = lower.arena.concat2(before, after);
                match rows[source].steps.get_mut(&target) {
                    Some(direct) => *direct = lower.alt(&[*direct, through]),
                    None => {
                        rows[source].steps.insert(target, through);
                        sources[target].push(source);
                    }
                }
            }
            for (&end, &after) in &row.ends {
                let through = lower.arena.concat2(before, after);
                let direct = rows[source].ends.entry(end).or_insert(Arena::EMPTY);
                *direct = lower.alt(&[*direct, through]);
            }
        }
        for &target in row.steps.keys() {
            sources[target].retain(|&source| source != q);
        }
        if is_root[q] {
            order.push(q);
            rows[q] = row;
        }
        lower.check()?;
    }
    Ok(order)
}
