//! The medians of all rounds, as a table.

use std::fmt::Write;

use serde::Serialize;

use crate::measure::Turn;

/// The turns of one contender, one a round.
#[derive(Serialize)]
pub struct Row {
    /// The contender.
    pub name: String,
    /// What each round brought.
    pub turns: Vec<Turn>,
}

impl Row {
    fn median(&self, value: impl Fn(&Turn) -> f64) -> f64 {
        median(self.turns.iter().map(value))
    }

    /// The median over the rounds of what this row did in a round against what `base` did in it.
    fn ratio(&self, base: &Self, value: impl Fn(&Turn) -> f64) -> f64 {
        median(self.turns.iter().zip(&base.turns).map(|(turn, base)| value(turn) / value(base)))
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => (values[middle - 1] + values[middle]) / 2.0,
        _ => values[middle],
    }
}

/// A line for each contender, the one that the others are held against last.
pub fn render(rows: &[Row]) -> String {
    let mut table = String::from(
        "| | write GiB/s | synced GiB/s | of raw | CPU s/GiB | read GiB/s | of raw | CPU s/GiB | p50 ms | p99 ms | found | wrong bytes |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    let base = rows.last().expect("there is a contender");
    for row in rows {
        let found = row.turns.iter().map(|turn| turn.found).min().unwrap_or_default();
        let wrong: u64 = row.turns.iter().map(|turn| turn.wrong_bytes).sum();
        writeln!(
            table,
            "| {} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {found} | {wrong} |",
            row.name,
            row.median(|turn| turn.written),
            row.median(|turn| turn.synced),
            row.ratio(base, |turn| turn.synced),
            row.median(|turn| turn.write_processor),
            row.median(|turn| turn.read),
            row.ratio(base, |turn| turn.read),
            row.median(|turn| turn.read_processor),
            row.median(|turn| turn.latency_p50),
            row.median(|turn| turn.latency_p99),
        )
        .expect("text takes everything");
    }
    table
}

/// Names the rows whose reads did not all come from the device.
pub fn cached(rows: &[Row]) -> Vec<&str> {
    let cached = |row: &&Row| row.turns.iter().any(|turn| turn.from_device.is_some_and(|share| share < 0.99));
    rows.iter().filter(cached).map(|row| row.name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, read: [f64; 3]) -> Row {
        let turns = read.map(|read| Turn { read, synced: 1.0, found: 10, wrong_bytes: 1, ..Turn::default() });
        Row { name: name.to_owned(), turns: turns.to_vec() }
    }

    #[test]
    fn a_ratio_is_not_taken_between_turns_of_different_rounds() {
        // In two of three rounds the store is half as fast, and neither is as fast in one round as in the next.
        let rows = [row("store", [1.0, 4.0, 2.0]), row("raw", [2.0, 2.0, 4.0])];
        let table = render(&rows);
        let cells: Vec<&str> = table.lines().nth(2).unwrap().split('|').map(str::trim).collect();
        assert_eq!((cells[1], cells[6], cells[7], cells[12]), ("store", "2.00", "0.50", "3"));
    }
}
