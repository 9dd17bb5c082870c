//! The legal part of a row of logits, block by block: a mask and a row in; highest logits, sums of
//! weights and the tokens above a bound out. The decoding stages build on it.
//!
//! A block is 64 logits of which at least one is legal, so sparse and dense masks take the same path,
//! and the cost follows the blocks. Results do not depend on the form of the mask or on the CPU:
//! every sum is taken in one order (eight lanes within a block, then the blocks in ascending order).

use super::weight::Weights;
use super::{Form, TokenMask, WORD};
use crate::ids::TokenId;
use crate::step_error::LogitsError;

/// Lanes of the sums within a block, whatever the width of the CPU's vectors.
const LANES: usize = 8;

/// Legal tokens up to which a block is visited token by token, and not as a whole.
const THIN: u32 = 10;

/// 64 logits in a row.
type Logits = [f32; WORD];

/// 64 ids of which at least one is legal.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// The first id, divided by 64.
    number: u32,
    /// Where its logits are in the chunks of the row.
    slot: u32,
    /// Its legal tokens.
    word: u64,
}

impl Block {
    const fn first(self) -> usize {
        self.number as usize * WORD
    }

    /// Returns its legal positions (0..64), ascending.
    fn bits(self) -> impl Iterator<Item = usize> {
        let mut left = self.word;
        std::iter::from_fn(move || {
            let bit = left.trailing_zeros() as usize;
            left &= left.checked_sub(1)?;
            Some(bit)
        })
    }
}

/// Buffers of [`Legal`], to be used again at the next step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers {
    blocks: Vec<Block>,
    peaks: Vec<f32>,
    order: Vec<f32>,
    sums: Vec<f64>,
    own: Vec<Logits>,
}

/// A row of logits under a mask.
#[derive(Debug)]
pub(crate) struct Legal<'a> {
    row: &'a [f32],
    /// The logits past the last whole chunk of the row, then −∞.
    tail: Logits,
    /// Whether the logits are those in `buffers.own`, one chunk for each block.
    adjusted: bool,
    buffers: &'a mut Buffers,
}

impl<'a> Legal<'a> {
    /// Returns the legal part of `row`.
    ///
    /// # Errors
    ///
    /// [`LogitsError::TooNarrow`].
    pub(crate) fn new(
        mask: &TokenMask,
        row: &'a [f32],
        buffers: &'a mut Buffers,
    ) -> Result<Self, LogitsError> {
        mask.check_width(row.len())?;
        let mut tail = [f32::NEG_INFINITY; WORD];
        let rest = row.as_chunks::<WORD>().1;
        tail[..rest.len()].copy_from_slice(rest);
        buffers.blocks.clear();
        mask.for_each_word(|number, word| {
            buffers.blocks.push(Block { number, slot: number, word });
        });
        Ok(Self { row, tail, adjusted: false, buffers })
    }

