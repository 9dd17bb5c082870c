//! The network of a GGUF file: new tokens of several sequences in, logits after any of them out.
//!
//! Candle's own `quantized_llama` has the same arithmetic, but keeps the keys and values of one
//! sequence inside, cannot go back, and gives the logits of the last position alone. Here they are
//! kept apart, so that sequences can be forked and cut, several can share a run, and a run gives as
//! many rows as are asked for.
//!
//! A run multiplies each matrix once with the rows of all its tokens. Attention is computed token by
//! token. Where candle multiplies a row by the same operations whatever rows are beside it (Q8_0 on
//! processors without special instructions for matrices, among others), the logits of a history are so
//! the same, bit for bit, however it was divided into runs; elsewhere they differ by rounding.
//!
//! Source: Touvron et al. 2023, "LLaMA: Open and Efficient Foundation Language Models".

use std::io::{Read, Seek};
use std::sync::Arc;

use candle_core::quantized::gguf_file::Content;
use candle_core::quantized::{QMatMul, QTensor};
use candle_core::{DType, Device, Module, Result, Tensor, bail};
use candle_nn::ops::{rms_norm, softmax_last_dim};
use candle_nn::rotary_emb::rope_i;

use super::model_file;
use super::sequences::{Network, Part};

/// Places for tokens are made by this many at a time.
const PLACES: usize = 64;

/// The weights, which clones share.
#[derive(Clone)]
pub(super) struct Llama(Arc<Weights>);

struct Weights {
    device: Device,
    embedding: Tensor,
    layers: Vec<Layer>,
    norm: Tensor,
    output: QMatMul,
    /// What positions are multiplied with, for each pair of dimensions that is rotated.
    frequencies: Vec<f32>,
    heads: usize,
    heads_kv: usize,
    epsilon: f32,
}

struct Layer {
    attention_norm: Tensor,
    query: QMatMul,
    key: QMatMul,
    value: QMatMul,
    attention_output: QMatMul,
    mlp_norm: Tensor,
    gate: QMatMul,
    up: QMatMul,
    down: QMatMul,
}

/// The keys and values of one sequence.
pub(super) struct KeyValues {
    /// Of each layer, by head, place and dimension.
    layers: Vec<(Tensor, Tensor)>,
    /// Places that are taken, and that there are.
    len: usize,
    places: usize,
}

impl Llama {
    /// Loads a file that [`model_file::open`] has looked at.
    pub(super) fn load<R: Read + Seek>(
        content: &Content,
        reader: &mut R,
        device: &Device,
    ) -> Result<Self> {
        let number = |key: &str| match model_file::number(content, &format!("llama.{key}")) {
            Some(number) => Ok(number),
            None => bail!("it has no number `llama.{key}`"),
        };
        let real = |key: &str| content.metadata.get(key).map(|value| value.to_f32()).transpose();
        let Some(epsilon) = real("llama.attention.layer_norm_rms_epsilon")? else {
            bail!("it has no number `llama.attention.layer_norm_rms_epsilon`")
        };
        let base = real("llama.rope.freq_base")?.unwrap_or(10_000.0);
        let rotated = number("rope.dimension_count")?;
        let frequencies = (0..rotated)
            .step_by(2)
            .map(|pair| 1.0 / base.powf(pair as f32 / rotated as f32))
            .collect();
        let mut tensor = |name: &str| content.tensor(reader, name, device);
        let vector = |tensor: QTensor| tensor.dequantize(device);
        let embedded = tensor("token_embd.weight")?;
        let embedding = embedded.dequantize(device)?;
        let norm = vector(tensor("output_norm.weight")?)?;
        let output = if content.tensor_infos.contains_key("output.weight") {
            tensor("output.weight")?
        } else {
            embedded
        };
        let mut layers = Vec::new();
        for block in 0..number("block_count")? {
            let mut of = |name: &str| tensor(&format!("blk.{block}.{name}.weight"));
            layers.push(Layer {
                attention_norm: vector(of("attn_norm")?)?,
                query: QMatMul::from_qtensor(of("attn_q")?)?,
                key: QMatMul::from_qtensor(of("attn_k")?)?,
                value: QMatMul::from_qtensor(of("attn_v")?)?,
                attention_output: QMatMul::from_qtensor(of("attn_output")?)?,
                mlp_norm: vector(of("ffn_norm")?)?,
                gate: QMatMul::from_qtensor(of("ffn_gate")?)?,
                up: QMatMul::from_qtensor(of("ffn_up")?)?,
                down: QMatMul::from_qtensor(of("ffn_down")?)?,
            });
        }
        Ok(Self(Arc::new(Weights {
            device: device.clone(),
            embedding,
            layers,
            norm,
            output: QMatMul::from_qtensor(output)?,
            frequencies,
            heads: number("attention.head_count")?,
            heads_kv: number("attention.head_count_kv")?,
            epsilon,
        })))
    }
}

