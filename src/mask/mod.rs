//! Sets of legal tokens, in the form that is cheapest for each: words, a base with differences, or
//! a short list of ids.

mod apply;
#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "random bits")]
mod kernel_tests;
mod scalar;
pub(crate) mod select;
pub(crate) mod weight;
#[cfg(target_arch = "x86_64")]
mod x86_64;

use std::borrow::Cow;
use std::sync::Arc;

use crate::ids::TokenId;

/// Number of bits of one mask word.
const WORD: usize = 64;

/// A set of legal tokens over a vocabulary of [`TokenMask::width`] ids. Immutable and cheap to clone.
#[derive(Clone, Debug)]
pub struct TokenMask {
    width: usize,
    form: Form,
}

/// How a mask is stored. Adapters match on it to touch as little memory as they can.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Form {
    /// `ceil(width / 64)` words; bit `i % 64` of word `i / 64` is token `i`, 1 is legal. Bits past
    /// the width are 0.
    Dense(Arc<[u64]>),
    /// A dense base that other masks share, and where this mask differs from it.
    Delta {
        /// The base, as in [`Form::Dense`].
        base: Arc<[u64]>,
        /// Sorted ids that are legal here and not in the base.
        added: Arc<[TokenId]>,
        /// Sorted ids that are legal in the base and not here.
        removed: Arc<[TokenId]>,
    },
    /// Sorted ids of the legal tokens.
    Sparse(Arc<[TokenId]>),
}

/// Tells masks apart by where they are stored. Of two living masks, equal identities mean equal sets; the
/// converse does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MaskIdentity([(usize, usize); 3]);

impl TokenMask {
    /// Returns the identity of the mask, which stays the same in its clones and may be given to another
    /// mask once all of them are dropped. Costs nothing.
    #[must_use]
    pub fn identity(&self) -> MaskIdentity {
        fn place<T>(part: &[T]) -> (usize, usize) {
            (part.as_ptr().addr(), part.len())
        }
        MaskIdentity(match &self.form {
            Form::Dense(words) => [place(words), (0, 0), (0, 0)],
            Form::Delta { base, added, removed } => [place(base), place(added), place(removed)],
            // Ids have 4 bytes each and words 8, so that lists have an identity of their own.
            Form::Sparse(ids) => [(0, 0), place(ids), (0, 0)],
        })
    }

    /// Returns the mask without a legal token.
    #[must_use]
    pub fn empty(width: usize) -> Self {
        Self { width, form: Form::Sparse(Arc::from([])) }
    }

    /// Returns the mask of these ids, which need not be sorted or distinct. Ids outside the width
    /// are dropped.
    #[must_use]
    pub fn from_ids(width: usize, mut ids: Vec<TokenId>) -> Self {
        if ids.len() > Self::sparse_max(width) {
            // Setting bits needs no order.
            let mut words = vec![0; width.div_ceil(WORD)];
            for id in ids.into_iter().filter(|id| id.index() < width) {
                words[id.index() / WORD] |= 1_u64 << (id.index() % WORD);
            }
            return Self::from_words(width, words);
        }
        ids.sort_unstable();
        ids.dedup();
        ids.retain(|id| id.index() < width);
        Self { width, form: Form::Sparse(ids.into()) }
    }

    /// Returns the mask of these words (see [`Form::Dense`]); bits past the width are cleared.
    ///
    /// # Panics
    ///
    /// If the number of words is not `ceil(width / 64)`.
    #[must_use]
    pub fn from_words(width: usize, mut words: Vec<u64>) -> Self {
        assert_eq!(words.len(), width.div_ceil(WORD), "a mask needs one bit for each token");
        if let (Some(last), used @ 1..) = (words.last_mut(), width % WORD) {
            *last &= (1 << used) - 1;
        }
        let count: usize = words.iter().map(|w| w.count_ones() as usize).sum();
        if count <= Self::sparse_max(width) {
            let ids = ones(&words).collect::<Vec<_>>();
            return Self { width, form: Form::Sparse(ids.into()) };
        }
        Self { width, form: Form::Dense(words.into()) }
    }

