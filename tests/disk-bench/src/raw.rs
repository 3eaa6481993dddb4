//! One file, written and read in order: what the device, or memory, can do.

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use nix::fcntl::{FallocateFlags, fallocate};
use nix::libc::O_DIRECT;
use reprise_disk::Buffer;
use xxhash_rust::xxh3::xxh3_64;

use crate::contender::{Closing, Contender, Reader, spread};
use crate::records::{Records, Tally};

/// O_DIRECT asks for offsets and lengths of whole pages.
const PAGE_BYTES: usize = 4096;

/// `pwrite` and `pread` with O_DIRECT.
#[derive(Clone, Copy)]
pub struct Raw {
    /// How many records are under way at once.
    pub depth: usize,
    /// Whether the file lies in memory. There the device costs nothing, and a checksum is made of every record instead; and
    /// to allocate the file would be to write it twice.
    pub in_memory: bool,
}

impl Raw {
    fn file(place: &Path, writes: bool) -> Result<File> {
        let path = place.join("raw");
        let mut options = OpenOptions::new();
        options.read(true).write(writes).create(writes).custom_flags(O_DIRECT);
        options.open(&path).with_context(|| format!("opening {} with O_DIRECT", path.display()))
    }

    fn sum(self, bytes: &[u8]) {
        if self.in_memory {
            black_box(xxh3_64(bytes));
        }
    }
}

impl Contender for Raw {
    fn name(&self) -> String {
        match self.in_memory {
            true => "raw + XXH3".to_owned(),
            false => "raw".to_owned(),
        }
    }

    fn write(&self, place: &Path, records: &Records) -> Result<Closing> {
        let file = Self::file(place, true)?;
        let slot_bytes = records.bytes.next_multiple_of(PAGE_BYTES);
        if !self.in_memory {
            let len_bytes = i64::try_from(records.count * slot_bytes)?;
            fallocate(&file, FallocateFlags::empty(), 0, len_bytes).context("allocating the raw file")?;
        }
        let buffer = || Buffer::zeroed(slot_bytes);
        spread(self.depth, records.count, buffer, |buffer, index| {
            let payload = &mut buffer.bytes_mut()[..records.bytes];
            payload.copy_from_slice(records.payload(index));
            self.sum(payload);
            file.write_all_at(buffer.bytes(), (index * slot_bytes) as u64).context("writing the raw file")
        })?;
        Ok(Box::new(|| Ok(())))
    }

    fn open(&self, place: &Path, records: &Records) -> Result<Box<dyn Reader>> {
        Ok(Box::new(RawReader { raw: *self, file: Self::file(place, false)?, bytes: records.bytes }))
    }
}

struct RawReader {
    raw: Raw,
    file: File,
    bytes: usize,
}

impl RawReader {
    fn buffer(&self) -> Buffer {
        Buffer::zeroed(self.bytes.next_multiple_of(PAGE_BYTES))
    }

    fn read(&self, index: usize, buffer: &mut Buffer, tally: &Tally) -> Result<()> {
        let offset = (index * buffer.len()) as u64;
        self.file.read_exact_at(buffer.bytes_mut(), offset).context("reading the raw file")?;
        let payload = &buffer.bytes()[..self.bytes];
        self.raw.sum(payload);
        tally.check(index, payload);
        Ok(())
    }
}

impl Reader for RawReader {
    /// In order, whatever `order` says.
    fn read_all(&mut self, order: &Arc<[usize]>, tally: &Arc<Tally>) -> Result<()> {
        spread(self.raw.depth, order.len(), || self.buffer(), |buffer, index| self.read(index, buffer, tally))
    }

    fn read_one(&mut self, index: usize, tally: &Tally) -> Result<()> {
        self.read(index, &mut self.buffer(), tally)
    }
}
