use crate::compressor::Compressor;
use crate::matrix::{Matrix, dot};
use crate::rotary::Rotation;
use crate::rows::Rows;
use crate::shape::Shape;
use crate::weights::Weights;

/// The lightning indexer: scores entries by its own compressed keys, `sum over heads of weight * relu(query . key)`,
/// and selects the best.
pub(crate) struct Indexer {
    pub(crate) compressor: Compressor,
    query: Matrix,
    head_weights: Matrix,
    heads: usize,
    head_dim: usize,
    topk: usize,
}

/// What the indexer reads of one token: the layer's input, the query latent of its attention, and its rotation.
pub(crate) struct Query<'a> {
    pub(crate) input: &'a [f64],
    pub(crate) latent: &'a [f64],
    pub(crate) rotation: &'a Rotation,
}

/// Space for one token.
#[derive(Default)]
pub(crate) struct Scratch {
    query: Vec<f64>,
    head_weights: Vec<f64>,
    scores: Vec<(f64, usize)>,
}

impl Indexer {
    pub(crate) fn new(shape: &Shape, weights: &Weights) -> Self {
        let width = shape.index_head_dim;
        Self {
            compressor: Compressor::new(shape, shape.csa_ratio, 2, width, weights),
            query: weights.matrix("q_b_proj.weight", shape.index_heads * width, shape.q_lora_rank),
            head_weights: weights.matrix("scorer.weights_proj.weight", shape.index_heads, shape.hidden),
            heads: shape.index_heads,
            head_dim: width,
            topk: shape.index_topk,
        }
    }

    /// Fills `selected` with the `topk` best of the entries below `visible`, ascending. Of equal scores the lowest
    /// index wins.
    pub(crate) fn select(
        &self,
        token: &Query,
        entries: &Rows,
        visible: usize,
        scratch: &mut Scratch,
        selected: &mut Vec<usize>,
    ) {
        selected.clear();
        let candidates = entries.first..entries.end().min(visible);
        if candidates.len() <= self.topk {
            return selected.extend(candidates);
        }
        self.project(token, scratch);
        scratch.scores.clear();
        for index in candidates {
            let Some(key) = entries.row(index) else { continue };
            let score = self.score(key, &scratch.query, &scratch.head_weights);
            scratch.scores.push((score, index));
        }
        scratch
            .scores
            .select_nth_unstable_by(self.topk, |left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
        selected.extend(scratch.scores[..self.topk].iter().map(|&(_, index)| index));
        selected.sort_unstable();
    }

    fn project(&self, token: &Query, scratch: &mut Scratch) {
        scratch.query.resize(self.heads * self.head_dim, 0.0);
        self.query.project(token.latent, &mut scratch.query);
        for head in scratch.query.chunks_exact_mut(self.head_dim) {
            token.rotation.apply(head);
        }
        scratch.head_weights.resize(self.heads, 0.0);
        self.head_weights.project(token.input, &mut scratch.head_weights);
    }

    fn score(&self, key: &[f64], query: &[f64], head_weights: &[f64]) -> f64 {
        let scale = 1.0 / ((self.head_dim * self.heads) as f64).sqrt();
        let heads = query.chunks_exact(self.head_dim).zip(head_weights);
        scale * heads.map(|(query, weight)| dot(query, key).max(0.0) * weight).sum::<f64>()
    }
}
