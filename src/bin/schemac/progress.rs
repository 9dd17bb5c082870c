//! A progress line on standard error for work that takes longer than a second, on a terminal only.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How long a piece of work may take before its progress is shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often the line is drawn again.
const FRAME: Duration = Duration::from_millis(100);

/// The progress of one piece of work. Dropping it takes the line away.
#[derive(Debug)]
pub(crate) struct Progress {
    done: Arc<AtomicU64>,
    /// The thread that draws, and what ends it when dropped; nothing when nobody watches.
    drawer: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Starts the progress of `what`, which has `total` parts if that is known.
    pub(crate) fn start(what: &'static str, total: Option<u64>) -> Self {
        let done = Arc::new(AtomicU64::new(0));
        let drawer = std::io::stderr().is_terminal().then(|| {
            let (ended, end) = mpsc::channel();
            let done = Arc::clone(&done);
            (ended, std::thread::spawn(move || draw(what, total, &done, &end)))
        });
        Self { done, drawer }
    }

    /// Counts one part as done.
    pub(crate) fn step(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Says how many parts are done.
    pub(crate) fn set(&self, done: usize) {
        self.done.store(done as u64, Ordering::Relaxed);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((ended, thread)) = self.drawer.take() {
            drop(ended);
            // The thread only draws; if it failed, there is nothing to clean up.
            let _ = thread.join();
        }
    }
}

fn draw(what: &'static str, total: Option<u64>, done: &AtomicU64, end: &mpsc::Receiver<()>) {
    if end.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let bar = match total {
        Some(total) => ProgressBar::new(total),
        None => ProgressBar::new_spinner(),
    };
    let template = match total {
        Some(_) => "{msg} {bar:30} {pos}/{len} {elapsed}",
        None => "{spinner} {msg} {pos} {elapsed}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_message(what);
    while end.recv_timeout(FRAME) == Err(RecvTimeoutError::Timeout) {
        bar.set_position(done.load(Ordering::Relaxed));
        bar.tick();
    }
    bar.finish_and_clear();
}
