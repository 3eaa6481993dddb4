use crate::compressor::{self, Compressor};
use crate::indexer::{self, Indexer, Query};
use crate::matrix::{Matrix, add_scaled, dot};
use crate::norm::{Norm, normalise};
use crate::rotary::Rotation;
use crate::rows::Rows;
use crate::shape::{Attention, Shape};
use crate::state::LayerCaches;
use crate::weights::Weights;

/// Attention of one layer: queries over a shared key-value head, to the sliding window and to compressed entries, with
/// a sink per head.
pub(crate) struct AttentionLayer {
    head_dim: usize,
    window: usize,
    groups: usize,
    epsilon: f64,
    query_a: Matrix,
    query_norm: Norm,
    query_b: Matrix,
    kv: Matrix,
    kv_norm: Norm,
    sinks: Vec<f64>,
    output_a: Matrix,
    output_b: Matrix,
    compressor: Option<Compressor>,
    indexer: Option<Indexer>,
}

/// Where a token stands.
pub(crate) struct Place<'a> {
    pub(crate) position: usize,
    pub(crate) write_floor: usize,
    pub(crate) rotation: &'a Rotation,
}

/// Space for one token.
pub(crate) struct Scratch {
    latent: Vec<f64>,
    query: Vec<f64>,
    kv: Vec<f64>,
    attended: Vec<f64>,
    grouped: Vec<f64>,
    scores: Vec<f64>,
    selected: Vec<usize>,
    compressor: compressor::Scratch,
    indexer: indexer::Scratch,
}

impl Scratch {
    pub(crate) fn new(shape: &Shape) -> Self {
        Self {
            latent: vec![0.0; shape.q_lora_rank],
            query: vec![0.0; shape.heads * shape.head_dim],
            kv: vec![0.0; shape.head_dim],
            attended: vec![0.0; shape.heads * shape.head_dim],
            grouped: vec![0.0; shape.o_groups * shape.o_lora_rank],
            scores: Vec::new(),
            selected: Vec::new(),
            compressor: compressor::Scratch::default(),
            indexer: indexer::Scratch::default(),
        }
    }
}

impl AttentionLayer {
    pub(crate) fn new(shape: &Shape, attention: Attention, weights: &Weights) -> Self {
        let width = shape.heads * shape.head_dim;
        let latents = shape.o_groups * shape.o_lora_rank;
        let inner = weights.within("compressor");
        let compressor = match attention {
            Attention::Window => None,
            Attention::Csa => Some(Compressor::new(shape, shape.csa_ratio, 2, shape.head_dim, &inner)),
            Attention::Hca => Some(Compressor::new(shape, shape.hca_ratio, 1, shape.head_dim, &inner)),
        };
        Self {
            head_dim: shape.head_dim,
            window: shape.window,
            groups: shape.o_groups,
            epsilon: shape.rms_norm_eps,
            query_a: weights.matrix("q_a_proj.weight", shape.q_lora_rank, shape.hidden),
            query_norm: Norm::new(weights.vector("q_a_norm.weight", shape.q_lora_rank), shape.rms_norm_eps),
            query_b: weights.matrix("q_b_proj.weight", width, shape.q_lora_rank),
            kv: weights.matrix("kv_proj.weight", shape.head_dim, shape.hidden),
            kv_norm: Norm::new(weights.vector("kv_norm.weight", shape.head_dim), shape.rms_norm_eps),
            sinks: weights.vector("sinks", shape.heads),
            output_a: weights.matrix("o_a_proj.weight", latents, width / shape.o_groups),
            output_b: weights.matrix("o_b_proj.weight", shape.hidden, latents),
            compressor,
            indexer: (attention == Attention::Csa).then(|| Indexer::new(shape, &inner.within("indexer"))),
        }
    }