    /// Returns whether no token is legal.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffers.blocks.is_empty()
    }

    /// Returns the number of legal tokens.
    pub(crate) fn count(&self) -> usize {
        self.buffers.blocks.iter().map(|block| block.word.count_ones() as usize).sum()
    }

    /// Makes `tokens` illegal, unless nothing would be left: then nothing changes, and the result is
    /// false.
    pub(crate) fn remove(&mut self, tokens: &[TokenId]) -> bool {
        let legal = tokens.iter().filter(|&&token| self.find(token).is_some()).count();
        if legal == self.count() {
            return false;
        }
        for &token in tokens {
            if let Some(at) = self.find(token) {
                self.buffers.blocks[at].word &= !(1 << (token.index() % WORD));
            }
        }
        self.buffers.blocks.retain(|block| block.word != 0);
        true
    }

    /// Changes the logit of `token`, in a copy of the row, if it is legal.
    ///
    /// # Errors
    ///
    /// [`LogitsError`] if the logit was NaN or +∞, or a finite one leaves the range of `f32`.
    /// `change` may make it −∞ by returning exactly that.
    pub(crate) fn adjust(
        &mut self,
        token: TokenId,
        change: impl FnOnce(f64) -> f64,
    ) -> Result<(), LogitsError> {
        let Some(at) = self.find(token) else { return Ok(()) };
        self.copy_row();
        let logit = &mut self.buffers.own[at][token.index() % WORD];
        if let Some(error) = LogitsError::of(*logit, token.index()) {
            return Err(error);
        }
        let changed = change(f64::from(*logit));
        #[expect(clippy::cast_possible_truncation, reason = "rounding is wanted, and checked")]
        let rounded = changed as f32;
        if rounded.is_infinite() && changed != f64::NEG_INFINITY {
            return Err(LogitsError::Overflow { index: token.index() });
        }
        *logit = rounded;
        Ok(())
    }

    /// Returns the highest legal logit, −∞ if there is none, and prepares [`Legal::gather`].
    ///
    /// # Errors
    ///
    /// [`LogitsError`] if a legal logit is NaN or +∞.
    pub(crate) fn max(&mut self) -> Result<f32, LogitsError> {
        let mut peaks = std::mem::take(&mut self.buffers.peaks);
        peaks.clear();
        peaks.resize(self.buffers.blocks.len(), f32::NEG_INFINITY);
        let nan = peaks_of(self.chunks(), &self.tail, &self.buffers.blocks, &mut peaks);
        let max = peaks.iter().fold(f32::NEG_INFINITY, |max, &peak| max.max(peak));
        self.buffers.peaks = peaks;
        if nan || max == f32::INFINITY {
            return Err(self.first_invalid());
        }
        Ok(max)
    }

    /// Returns the lowest legal token whose logit is `max`, which [`Legal::max`] returned.
    pub(crate) fn first_with(&self, max: f32) -> Option<TokenId> {
        let at = self.buffers.peaks.iter().position(|&peak| peak == max)?;
        let block = self.buffers.blocks[at];
        let logits = self.logits(block);
        let bit = block.bits().find(|&bit| logits[bit] == max)?;
        TokenId::from_index(block.first() + bit)
    }

    /// Returns a logit that at least `k` legal tokens reach, high enough that few more do, or −∞.
    /// Call [`Legal::max`] before.
    pub(crate) fn floor_of_top(&mut self, k: usize) -> f32 {
        let Buffers { peaks, order, .. } = &mut *self.buffers;
        if k == 0 || peaks.len() < k {
            return f32::NEG_INFINITY;
        }
        order.clear();
        order.extend_from_slice(peaks);
        // Each of the k blocks with the highest peaks has a token that reaches the lowest of them.
        *order.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a)).1
    }

    /// Writes the candidates with a finite logit of at least `floor` to `out`. Call [`Legal::max`]
    /// before.
    pub(crate) fn gather(&self, floor: f32, out: &mut Vec<Candidate>) {
        out.clear();
        for (&block, &peak) in self.buffers.blocks.iter().zip(&self.buffers.peaks) {
            if peak < floor {
                continue;
            }
            let logits = self.logits(block);
            for bit in block.bits() {
                if logits[bit] >= floor && logits[bit] > f32::NEG_INFINITY {
                    // Less than 64, so it fits.
                    let id = block.number * 64 + u32::try_from(bit).unwrap_or(0);
                    out.push(Candidate::new(logits[bit], TokenId::new(id)));
                }
            }
        }
    }

    /// Returns the sum of the weights of all legal tokens, and prepares [`Legal::at`].
    pub(crate) fn sum(&mut self, weights: Weights) -> f64 {
        let mut sums = std::mem::take(&mut self.buffers.sums);
        sums.clear();
        sums.resize(self.buffers.blocks.len(), 0.0);
        sums_of(self.chunks(), &self.tail, &self.buffers.blocks, weights, &mut sums);
        let total = sums.iter().sum();
        self.buffers.sums = sums;
        total
    }

    /// Returns the first token, in ascending order, up to which the weights sum to more than
    /// `target`, and its logit; the last token with a weight if rounding leaves none. Call
    /// [`Legal::sum`] with the same weights before.
    pub(crate) fn at(&self, target: f64, weights: Weights) -> Option<(TokenId, f32)> {
        let sums = &self.buffers.sums;
        let mut before = 0.0;
        let mut chosen = None;
        for (i, &sum) in sums.iter().enumerate() {
            if sum > 0.0 {
                chosen = Some((i, before));
                if before + sum > target {
                    break;
                }
            }
            before += sum;
        }
        let (at, mut reached) = chosen?;
        let block = self.buffers.blocks[at];
        let logits = self.logits(block);
        let mut last = None;
        for bit in block.bits() {
            let weight = weights.of(logits[bit]);
            if weight > 0.0 {
                last = TokenId::from_index(block.first() + bit).map(|id| (id, logits[bit]));
                reached += weight;
                if reached > target {
                    break;
                }
            }
        }
        last
    }

    fn logits(&self, block: Block) -> &Logits {
        self.chunks().get(block.slot as usize).unwrap_or(&self.tail)
    }

    fn chunks(&self) -> &[Logits] {
        if self.adjusted { &self.buffers.own } else { self.row.as_chunks().0 }
    }

    /// Returns the position of the block in which `token` is legal.
    fn find(&self, token: TokenId) -> Option<usize> {
        let blocks = &self.buffers.blocks;
        let number = token.index() / WORD;
        let at = blocks.binary_search_by_key(&number, |block| block.number as usize).ok()?;
        (blocks[at].word >> (token.index() % WORD) & 1 == 1).then_some(at)
    }

    fn copy_row(&mut self) {
        if self.adjusted {
            return;
        }
        let mut own = std::mem::take(&mut self.buffers.own);
        own.clear();
        own.extend(self.buffers.blocks.iter().map(|&block| *self.logits(block)));
        self.buffers.own = own;
        for (slot, block) in (0..).zip(&mut self.buffers.blocks) {
            block.slot = slot;
        }
        self.adjusted = true;
    }

    #[cold]
    fn first_invalid(&self) -> LogitsError {
        let wrong = |block: &Block| {
            let logits = self.logits(*block);
            block.bits().find_map(|bit| LogitsError::of(logits[bit], block.first() + bit))
        };
        // Asked only where there is one.
        let first = self.buffers.blocks.iter().find_map(wrong);
        first.unwrap_or(LogitsError::NotANumber { index: 0 })
    }
}

