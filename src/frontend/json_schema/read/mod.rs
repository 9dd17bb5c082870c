//! Reads keywords: every schema that is reachable from the root in, [`Schemas`] out. Each keyword that
//! constrains is parsed, or is an error with its pointer; annotations and unknown keywords are
//! ignored, as the standard says.
//!
//! Schemas wait in a list until it is their turn, so nesting costs no stack.

mod hints;
mod text;
mod values;

use hashbrown::HashMap;

use crate::error::{Error, ErrorKind};
use crate::frontend::json_schema::document::{Kind, Step, ValueId};
use crate::frontend::json_schema::names::NameId;
use crate::frontend::json_schema::number::{Bound, NumberConstraint};
use crate::frontend::json_schema::options::{Draft, JsonOptions};
use crate::frontend::json_schema::schema::{
    Contains, DynamicResource, Elements, ElementsId, Keyword, Members, MembersId, Node, NodeId,
    NumberId, PatternId, Schemas,
};
use crate::frontend::json_schema::sources::{ResourceId, Sources};
use crate::ir::{Departure, UNBOUNDED};
use crate::limits::Limits;

/// Reads the schemas of `sources` that are reachable from `root`.
pub(super) fn read(
    sources: &mut Sources<'_>,
    root: ValueId,
    options: &JsonOptions,
    limits: &Limits,
) -> Result<(Schemas, Vec<Departure>), Error> {
    let mut reader = Reader {
        sources,
        options,
        limits,
        schemas: Schemas::default(),
        by_value: HashMap::default(),
        by_pattern: HashMap::default(),
        pending: Vec::new(),
        spellings: Vec::new(),
        departures: Vec::new(),
    };
    reader.node(root, 0);
    let mut dynamic_from = 0;
    loop {
        while let Some(id) = reader.pending.pop() {
            reader.read(id)?;
        }
        // Dynamic references may lead to any resource that the scope passes through.
        if !reader.read_dynamic_anchors(&mut dynamic_from) {
            break;
        }
    }
    let Reader { schemas, mut departures, spellings, .. } = reader;
    departures.append(&mut sources.departures);
    departures.sort_by_key(|&(value, _)| value);
    let departures = departures.into_iter().map(|(_, departure)| departure).collect();
    sources.document.set_canonical(spellings);
    Ok((schemas, departures))
}

struct Reader<'a, 's> {
    sources: &'a mut Sources<'s>,
    options: &'a JsonOptions,
    limits: &'a Limits,
    schemas: Schemas,
    by_value: HashMap<ValueId, NodeId, foldhash::fast::RandomState>,
    by_pattern: HashMap<NameId, PatternId, foldhash::fast::RandomState>,
    pending: Vec<NodeId>,
    spellings: Vec<(NameId, NameId)>,
    departures: Vec<(ValueId, Departure)>,
}

/// Where a keyword stands: its schema, its own value, and the reading of the schema so far.
struct Place {
    schema: ValueId,
    resource: ResourceId,
    draft: Draft,
    /// The groups of keywords that were read at the first of their members.
    groups: u8,
    keywords: Vec<Keyword>,
}

/// The groups of keywords that are read together.
#[derive(Clone, Copy)]
enum Group {
    Number,
    Length,
    Members,
    MemberCount,
    Elements,
    ElementCount,
    Contains,
}

impl Place {
    /// Returns whether the group was not yet read, and marks it.
    fn first(&mut self, group: Group) -> bool {
        let bit = 1 << group as u8;
        let first = self.groups & bit == 0;
        self.groups |= bit;
        first
    }
}

impl Reader<'_, '_> {
    /// Returns the node of the schema `value`, to be read later if it is new.
    fn node(&mut self, value: ValueId, around: ResourceId) -> NodeId {
        if let Some(&id) = self.by_value.get(&value) {
            return id;
        }
        let resource = self.sources.resource_below(value, around);
        let id = NodeId::at(self.schemas.nodes.len());
        self.schemas.nodes.push(Node { value, resource, keywords: Box::default() });
        self.by_value.insert(value, id);
        self.pending.push(id);
        id
    }

