//! Hints at the order of members, which are no keywords of the standard: `x-order` as a number in the
//! schema of a member, `x-order` or `propertyOrdering` as a list of names beside `properties`.

use hashbrown::HashMap;

use super::Reader;
use crate::error::Error;
use crate::frontend::json_schema::document::{Kind, ValueId};
use crate::frontend::json_schema::names::NameId;
use crate::frontend::json_schema::number::Decimal;
use crate::frontend::json_schema::schema::NodeId;

/// The places of the names in a list.
type Places = HashMap<NameId, usize, foldhash::fast::RandomState>;

/// The place that a hint gives to a name. Names without a hint come after those with one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Listed(usize),
    Numbered(Decimal),
    None,
}

impl Reader<'_, '_> {
    /// Sorts the declared members of `schema` as its hints say: those that a list names, in its order;
    /// then those with a number, ascending; then the others. Equal ones stay as declared.
    pub(super) fn order_as_hinted(
        &self,
        schema: ValueId,
        properties: &mut [(NameId, NodeId)],
    ) -> Result<(), Error> {
        let names = &self.sources.document.names;
        if ["x-order", "propertyOrdering"].iter().all(|hint| names.find(hint).is_none()) {
            return Ok(());
        }
        let mut listed = Places::default();
        for hint in ["x-order", "propertyOrdering"] {
            // As the hint of a member, `x-order` is a number.
            if let Some(value) = self.sources.document.member_named(schema, hint)
                && !matches!(self.sources.document.kind(value), Kind::Number(_))
            {
                for &name in &self.name_list(value)? {
                    let place = listed.len();
                    listed.entry(name).or_insert(place);
                }
            }
        }
        let mut ranked = Vec::with_capacity(properties.len());
        for &property in properties.iter() {
            ranked.push((self.rank(property, &listed)?, property));
        }
        ranked.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (place, (_, property)) in properties.iter_mut().zip(ranked) {
            *place = property;
        }
        Ok(())
    }

    fn rank(&self, (name, node): (NameId, NodeId), listed: &Places) -> Result<Rank, Error> {
        if let Some(&place) = listed.get(&name) {
            return Ok(Rank::Listed(place));
        }
        let schema = self.schemas.node(node).value;
        match self.sources.document.member_named(schema, "x-order") {
            // The list is about the members of the member.
            Some(value) if !matches!(self.sources.document.kind(value), Kind::Array(_)) => {
                Ok(Rank::Numbered(self.decimal(value)?))
            }
            _ => Ok(Rank::None),
        }
    }
}
