//! The groups a cache keeps, and how many records of each fit its quota.

use reprise_core::{
    Digest,
    layout::{GroupLayout, Layout},
    model::{ModelSpec, Role},
    plan::RecordSizes,
    policy::CheckpointInfo,
};
use serde::{Deserialize, Serialize};

use crate::error::OpenError;

/// Most records a group may have room for. The books of so many take tens of gigabytes once they are there, and their index 4 GiB of
/// address space before.
pub const MAX_SLOTS: u32 = 1 << 28;

/// A group of records, stored and evicted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Group {
    /// Compressed entries of one block.
    History = 0,
    /// The window state at one position: a checkpoint.
    Window = 1,
    /// The draft layers' window at the same position.
    Draft = 2,
}

impl Group {
    /// All groups, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::History, Self::Window, Self::Draft];

    /// The number that events and the store carry.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// As written in reports and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::History => "history",
            Self::Window => "window",
            Self::Draft => "draft",
        }
    }
}

/// Records of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupShape {
    /// Name in the model.
    pub name: String,
    /// Payload of a record.
    pub record_bytes: u64,
    /// What a record occupies: its payload rounded up to 4 KiB.
    pub slot_bytes: u64,
    /// How many records the quota holds.
    pub slots: u32,
    /// Fingerprint of the group's layout.
    pub fingerprint: Digest,
    /// End offsets of the sections that are checked one by one.
    pub sections: Vec<u64>,
}

impl GroupShape {
    fn new(layout: &GroupLayout, quota_bytes: u64) -> Self {
        let slots = quota_bytes / layout.slot_bytes();
        Self {
            name: layout.name().to_owned(),
            record_bytes: layout.record_bytes(),
            slot_bytes: layout.slot_bytes(),
            slots: u32::try_from(slots).unwrap_or(u32::MAX),
            fingerprint: layout.fingerprint(),
            sections: layout.sections().to_vec(),
        }
    }
}

/// What a model's cache looks like with one block size and quotas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Tokens a block spans.
    pub block_tokens: u32,
    /// Z: tokens whose replay rebuilds every window; 0 for a model without windows.
    pub replay_tokens: u32,
    /// The group of block records.
    pub history: GroupShape,
    /// The group of checkpoint records; `None` for a model without windows.
    pub window: Option<GroupShape>,
    /// The group of draft records, as many as there are checkpoints; `None` with drafts off.
    pub draft: Option<GroupShape>,
}

impl Shape {
    /// The shape of `model` with these quotas. Draft records lie beside the checkpoints, outside their quota.
    ///
    /// # Errors
    /// When the model does not fit the block size, a quota holds more than [`MAX_SLOTS`] records, or the model has more than one group of a role: this cache keeps one tree of blocks with
    /// one set of checkpoints.
    pub fn new(model: &ModelSpec, block_tokens: u32, history_bytes: u64, window_bytes: u64) -> Result<Self, OpenError> {
        let layout = Layout::new(model, block_tokens)?;
        let only = |role: Role| -> Result<Option<&GroupLayout>, OpenError> {
            let mut groups = layout.groups().iter().filter(|group| group.role() == role);
            let first = groups.next();
            match groups.next() {
                Some(second) => Err(OpenError::SeveralGroups {
                    model: model.name().to_owned(),
                    first: first.map(|group| group.name().to_owned()).unwrap_or_default(),
                    second: second.name().to_owned(),
                }),
                None => Ok(first),
            }
        };
        let history = only(Role::Block)?.ok_or_else(|| OpenError::NoHistory { model: model.name().to_owned() })?;
        let window = only(Role::Checkpoint)?.map(|group| GroupShape::new(group, window_bytes));
        let history = GroupShape::new(history, history_bytes);
        for (shape, quota_bytes) in
            [Some((&history, history_bytes)), window.as_ref().map(|shape| (shape, window_bytes))].into_iter().flatten()
        {
            if shape.slots > MAX_SLOTS {
                let most_bytes = u64::from(MAX_SLOTS) * shape.slot_bytes;
                return Err(OpenError::QuotaTooLarge { group: shape.name.clone(), quota_bytes, most_bytes });
            }
        }
        let checkpoints = window.as_ref().map_or(0, |window| window.slots);
        let draft = only(Role::Draft)?
            .map(|group| GroupShape::new(group, u64::from(checkpoints).saturating_mul(group.slot_bytes())));
        Ok(Self { block_tokens, replay_tokens: model.zero_replay_tokens(), history, window, draft })
    }

    /// The shape of one group, if the model has it.
    pub fn group(&self, group: Group) -> Option<&GroupShape> {
        match group {
            Group::History => Some(&self.history),
            Group::Window => self.window.as_ref(),
            Group::Draft => self.draft.as_ref(),
        }
    }

    /// The payload of a record of `group`; 0 if the model does not have it.
    pub fn record_bytes(&self, group: Group) -> u64 {
        self.group(group).map_or(0, |shape| shape.record_bytes)
    }

    /// What lies in the records that a plan loads.
    pub fn record_sizes(&self) -> RecordSizes {
        RecordSizes {
            block_tokens: self.block_tokens,
            block_bytes: self.history.record_bytes,
            checkpoint_bytes: self.checkpoint_groups().map(|(_, shape)| shape.record_bytes).sum(),
            checkpoint_records: self.checkpoint_groups().count() as u32,
        }
    }

    /// What a checkpoint policy is told of checkpoints.
    pub(crate) fn checkpoint_info(&self, replays: bool) -> CheckpointInfo {
        let sizes = self.record_sizes();
        CheckpointInfo {
            capacity_checkpoints: self.window.as_ref().map_or(0, |window| window.slots.into()),
            checkpoint_bytes: sizes.checkpoint_bytes,
            block_bytes: sizes.block_bytes,
            replay_tokens: if replays { self.replay_tokens } else { u32::MAX },
        }
    }

    /// The groups that are stored at a checkpoint.
    pub(crate) fn checkpoint_groups(&self) -> impl Iterator<Item = (Group, &GroupShape)> {
        [(Group::Window, self.window.as_ref()), (Group::Draft, self.draft.as_ref())]
            .into_iter()
            .filter_map(|(group, shape)| shape.map(|shape| (group, shape)))
    }
}
