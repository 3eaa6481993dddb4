//! Plain system calls on the caller's thread. The callers are few, and each waits for its own transfer.

use super::{Caller, Direction, Engine, Transfer};
use crate::format::PAGE_BYTES;
use crate::storage::{read_exact, write_all};

/// Carries out transfers at once, through [`StorageFile::read_at`](crate::storage::StorageFile::read_at) and
/// [`StorageFile::write_at`](crate::storage::StorageFile::write_at).
pub struct Blocking;

impl Engine for Blocking {
    fn start(&self, mut transfer: Transfer) {
        let bytes = &mut transfer.buffer.bytes_mut()[..transfer.len_bytes];
        let result = match transfer.direction {
            Direction::Read => read_exact(&*transfer.file, bytes, transfer.offset, PAGE_BYTES),
            Direction::Write => write_all(&*transfer.file, bytes, transfer.offset, PAGE_BYTES),
        };
        transfer.end(result, Caller::Idle);
    }

    fn stop(&self) {}
}
