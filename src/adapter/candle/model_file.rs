//! A GGUF model file in, candle's view of it out, once everything that candle takes for granted is
//! checked: that counts and tensors are no larger than the file, and that dimensions divide.
//!
//! Cost: two passes over the metadata; no tensor is read.

use std::fs::File;
use std::io::{BufReader, Seek};
use std::path::Path;

use candle_core::quantized::gguf_file::{Content, TensorInfo, Value};

use crate::error::{Error, ErrorKind};
use crate::vocab::gguf_reader::Reader;

/// Opens a model file; returns its header, and the reader that tensors are to be taken from.
pub(super) fn open(path: &Path) -> Result<(Content, BufReader<File>), Error> {
    let cannot_read = |error: &std::io::Error| {
        Error::new(ErrorKind::Io, format!("cannot read {}: {error}", path.display()))
    };
    let file = File::open(path).map_err(|error| cannot_read(&error))?;
    let len = file.metadata().map_err(|error| cannot_read(&error))?.len();
    let mut reader = BufReader::new(file);
    check_alignment(&mut reader, len)?;
    reader.rewind().map_err(|error| cannot_read(&error))?;
    let content = Content::read(&mut reader).map_err(|error| of_candle(&error))?;
    check_architecture(&content)?;
    check_tensors(&content, len)?;
    Ok((content, reader))
}

/// Returns a number of the metadata; `None` if it is missing or of another type.
pub(super) fn number(content: &Content, key: &str) -> Option<usize> {
    content.metadata.get(key)?.to_u64().ok()?.try_into().ok()
}

/// Checks, with our own reader, that the header is well formed and the alignment of tensors is not 0:
/// candle's reader divides by it.
fn check_alignment(reader: &mut BufReader<File>, len: u64) -> Result<(), Error> {
    let pass = || {
        let (mut reader, entries) = Reader::new(reader, len)?;
        for _ in 0..entries {
            let (key, kind) = reader.key()?;
            if key != "general.alignment" {
                reader.skip(kind)?;
            } else if reader.integer_value(kind)? == 0 {
                return Err(refused("its tensors have an alignment of 0".to_owned()));
            }
        }
        Ok(())
    };
    pass().map_err(|error| match error.kind() {
        ErrorKind::Vocabulary => Error::new(ErrorKind::Model, error.message().to_owned()),
        _ => error,
    })
}

fn check_architecture(content: &Content) -> Result<(), Error> {
    let architecture = match content.metadata.get("general.architecture") {
        Some(Value::String(name)) => name.as_str(),
        _ => "unnamed",
    };
    if architecture != "llama" {
        return Err(refused(format!(
            "its architecture `{architecture}` is not supported (`llama` is)"
        )));
    }
    if number(content, "llama.expert_count").is_some_and(|experts| experts > 1) {
        return Err(refused("mixtures of experts are not supported".to_owned()));
    }
    let required = |key: &str| {
        let key = format!("llama.{key}");
        number(content, &key).ok_or_else(|| refused(format!("it has no number `{key}`")))
    };
    let width = required("embedding_length")?;
    let heads = required("attention.head_count")?;
    let heads_kv = required("attention.head_count_kv")?;
    let rotated = required("rope.dimension_count")?;
    let divides = |a: usize, b: usize| a != 0 && b != 0 && b.is_multiple_of(a);
    if !divides(heads, width)
        || !divides(heads_kv, heads)
        || !divides(2, rotated)
        || rotated != width / heads
    {
        return Err(refused(format!(
            "a width of {width}, {heads} and {heads_kv} heads and {rotated} rotated dimensions do \
             not go together"
        )));
    }
    let embedding = content.tensor_infos.get("token_embd.weight").map(|info| info.shape.dims());
    if !matches!(embedding, Some([_, columns]) if *columns == width) {
        return Err(refused(format!("its embedding {embedding:?} is not of width {width}")));
    }
    let (blocks, tensors) = (required("block_count")?, content.tensor_infos.len());
    if blocks > tensors {
        return Err(refused(format!("{tensors} tensors do not make {blocks} blocks")));
    }
    Ok(())
}

/// Checks that each tensor has elements and lies inside the file: a truncated file must not pass for
/// a whole one, as it could where candle has a substitute for a tensor that it cannot read.
fn check_tensors(content: &Content, len: u64) -> Result<(), Error> {
    let outside = content.tensor_infos.iter().filter(|(_, info)| {
        let end = end_of(info, content.tensor_data_offset);
        end.is_none_or(|end| end > len)
    });
    match outside.map(|(name, _)| name).min() {
        Some(name) => Err(refused(format!(
            "its tensor `{name}` does not lie inside it; the file is truncated or damaged"
        ))),
        None => Ok(()),
    }
}

/// Returns where a tensor ends in the file; `None` if it has no elements, or more than can be counted.
fn end_of(info: &TensorInfo, data: u64) -> Option<u64> {
    let dims = info.shape.dims();
    let elements = dims.iter().try_fold(1_usize, |product, &dim| product.checked_mul(dim))?;
    let block = info.ggml_dtype.block_size();
    if elements == 0 || !dims.last()?.is_multiple_of(block) {
        return None;
    }
    let bytes = (elements / block).checked_mul(info.ggml_dtype.type_size())?;
    data.checked_add(info.offset)?.checked_add(u64::try_from(bytes).ok()?)
}

/// Returns candle's error as ours, without the backtrace that it may carry.
pub(super) fn of_candle(mut error: &candle_core::Error) -> Error {
    while let candle_core::Error::WithBacktrace { inner, .. } = error {
        error = inner;
    }
    refused(error.to_string())
}

fn refused(why: String) -> Error {
    Error::new(ErrorKind::Model, format!("the model cannot be used: {why}"))
}
