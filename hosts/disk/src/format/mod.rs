//! Format version 1, as drawn in `FORMAT.md`: what the bytes of each file mean, without any I/O.

pub mod catalogue;
pub mod checksum;
pub mod names;
pub mod page;
pub mod superblock;
pub mod table;
pub mod trailer;

/// The unit of alignment of everything on disk, in bytes.
pub const PAGE_BYTES: usize = 4096;

/// The version that this build writes, and the highest that it reads.
pub const VERSION: u32 = 1;
