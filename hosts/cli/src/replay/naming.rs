//! Names of a trace's blocks: as digests of tokens derived from the ids, or, where nothing is stored, straight from the ids.

use reprise_core::{
    Digest,
    prefix::{self, NamespaceKey},
};

/// Why a trace's blocks cannot be named with the cache's block size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the cache's blocks of {block_tokens} tokens do not fit the trace's of {trace_tokens}: one must divide the other; choose another \
     --block-tokens"
)]
pub struct Misfit {
    block_tokens: u32,
    trace_tokens: u32,
}

/// How blocks of a trace map to blocks of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    block_tokens: u32,
    trace_tokens: u32,
}

impl Grid {
    /// Cache blocks of `block_tokens` over trace blocks of `trace_tokens`.
    pub fn new(block_tokens: u32, trace_tokens: u32) -> Result<Self, Misfit> {
        let fits = block_tokens > 0
            && trace_tokens > 0
            && (block_tokens.is_multiple_of(trace_tokens) || trace_tokens.is_multiple_of(block_tokens));
        if fits { Ok(Self { block_tokens, trace_tokens }) } else { Err(Misfit { block_tokens, trace_tokens }) }
    }

    /// Complete blocks of a prompt that its ids cover.
    pub fn complete_blocks(self, prompt_tokens: u32, ids: usize) -> u32 {
        let covered = (ids as u64).saturating_mul(u64::from(self.trace_tokens)) / u64::from(self.block_tokens);
        covered.min(u64::from(prompt_tokens / self.block_tokens)) as u32
    }

    /// Appends the names of the first `blocks` blocks, from the ids alone: a name covers all ids up to the block's end.
    ///
    /// Two 64-bit lanes of folded multiplications, not cryptographic: a trace is not an adversary, and nothing is stored under these
    /// names.
    pub fn name_by_ids(self, scope: u32, ids: &[u32], blocks: u32, names: &mut Vec<Digest>) {
        let mut lanes = Lanes::new(scope);
        names.reserve(blocks as usize);
        if self.block_tokens >= self.trace_tokens {
            let ids_per_block = (self.block_tokens / self.trace_tokens) as usize;
            for chunk in ids.chunks_exact(ids_per_block).take(blocks as usize) {
                chunk.iter().for_each(|&id| lanes.absorb(u64::from(id)));
                names.push(lanes.name());
            }
        } else {
            let parts = self.trace_tokens / self.block_tokens;
            for block in 0..blocks {
                lanes.absorb(u64::from(ids[(block / parts) as usize]) | u64::from(block % parts + 1) << 32);
                names.push(lanes.name());
            }
        }
    }

    /// Appends the digests of the first `blocks` blocks of the tokens that the ids stand for.
    pub fn name_by_tokens(
        self,
        key: &NamespaceKey,
        scope: u32,
        ids: &[u32],
        blocks: u32,
        tokens: &mut Vec<u32>,
        names: &mut Vec<Digest>,
    ) {
        let wanted = blocks as usize * self.block_tokens as usize;
        tokens.clear();
        for &id in ids {
            let first = mix(u64::from(scope) << 32 | u64::from(id));
            let count = (self.trace_tokens as usize).min(wanted - tokens.len());
            tokens.extend((0..count as u64).map(|offset| mix(first.wrapping_add(offset)) as u32));
            if tokens.len() == wanted {
                break;
            }
        }
        prefix::digests(key, tokens, names);
    }
}

/// The finaliser of SplitMix64.
pub(super) fn mix(mut value: u64) -> u64 {
    value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

struct Lanes {
    first: u64,
    second: u64,
}

impl Lanes {
    fn new(scope: u32) -> Self {
        Self { first: mix(u64::from(scope)), second: mix(!u64::from(scope)) }
    }

    fn absorb(&mut self, value: u64) {
        self.first = fold(self.first ^ value, 0xa076_1d64_78bd_642f).wrapping_add(self.first.rotate_left(23));
        self.second = fold(self.second ^ value, 0xe703_7ed1_a0b4_28db).wrapping_add(self.second.rotate_left(41));
    }

    fn name(&self) -> Digest {
        let mut name = Digest::default();
        name.0[..8].copy_from_slice(&self.first.to_le_bytes());
        name.0[8..16].copy_from_slice(&self.second.to_le_bytes());
        name
    }
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a).wrapping_mul(u128::from(b));
    (product as u64) ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use reprise_core::prefix::Namespace;

    use super::*;

    #[test]
    fn neither_too_few_nor_surplus_ids_make_a_block_that_is_not_there() {
        let grid = Grid::new(128, 64).unwrap();
        for (prompt_tokens, ids, blocks) in
            [(1000, 16, 7), (1024, 16, 8), (1024, 99, 8), (1024, 15, 7), (127, 2, 0), (1024, 0, 0)]
        {
            assert_eq!(grid.complete_blocks(prompt_tokens, ids), blocks, "{prompt_tokens} tokens, {ids} ids");
        }
        let grid = Grid::new(128, 512).unwrap();
        assert_eq!(grid.complete_blocks(6758, 14), 52);
        assert_eq!(grid.complete_blocks(6758, 13), 52);
        assert_eq!(grid.complete_blocks(6758, 12), 48);
    }

    #[test]
    fn blocks_that_do_not_divide_are_refused() {
        assert!(Grid::new(192, 128).is_err());
        assert!(Grid::new(128, 0).is_err());
        assert!(Grid::new(384, 128).is_ok());
    }

    /// Both ways of naming agree: equal names for equal blocks behind equal prefixes, and only for those.
    #[test]
    fn a_dry_run_does_not_see_other_hits_than_a_real_store() {
        let prompts: [&[u32]; 6] =
            [&[1, 2, 3, 4], &[1, 2, 3, 5], &[1, 9, 3, 4], &[2, 1, 3, 4], &[1, 2], &[4_000_000_000, 2, 3, 4]];
        let key = Namespace::new("m", "r").block_tokens(128).key().unwrap();
        for (block_tokens, trace_tokens) in [(128, 64), (128, 128), (128, 512)] {
            let grid = Grid::new(block_tokens, trace_tokens).unwrap();
            let mut by_ids = HashMap::new();
            for scope in [0, 1] {
                for ids in prompts {
                    let blocks = grid.complete_blocks(u32::MAX, ids.len());
                    let (mut names, mut digests, mut tokens) = (Vec::new(), Vec::new(), Vec::new());
                    grid.name_by_ids(scope, ids, blocks, &mut names);
                    grid.name_by_tokens(&key, scope, ids, blocks, &mut tokens, &mut digests);
                    assert_eq!((names.len(), digests.len()), (blocks as usize, blocks as usize));
                    for (name, digest) in names.into_iter().zip(digests) {
                        assert_eq!(*by_ids.entry(name).or_insert(digest), digest);
                    }
                }
            }
            let digests: std::collections::HashSet<_> = by_ids.values().collect();
            assert_eq!(digests.len(), by_ids.len(), "two names, one digest");
        }
    }
}
