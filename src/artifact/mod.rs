//! Artifacts: a token automaton in, the bytes of a `.schemac` file out, and back. A sampler needs
//! nothing else: vocabulary, grammar with its unexpanded parts, states and masks are all in it.
//!
//! Layout, little endian: 8 bytes magic, `u32` format version, `u32` CRC-32 of everything after the
//! header, `u64` length of that, 16 bytes fingerprint of the vocabulary; then the `u64` length of the
//! vocabulary, and vocabulary and automaton in
//! [postcard](https://postcard.jamesmunns.com/wire-format) form. The vocabulary has no byte in files
//! that are only read where it is at hand. The checksum finds accidents. Against
//! a hostile file every id and position is checked when loading, so that it can describe another
//! grammar, but never cause a panic or a read out of bounds.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, ErrorKind};
use crate::frontend::json_schema;
use crate::limits::Limits;
use crate::token::{TokenAutomaton, TokenAutomatonSnapshot};
use crate::vocab::{Fingerprint, Vocabulary, VocabularySnapshot};

/// The first bytes of every artifact: not text, and broken by any line-end conversion.
pub const MAGIC: [u8; 8] = *b"\x89scmc\r\n\x1a";

/// The version of the format that this version of the crate writes, and the only one it reads.
pub const FORMAT: u32 = 2;

const HEADER: usize = 40;

/// The bytes of the vocabulary's length, which follows the header.
const LENGTH: usize = 8;

/// Returns the automaton as the bytes of an artifact.
///
/// # Errors
///
/// [`ErrorKind::Artifact`] if it cannot be serialised.
pub fn to_bytes(automaton: &TokenAutomaton) -> Result<Vec<u8>, Error> {
    write(automaton, &serialised(&automaton.vocabulary().snapshot())?)
}

/// As [`to_bytes`], without the vocabulary, for [`from_bytes_over`] only.
///
/// # Errors
///
/// As [`to_bytes`].
pub fn to_bytes_over_vocabulary(automaton: &TokenAutomaton) -> Result<Vec<u8>, Error> {
    write(automaton, &[])
}

fn write(automaton: &TokenAutomaton, vocabulary: &[u8]) -> Result<Vec<u8>, Error> {
    let rest = serialised(&automaton.snapshot())?;
    let length = (vocabulary.len() as u64).to_le_bytes();
    let mut checksum = crc32fast::Hasher::new();
    [&length, vocabulary, &rest].iter().for_each(|part| checksum.update(part));
    let payload = length.len() + vocabulary.len() + rest.len();
    let mut bytes = Vec::with_capacity(HEADER + payload);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&FORMAT.to_le_bytes());
    bytes.extend_from_slice(&checksum.finalize().to_le_bytes());
    bytes.extend_from_slice(&(payload as u64).to_le_bytes());
    bytes.extend_from_slice(&automaton.vocabulary().fingerprint().0.to_le_bytes());
    bytes.extend_from_slice(&length);
    bytes.extend_from_slice(vocabulary);
    bytes.extend_from_slice(&rest);
    Ok(bytes)
}

fn serialised(value: &impl serde::Serialize) -> Result<Vec<u8>, Error> {
    postcard::to_stdvec(value).map_err(|error| refused(format!("cannot be serialised: {error}")))
}

fn refused(reason: impl Into<String>) -> Error {
    Error::new(ErrorKind::Artifact, reason)
}

/// Returns the fingerprint of the vocabulary that an artifact was compiled for, from its header.
///
/// # Errors
///
/// [`ErrorKind::Artifact`] with the reason if this is no artifact of this version, or truncated.
pub fn fingerprint(bytes: &[u8]) -> Result<Fingerprint, Error> {
    let field = |at: usize, len: usize| {
        bytes.get(at..at + len).ok_or_else(|| refused("the file is truncated inside its header"))
    };
    if bytes.get(..8) != Some(&MAGIC) {
        return Err(refused("the file is not a schemac artifact"));
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
    let expected = fingerprint(bytes)?;
    let (vocabulary, rest) = parts(bytes)?;
    if vocabulary.is_empty() {
        return Err(refused("the file is without its vocabulary"));
    }
    let vocabulary: VocabularySnapshot = deserialised(vocabulary)?;
    let vocabulary = vocabulary.restore()?;
    if vocabulary.fingerprint() != expected {
        return Err(refused("the vocabulary is not the one that the header names"));
    }
    restore(rest, Arc::new(vocabulary), limits)
}

/// As [`from_bytes`], over a vocabulary that is at hand, whose tables are then shared. The one in the
/// file is not read, which is most of the work.
///
/// # Errors
///
/// As [`from_bytes`], and [`ErrorKind::Artifact`] if the automaton is of another vocabulary.
pub fn from_bytes_over(
    bytes: &[u8],
    vocabulary: &Arc<Vocabulary>,
    limits: &Limits,
) -> Result<TokenAutomaton, Error> {
    if fingerprint(bytes)? != vocabulary.fingerprint() {
        return Err(refused("the artifact was compiled for another vocabulary"));
    }
    restore(parts(bytes)?.1, Arc::clone(vocabulary), limits)
}

/// Returns the serialised vocabulary and automaton of an artifact whose header was read.
fn parts(bytes: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    let number = |at: usize, len: usize| {
        bytes[at..at + len].iter().rev().fold(0_u64, |sum, &byte| sum << 8 | u64::from(byte))
    };
    let (checksum, length) = (number(12, 4), number(16, 8));
    let payload = &bytes[HEADER..];
    if payload.len() as u64 != length || payload.len() < LENGTH {
        let text =
            format!("the file is truncated or extended: {} of {length} bytes", payload.len());
        return Err(refused(text));
    }
    if u64::from(crc32fast::hash(payload)) != checksum {
        return Err(refused("the file is corrupted: its checksum does not match"));
    }
    usize::try_from(number(HEADER, LENGTH))
        .ok()
        .and_then(|vocabulary| payload[LENGTH..].split_at_checked(vocabulary))
        .ok_or_else(|| refused("the vocabulary goes on after the end of the file"))
}

fn deserialised<'b, T: serde::Deserialize<'b>>(bytes: &'b [u8]) -> Result<T, Error> {
    postcard::from_bytes(bytes)
        .map_err(|error| refused(format!("the file does not hold an automaton: {error}")))
}

fn restore(
    bytes: &[u8],
    vocabulary: Arc<Vocabulary>,
    limits: &Limits,
) -> Result<TokenAutomaton, Error> {
    let snapshot: TokenAutomatonSnapshot = deserialised(bytes)?;
    snapshot.restore(vocabulary, limits.clone(), |bytes| decode_expander(bytes, limits))
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
