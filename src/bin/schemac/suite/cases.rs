//! Test suites: files in any of three forms in, [`Case`]s out, one after another.
//!
//! The form is told by content: a JSON array is a file of the official JSON-Schema-Test-Suite;
//! otherwise each line is an object, either a schema with instances (`schema`, `tests`) or a grammar
//! with whole outputs (`grammar`, `accept`, `reject`).

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use crate::json_text::{Part, Parts, Spacing, respace};
use crate::source::Language;

/// A grammar and the texts that it must accept and refuse.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub name: String,
    pub language: Language,
    pub grammar: String,
    pub tests: Vec<Test>,
    /// Compiling must fail.
    pub expect_error: bool,
    /// Engines may choose otherwise: wrong answers are counted apart.
    pub policy: bool,
    /// The draft of a schema that does not name one, such as `draft7`.
    pub draft: Option<String>,
}

/// A text and whether it is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Test {
    pub text: String,
    pub valid: bool,
}

/// A line or group that is no case: where, and why.
#[derive(Clone, Debug)]
pub(crate) struct Malformed {
    pub place: String,
    pub reason: String,
}

/// The cases of several files, read one file at a time.
#[derive(Debug)]
pub(crate) struct Cases {
    files: VecDeque<PathBuf>,
    ready: VecDeque<Result<Case, Malformed>>,
    spacing: Spacing,
}

impl Cases {
    /// Returns the cases of `paths`. Of a folder, all files below it that end in `.json` or
    /// `.jsonl`, sorted by path.
    ///
    /// # Errors
    ///
    /// A path that cannot be read.
    pub(crate) fn open(
        paths: &[PathBuf],
        spacing: Spacing,
    ) -> Result<Self, (PathBuf, std::io::Error)> {
        let mut files = VecDeque::new();
        for path in paths {
            let mut found = Vec::new();
            let mut open = vec![path.clone()];
            while let Some(path) = open.pop() {
                let unreadable = |error| (path.clone(), error);
                if fs::metadata(&path).map_err(unreadable)?.is_dir() {
                    for entry in fs::read_dir(&path).map_err(unreadable)? {
                        open.push(entry.map_err(unreadable)?.path());
                    }
                } else if found.is_empty() && open.is_empty() || is_suite_file(&path) {
                    found.push(path);
                }
            }
            found.sort();
            files.extend(found);
        }
        Ok(Self { files, ready: VecDeque::new(), spacing })
    }
}

impl Iterator for Cases {
    type Item = Result<Case, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() {
            let path = self.files.pop_front()?;
            self.ready = match fs::read_to_string(&path) {
                Ok(text) => read(&path, &text, self.spacing).into(),
                Err(error) => [malformed(path.display(), error)].into(),
            };
        }
        self.ready.pop_front()
    }
}

fn is_suite_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json" || extension == "jsonl")
}

fn malformed<T>(place: impl ToString, reason: impl ToString) -> Result<T, Malformed> {
    Err(Malformed { place: place.to_string(), reason: reason.to_string() })
}

/// Returns the cases of one file.
fn read(path: &Path, text: &str, spacing: Spacing) -> Vec<Result<Case, Malformed>> {
    let reader = Reader { path, spacing };
    if text.trim_start().starts_with('[') {
        let parts = match Parts::new(text) {
            Ok(parts) => parts,
            Err(error) => return vec![malformed(path.display(), error)],
        };
        let groups = parts.root().children().enumerate();
        return groups
            .map(|(index, group)| {
                reader.official(group).map_err(|reason| reader.malformed(index + 1, &reason))
            })
            .collect();
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            reader.line(line).map_err(|reason| reader.malformed(index + 1, &reason))
        })
        .collect()
}

struct Reader<'a> {
    path: &'a Path,
    spacing: Spacing,
}

impl Reader<'_> {
    fn malformed(&self, number: usize, reason: &str) -> Malformed {
        let place = format!("{}:{number}", self.path.display());
        Malformed { place, reason: reason.to_owned() }
    }

    fn line(&self, line: &str) -> Result<Case, String> {
        let parts = Parts::new(line).map_err(|error| error.to_string())?;
        let case = parts.root();
        if case.member("grammar").is_some() {
            return grammar_case(case);
        }
        Ok(Case {
            name: string(case, "name")?,
            language: Language::Schema,
            grammar: member(case, "schema")?.text().to_owned(),
            tests: self.schema_tests(case)?,
            expect_error: false,
            policy: false,
            draft: None,
        })
    }

    fn official(&self, group: Part<'_, '_>) -> Result<Case, String> {
        let file = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let mut folders = self.path.iter().rev().map(|part| part.to_string_lossy());
        Ok(Case {
            name: format!("{file}/{}", string(group, "description")?),
            language: Language::Schema,
            grammar: member(group, "schema")?.text().to_owned(),
            tests: self.schema_tests(group)?,
            expect_error: false,
            policy: false,
            draft: folders.find(|part| part.starts_with("draft")).map(Into::into),
        })
    }

    fn schema_tests(&self, case: Part<'_, '_>) -> Result<Vec<Test>, String> {
        let tests = case.member("tests").into_iter().flat_map(Part::children);
        tests
            .map(|test| {
                let text = respace(member(test, "data")?.text(), self.spacing);
                let valid = member(test, "valid")?.boolean();
                Ok(Test { text, valid: valid.ok_or("`valid` is not a boolean")? })
            })
            .collect()
    }
}

