//! Where logits come from: tokens in, a row of logits out. The sampler asks it in its loop.

use crate::ids::TokenId;
use crate::runtime::random::uniform;
use crate::vocab::Vocabulary;

/// A language model, or what stands for one. A closure from tokens to logits is a model.
pub trait Model {
    /// Why it can fail.
    type Error;

    /// Writes the logits of the token after `tokens` to `row`, in place of what is there: one for
    /// each id of the vocabulary, and padding as it likes. `tokens` is what was generated so far;
    /// the prompt is the model's own affair.
    ///
    /// # Errors
    ///
    /// What the model says.
    fn logits(&mut self, tokens: &[TokenId], row: &mut Vec<f32>) -> Result<(), Self::Error>;

    /// Returns how many sequences it is best asked for at a time. The default is 1: a model that
    /// remembers the sequence that it was last asked for then goes on with that.
    fn batch_size(&self) -> usize {
        1
    }

    /// Writes the logits after each of `sequences` to the rows of the same number. `rows` gets as many
    /// as there are sequences.
    ///
    /// The default asks one by one; a model that can run several sequences at a time does so here, and
    /// must give each the same row as alone.
    ///
    /// # Errors
    ///
    /// What the model says.
    fn logits_each(
        &mut self,
        sequences: &[&[TokenId]],
        rows: &mut Vec<Vec<f32>>,
    ) -> Result<(), Self::Error> {
        rows.resize_with(sequences.len(), Vec::new);
        for (tokens, row) in sequences.iter().zip(rows) {
            self.logits(tokens, row)?;
        }
        Ok(())
    }

    /// Writes the logits after the first `from` of `tokens`, after one more, and so on to all of them,
    /// to as many rows.
    ///
    /// The default asks one by one; a model that can do it in one run does so here, and must give the
    /// same rows.
    ///
    /// # Errors
    ///
    /// What the model says.
    fn logits_along(
        &mut self,
        tokens: &[TokenId],
        from: usize,
        rows: &mut Vec<Vec<f32>>,
    ) -> Result<(), Self::Error> {
        rows.resize_with(tokens.len() + 1 - from, Vec::new);
        for (more, row) in rows.iter_mut().enumerate() {
            self.logits(&tokens[..from + more], row)?;
        }
        Ok(())
    }
}

impl<F, E> Model for F
where
    F: FnMut(&[TokenId]) -> Result<Vec<f32>, E>,
{
    type Error = E;

    fn logits(&mut self, tokens: &[TokenId], row: &mut Vec<f32>) -> Result<(), E> {
        *row = self(tokens)?;
        Ok(())
    }
}

/// A model without knowledge: seeded noise that favours short outputs. Under a grammar, and drawn
/// from at temperature 1, it makes random valid outputs, which are useful as test data.
///
/// The same vocabulary, seed and number of tokens give the same row. What it favours: every first
/// byte alike, however many tokens begin with it; the bytes that close something, the more the
/// longer the output is; and to end. A grammar may still ask for much, so set
/// [`crate::runtime::Policy::max_tokens`].
///
/// A row costs one addition for each id.
#[derive(Clone, Debug)]
pub struct RandomModel {
    /// What is favoured, by id.
    base: Vec<f32>,
    /// The ids that close or end, which are favoured more and more.
    closing: Vec<TokenId>,
    /// Noise; each row takes it from another place.
    noise: Vec<f32>,
    seed: u64,
}

/// The places at which the noise of a row can begin.
const OFFSETS: usize = 1 << 14;

/// The bytes that close something in most languages, and how they are favoured: as e³ = 20 others.
const CLOSING: &[u8] = b"\"'`)]}>;";
const CLOSING_BIAS: f32 = 3.0;

/// White space and control bytes are disfavoured.
const BLANK_BIAS: f32 = -2.0;

/// The tokens after which what closes is favoured e times more.
const TOKENS_PER_BIAS: f32 = 24.0;

/// The seed of the noise and of the places where it begins.
const NOISE_SEED: u64 = 0x6e6f_6973_6500_0001;

impl RandomModel {
    /// Returns the model of `seed` over a vocabulary. Costs some 50 ns for each id; use
    /// [`RandomModel::reseed`] for the next output.
    #[must_use]
    pub fn new(vocabulary: &Vocabulary, seed: u64) -> Self {
        let first = |id| vocabulary.bytes(id).first().copied();
        let mut counts = [0_u32; 256];
        vocabulary.ids().filter_map(first).for_each(|byte| counts[usize::from(byte)] += 1);
        let mut closing = Vec::new();
        let mut base = Vec::with_capacity(vocabulary.len());
        for id in vocabulary.ids() {
            let (bias, closes) = match first(id) {
                None => (CLOSING_BIAS, vocabulary.is_end(id)),
                Some(byte) => {
                    let closes = CLOSING.contains(&byte);
                    let blank = byte <= b' ';
                    #[expect(clippy::cast_possible_truncation, reason = "a logarithm")]
                    let alike = -f64::from(counts[usize::from(byte)]).ln() as f32;
                    let favour = match (closes, blank) {
                        (true, _) => CLOSING_BIAS,
                        (_, true) => BLANK_BIAS,
                        _ => 0.0,
                    };
                    (alike + favour, closes)
                }
            };
            base.push(bias);
            if closes {
                closing.push(id);
            }
        }
        let noise = noise(vocabulary.len() + OFFSETS);
        Self { base, closing, noise, seed }
    }

    /// Makes this the model of another seed.
    pub const fn reseed(&mut self, seed: u64) {
        self.seed = seed;
    }
}

impl Model for RandomModel {
    type Error = std::convert::Infallible;

    fn logits(&mut self, tokens: &[TokenId], row: &mut Vec<f32>) -> Result<(), Self::Error> {
        let place = uniform(self.seed ^ NOISE_SEED, tokens.len()) * OFFSETS as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a position")]
        let noise = &self.noise[place as usize..];
        row.clear();
        row.extend(self.base.iter().zip(noise).map(|(base, noise)| base + noise));
        let haste = tokens.len() as f32 / TOKENS_PER_BIAS;
        for id in &self.closing {
            row[id.index()] += haste;
        }
        Ok(())
    }
}

/// Returns numbers of a standard Gumbel distribution.
fn noise(count: usize) -> Vec<f32> {
    let mut state = NOISE_SEED;
    let mut next = || {
        // SplitMix64 (Steele, Lea, Flood 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let mut gumbel = || {
        // In 0 to 1, both exclusive.
        let u = ((next() >> 12) as f64 + 0.5) / 4_503_599_627_370_496.0;
        #[expect(clippy::cast_possible_truncation, reason = "noise")]
        return -(-u.ln()).ln() as f32;
    };
    (0..count).map(|_| gumbel()).collect()
}
