//! Artifacts: a token automaton in, the bytes of a `.schemac` file out, and back. A sampler needs
//! nothing else: vocabulary, grammar with its unexpanded parts, states and masks are all in it.
//!
//! Layout, little endian: 8 bytes magic, `u32` format version, `u32` CRC-32 of everything after the
//! header, `u64` length of that, 16 bytes fingerprint of the vocabulary; then the automaton in
//! [postcard](https://postcard.jamesmunns.com/wire-format) form. The checksum finds accidents. Against
//! a hostile file every id and position is checked when loading, so that it can describe another
//! grammar, but never cause a panic or a read out of bounds.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, ErrorKind};
use crate::frontend::json_schema;
use crate::limits::Limits;
use crate::token::{TokenAutomaton, TokenAutomatonSnapshot};
use crate::vocab::Fingerprint;

/// The first bytes of every artifact: not text, and broken by any line-end conversion.
pub const MAGIC: [u8; 8] = *b"\x89scmc\r\n\x1a";

/// The version of the format that this version of the crate writes, and the only one it reads.
pub const FORMAT: u32 = 1;

const HEADER: usize = 40;

/// Returns the automaton as the bytes of an artifact.
///
/// # Errors
///
/// [`ErrorKind::Artifact`] if it cannot be serialised.
pub fn to_bytes(automaton: &TokenAutomaton) -> Result<Vec<u8>, Error> {
    let payload = postcard::to_stdvec(&automaton.snapshot()).map_err(|error| {
        Error::new(ErrorKind::Artifact, format!("cannot be serialised: {error}"))
    })?;
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&FORMAT.to_le_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&payload).to_le_bytes());
    bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&automaton.vocabulary().fingerprint().0.to_le_bytes());
    bytes.extend_from_slice(&payload);
    Ok(bytes)
}

/// Returns the fingerprint of the vocabulary that an artifact was compiled for, from its header.
///
/// # Errors
///
/// [`ErrorKind::Artifact`] with the reason if this is no artifact of this version, or truncated.
pub fn fingerprint(bytes: &[u8]) -> Result<Fingerprint, Error> {
    let refused = |reason: String| Error::new(ErrorKind::Artifact, reason);
    let field = |at: usize, len: usize| {
        bytes
            .get(at..at + len)
            .ok_or_else(|| refused("the file is truncated inside its header".into()))
    };
    if bytes.get(..8) != Some(&MAGIC) {
        return Err(refused("the file is not a schemac artifact".into()));
    }
    let format = field(8, 4)?.iter().rev().fold(0_u32, |sum, &byte| sum << 8 | u32::from(byte));
    if format != FORMAT {
        let text =
            format!("the artifact has format {format}, and this version reads format {FORMAT}");
        return Err(refused(text));
    }
    Ok(Fingerprint(field(24, 16)?.iter().rev().fold(0, |sum, &byte| sum << 8 | u128::from(byte))))
}

/// Returns the automaton of an artifact. What is left to be computed keeps to `limits`, whatever those
/// were under which it was compiled: a file does not say how much work its reader does.
///
/// # Errors
///
/// [`ErrorKind::Artifact`] with the reason if the bytes are foreign, of another version, truncated,
/// or corrupted.
pub fn from_bytes(bytes: &[u8], limits: &Limits) -> Result<TokenAutomaton, Error> {
    let refused = |reason: String| Error::new(ErrorKind::Artifact, reason);
    let expected = fingerprint(bytes)?;
    let number = |at: usize, len: usize| {
        bytes[at..at + len].iter().rev().fold(0_u64, |sum, &byte| sum << 8 | u64::from(byte))
    };
    let (checksum, length) = (number(12, 4), number(16, 8));
    let payload = &bytes[HEADER..];
    if payload.len() as u64 != length {
        let text =
            format!("the file is truncated or extended: {} of {length} bytes", payload.len());
        return Err(refused(text));
    }
    if u64::from(crc32fast::hash(payload)) != checksum {
        return Err(refused("the file is corrupted: its checksum does not match".into()));
    }
    let snapshot: TokenAutomatonSnapshot = postcard::from_bytes(payload)
        .map_err(|error| refused(format!("the file does not hold an automaton: {error}")))?;
    let automaton = snapshot.restore(limits.clone(), |bytes| decode_expander(bytes, limits))?;
    if automaton.vocabulary().fingerprint() != expected {
        return Err(refused("the vocabulary is not the one that the header names".into()));
    }
    Ok(automaton)
}

/// Writes the automaton to a file.
///
/// # Errors
///
/// As [`to_bytes`], and [`ErrorKind::Io`].
pub fn save(automaton: &TokenAutomaton, path: &Path) -> Result<usize, Error> {
    let bytes = to_bytes(automaton)?;
    std::fs::write(path, &bytes)?;
    Ok(bytes.len())
}

/// Reads an automaton from a file, into memory, to be used under `limits`.
///
/// # Errors
///
/// As [`from_bytes`], and [`ErrorKind::Io`].
pub fn load(path: &Path, limits: &Limits) -> Result<Arc<TokenAutomaton>, Error> {
    Ok(Arc::new(from_bytes(&std::fs::read(path)?, limits)?))
}

/// Reads the parameters of a grammar's lazy parts.
fn decode_expander(bytes: &[u8], limits: &Limits) -> Result<Box<dyn crate::ir::Expander>, Error> {
    if json_schema::is_expander(bytes) {
        return json_schema::decode_expander(bytes, limits);
    }
    Err(Error::new(ErrorKind::Artifact, "the lazy parts of the grammar are of an unknown kind"))
}