    /// Returns the mask of the words `base` with `added` put in and `removed` taken out.
    ///
    /// Ids that do not change the base are ignored. Becomes dense where the difference would be
    /// larger than the words.
    #[must_use]
    pub fn from_base(
        width: usize,
        base: &Arc<[u64]>,
        mut added: Vec<TokenId>,
        mut removed: Vec<TokenId>,
    ) -> Self {
        let in_base = |id: &TokenId| base[id.index() / WORD] >> (id.index() % WORD) & 1 == 1;
        removed.retain(|id| id.index() < width && in_base(id));
        removed.sort_unstable();
        removed.dedup();
        added.retain(|id| id.index() < width && !in_base(id));
        added.sort_unstable();
        added.dedup();
        if added.len() + removed.len() > Self::sparse_max(width) {
            let mut words = base.to_vec();
            for id in removed {
                words[id.index() / WORD] &= !(1_u64 << (id.index() % WORD));
            }
            for id in added {
                words[id.index() / WORD] |= 1_u64 << (id.index() % WORD);
            }
            return Self::from_words(width, words);
        }
        Self {
            width,
            form: Form::Delta { base: base.clone(), added: added.into(), removed: removed.into() },
        }
    }

    /// Returns a stored mask, or `None` if its ids are not sorted or outside the width, or its words
    /// are not as many as the width needs.
    #[must_use]
    pub fn from_form(width: usize, form: Form) -> Option<Self> {
        let sorted = |ids: &[TokenId]| {
            ids.is_sorted_by(|a, b| a < b) && ids.last().is_none_or(|id| id.index() < width)
        };
        let whole = |words: &[u64]| {
            let past = if width.is_multiple_of(WORD) { 0 } else { !0 << (width % WORD) };
            words.len() == width.div_ceil(WORD) && words.last().is_none_or(|last| last & past == 0)
        };
        let has =
            |words: &[u64], id: TokenId| words[id.index() / WORD] >> (id.index() % WORD) & 1 == 1;
        let ok = match &form {
            Form::Dense(words) => whole(words),
            Form::Sparse(ids) => sorted(ids),
            Form::Delta { base, added, removed } => {
                whole(base)
                    && sorted(added)
                    && sorted(removed)
                    && added.iter().all(|&id| !has(base, id))
                    && removed.iter().all(|&id| has(base, id))
            }
        };
        ok.then_some(Self { width, form })
    }

    /// The number of ids up to which a list of 32-bit ids is smaller than a quarter of the words.
    const fn sparse_max(width: usize) -> usize {
        width / 128
    }

    /// Returns the number of ids that the mask speaks of: the length of the vocabulary.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Returns how the mask is stored.
    #[must_use]
    pub const fn form(&self) -> &Form {
        &self.form
    }

    /// Returns whether `token` is legal. Ids outside the width are not.
    #[must_use]
    pub fn contains(&self, token: TokenId) -> bool {
        let bit = |words: &[u64]| {
            words.get(token.index() / WORD).is_some_and(|w| w >> (token.index() % WORD) & 1 == 1)
        };
        match &self.form {
            Form::Dense(words) => bit(words),
            Form::Sparse(ids) => ids.binary_search(&token).is_ok(),
            Form::Delta { base, added, removed } => {
                (bit(base) && removed.binary_search(&token).is_err())
                    || added.binary_search(&token).is_ok()
            }
        }
    }

    /// Returns the number of legal tokens. Costs one pass over the words unless sparse.
    #[must_use]
    pub fn count(&self) -> usize {
        let ones = |words: &[u64]| words.iter().map(|w| w.count_ones() as usize).sum::<usize>();
        match &self.form {
            Form::Dense(words) => ones(words),
            Form::Sparse(ids) => ids.len(),
            Form::Delta { base, added, removed } => ones(base) + added.len() - removed.len(),
        }
    }

