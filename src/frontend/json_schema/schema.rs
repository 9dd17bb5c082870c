//! Schemas as a flat table of nodes, each a list of parsed keywords. The reader fills it; formulas are
//! made from it.

use super::document::{Document, ValueId};
use super::names::NameId;
use super::number::NumberConstraint;

/// A kind of value, as formulas split by it: the JSON types, with `false` and `true` apart, because
/// then each constant is one kind. `integer` is a constraint on numbers.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub(super) enum Type {
    /// `null`.
    Null,
    /// `false`.
    False,
    /// `true`.
    True,
    /// Numbers.
    Number,
    /// Strings.
    String,
    /// Arrays.
    Array,
    /// Objects.
    Object,
}

impl Type {
    /// All of them.
    pub(super) const ALL: [Self; 7] = [
        Self::Null,
        Self::False,
        Self::True,
        Self::Number,
        Self::String,
        Self::Array,
        Self::Object,
    ];
}

/// A set of types; numbers may be restricted to integers.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
pub(super) struct TypeSet(u8);

impl TypeSet {
    /// No type.
    pub(super) const NONE: Self = Self(0);
    /// The types of scalar values.
    pub(super) const SCALARS: Self = Self(0x1f);
    const INTEGER: u8 = 0x80;

    /// Returns the set with `add` added.
    pub(super) const fn with(self, add: Type) -> Self {
        Self(self.0 | 1 << add as u8)
    }

    /// Returns the set with the integers added.
    pub(super) const fn with_integer(self) -> Self {
        Self(self.0 | Self::INTEGER)
    }

    /// Returns whether values of `t` may be in the set.
    pub(super) const fn contains(self, t: Type) -> bool {
        self.0 & 1 << t as u8 != 0 || (matches!(t, Type::Number) && self.0 & Self::INTEGER != 0)
    }

    /// Returns whether of the numbers only the integers are in the set.
    pub(super) const fn integers_only(self) -> bool {
        self.0 & Self::INTEGER != 0 && self.0 & 1 << Type::Number as u8 == 0
    }

    /// Returns whether no type is in both sets.
    pub(super) const fn is_disjoint(self, other: Self) -> bool {
        self.0 & other.0 == 0
    }

    /// Returns whether every type of this set is in `other`.
    pub(super) const fn is_subset(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }
}

/// Declares a 32-bit index into one of the tables here.
macro_rules! id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
        )]
        #[serde(transparent)]
        pub(super) struct $name(u32);

        impl $name {
            /// Returns the id of position `index`. Tables hold fewer entries than the source has
            /// bytes or the limits allow, so 32 bits are enough.
            pub(super) fn at(index: usize) -> Self {
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }

            /// Returns this id as a position in its table.
            pub(super) const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}
pub(super) use id;

id! {
    /// A schema in the table of [`Schemas`].
    NodeId
}
id! {
    /// The members part of a schema.
    MembersId
}
id! {
    /// The elements part of a schema.
    ElementsId
}
id! {
    /// A constraint on numbers.
    NumberId
}
id! {
    /// A `pattern`, or a name of `patternProperties`.
    PatternId
}

/// `properties`, `patternProperties` and `additionalProperties` of one schema.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Members {
    /// The declared names in the order of the text.
    pub(super) properties: Box<[(NameId, NodeId)]>,
    /// The same, sorted by name.
    #[serde(skip)]
    sorted: Box<[(NameId, NodeId)]>,
    /// The name patterns.
    pub(super) patterns: Box<[(PatternId, NodeId)]>,
    /// What all other members must satisfy.
    pub(super) additional: Option<NodeId>,
}

impl Members {
    /// Returns the members part with these keywords.
    pub(super) fn new(
        properties: Vec<(NameId, NodeId)>,
        patterns: Vec<(PatternId, NodeId)>,
        additional: Option<NodeId>,
    ) -> Self {
        let mut sorted = properties.clone();
        sorted.sort_unstable();
        Self {
            properties: properties.into(),
            sorted: sorted.into(),
            patterns: patterns.into(),
            additional,
        }
    }

    /// Returns the schema of the declared name `name`.
    pub(super) fn property(&self, name: NameId) -> Option<NodeId> {
        let at = self.sorted.binary_search_by_key(&name, |&(name, _)| name).ok()?;
        Some(self.sorted[at].1)
    }
}

/// `prefixItems` and `items` (or the older `items` and `additionalItems`) of one schema.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Elements {
    /// The schemas of the first elements.
    pub(super) prefix: Box<[NodeId]>,
    /// What all elements after them must satisfy.
    pub(super) rest: Option<NodeId>,
}

/// The counts that `contains` asks for.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Contains {
    /// What is counted.
    pub(super) schema: NodeId,
    /// The least number of elements that satisfy it.
    pub(super) min: u32,
    /// The greatest, or [`crate::ir::UNBOUNDED`].
    pub(super) max: u32,
    /// Whether the elements that satisfy it count as evaluated (2020-12).
    pub(super) evaluates: bool,
}

