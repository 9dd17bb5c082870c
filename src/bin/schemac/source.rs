//! What the user wants compiled: arguments in, a grammar's text and language or an artifact out.

use std::io::Read;
use std::path::Path;

use schemac::{Error, ErrorKind};

use crate::args::GrammarArgs;
use crate::diagnostic::SourceText;
use crate::exit::Failure;

/// The language of a grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    /// JSON Schema.
    Schema,
    /// A regular expression.
    Regex,
    /// GBNF.
    Gbnf,
}

impl Language {
    /// Returns the name for people.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Schema => "JSON Schema",
            Self::Regex => "regex",
            Self::Gbnf => "GBNF",
        }
    }
}

/// A grammar, not yet compiled, or an artifact.
#[derive(Debug)]
pub(crate) enum GrammarSource {
    /// The text of a grammar.
    Text(Language, SourceText),
    /// The bytes of a `.schemac` file.
    Artifact(Vec<u8>),
}

impl GrammarSource {
    /// Reads what the arguments name. Of a grammar, at most `limit` + 1 bytes are read: enough for
    /// its front end to refuse it.
    pub(crate) fn read(args: &GrammarArgs, limit: usize) -> Result<Self, Failure> {
        if let Some(pattern) = &args.regex {
            let source = SourceText { name: "--regex".to_owned(), text: pattern.clone() };
            return Ok(Self::Text(Language::Regex, source));
        }
        let named = [(&args.schema, Language::Schema), (&args.gbnf, Language::Gbnf)];
        for (path, language) in named {
            if let Some(path) = path {
                let text = read_text(path, limit)?;
                return Ok(Self::Text(language, SourceText { name: name(path), text }));
            }
        }
        let path = args.file.as_deref().unwrap_or(Path::new("-"));
        let bytes = read(path, usize::MAX)?;
        let Some(kind) = recognise(path, &bytes) else {
            return Err(Failure::Usage(format!(
                "{}: neither the name nor the content tells what this is; use --schema or --gbnf",
                path.display()
            )));
        };
        let Some(language) = kind else { return Ok(Self::Artifact(bytes)) };
        let mut text = utf8(path, bytes, limit)?;
        if language == Language::Regex {
            trim_line_break(&mut text);
        }
        Ok(Self::Text(language, SourceText { name: name(path), text }))
    }
}

/// Returns the language of a file, or `Some(None)` for an artifact, or `None` if nothing tells.
fn recognise(path: &Path, content: &[u8]) -> Option<Option<Language>> {
    if content.starts_with(&schemac::artifact::MAGIC) {
        return Some(None);
    }
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => return Some(Some(Language::Schema)),
        Some("gbnf") => return Some(Some(Language::Gbnf)),
        Some("regex") => return Some(Some(Language::Regex)),
        Some("schemac") => return Some(None),
        _ => {}
    }
    let text = std::str::from_utf8(content).ok()?.trim();
    if text.starts_with('{') || text == "true" || text == "false" {
        Some(Some(Language::Schema))
    } else if text.contains("::=") {
        Some(Some(Language::Gbnf))
    } else {
        None
    }
}

/// Returns what to call the file at `path`.
pub(crate) fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

/// Returns the first `limit` + 1 bytes of a file, or of standard input if the path is `-`.
pub(crate) fn read(path: &Path, limit: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let result = if path == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    result.map_err(|error| Failure::io(name(path).as_ref(), &error))?;
    Ok(bytes)
}

/// Returns the text of a file, as [`read`].
pub(crate) fn read_text(path: &Path, limit: usize) -> Result<String, Failure> {
    utf8(path, read(path, limit)?, limit)
}

fn utf8(path: &Path, mut bytes: Vec<u8>, limit: usize) -> Result<String, Failure> {
    if bytes.len() > limit {
        // Too long anyway; what was read may end inside a character.
        bytes.truncate(limit.saturating_add(1));
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let message = format!("{}: byte {at} is not UTF-8", name(path));
        Error::new(ErrorKind::Syntax, message).into()
    })
}

/// Takes one line break off the end of a text.
pub(crate) fn trim_line_break(text: &mut String) {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_magic_then_name_then_content() {
        let kind = |name: &str, content: &str| recognise(Path::new(name), content.as_bytes());
        let schema = Some(Some(Language::Schema));
        let gbnf = Some(Some(Language::Gbnf));
        assert_eq!(kind("a.json", "root ::= \"a\""), schema);
        assert_eq!(kind("a.gbnf", "{"), gbnf);
        assert_eq!(kind("a.regex", "{}"), Some(Some(Language::Regex)));
        assert_eq!(kind("-", " {\"type\": 1}"), schema);
        assert_eq!(kind("-", "true\n"), schema);
        assert_eq!(kind("a.txt", "root ::= \"a\""), gbnf);
        assert_eq!(kind("a.txt", "[0-9]+"), None);
        assert_eq!(kind("a.schemac", ""), Some(None));
        assert_eq!(recognise(Path::new("a.json"), &schemac::artifact::MAGIC), Some(None));
    }
}
