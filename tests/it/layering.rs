//! The dependency direction of the modules, read off their `use crate::` lines.

use std::fs;
use std::path::{Path, PathBuf};

/// What every module may import.
const COMMON: &[&str] = &["byteset", "error", "ids", "limits", "step_error"];

/// Each module and what it may import beside [`COMMON`], itself and re-exports of those.
///
/// ARCHITECTURE.md draws this. `engine` is the only module that sees both ends.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("byteset", &[]),
    ("error", &[]),
    ("ids", &[]),
    ("limits", &[]),
    ("step_error", &["mask"]),
    ("ir", &[]),
    ("vocab", &[]),
    ("mask", &[]),
    ("frontend", &["ir"]),
    ("automaton", &["ir"]),
    ("token", &["automaton", "ir", "mask", "vocab"]),
    ("runtime", &["mask", "token", "vocab"]),
    ("artifact", &["automaton", "frontend", "ir", "mask", "token", "vocab"]),
    ("cache", &["artifact", "token", "vocab"]),
    ("engine", &["artifact", "cache", "frontend", "ir", "token", "vocab"]),
    ("adapter", &["engine", "mask", "runtime", "token", "vocab"]),
];

/// Where the crate root re-exports a name from, so that `use crate::Error` counts as `error`.
fn home_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "Error" | "ErrorKind" | "Location" | "Span" => "error",
        "ExprId" | "FamilyId" | "RuleId" | "StateId" | "TokenId" => "ids",
        "Budget" | "BudgetExceeded" | "Limits" => "limits",
        "StepError" => "step_error",
        "ByteSet" => "byteset",
        "TokenMask" => "mask",
        "Vocabulary" => "vocab",
        _ => return None,
    })
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Returns the top-level modules and root names that `text` reaches through `crate::`, with lines.
/// Comments are skipped, and so are tests: they may look across.
fn crate_paths(text: &str) -> Vec<(usize, String)> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let mut paths = Vec::new();
    for (index, line) in code.lines().enumerate() {
        if line.trim_start().starts_with("//") {
            continue;
        }
        for (at, _) in line.match_indices("crate::") {
            if line[..at].ends_with('$') {
                continue;
            }
            let rest = &line[at + "crate::".len()..];
            let name: String =
                rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            assert!(!rest.starts_with('{'), "line {}: one `use crate::` per module", index + 1);
            paths.push((index + 1, name));
        }
    }
    paths
}

#[test]
fn modules_import_only_what_lies_below_them() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&src, &mut files);
    let mut wrong = Vec::new();
    let mut checked = 0;
    for file in files {
        let relative = file.strip_prefix(&src).unwrap();
        let first = relative.iter().next().unwrap().to_str().unwrap();
        let module = first.strip_suffix(".rs").unwrap_or(first);
        // Tests may look across.
        let is_test = relative.to_string_lossy().ends_with("tests.rs");
        if matches!(module, "lib" | "bin") || is_test {
            continue;
        }
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(name, _)| *name == module) else {
            wrong.push(format!(
                "{}: module `{module}` has no place in the order",
                relative.display()
            ));
            continue;
        };
        let text = fs::read_to_string(&file).unwrap();
        for (line, name) in crate_paths(&text) {
            let target = home_of(&name).unwrap_or(&name);
            checked += 1;
            if target != module && !COMMON.contains(&target) && !allowed.contains(&target) {
                wrong.push(format!("{}:{line}: `{module}` imports `{target}`", relative.display()));
            }
        }
    }
    assert!(checked > 10, "only {checked} imports were seen");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_reader_of_imports_sees_uses_and_paths_and_skips_comments() {
    let text = "use crate::ir::Arena;\n// crate::vocab\nlet x = crate::mask::f();\n#[cfg(test)]\nuse crate::token;";
    assert_eq!(crate_paths(text), [(1, "ir".to_owned()), (3, "mask".to_owned())]);
}