/// A parsed keyword, or a group of keywords that only make sense together.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) enum Keyword {
    /// The schema `false`.
    Never,
    /// `type`.
    Type(TypeSet),
    /// `enum` and `const`: the values.
    Values(Box<[ValueId]>),
    /// The numeric bounds and `multipleOf`.
    Number(NumberId),
    /// `minLength` and `maxLength`.
    Length {
        /// The least number of characters.
        min: u32,
        /// The greatest, or [`crate::ir::UNBOUNDED`].
        max: u32,
    },
    /// `pattern`.
    Pattern(PatternId),
    /// `format`, of a known name.
    Format(NameId),
    /// `properties`, `patternProperties`, `additionalProperties`.
    Members(MembersId),
    /// `required`.
    Required(Box<[NameId]>),
    /// `minProperties` and `maxProperties`.
    MemberCount {
        /// The least number.
        min: u32,
        /// The greatest, or [`crate::ir::UNBOUNDED`].
        max: u32,
    },
    /// `propertyNames`.
    MemberNames(NodeId),
    /// `dependentRequired`, and the names of `dependencies`.
    DependentRequired(Box<[(NameId, Box<[NameId]>)]>),
    /// `dependentSchemas`, and the schemas of `dependencies`.
    DependentSchemas(Box<[(NameId, NodeId)]>),
    /// `unevaluatedProperties`.
    UnevaluatedMembers(NodeId),
    /// `prefixItems` and `items`.
    Elements(ElementsId),
    /// `minItems` and `maxItems`.
    ElementCount {
        /// The least number.
        min: u32,
        /// The greatest, or [`crate::ir::UNBOUNDED`].
        max: u32,
    },
    /// `uniqueItems: true`.
    Unique,
    /// `contains`, `minContains`, `maxContains`.
    Contains(Contains),
    /// `unevaluatedItems`.
    UnevaluatedElements(NodeId),
    /// `allOf`.
    AllOf(Box<[NodeId]>),
    /// `anyOf`.
    AnyOf(Box<[NodeId]>),
    /// `oneOf`.
    OneOf(Box<[NodeId]>),
    /// `not`.
    Not(NodeId),
    /// `if`, `then` and `else`.
    If {
        /// The condition.
        condition: NodeId,
        /// What must hold if it holds.
        then: Option<NodeId>,
        /// What must hold if it does not.
        otherwise: Option<NodeId>,
    },
    /// `$ref`.
    Ref(NodeId),
    /// `$dynamicRef` to a dynamic anchor, with the schema it means if no scope says otherwise.
    DynamicRef {
        /// The name of the anchor.
        anchor: NameId,
        /// Where the reference leads at first.
        initial: NodeId,
    },
    /// `$recursiveRef` to a root with `$recursiveAnchor: true`.
    RecursiveRef(NodeId),
    /// Something that is not enforced, on request: it holds of everything, and so does its negation.
    Unenforced,
}

impl Keyword {
    /// Returns the names that the keyword may have in the text of a schema.
    pub(super) const fn names(&self) -> &'static [&'static str] {
        match self {
            Self::Never | Self::Unenforced => &[],
            Self::Type(_) => &["type"],
            Self::Values(_) => &["enum", "const"],
            Self::Number(_) => &[
                "minimum",
                "maximum",
                "exclusiveMinimum",
                "exclusiveMaximum",
                "multipleOf",
                "format",
            ],
            Self::Length { .. } => &["minLength", "maxLength"],
            Self::Pattern(_) => &["pattern"],
            Self::Format(_) => &["format"],
            Self::Members(_) => &["properties", "patternProperties", "additionalProperties"],
            Self::Required(_) => &["required"],
            Self::MemberCount { .. } => &["minProperties", "maxProperties"],
            Self::MemberNames(_) => &["propertyNames"],
            Self::DependentRequired(_) => &["dependentRequired", "dependencies"],
            Self::DependentSchemas(_) => &["dependentSchemas", "dependencies"],
            Self::UnevaluatedMembers(_) => &["unevaluatedProperties"],
            Self::Elements(_) => &["prefixItems", "items", "additionalItems"],
            Self::ElementCount { .. } => &["minItems", "maxItems"],
            Self::Unique => &["uniqueItems"],
            Self::Contains(_) => &["contains", "minContains", "maxContains"],
            Self::UnevaluatedElements(_) => &["unevaluatedItems"],
            Self::AllOf(_) => &["allOf"],
            Self::AnyOf(_) => &["anyOf"],
            Self::OneOf(_) => &["oneOf", "anyOf"],
            Self::Not(_) => &["not"],
            Self::If { .. } => &["if", "then", "else"],
            Self::Ref(_) => &["$ref", "$recursiveRef", "$dynamicRef"],
            Self::DynamicRef { .. } => &["$dynamicRef"],
            Self::RecursiveRef(_) => &["$recursiveRef"],
        }
    }
}

