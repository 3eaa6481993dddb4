//! The header page that every file but the chunks begins with: magic, version, feature bits, checksum.

use twox_hash::XxHash3_64;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{PAGE_BYTES, VERSION};
use crate::error::StoreError;

/// Where the body of a header page starts.
pub const BODY_OFFSET: usize = size_of::<Preamble>();
/// Where the checksum of a header page lies: its last eight bytes.
const CHECKSUM_OFFSET: usize = PAGE_BYTES - 8;

/// The first bytes of a header page. They and the place of the checksum are the same in every version to come.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Preamble {
    magic: [u8; 8],
    version: U32,
    reserved: U32,
    /// Features that a reader must know.
    required: U64,
    /// Features that a reader may ignore.
    optional: U64,
}

/// Why a header page cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderFault {
    /// Not a header page of this kind, or damaged.
    Garbled,
    /// Sound, but of a later version.
    Newer(u32),
    /// Sound, but with required features that this build does not know.
    Features(u64),
}

impl HeaderFault {
    /// The error for a page that must be refused; `None` for a damaged one, which the store can do without.
    pub fn refusal(self, file: &str) -> Option<StoreError> {
        match self {
            Self::Garbled => None,
            Self::Newer(found) => Some(StoreError::NewerFormat { file: file.to_owned(), found, supported: VERSION }),
            Self::Features(bits) => Some(StoreError::UnknownFeatures { file: file.to_owned(), bits }),
        }
    }
}

/// A header page of version 1 with `body`, which has at most [`PAGE_BYTES`] - [`BODY_OFFSET`] - 8 bytes.
pub fn seal(magic: [u8; 8], body: &[u8]) -> Box<[u8; PAGE_BYTES]> {
    let mut page = Box::new([0; PAGE_BYTES]);
    let preamble =
        Preamble { magic, version: VERSION.into(), reserved: 0.into(), required: 0.into(), optional: 0.into() };
    page[..BODY_OFFSET].copy_from_slice(preamble.as_bytes());
    page[BODY_OFFSET..][..body.len()].copy_from_slice(body);
    let sum = XxHash3_64::oneshot(&page[..CHECKSUM_OFFSET]);
    page[CHECKSUM_OFFSET..].copy_from_slice(&sum.to_le_bytes());
    page
}

/// What the preamble of a sound header page says: the version, and the required and the optional features.
pub fn preamble(page: &[u8], magic: [u8; 8]) -> Option<(u32, u64, u64)> {
    let (preamble, _) = Preamble::ref_from_prefix(page).ok()?;
    let sound = !matches!(open(page, magic), Err(HeaderFault::Garbled));
    sound.then(|| (preamble.version.get(), preamble.required.get(), preamble.optional.get()))
}

/// The body of a header page, if `page` is one of this kind and this build can read it.
pub fn open(page: &[u8], magic: [u8; 8]) -> Result<&[u8], HeaderFault> {
    if page.len() < PAGE_BYTES {
        return Err(HeaderFault::Garbled);
    }
    let (preamble, _) = Preamble::ref_from_prefix(page).map_err(|_| HeaderFault::Garbled)?;
    let sum = XxHash3_64::oneshot(&page[..CHECKSUM_OFFSET]);
    if preamble.magic != magic || page[CHECKSUM_OFFSET..PAGE_BYTES] != sum.to_le_bytes() {
        return Err(HeaderFault::Garbled);
    }
    if preamble.version.get() > VERSION {
        return Err(HeaderFault::Newer(preamble.version.get()));
    }
    if preamble.required.get() != 0 {
        return Err(HeaderFault::Features(preamble.required.get()));
    }
    Ok(&page[BODY_OFFSET..CHECKSUM_OFFSET])
}