impl TokenMask {
    /// Calls `f` with the number and bits of each word that is not 0, in ascending order.
    fn for_each_word(&self, mut f: impl FnMut(u32, u64)) {
        if let Form::Sparse(ids) = &self.form {
            let number = |id: &TokenId| id.get() / 64;
            for ids in ids.chunk_by(|a, b| number(a) == number(b)) {
                f(number(&ids[0]), ids.iter().fold(0, |word, id| word | 1 << (id.get() % 64)));
            }
            return;
        }
        self.for_each_run(|first, words| {
            let first = u32::try_from(first).unwrap_or(u32::MAX); // Ids have 32 bits.
            for (number, &word) in (first..).zip(words) {
                if word != 0 {
                    f(number, word);
                }
            }
        });
    }
}

/// A token and its logit. Candidates are ordered by descending logit, then ascending id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate(u64);

impl Candidate {
    /// `logit` is not NaN.
    fn new(logit: f32, token: TokenId) -> Self {
        // IEEE 754 numbers sort as their bits do, the negative ones downwards; −0 becomes 0.
        let bits = (logit + 0.0).to_bits();
        let ascending = if bits >> 31 == 0 { bits | 1 << 31 } else { !bits };
        Self(u64::from(!ascending) << 32 | u64::from(token.get()))
    }

    pub(crate) const fn token(self) -> TokenId {
        let [a, b, c, d, ..] = self.0.to_le_bytes();
        TokenId::new(u32::from_le_bytes([a, b, c, d]))
    }

    pub(crate) const fn logit(self) -> f32 {
        let [.., a, b, c, d] = self.0.to_le_bytes();
        let ascending = !u32::from_le_bytes([a, b, c, d]);
        f32::from_bits(if ascending >> 31 == 1 { ascending & !(1 << 31) } else { !ascending })
    }
}

