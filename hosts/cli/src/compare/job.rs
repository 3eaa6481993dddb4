//! One replay of a comparison, and the key that tells it from every other.

use std::{
    fs,
    sync::atomic::{AtomicU64, Ordering},
};

use reprise::{CompileCacheChoice, Config};

use super::{Contender, Grid, Key, Mode, Subject, figures::Verdict, typed, untyped::Pool};

/// One replay, with all it needs.
pub(super) enum Job<'a> {
    Typed { subject: &'a Subject, config: Box<Config>, session_gap_us: u64 },
    Untyped { pool: &'a Pool, place: (usize, usize), subject: &'a Subject, capacity_blocks: u32 },
}

impl<'a> Job<'a> {
    /// The replay of a policy on a trace with `share` thousandths of a budget for windows.
    pub fn of(grid: &'a Grid, (subject, contender): (usize, usize), size: u64, share: u32) -> Self {
        let place = (subject, contender);
        let subject = &grid.subjects[subject];
        match &grid.mode {
            Mode::Typed(setting) => Self::Typed {
                subject,
                config: Box::new(setting.configure(
                    &grid.contenders[contender],
                    size,
                    (grid.division(contender), share),
                )),
                session_gap_us: setting.session_gap_us,
            },
            Mode::Untyped(pool) => {
                let capacity_blocks = u32::try_from(size).unwrap_or(u32::MAX);
                Self::Untyped { pool, place, subject, capacity_blocks }
            }
        }
    }

    /// Replays. `decisions` counts the blocks decided.
    ///
    /// # Errors
    /// When there is nothing to replay with, or on.
    pub fn run(self, decisions: &AtomicU64) -> anyhow::Result<Verdict> {
        match self {
            Self::Typed { subject, config, session_gap_us } => {
                typed::evaluate(subject, *config, session_gap_us, decisions)
            }
            Self::Untyped { pool, place, subject, capacity_blocks } => {
                let verdict = pool.evaluate(place.0, place.1, capacity_blocks)?;
                let blocks = |&index: &u32| subject.trace.ids(&subject.trace.requests[index as usize]).len() as u64;
                decisions.fetch_add(subject.order.iter().map(blocks).sum(), Ordering::Relaxed);
                Ok(verdict)
            }
        }
    }
}

/// What is the same in many keys.
pub(super) struct Keys {
    program: String,
    subjects: Vec<String>,
    contenders: Vec<String>,
}

impl Keys {
    pub fn new(grid: &Grid) -> Self {
        Self {
            program: program(),
            subjects: grid.subjects.iter().map(|subject| subject.digest().to_string()).collect(),
            contenders: grid.contenders.iter().map(Contender::identity).collect(),
        }
    }

    /// The key of the replay that [`Job::of`] gives for the same.
    pub fn of(&self, grid: &Grid, (subject, contender): (usize, usize), size: u64, share: u32) -> Key {
        let how = match Job::of(grid, (subject, contender), size, share) {
            Job::Typed { config, session_gap_us, .. } => {
                // Where compiled code is kept changes no figure.
                let config = Config { compile_cache: CompileCacheChoice::default(), ..*config };
                let config = serde_json::to_string(&config).expect("a configuration is plain data");
                format!("typed, gap {session_gap_us}, {config}")
            }
            Job::Untyped { pool, capacity_blocks, .. } => format!("untyped, {capacity_blocks}, {:?}", pool.limit),
        };
        Key::of(&[&self.program, &self.subjects[subject], &self.contenders[contender], &how])
    }
}

/// What tells this build from others: results of another are not taken for its own.
fn program() -> String {
    let bytes = std::env::current_exe().and_then(fs::read);
    match bytes {
        Ok(bytes) => blake3::hash(&bytes).to_string(),
        Err(_) => format!("{} {}", env!("CARGO_PKG_VERSION"), blake3::hash(reprise_policies_dist::MANIFEST.as_bytes())),
    }
}
