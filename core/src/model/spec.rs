//! The checked description of a model.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use super::{CacheType, Role, SpecError, check::check};

/// A model as cache types in groups. A value that exists was checked; it is read from and written to files by serde.
///
/// A model may have several groups of one role. A host that keeps one tree of blocks and one set of checkpoints may refuse more
/// than one block group, one checkpoint group or one draft group; it must say so, because the model itself is fine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ModelTable", into = "ModelTable")]
pub struct ModelSpec {
    name: String,
    groups: Vec<Group>,
    types: Vec<CacheType>,
    block_multiple: u32,
    zero_replay_tokens: u32,
}

/// Types that are stored and evicted together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// For instance `history`.
    pub name: String,
    /// What its records are.
    pub role: Role,
    /// Its types, as places in [`ModelSpec::types`], ascending: the order in a record.
    pub types: Vec<usize>,
}

impl ModelSpec {
    /// A model named `name` with `types` put into `groups`; the place of a group in that list is its number in events.
    ///
    /// # Errors
    /// All that is wrong: names that are missing, twice or unprintable; numbers that are zero or absurd; types in no group or in
    /// one that is not listed; groups without types, with types of several roles, or with records above
    /// [`MAX_RECORD_BYTES`](super::MAX_RECORD_BYTES); no compressed type; state or draft types without a windowed one.
    pub fn new(name: impl Into<String>, groups: Vec<String>, types: Vec<CacheType>) -> Result<Self, SpecError> {
        let name = name.into();
        match check(&name, &groups, &types) {
            Ok(checked) => Ok(Self {
                name,
                groups: checked.groups,
                types,
                block_multiple: checked.block_multiple,
                zero_replay_tokens: checked.zero_replay_tokens,
            }),
            Err(problems) => Err(SpecError { model: name, problems }),
        }
    }

    /// For people: no key and no fingerprint depends on it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The groups, in the order given.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// All types, in the order given.
    pub fn types(&self) -> &[CacheType] {
        &self.types
    }

    /// The types of one group, in the order of a record.
    pub fn types_of<'a>(&'a self, group: &'a Group) -> impl Iterator<Item = &'a CacheType> + Clone {
        group.types.iter().map(|&index| &self.types[index])
    }

    /// Tokens that every block is a multiple of: the least common multiple of the ratios.
    pub fn block_multiple(&self) -> u32 {
        self.block_multiple
    }

    /// Tokens of a replay that needs no checkpoint (Z): the sum of the windows of all layers that have one, draft layers
    /// included. 0 without a window.
    ///
    /// After n_win tokens the first layer's window is exact, after n_win more the second's, and so on: n_win·L is the safe round
    /// number, L·(n_win-1)+1 would be exact.
    pub fn zero_replay_tokens(&self) -> u32 {
        self.zero_replay_tokens
    }

    /// The longest window of any layer, in tokens; 0 without one.
    pub fn window_tokens(&self) -> u32 {
        self.types.iter().map(|cache_type| cache_type.kind.window_tokens()).max().unwrap_or(0)
    }

    /// Whether a hit needs a checkpoint or a replay. Without a window, blocks alone are enough.
    pub fn has_window(&self) -> bool {
        self.groups.iter().any(|group| group.role == Role::Checkpoint)
    }
}

/// A model as it is written in a file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ModelTable {
    name: String,
    groups: Vec<String>,
    types: Vec<CacheType>,
}

impl TryFrom<ModelTable> for ModelSpec {
    type Error = SpecError;

    fn try_from(table: ModelTable) -> Result<Self, SpecError> {
        Self::new(table.name, table.groups, table.types)
    }
}

impl From<ModelSpec> for ModelTable {
    fn from(model: ModelSpec) -> Self {
        let groups = model.groups.into_iter().map(|group| group.name).collect();
        Self { name: model.name, groups, types: model.types }
    }
}
