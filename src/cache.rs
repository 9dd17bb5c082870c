//! Compiled grammars that many requests share: a key and a way to compile in, a token automaton out.
//! [`crate::Compiler::cache`] puts one under a compiler, and several compilers may share it.
//!
//! A key is a hash of all that decides the result: the grammar's text and kind, the vocabulary, options
//! and limits, and the format of artifacts. Requests for one key compile once; the others wait, and get
//! the same automaton or the same error. What was used least recently goes first, by bytes. A grammar
//! grows while it is used, so its bytes are taken again at each use, which is why no cache with fixed
//! weights would do.
//!
//! With a folder, grammars that leave the memory are written to it with all states and masks that they
//! have grown to, and are read from there when they are asked for again. A file that cannot be read is
//! compiled again.

mod disk;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hashbrown::HashMap;
use sha2::{Digest, Sha256};

use crate::artifact;
use crate::cache::disk::Disk;
use crate::error::Error;
use crate::limits::Limits;
use crate::token::TokenAutomaton;
use crate::vocab::Vocabulary;

/// What a compiled grammar is found by.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

impl Key {
    /// Returns the key of these parts, each of which counts with its length, for `vocabulary`.
    #[must_use]
    pub fn of(vocabulary: &Vocabulary, parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        hash.update(artifact::FORMAT.to_le_bytes());
        // Another version may give the same grammar other states.
        hash.update(env!("CARGO_PKG_VERSION"));
        hash.update(vocabulary.fingerprint().0.to_le_bytes());
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

/// What a cache did and holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// Grammars and errors in memory.
    pub entries: usize,
    /// The bytes that they are taken to have.
    pub bytes: usize,
    /// Requests that found their grammar in memory, or waited for another that compiled it.
    pub hits: u64,
    /// Requests that read their grammar from the folder.
    pub loaded: u64,
    /// Requests that compiled.
    pub compiled: u64,
    /// Grammars that left the memory.
    pub evicted: u64,
}

/// Compiled grammars, bounded by bytes. `Send + Sync`; share it in an [`Arc`].
///
/// A request that finds its grammar costs a hash of the grammar's text and a lock that is held for a
/// few look-ups, never while anything compiles, is read or written.
///
/// ```
/// use std::sync::Arc;
/// use schemac::cache::GrammarCache;
/// use schemac::{Compiler, Vocabulary};
///
/// let cache = Arc::new(GrammarCache::new(64 << 20));
/// let compiler = Compiler::new(Vocabulary::embedded()).cache(Arc::clone(&cache));
/// let first = compiler.compile_schema(r#"{"type": "integer"}"#)?;
/// let second = compiler.compile_schema(r#"{"type": "integer"}"#)?;
/// assert!(Arc::ptr_eq(&first, &second));
/// assert_eq!(cache.stats().compiled, 1);
/// # Ok::<(), schemac::Error>(())
/// ```
#[derive(Debug)]
pub struct GrammarCache {
    bytes: usize,
    disk: Option<Disk>,
    table: Mutex<Table>,
}

/// Where a result is put once, and awaited by all who want it.
type Cell = OnceLock<Result<Arc<TokenAutomaton>, Error>>;

#[derive(Debug, Default)]
struct Table {
    slots: HashMap<Key, Slot>,
    /// Keys by when they were last asked for.
    by_use: BTreeMap<u64, Key>,
    next_use: u64,
    stats: CacheStats,
}

#[derive(Debug)]
struct Slot {
    cell: Arc<Cell>,
    last_use: u64,
    bytes: usize,
}

/// How a request came by its grammar.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Memory,
    Folder,
    Compiler,
}

