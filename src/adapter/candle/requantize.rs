//! A GGUF file in, the same model in another quantisation out.
//!
//! Candle has vectorised dot products for some quantisations and not for others: Q4_1, Q5_0 and Q5_1
//! run about three times slower than Q8_0, whose file is larger.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

use candle_core::quantized::gguf_file::{Content, Value, write};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Result};

/// Writes the model in `source` to `target` with its matrices as `dtype`. Vectors (of one dimension)
/// are kept as they are, and so are matrices whose rows are no multiple of the quantisation's block.
/// Metadata are kept, but for `general.file_type`, which would no longer be true.
///
/// The target appears when it is whole: it is written beside itself (`.part`) and renamed. Memory:
/// the size of the target.
///
/// # Errors
///
/// If the source is no GGUF file or the target cannot be written.
pub fn requantize(
    source: impl AsRef<Path>,
    target: impl AsRef<Path>,
    dtype: GgmlDType,
) -> Result<()> {
    let mut reader = BufReader::new(File::open(source)?);
    let content = Content::read(&mut reader)?;
    let mut names: Vec<_> = content.tensor_infos.keys().collect();
    names.sort_unstable();
    let mut tensors = Vec::with_capacity(names.len());
    for name in names {
        let tensor = content.tensor(&mut reader, name, &Device::Cpu)?;
        tensors.push((name.as_str(), converted(tensor, dtype)?));
    }
    let mut metadata: Vec<_> =
        content.metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
    metadata.sort_unstable_by_key(|(key, _)| *key);
    metadata.retain(|(key, _)| *key != "general.file_type");
    // The writer aligns to 32 bytes, whatever the source did.
    let alignment = Value::U32(32);
    for (key, value) in &mut metadata {
        if *key == "general.alignment" {
            *value = &alignment;
        }
    }
    let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (*name, tensor)).collect();
    let target = target.as_ref();
    let part = target.with_added_extension("part");
    let mut writer = BufWriter::new(File::create(&part)?);
    write(&mut writer, &metadata, &tensors)?;
    writer.flush()?;
    std::fs::rename(part, target)?;
    Ok(())
}

fn converted(tensor: QTensor, dtype: GgmlDType) -> Result<QTensor> {
    let fits =
        tensor.shape().dims().last().is_some_and(|row| row.is_multiple_of(dtype.block_size()));
    if tensor.rank() < 2 || !fits || tensor.dtype() == dtype {
        return Ok(tensor);
    }
    QTensor::quantize(&tensor.dequantize(&Device::Cpu)?, dtype)
}
