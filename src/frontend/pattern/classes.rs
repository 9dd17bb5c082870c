//! Partitions of the characters: the coarsest one that a family of sets does not cut.

use hashbrown::HashMap;

use crate::frontend::pattern::tree::union;
use crate::frontend::pattern::{Node, NodeId, Side, Tree};
use crate::ir::chars::{CharRange, CharSet, all_chars};
use crate::limits::{Budget, BudgetExceeded};

/// One block of a partition.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// Its characters.
    pub(super) set: CharSet,
    /// Which of the sets contain it, as bits.
    members: Box<[u64]>,
}

impl Block {
    /// Returns whether set number `index` contains this block.
    pub(super) fn is_in(&self, index: usize) -> bool {
        self.members[index / 64] >> (index % 64) & 1 == 1
    }
}

/// Returns the coarsest partition of all characters of which every set is a union of blocks.
///
/// One sweep over the ends of all ranges: O(n log n) in their number, times the words of a block's
/// membership, which `work` is charged for.
pub(super) fn partition(sets: &[CharSet], work: &mut Budget) -> Result<Vec<Block>, BudgetExceeded> {
    let points: usize = sets.iter().map(|set| 2 * set.ranges().len()).sum();
    work.spend(points as u64 * (1 + sets.len() as u64 / 8))?;
    let mut events: Vec<(u32, usize)> = Vec::new();
    for (index, set) in sets.iter().enumerate() {
        for range in set.iter() {
            events.push((u32::from(range.start()), index));
            events.push((u32::from(range.end()) + 1, index));
        }
    }
    events.sort_unstable();
    let mut members = vec![0_u64; sets.len().div_ceil(64)];
    let mut ids: HashMap<Box<[u64]>, usize, foldhash::fast::RandomState> = HashMap::default();
    let mut ranges: Vec<Vec<CharRange>> = Vec::new();
    let mut close = |members: &[u64], start: u32, end: u32| {
        // An end inside the surrogates, which are no characters, moves to the nearest character.
        let first = if (0xd800..0xe000).contains(&start) { 0xe000 } else { start };
        let last = if (0xd800..0xe000).contains(&(end - 1)) { 0xd7ff } else { end - 1 };
        if let (Some(first), Some(last)) = (char::from_u32(first), char::from_u32(last))
            && first <= last
        {
            let next = ids.len();
            let id = *ids.entry(members.into()).or_insert(next);
            if id == ranges.len() {
                ranges.push(Vec::new());
            }
            ranges[id].push(CharRange::new(first, last));
        }
    };
    let mut start = 0;
    for (point, index) in events {
        if point > start {
            close(&members, start, point);
            start = point;
        }
        members[index / 64] ^= 1 << (index % 64);
    }
    if start <= u32::from(char::MAX) {
        close(&members, start, u32::from(char::MAX) + 1);
    }
    let mut blocks: Vec<_> = ids.into_iter().collect();
    blocks.sort_unstable_by_key(|&(_, id)| id);
    Ok(blocks
        .into_iter()
        .zip(ranges)
        .map(|((members, _), ranges)| Block { set: CharSet::new(ranges), members })
        .collect())
}

/// What the assertions of a pattern can tell apart about the character before a position.
///
/// Class 0 is the start of the text; the characters that no assertion tells from it belong to it.
#[derive(Clone, Debug)]
pub(super) struct LeftClasses {
    /// The characters of each class; at least one class.
    pub(super) sets: Vec<CharSet>,
}

impl LeftClasses {
    pub(super) fn of(tree: &Tree, root: NodeId, work: &mut Budget) -> Result<Self, BudgetExceeded> {
        let mut sides: Vec<&Side> = Vec::new();
        for id in tree.subtree(root) {
            if let Node::Look(look) = tree.node(id) {
                work.spend(sides.len() as u64)?;
                for (before, _) in &look.cases {
                    if !before.is_any() && !sides.contains(&before) {
                        sides.push(before);
                    }
                }
            }
        }
        if sides.is_empty() {
            return Ok(Self { sets: vec![all_chars()] });
        }
        let sets: Vec<_> = sides.iter().map(|side| side.set.clone()).collect();
        let blocks = partition(&sets, work)?;
        let is_start =
            |block: &Block| sides.iter().enumerate().all(|(i, side)| side.edge == block.is_in(i));
        let (start, others): (Vec<_>, Vec<_>) = blocks.into_iter().partition(is_start);
        let mut sets = vec![union(start.iter().map(|block| &block.set))];
        sets.extend(others.into_iter().map(|block| block.set));
        Ok(Self { sets })
    }

    /// Returns the number of classes.
    pub(super) const fn len(&self) -> usize {
        self.sets.len()
    }

    /// Returns a character of `class` (`None` is the start of the text): it stands for all of them.
    pub(super) fn example(&self, class: usize) -> Option<char> {
        if class == 0 { None } else { self.sets[class].ranges().first().map(|range| range.start()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::pattern::tree::is_all;
    use crate::ir::chars::char_set;

    #[test]
    fn blocks_cover_all_characters_and_are_not_cut() {
        let sets = [
            char_set(&[('a', 'm'), ('\u{d000}', '\u{e100}')]),
            char_set(&[('g', 'z')]),
            char_set(&[('\u{e000}', char::MAX)]),
            CharSet::empty(),
        ];
        let mut work = Budget::new("compile_work", 10_000);
        let blocks = partition(&sets, &mut work).unwrap();
        let mut all = CharSet::empty();
        for block in &blocks {
            let mut common = all.clone();
            common.intersect(&block.set);
            assert!(common.ranges().is_empty());
            all.union(&block.set);
            for (i, set) in sets.iter().enumerate() {
                let mut common = block.set.clone();
                common.intersect(set);
                let whole = common == block.set;
                assert!(whole || common.ranges().is_empty(), "{block:?} is cut by {set:?}");
                assert_eq!(block.is_in(i), whole);
            }
        }
        assert!(is_all(&all));
        assert_eq!(partition(&[], &mut work).unwrap().len(), 1);
        assert!(partition(&sets, &mut Budget::new("compile_work", 5)).is_err());
    }
}
