//! A model as cache types in groups: what one token leaves behind in the KV cache, and what is stored and evicted together.
//!
//! A [`CacheType`] says how many bytes one row has, how many tokens it stands for and which layers have it. A group is the unit
//! of storage: all its types in one record. What a record is follows from the kinds in the group ([`Role`]): a *block* record
//! holds the compressed rows of one block of tokens, a *checkpoint* record holds the window and state at one position, a *draft*
//! record the window of the draft head at that position. The shipped models use the groups [`HISTORY`], [`WINDOW`] and, with a
//! draft head, [`DRAFT`].
//!
//! Models come from [`preset`] or from a file that a host reads:
//!
//! ```
//! use reprise_core::model::ModelSpec;
//!
//! let file = r#"
//! name = "small-hybrid"
//! groups = ["history", "window"]
//!
//! [[types]]
//! name = "full"
//! group = "history"
//! kind = "compressed"        # one row per `ratio` tokens; ratio 1 is plain full attention
//! ratio = 1
//! layers = "1-23/2"          # 1, 3, 5, … 23; lists such as "0-1,3-59/2" are fine, too
//! row-bytes = 2048
//! row-format = "bf16"        # rows of another format are never reused, even if they are as long
//!
//! [[types]]
//! name = "swa"
//! group = "window"
//! kind = "windowed"          # one row per token of the last `window-tokens`
//! window-tokens = 128
//! layers = "0-22/2"
//! row-bytes = 2048
//! row-format = "bf16"
//! "#;
//! let model: ModelSpec = toml::from_str(file)?;
//! assert_eq!(model.zero_replay_tokens(), 12 * 128);
//! # Ok::<(), toml::de::Error>(())
//! ```
//!
//! The other kinds are `state` (with `rows`: kept at a checkpoint besides the window) and `draft` (with `window-tokens`: a
//! windowed layer of the draft head).

mod cache_type;
mod check;
mod fingerprint;
mod layers;
mod preset;
mod problem;
mod spec;
mod v4;

pub use cache_type::{CacheType, Kind, Role};
pub(crate) use fingerprint::fingerprint;
pub use layers::{Layers, LayersError};
pub use preset::{Preset, PresetError, PresetOption, preset, presets};
pub use problem::{GroupFault, ModelFault, NameFault, Problem, SpecError, TypeFault};
pub use spec::{Group, ModelSpec};

/// The usual group of block records.
pub const HISTORY: &str = "history";
/// The usual group of checkpoint records.
pub const WINDOW: &str = "window";
/// The usual group of draft records.
pub const DRAFT: &str = "draft";

/// The largest record of any group, in bytes: 4 GiB. Real ones are some hundred KiB to some MiB.
pub const MAX_RECORD_BYTES: u64 = 1 << 32;
/// The most tokens a block may span, and with that the largest compression ratio.
pub const MAX_BLOCK_TOKENS: u32 = 1 << 16;
/// The longest window, and the most rows of a state.
pub const MAX_WINDOW_TOKENS: u32 = 1 << 20;
/// The longest row, in bytes.
pub const MAX_ROW_BYTES: u32 = 1 << 24;
/// The highest layer number.
pub const MAX_LAYER: u16 = 4095;
/// The most types of a model.
pub const MAX_TYPES: usize = 64;
/// The most groups of a model. Events carry a group in one byte.
pub const MAX_GROUPS: usize = 16;
/// The longest name, in bytes.
pub const MAX_NAME_BYTES: usize = 64;
