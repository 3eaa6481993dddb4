//! The clock of deadlines: a thread that advances the engine's epoch while calls run, and sleeps otherwise.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// One call that runs now, in the low half of [`Shared::calls`].
const RUNNING: u64 = 1;
/// One call begun, in the high half.
const BEGUN: u64 = 1 << 32;
/// Ticks without a call until the thread sleeps: in a busy stretch no call has to wake it.
const IDLE_TICKS: u32 = 50;

/// Ticks that are made up for at most: a machine that was halted for longer has not let a call run either.
const MOST_LATE: u32 = 1000;

struct Shared {
    calls: AtomicU64,
    asleep: AtomicBool,
    stop: AtomicBool,
}

/// Advances an epoch every `tick` while there are calls.
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Keeps the clock going while it lives.
pub(crate) struct Running<'a>(&'a Shared);

impl Ticker {
    /// Starts the thread; `advance` is called once a tick. It sleeps until the first call.
    pub(crate) fn start(tick: Duration, advance: impl Fn() + Send + 'static) -> std::io::Result<Self> {
        let shared =
            Arc::new(Shared { calls: AtomicU64::new(0), asleep: AtomicBool::new(false), stop: AtomicBool::new(false) });
        let seen = Arc::clone(&shared);
        let thread = thread::Builder::new().name("reprise-ticker".into()).spawn(move || run(&seen, tick, &advance))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Announces a call. Two atomic operations a call; a wake-up only if there was none for [`IDLE_TICKS`].
    pub(crate) fn call(&self) -> Running<'_> {
        self.shared.calls.fetch_add(BEGUN + RUNNING, Ordering::SeqCst);
        if self.shared.asleep.load(Ordering::SeqCst)
            && let Some(thread) = &self.thread
        {
            thread.thread().unpark();
        }
        Running(&self.shared)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(RUNNING, Ordering::SeqCst);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the thread has nowhere to go from here, and there is nothing in it that panics.
            let _ = thread.join();
        }
    }
}

fn run(shared: &Shared, tick: Duration, advance: &impl Fn()) {
    let mut seen = 0;
    let mut idle = IDLE_TICKS;
    let mut next = Instant::now() + tick;
    while !shared.stop.load(Ordering::SeqCst) {
        let calls = shared.calls.load(Ordering::SeqCst);
        let quiet = calls == seen && calls.is_multiple_of(BEGUN);
        idle = if quiet { idle + 1 } else { 0 };
        seen = calls;
        if idle > IDLE_TICKS {
            shared.asleep.store(true, Ordering::SeqCst);
            // A call that came before `asleep` was set did not wake this thread: look once more. One that comes after does.
            if shared.calls.load(Ordering::SeqCst) == seen && !shared.stop.load(Ordering::SeqCst) {
                thread::park();
            }
            shared.asleep.store(false, Ordering::SeqCst);
            next = Instant::now() + tick;
        } else {
            thread::sleep(next.saturating_duration_since(Instant::now()));
            // Sleep is always a little too long, on a busy machine much: what is late is made up for, so that it does not add up.
            let now = Instant::now();
            if now.saturating_duration_since(next) > tick * MOST_LATE {
                next = now;
            }
            while next <= now {
                advance();
                next += tick;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn counting() -> (Ticker, Arc<AtomicUsize>) {
        let ticks = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&ticks);
        let advance = move || {
            count.fetch_add(1, Ordering::SeqCst);
        };
        (Ticker::start(Duration::from_micros(50), advance).unwrap(), ticks)
    }

    fn wait_for(condition: impl Fn() -> bool) {
        while !condition() {
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn an_idle_process_does_not_tick() {
        let (ticker, ticks) = counting();
        drop(ticker.call());
        wait_for(|| ticks.load(Ordering::SeqCst) > 0 && ticker.shared.asleep.load(Ordering::SeqCst));
        let before = ticks.load(Ordering::SeqCst);
        thread::sleep(Duration::from_millis(20));
        assert_eq!(ticks.load(Ordering::SeqCst), before);
    }

    #[test]
    fn a_call_after_a_pause_is_not_without_a_clock() {
        let (ticker, ticks) = counting();
        for _ in 0..20 {
            wait_for(|| ticker.shared.asleep.load(Ordering::SeqCst));
            let before = ticks.load(Ordering::SeqCst);
            let running = ticker.call();
            // A running call never lets the clock sleep, however long it takes.
            wait_for(|| ticks.load(Ordering::SeqCst) > before + 3 * IDLE_TICKS as usize);
            drop(running);
        }
    }
}
