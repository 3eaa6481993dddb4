use crate::rows::Rows;
use crate::shape::{Attention, Shape};

/// The caches of one sequence.
///
/// After `position` tokens of a cold prefill a window holds the rows of the last `min(window, position)` of them,
/// entries all complete entries, buffers the tokens behind the last complete entry, overlaps the last `csa_ratio`
/// tokens before those.
///
/// A state need not come from a prefill. It may start at any position without rows, and with entries beyond it that
/// were computed earlier: below `write_floor` stored entries stay, and a token sees the ones it would have seen. What
/// is missing is not seen; it changes the numbers and is no error, so that a wrongly restored state shows in them. Only
/// debug builds refuse one thing: to leave out an entry above a write floor, because its first tokens were never seen.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// Tokens seen; the position of the next one.
    pub position: usize,
    /// Entries whose tokens start below this position are not written. With 0 every entry that can be computed is, over
    /// a stored one too.
    pub write_floor: usize,
    /// One per layer.
    pub layers: Vec<LayerState>,
    /// The draft layer's, if the model has one.
    pub draft: Option<DraftState>,
}

/// The caches of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerState {
    /// Key-value rows by position, `head_dim` values each: at most the last `window` ones.
    pub window: Rows,
    /// In CSA and HCA layers.
    pub compressor: Option<CompressorState>,
    /// In CSA layers.
    pub indexer: Option<CompressorState>,
}

/// The caches of one compressor.
#[derive(Clone, Debug, PartialEq)]
pub struct CompressorState {
    /// Compressed rows by entry number, `head_dim` or `index_head_dim` values each.
    pub entries: Rows,
    /// Tokens of the incomplete entry by position. A row is `kv ‖ gate`, without the position bias; in CSA layers each
    /// of the two has both series: `kv a ‖ kv b ‖ gate a ‖ gate b`.
    pub buffer: Rows,
    /// CSA and indexer: the last `csa_ratio` tokens before the incomplete entry by position. A row is `kv a ‖ gate a`,
    /// the gate with its position bias. Always empty in HCA layers.
    pub overlap: Rows,
}

/// The caches of the draft layer.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftState {
    /// Key-value rows by position, at most the last `window` ones. Token 0 has none.
    pub window: Rows,
    /// The main model's streams of the last token behind all layers, `hc_mult * hidden` values.
    pub hidden: Option<Vec<f64>>,
}

impl State {
    /// The state of an empty sequence.
    pub fn new(shape: &Shape) -> Self {
        Self::at(shape, 0)
    }

    /// A state without rows whose next token is at `position`; the write floor is 0.
    pub fn at(shape: &Shape, position: usize) -> Self {
        Self {
            position,
            write_floor: 0,
            layers: shape.layers.iter().map(|&attention| LayerState::at(shape, attention, position)).collect(),
            draft: shape.draft.then(|| DraftState { window: Rows::new(shape.head_dim, position), hidden: None }),
        }
    }
}

impl LayerState {
    fn at(shape: &Shape, attention: Attention, position: usize) -> Self {
        let series = if attention == Attention::Csa { 2 } else { 1 };
        Self {
            window: Rows::new(shape.head_dim, position),
            compressor: (attention != Attention::Window).then(|| CompressorState::at(shape.head_dim, series, position)),
            indexer: (attention == Attention::Csa).then(|| CompressorState::at(shape.index_head_dim, series, position)),
        }
    }

    pub(crate) fn caches(&mut self) -> LayerCaches<'_> {
        LayerCaches { window: &mut self.window, compressor: self.compressor.as_mut(), indexer: self.indexer.as_mut() }
    }
}

impl CompressorState {
    fn at(width: usize, series: usize, position: usize) -> Self {
        Self {
            entries: Rows::new(width, 0),
            buffer: Rows::new(2 * series * width, position),
            overlap: Rows::new(2 * width, 0),
        }
    }
}

/// What one block reads and writes: a layer's caches, or the draft layer's window.
pub(crate) struct LayerCaches<'a> {
    pub(crate) window: &'a mut Rows,
    pub(crate) compressor: Option<&'a mut CompressorState>,
    pub(crate) indexer: Option<&'a mut CompressorState>,
}
