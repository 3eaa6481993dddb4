//! Page-aligned memory for records, as direct I/O needs it.

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::format::PAGE_BYTES;

/// The alignment of the memory; a type of its own so that a `Vec` of it is aligned without unsafe code.
#[derive(Clone, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C, align(4096))]
struct Page([u8; PAGE_BYTES]);

/// A growable run of bytes that starts on a 4 KiB boundary and whose memory is a whole number of 4 KiB pages.
///
/// A buffer is meant to be used again and again: it never gives memory back, and making it shorter and longer within
/// what it already has costs nothing.
///
/// ```
/// let mut buffer = reprise_disk::Buffer::zeroed(10_000);
/// buffer.bytes_mut()[..5].copy_from_slice(b"block");
/// assert_eq!(buffer.len(), 10_000);
/// assert_eq!(buffer.bytes().as_ptr() as usize % 4096, 0);
/// ```
#[derive(Default)]
pub struct Buffer {
    pages: Vec<Page>,
    len: usize,
}

impl Buffer {
    /// An empty buffer; takes no memory yet.
    pub const fn new() -> Self {
        Self { pages: Vec::new(), len: 0 }
    }

    /// A buffer of `len_bytes` zeros.
    pub fn zeroed(len_bytes: usize) -> Self {
        let mut buffer = Self::new();
        buffer.resize(len_bytes);
        buffer
    }

    /// Makes the buffer `len_bytes` long. Bytes below the smaller of both lengths stay; what comes into view above the
    /// old length is zero or what an earlier, longer use left there.
    pub fn resize(&mut self, len_bytes: usize) {
        let pages = len_bytes.div_ceil(PAGE_BYTES);
        if pages > self.pages.len() {
            self.pages.reserve_exact(pages - self.pages.len());
            self.pages.resize_with(pages, Page::new_zeroed);
        }
        self.len = len_bytes;
    }

    /// Makes the buffer empty and keeps its memory.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// How many bytes the buffer shows.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the buffer shows no byte.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.pages.as_bytes()[..self.len]
    }

    /// The bytes, to be filled.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.pages.as_mut_bytes()[..self.len]
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} bytes)", self.len)
    }
}
