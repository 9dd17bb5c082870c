//! A folder of artifacts under a quota. Files appear whole or not at all; none is ever trusted.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::artifact;
use crate::cache::Key;
use crate::limits::Limits;
use crate::token::TokenAutomaton;
use crate::vocab::Vocabulary;

/// The ends of names of whole files, and of those that are being written.
const WHOLE: &str = "schemac";
const PARTIAL: &str = "partial";

/// Partial files older than this were left by a process that died.
const STALE: Duration = Duration::from_secs(3_600);

#[derive(Debug)]
pub(super) struct Disk {
    folder: PathBuf,
    quota: u64,
    next: AtomicU64,
}

impl Disk {
    pub(super) fn new(folder: PathBuf, quota: u64) -> Self {
        Self { folder, quota, next: AtomicU64::new(0) }
    }

    fn path(&self, key: Key) -> PathBuf {
        self.folder.join(format!("{key}.{WHOLE}"))
    }

    /// Returns the grammar of `key` if its file is there and whole.
    pub(super) fn load(
        &self,
        key: Key,
        vocabulary: &Arc<Vocabulary>,
        limits: &Limits,
    ) -> Option<Arc<TokenAutomaton>> {
        let path = self.path(key);
        let bytes = fs::read(&path).ok()?;
        if let Ok(automaton) = artifact::from_bytes_over(&bytes, vocabulary, limits) {
            // The time of a file is when it was last used.
            let _ = File::options()
                .append(true)
                .open(&path)
                .and_then(|file| file.set_modified(SystemTime::now()));
            return Some(Arc::new(automaton));
        }
        let _ = fs::remove_file(&path);
        None
    }

    /// Writes a grammar if it fits, and deletes what was used least recently while the folder is full.
    /// A failure leaves the folder without the file.
    pub(super) fn store(&self, key: Key, automaton: &TokenAutomaton) {
        let Ok(bytes) = artifact::to_bytes_over_vocabulary(automaton) else { return };
        if bytes.len() as u64 > self.quota || fs::create_dir_all(&self.folder).is_err() {
            return;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let partial = self.folder.join(format!("{key}.{}-{number}.{PARTIAL}", process::id()));
        let written =
            fs::write(&partial, bytes).and_then(|()| fs::rename(&partial, self.path(key)));
        if written.is_err() {
            let _ = fs::remove_file(&partial);
        }
        self.shrink();
    }

    fn shrink(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in entries.flatten() {
            let path = entry.path();
            let Some((modified, size)) =
                entry.metadata().ok().and_then(|data| Some((data.modified().ok()?, data.len())))
            else {
                continue;
            };
            if has_end(&path, WHOLE) {
                files.push((modified, size, path));
            } else if has_end(&path, PARTIAL) && modified.elapsed().is_ok_and(|age| age > STALE) {
                let _ = fs::remove_file(path);
            }
        }
        files.sort_unstable();
        let mut sum: u64 = files.iter().map(|file| file.1).sum();
        for (_, size, path) in files {
            if sum <= self.quota {
                break;
            }
            if fs::remove_file(path).is_ok() {
                sum -= size;
            }
        }
    }
}

fn has_end(path: &Path, end: &str) -> bool {
    path.extension().is_some_and(|extension| extension == end)
}