    /// Takes one token into the caches, and leaves what it attends to in `output`.
    pub(crate) fn forward(
        &self,
        input: &[f64],
        place: &Place,
        caches: &mut LayerCaches,
        scratch: &mut Scratch,
        output: &mut [f64],
    ) {
        self.project(input, place, scratch);
        caches.window.set(place.position, &scratch.kv);
        caches.window.drop_before((place.position + 1).saturating_sub(self.window));
        self.compress(input, place, caches, scratch);
        let rows = self.rows(place.position, caches, &scratch.selected);
        self.attend(&rows, scratch);
        for head in scratch.attended.chunks_exact_mut(self.head_dim) {
            place.rotation.undo(head);
        }
        self.output_a.project_groups(self.groups, &scratch.attended, &mut scratch.grouped);
        self.output_b.project(&scratch.grouped, output);
    }

    /// Leaves the token's query latent, query heads and key-value row in `scratch`.
    fn project(&self, input: &[f64], place: &Place, scratch: &mut Scratch) {
        self.query_a.project(input, &mut scratch.latent);
        self.query_norm.apply(&mut scratch.latent);
        self.query_b.project(&scratch.latent, &mut scratch.query);
        for head in scratch.query.chunks_exact_mut(self.head_dim) {
            normalise(head, self.epsilon);
            place.rotation.apply(head);
        }
        self.kv.project(input, &mut scratch.kv);
        self.kv_norm.apply(&mut scratch.kv);
        place.rotation.apply(&mut scratch.kv);
    }

    /// Takes the token into the compressors, and leaves the entries it attends to in `scratch.selected`.
    fn compress(&self, input: &[f64], place: &Place, caches: &mut LayerCaches, scratch: &mut Scratch) {
        scratch.selected.clear();
        let Place { position, write_floor, rotation } = *place;
        let (Some(compressor), Some(state)) = (&self.compressor, &mut caches.compressor) else { return };
        compressor.append(input, position, write_floor, state, &mut scratch.compressor);
        let visible = compressor.visible(position);
        let (Some(indexer), Some(keys)) = (&self.indexer, &mut caches.indexer) else {
            return scratch.selected.extend(state.entries.first..state.entries.end().min(visible));
        };
        indexer.compressor.append(input, position, write_floor, keys, &mut scratch.compressor);
        let Scratch { latent, selected, indexer: space, .. } = scratch;
        let query = Query { input, latent, rotation };
        indexer.select(&query, &keys.entries, visible, space, selected);
    }

    /// What the token attends to: window rows in order of position, then the selected entries that exist.
    fn rows<'a>(&self, position: usize, caches: &'a LayerCaches, selected: &[usize]) -> Vec<&'a [f64]> {
        let window: &Rows = caches.window;
        let mut rows = Vec::with_capacity(self.window + selected.len());
        rows.extend((window.first..=position).filter_map(|index| window.row(index)));
        if let Some(state) = &caches.compressor {
            rows.extend(selected.iter().filter_map(|&index| state.entries.row(index)));
        }
        rows
    }

    /// Leaves the means of `rows` under every head's softmax in `scratch.attended`. The sink takes part in the softmax
    /// and has no value.
    fn attend(&self, rows: &[&[f64]], scratch: &mut Scratch) {
        let scale = 1.0 / (self.head_dim as f64).sqrt();
        let Scratch { query, attended, scores, .. } = scratch;
        let heads = query.chunks_exact(self.head_dim).zip(attended.chunks_exact_mut(self.head_dim)).zip(&self.sinks);
        for ((query, attended), &sink) in heads {
            scores.clear();
            scores.extend(rows.iter().map(|row| dot(query, row) * scale));
            let largest = scores.iter().fold(sink, |largest, &score| largest.max(score));
            let mut total = (sink - largest).exp();
            attended.fill(0.0);
            for (row, score) in rows.iter().zip(scores.iter()) {
                let weight = (score - largest).exp();
                total += weight;
                add_scaled(attended, weight, row);
            }
            for value in attended {
                *value /= total;
            }
        }
    }
}
