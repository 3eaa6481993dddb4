use crate::matrix::{Matrix, add_scaled, sigmoid};
use crate::norm::normalise;
use crate::shape::Shape;
use crate::weights::Weights;

/// A manifold-constrained hyper-connection: how a sublayer reads the streams, and how its output and the streams become
/// the new ones. All three mixings are functions of the streams.
pub(crate) struct HyperConnection {
    streams: usize,
    hidden: usize,
    sinkhorn_iterations: usize,
    epsilon: f64,
    norm_epsilon: f64,
    function: Matrix,
    base: Vec<f64>,
    scale: Vec<f64>,
}

/// Space for one token, and the mixing between `collapse` and `expand`.
pub(crate) struct Scratch {
    previous: Vec<f64>,
    normed: Vec<f64>,
    projected: Vec<f64>,
}

impl Scratch {
    pub(crate) fn new(shape: &Shape) -> Self {
        Self {
            previous: vec![0.0; shape.streams()],
            normed: vec![0.0; shape.streams()],
            projected: vec![0.0; (2 + shape.hc_mult) * shape.hc_mult],
        }
    }
}

impl HyperConnection {
    pub(crate) fn new(shape: &Shape, weights: &Weights) -> Self {
        let outputs = (2 + shape.hc_mult) * shape.hc_mult;
        Self {
            streams: shape.hc_mult,
            hidden: shape.hidden,
            sinkhorn_iterations: shape.hc_sinkhorn_iters,
            epsilon: shape.hc_eps,
            norm_epsilon: shape.rms_norm_eps,
            function: weights.matrix("fn", outputs, shape.streams()),
            base: weights.vector("base", outputs),
            scale: weights.vector("scale", 3),
        }
    }

    /// Writes the sublayer's input, one weighted sum of the streams, and keeps the weights for `expand`.
    pub(crate) fn collapse(&self, streams: &[f64], scratch: &mut Scratch, collapsed: &mut [f64]) {
        let n = self.streams;
        scratch.normed.copy_from_slice(streams);
        normalise(&mut scratch.normed, self.norm_epsilon);
        self.function.project(&scratch.normed, &mut scratch.projected);
        for (k, (value, base)) in scratch.projected.iter_mut().zip(&self.base).enumerate() {
            *value = *value * self.scale[(k / n).min(2)] + base;
        }
        let (pre, rest) = scratch.projected.split_at_mut(n);
        let (post, combination) = rest.split_at_mut(n);
        collapsed.fill(0.0);
        for (weight, stream) in pre.iter().zip(streams.chunks_exact(self.hidden)) {
            add_scaled(collapsed, sigmoid(*weight) + self.epsilon, stream);
        }
        for weight in post {
            *weight = 2.0 * sigmoid(*weight);
        }
        self.make_doubly_stochastic(combination);
    }

    /// Writes the new streams: the sublayer's output weighted per stream, plus the old streams combined.
    pub(crate) fn expand(&self, output: &[f64], scratch: &mut Scratch, streams: &mut [f64]) {
        scratch.previous.copy_from_slice(streams);
        let (post, combination) = scratch.projected[self.streams..].split_at(self.streams);
        for (k, stream) in streams.chunks_exact_mut(self.hidden).enumerate() {
            stream.fill(0.0);
            add_scaled(stream, post[k], output);
            for (j, previous) in scratch.previous.chunks_exact(self.hidden).enumerate() {
                add_scaled(stream, combination[j * self.streams + k], previous);
            }
        }
    }

    /// Softmax over rows, then Sinkhorn-Knopp: columns and rows are divided by their sums in turn, columns first and
    /// last.
    fn make_doubly_stochastic(&self, matrix: &mut [f64]) {
        let n = self.streams;
        for row in matrix.chunks_exact_mut(n) {
            let largest = row.iter().fold(f64::NEG_INFINITY, |largest, &value| largest.max(value));
            let total: f64 = row.iter_mut().map(|value| exponentiate(value, largest)).sum();
            for value in row {
                *value = *value / total + self.epsilon;
            }
        }
        self.divide_columns(matrix);
        for _ in 1..self.sinkhorn_iterations {
            for row in matrix.chunks_exact_mut(n) {
                let total = row.iter().sum::<f64>() + self.epsilon;
                row.iter_mut().for_each(|value| *value /= total);
            }
            self.divide_columns(matrix);
        }
    }

    fn divide_columns(&self, matrix: &mut [f64]) {
        let n = self.streams;
        for column in 0..n {
            let total = (0..n).map(|row| matrix[row * n + column]).sum::<f64>() + self.epsilon;
            for row in 0..n {
                matrix[row * n + column] /= total;
            }
        }
    }
}

fn exponentiate(value: &mut f64, largest: f64) -> f64 {
    *value = (*value - largest).exp();
    *value
}