impl Network for Llama {
    type Memory = KeyValues;

    fn fresh(&self) -> KeyValues {
        KeyValues { layers: Vec::new(), len: 0, places: 0 }
    }

    fn fork(&self, memory: &KeyValues, len: usize) -> Result<KeyValues> {
        let mut fork = self.fresh();
        fork.reserve(&self.0, len)?;
        for (to, from) in fork.layers.iter().zip(&memory.layers) {
            to.0.slice_set(&from.0.narrow(1, 0, len)?.contiguous()?, 1, 0)?;
            to.1.slice_set(&from.1.narrow(1, 0, len)?.contiguous()?, 1, 0)?;
        }
        fork.len = len;
        Ok(fork)
    }

    fn cut(&self, memory: &mut KeyValues, len: usize) {
        memory.len = len;
    }

    fn bytes(&self, memory: &KeyValues) -> usize {
        let bytes = |t: &Tensor| t.elem_count() * t.dtype().size_in_bytes();
        memory.layers.iter().map(|(keys, values)| bytes(keys) + bytes(values)).sum()
    }

    fn run(&self, parts: &mut [Part<'_, KeyValues>]) -> Result<Vec<Vec<f32>>> {
        // Candle hands each operation over to a thread of rayon and waits for it, hundreds of times in a
        // run. From inside such a thread it does not.
        rayon::scope(|_| self.0.run(parts))
    }
}

impl Weights {
    fn head_len(&self) -> Result<usize> {
        Ok(self.embedding.dim(1)? / self.heads)
    }