    /// Returns whether no token is legal.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.form {
            Form::Sparse(ids) => ids.is_empty(),
            Form::Dense(words) => words.iter().all(|&word| word == 0),
            // Mostly the first word tells.
            Form::Delta { base, added, removed } => {
                added.is_empty()
                    && base.iter().zip(0..).all(|(&word, i)| {
                        word == 0
                            || ones(&[word]).all(|token| {
                                let token = TokenId::from_index(i * WORD + token.index());
                                token.is_some_and(|token| removed.binary_search(&token).is_ok())
                            })
                    })
            }
        }
    }

    /// Returns the words of the mask (see [`Form::Dense`]), borrowed where it is stored so.
    #[must_use]
    pub fn words(&self) -> Cow<'_, [u64]> {
        match &self.form {
            Form::Dense(words) => Cow::Borrowed(words),
            _ => {
                let mut words = vec![0; self.width.div_ceil(WORD)];
                self.write_words(&mut words);
                Cow::Owned(words)
            }
        }
    }

    /// Writes the words of the mask (see [`Form::Dense`]) to `out` and clears what is left of it.
    ///
    /// # Panics
    ///
    /// If `out` has fewer than `ceil(width / 64)` words.
    pub fn write_words(&self, out: &mut [u64]) {
        out.fill(0);
        self.union_into(out);
    }

    /// Sets the bits of all legal tokens in `out`.
    ///
    /// # Panics
    ///
    /// If `out` has fewer than `ceil(width / 64)` words.
    pub fn union_into(&self, out: &mut [u64]) {
        match &self.form {
            Form::Dense(words) => {
                for (o, w) in out[..words.len()].iter_mut().zip(words.iter()) {
                    *o |= w;
                }
            }
            Form::Sparse(ids) => {
                for id in ids.iter() {
                    out[id.index() / WORD] |= 1 << (id.index() % WORD);
                }
            }
            Form::Delta { base, added, removed } => {
                // A removed id may have been set before by another mask, so keep its bit.
                let before: Vec<bool> = removed
                    .iter()
                    .map(|id| out[id.index() / WORD] >> (id.index() % WORD) & 1 == 1)
                    .collect();
                for (o, w) in out[..base.len()].iter_mut().zip(base.iter()) {
                    *o |= w;
                }
                for (id, was_set) in removed.iter().zip(before) {
                    if !was_set {
                        out[id.index() / WORD] &= !(1 << (id.index() % WORD));
                    }
                }
                for id in added.iter() {
                    out[id.index() / WORD] |= 1 << (id.index() % WORD);
                }
            }
        }
    }

    /// Returns the union of masks of one width. Sparse unions of sparse masks stay sparse, and
    /// additions to a base keep sharing it.
    ///
    /// # Panics
    ///
    /// If the widths differ.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        assert_eq!(self.width, other.width, "masks of two vocabularies");
        let merged = |a: &[TokenId], b: &[TokenId]| a.iter().chain(b).copied().collect::<Vec<_>>();
        match (&self.form, &other.form) {
            (Form::Sparse(a), _) if a.is_empty() => other.clone(),
            (_, Form::Sparse(b)) if b.is_empty() => self.clone(),
            (Form::Sparse(a), Form::Sparse(b)) => Self::from_ids(self.width, merged(a, b)),
            (Form::Dense(base), Form::Sparse(ids)) | (Form::Sparse(ids), Form::Dense(base)) => {
                Self::from_base(self.width, base, ids.to_vec(), Vec::new())
            }
            (Form::Delta { base, added, removed }, Form::Sparse(ids))
            | (Form::Sparse(ids), Form::Delta { base, added, removed }) => {
                let removed =
                    removed.iter().copied().filter(|id| ids.binary_search(id).is_err()).collect();
                Self::from_base(self.width, base, merged(added, ids), removed)
            }
            _ => {
                let mut words = vec![0; self.width.div_ceil(WORD)];
                self.union_into(&mut words);
                other.union_into(&mut words);
                Self::from_words(self.width, words)
            }
        }
    }

    /// Returns this mask without the tokens `ids`.
    #[must_use]
    pub fn without(&self, ids: &[TokenId]) -> Self {
        match &self.form {
            Form::Sparse(own) => Self::from_ids(
                self.width,
                own.iter().copied().filter(|id| !ids.contains(id)).collect(),
            ),
            Form::Dense(base) => Self::from_base(self.width, base, Vec::new(), ids.to_vec()),
            Form::Delta { base, added, removed } => {
                let added = added.iter().copied().filter(|id| !ids.contains(id)).collect();
                let removed = removed.iter().chain(ids).copied().collect();
                Self::from_base(self.width, base, added, removed)
            }
        }
    }

    /// Returns this mask with the tokens `added` put in, and those of `removed` taken out that are not
    /// in `added`.
    #[must_use]
    pub fn with_changes(&self, mut added: Vec<TokenId>, mut removed: Vec<TokenId>) -> Self {
        added.sort_unstable();
        removed.retain(|id| added.binary_search(id).is_err());
        removed.sort_unstable();
        let stays = |id: &&TokenId| removed.binary_search(id).is_err();
        match &self.form {
            Form::Sparse(own) => {
                added.extend(own.iter().filter(stays));
                Self::from_ids(self.width, added)
            }
            Form::Dense(base) => Self::from_base(self.width, base, added, removed),
            Form::Delta { base, added: own, removed: gone } => {
                let back = |id: &&TokenId| added.binary_search(id).is_err();
                let gone: Vec<_> = gone.iter().filter(back).copied().collect();
                added.extend(own.iter().filter(stays));
                removed.extend(gone);
                Self::from_base(self.width, base, added, removed)
            }
        }
    }

    /// Returns the legal tokens in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = TokenId> + '_ {
        let (sparse, words): (&[TokenId], Cow<'_, [u64]>) = match &self.form {
            Form::Sparse(ids) => (ids, Cow::Borrowed(&[])),
            _ => (&[], self.words()),
        };
        let mut dense = Vec::new();
        if !words.is_empty() {
            dense.extend(ones(&words));
        }
        sparse.iter().copied().chain(dense)
    }

    /// Returns the bytes of memory that this mask owns alone (a shared base is not counted).
    #[must_use]
    pub fn memory(&self) -> usize {
        match &self.form {
            Form::Dense(words) => words.len() * 8,
            Form::Sparse(ids) => ids.len() * 4,
            Form::Delta { added, removed, .. } => (added.len() + removed.len()) * 4,
        }
    }
}

