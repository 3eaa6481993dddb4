//! What can be wrong with a model, and where.

use alloc::{string::String, vec::Vec};
use core::fmt;

use thiserror::Error;

use super::{MAX_BLOCK_TOKENS, MAX_GROUPS, MAX_NAME_BYTES, MAX_RECORD_BYTES, MAX_TYPES, Role};

/// Everything that is wrong with a model; each problem says where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("model \"{model}\" cannot be used:{}", Lines(.problems))]
pub struct SpecError {
    /// The model's name, as given.
    pub model: String,
    /// At least one problem, in the order model, groups, types.
    pub problems: Vec<Problem>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// With the model as a whole.
    #[error("model: {0}")]
    Model(ModelFault),
    /// With a group.
    #[error("group \"{name}\" (groups[{index}]): {fault}")]
    Group {
        /// Its place in the list of groups.
        index: usize,
        /// Its name, as given.
        name: String,
        /// What is wrong.
        fault: GroupFault,
    },
    /// With a type.
    #[error("type \"{name}\" (types[{index}]): {fault}")]
    Type {
        /// Its place in the list of types.
        index: usize,
        /// Its name, as given.
        name: String,
        /// What is wrong.
        fault: TypeFault,
    },
}

/// What can be wrong with the model as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ModelFault {
    /// Its name.
    #[error(transparent)]
    Name(#[from] NameFault),
    /// More types than a model may have.
    #[error("has {count} types; at most {MAX_TYPES} are possible")]
    TooManyTypes {
        /// How many it has.
        count: usize,
    },
    /// More groups than a model may have.
    #[error("has {count} groups; at most {MAX_GROUPS} are possible")]
    TooManyGroups {
        /// How many it has.
        count: usize,
    },
    /// Nothing that block records could hold.
    #[error(
        "has no compressed type; prefixes are found by their blocks, so it needs one (ratio 1 is plain full attention)"
    )]
    NoBlocks,
    /// The ratios have no common multiple that a block could span.
    #[error("the ratios have no common multiple up to {MAX_BLOCK_TOKENS}, which is the longest block in tokens")]
    NoCommonBlock,
    /// The sum of all windows does not fit a position.
    #[error("the windows of all layers add up to {tokens} tokens, which is more than a prompt can have")]
    ReplayTooLong {
        /// The sum.
        tokens: u64,
    },
}

/// What can be wrong with a group.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GroupFault {
    /// Its name.
    #[error(transparent)]
    Name(#[from] NameFault),
    /// An earlier group has the same name.
    #[error("has the same name as groups[{first}]")]
    Duplicate {
        /// Where the name was used first.
        first: usize,
    },
    /// No type belongs to it.
    #[error("no type names it as its group; leave it out or put a type into it")]
    Empty,
    /// Its types cannot share a record.
    #[error(
        "mixes {} records (type \"{type_a}\") with {} records (type \"{type_b}\"); give each its own group",
        .role_a.name(), .role_b.name()
    )]
    Mixed {
        /// Role of its first type.
        role_a: Role,
        /// Its first type.
        type_a: String,
        /// Another role.
        role_b: Role,
        /// The first type that has it.
        type_b: String,
    },
    /// Its records would be larger than [`MAX_RECORD_BYTES`].
    #[error("a record has {bytes} bytes even with the shortest block; at most {MAX_RECORD_BYTES} are possible")]
    RecordTooLarge {
        /// Size of a record with the shortest block.
        bytes: u64,
    },
}

/// What can be wrong with a type.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TypeFault {
    /// Its name.
    #[error(transparent)]
    Name(#[from] NameFault),
    /// An earlier type has the same name.
    #[error("has the same name as types[{first}]")]
    Duplicate {
        /// Where the name was used first.
        first: usize,
    },
    /// The name of its row format.
    #[error("row-format {0}")]
    Format(NameFault),
    /// A number that is zero or absurd.
    #[error("{field} is {value}; it must be 1 to {max}: {meaning}")]
    OutOfRange {
        /// As written in a file.
        field: &'static str,
        /// What was given.
        value: u32,
        /// Largest allowed.
        max: u32,
        /// What the number says.
        meaning: &'static str,
    },
    /// It names no group.
    #[error("is in no group; there is {known}")]
    NoGroup {
        /// The groups of the model.
        known: String,
    },
    /// It names a group that the model does not list.
    #[error("names the group \"{group}\", which the model does not list; there is {known}")]
    UnknownGroup {
        /// What it names.
        group: String,
        /// The groups of the model.
        known: String,
    },
    /// A state or draft type without any window.
    #[error(
        "needs a windowed type in the model: without a window there are no checkpoints to keep it with, nor a replay"
    )]
    NoWindow,
}

/// What can be wrong with a name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameFault {
    /// There is none.
    #[error("has no name")]
    Empty,
    /// Longer than [`MAX_NAME_BYTES`].
    #[error("has a name of {bytes} bytes; at most {MAX_NAME_BYTES} are possible")]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// A control character.
    #[error("has {0:?} in its name, which would garble a report")]
    Control(char),
    /// A character that would not survive as a metric's label or a command's argument.
    #[error("has {0:?} in its name; such names are made of letters a to z, digits and `-_.+`")]
    Character(char),
}

struct Lines<'a>(&'a [Problem]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}
