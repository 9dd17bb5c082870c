//! Where schemas live: documents, the resources inside them, their addresses and anchors. References
//! in, places in the [`Document`] out.
//!
//! A resource is a schema with its own address (`$id`); every document is at least one. Addresses are
//! resolved as RFC 3986 section 5 says (by `fluent-uri`). Nothing is fetched: documents come from
//! the caller's [`Retrieve`], and the meta-schemas of the standard are built in. Everything iterates,
//! so depth is no danger; that is why this is not one of the crates that resolve references in
//! `serde_json` values, which are themselves built and dropped recursively.

use std::fmt;

use fluent_uri::{Iri, IriRef};
use hashbrown::HashMap;

use super::document::{Document, Kind, ValueId};
use super::meta;
use super::names::NameId;
use super::options::{Draft, JsonOptions, Vocabularies};
use crate::error::{Error, ErrorKind, Location};
use crate::ir::Departure;
use crate::limits::Limits;

/// Finds the other documents that a schema refers to.
///
/// ```
/// use schemac::frontend::json_schema::Retrieve;
///
/// let shared = |uri: &str| (uri == "https://example.com/id.json").then(|| r#"{"type":"integer"}"#.to_owned());
/// assert!(shared.retrieve("https://example.com/id.json").is_some());
/// ```
pub trait Retrieve {
    /// Returns the text of the document at the absolute address `uri` (without a fragment), or
    /// `None` if there is none.
    fn retrieve(&self, uri: &str) -> Option<String>;
}

impl<F: Fn(&str) -> Option<String>> Retrieve for F {
    fn retrieve(&self, uri: &str) -> Option<String> {
        self(uri)
    }
}

/// The address of a document that has none. It is hierarchical, so that relative addresses inside the
/// document resolve among each other.
const NO_ADDRESS: &str = "schema:///";

/// A resource: a position in the table of [`Sources`].
pub(super) type ResourceId = u32;

/// A schema with an address of its own.
#[derive(Clone, Debug)]
pub(super) struct Resource {
    /// Its root.
    pub(super) root: ValueId,
    /// Its absolute address, without a fragment.
    uri: String,
    /// The draft it is written in.
    pub(super) draft: Draft,
    /// Which keywords of that draft are in force.
    pub(super) vocabulary: Vocabulary,
    /// Whether `$recursiveAnchor` is true at its root.
    pub(super) recursive_anchor: bool,
}

/// Which optional sets of keywords a meta-schema switches on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Vocabulary {
    /// The assertions of the validation vocabulary (`type`, `minimum`, …).
    pub(super) validation: bool,
    /// The applicators.
    pub(super) applicator: bool,
}

impl Vocabulary {
    const ALL: Self = Self { validation: true, applicator: true };
}

/// The named places of the resources.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    place: ValueId,
    dynamic: bool,
}

/// All documents that a schema consists of.
pub(super) struct Sources<'a> {
    /// Their values.
    pub(super) document: Document,
    resources: Vec<Resource>,
    by_uri: HashMap<String, ResourceId>,
    roots: HashMap<ValueId, ResourceId>,
    anchors: HashMap<(ResourceId, NameId), Anchor>,
    dynamic: bool,
    options: &'a JsonOptions,
    /// Where the meta-schemas ask for what is not enforced.
    pub(super) departures: Vec<(ValueId, Departure)>,
    retrieve: Option<&'a dyn Retrieve>,
    limits: &'a Limits,
}

impl fmt::Debug for Sources<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").field("resources", &self.resources).finish_non_exhaustive()
    }
}

/// Keywords whose value is a schema, or a list of schemas.
const SCHEMAS: [&str; 17] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "extends",
];
/// Keywords whose value maps names to schemas.
const MAPS: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

impl<'a> Sources<'a> {
    /// Returns the sources of the one schema `text`, and its root.
    pub(super) fn new(
        text: &str,
        options: &'a JsonOptions,
        retrieve: Option<&'a dyn Retrieve>,
        limits: &'a Limits,
    ) -> Result<(Self, ValueId), Error> {
        let mut sources = Self {
            document: Document::default(),
            resources: Vec::new(),
            by_uri: HashMap::new(),
            roots: HashMap::new(),
            anchors: HashMap::new(),
            dynamic: false,
            options,
            departures: Vec::new(),
            retrieve,
            limits,
        };
        let root = sources.load(text, NO_ADDRESS)?;
        Ok((sources, root))
    }

