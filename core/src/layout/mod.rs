//! Where every type and layer lies inside a record, and how large records are.
//!
//! A record holds the types of its group in the order of the model, a type its layers in ascending order, a layer its rows in
//! ascending order of tokens, without padding. Offsets and sizes are in bytes.

mod group;
mod section;

use alloc::{string::String, vec::Vec};

use thiserror::Error;

pub use group::{Extent, GroupLayout, TypeLayout};

use crate::model::{Group, MAX_BLOCK_TOKENS, MAX_RECORD_BYTES, ModelSpec};

/// Stored payloads start and end on multiples of this, so that they can be read past the page cache.
pub const PAGE_BYTES: u64 = 4096;

/// The layout of every group of a model, for one block size.
///
/// ```
/// use reprise_core::{layout::Layout, model::preset};
///
/// let layout = Layout::new(&preset("v4-pro").unwrap(), 128)?;
/// let history = layout.group("history").unwrap();
/// assert_eq!(history.record_bytes(), 644_024);
/// assert_eq!(history.extent("csa", 4), Some(18_688..37_376));
/// # Ok::<(), reprise_core::layout::LayoutError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    block_tokens: u32,
    groups: Vec<GroupLayout>,
}

/// Why a model has no layout with a block size.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// The block would end in the middle of a compressed row, or is empty.
    #[error(
        "blocks of {block_tokens} tokens do not fit model \"{model}\": the block must be a multiple of {multiple}, the least \
         common multiple of its compression ratios; {nearest} would do"
    )]
    NotAMultiple {
        /// The model.
        model: String,
        /// The block size asked for.
        block_tokens: u32,
        /// What it must be a multiple of.
        multiple: u32,
        /// A block size near the one asked for.
        nearest: u32,
    },
    /// Longer than [`MAX_BLOCK_TOKENS`].
    #[error("blocks of {block_tokens} tokens are too long: at most {MAX_BLOCK_TOKENS} are possible")]
    BlockTooLong {
        /// The block size asked for.
        block_tokens: u32,
    },
    /// A record would be larger than [`MAX_RECORD_BYTES`].
    #[error(
        "a record of group \"{group}\" of model \"{model}\" would have {record_bytes} bytes with blocks of {block_tokens} tokens; \
         at most {MAX_RECORD_BYTES} are possible: take a shorter block"
    )]
    RecordTooLarge {
        /// The model.
        model: String,
        /// The group.
        group: String,
        /// The block size asked for.
        block_tokens: u32,
        /// The size a record would have.
        record_bytes: u64,
    },
}

impl Layout {
    /// The layout of `model` with blocks of `block_tokens`.
    ///
    /// # Errors
    /// When the block is not a multiple of [`ModelSpec::block_multiple`], is 0 or above [`MAX_BLOCK_TOKENS`], or makes a record
    /// larger than [`MAX_RECORD_BYTES`].
    pub fn new(model: &ModelSpec, block_tokens: u32) -> Result<Self, LayoutError> {
        let multiple = model.block_multiple();
        if block_tokens > MAX_BLOCK_TOKENS {
            return Err(LayoutError::BlockTooLong { block_tokens });
        }
        if block_tokens == 0 || !block_tokens.is_multiple_of(multiple) {
            let above = block_tokens.max(1).next_multiple_of(multiple);
            let nearest = if above > MAX_BLOCK_TOKENS { above - multiple } else { above };
            let model = model.name().into();
            return Err(LayoutError::NotAMultiple { model, block_tokens, multiple, nearest });
        }
        let groups: Vec<GroupLayout> = model
            .groups()
            .iter()
            .map(|group| checked_group(model, group, block_tokens))
            .collect::<Result<_, LayoutError>>()?;
        Ok(Self { block_tokens, groups })
    }

    /// Tokens a block spans.
    pub fn block_tokens(&self) -> u32 {
        self.block_tokens
    }

    /// The groups, in the model's order.
    pub fn groups(&self) -> &[GroupLayout] {
        &self.groups
    }

    /// The group of this name.
    pub fn group(&self, name: &str) -> Option<&GroupLayout> {
        self.groups.iter().find(|group| group.name() == name)
    }
}

fn checked_group(model: &ModelSpec, group: &Group, block_tokens: u32) -> Result<GroupLayout, LayoutError> {
    let layout = GroupLayout::new(group, model.types_of(group), block_tokens);
    if layout.record_bytes() > MAX_RECORD_BYTES {
        return Err(LayoutError::RecordTooLarge {
            model: model.name().into(),
            group: group.name.clone(),
            block_tokens,
            record_bytes: layout.record_bytes(),
        });
    }
    Ok(layout)
}

/// Bytes that a record occupies in a store: rounded up to whole pages.
///
/// Quotas are counted in these: a group with a quota of `quota_bytes` holds `quota_bytes / slot_bytes` records.
///
/// # Panics
/// When the result does not fit; records are at most [`MAX_RECORD_BYTES`].
pub const fn slot_bytes(record_bytes: u64) -> u64 {
    record_bytes.next_multiple_of(PAGE_BYTES)
}
