/// Rows of one type in one layer, of consecutive indices: positions for windows, buffers and overlaps, entry numbers
/// for entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// Values of a row.
    pub width: usize,
    /// Index of the first row; of the next one to come if there is none.
    pub first: usize,
    /// The rows one after the other.
    pub values: Vec<f64>,
}

impl Rows {
    /// No rows; the next one is expected at index `first`.
    pub fn new(width: usize, first: usize) -> Self {
        Self { width, first, values: Vec::new() }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.len() / self.width
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Index behind the last row.
    pub fn end(&self) -> usize {
        self.first + self.len()
    }

    /// The row of that index, if it is there.
    pub fn row(&self, index: usize) -> Option<&[f64]> {
        let start = index.checked_sub(self.first)? * self.width;
        self.values.get(start..start + self.width)
    }

    /// Appends a row at index `end`.
    pub fn push(&mut self, row: &[f64]) {
        assert_eq!(row.len(), self.width, "a row of {} values cannot join rows of {}", row.len(), self.width);
        self.values.extend_from_slice(row);
    }

    /// Puts a row at `index`: over the one that is there, or behind the last one. An index that leaves a gap starts
    /// anew, since rows are consecutive.
    pub fn set(&mut self, index: usize, row: &[f64]) {
        if index < self.first || index > self.end() {
            self.clear(index);
        }
        if index == self.end() {
            return self.push(row);
        }
        let start = (index - self.first) * self.width;
        self.values[start..start + self.width].copy_from_slice(row);
    }

    /// Drops the rows below `index`.
    pub fn drop_before(&mut self, index: usize) {
        let dropped = index.saturating_sub(self.first).min(self.len());
        self.values.drain(..dropped * self.width);
        self.first += dropped;
    }

    /// Drops all rows; the next one is expected at index `first`.
    pub fn clear(&mut self, first: usize) {
        self.values.clear();
        self.first = first;
    }
}
