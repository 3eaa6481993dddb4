//! What a model's cache takes: bytes per token, records, and what keeping windows costs. All of it follows from the model and its layout.

mod report;

use reprise_core::{
    layout::{Layout, LayoutError},
    model::{CacheType, Kind, ModelSpec, Role},
};

/// Tokens of the long prompt whose records are counted: 2^20.
pub const PROMPT_TOKENS: u32 = 1 << 20;

/// A model with blocks of one size.
#[derive(Clone, Debug)]
pub struct Footprint {
    /// The model.
    pub model: ModelSpec,
    /// Where its types lie in the records.
    pub layout: Layout,
}

/// Windows against compressed rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Names of the compressed types.
    pub compressed: Vec<String>,
    /// Their bytes per token.
    pub compressed_bytes_per_token: f64,
    /// The window's rows, kept for every token, as a multiple of these.
    pub window_ratio: f64,
    /// Bytes that one checkpoint takes here.
    pub checkpoint_bytes: u64,
    /// Tokens between checkpoints, of `checkpoint_bytes` each, that take as many bytes per token as the compressed rows.
    pub break_even_tokens: f64,
}

/// Records of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Records {
    /// Complete blocks.
    pub blocks: u32,
    /// Payload of their records.
    pub record_bytes: u64,
    /// What they occupy in a store.
    pub slot_bytes: u64,
}

impl Footprint {
    /// The footprint of `model` with blocks of `block_tokens`.
    ///
    /// # Errors
    /// When the block does not fit the model.
    pub fn new(model: ModelSpec, block_tokens: u32) -> Result<Self, LayoutError> {
        let layout = Layout::new(&model, block_tokens)?;
        Ok(Self { model, layout })
    }

    /// Layers that hold anything, those of a draft head included.
    pub fn layers(&self) -> usize {
        let mut layers: Vec<u16> = self.model.types().iter().flat_map(|cache_type| cache_type.layers.iter()).collect();
        layers.sort_unstable();
        layers.dedup();
        layers.len()
    }

    /// Bytes per token of the compressed types.
    pub fn compressed_bytes_per_token(&self) -> f64 {
        sum(self.types(Role::Block))
    }

    /// Bytes per token of the windows if they were kept for every token; 0 for a model without windows.
    pub fn window_bytes_per_token(&self) -> f64 {
        sum(self.windows())
    }

    /// The fewest tokens whose replay makes every window exact: L·(n_win - 1) + 1, where L layers have a window of n_win tokens (each
    /// row of one layer needs the n_win - 1 before it of the layer below). `None` for a model without windows.
    pub fn exact_replay_tokens(&self) -> Option<u32> {
        let windowed = self.model.types().iter().filter(|cache_type| cache_type.kind.window_tokens() > 0);
        let layers: usize = windowed.map(|cache_type| cache_type.layers.count()).sum();
        self.model.has_window().then(|| self.model.zero_replay_tokens() - layers as u32 + 1)
    }

    /// Windows against compressed rows: the rows of the window against those of the same format, which leaves aside what is kept beside keys
    /// and values; and whole checkpoints, drafts included, against all that is compressed. Empty for a model without windows.
    pub fn comparisons(&self) -> Vec<Comparison> {
        if !self.model.has_window() {
            return Vec::new();
        }
        let block_tokens = self.layout.block_tokens();
        let is_alike = |compressed: &&CacheType| {
            let format = |cache_type: &CacheType| (cache_type.row_bytes, cache_type.row_format.clone());
            self.windows().any(|window| format(window) == format(compressed))
        };
        let window_bytes = self.windows().map(|window| window.bytes(block_tokens)).sum();
        let alike = self.compare(self.types(Role::Block).filter(is_alike).collect(), window_bytes);
        let whole = self.compare(self.types(Role::Block).collect(), self.checkpoint_bytes());
        let mut comparisons = Vec::from_iter(alike);
        comparisons.extend(whole.filter(|whole| comparisons.first() != Some(whole)));
        comparisons
    }

    /// Payload of all records of a checkpoint, drafts included; 0 for a model without windows.
    pub fn checkpoint_bytes(&self) -> u64 {
        let checkpoints = self.layout.groups().iter().filter(|group| group.role() != Role::Block);
        checkpoints.map(|group| group.record_bytes()).sum()
    }

    /// The block records of a prompt of `tokens` tokens.
    pub fn records(&self, tokens: u32) -> Records {
        let blocks = tokens / self.layout.block_tokens();
        let groups = || self.layout.groups().iter().filter(|group| group.role() == Role::Block);
        Records {
            blocks,
            record_bytes: u64::from(blocks) * groups().map(|group| group.record_bytes()).sum::<u64>(),
            slot_bytes: u64::from(blocks) * groups().map(|group| group.slot_bytes()).sum::<u64>(),
        }
    }

    fn compare(&self, compressed: Vec<&CacheType>, checkpoint_bytes: u64) -> Option<Comparison> {
        let compressed_bytes_per_token = sum(compressed.iter().copied());
        (!compressed.is_empty()).then(|| Comparison {
            compressed: compressed.iter().map(|cache_type| cache_type.name.clone()).collect(),
            compressed_bytes_per_token,
            window_ratio: self.window_bytes_per_token() / compressed_bytes_per_token,
            checkpoint_bytes,
            break_even_tokens: checkpoint_bytes as f64 / compressed_bytes_per_token,
        })
    }

    fn types(&self, role: Role) -> impl Iterator<Item = &CacheType> {
        self.model.types().iter().filter(move |cache_type| cache_type.kind.role() == role)
    }

    fn windows(&self) -> impl Iterator<Item = &CacheType> {
        self.types(Role::Checkpoint).filter(|cache_type| cache_type.kind.window_tokens() > 0)
    }
}

/// Bytes that one token adds to all layers of a type: of a compressed one its share of a row, of a windowed one a row, as if it were kept
/// for every token. `None` for a state, which tokens do not add to.
pub fn bytes_per_token(cache_type: &CacheType) -> Option<f64> {
    let row_bytes = (cache_type.layers.count() as u64 * u64::from(cache_type.row_bytes)) as f64;
    match cache_type.kind {
        Kind::Compressed { ratio } => Some(row_bytes / f64::from(ratio)),
        Kind::Windowed { .. } | Kind::Draft { .. } => Some(row_bytes),
        Kind::State { .. } | Kind::DraftState { .. } => None,
    }
}

fn sum<'a>(types: impl Iterator<Item = &'a CacheType>) -> f64 {
    types.filter_map(bytes_per_token).sum()
}
