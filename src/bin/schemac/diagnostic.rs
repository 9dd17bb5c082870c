//! Errors as people and programs read them: an [`Error`] and the text it stands in become a
//! coloured report that points into that text, or a JSON object.

use std::ops::Range;

use ariadne::{CharSet, Color, Config, IndexType, Label, Report, ReportKind, Source};
use schemac::{Error, ErrorKind, Location};
use serde_json::{Value, json};

use crate::json_text::{Part, Parts};

/// Longest line, in bytes, that is shown whole; of a longer one only the surroundings of the place.
const WIDEST_LINE: usize = 160;

/// What is shown before the place in a line that is cut, in bytes.
const CONTEXT: usize = 60;

/// A text that a user gave: a file, an argument, standard input.
#[derive(Clone, Debug)]
pub(crate) struct SourceText {
    /// What to call it.
    pub name: String,
    /// The text.
    pub text: String,
}

/// A report that points into a text.
#[derive(Debug)]
pub(crate) struct Diagnostic<'a> {
    /// The stable name of the kind of error.
    pub code: &'a str,
    /// What is wrong.
    pub message: String,
    /// The places, the chief one first, each with what to write beside it.
    pub places: Vec<(Range<usize>, String)>,
    /// Lines below.
    pub notes: Vec<String>,
}

impl Diagnostic<'_> {
    /// Returns the report as text, with colour codes if `color`.
    pub(crate) fn render(&self, source: &SourceText, color: bool) -> String {
        let places: Vec<_> = self
            .places
            .iter()
            .map(|(span, label)| (on_boundaries(&source.text, span), label))
            .collect();
        let Some((chief, _)) = places.first() else {
            let notes: String = self.notes.iter().map(|note| format!("  note: {note}\n")).collect();
            return format!("error[{}]: {}\n{notes}", self.code, self.message);
        };
        let window = Window::around(source, chief);
        let mut config = Config::new()
            .with_color(color)
            .with_compact(false)
            .with_index_type(IndexType::Byte)
            .with_char_set(CharSet::Unicode);
        if places.len() == 1 {
            config = config.with_label_attach(ariadne::LabelAttach::Start);
        }
        let id = window.name.as_str();
        let mut report = Report::build(ReportKind::Error, (id, window.shift(chief)))
            .with_config(config)
            .with_code(self.code)
            .with_message(&self.message);
        report.with_notes(&self.notes);
        for (index, (span, label)) in places.iter().enumerate() {
            if window.shows(span) {
                let color = if index == 0 { Color::Red } else { Color::Yellow };
                report.add_label(
                    Label::new((id, window.shift(span))).with_message(label).with_color(color),
                );
            }
        }
        let mut out = Vec::new();
        // Writing to a `Vec` cannot fail.
        let _ = report.finish().write((id, Source::from(window.text.as_str())), &mut out);
        String::from_utf8_lossy(&out).lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }
}

/// The part of a source that is shown, cut where lines are too long for people.
struct Window {
    name: String,
    text: String,
    start: usize,
}

impl Window {
    fn around(source: &SourceText, place: &Range<usize>) -> Self {
        let text = &source.text;
        let line_start = text[..place.start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[place.start..].find('\n').map_or(text.len(), |at| place.start + at);
        if line_end - line_start <= WIDEST_LINE {
            return Self { name: source.name.clone(), text: printable(text), start: 0 };
        }
        let cut = place.start.saturating_sub(CONTEXT).max(line_start)
            ..(place.start + WIDEST_LINE - CONTEXT).min(line_end);
        let cut = on_boundaries(text, &cut);
        let line = text[..line_start].matches('\n').count() + 1;
        let column = text[line_start..cut.start].chars().count();
        let name = format!("{} (line {line}, after column {column})", source.name);
        Self { name, text: printable(&text[cut.clone()]), start: cut.start }
    }

    fn shows(&self, span: &Range<usize>) -> bool {
        span.start >= self.start && span.start - self.start <= self.text.len()
    }

    fn shift(&self, span: &Range<usize>) -> Range<usize> {
        let clip = |at: usize| at.saturating_sub(self.start).min(self.text.len());
        let (start, mut end) = (clip(span.start), clip(span.end));
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        start..end.max(start)
    }
}

/// Returns `span` inside `text` and on the boundaries of its characters.
fn on_boundaries(text: &str, span: &Range<usize>) -> Range<usize> {
    let floor = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = floor(span.start);
    start..floor(span.end).max(start)
}

/// Returns `text` with control characters replaced by others of the same length, so that no input
/// can steer a terminal.
fn printable(text: &str) -> String {
    let replace = |c: char| match c {
        '\n' | '\t' => c,
        '\u{80}'..='\u{9f}' => '¿',
        c if c.is_control() => '?',
        c => c,
    };
    text.chars().map(replace).collect()
}

/// Returns the report of an error in the grammar `source`.
pub(crate) fn of_error<'a>(error: &'a Error, source: &SourceText) -> Diagnostic<'a> {
    let parts = Parts::new(&source.text).ok();
    let mut notes = Vec::new();
    let mut places = Vec::new();
    let mut pointers = Vec::new();
    let chief = error.location().map(|location| (location, "here"));
    let related = error.related().iter().map(|location| (location, "and here"));
    for (location, label) in chief.into_iter().chain(related) {
        match place(location, parts.as_ref(), source) {
            Some(span) => places.push((span, label.to_owned())),
            None => notes.push(format!("{label}: {location}")),
        }
        if let Location::Pointer(pointer) | Location::PointerText(pointer, _) = location {
            pointers.push(format!("`#{pointer}`"));
        }
    }
    if !pointers.is_empty() {
        notes.push(format!("JSON Pointer: {}", pointers.join(", ")));
    }
    if let ErrorKind::BudgetExceeded(budget) = error.kind() {
        let (name, value) = (budget.limit, budget.value.saturating_mul(10));
        notes.push(format!("raise it with `--budget {name}={value}`"));
    }
    Diagnostic { code: error.kind().name(), message: error.message().to_owned(), places, notes }
}

