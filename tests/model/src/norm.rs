use crate::matrix::dot;

/// RMS norm with a weight per channel.
pub(crate) struct Norm {
    weight: Vec<f64>,
    epsilon: f64,
}

impl Norm {
    pub(crate) fn new(weight: Vec<f64>, epsilon: f64) -> Self {
        Self { weight, epsilon }
    }

    /// Normalises in place.
    pub(crate) fn apply(&self, values: &mut [f64]) {
        let scale = reciprocal_rms(values, self.epsilon);
        for (value, weight) in values.iter_mut().zip(&self.weight) {
            *value = weight * (*value * scale);
        }
    }
}

/// RMS norm without weights, in place.
pub(crate) fn normalise(values: &mut [f64], epsilon: f64) {
    let scale = reciprocal_rms(values, epsilon);
    for value in values {
        *value *= scale;
    }
}

fn reciprocal_rms(values: &[f64], epsilon: f64) -> f64 {
    1.0 / (dot(values, values) / values.len() as f64 + epsilon).sqrt()
}
