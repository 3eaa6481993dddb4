//! The fingerprint of a group: what must be equal for its records to be readable.
//!
//! BLAKE3 over these fields, in this order, without gaps; integers are little endian, text is its length in bytes as a `u32` and
//! then its bytes:
//!
//! | field | type | value |
//! |---|---|---|
//! | tag | text | `reprise layout` |
//! | version | u32 | 1; changes when the order of bytes in a record does |
//! | role | u8 | 1 block, 2 checkpoint, 3 draft |
//! | block | u32 | tokens a block spans |
//! | types | u32 | how many follow, in the order of the record |
//! | · name | text | |
//! | · kind | u8 | 1 compressed, 2 windowed, 3 state, 4 draft, 5 draft state |
//! | · parameter | u32 | ratio, window tokens, or rows |
//! | · row bytes | u32 | |
//! | · row format | text | |
//! | · layers | u32 | how many layer numbers follow, ascending |
//! | · · layer | u32 | |
//!
//! The names of model and group are not in it, nor is any other group: a changed window layout misses windows, never history.

use crate::Digest;

use super::{CacheType, Kind, Role};

const TAG: &str = "reprise layout";
const VERSION: u32 = 1;

/// The fingerprint of a group of `types` with this role and block.
pub(crate) fn fingerprint<'a>(
    role: Role,
    block_tokens: u32,
    types: impl Iterator<Item = &'a CacheType> + Clone,
) -> Digest {
    let mut encoding = Encoding(blake3::Hasher::new());
    encoding.text(TAG);
    encoding.number(VERSION);
    encoding.byte(match role {
        Role::Block => 1,
        Role::Checkpoint => 2,
        Role::Draft => 3,
    });
    encoding.number(block_tokens);
    encoding.count(types.clone().count());
    for cache_type in types {
        let (kind, parameter) = match cache_type.kind {
            Kind::Compressed { ratio } => (1, ratio),
            Kind::Windowed { window_tokens } => (2, window_tokens),
            Kind::State { rows } => (3, rows),
            Kind::Draft { window_tokens } => (4, window_tokens),
            Kind::DraftState { rows } => (5, rows),
        };
        encoding.text(&cache_type.name);
        encoding.byte(kind);
        encoding.number(parameter);
        encoding.number(cache_type.row_bytes);
        encoding.text(&cache_type.row_format);
        encoding.count(cache_type.layers.count());
        cache_type.layers.iter().for_each(|layer| encoding.number(u32::from(layer)));
    }
    Digest(*encoding.0.finalize().as_bytes())
}

struct Encoding(blake3::Hasher);

impl Encoding {
    fn byte(&mut self, byte: u8) {
        self.0.update(&[byte]);
    }

    fn number(&mut self, number: u32) {
        self.0.update(&number.to_le_bytes());
    }

    /// Lengths of names and lists, which a checked model bounds far below `u32::MAX`.
    fn count(&mut self, count: usize) {
        self.number(count as u32);
    }

    fn text(&mut self, text: &str) {
        self.count(text.len());
        self.0.update(text.as_bytes());
    }
}