/// Returns the bytes of `source` where `location` stands.
fn place(
    location: &Location,
    parts: Option<&Parts<'_>>,
    source: &SourceText,
) -> Option<Range<usize>> {
    match location {
        Location::Text(span) => Some(span.start..span.end),
        Location::PointerText(pointer, span) => {
            let part = parts?.at(pointer)?;
            part.string().map(|_| part.span_in_string(&(span.start..span.end)))
        }
        Location::Pointer(pointer) => parts?.at(pointer).map(|part| headline(part, &source.text)),
        _ => None,
    }
}

/// Returns the bytes that stand for a part in a report: its key and value if they are on one line,
/// else the key, else the first line.
fn headline(part: Part<'_, '_>, text: &str) -> Range<usize> {
    let span = part.span();
    let start = part.key_span().map_or(span.start, |key| key.start);
    if !text[start..span.end].contains('\n') {
        return start..span.end;
    }
    part.key_span().unwrap_or_else(|| {
        let line = text[span.clone()].find('\n').unwrap_or(span.len());
        span.start..span.start + line
    })
}

/// Returns the error as the JSON object of reports: `kind`, `pointer`, `span`, `message`, and the
/// pointers `related` of other places that take part.
pub(crate) fn to_json(error: &Error) -> Value {
    let span = match error.location() {
        Some(Location::Text(span) | Location::PointerText(_, span)) => json!(span),
        _ => Value::Null,
    };
    let pointers = error.related().iter().filter_map(|location| match location {
        Location::Pointer(pointer) | Location::PointerText(pointer, _) => Some(pointer.as_str()),
        _ => None,
    });
    json!({
        "kind": error.kind().name(),
        "pointer": error.pointer(),
        "related": pointers.collect::<Vec<_>>(),
        "span": span,
        "message": error.message(),
    })
}

#[cfg(test)]
mod tests {
    use schemac::error::Span;

    use super::*;

    fn render(error: &Error, name: &str, text: &str) -> String {
        let source = SourceText { name: name.to_owned(), text: text.to_owned() };
        of_error(error, &source).render(&source, false)
    }

    #[test]
    fn a_pointer_shows_its_keyword() {
        let text =
            "{\n  \"properties\": {\n    \"a\": {\"not\": {}, \"type\": \"string\"}\n  }\n}\n";
        let kind = ErrorKind::UnsupportedKeyword { keyword: "not".into() };
        let error = Error::new(kind, "`not` is not supported by this version")
            .at_pointer("/properties/a/not");
        insta::assert_snapshot!(render(&error, "a.json", text));
    }

    #[test]
    fn two_keywords_in_conflict_are_both_shown() {
        let text = "{\n  \"minimum\": 5,\n  \"maximum\": 4\n}\n";
        let error = Error::new(ErrorKind::Unsatisfiable, "no number is both")
            .at_pointer("/minimum")
            .related_to(Location::Pointer("/maximum".to_owned()));
        insta::assert_snapshot!(render(&error, "a.json", text));
    }

    #[test]
    fn a_place_in_a_pattern_is_found_behind_its_escapes() {
        let text = r#"{"pattern": "\\d\u00e9(x"}"#;
        let error = Error::new(ErrorKind::Syntax, "unclosed group")
            .at(Location::Text(Span::new(r"\dé(x", 4, 5)))
            .at_pointer("/pattern");
        insta::assert_snapshot!(render(&error, "a.json", text));
    }

    #[test]
    fn a_very_long_line_is_cut_around_the_place() {
        let text = format!("{{\"enum\": [{}null], \"not\": true}}", "\"é\", ".repeat(10_000));
        let error = Error::new(ErrorKind::UnsupportedKeyword { keyword: "not".into() }, "no `not`")
            .at_pointer("/not");
        insta::assert_snapshot!(render(&error, "a.json", &text));
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let text = "a\u{1b}[31m\u{9b}(";
        let error = Error::new(ErrorKind::Syntax, "unclosed group")
            .at(Location::Text(Span::new(text, 8, 9)));
        let report = render(&error, "regex", text);
        assert!(report.contains("a?[31m¿("), "{report}");
    }

    #[test]
    fn a_location_that_the_text_does_not_have_becomes_a_note() {
        let error = Error::new(ErrorKind::Syntax, "odd").at_pointer("/nowhere");
        let report = render(&error, "a.json", "{}");
        assert!(report.contains("#/nowhere"), "{report}");
        let far = Error::new(ErrorKind::Syntax, "odd").at(Location::Text(Span {
            start: 90,
            end: 99,
            line: 1,
            column: 91,
        }));
        assert!(render(&far, "a", "é").contains("odd"));
    }

    #[test]
    fn json_has_kind_places_and_message() {
        let error = Error::new(ErrorKind::Syntax, "odd")
            .at(Location::Text(Span::new("ab", 1, 2)))
            .related_to(Location::Pointer("/a".to_owned()));
        assert_eq!(
            to_json(&error).to_string(),
            r#"{"kind":"syntax","pointer":null,"related":["/a"],"span":{"start":1,"end":2,"line":1,"column":2},"message":"odd"}"#
        );
    }
}
