//! A shadow: candidates for the seats, run on the live requests against books of their own with the same quotas. It reads and
//! writes nothing, and answers nobody; what it would have hit, written and replayed is counted beside what the policies in the seats do.
//!
//! It takes for granted that the engine saves what it computes and captures what the candidates would ask for: it captures when the
//! engine saves or captures. It starts with what is resident when it begins. Requests reach it through a bounded queue and are gone through on a thread of
//! its own, so that a request pays for a message and no more; under [`crate::Config::deterministic`] they are gone through at once.

mod books;
mod report;

use std::{
    sync::{
        Arc, Mutex, RwLock,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
};

use reprise_core::{Digest, prefix::NamespaceKey};
use serde::{Deserialize, Serialize};

pub(crate) use self::books::Books;
pub use self::report::{ShadowFigures, ShadowReport};
use super::{CheckpointSeat, EvictionSeat, PolicyError};
use crate::{
    cache::{Inner, lock},
    choice::PolicyChoice,
    division::Limits,
};

/// Messages that may wait; a request that finds the queue full is not shadowed, and counted.
const QUEUE: usize = 4096;

/// Which candidates to run beside the policies in the seats. A role without a candidate is played by the policy that has the seat when
/// the shadow begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Shadowing {
    /// Candidate for eviction and admission.
    pub eviction: Option<PolicyChoice>,
    /// Candidate for checkpoints.
    pub checkpoints: Option<PolicyChoice>,
    /// When the candidates take the seats by themselves; `None`: by hand only, with [`super::Policies::promote`].
    pub promotion: Option<Promotion>,
}

/// A lead that lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Promotion {
    /// By how much the candidates must lead: saved tokens, in parts per million of the tokens of all prompts since the shadow began.
    pub margin_ppm: u32,
    /// Over how many requests in a row.
    pub requests: u64,
}

/// What a shadow is told of live requests.
#[derive(Clone)]
pub(crate) enum Message {
    /// A request was planned.
    Planned {
        request: u64,
        key: NamespaceKey,
        namespace: u16,
        digests: Arc<Vec<Digest>>,
        tokens: u64,
        now: u64,
        at_most_tokens: u32,
        live: LivePlan,
    },
    /// It saved, as long as it is now; so many blocks came in.
    Saved { request: u64, digests: Arc<Vec<Digest>>, tokens: u64, blocks: u32, checkpoints: u32 },
    /// It captured; so many checkpoints came in.
    Captured { request: u64, checkpoints: u32 },
    /// There is nothing more of it.
    Ended { request: u64 },
}

/// What the live policies made of a request.
#[derive(Clone, Copy)]
pub(crate) struct LivePlan {
    pub prompt_tokens: u32,
    pub matched_tokens: u32,
    pub adopted_tokens: u32,
    pub replayed_tokens: u32,
    pub loads_checkpoint: bool,
}

/// The place of a shadow beside a cache's seats.
#[derive(Default)]
pub(crate) struct ShadowSeat {
    running: RwLock<Option<Arc<Running>>>,
    /// Books with other shares of the budget, see [`crate::division`].
    scouts: RwLock<Vec<Running>>,
    requests: AtomicU64,
}

/// A shadow at work.
struct Running {
    report: Arc<Mutex<ShadowReport>>,
    stage: Stage,
}

enum Stage {
    /// Gone through by the requests themselves.
    Inline(Mutex<Books>),
    Thread {
        queue: mpsc::SyncSender<Work>,
        thread: Mutex<Option<JoinHandle<()>>>,
    },
}

enum Work {
    Message(Message),
    /// Puts the candidates into the seats and tells how that went.
    Promote(mpsc::Sender<Result<(), PolicyError>>),
    /// Answers when everything before has been gone through.
    Flush(mpsc::Sender<()>),
}

/// The seats that a shadow's candidates may be promoted to.
#[derive(Clone)]
pub(crate) struct LiveSeats {
    pub eviction: Arc<EvictionSeat>,
    pub checkpoints: Arc<CheckpointSeat>,
}

impl ShadowSeat {
    /// Puts a shadow in; one that is there goes.
    pub fn begin(&self, books: Books, deterministic: bool) -> Result<(), PolicyError> {
        let report = books.report();
        let stage = if deterministic { Stage::Inline(Mutex::new(books)) } else { Stage::thread(books)? };
        let before = self.replace(Some(Arc::new(Running { report, stage })));
        drop(before);
        Ok(())
    }

    fn replace(&self, next: Option<Arc<Running>>) -> Option<Arc<Running>> {
        let mut running = self.running.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        std::mem::replace(&mut running, next)
    }

