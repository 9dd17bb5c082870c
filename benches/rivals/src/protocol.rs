//! What the bench and its workers say to each other: one JSON object a line, over standard input and
//! output. Each engine works in a process of its own, so that its memory is its own, and so that it
//! can be given up; the tokens come with the request, so that no tokenizer is in the measured process.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use std::{fs, thread};

use serde::{Deserialize, Serialize};

/// A schema to compile and texts to run under it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) schema: String,
    /// The tokens of each text.
    pub(crate) tests: Vec<Vec<u32>>,
    /// Whether to go on with a second pass over the compiled schema.
    pub(crate) warm: bool,
    /// At how many positions to compare the mask with brute force.
    pub(crate) check: usize,
    /// Give up after so many seconds.
    pub(crate) seconds: u64,
}

/// What an engine did with a request. Times are in nanoseconds.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Reply {
    /// Why the schema could not be compiled.
    pub(crate) error: Option<String>,
    pub(crate) timed_out: bool,
    /// Compiling and the first mask.
    pub(crate) first: u64,
    /// A mask and accepting a token, of all texts one after another.
    pub(crate) masks: Vec<u64>,
    /// How each mask came about, as a place in [`CAUSES`], if the engine tells.
    pub(crate) causes: Vec<u8>,
    /// Whether each text was accepted to its end.
    pub(crate) accepted: Vec<bool>,
    /// The mean times of batches of the second pass.
    pub(crate) warm: Vec<u64>,
    /// Masks that were compared with brute force, and those that differed.
    pub(crate) checked: usize,
    pub(crate) wrong: usize,
}

/// What had to be made for a mask, the dearest part first.
pub(crate) const CAUSES: [&str; 6] = [
    "masks over rests of tokens",
    "several local masks",
    "one local mask",
    "a union of known masks",
    "states only",
    "nothing: a lookup",
];

/// The line by which a worker says that its vocabulary is loaded.
pub(crate) const READY: &str = "ready";

/// How long a worker may take to load its vocabulary.
const START: Duration = Duration::from_secs(120);

/// An engine in a process of its own.
pub(crate) struct Worker {
    command: Command,
    process: Option<(Child, ChildStdin, Receiver<String>)>,
    /// Resident memory before the first schema, and the most ever since, in kB.
    pub(crate) idle: u64,
    pub(crate) peak: u64,
}

impl Worker {
    pub(crate) fn new(command: Command) -> Self {
        Self { command, process: None, idle: 0, peak: 0 }
    }

    /// Starts the process unless it runs.
    pub(crate) fn start(&mut self) -> Result<(), String> {
        if self.process.is_some() {
            return Ok(());
        }
        let mut child = self
            .command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let stdin = child.stdin.take().ok_or("no standard input")?;
        let stdout = child.stdout.take().ok_or("no standard output")?;
        let (sender, replies) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let ready = replies.recv_timeout(START);
        if ready.as_deref() != Ok(READY) {
            let _ = child.kill();
            let _ = child.wait();
            return Err("it did not start".into());
        }
        if self.idle == 0 {
            self.idle = status(child.id(), "VmRSS:");
        }
        // Loading the vocabulary may have taken more for a while; from here on the peak is of schemas.
        let _ = fs::write(format!("/proc/{}/clear_refs", child.id()), "5");
        self.process = Some((child, stdin, replies));
        Ok(())
    }

    /// Returns the reply, or one that says what went wrong. A worker that does not answer is ended.
    pub(crate) fn ask(&mut self, request: &Request) -> Reply {
        let failed = |error: String| Reply { error: Some(error), ..Reply::default() };
        if let Err(error) = self.start() {
            return failed(error);
        }
        let Some((child, stdin, replies)) = &mut self.process else { unreachable!() };
        let mut line = serde_json::to_string(request).expect("strings and numbers");
        line.push('\n');
        let sent = stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush());
        // Some engines do not look at the time while they compile.
        let patience = Duration::from_secs(request.seconds + 2);
        let reply = match sent.map(|()| replies.recv_timeout(patience)) {
            Ok(Ok(line)) => serde_json::from_str(&line).map_err(|error| error.to_string()),
            Ok(Err(RecvTimeoutError::Timeout)) => Ok(Reply { timed_out: true, ..Reply::default() }),
            _ => Err("the worker died".to_owned()),
        };
        self.peak = self.peak.max(status(child.id(), "VmHWM:"));
        match reply {
            Ok(reply) if !reply.timed_out => reply,
            Ok(reply) => {
                self.stop();
                reply
            }
            Err(error) => {
                self.stop();
                failed(error)
            }
        }
    }

    fn stop(&mut self) {
        if let Some((mut child, ..)) = self.process.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns a number of kB from the status of a process, 0 if it cannot be read.
fn status(process: u32, field: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}
