//! The engine as bytes, for an artifact, and back. Every id in the bytes is checked, so bytes that are
//! not ours are refused.

use std::sync::Arc;

use super::document::Document;
use super::engine::{Array, Engine, Family, Object, RuleKey, Table};
use super::formula::{FormulaId, Formulas, SavedFormulas};
use super::names::NameId;
use super::number::{Bound, Decimal, IntegerSpelling, NumberConstraint};
use super::options::JsonOptions;
use super::order::{OrderId, Orders};
use super::program::Program;
use super::schema::Schemas;
use crate::error::{Error, ErrorKind};
use crate::ids::RuleId;
use crate::limits::Limits;

/// The error for bytes that no engine wrote.
pub(super) fn corrupted() -> Error {
    Error::new(ErrorKind::Artifact, "the JSON Schema part of the artifact is corrupted")
}

/// The first bytes of every engine: what it is, and the version of its form.
pub(super) const MAGIC: &[u8] = b"schemac json schema 1\n";

/// The tables of an engine.
#[derive(serde::Serialize, serde::Deserialize)]
struct Saved {
    document: Document,
    schemas: Schemas,
    options: JsonOptions,
    formulas: SavedFormulas,
    scopes: Vec<Box<[u32]>>,
    orders: Vec<Box<[NameId]>>,
    goals: Vec<(FormulaId, OrderId)>,
    objects: Vec<Object>,
    arrays: Vec<Array>,
    sets: Vec<Box<[u32]>>,
    families: Vec<Family>,
    rules: Vec<(RuleKey, RuleId)>,
}

/// Returns the tables of `engine` as bytes.
pub(super) fn encode(engine: &Engine) -> Vec<u8> {
    let program = &engine.formulas.program;
    let (orders, goals) = engine.orders.save();
    let mut rules: Vec<_> = engine.rules.iter().map(|(&goal, &rule)| (goal, rule)).collect();
    rules.sort_unstable();
    let saved = Saved {
        document: program.document.clone(),
        schemas: program.schemas.clone(),
        options: program.options.clone(),
        formulas: engine.formulas.save(),
        scopes: engine.formulas.scopes.save(),
        orders,
        goals,
        objects: engine.objects.items().to_vec(),
        arrays: engine.arrays.items().to_vec(),
        sets: engine.sets.items().to_vec(),
        families: engine.families.items().to_vec(),
        rules,
    };
    let mut bytes = MAGIC.to_vec();
    // Writing plain tables to memory cannot fail; were it to, the reader would refuse the rest.
    bytes.extend(postcard::to_allocvec(&saved).unwrap_or_default());
    bytes
}

/// Returns whether `bytes` are those of a JSON Schema engine.
#[must_use]
pub fn is_expander(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Returns the expander of a JSON Schema from the bytes of [`crate::ir::Expander::to_bytes`]. The arena
/// and the rules that it was saved with must be restored beside it. Expanding keeps to `limits`.
///
/// # Errors
///
/// [`ErrorKind::Artifact`] if no engine of this version wrote these bytes.
pub fn decode_expander(
    bytes: &[u8],
    limits: &Limits,
) -> Result<Box<dyn crate::ir::Expander>, Error> {
    Ok(Box::new(decode(bytes, limits)?))
}

fn decode(bytes: &[u8], limits: &Limits) -> Result<Engine, Error> {
    let body = bytes.strip_prefix(MAGIC).ok_or_else(corrupted)?;
    let mut saved: Saved = postcard::from_bytes(body).map_err(|_| corrupted())?;
    saved.document.restore().ok_or_else(corrupted)?;
    saved.schemas.check(&saved.document).ok_or_else(corrupted)?;
    let in_names =
        |list: &[NameId]| list.iter().all(|&name| name.index() < saved.document.names.len());
    let orders = saved.orders.len();
    let tables_fit = saved.orders.iter().all(|list| in_names(list))
        && !saved.scopes.is_empty()
        && saved.families.iter().all(|family| match *family {
            Family::Value(goal, ..) => saved.formulas.contains(goal),
            Family::Members(id, _) | Family::Names(id, ..) | Family::Named(id, _) => {
                id.index() < saved.objects.len()
            }
            Family::Elements(id, _) => id.index() < saved.arrays.len(),
        })
        && saved.objects.iter().all(|object| {
            saved.formulas.contains(object.formula)
                && object.order.index() < orders
                && object.progress.taken.index() < saved.sets.len()
                && object.progress.past.is_none_or(|text| text.index() < saved.sets.len())
        })
        && saved.arrays.iter().all(|array| saved.formulas.contains(array.formula))
        && saved.rules.iter().all(|&((goal, ..), _)| saved.formulas.contains(goal))
        && saved.goals.iter().all(|&(goal, _)| saved.formulas.contains(goal));
    if !tables_fit {
        return Err(corrupted());
    }
    let orders =
        Orders::restore(&saved.orders, saved.goals, &saved.document).ok_or_else(corrupted)?;
    let program = Program {
        document: saved.document,
        schemas: saved.schemas,
        options: saved.options,
        limits: limits.clone(),
    };
    let formulas = Formulas::restore(Arc::new(program), saved.formulas, saved.scopes);
    let mut engine = Engine::new(formulas.ok_or_else(corrupted)?);
    engine.orders = orders;
    engine.objects = Table::restore(saved.objects);
    engine.arrays = Table::restore(saved.arrays);
    engine.sets = Table::restore(saved.sets);
    engine.families = Table::restore(saved.families);
    engine.rules = saved.rules.into_iter().collect();
    Ok(engine)
}

/// A [`NumberConstraint`] as it is saved: decimals as their digits.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "NumberConstraint")]
struct SavedNumber {
    integer: bool,
    minimum: Option<(String, bool)>,
    maximum: Option<(String, bool)>,
    multiple_of: Vec<String>,
    spelling: IntegerSpelling,
}

impl serde::Serialize for NumberConstraint {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bound = |b: &Option<Bound>| b.as_ref().map(|b| (b.value.to_string(), b.exclusive));
        SavedNumber {
            integer: self.integer,
            minimum: bound(&self.minimum),
            maximum: bound(&self.maximum),
            multiple_of: self.multiple_of.iter().map(ToString::to_string).collect(),
            spelling: self.integer_spelling,
        }
        .serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for NumberConstraint {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        let saved = SavedNumber::deserialize(deserializer)?;
        let limits = Limits::default();
        let decimal = |text: &str| Decimal::parse(text, &limits).map_err(D::Error::custom);
        let bound = |saved: Option<(String, bool)>| match saved {
            None => Ok(None),
            Some((text, exclusive)) => Ok(Some(Bound { value: decimal(&text)?, exclusive })),
        };
        Ok(Self {
            integer: saved.integer,
            minimum: bound(saved.minimum)?,
            maximum: bound(saved.maximum)?,
            multiple_of: saved.multiple_of.iter().map(|t| decimal(t)).collect::<Result<_, _>>()?,
            integer_spelling: saved.spelling,
        })
    }
}
