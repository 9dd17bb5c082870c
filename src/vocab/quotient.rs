//! Quotient tries: bytes that a part of a grammar cannot tell apart are one, so that tokens with the
//! same fate share a path (DESIGN.md section 5).
//!
//! A few partitions serve nearly all patterns, and are tried from the coarsest on. A state that tells
//! two bytes of a class apart makes the walk go on to the next, and at last to the plain trie.

use crate::byteset::ByteSet;

/// A partition of the 256 bytes: for each byte the least byte of its class.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Partition([u8; 256]);

/// Returns whether a quotient keeps all bytes of a text apart from `byte` on: what follows the end of a
/// JSON string is for other states to read, and an escape is read letter by letter.
#[must_use]
pub const fn is_exact_from(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\')
}

/// The number of [`Partition::usual`] ones.
pub const QUOTIENTS: usize = 4;

impl Partition {
    /// Returns the partition in which two bytes are together if the same of `sets` contain them.
    #[must_use]
    pub fn new(sets: &[ByteSet]) -> Self {
        let mut least = [0; 256];
        for byte in 0..=255_u8 {
            let same =
                |other: &u8| sets.iter().all(|set| set.contains(*other) == set.contains(byte));
            least[usize::from(byte)] = (0..=byte).find(same).unwrap_or(byte);
        }
        Self(least)
    }

    /// Returns the partitions that serve most patterns, the coarsest first: white space; letters of
    /// either case, digits and single signs; hexadecimal letters, too; and single digits.
    ///
    /// All keep the bytes of the UTF-8 forms of Unicode's white space apart, and the ranges that tell
    /// well-formed UTF-8 from other bytes (RFC 3629 section 4).
    #[must_use]
    pub fn usual() -> [Self; QUOTIENTS] {
        let range = ByteSet::range;
        let mut space = vec![ByteSet::single(b'"'), ByteSet::single(b'\\'), ByteSet::single(b'\n')];
        space.extend([
            range(0, 0x1f),
            range(0x09, 0x0d),
            range(0, b' '),
            range(0, 0x7e),
            range(0, 0x7f),
        ]);
        // Where the encodings of U+0085, U+00A0, U+1680, U+2000 to U+205F, U+3000 and U+FEFF differ
        // from those of other characters, and where ranges of well-formed sequences end.
        let bounds = [
            0x80, 0x81, 0x82, 0x85, 0x86, 0x8b, 0x90, 0x9a, 0x9b, 0x9f, 0xa0, 0xa1, 0xa8, 0xaa,
            0xaf, 0xb0, 0xbb, 0xbc, 0xbf, 0xc0, 0xc2, 0xc3, 0xe0, 0xe1, 0xe2, 0xe3, 0xe4, 0xed,
            0xee, 0xef, 0xf0, 0xf1, 0xf4, 0xf5,
        ];
        space.extend(bounds.map(|bound| range(0, bound - 1)));
        let mut word = space.clone();
        word.extend([range(b'0', b'9'), range(b'A', b'Z'), range(b'a', b'z')]);
        word.extend((0..=0x7f_u8).filter(u8::is_ascii_punctuation).map(ByteSet::single));
        let mut hex = word.clone();
        hex.extend([range(b'A', b'F'), range(b'a', b'f')]);
        let mut digit = hex.clone();
        digit.extend((b'0'..=b'9').map(ByteSet::single));
        [space, word, hex, digit].map(|sets| Self::new(&sets))
    }

    /// Returns the least byte of the class of `byte`.
    #[must_use]
    pub fn least(&self, byte: u8) -> u8 {
        self.0[usize::from(byte)]
    }

    /// Returns whether bytes of one class here always have one value in `class_of`.
    #[must_use]
    pub fn refines(&self, class_of: &[u8; 256]) -> bool {
        (0..256).all(|byte| class_of[byte] == class_of[usize::from(self.0[byte])])
    }
}

impl std::fmt::Debug for Partition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let classes = (0..=255).filter(|&byte| self.least(byte) == byte).count();
        write!(f, "Partition({classes} classes)")
    }
}
