//! One type of cache row: its kind, its layers, its bytes; and its table in a model file.

use alloc::{format, string::String};

use serde::{Deserialize, Serialize};

use super::Layers;

/// What the rows of a type stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One row per `ratio` tokens, for every token of the prompt. Ratio 1 is plain full attention.
    Compressed {
        /// Tokens one row covers.
        ratio: u32,
    },
    /// One row per token, of which only the last `window_tokens` are ever read again.
    Windowed {
        /// Length of the window, the token itself included (`n_win`).
        window_tokens: u32,
    },
    /// Rows that belong to a position, such as the uncompressed tokens that the next compressed row mixes in. Replaying the
    /// model's windows must rebuild them: the state of a recurrent layer, which depends on every token, is none.
    State {
        /// Rows kept at a checkpoint.
        rows: u32,
    },
    /// [`Kind::Windowed`] in a layer of the draft (MTP) head.
    Draft {
        /// Length of the window, the token itself included.
        window_tokens: u32,
    },
    /// [`Kind::State`] of the draft head, such as the main model's last hidden state, which the head's next row is made of.
    DraftState {
        /// Rows kept beside a checkpoint.
        rows: u32,
    },
}

/// What the records of a group are: all types of a group have the same role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A record holds the rows of one block.
    Block,
    /// A record holds windows and states at one position.
    Checkpoint,
    /// A record holds windows and states of the draft head, stored beside the checkpoint at the same position.
    Draft,
}

/// One type of cache row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "TypeTable", into = "TypeTable")]
pub struct CacheType {
    /// For instance `csa`; unique in the model.
    pub name: String,
    /// The group that stores it.
    pub group: String,
    /// What its rows stand for.
    pub kind: Kind,
    /// The layers that have it.
    pub layers: Layers,
    /// Bytes of one row in one layer, without an engine's padding.
    pub row_bytes: u32,
    /// What the bytes mean, for instance `bf16`: rows of equal length and another format must not be taken for these.
    pub row_format: String,
}

impl Kind {
    /// What a record is that holds this kind.
    pub const fn role(self) -> Role {
        match self {
            Self::Compressed { .. } => Role::Block,
            Self::Windowed { .. } | Self::State { .. } => Role::Checkpoint,
            Self::Draft { .. } | Self::DraftState { .. } => Role::Draft,
        }
    }

    /// Tokens of its window; 0 for a kind that has none.
    pub const fn window_tokens(self) -> u32 {
        match self {
            Self::Compressed { .. } | Self::State { .. } | Self::DraftState { .. } => 0,
            Self::Windowed { window_tokens } | Self::Draft { window_tokens } => window_tokens,
        }
    }

    /// Rows of one layer in one record, for blocks of `block_tokens`. 0 when a ratio of 0 covers no token.
    pub const fn rows(self, block_tokens: u32) -> u32 {
        match self {
            Self::Compressed { ratio } => match block_tokens.checked_div(ratio) {
                Some(rows) => rows,
                None => 0,
            },
            Self::Windowed { window_tokens } | Self::Draft { window_tokens } => window_tokens,
            Self::State { rows } | Self::DraftState { rows } => rows,
        }
    }
}

impl Role {
    /// For messages: `block`, `checkpoint` or `draft`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Checkpoint => "checkpoint",
            Self::Draft => "draft",
        }
    }
}

impl CacheType {
    /// Bytes of all layers in one record, for blocks of `block_tokens`; saturates instead of overflowing.
    pub fn bytes(&self, block_tokens: u32) -> u64 {
        let row_bytes = u64::from(self.kind.rows(block_tokens)).saturating_mul(u64::from(self.row_bytes));
        row_bytes.saturating_mul(self.layers.count() as u64)
    }
}

/// A type as it is written in a file. Flat, because a table within each `[[types]]` would not read well; this is also what finds
/// keys that the kind does not have.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct TypeTable {
    name: String,
    group: String,
    kind: KindName,
    ratio: Option<u32>,
    window_tokens: Option<u32>,
    rows: Option<u32>,
    layers: Layers,
    row_bytes: u32,
    row_format: String,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum KindName {
    Compressed,
    Windowed,
    State,
    Draft,
    DraftState,
}

impl TryFrom<TypeTable> for CacheType {
    type Error = String;

    fn try_from(table: TypeTable) -> Result<Self, String> {
        let TypeTable { name, group, kind, ratio, window_tokens, rows, layers, row_bytes, row_format } = table;
        let (kind_name, key, value) = match kind {
            KindName::Compressed => ("compressed", "ratio", ratio),
            KindName::Windowed => ("windowed", "window-tokens", window_tokens),
            KindName::State => ("state", "rows", rows),
            KindName::Draft => ("draft", "window-tokens", window_tokens),
            KindName::DraftState => ("draft-state", "rows", rows),
        };
        for (other, given) in [("ratio", ratio), ("window-tokens", window_tokens), ("rows", rows)] {
            if other != key && given.is_some() {
                return Err(format!("type \"{name}\": kind {kind_name} takes `{key}`, not `{other}`"));
            }
        }
        let value = value.ok_or_else(|| format!("type \"{name}\": kind {kind_name} needs `{key}`"))?;
        let kind = match kind {
            KindName::Compressed => Kind::Compressed { ratio: value },
            KindName::Windowed => Kind::Windowed { window_tokens: value },
            KindName::State => Kind::State { rows: value },
            KindName::Draft => Kind::Draft { window_tokens: value },
            KindName::DraftState => Kind::DraftState { rows: value },
        };
        Ok(Self { name, group, kind, layers, row_bytes, row_format })
    }
}

impl From<CacheType> for TypeTable {
    fn from(cache_type: CacheType) -> Self {
        let CacheType { name, group, kind, layers, row_bytes, row_format } = cache_type;
        let (kind, ratio, window_tokens, rows) = match kind {
            Kind::Compressed { ratio } => (KindName::Compressed, Some(ratio), None, None),
            Kind::Windowed { window_tokens } => (KindName::Windowed, None, Some(window_tokens), None),
            Kind::State { rows } => (KindName::State, None, None, Some(rows)),
            Kind::Draft { window_tokens } => (KindName::Draft, None, Some(window_tokens), None),
            Kind::DraftState { rows } => (KindName::DraftState, None, None, Some(rows)),
        };
        Self { name, group, kind, ratio, window_tokens, rows, layers, row_bytes, row_format }
    }
}
