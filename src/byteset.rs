//! A set of bytes as 256 bits.

use std::fmt;

/// A set of bytes.
#[derive(
    Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    /// The empty set.
    pub const EMPTY: Self = Self([0; 4]);
    /// All 256 bytes.
    pub const ALL: Self = Self([u64::MAX; 4]);

    /// Returns the set of one byte.
    #[must_use]
    pub const fn single(byte: u8) -> Self {
        let mut words = [0; 4];
        words[(byte >> 6) as usize] = 1 << (byte & 63);
        Self(words)
    }

    /// Returns the set of the bytes from `first` to `last`, both included.
    #[must_use]
    pub fn range(first: u8, last: u8) -> Self {
        let mut set = Self::EMPTY;
        for byte in first..=last {
            set.insert(byte);
        }
        set
    }

    /// Returns the set of the bytes of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut set = Self::EMPTY;
        for &byte in bytes {
            set.insert(byte);
        }
        set
    }

    /// Adds `byte`.
    pub const fn insert(&mut self, byte: u8) {
        self.0[(byte >> 6) as usize] |= 1 << (byte & 63);
    }

    /// Returns whether `byte` is a member.
    #[must_use]
    pub const fn contains(&self, byte: u8) -> bool {
        self.0[(byte >> 6) as usize] >> (byte & 63) & 1 == 1
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// Returns the number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Returns the bytes of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    /// Returns the bytes of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    /// Returns the bytes of this set that are not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] & !other.0[i]))
    }

    /// Returns the bytes that are not in the set.
    #[must_use]
    pub fn complement(&self) -> Self {
        Self(self.0.map(|w| !w))
    }

    /// Returns the smallest member.
    #[must_use]
    pub fn first(&self) -> Option<u8> {
        self.iter().next()
    }

    /// Returns the members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u8> + use<> {
        let mut words = self.0;
        let mut base = 0_u8;
        std::iter::from_fn(move || {
            loop {
                let word = &mut words[usize::from(base >> 6)];
                if *word != 0 {
                    let bit = word.trailing_zeros().to_le_bytes()[0];
                    *word &= *word - 1;
                    return Some(base | bit);
                }
                base = base.checked_add(64)?;
            }
        })
    }
}

impl fmt::Debug for ByteSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        let mut bytes = self.iter().peekable();
        while let Some(first) = bytes.next() {
            let mut last = first;
            while bytes.peek().is_some_and(|&b| b == last.wrapping_add(1)) {
                last = bytes.next().unwrap_or(last);
            }
            write!(f, "{}", std::ascii::escape_default(first))?;
            if last > first {
                write!(f, "-{}", std::ascii::escape_default(last))?;
            }
        }
        f.write_str("]")
    }
}

impl FromIterator<u8> for ByteSet {
    fn from_iter<I: IntoIterator<Item = u8>>(bytes: I) -> Self {
        let mut set = Self::EMPTY;
        for byte in bytes {
            set.insert(byte);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iteration_returns_each_member_once_in_order() {
        let set = ByteSet::of(&[0, 63, 64, 127, 128, 255]);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 127, 128, 255]);
        assert_eq!(set.complement().len(), 250);
        assert_eq!(ByteSet::ALL.iter().count(), 256);
        assert!(ByteSet::EMPTY.first().is_none());
    }

    #[test]
    fn debug_prints_ranges() {
        assert_eq!(format!("{:?}", ByteSet::range(b'a', b'z')), "[a-z]");
    }
}
