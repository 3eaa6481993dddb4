//! The threads of a desk: one that watches deadlines, one that calls callbacks, and some that work.

use std::io;

use super::Desk;
use super::job::{Ended, ReadJob, WriteJob};
use crate::Buffer;
use crate::batch::End;
use crate::locks::lock;
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Arc, PoisonError};

/// The threads of a desk.
#[derive(Default)]
pub struct Threads(Vec<JoinHandle<()>>);

impl Threads {
    /// Starts what is missing of the thread that watches, the one that calls and the `workers` that work.
    pub fn start(&mut self, desk: &Arc<Desk>, workers: usize) -> io::Result<()> {
        while self.0.len() < workers + 2 {
            let (name, body): (_, fn(&Arc<Desk>)) = match self.0.len() {
                0 => ("reprise-watch", watch),
                1 => ("reprise-call", call),
                _ => ("reprise-work", work),
            };
            let desk = Arc::clone(desk);
            self.0.push(thread::Builder::new().name(name.to_owned()).spawn(move || body(&desk))?);
        }
        Ok(())
    }

    /// Waits for the threads to end.
    pub fn join(&mut self) {
        let own = thread::current().id();
        // A callback may be what holds the store, and drop it.
        for thread in self.0.drain(..).filter(|thread| thread.thread().id() != own) {
            // A panic there was reported by the thread itself.
            let _ = thread.join();
        }
    }
}

/// Something for a thread to do.
enum Task {
    Finish(Ended),
    Read(Buffer, ReadJob),
    Write(WriteJob),
}

fn work(desk: &Arc<Desk>) {
    while let Some(task) = desk.next_task() {
        match task {
            Task::Finish(ended) => ended.finish(desk),
            Task::Read(buffer, job) => job.begin(desk, buffer),
            Task::Write(job) => job.begin(desk),
        }
    }
}

fn watch(desk: &Arc<Desk>) {
    while let Some((id, batch)) = desk.deadlines.next() {
        desk.withdraw(id, End::TimedOut);
        if let Some(batch) = batch.upgrade() {
            batch.expire();
        }
    }
}

fn call(desk: &Arc<Desk>) {
    while let Some(batch) = desk.calls.next() {
        batch.deliver();
    }
}

impl Desk {
    /// Waits for something to do; `None` once the desk is closed and nothing is left.
    fn next_task(&self) -> Option<Task> {
        let mut state = lock(&self.state);
        loop {
            // What ends comes first: it frees what others wait for. Then reads: a request waits for them.
            if let Some(ended) = state.ended.pop_front() {
                return Some(Task::Finish(ended));
            }
            let read = state.reads.iter_mut().find_map(|lane| lane.next());
            let task = read
                .map(|(buffer, job)| Task::Read(buffer, job))
                .or_else(|| state.writes.next().map(|((), job)| Task::Write(job)));
            if task.is_some() {
                state.running += 1;
                return task;
            }
            if state.closed && state.is_quiet() {
                return None;
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes in a transfer that is over. Does not wait: it is called on the engine's thread.
    pub(super) fn ended(&self, ended: Ended) {
        lock(&self.state).ended.push_back(ended);
        self.work.notify_one();
    }

    /// A job that began has ended.
    pub(super) fn job_ended(&self) {
        let mut state = lock(&self.state);
        state.running -= 1;
        if state.closed && state.is_quiet() {
            drop(state);
            self.tell_quiet();
        }
    }

    /// A put that began has ended.
    pub(super) fn write_ended(&self, batch: u64) {
        lock(&self.state).writes.give_back(batch, ());
        self.job_ended();
    }
}
