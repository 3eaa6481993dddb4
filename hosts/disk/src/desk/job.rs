//! One record of a batch: begun, carried by the engine, ended.

use std::io;
use std::sync::Arc;

use super::Desk;
use crate::batch::{Board, End, Got, PutOutcome};
use crate::engine::{Caller, Direction, Transfer};
use crate::error::{Miss, StoreError};
use crate::format::table::Entry;
use crate::payload::{Expected, miss};
use crate::record::{Get, Put};
use crate::store::{Located, Place, Prepared};
use crate::{Buffer, Loan};

/// A read of a batch.
pub struct ReadJob {
    pub board: Arc<Board<Got>>,
    /// Its place in the batch.
    pub index: usize,
    pub get: Get,
    pub class_index: usize,
}

/// A put of a batch.
pub struct WriteJob {
    pub board: Arc<Board<PutOutcome>>,
    /// Its place in the batch.
    pub index: usize,
    pub put: Put,
}

/// A transfer that is over, and the job that it was for.
pub enum Ended {
    /// A slot was read into the buffer, or not.
    Read { job: ReadJob, entry: Box<Entry>, buffer: Buffer, result: io::Result<()> },
    /// A slot was written, or not; `len` is the length of the caller's buffer.
    Written { job: WriteJob, prepared: Box<Prepared>, len: usize, result: io::Result<()> },
}

impl ReadJob {
    /// Ends the read before it began.
    pub fn end(self, desk: &Desk, end: End) {
        let miss = match end {
            End::TimedOut => Miss::TimedOut,
            End::Cancelled => Miss::Cancelled,
        };
        desk.settle(&self.board, self.index, Err(miss));
    }

    /// Ends the read because there is no thread for it.
    pub fn fail(self, desk: &Desk, error: &io::Error) {
        desk.settle(&self.board, self.index, Err(Miss::Io(no_thread(error))));
    }

    /// Starts the read into `buffer`.
    pub fn begin(self, desk: &Arc<Desk>, buffer: Buffer) {
        if !self.board.is_open(self.index) {
            return self.miss(desk, buffer, None);
        }
        let Located { file, offset, entry } = match desk.core.locate(&self.get) {
            Ok(located) => located,
            Err(miss) => return self.miss(desk, buffer, Some(miss)),
        };
        let owner = Arc::clone(desk);
        let entry = Box::new(entry);
        desk.engine.start(Transfer {
            file,
            direction: Direction::Read,
            offset,
            len_bytes: buffer.len(),
            buffer,
            done: Box::new(move |buffer, result, caller| match caller {
                Caller::Idle => self.finish(&owner, &entry, buffer, result),
                Caller::Busy => owner.ended(Ended::Read { job: self, entry, buffer, result }),
            }),
        });
    }

    /// Checks what was read.
    fn finish(self, desk: &Arc<Desk>, entry: &Entry, buffer: Buffer, result: io::Result<()>) {
        let class = desk.core.spec(self.class_index);
        let expected = Expected { class, key: &self.get.key, entry };
        match result.map_err(miss).and_then(|()| expected.check(buffer.bytes())) {
            Err(miss) => self.miss(desk, buffer, Some(miss)),
            Ok(()) => {
                let payload_bytes = class.payload_bytes as usize;
                let loan = Loan::new(buffer, payload_bytes, (self.class_index, self.board.id()), Arc::downgrade(desk));
                desk.settle(&self.board, self.index, Ok(loan));
                desk.job_ended();
            }
        }
    }

    /// Ends the read without its bytes; the miss is `None` if nobody waits for it.
    fn miss(self, desk: &Desk, buffer: Buffer, miss: Option<Miss>) {
        desk.take_back(self.class_index, self.board.id(), buffer);
        if let Some(miss) = miss {
            desk.settle(&self.board, self.index, Err(miss));
        }
        desk.job_ended();
    }
}

impl WriteJob {
    /// Ends the put before it began.
    pub fn end(self, desk: &Desk, end: End) {
        let (group, slot) = (self.put.group, self.put.slot);
        let error = match end {
            End::TimedOut => StoreError::TimedOut { group, slot },
            End::Cancelled => StoreError::Cancelled { group, slot },
        };
        self.settle(desk, Err(error));
    }

    /// Ends the put because there is no thread for it.
    pub fn fail(self, desk: &Desk, error: &io::Error) {
        self.settle(desk, Err(StoreError::io("starting a thread for the put", no_thread(error))));
    }

    /// Starts the put.
    pub fn begin(mut self, desk: &Arc<Desk>) {
        let len = self.put.buffer.len();
        let batch = self.board.id();
        let head = self.put.head();
        let wanted = || self.board.is_open(self.index);
        let prepared = match desk.core.prepare(head, &mut self.put.buffer, wanted) {
            Ok(prepared) => prepared,
            Err(error) => {
                self.settle(desk, Err(error));
                return desk.write_ended(batch);
            }
        };
        let Place { file, offset, .. } = &prepared.place;
        let owner = Arc::clone(desk);
        desk.engine.start(Transfer {
            file: Arc::clone(file),
            direction: Direction::Write,
            offset: *offset,
            len_bytes: prepared.slot_bytes,
            buffer: std::mem::take(&mut self.put.buffer),
            done: Box::new(move |buffer, result, _| {
                self.put.buffer = buffer;
                owner.ended(Ended::Written { job: self, prepared: Box::new(prepared), len, result });
            }),
        });
    }

    /// Enters what was written into the table.
    fn finish(mut self, desk: &Desk, prepared: Prepared, len: usize, result: io::Result<()>) {
        // Reported as failed, it must not be there later: the caller may have put the record elsewhere.
        let expired = self.board.is_expired();
        let result = if expired { Err(io::ErrorKind::TimedOut.into()) } else { result };
        let result = desk.core.commit(prepared, result);
        self.put.buffer.resize(len);
        let batch = self.board.id();
        self.settle(desk, result);
        desk.write_ended(batch);
    }

    fn settle(self, desk: &Desk, result: Result<(), StoreError>) {
        let outcome = PutOutcome { result, buffer: Some(self.put.buffer) };
        desk.settle(&self.board, self.index, outcome);
    }
}

impl Ended {
    /// Sees to what is left to do.
    pub fn finish(self, desk: &Arc<Desk>) {
        match self {
            Self::Read { job, entry, buffer, result } => job.finish(desk, &entry, buffer, result),
            Self::Written { job, prepared, len, result } => job.finish(desk, *prepared, len, result),
        }
    }
}

fn no_thread(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("no thread can be started: {error}"))
}