fn grammar_case(case: Part<'_, '_>) -> Result<Case, String> {
    let language = match string(case, "kind")?.as_str() {
        "json_schema" => Language::Schema,
        "regex" => Language::Regex,
        "gbnf" => Language::Gbnf,
        other => return Err(format!("`kind` is `{other}`, not json_schema, regex or gbnf")),
    };
    let grammar = member(case, "grammar")?;
    let grammar = match grammar.string() {
        Some(text) => text,
        None if language == Language::Schema => grammar.text().to_owned(),
        None => return Err("`grammar` is not a string".to_owned()),
    };
    let flag = |name| case.member(name).and_then(Part::boolean).unwrap_or(false);
    let mut tests = Vec::new();
    for (name, valid) in [("accept", true), ("reject", false)] {
        for text in case.member(name).into_iter().flat_map(Part::children) {
            let text = text.string().ok_or_else(|| format!("`{name}` has a text that is none"))?;
            tests.push(Test { text, valid });
        }
    }
    Ok(Case {
        name: string(case, "id")?,
        language,
        grammar,
        tests,
        expect_error: flag("expect_error"),
        policy: flag("policy"),
        draft: None,
    })
}

fn member<'p, 't>(part: Part<'p, 't>, name: &str) -> Result<Part<'p, 't>, String> {
    part.member(name).ok_or_else(|| format!("there is no `{name}`"))
}

fn string(part: Part<'_, '_>, name: &str) -> Result<String, String> {
    member(part, name)?.string().ok_or_else(|| format!("`{name}` is not a string"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(path: &str, text: &str, spacing: Spacing) -> Case {
        let mut cases = read(Path::new(path), text, spacing);
        assert_eq!(cases.len(), 1, "{cases:?}");
        cases.remove(0).unwrap()
    }

    fn test(text: &str, valid: bool) -> Test {
        Test { text: text.to_owned(), valid }
    }

    #[test]
    fn lines_with_schemas_keep_numbers_and_key_order() {
        let line = r#"{"name": "n", "schema": {"type": "object"}, "tests": [{"description": "", "data": {"b": 1.0e+2, "a": " \u00e9"}, "valid": true}, {"data": [1, 2], "valid": false}]}"#;
        let case = only("a.jsonl", line, Spacing::Compact);
        assert_eq!((case.name.as_str(), case.language), ("n", Language::Schema));
        assert_eq!(case.grammar, r#"{"type": "object"}"#);
        assert_eq!(case.tests, [test(r#"{"b":1.0e+2,"a":" \u00e9"}"#, true), test("[1,2]", false)]);
        let spaced = only("a.jsonl", line, Spacing::Spaced);
        assert_eq!(spaced.tests[1], test("[1, 2]", false));
    }

    #[test]
    fn official_files_are_arrays_of_groups_with_the_draft_in_their_path() {
        let text = r#"[{"description": "d", "schema": true, "tests": [{"description": "t", "data": null, "valid": true}]}]"#;
        let case = only("tests/draft7/optional/bignum.json", text, Spacing::Compact);
        assert_eq!(case.name, "bignum/d");
        assert_eq!(case.draft.as_deref(), Some("draft7"));
        assert_eq!(case.tests, [test("null", true)]);
    }

    #[test]
    fn grammar_lines_take_their_texts_as_they_are() {
        let line = r#"{"id": "i", "kind": "regex", "grammar": "a\n", "accept": ["a\n", "{ }"], "reject": [""], "expect_error": false, "policy": true}"#;
        let case = only("c.jsonl", line, Spacing::Compact);
        assert_eq!((case.grammar.as_str(), case.language), ("a\n", Language::Regex));
        assert!(case.policy && !case.expect_error);
        assert_eq!(case.tests, [test("a\n", true), test("{ }", true), test("", false)]);
        let schema = r#"{"id": "i", "kind": "json_schema", "grammar": {"enum": [1e5]}, "accept": [], "reject": [], "expect_error": true}"#;
        let case = only("c.jsonl", schema, Spacing::Compact);
        assert_eq!(case.grammar, r#"{"enum": [1e5]}"#);
        assert!(case.expect_error && !case.policy);
    }

    #[test]
    fn a_malformed_line_names_its_place_and_the_others_go_on() {
        let text = "{\"name\": 1}\n\n{]\n{\"name\":\"n\",\"schema\":{},\"tests\":[]}\n";
        let cases = read(Path::new("x.jsonl"), text, Spacing::Compact);
        let places: Vec<_> =
            cases.iter().map(|case| case.as_ref().err().map(|e| &*e.place)).collect();
        assert_eq!(places, [Some("x.jsonl:1"), Some("x.jsonl:3"), None]);
    }
}
