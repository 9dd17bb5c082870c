//! The vocabulary as a file that workers of any language read: a line for each id, in order.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use schemac::Vocabulary;
use serde::{Deserialize, Serialize};

/// One id.
#[derive(Serialize, Deserialize)]
pub(crate) struct Word {
    /// Its bytes in hexadecimal, empty for ids that are not text.
    pub(crate) bytes: String,
    /// Its name if it is a special token.
    pub(crate) special: Option<String>,
    /// Whether it ends outputs.
    pub(crate) end: bool,
}

impl Word {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let digit = |c: u8| char::from(c).to_digit(16).expect("a hexadecimal digit") as u8;
        self.bytes.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
    }
}

pub(crate) fn write(vocabulary: &Vocabulary, path: &Path) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for id in vocabulary.ids() {
        let word = Word {
            bytes: vocabulary.bytes(id).iter().map(|byte| format!("{byte:02x}")).collect(),
            special: vocabulary.special_name(id).map(str::to_owned),
            end: vocabulary.is_end(id),
        };
        serde_json::to_writer(&mut file, &word)?;
        file.write_all(b"\n")?;
    }
    file.flush()
}

/// Returns the ids one by one, so that no list of them weighs on a worker's memory.
pub(crate) fn read(path: &Path) -> impl Iterator<Item = Word> {
    let file = BufReader::new(File::open(path).expect("the vocabulary can be read"));
    file.lines()
        .map(|line| serde_json::from_str(&line.expect("a line")).expect("an id of the vocabulary"))
}
