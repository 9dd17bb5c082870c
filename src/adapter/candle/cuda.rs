//! Masks on CUDA: a kernel that writes −∞ where a token is illegal, compiled by nvrtc at first use and
//! loaded through candle's device.
//!
//! This was type-checked, and the kernel was compiled to PTX (`scripts/check_cuda.sh`); it has not run
//! on a GPU yet.

use std::sync::OnceLock;

use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::cudarc::driver::{
    CudaSlice, DeviceRepr, LaunchConfig, PushKernelArg,
};
use candle_core::cuda_backend::cudarc::nvrtc;
use candle_core::cuda_backend::{CudaDType, CudaDevice, CudaStorage, WrapErr};
use candle_core::{DType, Layout, Result, bail};
use half::{bf16, f16};

const SOURCE: &str = include_str!("mask.cu");

/// Threads of a block, and logits that each of them looks at.
const THREADS: u32 = 256;
const PER_THREAD: u32 = 8;

/// Blocks along the rows that a launch may have.
const MAX_ROWS: usize = 65_535;

/// The masks of a launch, on the device.
pub(super) struct Masks<'a> {
    pub(super) words: (&'a CudaStorage, &'a Layout),
    /// The number of the mask of each row; without, rows have their masks in turn, or all the one.
    pub(super) index: Option<(&'a CudaStorage, &'a Layout)>,
}

/// Masks all rows. The shapes have been checked against each other.
pub(super) fn apply(logits: &mut CudaStorage, layout: &Layout, masks: &Masks<'_>) -> Result<()> {
    let Some((start, _)) = layout.contiguous_offsets() else {
        bail!("logits on a GPU must be contiguous")
    };
    let device = logits.device().clone();
    let width = layout.dims().last().copied().unwrap_or_default();
    let rows = layout.shape().elem_count().checked_div(width).unwrap_or_default();
    if rows > MAX_ROWS {
        bail!("{rows} rows of logits, more than {MAX_ROWS}");
    }
    if rows == 0 {
        return Ok(());
    }
    let shape = Shape { start, width, rows };
    match logits.dtype() {
        DType::F32 => {
            launch(&device, logits.as_cuda_slice_mut::<f32>()?, &shape, masks, 0xff80_0000)
        }
        DType::F16 => launch(&device, logits.as_cuda_slice_mut::<f16>()?, &shape, masks, 0xfc00),
        DType::BF16 => launch(&device, logits.as_cuda_slice_mut::<bf16>()?, &shape, masks, 0xff80),
        other => bail!("logits of type {other:?} cannot be masked"),
    }
}

struct Shape {
    start: usize,
    width: usize,
    rows: usize,
}

/// Runs the kernel for logits of type `T`, of which `infinity` is −∞ in bits.
#[expect(unsafe_code, reason = "starts a kernel")]
fn launch<T: CudaDType + DeviceRepr>(
    device: &CudaDevice,
    logits: &mut CudaSlice<T>,
    shape: &Shape,
    masks: &Masks<'_>,
    infinity: u32,
) -> Result<()> {
    let (words, words_layout) = masks.words;
    let (words_start, words_end) = words_layout.contiguous_offsets().unwrap_or_default();
    let per_mask = words_layout.dims().last().copied().unwrap_or_default();
    let count = (words_end - words_start).checked_div(per_mask).unwrap_or_default();
    let words = words.as_cuda_slice::<u32>()?.slice(words_start..words_end);
    let index = match masks.index {
        Some((index, layout)) => {
            let (start, end) = layout.contiguous_offsets().unwrap_or_default();
            Some(index.as_cuda_slice::<u32>()?.slice(start..end))
        }
        None => None,
    };
    let width = number(shape.width)?;
    let name = if size_of::<T>() == 4 { "schemac_mask_32" } else { "schemac_mask_16" };
    let function = device.get_or_load_custom_func(name, "schemac_mask", ptx()?)?;
    let mut row = logits.slice_mut(shape.start..shape.start + shape.width * shape.rows);
    let (count, per_mask, step) = (number(count)?, number(per_mask)?, u32::from(count > 1));
    let no_index = 0_u64;
    let mut launch = function.builder();
    launch.arg(&mut row).arg(&width).arg(&words).arg(&count).arg(&per_mask);
    match &index {
        Some(index) => launch.arg(index),
        None => launch.arg(&no_index),
    };
    launch.arg(&step).arg(&infinity);
    let config = LaunchConfig {
        grid_dim: (width.div_ceil(THREADS * PER_THREAD), number(shape.rows)?, 1),
        block_dim: (THREADS, 1, 1),
        shared_mem_bytes: 0,
    };
    // SAFETY: the arguments have the types of the kernel's parameters. It writes to `rows` rows of
    // `width` logits, which the slice of the logits holds; it reads one number for each row from the
    // index, whose length was checked against the rows, and only words of masks below `count`.
    unsafe { launch.launch(config) }.w()?;
    Ok(())
}

fn number(value: usize) -> Result<u32> {
    u32::try_from(value).map_err(candle_core::Error::wrap)
}

/// Returns the kernel's code for the device's driver, which is compiled once.
fn ptx() -> Result<&'static str> {
    static PTX: OnceLock<String> = OnceLock::new();
    if let Some(ptx) = PTX.get() {
        return Ok(ptx);
    }
    let ptx = nvrtc::compile_ptx(SOURCE).w()?.to_src();
    Ok(PTX.get_or_init(|| ptx))
}