    /// Makes nodes of the dynamic anchors of every resource that has nodes; returns whether that
    /// left something to read.
    fn read_dynamic_anchors(&mut self, from: &mut usize) -> bool {
        if !self.sources.dynamic() {
            return false;
        }
        while *from < self.schemas.nodes.len() {
            let resource = self.schemas.nodes[*from].resource;
            *from += 1;
            if !self.sources.is_dynamic(resource)
                || self.schemas.dynamic.iter().any(|(id, _)| *id == resource)
            {
                continue;
            }
            let mut found = DynamicResource::default();
            for (name, place) in self.sources.dynamic_anchors(resource) {
                found.anchors.push((name, self.node(place, resource)));
            }
            let of = self.sources.resource(resource);
            if of.recursive_anchor {
                let root = of.root;
                found.recursive = Some(self.node(root, resource));
            }
            self.schemas.dynamic.push((resource, found));
        }
        !self.pending.is_empty()
    }

    fn read(&mut self, id: NodeId) -> Result<(), Error> {
        let Node { value, resource, .. } = *self.schemas.node(id);
        let keywords = match self.sources.document.kind(value) {
            Kind::Bool(true) => Vec::new(),
            Kind::Bool(false) => vec![Keyword::Never],
            Kind::Object(_) => self.read_keywords(value, resource)?,
            _ => return Err(self.not_a_schema(value)),
        };
        self.schemas.nodes[id.index()].keywords = keywords.into();
        Ok(())
    }

    fn not_a_schema(&self, value: ValueId) -> Error {
        let kind = ErrorKind::InvalidKeyword { keyword: self.keyword_of(value).into() };
        Error::new(kind, "a schema is neither an object nor a boolean")
            .at(self.sources.location(value))
    }

    /// Returns the nearest member name on the way from `value` to the root, for messages.
    fn keyword_of(&self, value: ValueId) -> String {
        let document = &self.sources.document;
        let mut at = Some(value);
        while let Some(value) = at {
            if let Step::Member(name) = document.step(value) {
                return document.names.get(name).to_owned();
            }
            at = document.parent(value);
        }
        "$schema".to_owned()
    }

    fn read_keywords(
        &mut self,
        schema: ValueId,
        resource: ResourceId,
    ) -> Result<Vec<Keyword>, Error> {
        let draft = self.sources.resource(resource).draft;
        self.schemas.integers_are_digits |= draft == Draft::Draft4;
        let mut place = Place { schema, resource, draft, groups: 0, keywords: Vec::new() };
        let entries: Vec<_> = self.sources.document.entries(schema).collect();
        if draft <= Draft::Draft7
            && let Some(reference) = self.sources.document.member_named(schema, "$ref")
        {
            // Up to draft 7, `$ref` stands alone.
            self.keyword("$ref", reference, &mut place)?;
            return Ok(place.keywords);
        }
        for (name, value) in entries {
            let name = self.sources.document.names.get(name).to_owned();
            self.keyword(&name, value, &mut place)?;
        }
        Ok(place.keywords)
    }

    fn keyword(&mut self, name: &str, value: ValueId, place: &mut Place) -> Result<(), Error> {
        let vocabulary = self.sources.resource(place.resource).vocabulary;
        let draft = place.draft;
        if vocabulary.applicator && self.applicator(name, value, place)? {
            return Ok(());
        }
        if vocabulary.validation && self.assertion(name, value, place)? {
            return Ok(());
        }
        let keyword = match name {
            "$ref" => {
                let target = self.sources.resolve(value, place.resource)?;
                Keyword::Ref(self.target(target))
            }
            "$dynamicRef" if draft >= Draft::Draft202012 => {
                self.dynamic_ref(value, place.resource)?
            }
            "$recursiveRef" if draft == Draft::Draft201909 => {
                let root = self.sources.resource(place.resource).root;
                let recursive = self.sources.resource(place.resource).recursive_anchor;
                let root = self.target(root);
                if recursive { Keyword::RecursiveRef(root) } else { Keyword::Ref(root) }
            }
            "format" => return self.format(value, place),
            _ => return Ok(()),
        };
        place.keywords.push(keyword);
        Ok(())
    }

    /// Returns the node of a schema that a reference leads to.
    fn target(&mut self, value: ValueId) -> NodeId {
        let resource = self.sources.resource_of(value);
        self.node(value, resource)
    }

    fn dynamic_ref(&mut self, value: ValueId, resource: ResourceId) -> Result<Keyword, Error> {
        let target = self.sources.resolve(value, resource)?;
        let initial = self.target(target);
        let fragment = self.sources.document.string(value).and_then(|r| r.split_once('#'));
        let anchor = fragment.and_then(|(_, name)| self.sources.document.names.find(name));
        let of = self.schemas.node(initial).resource;
        Ok(match anchor {
            Some(anchor) if self.sources.dynamic_anchor(of, anchor) == Some(target) => {
                Keyword::DynamicRef { anchor, initial }
            }
            _ => Keyword::Ref(initial),
        })
    }

