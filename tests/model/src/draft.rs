use crate::attention::Place;
use crate::block::{Block, Scratch};
use crate::head::Head;
use crate::matrix::Matrix;
use crate::norm::Norm;
use crate::rotary::Rotation;
use crate::shape::{Attention, Shape};
use crate::state::{DraftState, LayerCaches};
use crate::weights::Weights;

/// The draft (MTP) layer: from the main model's streams of one token and the embedding of the next one it guesses the
/// one after that. It is a window-only layer between projections of its own and a head of its own; embedding and
/// unembedding are the main model's.
pub(crate) struct DraftLayer {
    hidden: usize,
    embedding_norm: Norm,
    embedding_projection: Matrix,
    hidden_norm: Norm,
    hidden_projection: Matrix,
    block: Block,
    pub(crate) head: Head,
}

impl DraftLayer {
    pub(crate) fn new(shape: &Shape, weights: &Weights) -> Self {
        let norm = |name: &str| Norm::new(weights.vector(name, shape.hidden), shape.rms_norm_eps);
        Self {
            hidden: shape.hidden,
            embedding_norm: norm("enorm.weight"),
            embedding_projection: weights.matrix("e_proj.weight", shape.hidden, shape.hidden),
            hidden_norm: norm("hnorm.weight"),
            hidden_projection: weights.matrix("h_proj.weight", shape.hidden, shape.hidden),
            block: Block::new(shape, Attention::Window, false, weights),
            head: Head::new(shape, weights),
        }
    }

    /// The draft's streams of the token at `position`, whose window row is appended; none if the streams of the token
    /// before are not known. Then rows before the gap are dropped: rows are consecutive.
    pub(crate) fn forward(
        &self,
        token: usize,
        embedding: &[f64],
        position: usize,
        rotation: &Rotation,
        state: &mut DraftState,
        scratch: &mut Scratch,
    ) -> Option<Vec<f64>> {
        let Some(previous) = &state.hidden else {
            state.window.clear(position + 1);
            return None;
        };
        let mut streams = self.combine(embedding, previous);
        let place = Place { position, write_floor: 0, rotation };
        let mut caches = LayerCaches { window: &mut state.window, compressor: None, indexer: None };
        self.block.forward(token, &place, &mut caches, scratch, &mut streams);
        Some(streams)
    }

    fn combine(&self, embedding: &[f64], previous: &[f64]) -> Vec<f64> {
        let mut normed = embedding.to_vec();
        self.embedding_norm.apply(&mut normed);
        let mut embedded = vec![0.0; self.hidden];
        self.embedding_projection.project(&normed, &mut embedded);
        let mut streams = vec![0.0; previous.len()];
        for (previous, stream) in previous.chunks_exact(self.hidden).zip(streams.chunks_exact_mut(self.hidden)) {
            normed.copy_from_slice(previous);
            self.hidden_norm.apply(&mut normed);
            self.hidden_projection.project(&normed, stream);
            for (value, embedded) in stream.iter_mut().zip(&embedded) {
                *value += embedded;
            }
        }
        streams
    }
}