    /// Returns the values, when all schemas are read.
    pub(super) fn into_document(self) -> Document {
        self.document
    }

    /// Returns the drafts of the resources.
    pub(super) fn drafts(&self) -> Vec<Draft> {
        self.resources.iter().map(|resource| resource.draft).collect()
    }

    /// Returns the resource number `id`.
    pub(super) fn resource(&self, id: ResourceId) -> &Resource {
        &self.resources[id as usize]
    }

    /// Returns whether any dynamic or recursive anchor was met, so that scopes matter.
    pub(super) const fn dynamic(&self) -> bool {
        self.dynamic
    }

    /// Returns the resource that `value`, a subschema of `around`, belongs to.
    pub(super) fn resource_below(&self, value: ValueId, around: ResourceId) -> ResourceId {
        self.roots.get(&value).copied().unwrap_or(around)
    }

    /// Returns the resource that any `value` belongs to.
    pub(super) fn resource_of(&self, value: ValueId) -> ResourceId {
        let mut at = Some(value);
        while let Some(value) = at {
            if let Some(&id) = self.roots.get(&value) {
                return id;
            }
            at = self.document.parent(value);
        }
        0
    }

    /// Returns where `value` stands, for messages.
    pub(super) fn location(&self, value: ValueId) -> Location {
        Location::Pointer(self.document.pointer(value))
    }

    fn load(&mut self, text: &str, uri: &str) -> Result<ValueId, Error> {
        let root = self.document.parse(text, self.limits)?;
        let draft = self.options.draft.unwrap_or(Draft::Draft202012);
        self.add_resource(root, uri.to_owned(), draft)?;
        self.scan(root)?;
        Ok(root)
    }

    fn add_resource(
        &mut self,
        root: ValueId,
        uri: String,
        outer: Draft,
    ) -> Result<ResourceId, Error> {
        let (draft, vocabulary) = match self.document.member_named(root, "$schema") {
            None => (outer, Vocabulary::ALL),
            Some(value) => self.meta_schema(value, outer)?,
        };
        let id = u32::try_from(self.resources.len()).unwrap_or(u32::MAX);
        let recursive = self.document.member_named(root, "$recursiveAnchor");
        let recursive_anchor = draft == Draft::Draft201909
            && recursive.is_some_and(|v| self.document.kind(v) == Kind::Bool(true));
        self.dynamic |= recursive_anchor;
        self.by_uri.entry(uri.clone()).or_insert(id);
        self.roots.insert(root, id);
        self.resources.push(Resource { root, uri, draft, vocabulary, recursive_anchor });
        Ok(id)
    }

    /// Reads `$schema`.
    fn meta_schema(&mut self, value: ValueId, outer: Draft) -> Result<(Draft, Vocabulary), Error> {
        let Some(uri) = self.document.string(value).map(str::to_owned) else {
            let kind = ErrorKind::InvalidKeyword { keyword: "$schema".into() };
            return Err(Error::new(kind, "`$schema` is not a string").at(self.location(value)));
        };
        if let Some(draft) = Draft::from_meta_schema(&uri) {
            return Ok((draft, Vocabulary::ALL));
        }
        let text = self.retrieve.and_then(|r| r.retrieve(uri.strip_suffix('#').unwrap_or(&uri)));
        let Some(text) = text else {
            let message = "the meta-schema in `$schema` is of no known draft, and was not given";
            if self.takes_any_vocabulary() {
                self.departs(value, "$schema", message.to_owned());
                return Ok((outer, Vocabulary::ALL));
            }
            return Err(
                Error::new(ErrorKind::UnresolvedReference, message).at(self.location(value))
            );
        };
        let mut meta = Document::default();
        let root = meta.parse(&text, self.limits)?;
        let draft = meta
            .member_named(root, "$schema")
            .and_then(|v| meta.string(v))
            .and_then(Draft::from_meta_schema)
            .unwrap_or(outer);
        let Some(listed) = meta.member_named(root, "$vocabulary") else {
            return Ok((draft, Vocabulary::ALL));
        };
        let mut vocabulary = Vocabulary { validation: false, applicator: false };
        for (name, required) in meta.entries(listed) {
            let name = meta.names.get(name);
            let last = name.rsplit('/').next().unwrap_or_default();
            let standard = name.starts_with("https://json-schema.org/draft/20");
            match last {
                "validation" if standard => vocabulary.validation = true,
                "applicator" if standard => vocabulary.applicator = true,
                _ if standard || meta.kind(required) != Kind::Bool(true) => {}
                _ => {
                    let kind = ErrorKind::UnsupportedKeyword { keyword: "$vocabulary".into() };
                    let message =
                        format!("the meta-schema requires the unknown vocabulary `{name}`");
                    if self.takes_any_vocabulary() {
                        self.departs(value, "$schema", message);
                        continue;
                    }
                    return Err(Error::new(kind, message).at(self.location(value)));
                }
            }
        }
        Ok((draft, vocabulary))
    }