    /// Reads a keyword whose value is, or contains, schemas. Returns whether it was one.
    fn applicator(&mut self, name: &str, value: ValueId, place: &mut Place) -> Result<bool, Error> {
        let (draft, resource) = (place.draft, place.resource);
        let keyword = match name {
            "allOf" => Keyword::AllOf(self.schema_list(value, resource)?),
            "anyOf" => Keyword::AnyOf(self.schema_list(value, resource)?),
            "oneOf" => {
                let parts = self.schema_list(value, resource)?;
                if self.options.one_of_as_any_of {
                    self.departs(value, "`oneOf` is read as `anyOf`, on request");
                    Keyword::AnyOf(parts)
                } else {
                    Keyword::OneOf(parts)
                }
            }
            "not" => Keyword::Not(self.node(value, resource)),
            "if" if draft >= Draft::Draft7 => {
                let branch = |reader: &mut Self, name| {
                    let value = reader.sources.document.member_named(place.schema, name)?;
                    Some(reader.node(value, resource))
                };
                let then = branch(self, "then");
                let otherwise = branch(self, "else");
                Keyword::If { condition: self.node(value, resource), then, otherwise }
            }
            "properties" | "patternProperties" | "additionalProperties" => {
                if !place.first(Group::Members) {
                    return Ok(true);
                }
                Keyword::Members(self.members(place)?)
            }
            "propertyNames" if draft >= Draft::Draft6 => {
                if let Some(pattern) = self.sources.document.member_named(value, "pattern")
                    && let Kind::String(text) = self.sources.document.kind(pattern)
                    && let Some(pattern) = self.pattern(text, pattern)?
                {
                    self.list_texts(pattern)?;
                }
                Keyword::MemberNames(self.node(value, resource))
            }
            "dependencies" => return self.dependencies(value, place).map(|()| true),
            "dependentSchemas" if draft >= Draft::Draft201909 => {
                let entries: Vec<_> = self.object(value)?;
                let parts = entries.into_iter().map(|(name, v)| (name, self.node(v, resource)));
                Keyword::DependentSchemas(parts.collect())
            }
            "items" | "prefixItems" | "additionalItems" => {
                if !place.first(Group::Elements) {
                    return Ok(true);
                }
                match self.elements(place)? {
                    Some(id) => Keyword::Elements(id),
                    None => return Ok(true),
                }
            }
            "contains" if draft >= Draft::Draft6 => {
                if !place.first(Group::Contains) {
                    return Ok(true);
                }
                self.contains(value, place)?
            }
            "unevaluatedItems" if draft >= Draft::Draft201909 => {
                Keyword::UnevaluatedElements(self.node(value, resource))
            }
            "unevaluatedProperties" if draft >= Draft::Draft201909 => {
                Keyword::UnevaluatedMembers(self.node(value, resource))
            }
            _ => return Ok(false),
        };
        place.keywords.push(keyword);
        Ok(true)
    }

