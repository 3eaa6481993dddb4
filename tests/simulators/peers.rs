//! The other programs, and traces in the forms that they read.

use std::{
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use reprise_cli::{
    trace::{ReadOptions, Trace},
    untyped::Paths,
};
use reprise_tests::{
    repository,
    tools::{self, run},
};
use serde::Deserialize;

/// Versions that this was written for.
const PACKAGES: [&str; 2] = ["kvcache-simulator==0.1.3", "libcachesim==0.3.5"];

const TARGET_TMP: &str = env!("CARGO_TARGET_TMPDIR");

/// A Python that has both programs, or `None` where it is missing and may be. Installed once, whichever test is first.
pub fn python() -> Option<&'static Path> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    PYTHON.get_or_init(|| tools::python(TARGET_TMP, "simulators-python", &PACKAGES, "simulators")).as_deref()
}

/// A script of this folder.
pub fn script(name: &str) -> PathBuf {
    repository("tests/simulators").join(name)
}

/// A place for a file of one test.
pub fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(TARGET_TMP).join("simulators");
    fs::create_dir_all(&folder).expect("a folder in the target directory");
    folder.join(name)
}

/// A trace as both sides read it.
pub struct Subject {
    pub name: String,
    pub trace: Trace,
    /// The same requests for kvcache-simulator.
    pub lines: PathBuf,
    /// Whether budgets that suit a full trace suit it.
    pub full: bool,
}

impl Subject {
    /// The bundled parts, a made-up trace, and the full traces if there are any. `test` tells files of tests apart that run side by side.
    pub fn all(python: &Path, test: &str) -> Vec<Self> {
        let data = repository("tests/data");
        let mut all = vec![
            Self::mooncake(&data.join("conversation-part.jsonl.gz"), false),
            Self::sessions(&data.join("coding-agent-part.jsonl.gz"), python, test, false),
            Self::mooncake(&made_up(test), false),
        ];
        if let Some(full) = env::var_os("REPRISE_TRACES").map(PathBuf::from) {
            all.push(Self::mooncake(&full.join("mooncake-conversation.jsonl.gz"), true));
            all.push(Self::sessions(&full.join("coding-agent-180.jsonl.gz"), python, test, true));
        }
        all
    }

    fn of(path: &Path, lines: PathBuf, full: bool) -> Self {
        let trace = Trace::read(path, &ReadOptions::default()).unwrap_or_else(|error| panic!("{error}"));
        Self { name: path.display().to_string(), trace, lines, full }
    }

    fn mooncake(path: &Path, full: bool) -> Self {
        Self::of(path, path.to_owned(), full)
    }

    /// The lines are made by the reference, which shares no code with the reader of traces here.
    fn sessions(path: &Path, python: &Path, test: &str, full: bool) -> Self {
        let text = run(Command::new(python).arg(script("lines.py")).arg(path));
        let lines = scratch(&format!("{test}-{}.jsonl", if full { "sessions" } else { "sessions-part" }));
        fs::write(&lines, text).expect("a file in the target directory");
        Self::of(path, lines, full)
    }

    /// Whether time is measured with it: the large ones, if they are there.
    #[allow(dead_code, reason = "the bench uses it")]
    pub fn is_measured(&self) -> bool {
        self.full == env::var_os("REPRISE_TRACES").is_some()
    }

    pub fn paths(&self) -> Paths {
        Paths::of(&self.trace, None).expect("requests")
    }
}

/// A trace of prompts that go on from earlier ones, some of them popular; the same in each run.
fn made_up(test: &str) -> PathBuf {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut below = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % bound
    };
    let (mut prompts, mut text, mut next) = (vec![Vec::new()], String::new(), 0_u32);
    for _ in 0..1_500 {
        let popular = below(3) > 0;
        let before: &Vec<u32> = &prompts[below(if popular { prompts.len().min(40) } else { prompts.len() })];
        let kept = before.len() - below(before.len() + 1) * below(2);
        let mut ids = before[..kept].to_vec();
        for _ in 0..=below(12) {
            ids.push(next);
            next += 1;
        }
        let tokens = 512 * ids.len() - below(512);
        writeln!(text, "{{\"timestamp\":0,\"input_length\":{tokens},\"output_length\":1,\"hash_ids\":{ids:?}}}")
            .expect("text takes it");
        prompts.push(ids);
    }
    let path = scratch(&format!("{test}-made-up.jsonl"));
    fs::write(&path, text).expect("a file in the target directory");
    path
}

/// Every block of every path as a key, in order, in libCacheSim's format oracleGeneral: time, key, size, next access (unknown).
pub fn write_keys(paths: &Paths, file: &Path) {
    let (mut path, mut bytes) = (Vec::new(), Vec::new());
    for request in 0..paths.requests() {
        paths.fill(request, &mut path);
        for &block in &path {
            bytes.extend(1_u32.to_le_bytes());
            bytes.extend((u64::from(block) + 1).to_le_bytes());
            bytes.extend(1_u32.to_le_bytes());
            bytes.extend((-1_i64).to_le_bytes());
        }
    }
    fs::write(file, bytes).expect("a file in the target directory");
}

/// What libCacheSim gives for each size: size, misses, best seconds.
#[derive(Deserialize)]
pub struct FlatResults {
    pub requests: u64,
    #[serde(rename = "LRU")]
    pub lru: Vec<(u32, u64, f64)>,
    #[serde(rename = "S3FIFO")]
    pub s3_fifo: Vec<(u32, u64, f64)>,
}

/// Runs libCacheSim on a file of keys.
pub fn libcachesim(python: &Path, keys: &Path, turns: u32, sizes: &[u32]) -> FlatResults {
    let sizes = sizes.iter().map(u32::to_string);
    let mut command = Command::new(python);
    let said = run(command.arg(script("caches.py")).arg(keys).arg(turns.to_string()).args(sizes));
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}
