//! Bytes of a GGUF file in, its metadata values out, one after another. [`super::gguf`] says which
//! are wanted.
//!
//! GGUF 2 and 3, little endian (the format's specification in the `ggml` repository,
//! `docs/gguf.md`). Every length is checked against what is left of the file before anything is
//! allocated, and arrays grow as they are read, so memory is bounded by the file's size. Nesting is
//! followed with a stack, not by recursion.

use std::io::{self, Read};

use crate::error::{Error, ErrorKind};

/// The first bytes of every GGUF file.
pub(crate) const MAGIC: &[u8; 4] = b"GGUF";

/// The type of a value, by its number in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    Text,
    Array,
    U64,
    I64,
    F64,
}

impl Kind {
    const ALL: [Self; 13] = [
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::U32,
        Self::I32,
        Self::F32,
        Self::Bool,
        Self::Text,
        Self::Array,
        Self::U64,
        Self::I64,
        Self::F64,
    ];

    /// The least number of bytes that a value takes: the length of a text, the head of an array.
    const fn least_size(self) -> u64 {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::Text | Self::U64 | Self::I64 | Self::F64 => 8,
            Self::Array => 12,
        }
    }
}

/// Reads metadata values; never past the end that it was told.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Reader<R> {
    /// Reads the header of a file of `len` bytes; returns the reader and the number of entries.
    pub(crate) fn new(inner: R, len: u64) -> Result<(Self, u64), Error> {
        let mut reader = Self { inner, left: len };
        if &reader.bytes::<4>()? != MAGIC {
            return Err(malformed("it does not begin with `GGUF`"));
        }
        match reader.u32()? {
            2 | 3 => {}
            version if matches!(version.swap_bytes(), 2 | 3) => {
                return Err(malformed("it is big endian, which is not supported"));
            }
            version => {
                return Err(malformed(&format!(
                    "its version {version} is not supported (2 and 3 are)"
                )));
            }
        }
        let _tensors = reader.u64()?;
        let entries = reader.u64()?;
        Ok((reader, entries))
    }

    /// Reads a key and the type of its value. The format allows keys of up to 65,535 bytes.
    pub(crate) fn key(&mut self) -> Result<(String, Kind), Error> {
        let len = self.u64()?;
        if u16::try_from(len).is_err() {
            return Err(malformed(&format!("a key is announced with {len} bytes")));
        }
        Ok((self.text_of(len)?, self.kind()?))
    }

    fn text(&mut self) -> Result<String, Error> {
        let len = self.u64()?;
        self.text_of(len)
    }

    fn text_of(&mut self, len: u64) -> Result<String, Error> {
        let len = self.claim(len)?;
        let mut bytes = vec![0; len];
        self.inner.read_exact(&mut bytes).map_err(truncated)?;
        String::from_utf8(bytes).map_err(|_| malformed("one of its texts is not UTF-8"))
    }

    /// Reads a value that must be a text.
    pub(crate) fn text_value(&mut self, kind: Kind) -> Result<String, Error> {
        if kind == Kind::Text { self.text() } else { Err(wrong_type(kind)) }
    }

    /// Reads a value that must be a truth value.
    pub(crate) fn bool_value(&mut self, kind: Kind) -> Result<bool, Error> {
        match kind {
            Kind::Bool => Ok(self.bytes::<1>()? != [0]),
            other => Err(wrong_type(other)),
        }
    }

    /// Reads a value that must be an integer.
    pub(crate) fn integer_value(&mut self, kind: Kind) -> Result<i128, Error> {
        Ok(match kind {
            Kind::U8 => i128::from(u8::from_le_bytes(self.bytes()?)),
            Kind::I8 => i128::from(i8::from_le_bytes(self.bytes()?)),
            Kind::U16 => i128::from(u16::from_le_bytes(self.bytes()?)),
            Kind::I16 => i128::from(i16::from_le_bytes(self.bytes()?)),
            Kind::U32 => i128::from(u32::from_le_bytes(self.bytes()?)),
            Kind::I32 => i128::from(i32::from_le_bytes(self.bytes()?)),
            Kind::U64 => i128::from(u64::from_le_bytes(self.bytes()?)),
            Kind::I64 => i128::from(i64::from_le_bytes(self.bytes()?)),
            other => return Err(wrong_type(other)),
        })
    }

    /// Reads a value that must be a 32-bit floating-point number.
    pub(crate) fn float_value(&mut self, kind: Kind) -> Result<f32, Error> {
        match kind {
            Kind::F32 => Ok(f32::from_le_bytes(self.bytes()?)),
            other => Err(wrong_type(other)),
        }
    }

    /// Reads a value that must be an array, each element with `element`.
    pub(crate) fn array_value<T>(
        &mut self,
        kind: Kind,
        element: impl Fn(&mut Self, Kind) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        if kind != Kind::Array {
            return Err(wrong_type(kind));
        }
        let (kind, count) = self.array_head()?;
        // Not reserved: the count is only bounded by the file, and an element may be wider in
        // memory than in the file.
        let mut elements = Vec::new();
        for _ in 0..count {
            elements.push(element(self, kind)?);
        }
        Ok(elements)
    }

    /// Reads past a value.
    pub(crate) fn skip(&mut self, kind: Kind) -> Result<(), Error> {
        // Values that are still to be passed: a type and how many of it.
        let mut stack = vec![(kind, 1_u64)];
        while let Some((kind, count)) = stack.pop() {
            match kind {
                _ if count == 0 => {}
                Kind::Text => {
                    for _ in 0..count {
                        let len = self.u64()?;
                        self.pass(len)?;
                    }
                }
                Kind::Array => {
                    let head = self.array_head()?;
                    if count > 1 {
                        stack.push((Kind::Array, count - 1));
                    }
                    stack.push(head);
                }
                fixed => self.pass(fixed.least_size().saturating_mul(count))?,
            }
        }
        Ok(())
    }

    fn array_head(&mut self) -> Result<(Kind, u64), Error> {
        let kind = self.kind()?;
        let count = self.u64()?;
        if count.saturating_mul(kind.least_size()) > self.left {
            return Err(malformed(&format!(
                "an array of {count} elements does not fit in the {} bytes that are left",
                self.left
            )));
        }
        Ok((kind, count))
    }

    fn kind(&mut self) -> Result<Kind, Error> {
        let number = self.u32()?;
        let kind = usize::try_from(number).ok().and_then(|number| Kind::ALL.get(number));
        kind.copied().ok_or_else(|| malformed(&format!("the value type {number} is unknown")))
    }

    fn pass(&mut self, len: u64) -> Result<(), Error> {
        self.claim(len)?;
        let passed = io::copy(&mut self.inner.by_ref().take(len), &mut io::sink());
        if passed.map_err(truncated)? == len { Ok(()) } else { Err(malformed("it is truncated")) }
    }

    fn u32(&mut self) -> Result<u32, Error> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Error> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        self.claim(N as u64)?;
        let mut bytes = [0; N];
        self.inner.read_exact(&mut bytes).map_err(truncated)?;
        Ok(bytes)
    }

    /// Takes `len` bytes from what is left of the file.
    fn claim(&mut self, len: u64) -> Result<usize, Error> {
        let left = self.left.checked_sub(len);
        let (Some(left), Ok(len)) = (left, usize::try_from(len)) else {
            return Err(malformed(&format!(
                "{len} bytes are announced where {} are left",
                self.left
            )));
        };
        self.left = left;
        Ok(len)
    }
}

pub(crate) fn malformed(what: &str) -> Error {
    Error::new(ErrorKind::Vocabulary, format!("the GGUF file cannot be read: {what}"))
}

fn wrong_type(kind: Kind) -> Error {
    malformed(&format!("a value has the unexpected type {kind:?}"))
}

fn truncated(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => malformed("it is truncated"),
        _ => error.into(),
    }
}
