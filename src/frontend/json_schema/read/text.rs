//! `pattern`, `format`, and the patterns of names.

use super::Reader;
use crate::error::{Error, ErrorKind};
use crate::frontend::ecma;
use crate::frontend::json_schema::document::{Kind, ValueId};
use crate::frontend::json_schema::format;
use crate::frontend::json_schema::matching::Derivatives;
use crate::frontend::json_schema::names::NameId;
use crate::frontend::json_schema::number;
use crate::frontend::json_schema::options::Formats;
use crate::frontend::json_schema::read::Place;
use crate::frontend::json_schema::schema::{Keyword, NumberId, Pattern, PatternId};
use crate::ir::Arena;
use crate::ir::chars::Encoding;
use crate::limits::Budget;

/// Names that a pattern may allow to be listed, and the work that listing them may take.
const FEW_NAMES: usize = 64;
const LISTING_WORK: u32 = 4_096;

impl Reader<'_, '_> {
    /// Reads a pattern; `None` if it is left out on request.
    pub(super) fn pattern(
        &mut self,
        text: NameId,
        value: ValueId,
    ) -> Result<Option<PatternId>, Error> {
        if let Some(&id) = self.by_pattern.get(&text) {
            return Ok(Some(id));
        }
        let source = self.sources.document.names.get(text);
        let exact = match ecma::Pattern::parse(source, self.limits) {
            Ok(pattern) => pattern.exact_text(),
            Err(error) => {
                let unsupported = matches!(error.kind(), ErrorKind::UnsupportedFeature { .. });
                if unsupported && self.options.lenient {
                    self.departs(value, error.message());
                    return Ok(None);
                }
                return Err(error.at_pointer(self.sources.document.pointer(value)));
            }
        };
        let exact = exact.map(|text| self.sources.document.names.intern(&text));
        let id = PatternId::at(self.schemas.patterns.len());
        self.schemas.patterns.push(Pattern { text, value, exact, few: Box::default() });
        self.by_pattern.insert(text, id);
        Ok(Some(id))
    }

    /// Lists the texts that a pattern of names matches if they are few, so that they have places in the
    /// order of names: where no other names are allowed, it is known when none is left. They stand as
    /// the pattern spells them (`yes` before `no` in `^(yes|no)$`), and those that it does not spell
    /// after them, sorted.
    pub(super) fn list_texts(&mut self, id: PatternId) -> Result<(), Error> {
        let source = self.sources.document.names.get(self.schemas.patterns[id.index()].text);
        let pattern = ecma::Pattern::parse(source, self.limits)?;
        let mut arena = Arena::new(LISTING_WORK as usize);
        // What cannot be listed within the bounds is not few.
        let Ok(expr) = pattern.to_expr(&mut arena, Encoding::Utf8, self.limits) else {
            return Ok(());
        };
        let mut budget = Budget::new("compile_work", u64::from(LISTING_WORK));
        let texts = Derivatives::default().texts(&mut arena, expr, FEW_NAMES, &mut budget);
        let texts = texts.into_iter().flatten().map(String::from_utf8);
        let Ok(mut texts) = texts.collect::<Result<Vec<_>, _>>() else { return Ok(()) };
        texts.sort_by_cached_key(|text| (source.find(text).unwrap_or(usize::MAX), text.clone()));
        let names = &mut self.sources.document.names;
        let few = texts.iter().map(|text| names.intern(text)).collect();
        self.schemas.patterns[id.index()].few = few;
        Ok(())
    }

    pub(super) fn format(&mut self, value: ValueId, place: &mut Place) -> Result<(), Error> {
        let Kind::String(name) = self.sources.document.kind(value) else {
            return Err(self.invalid(value, "is not a string"));
        };
        let text = self.sources.document.names.get(name);
        if self.options.formats == Formats::Annotate {
            self.departs(value, "formats are annotations, on request");
            return Ok(());
        }
        if self.options.formats == Formats::AssertStandard && !format::is_standard(text) {
            self.departs(value, "the standard does not define the format");
            return Ok(());
        }
        let numbers = number::of_format(text);
        let known = format::is_known(text);
        if known || numbers.is_some() {
            place.keywords.extend(known.then_some(Keyword::Format(name)));
            if let Some(numbers) = numbers {
                self.schemas.numbers.push(numbers);
                let id = NumberId::at(self.schemas.numbers.len() - 1);
                place.keywords.push(Keyword::Number(id));
            }
        } else if !format::is_annotation(text) {
            let standard = format::not_regular(text);
            let reason = standard.unwrap_or("the format is not known");
            let annotate = standard.is_none() && self.options.formats != Formats::Assert;
            if self.options.lenient || annotate {
                self.departs(value, reason);
            } else {
                let kind = ErrorKind::UnsupportedKeyword { keyword: "format".into() };
                let message = format!("the format `{text}` cannot be enforced: {reason}");
                return Err(Error::new(kind, message).at(self.sources.location(value)));
            }
        }
        Ok(())
    }
}