    /// Reads a keyword that asserts something by itself. Returns whether it was one.
    fn assertion(&mut self, name: &str, value: ValueId, place: &mut Place) -> Result<bool, Error> {
        let draft = place.draft;
        let keyword = match name {
            "type" => Keyword::Type(self.types(value)?),
            "enum" => {
                let Kind::Array(_) = self.sources.document.kind(value) else {
                    return Err(self.invalid(value, "is not an array"));
                };
                let values: Vec<_> = self.sources.document.children(value).collect();
                self.note_numbers(&values)?;
                Keyword::Values(values.into())
            }
            "const" if draft >= Draft::Draft6 => {
                self.note_numbers(&[value])?;
                Keyword::Values([value].into())
            }
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
                if !place.first(Group::Number) {
                    return Ok(true);
                }
                match self.number(place)? {
                    Some(id) => Keyword::Number(id),
                    None => return Ok(true),
                }
            }
            "minLength" | "maxLength" => {
                if !place.first(Group::Length) {
                    return Ok(true);
                }
                let (min, max) = self.counts(place.schema, "minLength", "maxLength")?;
                Keyword::Length { min, max }
            }
            "pattern" => {
                let Kind::String(text) = self.sources.document.kind(value) else {
                    return Err(self.invalid(value, "is not a string"));
                };
                match self.pattern(text, value)? {
                    Some(id) => Keyword::Pattern(id),
                    None => Keyword::Unenforced,
                }
            }
            "required" => Keyword::Required(self.name_list(value)?),
            "minProperties" | "maxProperties" => {
                if !place.first(Group::MemberCount) {
                    return Ok(true);
                }
                let (min, max) = self.counts(place.schema, "minProperties", "maxProperties")?;
                Keyword::MemberCount { min, max }
            }
            "dependentRequired" if draft >= Draft::Draft201909 => {
                let mut parts = Vec::new();
                for (name, list) in self.object(value)? {
                    parts.push((name, self.name_list(list)?));
                }
                Keyword::DependentRequired(parts.into())
            }
            "minItems" | "maxItems" => {
                if !place.first(Group::ElementCount) {
                    return Ok(true);
                }
                let (min, max) = self.counts(place.schema, "minItems", "maxItems")?;
                Keyword::ElementCount { min, max }
            }
            "uniqueItems" => match self.sources.document.kind(value) {
                // One element differs from all others.
                Kind::Bool(true) if self.counts(place.schema, "minItems", "maxItems")?.1 > 1 => {
                    Keyword::Unique
                }
                Kind::Bool(_) => return Ok(true),
                _ => return Err(self.invalid(value, "is not a boolean")),
            },
            _ => return Ok(false),
        };
        place.keywords.push(keyword);
        Ok(true)
    }

    /// Notes the canonical spelling of every number in `values`.
    fn note_numbers(&mut self, values: &[ValueId]) -> Result<(), Error> {
        let mut pending = values.to_vec();
        while let Some(value) = pending.pop() {
            match self.sources.document.kind(value) {
                Kind::Number(text) => {
                    let canonical = self.decimal(value)?.to_string();
                    let canonical = self.sources.document.names.intern(&canonical);
                    self.spellings.push((text, canonical));
                    self.spellings.push((canonical, canonical));
                }
                Kind::Array(_) | Kind::Object(_) => {
                    pending.extend(self.sources.document.children(value));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn dependencies(&mut self, value: ValueId, place: &mut Place) -> Result<(), Error> {
        let mut required = Vec::new();
        let mut schemas = Vec::new();
        for (name, part) in self.object(value)? {
            match self.sources.document.kind(part) {
                Kind::Array(_) => required.push((name, self.name_list(part)?)),
                Kind::String(one) => required.push((name, [one].into())),
                _ => schemas.push((name, self.node(part, place.resource))),
            }
        }
        if !required.is_empty() {
            place.keywords.push(Keyword::DependentRequired(required.into()));
        }
        if !schemas.is_empty() {
            place.keywords.push(Keyword::DependentSchemas(schemas.into()));
        }
        Ok(())
    }

    fn members(&mut self, place: &Place) -> Result<MembersId, Error> {
        let member = |reader: &Self, name| reader.sources.document.member_named(place.schema, name);
        let mut properties = Vec::new();
        if let Some(value) = member(self, "properties") {
            for (name, value) in self.object(value)? {
                properties.push((name, self.node(value, place.resource)));
            }
            let says = ["additionalProperties", "unevaluatedProperties"];
            if self.options.closed_objects && says.iter().all(|name| member(self, name).is_none()) {
                self.departs(value, "no other members are taken, on request");
            }
        }
        self.order_as_hinted(place.schema, &mut properties)?;
        let mut patterns = Vec::new();
        if let Some(value) = member(self, "patternProperties") {
            for (name, value) in self.object(value)? {
                let Some(pattern) = self.pattern(name, value)? else { continue };
                patterns.push((pattern, self.node(value, place.resource)));
            }
        }
        let additional = member(self, "additionalProperties");
        if additional.is_some_and(|value| self.sources.document.kind(value) == Kind::Bool(false)) {
            for &(pattern, _) in &patterns {
                self.list_texts(pattern)?;
            }
        }
        let additional = additional.map(|value| self.node(value, place.resource));
        self.schemas.members.push(Members::new(properties, patterns, additional));
        Ok(MembersId::at(self.schemas.members.len() - 1))
    }

    fn elements(&mut self, place: &Place) -> Result<Option<ElementsId>, Error> {
        let member = |name| self.sources.document.member_named(place.schema, name);
        let is_array = |value| matches!(self.sources.document.kind(value), Kind::Array(_));
        let items = member("items");
        let (prefix, rest) = if place.draft >= Draft::Draft202012 {
            match (member("prefixItems"), items) {
                // The array form was dropped in 2020-12; without another reading it keeps its own,
                // unless the schema says that it is of 2020-12.
                (None, Some(list)) if is_array(list) && !self.says_its_draft(place) => {
                    (Some(list), member("additionalItems"))
                }
                other => other,
            }
        } else {
            match items {
                Some(list) if is_array(list) => (Some(list), member("additionalItems")),
                other => (None, other),
            }
        };
        if prefix.is_none() && rest.is_none() {
            return Ok(None);
        }
        let prefix = match prefix {
            Some(list) => self.schema_list(list, place.resource)?,
            None => Box::default(),
        };
        let rest = rest.map(|value| self.node(value, place.resource));
        self.schemas.elements.push(Elements { prefix, rest });
        Ok(Some(ElementsId::at(self.schemas.elements.len() - 1)))
    }

    /// Returns whether the draft was named by the schema or the caller.
    fn says_its_draft(&self, place: &Place) -> bool {
        let root = self.sources.resource(place.resource).root;
        self.options.draft.is_some()
            || self.sources.document.member_named(root, "$schema").is_some()
    }

    fn contains(&mut self, value: ValueId, place: &Place) -> Result<Keyword, Error> {
        let (mut min, mut max) = (1, UNBOUNDED);
        if place.draft >= Draft::Draft201909 {
            let member = |name| self.sources.document.member_named(place.schema, name);
            let (least, greatest) = (member("minContains"), member("maxContains"));
            if let Some(value) = least {
                min = self.count(value)?.unwrap_or(UNBOUNDED);
            }
            if let Some(value) = greatest {
                max = self.count(value)?.unwrap_or(UNBOUNDED);
            }
        }
        let schema = self.node(value, place.resource);
        let evaluates = place.draft >= Draft::Draft202012;
        Ok(Keyword::Contains(Contains { schema, min, max, evaluates }))
    }

    fn number(&mut self, place: &Place) -> Result<Option<NumberId>, Error> {
        let mut constraint = NumberConstraint::default();
        let sides = [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")];
        for (low, (inclusive, exclusive)) in [true, false].into_iter().zip(sides) {
            let member = |name| self.sources.document.member_named(place.schema, name);
            let (bound, strict) = (member(inclusive), member(exclusive));
            let mut bounds = Vec::new();
            let flag = strict.and_then(|v| match self.sources.document.kind(v) {
                Kind::Bool(flag) => Some(flag),
                _ => None,
            });
            if let Some(value) = strict
                && flag.is_some() != (place.draft == Draft::Draft4)
                && (flag.is_none() || self.says_its_draft(place))
            {
                let is = if flag.is_some() { "is not a number" } else { "is not a boolean" };
                return Err(self.invalid(value, is));
            }
            if let Some(value) = bound {
                let value = self.decimal(value)?;
                let strict = flag == Some(true);
                bounds.push(if strict { Bound::exclusive(value) } else { Bound::inclusive(value) });
            }
            if let (Some(value), None) = (strict, flag) {
                bounds.push(Bound::exclusive(self.decimal(value)?));
            }
            for bound in bounds {
                let mut part = NumberConstraint::default();
                *(if low { &mut part.minimum } else { &mut part.maximum }) = Some(bound);
                constraint.intersect(&part);
            }
        }
        if let Some(value) = self.sources.document.member_named(place.schema, "multipleOf") {
            let step = self.decimal(value)?;
            if step.is_zero() || step.is_negative() {
                return Err(self.invalid(value, "is not above 0"));
            }
            constraint.multiple_of.push(step);
        }
        if constraint == NumberConstraint::default() {
            return Ok(None);
        }
        self.schemas.numbers.push(constraint);
        Ok(Some(NumberId::at(self.schemas.numbers.len() - 1)))
    }

    /// Lists the keyword whose value is `value` as one that is not read by the standard.
    fn departs(&mut self, value: ValueId, reason: &str) {
        let departure = Departure {
            pointer: self.sources.document.pointer(value),
            keyword: self.keyword_of(value),
            reason: reason.to_owned(),
        };
        self.departures.push((value, departure));
    }

    fn invalid(&self, value: ValueId, is: &str) -> Error {
        let keyword = self.keyword_of(value);
        let message = format!("the value of `{keyword}` {is}");
        let kind = ErrorKind::InvalidKeyword { keyword: keyword.into() };
        Error::new(kind, message).at(self.sources.location(value))
    }
}