    fn run(&self, parts: &mut [Part<'_, KeyValues>]) -> Result<Vec<Vec<f32>>> {
        let mut ids: Vec<u32> = Vec::new();
        let mut places: Vec<f32> = Vec::new();
        let mut wanted: Vec<u32> = Vec::new();
        for part in &mut *parts {
            let before = part.memory.len;
            part.memory.reserve(self, before + part.tokens.len())?;
            ids.extend_from_slice(part.tokens);
            places.extend((before..before + part.tokens.len()).map(|place| place as f32));
            let end = u32::try_from(ids.len()).map_err(candle_core::Error::wrap)?;
            wanted.extend(end - u32::try_from(part.rows).map_err(candle_core::Error::wrap)?..end);
        }
        let rotation = self.rotation(&places)?;
        let mut x = self.embedding.index_select(&Tensor::new(ids, &self.device)?, 0)?;
        for (number, layer) in self.layers.iter().enumerate() {
            let attended =
                self.attention(number, &self.normed(&x, &layer.attention_norm)?, &rotation, parts)?;
            x = (layer.attention_output.forward(&attended)? + x)?;
            let normed = self.normed(&x, &layer.mlp_norm)?;
            let gated = (layer.gate.forward(&normed)?.silu()? * layer.up.forward(&normed)?)?;
            x = (layer.down.forward(&gated)? + x)?;
        }
        for part in parts {
            part.memory.len += part.tokens.len();
        }
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let x = x.index_select(&Tensor::new(wanted, &self.device)?, 0)?;
        let logits = self.output.forward(&self.normed(&x, &self.norm)?)?;
        logits.to_dtype(DType::F32)?.to_vec2()
    }

    fn normed(&self, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
        rms_norm(x, weight, self.epsilon)
    }

    /// Returns cosines and sines for each of these places.
    fn rotation(&self, places: &[f32]) -> Result<(Tensor, Tensor)> {
        let count = self.frequencies.len();
        let frequencies = Tensor::from_slice(&self.frequencies, (1, count), &self.device)?;
        let angles =
            Tensor::from_slice(places, (places.len(), 1), &self.device)?.matmul(&frequencies)?;
        Ok((angles.cos()?, angles.sin()?))
    }

    /// Puts the keys and values of the new tokens into the memories, and returns what each token
    /// attends to.
    fn attention(
        &self,
        number: usize,
        x: &Tensor,
        (cos, sin): &(Tensor, Tensor),
        parts: &[Part<'_, KeyValues>],
    ) -> Result<Tensor> {
        let layer = &self.layers[number];
        let (rows, width) = x.dims2()?;
        let len = self.head_len()?;
        // By head, row and dimension.
        let split = |x: Tensor, heads: usize| {
            x.reshape((1, rows, heads, len))?.transpose(1, 2)?.contiguous()
        };
        let query = rope_i(&split(layer.query.forward(x)?, self.heads)?, cos, sin)?.squeeze(0)?;
        let keys = rope_i(&split(layer.key.forward(x)?, self.heads_kv)?, cos, sin)?.squeeze(0)?;
        let values = split(layer.value.forward(x)?, self.heads_kv)?.squeeze(0)?;
        let mut attended = Vec::with_capacity(rows);
        for part in parts {
            let (first, new) = (attended.len(), part.tokens.len());
            let (known_keys, known_values) = &part.memory.layers[number];
            let before = part.memory.len;
            known_keys.slice_set(&keys.narrow(1, first, new)?.contiguous()?, 1, before)?;
            known_values.slice_set(&values.narrow(1, first, new)?.contiguous()?, 1, before)?;
            for row in 0..new {
                // Heads that share keys are the rows of one matrix.
                let shape = (self.heads_kv, self.heads / self.heads_kv, len);
                let query = query.narrow(1, first + row, 1)?.reshape(shape)?;
                let seen = before + row + 1;
                let scores = query.matmul(&known_keys.narrow(1, 0, seen)?.t()?)?;
                let weights = softmax_last_dim(&(scores / (len as f64).sqrt())?)?;
                let sum = weights.matmul(&known_values.narrow(1, 0, seen)?)?;
                attended.push(sum.reshape((1, width))?);
            }
        }
        Tensor::cat(&attended, 0)
    }
}

impl KeyValues {
    /// Makes room for `len` tokens.
    fn reserve(&mut self, weights: &Weights, len: usize) -> Result<()> {
        if len <= self.places {
            return Ok(());
        }
        // Half as much again at least, so that a sequence is copied a few times only.
        let places = len.max(self.len + self.len / 2).next_multiple_of(PLACES);
        let shape = (weights.heads_kv, places, weights.head_len()?);
        let mut layers = Vec::with_capacity(weights.layers.len());
        for number in 0..weights.layers.len() {
            let room = || Tensor::zeros(shape, DType::F32, &weights.device);
            let (keys, values) = (room()?, room()?);
            if let Some(old) = self.layers.get(number).filter(|_| self.len > 0) {
                keys.slice_set(&old.0.narrow(1, 0, self.len)?.contiguous()?, 1, 0)?;
                values.slice_set(&old.1.narrow(1, 0, self.len)?.contiguous()?, 1, 0)?;
            }
            layers.push((keys, values));
        }
        (self.layers, self.places) = (layers, places);
        Ok(())
    }
}
