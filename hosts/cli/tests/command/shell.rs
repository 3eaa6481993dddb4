//! A directory in which the command runs, and what came of it.

use std::{
    fs::{self, File},
    os::unix::fs::{MetadataExt, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

/// A command that runs longer than this hangs. The slowest here needs seconds.
const HANGS_AFTER: Duration = Duration::from_secs(120);

/// The numbers of a result that two replays of the same trace with the same options agree on.
const INTEGERS: [&str; 17] = [
    "requests",
    "hits",
    "prompt_tokens",
    "matched_tokens",
    "adopted_tokens",
    "replayed_tokens",
    "computed_tokens",
    "saved_tokens",
    "loaded_history",
    "loaded_window",
    "written_history",
    "written_window",
    "evicted_history",
    "evicted_window",
    "orphaned_window",
    "final_history_bytes",
    "final_window_bytes",
];

/// A temporary directory to run the command in. `repo` in it leads to the repository.
pub struct Shell {
    directory: TempDir,
    runs: AtomicU32,
}

/// A command that ended.
#[derive(Debug)]
pub struct Run {
    line: String,
    /// `None`: killed by a signal.
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// A command that is running.
pub struct Running {
    line: String,
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Shell {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), directory.path().join("repo")).unwrap();
        Self { directory, runs: AtomicU32::new(0) }
    }

    /// Starts `reprise` with the words of `line`.
    pub fn start(&self, line: &str) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reprise"));
        command.args(line.split_whitespace());
        self.start_command(line, command)
    }

    /// Starts any command, here.
    pub fn start_command(&self, line: &str, mut command: Command) -> Running {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let (out, err) = (self.path(&format!("{number}.out")), self.path(&format!("{number}.err")));
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        // What is compiled is kept for the other tests, and not in the user's own cache.
        command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        Running { line: line.to_owned(), child: command.spawn().unwrap(), out, err }
    }

    /// Runs `reprise` with the words of `line` to its end.
    pub fn run(&self, line: &str) -> Run {
        self.start(line).wait()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    pub fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Bytes that the files of a directory take of the device.
    pub fn allocated_bytes(&self, name: &str) -> u64 {
        let entries = fs::read_dir(self.path(name)).unwrap();
        entries.map(|entry| entry.unwrap().metadata().unwrap().blocks() * 512).sum()
    }
}

impl Running {
    pub fn wait(self) -> Run {
        self.wait_up_to(HANGS_AFTER)
    }

    /// Waits for a command that may be slower than the others, such as a compiler.
    pub fn wait_up_to(mut self, limit: Duration) -> Run {
        let start = Instant::now();
        while !self.has_ended() {
            if start.elapsed() > limit {
                self.kill();
                panic!("`reprise {}` hangs; so far it said: {}", self.line, fs::read_to_string(&self.err).unwrap());
            }
            thread::sleep(Duration::from_millis(2));
        }
        let code = self.child.wait().unwrap().code();
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        Run { code, out: read(&self.out), err: read(&self.err), line: self.line }
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL: nothing is cleaned up.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Run {
    /// Asserts the exit status. Nothing that ends in order panics.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        assert!(!self.err.contains("panicked"), "{self}");
        self
    }

    /// Asserts that it says `text` on standard error.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(self.err.contains(text), "expected `{text}`: {self}");
        self
    }

    /// The one object on standard output.
    #[track_caller]
    pub fn json(&self) -> Value {
        let value: Value = serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self}"));
        assert!(value.is_object(), "{self}");
        value
    }

    /// A number of the result, by its path: `groups/history/slots`.
    #[track_caller]
    pub fn number(&self, path: &str) -> u64 {
        let json = self.json();
        json.pointer(&format!("/{path}")).and_then(Value::as_u64).unwrap_or_else(|| panic!("no number {path}: {self}"))
    }

    /// The integers of the result.
    #[track_caller]
    pub fn integers(&self) -> Vec<(&'static str, u64)> {
        INTEGERS.into_iter().map(|name| (name, self.number(name))).collect()
    }

    /// What the result says of the policy in a seat: `eviction` or `checkpoints`.
    #[track_caller]
    pub fn policy(&self, role: &str) -> Value {
        let json = self.json();
        let mut policies = json["policies"].as_array().expect("a list of policies").iter();
        policies.find(|policy| policy["role"] == role).unwrap_or_else(|| panic!("no {role} policy: {self}")).clone()
    }

    /// Lines of standard error that warn.
    pub fn warnings(&self) -> Vec<&str> {
        self.err.lines().filter(|line| line.starts_with("reprise: warning: ")).collect()
    }
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { line, code, out, err } = self;
        write!(f, "`reprise {line}` ended with {code:?} and said\n{err}\n{out}")
    }
}
