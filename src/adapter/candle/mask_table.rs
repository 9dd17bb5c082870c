//! Masks that stay on a device: a mask that is there already is not sent again, only its number is.

use candle_core::{DType, Device, Result, Tensor, bail};
use hashbrown::HashMap;

use crate::adapter::candle::mask_op::{apply_indexed_masks, mask_words};
use crate::mask::{MaskIdentity, TokenMask};

/// A table of masks on a device, with the last used ones in it.
///
/// A grammar gives the same mask for the same state, shared and not copied, so that after a while few
/// steps send more than four bytes for each row. Takes `capacity` times an eighth of the vocabulary in
/// bytes on the device (16 kB for each mask of 128,256 tokens), and keeps the masks alive on the host.
///
/// ```
/// use candle_core::{Device, Tensor};
/// use schemac::adapter::candle::MaskTable;
/// use schemac::{TokenId, TokenMask};
///
/// let mut table = MaskTable::new(3, 16, &Device::Cpu)?;
/// let masks = [TokenMask::from_ids(3, vec![TokenId::new(1)])];
/// for _ in 0..2 {
///     let logits = Tensor::new(&[[0.5_f32, 0.25, 3.0]], &Device::Cpu)?;
///     table.apply(&logits, &masks)?;
///     assert_eq!(logits.to_vec2::<f32>()?, [[f32::NEG_INFINITY, 0.25, f32::NEG_INFINITY]]);
/// }
/// assert_eq!(table.sent(), 1);
/// # Ok::<(), candle_core::Error>(())
/// ```
#[derive(Debug)]
pub struct MaskTable {
    width: usize,
    words: Tensor,
    /// The mask in each place, which keeps its identity from being given to another, and its last use.
    places: Vec<(TokenMask, u64)>,
    place_of: HashMap<MaskIdentity, usize>,
    now: u64,
    sent: u64,
}

impl MaskTable {
    /// Returns an empty table for `capacity` masks of `width` tokens.
    ///
    /// # Errors
    ///
    /// If either is 0, or the device fails.
    pub fn new(width: usize, capacity: usize, device: &Device) -> Result<Self> {
        if width == 0 || capacity == 0 {
            bail!("a table of {capacity} masks of {width} tokens");
        }
        let words = Tensor::zeros((capacity, width.div_ceil(32)), DType::U32, device)?;
        Ok(Self { width, words, places: Vec::new(), place_of: HashMap::new(), now: 0, sent: 0 })
    }

    /// Returns how many masks were sent to the device so far.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Sets the logits of illegal tokens to −∞, in place, with a mask for each row. Masks that are not
    /// in the table take the places of those that were used least recently.
    ///
    /// # Errors
    ///
    /// As [`crate::adapter::candle::apply_masks`], if the masks have another width than the table, or
    /// are more different ones than it holds.
    pub fn apply(&mut self, logits: &Tensor, masks: &[TokenMask]) -> Result<()> {
        let numbers = self.numbers(masks)?;
        let index = Tensor::new(&numbers[..], self.words.device())?;
        apply_indexed_masks(logits, &self.words, &index)
    }

    /// Returns the number of each mask in the table, after sending those that are not in it.
    fn numbers(&mut self, masks: &[TokenMask]) -> Result<Vec<u32>> {
        self.now += 1;
        let mut numbers = Vec::with_capacity(masks.len());
        for mask in masks {
            if mask.width() != self.width {
                bail!("a mask of {} tokens for a table of {}", mask.width(), self.width);
            }
            let place = match self.place_of.get(&mask.identity()) {
                Some(&place) => place,
                None => self.send(mask)?,
            };
            self.places[place].1 = self.now;
            numbers.push(u32::try_from(place).map_err(candle_core::Error::wrap)?);
        }
        Ok(numbers)
    }

    /// Writes a mask to a place that this step does not need.
    fn send(&mut self, mask: &TokenMask) -> Result<usize> {
        let capacity = self.words.dim(0)?;
        let place = if self.places.len() < capacity {
            self.places.len()
        } else {
            let oldest = self.places.iter().enumerate().min_by_key(|(_, place)| place.1);
            match oldest {
                Some((place, (_, last_use))) if *last_use < self.now => place,
                _ => bail!("more than {capacity} different masks in one step"),
            }
        };
        let row = mask_words(std::slice::from_ref(mask), self.words.device())?;
        if let Some((old, _)) = self.places.get(place) {
            self.place_of.remove(&old.identity());
        }
        self.words.slice_set(&row, 0, place)?;
        let kept = (mask.clone(), self.now);
        if place == self.places.len() {
            self.places.push(kept);
        } else {
            self.places[place] = kept;
        }
        self.place_of.insert(mask.identity(), place);
        self.sent += 1;
        Ok(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::candle::apply_masks;
    use crate::ids::TokenId;

    const WIDTH: usize = 200;

    fn mask(number: u32) -> TokenMask {
        TokenMask::from_ids(
            WIDTH,
            (0..200).filter(|i| i % (number + 2) == 0).map(TokenId::new).collect(),
        )
    }

    fn logits(rows: usize) -> Tensor {
        Tensor::arange(0_f32, 1000.0, &Device::Cpu)
            .unwrap()
            .narrow(0, 0, rows * WIDTH)
            .unwrap()
            .reshape((rows, WIDTH))
            .unwrap()
            .copy()
            .unwrap()
    }

    #[test]
    fn rows_are_masked_as_without_a_table_and_masks_are_sent_once() {
        let masks: Vec<TokenMask> = (0..4).map(mask).collect();
        let mut table = MaskTable::new(WIDTH, 3, &Device::Cpu).unwrap();
        // The third step brings a fourth mask, which takes the place of the first.
        for (step, (chosen, sent)) in
            [([0, 1], 2), ([1, 2], 3), ([3, 2], 4), ([1, 3], 4), ([0, 0], 5)]
                .into_iter()
                .enumerate()
        {
            let masks = chosen.map(|i: usize| masks[i].clone());
            let (ours, wanted) = (logits(2), logits(2));
            table.apply(&ours, &masks).unwrap();
            apply_masks(&wanted, &masks).unwrap();
            assert_eq!(ours.to_vec2::<f32>().unwrap(), wanted.to_vec2::<f32>().unwrap(), "{step}");
            assert_eq!(table.sent(), sent, "{step}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(MaskTable::new(WIDTH, 0, &Device::Cpu).is_err());
        let mut table = MaskTable::new(WIDTH, 2, &Device::Cpu).unwrap();
        let masks: Vec<TokenMask> = (0..3).map(mask).collect();
        let before = logits(3);
        assert!(table.apply(&before, &masks).is_err(), "three masks in a table of two");
        assert!(table.apply(&before, &masks[..2]).is_err(), "two masks for three rows");
        assert!(table.apply(&before, &[TokenMask::empty(WIDTH + 1)]).is_err());
        assert_eq!(before.to_vec2::<f32>().unwrap(), logits(3).to_vec2::<f32>().unwrap());
    }
}
