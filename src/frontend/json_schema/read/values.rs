//! The values of keywords that are not schemas: numbers, counts, types, names, objects.

use hashbrown::HashSet;

use super::Reader;
use crate::error::Error;
use crate::frontend::json_schema::document::{Kind, ValueId};
use crate::frontend::json_schema::names::NameId;
use crate::frontend::json_schema::number::Decimal;
use crate::frontend::json_schema::schema::{NodeId, Type, TypeSet};
use crate::frontend::json_schema::sources::ResourceId;
use crate::ir::UNBOUNDED;
use crate::limits::BudgetExceeded;

impl Reader<'_, '_> {
    pub(super) fn decimal(&self, value: ValueId) -> Result<Decimal, Error> {
        let Kind::Number(text) = self.sources.document.kind(value) else {
            return Err(self.invalid(value, "is not a number"));
        };
        Decimal::parse(self.sources.document.names.get(text), self.limits)
            .map_err(|error| error.at(self.sources.location(value)))
    }

    /// Reads a count; `None` if it is too large to matter as an upper bound.
    pub(super) fn count(&self, value: ValueId) -> Result<Option<u32>, Error> {
        let number = self.decimal(value)?;
        if !number.is_integer() || number.is_negative() {
            return Err(self.invalid(value, "is not a non-negative integer"));
        }
        Ok(number.to_string().parse().ok().filter(|&n| n != UNBOUNDED))
    }

    pub(super) fn counts(
        &self,
        schema: ValueId,
        min: &str,
        max: &str,
    ) -> Result<(u32, u32), Error> {
        let member = |name| self.sources.document.member_named(schema, name);
        let least = match member(min) {
            None => 0,
            Some(value) => self.count(value)?.ok_or_else(|| {
                let budget = BudgetExceeded::new("source_bytes", u64::from(UNBOUNDED));
                Error::budget(budget).at(self.sources.location(value))
            })?,
        };
        let greatest = match member(max) {
            None => UNBOUNDED,
            Some(value) => self.count(value)?.unwrap_or(UNBOUNDED),
        };
        Ok((least, greatest))
    }

    pub(super) fn types(&self, value: ValueId) -> Result<TypeSet, Error> {
        let document = &self.sources.document;
        let mut types = TypeSet::NONE;
        let list: Vec<ValueId> = match document.kind(value) {
            Kind::Array(_) => document.children(value).collect(),
            _ => vec![value],
        };
        for item in list {
            types = match document.string(item) {
                Some("null") => types.with(Type::Null),
                Some("boolean") => types.with(Type::False).with(Type::True),
                Some("number") => types.with(Type::Number),
                Some("integer") => types.with_integer(),
                Some("string") => types.with(Type::String),
                Some("array") => types.with(Type::Array),
                Some("object") => types.with(Type::Object),
                _ => return Err(self.invalid(item, "names no JSON type")),
            };
        }
        Ok(types)
    }

    pub(super) fn name_list(&self, value: ValueId) -> Result<Box<[NameId]>, Error> {
        let document = &self.sources.document;
        if !matches!(document.kind(value), Kind::Array(_)) {
            return Err(self.invalid(value, "is not an array of names"));
        }
        let mut names = Vec::new();
        let mut seen: HashSet<NameId, foldhash::fast::RandomState> = HashSet::default();
        for item in document.children(value) {
            let Kind::String(name) = document.kind(item) else {
                return Err(self.invalid(item, "is not a name"));
            };
            if seen.insert(name) {
                names.push(name);
            }
        }
        Ok(names.into())
    }

    pub(super) fn schema_list(
        &mut self,
        value: ValueId,
        resource: ResourceId,
    ) -> Result<Box<[NodeId]>, Error> {
        if !matches!(self.sources.document.kind(value), Kind::Array(_)) {
            return Err(self.invalid(value, "is not an array of schemas"));
        }
        let items: Vec<_> = self.sources.document.children(value).collect();
        Ok(items.into_iter().map(|item| self.node(item, resource)).collect())
    }

    pub(super) fn object(&self, value: ValueId) -> Result<Vec<(NameId, ValueId)>, Error> {
        if matches!(self.sources.document.kind(value), Kind::Object(_)) {
            Ok(self.sources.document.entries(value).collect())
        } else {
            Err(self.invalid(value, "is not an object"))
        }
    }
}
