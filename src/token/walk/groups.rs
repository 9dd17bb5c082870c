//! Where the tokens of a walk lead: what the walk stands at when it takes tokens in, groups of those that
//! lead to one place out.

use smallvec::smallvec;

use crate::ids::{StateId, TokenId};
use crate::token::walk::{At, BASE, Groups, LocalStack, Place, Record, Stop, Walker};

impl Walker<'_, '_> {
    /// Takes note of where tokens lead.
    pub(in crate::token) fn grouping(mut self) -> Self {
        self.groups = Some(Groups::default());
        self
    }

    /// Returns the tokens by where they lead, and all local stacks; `None` if a text was met that must
    /// be fresh.
    pub(in crate::token) fn into_groups(self) -> Option<(Groups, Vec<LocalStack>)> {
        self.groups.filter(|_| !self.fresh).map(|groups| (groups, self.stacks))
    }

    /// Takes tokens that lead to `state` and no frame.
    pub(super) fn take(&mut self, state: StateId, tokens: &[TokenId]) {
        self.accepted.extend_from_slice(tokens);
        if let Some(groups) = &mut self.groups {
            groups.entry(smallvec![(state, BASE)]).or_default().extend_from_slice(tokens);
        }
    }

    /// Takes note of where tokens lead.
    pub(super) fn group(&mut self, at: &At<'_>, tokens: &[TokenId]) -> Result<(), Stop> {
        let Some(mut groups) = self.groups.take_if(|_| !tokens.is_empty()) else { return Ok(()) };
        let mut place: Place = match at {
            At::One { state, record, .. } => {
                self.fresh |= *record != Record::No;
                smallvec![(*state, BASE)]
            }
            At::Many(threads) => {
                for thread in threads {
                    self.fresh |= thread.record != Record::No
                        || thread.closes > 0
                        || self.is_recorded(thread.stack)?;
                }
                threads.iter().map(|thread| (thread.state, thread.stack)).collect()
            }
        };
        place.sort_unstable();
        place.dedup();
        groups.entry(place).or_default().extend_from_slice(tokens);
        self.groups = Some(groups);
        Ok(())
    }
}
