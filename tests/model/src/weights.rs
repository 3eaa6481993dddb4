use crate::matrix::Matrix;

/// Random weights by name: a weight is a function of the seed, its tensor's name and its place in it, so that another
/// implementation can draw the same ones (`tests/reference/golden.py` does).
///
/// Tensors have the names of `transformers`, and their scale comes from them: `norm.weight` and scales lie in 1 ± 0.5,
/// matrices in ± 1.5 sqrt(3 / inputs), a standard deviation of 1.5 per output of normalised inputs.
pub(crate) struct Weights {
    seed: u64,
    prefix: String,
}

impl Weights {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, prefix: String::new() }
    }

    /// The weights whose names continue with `name` and a dot.
    pub(crate) fn within(&self, name: &str) -> Self {
        Self { seed: self.seed, prefix: format!("{}{name}.", self.prefix) }
    }

    /// A matrix of `rows` outputs and `columns` inputs.
    pub(crate) fn matrix(&self, name: &str, rows: usize, columns: usize) -> Matrix {
        Matrix::new(columns, self.tensor(name, rows * columns, columns))
    }

    /// One matrix per expert, all in one tensor.
    pub(crate) fn matrices(&self, name: &str, experts: usize, rows: usize, columns: usize) -> Vec<Matrix> {
        let values = self.tensor(name, experts * rows * columns, columns);
        values.chunks_exact(rows * columns).map(|values| Matrix::new(columns, values.to_vec())).collect()
    }

    pub(crate) fn vector(&self, name: &str, len: usize) -> Vec<f64> {
        self.tensor(name, len, len)
    }

    /// For each token id `per_token` different experts: consecutive ones from a random one on, round `experts`.
    pub(crate) fn experts_of_tokens(&self, name: &str, vocab: usize, experts: usize, per_token: usize) -> Vec<usize> {
        let stream = self.stream(name);
        let experts_of = |token: usize| {
            let first = (draw(stream, token) >> 32) as usize % experts;
            (0..per_token).map(move |k| (first + k) % experts)
        };
        (0..vocab).flat_map(experts_of).collect()
    }

    fn tensor(&self, name: &str, len: usize, inputs: usize) -> Vec<f64> {
        let (centre, spread) = range(name, inputs);
        let stream = self.stream(name);
        (0..len).map(|k| centre + spread * (2.0 * fraction(draw(stream, k)) - 1.0)).collect()
    }

    /// FNV-1a of the full name, mixed with the seed.
    fn stream(&self, name: &str) -> u64 {
        let bytes = self.prefix.bytes().chain(name.bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        mix(hash ^ mix(self.seed))
    }
}

fn range(name: &str, inputs: usize) -> (f64, f64) {
    match name.rsplit('.').next().unwrap_or(name) {
        "weight" if name.ends_with("norm.weight") => (1.0, 0.5),
        "scale" | "hc_scale" => (1.0, 0.5),
        "base" | "hc_base" => (0.0, 0.5),
        "sinks" | "position_bias" => (0.0, 1.0),
        "e_score_correction_bias" => (0.0, 0.2),
        _ => (0.0, 1.5 * (3.0 / inputs as f64).sqrt()),
    }
}

/// The number of place `k` in a stream: SplitMix64 with a counter.
fn draw(stream: u64, k: usize) -> u64 {
    mix(stream.wrapping_add((k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// In [0, 1).
fn fraction(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}
