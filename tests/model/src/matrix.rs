/// A linear projection: rows are outputs, each contiguous.
pub(crate) struct Matrix {
    columns: usize,
    values: Vec<f64>,
}

impl Matrix {
    /// `values` are rows of `columns` values.
    pub(crate) fn new(columns: usize, values: Vec<f64>) -> Self {
        Self { columns, values }
    }

    /// Writes one dot product per row.
    pub(crate) fn project(&self, input: &[f64], output: &mut [f64]) {
        debug_assert_eq!(input.len(), self.columns);
        debug_assert_eq!(output.len() * self.columns, self.values.len());
        for (row, value) in self.values.chunks_exact(self.columns).zip(output) {
            *value = dot(row, input);
        }
    }

    /// Projects each of `groups` parts of the input with its own part of the rows.
    pub(crate) fn project_groups(&self, groups: usize, input: &[f64], output: &mut [f64]) {
        let width = output.len() / groups;
        let rows = self.values.chunks_exact(width * self.columns);
        for ((rows, input), output) in rows.zip(input.chunks_exact(self.columns)).zip(output.chunks_exact_mut(width)) {
            for (row, value) in rows.chunks_exact(self.columns).zip(output) {
                *value = dot(row, input);
            }
        }
    }

    pub(crate) fn row(&self, index: usize) -> &[f64] {
        &self.values[index * self.columns..][..self.columns]
    }
}

/// The sum of products, in a fixed order of four interleaved sums: one sum alone would wait for every addition.
#[inline]
pub(crate) fn dot(left: &[f64], right: &[f64]) -> f64 {
    let (left, left_rest) = left.as_chunks::<4>();
    let (right, right_rest) = right.as_chunks::<4>();
    let mut sums = [0.0; 4];
    for (left, right) in left.iter().zip(right) {
        for lane in 0..4 {
            sums[lane] += left[lane] * right[lane];
        }
    }
    let rest: f64 = left_rest.iter().zip(right_rest).map(|(left, right)| left * right).sum();
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}

/// Adds `factor` times `row` to `sum`.
pub(crate) fn add_scaled(sum: &mut [f64], factor: f64, row: &[f64]) {
    for (sum, value) in sum.iter_mut().zip(row) {
        *sum += factor * value;
    }
}

pub(crate) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}
