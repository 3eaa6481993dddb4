//! Many records at once.

use std::sync::Arc;
use std::time::Instant;

use super::Store;
use crate::batch::{Batch, Board, Got, PutOutcome};
use crate::desk::{ReadJob, WriteJob};
use crate::error::Miss;
use crate::record::{Get, Head, Put};

impl Store {
    /// Reads records, as many at once as the device and the store's buffers take, and checks each as
    /// [`get`](Store::get) does. Returns at once; see [`Batch`] for how to take what comes. Without a `deadline`, it is the
    /// patience of [`IoOptions`](super::IoOptions) from now.
    ///
    /// ```no_run
    /// # fn example(store: &reprise_disk::Store, gets: &[reprise_disk::Get]) {
    /// for (index, got) in store.get_batch(gets, None) {
    ///     match got {
    ///         Ok(loan) => println!("record {index} has {} bytes", loan.len()),
    ///         Err(miss) => println!("record {index} is a miss: {miss}"),
    ///     }
    /// }
    /// # }
    /// ```
    pub fn get_batch(&self, gets: &[Get], deadline: Option<Instant>) -> Batch<Got> {
        let records = gets.iter().map(|get| (get.group, get.slot));
        let board: Arc<Board<Got>> = self.desk.board(self.deadline(deadline), records);
        let mut jobs = Vec::with_capacity(gets.len());
        for (index, get) in gets.iter().enumerate() {
            match self.core.slot(get.group, get.slot) {
                Some((class_index, _)) => {
                    let board = Arc::clone(&board);
                    jobs.push(ReadJob { board, index, get: *get, class_index });
                }
                None => self.desk.settle(&board, index, Err(Miss::Absent)),
            }
        }
        self.desk.read(jobs);
        Batch::new(board, &self.desk)
    }

    /// Puts records, as many at once as the device takes, each as [`put`](Store::put) does. Returns at once; see [`Batch`]
    /// for how to take what comes. The buffers come back with the outcomes. No slot may be named twice: of such puts, one is
    /// [`StoreError::SlotBusy`](crate::StoreError::SlotBusy) or is replaced by the other. Without a `deadline`, it is the
    /// patience of [`IoOptions`](super::IoOptions) from now.
    pub fn put_batch(&self, puts: Vec<Put>, deadline: Option<Instant>) -> Batch<PutOutcome> {
        let records = puts.iter().map(|put| (put.group, put.slot));
        let board: Arc<Board<PutOutcome>> = self.desk.board(self.deadline(deadline), records);
        let job = |(index, put)| WriteJob { board: Arc::clone(&board), index, put };
        self.desk.write(puts.into_iter().enumerate().map(job).collect());
        Batch::new(board, &self.desk)
    }

    fn deadline(&self, deadline: Option<Instant>) -> Instant {
        deadline.unwrap_or_else(|| Instant::now() + self.patience)
    }
}

impl Put {
    /// The put without its payload.
    pub(crate) fn head(&self) -> Head {
        Head { group: self.group, slot: self.slot, key: self.key, parent: self.parent, last_use: self.last_use }
    }
}
