/// Rotary position embedding of interleaved pairs: channels 2i and 2i+1 turn by `position * theta^(-2i / rope_dim)`.
pub(crate) struct Rotary {
    frequencies: Vec<f64>,
}

/// The rotation of one position.
#[derive(Clone)]
pub(crate) struct Rotation {
    cosines: Vec<f64>,
    sines: Vec<f64>,
}

impl Rotary {
    pub(crate) fn new(theta: f64, rope_dim: usize) -> Self {
        let frequencies = (0..rope_dim).step_by(2).map(|i| 1.0 / theta.powf(i as f64 / rope_dim as f64)).collect();
        Self { frequencies }
    }

    pub(crate) fn at(&self, position: usize) -> Rotation {
        let (sines, cosines) = self.frequencies.iter().map(|frequency| (position as f64 * frequency).sin_cos()).unzip();
        Rotation { cosines, sines }
    }
}

impl Rotation {
    /// Rotates the last channels of a head.
    pub(crate) fn apply(&self, head: &mut [f64]) {
        self.turn(head, 1.0);
    }

    /// Rotates the last channels of a head back.
    pub(crate) fn undo(&self, head: &mut [f64]) {
        self.turn(head, -1.0);
    }

    fn turn(&self, head: &mut [f64], direction: f64) {
        let rotated = head.len() - 2 * self.cosines.len();
        let (pairs, _) = head[rotated..].as_chunks_mut::<2>();
        for ((pair, cosine), sine) in pairs.iter_mut().zip(&self.cosines).zip(&self.sines) {
            let sine = direction * sine;
            *pair = [pair[0] * cosine - pair[1] * sine, pair[1] * cosine + pair[0] * sine];
        }
    }
}