    fn takes_any_vocabulary(&self) -> bool {
        self.options.lenient || self.options.vocabularies == Vocabularies::Any
    }

    fn departs(&mut self, value: ValueId, keyword: &str, reason: String) {
        let pointer = self.document.pointer(value);
        let keyword = keyword.to_owned();
        self.departures.push((value, Departure { pointer, keyword, reason }));
    }

    /// Registers every resource and anchor below `root`, which is a resource already.
    fn scan(&mut self, root: ValueId) -> Result<(), Error> {
        // Most schemas name nothing: then there is nothing to look for.
        let names = &self.document.names;
        if !["$id", "id", "$anchor", "$dynamicAnchor"].iter().any(|name| names.find(name).is_some())
        {
            return Ok(());
        }
        let mut pending = vec![(root, self.resource_of(root))];
        while let Some((value, around)) = pending.pop() {
            if !matches!(self.document.kind(value), Kind::Object(_)) {
                continue;
            }
            let resource = self.identify(value, around)?;
            for (name, child) in self.document.entries(value) {
                let keyword = self.document.names.get(name);
                let array = matches!(self.document.kind(child), Kind::Array(_));
                if MAPS.contains(&keyword) || (SCHEMAS.contains(&keyword) && array) {
                    pending.extend(self.document.children(child).map(|c| (c, resource)));
                } else if SCHEMAS.contains(&keyword) {
                    pending.push((child, resource));
                }
            }
        }
        Ok(())
    }

    /// Registers the address and the anchors of one schema, and returns its resource.
    fn identify(&mut self, value: ValueId, around: ResourceId) -> Result<ResourceId, Error> {
        let mut resource = around;
        let mut draft = self.resource(around).draft;
        if let Some(schema) = self.document.member_named(value, "$schema")
            && let Some(own) = self.document.string(schema).and_then(Draft::from_meta_schema)
        {
            draft = own;
        }
        if draft <= Draft::Draft7 && self.document.member_named(value, "$ref").is_some() {
            return Ok(resource);
        }
        let keyword = if draft == Draft::Draft4 { "id" } else { "$id" };
        if let Some(id) = self.document.member_named(value, keyword)
            && let Some(text) = self.document.string(id).map(str::to_owned)
        {
            let (address, fragment) = split_fragment(&text);
            if !address.is_empty() {
                let base = self.resource(around).uri.clone();
                let uri = resolve(&base, address).unwrap_or_else(|| address.to_owned());
                resource = if self.resource(around).root == value {
                    self.by_uri.entry(uri.clone()).or_insert(around);
                    self.resources[around as usize].uri = uri;
                    around
                } else {
                    self.add_resource(value, uri, draft)?
                };
            }
            if draft <= Draft::Draft7 && !fragment.is_empty() && !fragment.starts_with('/') {
                let name = self.document.names.intern(fragment);
                self.anchors
                    .entry((resource, name))
                    .or_insert(Anchor { place: value, dynamic: false });
            }
        }
        if draft >= Draft::Draft201909 {
            self.named_anchor(value, resource, "$anchor", false);
        }
        if draft >= Draft::Draft202012 {
            self.named_anchor(value, resource, "$dynamicAnchor", true);
        }
        Ok(resource)
    }

    fn named_anchor(&mut self, value: ValueId, resource: ResourceId, keyword: &str, dynamic: bool) {
        if let Some(anchor) = self.document.member_named(value, keyword)
            && let Kind::String(name) = self.document.kind(anchor)
        {
            self.dynamic |= dynamic;
            self.anchors.insert((resource, name), Anchor { place: value, dynamic });
        }
    }

    /// Returns the place of the dynamic anchor `name` of `resource`.
    pub(super) fn dynamic_anchor(&self, resource: ResourceId, name: NameId) -> Option<ValueId> {
        self.anchors.get(&(resource, name)).filter(|a| a.dynamic).map(|a| a.place)
    }

