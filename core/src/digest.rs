//! The 256-bit name of a block.

use core::fmt;

use serde::{Deserialize, Serialize};

/// A 256-bit digest: of a prefix up to a block's end, of a namespace, of a layout.
///
/// Printed as 64 hexadecimal digits by `Display`, as the first 12 by `Debug`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[repr(transparent)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The first eight bytes, little endian: what hash tables and policies use as a short key.
    #[inline]
    pub const fn short(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..6].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}