/// Defines a function whose body is compiled once more for AVX2, and chosen at run time.
///
/// The body is the same, so the results are: Rust contracts and reorders no floating-point
/// operations.
macro_rules! vectorised {
    ($(#[$meta:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $out:ty)? = $body:ident) => {
        $(#[$meta])*
        fn $name($($arg: $type),*) $(-> $out)? {
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                #[target_feature(enable = "avx2")]
                fn avx2($($arg: $type),*) $(-> $out)? {
                    $body($($arg),*)
                }
                // SAFETY: the CPU has AVX2, checked above.
                #[expect(unsafe_code, reason = "calls a target_feature function")]
                return unsafe { avx2($($arg),*) };
            }
            $body($($arg),*)
        }
    };
}

vectorised! {
    /// Writes the highest legal logit of each block; returns whether a legal logit is NaN.
    fn peaks_of(
        chunks: &[Logits],
        tail: &Logits,
        blocks: &[Block],
        peaks: &mut [f32],
    ) -> bool = peaks_body
}

#[inline(always)]
fn peaks_body(chunks: &[Logits], tail: &Logits, blocks: &[Block], peaks: &mut [f32]) -> bool {
    let higher = |a: f32, b: f32| if a > b { a } else { b };
    let mut nan = [0_u32; LANES];
    for (block, peak) in blocks.iter().zip(peaks) {
        let logits = chunks.get(block.slot as usize).unwrap_or(tail);
        if block.word.count_ones() <= THIN {
            for bit in block.bits() {
                nan[0] |= u32::from(logits[bit].is_nan());
                *peak = higher(logits[bit], *peak);
            }
            continue;
        }
        let mut best = [f32::NEG_INFINITY; LANES];
        for (byte, logits) in block.word.to_le_bytes().into_iter().zip(logits.as_chunks().0) {
            let legal = legal_lanes(byte, logits);
            for lane in 0..LANES {
                nan[lane] |= u32::from(legal[lane].is_nan());
                best[lane] = higher(legal[lane], best[lane]);
            }
        }
        let [a, b, c, d, e, f, g, h] = best;
        *peak = higher(higher(higher(a, e), higher(c, g)), higher(higher(b, f), higher(d, h)));
    }
    nan != [0; LANES]
}

vectorised! {
    /// Writes the sum of the weights of each block.
    fn sums_of(
        chunks: &[Logits],
        tail: &Logits,
        blocks: &[Block],
        weights: Weights,
        sums: &mut [f64],
    ) = sums_body
}

#[inline(always)]
fn sums_body(
    chunks: &[Logits],
    tail: &Logits,
    blocks: &[Block],
    weights: Weights,
    sums: &mut [f64],
) {
    for (block, sum) in blocks.iter().zip(sums) {
        let logits = chunks.get(block.slot as usize).unwrap_or(tail);
        let mut lanes = [0.0; LANES];
        if block.word.count_ones() <= THIN {
            for bit in block.bits() {
                lanes[bit % LANES] += weights.of(logits[bit]);
            }
        } else {
            for (byte, logits) in block.word.to_le_bytes().into_iter().zip(logits.as_chunks().0) {
                let legal = legal_lanes(byte, logits);
                for lane in 0..LANES {
                    lanes[lane] += weights.of(legal[lane]);
                }
            }
        }
        let [a, b, c, d, e, f, g, h] = lanes;
        *sum = ((a + e) + (c + g)) + ((b + f) + (d + h));
    }
}

/// Returns the logits whose bit is 1, and −∞ for the others; by integer operations, because the
/// compiler makes branches of a choice between floats.
#[inline(always)]
fn legal_lanes(byte: u8, logits: &[f32; LANES]) -> [f32; LANES] {
    const NONE: u32 = f32::NEG_INFINITY.to_bits();
    let mut legal = [0.0; LANES];
    for lane in 0..LANES {
        let keep = 0_u32.wrapping_sub(u32::from(byte) >> lane & 1);
        legal[lane] = f32::from_bits(logits[lane].to_bits() & keep | NONE & !keep);
    }
    legal
}
