//! Folders with the documents that schemas refer to. Nothing is fetched.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use clap::Args;
use schemac::frontend::json_schema::Retrieve;
use serde::Deserialize;
use serde_json::Value;

use crate::exit::Failure;

/// Where other documents are.
#[derive(Args, Clone, Debug)]
pub(crate) struct DocumentArgs {
    /// A folder with documents that schemas refer to: those whose `$id` is the address, and for a
    /// relative address the file of that name in the folder. May be given several times.
    #[arg(long, value_name = "FOLDER")]
    pub schema_dir: Vec<PathBuf>,

    /// Addresses that begin with URI are files in FOLDER. May be given several times.
    #[arg(long, value_name = "URI=FOLDER", value_parser = documents)]
    pub documents: Vec<(String, PathBuf)>,
}

fn documents(text: &str) -> Result<(String, PathBuf), String> {
    let (uri, folder) = text.rsplit_once('=').ok_or("expected URI=FOLDER")?;
    Ok((uri.to_owned(), PathBuf::from(folder)))
}

/// The documents of some folders.
pub(crate) struct Folders {
    /// What their addresses begin with.
    places: Vec<(String, PathBuf)>,
    /// Files by the addresses that they give themselves.
    named: HashMap<String, PathBuf>,
}

impl DocumentArgs {
    /// Looks for the documents of the folders; `None` if there are no folders.
    pub(crate) fn read(&self) -> Result<Option<Folders>, Failure> {
        if self.schema_dir.is_empty() && self.documents.is_empty() {
            return Ok(None);
        }
        let mut named = HashMap::new();
        let mut pending: Vec<PathBuf> = self.schema_dir.iter().rev().cloned().collect();
        while let Some(folder) = pending.pop() {
            let entries = std::fs::read_dir(&folder)
                .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
            let mut paths: Vec<PathBuf> = entries.map_err(|error| Failure::io(&folder, &error))?;
            paths.sort_unstable();
            for path in paths {
                if path.is_dir() && !path.is_symlink() {
                    pending.push(path);
                } else if path.extension().is_some_and(|extension| extension == "json")
                    && let Some(address) = own_address(&path)
                {
                    named.entry(address).or_insert(path);
                }
            }
        }
        let whole = self.schema_dir.iter().map(|folder| (String::new(), folder.clone()));
        let places = self.documents.iter().cloned().chain(whole).collect();
        Ok(Some(Folders { places, named }))
    }
}

/// Returns the address that the schema in a file gives itself, without a fragment.
fn own_address(path: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        #[serde(rename = "$id")]
        id: Option<Value>,
        #[serde(rename = "id")]
        old_id: Option<Value>,
    }
    // A file that is no JSON object has no address; referring to it tells what is wrong with it.
    let named: Named = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    let id = [named.id, named.old_id].into_iter().flatten().find_map(|id| match id {
        Value::String(id) => Some(id),
        _ => None,
    })?;
    let address = id.split('#').next().unwrap_or_default();
    (!address.is_empty()).then(|| address.to_owned())
}

impl Retrieve for Folders {
    fn retrieve(&self, uri: &str) -> Option<String> {
        if let Some(path) = self.named.get(uri) {
            return std::fs::read_to_string(path).ok();
        }
        let mut places = self.places.iter();
        places.find_map(|(start, folder)| {
            let rest = Path::new(uri.strip_prefix(start.as_str())?.trim_start_matches('/'));
            // An address does not lead out of its folder.
            let inside = rest.components().all(|part| matches!(part, Component::Normal(_)));
            inside.then(|| std::fs::read_to_string(folder.join(rest)).ok())?
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        documents: DocumentArgs,
    }

    fn folders(args: &[&str]) -> Option<Folders> {
        Line::try_parse_from([&["x"], args].concat()).unwrap().documents.read().ok().unwrap()
    }

    fn schemas() -> String {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").display().to_string()
    }

    #[test]
    fn documents_are_found_inside_their_folder_only() {
        let folders = folders(&["--documents", &format!("http://a.example/x={}", schemas())]);
        let folders = folders.unwrap();
        assert!(folders.retrieve("http://a.example/x/person.json").is_some());
        for outside in [
            "http://a.example/x/../Cargo.toml",
            "http://b.example/person.json",
            "http://a.example/x/no.json",
            "person.json",
        ] {
            assert_eq!(folders.retrieve(outside), None, "{outside}");
        }
        assert!(Line::try_parse_from(["x", "--documents", "folder"]).is_err());
    }

    #[test]
    fn documents_of_a_folder_are_found_by_address_and_by_name() {
        let folder = std::env::temp_dir().join(format!("schemac-documents-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("inner")).unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
        write("a.json", r#"{"$id": "https://example.com/one", "type": "null"}"#);
        write("inner/b.json", r#"{"id": "urn:example:two#", "type": "string"}"#);
        write("inner/c.json", "true");
        let found = folders(&["--schema-dir", &folder.display().to_string()]).unwrap();
        let has = |uri: &str, part: &str| found.retrieve(uri).is_some_and(|t| t.contains(part));
        assert!(has("https://example.com/one", "null"));
        assert!(has("urn:example:two", "string"));
        assert!(has("inner/c.json", "true"));
        assert!(has("a.json", "null"));
        assert_eq!(found.retrieve("https://example.com/a.json"), None);
        assert_eq!(found.retrieve("../Cargo.toml"), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn no_folder_gives_no_documents_and_a_missing_one_is_an_error() {
        assert!(folders(&[]).is_none());
        let line = Line::try_parse_from(["x", "--schema-dir", "/no/such/folder"]).unwrap();
        assert!(line.documents.read().is_err());
    }
}