    /// Returns the dynamic anchors of `resource`, by name.
    pub(super) fn dynamic_anchors(&self, resource: ResourceId) -> Vec<(NameId, ValueId)> {
        let mut found: Vec<_> = self
            .anchors
            .iter()
            .filter(|((of, _), anchor)| *of == resource && anchor.dynamic)
            .map(|(&(_, name), anchor)| (name, anchor.place))
            .collect();
        found.sort_unstable();
        found
    }

    /// Returns whether `resource` has any dynamic anchor, so that a scope must remember it.
    pub(super) fn is_dynamic(&self, resource: ResourceId) -> bool {
        self.resource(resource).recursive_anchor
            || self.anchors.iter().any(|(&(of, _), anchor)| of == resource && anchor.dynamic)
    }

    /// Returns the schema that the reference `value`, a string in `resource`, leads to.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnresolvedReference`] at the reference, or what is wrong with its document.
    pub(super) fn resolve(
        &mut self,
        value: ValueId,
        resource: ResourceId,
    ) -> Result<ValueId, Error> {
        let Some(text) = self.document.string(value).map(str::to_owned) else {
            let kind = ErrorKind::InvalidKeyword { keyword: "$ref".into() };
            return Err(Error::new(kind, "a reference is not a string").at(self.location(value)));
        };
        let unresolved = |sources: &Self, what: &str| {
            Error::new(ErrorKind::UnresolvedReference, format!("`{text}` refers to {what}"))
                .at(sources.location(value))
        };
        let (address, fragment) = split_fragment(&text);
        let target = if address.is_empty() {
            resource
        } else {
            match self.find(address, resource)? {
                Some(target) => target,
                None => return Err(unresolved(self, "a document that was not given")),
            }
        };
        let fragment = percent_decoded(fragment);
        let place = if fragment.is_empty() {
            Some(self.resource(target).root)
        } else if fragment.starts_with('/') {
            let root = self.resource(target).root;
            // Many schemas give addresses to their parts and go on writing pointers from the root of
            // the document. What leads nowhere in its resource can only mean that.
            let follow = |from| self.document.follow(from, &fragment);
            follow(root).or_else(|| follow(self.document.root_of(root)))
        } else {
            let name = self.document.names.find(&fragment);
            name.and_then(|name| self.anchors.get(&(target, name))).map(|anchor| anchor.place)
        };
        let place = place.ok_or_else(|| unresolved(self, "nothing"))?;
        match self.document.kind(place) {
            Kind::Object(_) | Kind::Bool(_) => Ok(place),
            _ => Err(unresolved(self, "what is no schema")),
        }
    }

    /// Returns the resource at `address`, as seen from `from`, loading its document if need be.
    fn find(&mut self, address: &str, from: ResourceId) -> Result<Option<ResourceId>, Error> {
        let Some(uri) = resolve(&self.resource(from).uri, address) else { return Ok(None) };
        if let Some(&id) = self.by_uri.get(&uri) {
            return Ok(Some(id));
        }
        let text = match meta::schema(&uri) {
            Some(text) => Some(text.to_owned()),
            None => {
                self.retrieve.and_then(|r| r.retrieve(uri.strip_prefix(NO_ADDRESS).unwrap_or(&uri)))
            }
        };
        let Some(text) = text else { return Ok(None) };
        let root = self.load(&text, &uri)?;
        Ok(Some(self.resource_of(root)))
    }
}

fn split_fragment(reference: &str) -> (&str, &str) {
    reference.split_once('#').unwrap_or((reference, ""))
}

/// Resolves `reference`, which has no fragment, against `base`.
fn resolve(base: &str, reference: &str) -> Option<String> {
    let reference = IriRef::parse(reference).ok()?;
    let base = Iri::parse(base).ok()?;
    Some(reference.resolve_against(&base).ok()?.normalize().into_string())
}

/// Decodes `%XX`; text that is not validly encoded stays as it is.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = |i: usize| after.get(i).and_then(|&b| char::from(b).to_digit(16));
        if byte == b'%'
            && let (Some(high), Some(low)) = (hex(0), hex(1))
            && let Ok(decoded) = u8::try_from(high * 16 + low)
        {
            bytes.push(decoded);
            rest = &after[2..];
        } else {
            bytes.push(byte);
            rest = after;
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}