/// A schema.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Node {
    /// Where it stands.
    pub(super) value: ValueId,
    /// The resource that it belongs to.
    pub(super) resource: u32,
    /// Its keywords, in the order of the text.
    pub(super) keywords: Box<[Keyword]>,
}

/// A pattern: its text, and where it stands.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Pattern {
    /// The text.
    pub(super) text: NameId,
    /// The string itself, or the value of the member whose name it is.
    pub(super) value: ValueId,
    /// The only text that it matches, if it is as plain as `^abc$`.
    pub(super) exact: Option<NameId>,
    /// The texts that it matches, in order, if all names of some object must match it and they are few.
    pub(super) few: Box<[NameId]>,
}

/// Where the dynamic anchors of the resources lead.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct DynamicResource {
    /// The dynamic anchors by name.
    pub(super) anchors: Vec<(NameId, NodeId)>,
    /// The root, if it is a recursive anchor.
    pub(super) recursive: Option<NodeId>,
}

/// All parsed schemas.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Schemas {
    /// The schemas; the first is the root.
    pub(super) nodes: Vec<Node>,
    /// Members parts.
    pub(super) members: Vec<Members>,
    /// Elements parts.
    pub(super) elements: Vec<Elements>,
    /// Constraints on numbers.
    pub(super) numbers: Vec<NumberConstraint>,
    /// Whether some schema is of draft 4, in which `1.0` is no integer.
    pub(super) integers_are_digits: bool,
    /// Patterns.
    pub(super) patterns: Vec<Pattern>,
    /// The resources that have dynamic anchors.
    pub(super) dynamic: Vec<(u32, DynamicResource)>,
}

impl Schemas {
    /// Checks every id of tables that were read from bytes, and rebuilds what is not saved.
    pub(super) fn check(&mut self, document: &Document) -> Option<()> {
        let value = |id: ValueId| id.index() < document.len();
        let name = |id: NameId| id.index() < document.names.len();
        let node = |id: NodeId| id.index() < self.nodes.len();
        let list = |ids: &[NodeId]| ids.iter().all(|&id| node(id));
        let named = |parts: &[(NameId, NodeId)]| parts.iter().all(|&(n, id)| name(n) && node(id));
        let names = |list: &[NameId]| list.iter().all(|&n| name(n));
        let pattern = |id: PatternId| id.index() < self.patterns.len();
        let keyword = |keyword: &Keyword| match keyword {
            Keyword::Values(values) => values.iter().all(|&id| value(id)),
            Keyword::Number(id) => id.index() < self.numbers.len(),
            Keyword::Pattern(id) => pattern(*id),
            Keyword::Format(id) => name(*id),
            Keyword::Members(id) => id.index() < self.members.len(),
            Keyword::Required(list) => names(list),
            Keyword::DependentRequired(parts) => {
                parts.iter().all(|(n, list)| name(*n) && names(list))
            }
            Keyword::DependentSchemas(parts) => named(parts),
            Keyword::Elements(id) => id.index() < self.elements.len(),
            Keyword::Contains(contains) => node(contains.schema),
            Keyword::AllOf(parts) | Keyword::AnyOf(parts) | Keyword::OneOf(parts) => list(parts),
            Keyword::MemberNames(id)
            | Keyword::UnevaluatedMembers(id)
            | Keyword::UnevaluatedElements(id)
            | Keyword::Not(id)
            | Keyword::Ref(id)
            | Keyword::RecursiveRef(id) => node(*id),
            Keyword::If { condition, then, otherwise } => {
                node(*condition) && [then, otherwise].into_iter().flatten().all(|&id| node(id))
            }
            Keyword::DynamicRef { anchor, initial } => name(*anchor) && node(*initial),
            Keyword::Never
            | Keyword::Type(_)
            | Keyword::Length { .. }
            | Keyword::MemberCount { .. }
            | Keyword::ElementCount { .. }
            | Keyword::Unique
            | Keyword::Unenforced => true,
        };
        let fits = !self.nodes.is_empty()
            && self.nodes.iter().all(|n| value(n.value) && n.keywords.iter().all(keyword))
            && self.members.iter().all(|members| {
                named(&members.properties)
                    && members.patterns.iter().all(|&(p, id)| pattern(p) && node(id))
                    && members.additional.is_none_or(node)
            })
            && self.elements.iter().all(|e| list(&e.prefix) && e.rest.is_none_or(node))
            && self.patterns.iter().all(|p| {
                name(p.text)
                    && value(p.value)
                    && p.exact.is_none_or(name)
                    && p.few.iter().all(|&text| name(text))
            })
            && self
                .dynamic
                .iter()
                .all(|(_, dynamic)| named(&dynamic.anchors) && dynamic.recursive.is_none_or(node));
        fits.then_some(())?;
        for members in &mut self.members {
            let sorted = std::mem::take(&mut members.properties).into_vec();
            let patterns = std::mem::take(&mut members.patterns).into_vec();
            *members = Members::new(sorted, patterns, members.additional);
        }
        Some(())
    }

    /// Returns the schema `id`.
    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }
}
