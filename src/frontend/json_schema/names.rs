//! Interned texts: property names, string values and number spellings become 32-bit ids, so that
//! later stages compare and hash integers.

use hashbrown::HashTable;

/// An interned text.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub(super) struct NameId(u32);

impl NameId {
    /// Returns this id as a position in a table.
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A table of distinct texts, numbered in the order of their first occurrence.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub(super) struct Names {
    text: String,
    ends: Vec<u32>,
    table: HashTable<u32>,
}

/// What of [`Names`] is saved: the rest follows from it.
#[derive(serde::Serialize, serde::Deserialize)]
struct Stored(Vec<String>);

impl From<Stored> for Names {
    fn from(stored: Stored) -> Self {
        let mut names = Self::default();
        for text in &stored.0 {
            names.intern(text);
        }
        names
    }
}

impl From<Names> for Stored {
    fn from(names: Names) -> Self {
        Self((0..names.ends.len()).map(|i| names.at(i).to_owned()).collect())
    }
}

fn hash(text: &str) -> u64 {
    use std::hash::BuildHasher;
    foldhash::fast::FixedState::default().hash_one(text)
}

impl Names {
    /// Returns the id of `text`, adding it if it is new.
    ///
    /// Texts come from a source of bounded size, so ids and offsets stay within 32 bits.
    pub(super) fn intern(&mut self, text: &str) -> NameId {
        if let Some(id) = self.find(text) {
            return id;
        }
        let id = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        self.text.push_str(text);
        self.ends.push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
        let (texts, ends) = (&self.text, &self.ends);
        self.table.insert_unique(hash(text), id, |&id| hash(slice(texts, ends, id as usize)));
        NameId(id)
    }

    /// Returns the id of `text` if it is there.
    pub(super) fn find(&self, text: &str) -> Option<NameId> {
        self.table.find(hash(text), |&id| self.at(id as usize) == text).map(|&id| NameId(id))
    }

    /// Returns the text of `id`.
    pub(super) fn get(&self, id: NameId) -> &str {
        self.at(id.index())
    }

    /// Returns the number of texts.
    pub(super) const fn len(&self) -> usize {
        self.ends.len()
    }

    fn at(&self, index: usize) -> &str {
        slice(&self.text, &self.ends, index)
    }
}

fn slice<'a>(text: &'a str, ends: &[u32], index: usize) -> &'a str {
    let start = index.checked_sub(1).map_or(0, |i| ends[i] as usize);
    &text[start..ends[index] as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_get_equal_ids_after_growth_and_after_saving() {
        let mut names = Names::default();
        let ids: Vec<_> = (0..500).map(|i| names.intern(&format!("name{i}"))).collect();
        assert_eq!(names.intern(""), names.intern(""));
        for (i, &id) in ids.iter().enumerate() {
            assert_eq!(names.find(&format!("name{i}")), Some(id));
            assert_eq!(names.get(id), format!("name{i}"));
        }
        let bytes = postcard::to_allocvec(&names).expect("names are data");
        let mut again: Names = postcard::from_bytes(&bytes).expect("just written");
        assert_eq!(again.len(), 501);
        assert_eq!(again.intern("name77"), ids[77]);
    }
}