    /// For operators: who holds it last waits for the shadow's thread, and a request should not.
    fn running(&self) -> Option<Arc<Running>> {
        self.running.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// For requests: nothing without a shadow, or while one comes or goes.
    fn with<R>(&self, tell: impl FnOnce(&Running) -> R) -> Option<R> {
        let running = self.running.try_read().ok()?;
        running.as_deref().map(tell)
    }

    /// Tells a shadow and the scouts, if there are any, that a request was planned. Returns the number to tell them more under.
    pub fn planned(&self, message: impl FnOnce(u64) -> Message) -> Option<u64> {
        let scouts = self.scouts.try_read().ok();
        let scouts = scouts.as_deref().map(Vec::as_slice).unwrap_or_default();
        let is_shadowed = self.with(|running| !lock(&running.report).promoted).unwrap_or(false);
        if scouts.is_empty() && !is_shadowed {
            return None;
        }
        let request = self.requests.fetch_add(1, Ordering::Relaxed);
        let message = message(request);
        let mut is_told = false;
        for scout in scouts {
            is_told |= scout.tell_or_miss(message.clone());
        }
        if is_shadowed {
            is_told |= self.with(|running| running.tell_or_miss(message)).unwrap_or(false);
        }
        is_told.then_some(request)
    }

    /// Tells more of a request.
    pub fn tell(&self, message: Message) {
        if let Ok(scouts) = self.scouts.try_read() {
            for scout in scouts.iter() {
                scout.tell_or_miss(message.clone());
            }
        }
        self.with(|running| running.tell_or_miss(message));
    }

    /// Sends scouts out, one with each of these limits, in place of those before.
    pub fn send_scouts(&self, cache: &Inner, limits: &[Limits]) -> Result<(), PolicyError> {
        let scouts = limits.iter().map(|&limits| {
            let books = Books::scout(cache, limits)?;
            let report = books.report();
            let is_inline = cache.config.deterministic;
            let stage = if is_inline { Stage::Inline(Mutex::new(books)) } else { Stage::thread(books)? };
            Ok(Running { report, stage })
        });
        let scouts = scouts.collect::<Result<Vec<_>, PolicyError>>()?;
        let before = {
            let mut seat = self.scouts.write().unwrap_or_else(std::sync::PoisonError::into_inner);
            std::mem::replace(&mut *seat, scouts)
        };
        drop(before);
        Ok(())
    }

    fn of_scouts<R>(&self, figure: impl Fn(&ShadowReport) -> R) -> Vec<R> {
        let scouts = self.scouts.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        scouts.iter().map(|scout| figure(&lock(&scout.report))).collect()
    }

    /// Tokens that each scout has saved so far.
    pub fn scouts_saved(&self) -> Vec<u64> {
        self.of_scouts(|report| report.shadow.saved_tokens())
    }

    /// Requests that a scout was too far behind to be told of, all together.
    pub fn scouts_missed(&self) -> u64 {
        self.of_scouts(|report| report.missed_requests).iter().sum()
    }

    /// What it has found so far; `None` without a shadow.
    pub fn report(&self) -> Option<ShadowReport> {
        let running = self.running()?;
        running.flush();
        let report = lock(&running.report).clone();
        Some(report)
    }

    /// Puts the candidates into the seats. The shadow ends with that.
    pub fn promote(&self) -> Option<Result<(), PolicyError>> {
        Some(self.running()?.promote())
    }

    /// Takes the shadow away.
    pub fn end(&self) -> Option<ShadowReport> {
        let report = self.report();
        self.replace(None);
        report
    }
}

impl Running {
    /// Whether there was room for the message; one without is counted.
    fn tell_or_miss(&self, message: Message) -> bool {
        let is_told = self.tell(message);
        if !is_told {
            lock(&self.report).missed_requests += 1;
        }
        is_told
    }

    /// Whether there was room for the message.
    fn tell(&self, message: Message) -> bool {
        match &self.stage {
            Stage::Inline(books) => {
                lock(books).take(message);
                true
            }
            Stage::Thread { queue, .. } => queue.try_send(Work::Message(message)).is_ok(),
        }
    }

    fn flush(&self) {
        if let Stage::Thread { queue, .. } = &self.stage {
            let (done, flushed) = mpsc::channel();
            if queue.send(Work::Flush(done)).is_ok() {
                // The thread is gone if nothing comes: then there is nothing to wait for.
                let _ = flushed.recv();
            }
        }
    }

    fn promote(&self) -> Result<(), PolicyError> {
        match &self.stage {
            Stage::Inline(books) => lock(books).promote(),
            Stage::Thread { queue, .. } => {
                let (done, promoted) = mpsc::channel();
                let sent = queue.send(Work::Promote(done)).is_ok();
                if sent { promoted.recv().unwrap_or(Err(PolicyError::Closing)) } else { Err(PolicyError::Closing) }
            }
        }
    }
}

impl Stage {
    fn thread(mut books: Books) -> Result<Self, PolicyError> {
        let (queue, work) = mpsc::sync_channel(QUEUE);
        let thread = thread::Builder::new()
            .name("reprise-shadow".into())
            .spawn(move || {
                for work in work {
                    match work {
                        Work::Message(message) => books.take(message),
                        // Who asked may have given up.
                        Work::Promote(done) => drop(done.send(books.promote())),
                        Work::Flush(done) => drop(done.send(())),
                    }
                }
            })
            .map_err(|source| PolicyError::Thread { source })?;
        Ok(Self::Thread { queue, thread: Mutex::new(Some(thread)) })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Stage::Thread { queue, thread } = &mut self.stage {
            // The loop ends when the last sender is gone.
            *queue = mpsc::sync_channel(0).0;
            if let Some(thread) = lock(thread).take() {
                let _ = thread.join();
            }
        }
    }
}
