//! Checking the bytes of a slot: the one way bytes come out of a store.

use std::io;
use std::ops::Range;

use crate::Buffer;
use crate::class::GroupClass;
use crate::error::Miss;
use crate::format::table::Entry;
use crate::format::{PAGE_BYTES, trailer};
use crate::record::Key;
use crate::storage::{StorageFile, read_exact};

/// What the bytes of a slot are held against: its table entry, which has been checked, and the record asked for.
pub struct Expected<'a> {
    pub class: &'a GroupClass,
    pub key: &'a Key,
    pub entry: &'a Entry,
}

impl Expected<'_> {
    /// Checks a whole slot.
    pub fn check(&self, slot: &[u8]) -> Result<(), Miss> {
        let trailer = &slot[self.class.trailer_offset() as usize..];
        self.check_sections(slot, 0, trailer, 0..self.class.sections.len())
    }

    /// Checks the trailer, which `trailer` begins with, and some sections, which lie in `bytes`; these begin `start` bytes
    /// into the slot.
    fn check_sections(&self, bytes: &[u8], start: usize, trailer: &[u8], sections: Range<usize>) -> Result<(), Miss> {
        let trailer = &trailer[..trailer::len_bytes(self.class.sections.len())];
        let mut sums = trailer::sums(self.class, self.key, self.entry.namespace_check.get());
        if sums.trailer(trailer) != self.entry.trailer_sum.get() {
            return Err(Miss::Corrupt { section: None });
        }
        for index in sections {
            let section = self.class.section(index);
            let bytes = &bytes[section.start - start..section.end - start];
            if sums.section(index, bytes) != trailer::section_sum(trailer, index) {
                return Err(Miss::Corrupt { section: Some(index) });
            }
        }
        Ok(())
    }
}

/// The miss that a failed read is.
pub fn miss(error: io::Error) -> Miss {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Miss::Corrupt { section: None },
        _ => Miss::Io(error),
    }
}

/// A slot in its file.
pub struct Slot<'a> {
    pub expected: Expected<'a>,
    pub file: &'a dyn StorageFile,
    /// Where the slot starts in the file, in bytes.
    pub offset: u64,
}

impl Slot<'_> {
    /// Reads the whole payload into `buffer`, or leaves the buffer empty.
    pub fn read(&self, buffer: &mut Buffer) -> Result<(), Miss> {
        let class = self.expected.class;
        let result = self.read_span(0..class.slot_bytes() as usize, 0..class.sections.len(), buffer);
        match &result {
            Ok(()) => buffer.resize(class.payload_bytes as usize),
            Err(_) => buffer.clear(),
        }
        result
    }

    /// Reads some sections into `buffer`, or leaves the buffer empty.
    pub fn read_sections(&self, sections: Range<usize>, buffer: &mut Buffer) -> Result<(), Miss> {
        let class = self.expected.class;
        if sections.is_empty() || sections.end > class.sections.len() {
            buffer.clear();
            return Err(Miss::Absent);
        }
        let start = class.section(sections.start).start;
        let end = class.section(sections.end - 1).end;
        let result = self.read_span(start..end.next_multiple_of(PAGE_BYTES), sections, buffer);
        match &result {
            Ok(()) => buffer.resize(end - start),
            Err(_) => buffer.clear(),
        }
        result
    }

    /// Reads `span`, which holds `sections` and starts where they start, and the pages with the trailer behind it, and
    /// checks all of them.
    fn read_span(&self, span: Range<usize>, sections: Range<usize>, buffer: &mut Buffer) -> Result<(), Miss> {
        let class = self.expected.class;
        let slot_bytes = class.slot_bytes() as usize;
        let trailer_offset = class.trailer_offset() as usize;
        let trailer_page = trailer_offset - trailer_offset % PAGE_BYTES;
        // Where the trailer's pages adjoin the span or lie in it, one read brings both.
        let (span, tail) = match span.end >= trailer_page {
            true => (span.start..slot_bytes, slot_bytes..slot_bytes),
            false => (span, trailer_page..slot_bytes),
        };
        buffer.resize(span.len() + tail.len());
        let (head, behind) = buffer.bytes_mut().split_at_mut(span.len());
        self.fill(head, span.start)?;
        self.fill(behind, tail.start)?;

        let trailer = match tail.is_empty() {
            true => &head[trailer_offset - span.start..],
            false => &behind[trailer_offset - tail.start..],
        };
        self.expected.check_sections(head, span.start, trailer, sections)
    }

    fn fill(&self, bytes: &mut [u8], within: usize) -> Result<(), Miss> {
        read_exact(self.file, bytes, self.offset + within as u64, PAGE_BYTES).map_err(miss)
    }
}
