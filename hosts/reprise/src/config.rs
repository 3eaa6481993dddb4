//! How a cache is set up.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use reprise_core::{
    model::{ModelSpec, PresetError, preset},
    plan::{Planner, Prices},
};
use reprise_disk::{EngineChoice, IoOptions};
use reprise_wasm::Profile;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{choice::PolicyChoice, pin::Pins, policies::Terms};

/// When written records must survive a loss of power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Whenever the system writes them back; synced when the cache closes. A crash may lose records, never their truth.
    #[default]
    Relaxed,
    /// Before they become readable.
    Strict,
}

/// What carries records between memory and disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IoChoice {
    /// io_uring past the page cache where kernel and file system grant both, else system calls.
    #[default]
    Automatic,
    /// io_uring where the kernel grants it.
    Ring,
    /// System calls.
    Blocking,
}

/// How records reach the disk. What was granted is in [`crate::Recovery::io`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Io {
    /// What carries them.
    pub engine: IoChoice,
    /// Reads, and writes, that are with the device at once.
    pub depth: usize,
    /// Memory for records being read. One restore has at most half of it.
    pub read_buffer_bytes: u64,
    /// Milliseconds after which a read counts as a miss and a write as failed, whatever the device does; a restore has a millisecond
    /// more for each [`SLOWEST_BYTES_PER_MS`] it reads.
    pub patience_ms: u64,
}

/// A device that is slower than this is stuck: 64 MB a second.
pub const SLOWEST_BYTES_PER_MS: u64 = 64_000;

impl Default for Io {
    fn default() -> Self {
        let IoOptions { depth, buffer_bytes, patience, .. } = IoOptions::default();
        Self {
            engine: IoChoice::default(),
            depth,
            read_buffer_bytes: buffer_bytes,
            patience_ms: patience.as_millis() as u64,
        }
    }
}

impl Io {
    /// When a read of `bytes` that starts now is over, one way or the other.
    pub(crate) fn deadline(&self, bytes: u64) -> Instant {
        Instant::now() + Duration::from_millis(self.patience_ms.saturating_add(bytes / SLOWEST_BYTES_PER_MS))
    }

    pub(crate) fn options(&self) -> IoOptions {
        IoOptions {
            engine: match self.engine {
                IoChoice::Automatic => EngineChoice::Automatic,
                IoChoice::Ring => EngineChoice::Ring,
                IoChoice::Blocking => EngineChoice::Blocking,
            },
            depth: self.depth,
            buffer_bytes: self.read_buffer_bytes,
            patience: Duration::from_millis(self.patience_ms),
            ..IoOptions::default()
        }
    }
}

/// Where compiled policies are kept, so that a start does not compile them again: `user`, `off`, or a directory. What is kept there is
/// trusted only if this host wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum CompileCacheChoice {
    /// `reprise/compiled` in the user's cache directory.
    #[default]
    User,
    /// Nowhere.
    Off,
    /// A directory, made if it is not there.
    Directory(PathBuf),
}

impl From<String> for CompileCacheChoice {
    fn from(text: String) -> Self {
        match text.as_str() {
            "user" => Self::User,
            "off" => Self::Off,
            _ => Self::Directory(text.into()),
        }
    }
}

impl From<CompileCacheChoice> for String {
    fn from(choice: CompileCacheChoice) -> Self {
        match choice {
            CompileCacheChoice::User => "user".to_owned(),
            CompileCacheChoice::Off => "off".to_owned(),
            CompileCacheChoice::Directory(path) => path.display().to_string(),
        }
    }
}

mod profile_name {
    use reprise_wasm::Profile;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(profile: &Profile, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(profile.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Profile, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Bytes for blocks and windows together. How they are divided is learned from books that try other shares, see
/// [`crate::DivisionReport`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Budget {
    /// Bytes of all slots.
    pub bytes: u64,
}

/// Everything a cache needs to know. [`Config::new`] gives defaults; [`Config::from_toml`] reads a file with these keys in
/// kebab-case, of which only `model` is required:
///
/// ```toml
/// model = "v4-flash:draft=on"     # a preset, or a model file's path, or the model itself as a table
/// history-bytes = 68719476736
/// window-bytes = 17179869184
/// store = "/var/cache/reprise"
/// checkpoints = "events"
/// eviction = "lru"
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// The model whose cache is kept.
    #[serde(deserialize_with = "model_from_name_or_table")]
    pub model: ModelSpec,
    /// Tokens per block, a multiple of the model's compression ratios.
    #[serde(default = "defaults::block_tokens")]
    pub block_tokens: u32,
    /// Quota of the block records.
    #[serde(default = "defaults::history_bytes")]
    pub history_bytes: u64,
    /// Quota of the checkpoints. Unused for a model without windows.
    #[serde(default = "defaults::window_bytes")]
    pub window_bytes: u64,
    /// One budget for both groups in place of the two quotas, divided while the cache serves: for caches without a store, whose quotas are
    /// fixed while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Directory of the disk store; `None` keeps books only: plans are made, nothing is stored.
    #[serde(default)]
    pub store: Option<PathBuf>,
    /// When records must survive a loss of power.
    #[serde(default)]
    pub durability: Durability,
    /// Where windows are kept.
    #[serde(default = "defaults::checkpoints")]
    pub checkpoints: PolicyChoice,
    /// What is admitted and evicted.
    #[serde(default = "defaults::eviction")]
    pub eviction: PolicyChoice,
    /// Which components the names of policies stand for.
    #[serde(default)]
    pub pins: Pins,
    /// The widest set of WebAssembly features that a policy may use: `integer`, `compiled`, or `interpreted` for guests that bring an
    /// interpreter (Python, JavaScript), whose calls may take long. Each policy runs under the strictest that it fits.
    #[serde(default, with = "profile_name")]
    pub policy_profile: Profile,
    /// Where compiled policies are kept between runs.
    #[serde(default)]
    pub compile_cache: CompileCacheChoice,
    /// Run shipped policies natively instead of as components.
    #[serde(default)]
    pub native_policies: bool,
    /// How one of several exact plans is taken.
    #[serde(default)]
    pub planner: Planner,
    /// What loading and computing cost here; [`Planner::MinTime`] goes by it, and [`crate::Plan::explain`] shows it.
    #[serde(default)]
    pub prices: Prices,
    /// Whether a plan may replay tokens to rebuild windows.
    #[serde(default = "defaults::replay")]
    pub replay: bool,
    /// Failures after which a policy is retired and the native one takes over.
    #[serde(default = "defaults::strikes")]
    pub strikes: u32,
    /// Bound a policy's calls by executed instructions instead of time, so that a run can be repeated to the last integer.
    #[serde(default)]
    pub deterministic: bool,
    /// How records reach the disk.
    #[serde(default)]
    pub io: Io,
    /// Memory for records on their way to the store.
    #[serde(default = "defaults::write_buffer_bytes")]
    pub write_buffer_bytes: u64,
    /// How long a plan's lease lasts, in ticks of the clock that the caller gives; past it, records may go.
    #[serde(default = "defaults::lease_ticks")]
    pub lease_ticks: u64,
    /// Share of a group that leases may hold, in parts per million.
    #[serde(default = "defaults::leased_ppm")]
    pub leased_ppm: u32,
}

mod defaults {
    use super::PolicyChoice;

