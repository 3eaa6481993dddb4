//! The bytes of a record in a buffer of the store.

use std::fmt;
use std::ops::Deref;
use std::sync::Weak;

use crate::Buffer;
use crate::desk::Desk;

/// A record that was read and checked, in a buffer that belongs to the store and goes back to it when this is dropped.
///
/// The store has a limited number of such buffers, and one batch has at most half of those of a class, outcomes that nobody
/// has taken yet included. Reads wait until one comes back, or their deadline passes. So take what is needed from a loan
/// and drop it before the next one is waited for.
pub struct Loan {
    buffer: Buffer,
    payload_bytes: usize,
    /// Whose buffer it is: the class, and the batch.
    origin: (usize, u64),
    desk: Weak<Desk>,
}

impl Loan {
    pub(crate) fn new(buffer: Buffer, payload_bytes: usize, origin: (usize, u64), desk: Weak<Desk>) -> Self {
        Self { buffer, payload_bytes, origin, desk }
    }
}

impl Deref for Loan {
    type Target = [u8];

    /// The payload.
    fn deref(&self) -> &[u8] {
        &self.buffer.bytes()[..self.payload_bytes]
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        // Without a store there is nobody to give it back to.
        if let Some(desk) = self.desk.upgrade() {
            let (class_index, batch) = self.origin;
            desk.take_back(class_index, batch, std::mem::take(&mut self.buffer));
        }
    }
}

impl fmt::Debug for Loan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loan({} bytes)", self.payload_bytes)
    }
}