impl PartialEq for TokenMask {
    fn eq(&self, other: &Self) -> bool {
        self.width == other.width && self.words() == other.words()
    }
}

impl Eq for TokenMask {}

/// Returns the ids of the bits that are set.
fn ones(words: &[u64]) -> impl Iterator<Item = TokenId> + '_ {
    words.iter().enumerate().flat_map(|(i, &word)| {
        let mut left = word;
        std::iter::from_fn(move || {
            (left != 0).then(|| {
                let bit = left.trailing_zeros() as usize;
                left &= left - 1;
                bit
            })
        })
        .filter_map(move |bit| TokenId::from_index(i * WORD + bit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(list: &[u32]) -> Vec<TokenId> {
        list.iter().map(|&i| TokenId::new(i)).collect()
    }

    #[test]
    fn every_form_holds_the_same_set() {
        let width = 1_000;
        let members: Vec<u32> = (0..1_000).filter(|i| i % 3 == 0).collect();
        let dense = TokenMask::from_ids(width, ids(&members));
        assert!(matches!(dense.form(), Form::Dense(_)));
        let Form::Dense(base) = dense.form() else { unreachable!() };
        let delta = TokenMask::from_base(width, base, ids(&[1, 3]), ids(&[6, 7]));
        assert!(matches!(delta.form(), Form::Delta { .. }));
        assert!(delta.contains(TokenId::new(1)) && delta.contains(TokenId::new(3)));
        assert!(!delta.contains(TokenId::new(6)) && !delta.contains(TokenId::new(7)));
        assert_eq!(delta.count(), 334);
        assert_eq!(delta.iter().count(), 334);
        let sparse = TokenMask::from_ids(width, ids(&[6]));
        assert_eq!(delta.union(&sparse).count(), 335);
        assert!(delta.union(&sparse).contains(TokenId::new(6)));
        assert_eq!(delta.without(&ids(&[1, 9])).count(), 332);
        assert_eq!(TokenMask::from_words(width, delta.words().into_owned()), delta);
    }

    #[test]
    fn changes_are_those_of_sets() {
        let width = 1_000;
        let every = |n: u32| (0..1_000).filter(|i| i % n == 0).collect::<Vec<u32>>();
        let dense = TokenMask::from_ids(width, ids(&every(3)));
        let Form::Dense(base) = dense.form() else { unreachable!() };
        let delta = TokenMask::from_base(width, base, ids(&[1, 4]), ids(&[6, 9]));
        let sparse = TokenMask::from_ids(width, ids(&[1, 6]));
        for mask in [dense.clone(), delta, sparse] {
            let changed = mask.with_changes(ids(&[6, 7, 12]), ids(&[1, 3, 5, 12, 999]));
            for id in (0..1_000).map(TokenId::new) {
                let expected = match id.get() {
                    6 | 7 | 12 => true,
                    1 | 3 | 5 | 999 => false,
                    _ => mask.contains(id),
                };
                assert_eq!(changed.contains(id), expected, "{id:?}");
            }
        }
    }

    #[test]
    fn union_keeps_tokens_that_one_side_removed() {
        let width = 1_000;
        let all = TokenMask::from_words(width, vec![u64::MAX; 16]);
        assert_eq!(all.count(), 1_000);
        let Form::Dense(base) = all.form() else { unreachable!() };
        let a = TokenMask::from_base(width, base, vec![], ids(&[5]));
        let b = TokenMask::from_base(width, base, vec![], ids(&[6]));
        assert_eq!(a.union(&b).count(), 1_000);
        assert_eq!(a.union(&a).count(), 999);
    }
}
