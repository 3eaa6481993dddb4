//! When each block was used last, by its name.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use reprise::Digest;

/// The latest use of every block seen. For names made from ids ([`crate::replay::Grid::name_by_ids`]): they have 16 bytes, the rest is 0.
#[derive(Default)]
pub(super) struct LastUses(HashMap<u128, u32, BuildHasherDefault<Folded>>);

impl LastUses {
    /// Notes a use; returns the one before.
    pub fn replace(&mut self, name: &Digest, time: u32) -> Option<u32> {
        let mut half = [0; 16];
        half.copy_from_slice(&name.0[..16]);
        self.0.insert(u128::from_le_bytes(half), time)
    }
}

/// The hash of what is one already.
#[derive(Default)]
struct Folded(u64);

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0.rotate_left(8) ^ u64::from(byte));
    }

    fn write_u128(&mut self, name: u128) {
        self.0 = (name as u64) ^ (name >> 64) as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
