use crate::matrix::{Matrix, add_scaled, sigmoid};
use crate::norm::{Norm, normalise};
use crate::shape::Shape;
use crate::weights::Weights;

/// What stands between the last streams and the logits: the hyper head, which sums the streams into one, and the final
/// norm.
pub(crate) struct Head {
    hidden: usize,
    epsilon: f64,
    norm_epsilon: f64,
    function: Matrix,
    base: Vec<f64>,
    scale: Vec<f64>,
    norm: Norm,
}

impl Head {
    pub(crate) fn new(shape: &Shape, weights: &Weights) -> Self {
        let connection = weights.within("hc_head");
        Self {
            hidden: shape.hidden,
            epsilon: shape.hc_eps,
            norm_epsilon: shape.rms_norm_eps,
            function: connection.matrix("hc_fn", shape.hc_mult, shape.streams()),
            base: connection.vector("hc_base", shape.hc_mult),
            scale: connection.vector("hc_scale", 1),
            norm: Norm::new(weights.vector("norm.weight", shape.hidden), shape.rms_norm_eps),
        }
    }

    /// The logits of one token.
    pub(crate) fn logits(&self, streams: &[f64], unembedding: &Matrix, vocab: usize) -> Vec<f64> {
        let mut normed = streams.to_vec();
        normalise(&mut normed, self.norm_epsilon);
        let mut weights = vec![0.0; self.base.len()];
        self.function.project(&normed, &mut weights);
        let mut summed = vec![0.0; self.hidden];
        for ((weight, base), stream) in weights.iter().zip(&self.base).zip(streams.chunks_exact(self.hidden)) {
            add_scaled(&mut summed, sigmoid(weight * self.scale[0] + base) + self.epsilon, stream);
        }
        self.norm.apply(&mut summed);
        let mut logits = vec![0.0; vocab];
        unembedding.project(&summed, &mut logits);
        logits
    }
}
