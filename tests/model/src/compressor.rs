use crate::matrix::Matrix;
use crate::norm::Norm;
use crate::rotary::Rotary;
use crate::shape::Shape;
use crate::state::CompressorState;
use crate::weights::Weights;

/// Turns every `ratio` tokens into one entry: per channel a mean of the tokens' values, weighted by the softmax of
/// their gates.
///
/// With two series (CSA and its indexer) an entry also mixes in the `ratio` tokens before its own: they contribute
/// their series a, its own tokens their series b. The first entry has only its own.
pub(crate) struct Compressor {
    ratio: usize,
    series: usize,
    width: usize,
    kv: Matrix,
    gate: Matrix,
    position_bias: Matrix,
    norm: Norm,
    rotary: Rotary,
}

/// Space for one token and one entry.
#[derive(Default)]
pub(crate) struct Scratch {
    token: Vec<f64>,
    kv: Vec<f64>,
    gate: Vec<f64>,
    entry: Vec<f64>,
    largest: Vec<f64>,
    total: Vec<f64>,
}

impl Compressor {
    pub(crate) fn new(shape: &Shape, ratio: usize, series: usize, width: usize, weights: &Weights) -> Self {
        Self {
            ratio,
            series,
            width,
            kv: weights.matrix("kv_proj.weight", series * width, shape.hidden),
            gate: weights.matrix("gate_proj.weight", series * width, shape.hidden),
            position_bias: weights.matrix("position_bias", ratio, series * width),
            norm: Norm::new(weights.vector("kv_norm.weight", width), shape.rms_norm_eps),
            rotary: Rotary::new(shape.compress_rope_theta, shape.rope_dim),
        }
    }

    /// Entries that a token may see, complete with it: `(position + 1) / ratio`.
    pub(crate) fn visible(&self, position: usize) -> usize {
        (position + 1) / self.ratio
    }

    /// Takes in one token, and writes the entry it completes unless that starts below the write floor.
    pub(crate) fn append(
        &self,
        input: &[f64],
        position: usize,
        write_floor: usize,
        state: &mut CompressorState,
        scratch: &mut Scratch,
    ) {
        self.buffer(input, position, state, scratch);
        if !(position + 1).is_multiple_of(self.ratio) {
            return;
        }
        let start = position + 1 - self.ratio;
        let complete = state.buffer.first <= start;
        if complete && start >= write_floor {
            self.compress(start, state, scratch);
            state.entries.set(start / self.ratio, &scratch.entry);
        }
        debug_assert!(
            complete || write_floor == 0 || start < write_floor,
            "writing entry {}: its first tokens were never seen; start at {start} or raise the write floor",
            start / self.ratio
        );
        self.keep_overlap(start, state, scratch);
        state.buffer.clear(position + 1);
    }

    fn buffer(&self, input: &[f64], position: usize, state: &mut CompressorState, scratch: &mut Scratch) {
        let width = self.series * self.width;
        scratch.token.resize(2 * width, 0.0);
        let (kv, gate) = scratch.token.split_at_mut(width);
        self.kv.project(input, kv);
        self.gate.project(input, gate);
        state.buffer.set(position, &scratch.token);
    }

    /// Leaves the entry that starts at position `start` in `scratch.entry`.
    fn compress(&self, start: usize, state: &CompressorState, scratch: &mut Scratch) {
        self.gather(start, state, scratch);
        let Scratch { kv, gate, entry, largest, total, .. } = scratch;
        refill(largest, self.width, f64::NEG_INFINITY);
        for gate in gate.chunks_exact(self.width) {
            for (largest, gate) in largest.iter_mut().zip(gate) {
                *largest = largest.max(*gate);
            }
        }
        refill(total, self.width, 0.0);
        refill(entry, self.width, 0.0);
        for (kv, gate) in kv.chunks_exact(self.width).zip(gate.chunks_exact(self.width)) {
            for channel in 0..self.width {
                let weight = (gate[channel] - largest[channel]).exp();
                total[channel] += weight;
                entry[channel] += weight * kv[channel];
            }
        }
        for (value, total) in entry.iter_mut().zip(total) {
            *value /= *total;
        }
        self.norm.apply(entry);
        self.rotary.at(start).apply(entry);
    }

    /// Collects values and biased gates of the tokens that the entry at `start` mixes. A token of the overlap that is
    /// missing is left out.
    fn gather(&self, start: usize, state: &CompressorState, scratch: &mut Scratch) {
        scratch.kv.clear();
        scratch.gate.clear();
        for token in (start.saturating_sub(self.ratio)..start).filter_map(|position| state.overlap.row(position)) {
            let (kv, gate) = token.split_at(self.width);
            scratch.kv.extend_from_slice(kv);
            scratch.gate.extend_from_slice(gate);
        }
        let own = (self.series - 1) * self.width;
        for k in 0..self.ratio {
            let Some(token) = state.buffer.row(start + k) else { continue };
            let (kv, gate) = token.split_at(self.series * self.width);
            scratch.kv.extend_from_slice(&kv[own..]);
            let bias = &self.position_bias.row(k)[own..];
            scratch.gate.extend(gate[own..].iter().zip(bias).map(|(gate, bias)| gate + bias));
        }
    }

    fn keep_overlap(&self, start: usize, state: &mut CompressorState, scratch: &mut Scratch) {
        if self.series == 1 {
            return;
        }
        state.overlap.clear(start);
        for k in 0..self.ratio {
            let Some(token) = state.buffer.row(start + k) else { continue };
            let (kv, gate) = token.split_at(self.series * self.width);
            scratch.token.clear();
            scratch.token.extend_from_slice(&kv[..self.width]);
            let bias = self.position_bias.row(k);
            scratch.token.extend(gate[..self.width].iter().zip(bias).map(|(gate, bias)| gate + bias));
            state.overlap.set(start + k, &scratch.token);
        }
    }
}

fn refill(values: &mut Vec<f64>, len: usize, value: f64) {
    values.clear();
    values.resize(len, value);
}