    pub const fn block_tokens() -> u32 {
        128
    }
    pub const fn history_bytes() -> u64 {
        64 << 30
    }
    pub const fn window_bytes() -> u64 {
        16 << 30
    }
    pub fn checkpoints() -> PolicyChoice {
        PolicyChoice::shipped("events")
    }
    pub fn eviction() -> PolicyChoice {
        PolicyChoice::shipped("lru")
    }
    pub const fn replay() -> bool {
        true
    }
    pub const fn strikes() -> u32 {
        3
    }
    pub const fn write_buffer_bytes() -> u64 {
        64 << 20
    }
    /// One minute, if the clock counts nanoseconds.
    pub const fn lease_ticks() -> u64 {
        60_000_000_000
    }
    pub const fn leased_ppm() -> u32 {
        500_000
    }
}

/// Why a configuration is refused.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// No such preset, and no such file.
    #[error(transparent)]
    Preset(#[from] PresetError),
    /// The file cannot be read.
    #[error("reading {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file makes no sense.
    #[error("{}: {source}", path.display())]
    Toml {
        /// Which.
        path: PathBuf,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
}

impl Config {
    /// Defaults for a model, which is a preset (`v4-pro`, `v4-flash:draft=on`, …) or the path of a TOML file that holds one.
    ///
    /// # Errors
    /// When there is no such model.
    pub fn new(model: &str) -> Result<Self, ConfigError> {
        Ok(Self::for_model(model_by_name(model)?))
    }

    /// Defaults for a model.
    pub fn for_model(model: ModelSpec) -> Self {
        Self {
            model,
            block_tokens: defaults::block_tokens(),
            history_bytes: defaults::history_bytes(),
            window_bytes: defaults::window_bytes(),
            budget: None,
            store: None,
            durability: Durability::default(),
            checkpoints: defaults::checkpoints(),
            eviction: defaults::eviction(),
            pins: Pins::default(),
            policy_profile: Profile::default(),
            compile_cache: CompileCacheChoice::default(),
            native_policies: false,
            planner: Planner::default(),
            prices: Prices::default(),
            replay: defaults::replay(),
            strikes: defaults::strikes(),
            deterministic: false,
            io: Io::default(),
            write_buffer_bytes: defaults::write_buffer_bytes(),
            lease_ticks: defaults::lease_ticks(),
            leased_ppm: defaults::leased_ppm(),
        }
    }

    /// On what terms policies are loaded that rank up to so many records.
    pub(crate) fn terms(&self, records: u64) -> Terms {
        Terms {
            records,
            native: self.native_policies,
            deterministic: self.deterministic,
            pins: self.pins.clone(),
            profile: self.policy_profile,
            compile_cache: self.compile_cache.clone(),
        }
    }

    /// Reads a configuration file.
    ///
    /// # Errors
    /// When it cannot be read, or has a key or value that makes no sense.
    pub fn from_toml(path: &Path) -> Result<Self, ConfigError> {
        read_toml(path)
    }
}

fn model_by_name(text: &str) -> Result<ModelSpec, ConfigError> {
    if text.ends_with(".toml") { read_toml(Path::new(text)) } else { Ok(preset(text)?) }
}

fn read_toml<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, ConfigError> {
    let text = fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    toml::from_str(&text).map_err(|source| ConfigError::Toml { path: path.to_owned(), source: Box::new(source) })
}

fn model_from_name_or_table<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<ModelSpec, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum NameOrTable {
        Name(String),
        Table(ModelSpec),
    }
    match NameOrTable::deserialize(deserializer)? {
        NameOrTable::Name(name) => model_by_name(&name).map_err(serde::de::Error::custom),
        NameOrTable::Table(model) => Ok(model),
    }
}