impl GrammarCache {
    /// Returns an empty cache for grammars of up to `bytes` bytes altogether. What is in use elsewhere
    /// stays alive there after it has left the cache.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self { bytes, disk: None, table: Mutex::default() }
    }

    /// Adds a folder, which is made when it is first written to, of up to `quota` bytes. What was used
    /// least recently is deleted first.
    ///
    /// Several processes may share the folder. It must be one that nobody else can write to: a file
    /// that was made to deceive can describe another grammar, though it can do no other harm.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>, quota: u64) -> Self {
        self.disk = Some(Disk::new(folder.into(), quota));
        self
    }

    /// Returns what the cache did and holds.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        self.table().stats
    }

    /// Returns the grammar of `key`, from memory, from the folder, or from `compile`, which is called
    /// once however many ask at the same time. If it panics, so does this call, and one of those who
    /// wait calls its own.
    ///
    /// # Errors
    ///
    /// What `compile` says, which is kept as grammars are.
    pub fn get_or_compile(
        &self,
        key: Key,
        vocabulary: &Arc<Vocabulary>,
        limits: &Limits,
        compile: impl FnOnce() -> Result<Arc<TokenAutomaton>, Error>,
    ) -> Result<Arc<TokenAutomaton>, Error> {
        let cell = self.table().touch(key);
        let _guard = Abandoned { cache: self, key, cell: &cell };
        let mut source = Source::Memory;
        let result = cell.get_or_init(|| {
            let stored = self.disk.as_ref().and_then(|disk| disk.load(key, vocabulary, limits));
            source = if stored.is_some() { Source::Folder } else { Source::Compiler };
            stored.map_or_else(compile, Ok)
        });
        let bytes = match result {
            Ok(automaton) => automaton.stats().memory(),
            Err(_) => size_of::<Slot>() + size_of::<Error>(),
        };
        let evicted = {
            let mut table = self.table();
            table.count(source);
            table.weigh(key, &cell, bytes);
            table.evict(self.bytes)
        };
        for (key, automaton) in evicted {
            self.write(key, &automaton);
        }
        result.clone()
    }

    /// Writes all grammars in memory to the folder, with what they have grown to. For the end of a
    /// process, or from time to time; a process that ends without loses no more than time.
    pub fn flush(&self) {
        let all: Vec<_> = {
            let table = self.table();
            table.slots.iter().filter_map(|(&key, slot)| Some((key, slot.automaton()?))).collect()
        };
        for (key, automaton) in all {
            self.write(key, &automaton);
        }
    }

    /// Writes a grammar to the folder, if there is one. If that fails, it will be compiled again.
    fn write(&self, key: Key, automaton: &TokenAutomaton) {
        if let Some(disk) = &self.disk {
            disk.store(key, automaton);
        }
    }

    /// Locks the table. No code that can panic half-way runs under the lock.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    fn automaton(&self) -> Option<Arc<TokenAutomaton>> {
        self.cell.get()?.as_ref().ok().cloned()
    }
}

impl Table {
    /// Returns where the result of `key` is or will be, and notes that it was asked for.
    fn touch(&mut self, key: Key) -> Arc<Cell> {
        let now = self.next_use;
        self.next_use += 1;
        let slot = self.slots.entry(key).or_insert_with(|| Slot {
            cell: Arc::default(),
            last_use: now,
            bytes: 0,
        });
        self.by_use.remove(&slot.last_use);
        self.by_use.insert(now, key);
        slot.last_use = now;
        let cell = Arc::clone(&slot.cell);
        self.stats.entries = self.slots.len();
        cell
    }

    fn count(&mut self, source: Source) {
        match source {
            Source::Memory => self.stats.hits += 1,
            Source::Folder => self.stats.loaded += 1,
            Source::Compiler => self.stats.compiled += 1,
        }
    }

    /// Sets the bytes of `key`, if it still has this cell.
    fn weigh(&mut self, key: Key, cell: &Arc<Cell>, bytes: usize) {
        let Some(slot) = self.slots.get_mut(&key).filter(|slot| Arc::ptr_eq(&slot.cell, cell))
        else {
            return;
        };
        self.stats.bytes = self.stats.bytes - slot.bytes + bytes;
        slot.bytes = bytes;
    }

    /// Takes out what was used least recently until the rest fits, and returns it. What is still being
    /// compiled stays.
    fn evict(&mut self, most: usize) -> Vec<(Key, Arc<TokenAutomaton>)> {
        let mut evicted = Vec::new();
        let mut after = 0;
        while self.stats.bytes > most {
            let Some((&last_use, &key)) = self.by_use.range(after..).next() else { break };
            after = last_use + 1;
            if self.slots.get(&key).is_none_or(|slot| slot.cell.get().is_none()) {
                continue;
            }
            evicted.extend(self.remove(key).and_then(|slot| Some((key, slot.automaton()?))));
            self.stats.evicted += 1;
        }
        evicted
    }

    fn remove(&mut self, key: Key) -> Option<Slot> {
        let slot = self.slots.remove(&key)?;
        self.by_use.remove(&slot.last_use);
        self.stats.bytes -= slot.bytes;
        self.stats.entries = self.slots.len();
        Some(slot)
    }
}

/// Takes an empty cell out of the table when the one who was to fill it panics and nobody else waits.
struct Abandoned<'c> {
    cache: &'c GrammarCache,
    key: Key,
    cell: &'c Arc<Cell>,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if self.cell.get().is_some() {
            return;
        }
        let mut table = self.cache.table();
        let same = |slot: &Slot| Arc::ptr_eq(&slot.cell, self.cell);
        // The table's and ours; who waits holds another.
        if Arc::strong_count(self.cell) <= 2 && table.slots.get(&self.key).is_some_and(same) {
            table.remove(self.key);
        }
    }
}

#[cfg(test)]
mod tests;
