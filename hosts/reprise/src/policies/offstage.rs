//! What is done for a seat beside the requests: making policies anew, letting go of old ones. Threads that each do one job, and are
//! waited for when the seat goes.

use std::{
    io,
    sync::{Arc, Condvar, Mutex},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::cache::lock;

/// The jobs of one seat.
#[derive(Default)]
pub(super) struct Offstage {
    curtain: Arc<Curtain>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Tells jobs that the seat goes.
#[derive(Default)]
pub(super) struct Curtain {
    closing: Mutex<bool>,
    changed: Condvar,
}

impl Curtain {
    /// Whether to go on.
    pub fn is_open(&self) -> bool {
        !*lock(&self.closing)
    }

    /// Waits so long. Returns whether to go on; at once when not.
    pub fn wait(&self, delay: Duration) -> bool {
        let until = Instant::now() + delay;
        let mut closing = lock(&self.closing);
        while !*closing {
            let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
                return true;
            };
            closing = self.changed.wait_timeout(closing, left).unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
        false
    }
}

impl Offstage {
    /// Starts a job.
    ///
    /// # Errors
    /// When the machine refuses a thread; the job is dropped.
    pub fn run(&self, job: impl FnOnce(&Curtain) + Send + 'static) -> io::Result<()> {
        let curtain = Arc::clone(&self.curtain);
        let thread = thread::Builder::new().name("reprise-policy".into()).spawn(move || job(&curtain))?;
        let mut threads = lock(&self.threads);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
        Ok(())
    }

    /// Drops what a request should not wait for: giving back the memory of a policy takes milliseconds. On the spot, if that is wanted.
    pub fn let_go<T: Send + 'static>(&self, old: Option<T>, on_the_spot: bool) {
        if let Some(old) = old
            && !on_the_spot
        {
            // Without a thread for it, it is dropped here.
            let _ = self.run(move |_| drop(old));
        }
    }

    /// What a job sees, for a caller that works on its own thread.
    pub fn curtain(&self) -> &Curtain {
        &self.curtain
    }
}

impl Drop for Offstage {
    fn drop(&mut self) {
        *lock(&self.curtain.closing) = true;
        self.curtain.changed.notify_all();
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            // A panic in a policy's own code is a trap, and there is nothing else in a job that panics.
            let _ = thread.join();
        }
    }
}
