//! The secret that names the blocks of a made trace, and how it turns counters into ids.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};

/// 32 secret bytes. Whoever does not know them cannot test a guess of the content against the digests made with them.
#[derive(Clone)]
pub struct Salt([u8; 32]);

impl fmt::Debug for Salt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Salt(..)")
    }
}

impl Salt {
    /// A new salt from the random source of the system.
    ///
    /// # Errors
    ///
    /// If `/dev/urandom` cannot be read.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; 32];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// The salt of a phrase: the same phrase and input give the same trace again. As secret as the phrase is.
    pub fn from_phrase(phrase: &str) -> Self {
        Self(blake3::derive_key("reprise trace make salt v1", phrase.as_bytes()))
    }

    /// A keyed hash of `parts`; each is preceded by its length, so that parts cannot run into each other.
    pub(super) fn hash(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        hasher.finalize().into()
    }

    /// The `counter`th id: a permutation of the 32-bit numbers, so ids never collide and their order tells nothing.
    /// Four rounds of a balanced Feistel network (Luby and Rackoff 1988).
    pub(super) fn shuffle(&self, counter: u32) -> u32 {
        let (mut left, mut right) = ((counter >> 16) as u16, counter as u16);
        for round in 0..4u8 {
            let hash = self.hash(&[b"round", &[round], &right.to_le_bytes()]);
            (left, right) = (right, left ^ u16::from_le_bytes([hash[0], hash[1]]));
        }
        u32::from(left) << 16 | u32::from(right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn shuffled_counters_never_collide() {
        let salt = Salt::from_phrase("a phrase");
        let ids: HashSet<u32> = (0..20_000).chain(u32::MAX - 20_000..=u32::MAX).map(|c| salt.shuffle(c)).collect();
        assert_eq!(ids.len(), 40_001);
    }

    #[test]
    fn shuffled_counters_are_not_in_order() {
        let salt = Salt::from_phrase("a phrase");
        let rising = (0..1_000).filter(|&c| salt.shuffle(c) < salt.shuffle(c + 1)).count();
        assert!((400..600).contains(&rising), "{rising} of 1000 steps go up");
    }

    #[test]
    fn two_random_salts_are_never_the_same() {
        let (a, b) = (Salt::random().unwrap(), Salt::random().unwrap());
        assert_ne!(a.hash(&[b"x"]), b.hash(&[b"x"]));
        assert_eq!(format!("{a:?}"), "Salt(..)", "a salt is not printed");
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        let salt = Salt::from_phrase("");
        assert_ne!(salt.hash(&[b"ab", b"c"]), salt.hash(&[b"a", b"bc"]));
    }
}
