//! The superblock: what makes a directory a store. Two equal pages in one file.

use super::PAGE_BYTES;
use super::page::{self, HeaderFault};

const MAGIC: [u8; 8] = *b"REPRISE\0";

/// Bytes of the file: two copies of one page.
pub const LEN_BYTES: usize = 2 * PAGE_BYTES;

/// The content of a superblock file.
pub fn encode() -> Vec<u8> {
    page::seal(MAGIC, &[]).repeat(2)
}

/// What is left of a superblock that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Superblock {
    /// Both copies are sound.
    Sound,
    /// One copy is sound.
    Half,
}

/// Reads what there is of a superblock file. A copy that must be refused counts more than one that can be read.
pub fn decode(bytes: &[u8]) -> Result<Superblock, HeaderFault> {
    let copy = |index: usize| page::open(bytes.get(index * PAGE_BYTES..).unwrap_or_default(), MAGIC).map(|_| ());
    match (copy(0), copy(1)) {
        (Ok(()), Ok(())) => Ok(Superblock::Sound),
        (Ok(()), Err(HeaderFault::Garbled)) | (Err(HeaderFault::Garbled), Ok(())) => Ok(Superblock::Half),
        (Err(HeaderFault::Garbled), Err(fault)) | (Err(fault), _) | (Ok(()), Err(fault)) => Err(fault),
    }
}

/// What the first sound copy says of its format: the version, and the required and the optional features.
pub fn format(bytes: &[u8]) -> Option<(u32, u64, u64)> {
    (0..2).find_map(|index| page::preamble(bytes.get(index * PAGE_BYTES..)?, MAGIC))
}

/// Whether a crash while a superblock was written for the first time can have left these bytes.
pub fn may_be_torn(bytes: &[u8]) -> bool {
    bytes.len() <= LEN_BYTES && bytes.iter().zip(encode()).all(|(found, whole)| *found == 0 || *found == whole)
}
