//! Clamps: an expression in, one out that has the same mask and that more expressions share, because
//! counters that no token can exhaust are taken as endless.
//!
//! A token of `reach` bytes makes at most `reach` copies of a body that is not nullable. On the spine of
//! a concatenation a maximum above `reach` may be dropped, and a minimum above it lowered to
//! `reach + 1`. Under an intersection the count may decide far ahead what is live (`^a*b{200}$` of at
//! most 300 characters): there a maximum is dropped if it leaves room for what the token writes and for
//! the longest of the shortest ends of everything that may be left then.

use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::automaton::linear::Grower;
use crate::error::Error;
use crate::ids::ExprId;
use crate::ir::{Arena, Expr, UNBOUNDED};

/// Derivatives that are looked at to tell how much room an intersection needs. Patterns of public
/// schemas have fewer, but some that count words have more than a thousand. One with more keeps its
/// counters, and has more masks.
const DERIVATIVES: usize = 8_192;

/// For expressions met before, a bound on the bytes of the shortest end of every derivative that has
/// one; `None` where there are too many derivatives to tell.
pub(crate) type Rooms = HashMap<ExprId, Option<u32>, foldhash::fast::RandomState>;

impl Grower {
    /// Returns an expression with the same mask for tokens of at most `reach` bytes.
    pub(crate) fn clamp(&mut self, expr: ExprId, reach: u32) -> Result<ExprId, Error> {
        match self.grammar.arena.get(expr).clone() {
            Expr::Alt(parts) => {
                let mut clamped = Vec::with_capacity(parts.len());
                for part in parts {
                    clamped.push(self.clamp_spine(part, reach)?);
                }
                Ok(self.arena().alt(&clamped))
            }
            _ => self.clamp_spine(expr, reach),
        }
    }

    /// Clamps the counters of a concatenation, as far as `reach` bytes can lead.
    fn clamp_spine(&mut self, expr: ExprId, reach: u32) -> Result<ExprId, Error> {
        let mut spine = Vec::new();
        let mut rest = expr;
        let mut least = 0_u32;
        loop {
            let Expr::Concat(head, tail) = *self.grammar.arena.get(rest) else {
                spine.push(rest);
                rest = Arena::EPSILON;
                break;
            };
            if least > reach {
                break;
            }
            // A part counts for one byte at least, so that this ends soon where all may be empty.
            least = least.saturating_add(self.grammar.arena.facts(head).least.max(1));
            spine.push(head);
            rest = tail;
        }
        if let Some(first) = spine.first_mut()
            && let Expr::And(members) = self.grammar.arena.get(*first).clone()
        {
            *first = self.clamp_intersection(*first, &members, reach)?;
        }
        let mut result = rest;
        for part in spine.into_iter().rev() {
            let part = match *self.grammar.arena.get(part) {
                Expr::Repeat { body, min, max }
                    if (min > reach || max != UNBOUNDED && max > reach)
                        && self.grammar.arena.facts(body).nullable == Some(false) =>
                {
                    let max = if max > reach { UNBOUNDED } else { max };
                    self.arena().repeat(body, min.min(reach + 1), max)
                }
                _ => part,
            };
            result = self.arena().concat2(part, result);
        }
        Ok(result)
    }

    /// Drops the maxima at the ends of the members of an intersection if they leave room.
    ///
    /// Let `w` be what a token writes inside the intersection, and `v` a shortest text that ends it
    /// without the maxima. Then no counter makes more than `|w| + |v|` copies on `wv`, and `|v|` is at
    /// most the room that the intersection without the maxima needs.
    fn clamp_intersection(
        &mut self,
        expr: ExprId,
        members: &[ExprId],
        reach: u32,
    ) -> Result<ExprId, Error> {
        let mut least_max = UNBOUNDED;
        let mut endless = Vec::with_capacity(members.len());
        for &member in members {
            let (without, max) = self.without_last_maximum(member, reach);
            least_max = least_max.min(max);
            endless.push(without);
        }
        if least_max == UNBOUNDED {
            return Ok(expr);
        }
        let endless = self.arena().and(&endless);
        let room = self.room(endless)?;
        let fits = room.is_some_and(|room| room <= least_max - reach);
        Ok(if fits { endless } else { expr })
    }

    /// Returns `expr` without the maximum of its last counter, and the maximum, if it is above `reach`.
    fn without_last_maximum(&mut self, expr: ExprId, reach: u32) -> (ExprId, u32) {
        // What is left of a character, and then the counter: spines here are short.
        let mut heads: SmallVec<[ExprId; 8]> = SmallVec::new();
        let mut last = expr;
        while let Expr::Concat(head, tail) = *self.grammar.arena.get(last) {
            if heads.len() == 8 {
                return (expr, UNBOUNDED);
            }
            heads.push(head);
            last = tail;
        }
        let &Expr::Repeat { body, min, max } = self.grammar.arena.get(last) else {
            return (expr, UNBOUNDED);
        };
        if max == UNBOUNDED
            || max <= reach
            || self.grammar.arena.facts(body).nullable != Some(false)
        {
            return (expr, UNBOUNDED);
        }
        let mut without = self.arena().repeat(body, min, UNBOUNDED);
        for head in heads.into_iter().rev() {
            without = self.arena().concat2(head, without);
        }
        (without, max)
    }

    /// Returns a bound on the bytes of the shortest end of every derivative of a regular expression
    /// that has one, or `None` if there are too many derivatives to tell.
    fn room(&mut self, expr: ExprId) -> Result<Option<u32>, Error> {
        if let Some(&known) = self.rooms.get(&expr) {
            return Ok(known);
        }
        let mut index: HashMap<ExprId, usize, foldhash::fast::RandomState> = HashMap::default();
        let mut found = vec![expr];
        let mut from: Vec<SmallVec<[usize; 4]>> = vec![SmallVec::new()];
        index.insert(expr, 0);
        let mut next = 0;
        while next < found.len() && found.len() <= DERIVATIVES {
            self.budget.spend(1)?;
            for part in self.linear(found[next])?.iter() {
                let target = *index.entry(part.target).or_insert_with(|| {
                    found.push(part.target);
                    from.push(SmallVec::new());
                    found.len() - 1
                });
                from[target].push(next);
            }
            next += 1;
        }
        let room =
            if found.len() > DERIVATIVES { None } else { Some(self.farthest(&found, &from)?) };
        self.rooms.extend(found.into_iter().map(|expr| (expr, room)));
        Ok(room)
    }

    /// Returns the greatest distance to an expression with the empty text, among `found` that have one;
    /// `from` has the predecessors of each.
    fn farthest(&mut self, found: &[ExprId], from: &[SmallVec<[usize; 4]>]) -> Result<u32, Error> {
        let mut seen = vec![false; found.len()];
        let mut layer = Vec::new();
        for (index, &expr) in found.iter().enumerate() {
            if self.nullable(expr)? {
                seen[index] = true;
                layer.push(index);
            }
        }
        let mut distance = 0;
        loop {
            let before = layer.iter().flat_map(|&index| &from[index]).copied();
            let mut next: Vec<usize> = before.filter(|&index| !seen[index]).collect();
            next.sort_unstable();
            next.dedup();
            if next.is_empty() {
                return Ok(distance);
            }
            next.iter().for_each(|&index| seen[index] = true);
            distance += 1;
            layer = next;
        }
    }
}
