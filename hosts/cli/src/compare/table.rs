//! The tables of a comparison: policy × budget, for a terminal or as Markdown.

use std::fmt::Write;

use super::{Advice, Results, TraceResults, results::points};
use crate::figures::{grouped, seconds};

/// A table whose first column names the rows.
pub struct Table {
    /// What its figures are.
    pub title: String,
    /// Over the columns; the first is that of the names.
    pub header: Vec<String>,
    /// The rows, each as long as the header.
    pub rows: Vec<Vec<Entry>>,
}

/// An entry of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The figure.
    pub text: String,
    /// Whether it is the best of its column.
    pub best: bool,
}

impl Entry {
    /// An entry that is not marked.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), best: false }
    }
}

/// What stands where a policy failed.
pub const FAILED: &str = "failed";

impl TraceResults {
    /// The table of what was gained, in percent of the tokens measured.
    pub fn gains(&self, results: &Results) -> Table {
        let whole = self.whole_tokens();
        let mut table =
            self.table(results, format!("tokens {}, % of the prompts (* best)", results.gain()), |policy, size| {
                let figures = self.figures(policy, size)?;
                let gained = figures.gained_tokens();
                let cold = if figures.underfilled() { " (cold)" } else { "" };
                let best = Some(policy) != self.hindsight && self.best_gain(size) == Some(gained) && gained > 0;
                Some(Entry { text: format!("{:.2}{cold}", points(gained, whole)), best })
            });
        if self.bounds.iter().any(Option::is_some) {
            let bound =
                |bound: &Option<u64>| Entry::plain(bound.map_or("-".into(), |b| format!("{:.2}", points(b, whole))));
            table.rows.push([Entry::plain("(bound)")].into_iter().chain(self.bounds.iter().map(bound)).collect());
        }
        table
    }

    /// The table of what was written; `None` where that is not counted.
    pub fn writes(&self, results: &Results) -> Option<Table> {
        let counted = self.cells.iter().any(|cell| cell.verdict.as_ref().is_ok_and(|f| f.written().is_some()));
        let title = if results.untyped { "blocks written" } else { "bytes written" };
        counted.then(|| {
            self.table(results, title.to_owned(), |policy, size| {
                let written = self.figures(policy, size)?.written();
                let text =
                    written.map_or("-".to_owned(), |n| if results.untyped { grouped(n) } else { results.amount(n) });
                Some(Entry::plain(text))
            })
        })
    }

    /// The table of the modelled prefill; `None` without types.
    pub fn prefill(&self, results: &Results) -> Option<Table> {
        let cold_ns = self.cells.iter().find_map(|cell| Some(cell.verdict.as_ref().ok()?.score()?.cold_prefill_ns))?;
        let time = |ns: u64| seconds(ns as f64 / 1e9);
        Some(self.table(results, format!("modelled prefill, {} without a cache", time(cold_ns)), |policy, size| {
            Some(Entry::plain(time(self.figures(policy, size)?.score()?.prefill_ns)))
        }))
    }

    /// The table of the shares of windows; `None` where nothing is divided.
    pub fn shares(&self, results: &Results) -> Option<Table> {
        self.cells.iter().any(|cell| cell.split.is_some()).then(|| {
            self.table(results, "share of windows in the budget, %".to_owned(), |policy, size| {
                let split = self.cell(policy, size)?.split?;
                self.figures(policy, size)?;
                Some(Entry::plain(format!("{:.1}", f64::from(split.window_permille) / 10.0)))
            })
        })
    }

    fn table(&self, results: &Results, title: String, entry: impl Fn(usize, usize) -> Option<Entry>) -> Table {
        let sizes = self.sizes.iter().map(|&size| results.size(size));
        let header = ["policy".to_owned()].into_iter().chain(sizes).collect();
        let row = |(policy, name): (usize, &String)| {
            let entries = (0..self.sizes.len()).map(|size| entry(policy, size).unwrap_or_else(|| Entry::plain(FAILED)));
            [Entry::plain(name)].into_iter().chain(entries).collect()
        };
        Table { title, header, rows: self.policies.iter().enumerate().map(row).collect() }
    }

    /// One line that says what was replayed.
    pub fn summary(&self, results: &Results) -> String {
        let (sessions, stated) = self.sessions;
        let found = if stated { "sessions" } else { "sessions by their prompts" };
        let measured = if results.untyped { "; the last half is measured" } else { "" };
        format!(
            "{} requests over {}, {} prompt tokens, {} {found} ({}){measured}",
            grouped(self.requests as u64),
            seconds(self.trace_us as f64 / 1e6),
            grouped(self.prompt_tokens),
            grouped(sessions as u64),
            self.format
        )
    }

    /// Policies that failed, each with the budgets and the reason.
    pub fn failures(&self, results: &Results) -> Vec<String> {
        let mut failures: Vec<(usize, &str, Vec<String>)> = Vec::new();
        for cell in &self.cells {
            let Err(reason) = &cell.verdict else { continue };
            let size = results.size(self.sizes[cell.size]);
            match failures.iter_mut().find(|(policy, said, _)| *policy == cell.policy && said == reason) {
                Some((_, _, sizes)) => sizes.push(size),
                None => failures.push((cell.policy, reason, vec![size])),
            }
        }
        let line = |(policy, reason, sizes): (usize, &str, Vec<String>)| {
            format!("{} failed at {}: {reason}. It has no figures there.", self.policies[policy], sizes.join(", "))
        };
        failures.into_iter().map(line).collect()
    }

    fn tables(&self, results: &Results) -> Vec<Table> {
        let tables = [Some(self.gains(results)), self.writes(results), self.prefill(results), self.shares(results)];
        tables.into_iter().flatten().collect()
    }
}

/// All tables, for a terminal.
pub fn terminal(results: &Results) -> String {
    let mut text = String::new();
    for (index, trace) in results.traces.iter().enumerate() {
        let gap = if index > 0 { "\n" } else { "" };
        let _ = writeln!(text, "{gap}{}: {}", trace.name, trace.summary(results));
        for table in trace.tables(results) {
            let _ = writeln!(text, "\n{}", table.title);
            table.write_aligned(&mut text);
        }
        text.push('\n');
        for sentence in Advice::new(results, trace).sentences() {
            text += &wrapped(&sentence, 110);
        }
    }
    text
}

/// All tables, as Markdown.
pub fn markdown(results: &Results) -> String {
    let mut text = String::new();
    for (index, trace) in results.traces.iter().enumerate() {
        let gap = if index > 0 { "\n" } else { "" };
        let _ = writeln!(text, "{gap}### {}\n\n{}.", escaped(&trace.name), escaped(&trace.summary(results)));
        for table in trace.tables(results) {
            table.write_markdown(&mut text);
        }
        text.push('\n');
        for sentence in Advice::new(results, trace).sentences() {
            let _ = writeln!(text, "- {}", escaped(&sentence));
        }
    }
    text
}

impl Table {
    fn write_aligned(&self, out: &mut String) {
        let text = |entry: &Entry| if entry.best { format!("{} *", entry.text) } else { format!("{}  ", entry.text) };
        let mut lines = vec![self.header.iter().map(|name| format!("{name}  ")).collect::<Vec<_>>()];
        lines.extend(self.rows.iter().map(|row| row.iter().map(text).collect()));
        let width =
            |column: usize| lines.iter().map(|line: &Vec<String>| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.header.len()).map(width).collect();
        for line in &lines {
            let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| match column {
                0 => format!("{:<width$}", cell.trim_end(), width = width - 2),
                _ => format!("{cell:>width$}"),
            });
            let _ = writeln!(out, "  {}", cells.collect::<Vec<_>>().join(" ").trim_end());
        }
    }

    fn write_markdown(&self, out: &mut String) {
        let row = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
        let _ = writeln!(out, "\n{}:\n", escaped(&self.title.replace("(* best)", "(best in bold)")));
        let _ = writeln!(out, "{}", row(self.header.iter().map(|name| escaped(name)).collect()));
        let rules = (0..self.header.len()).map(|column| if column == 0 { "---".to_owned() } else { "--:".to_owned() });
        let _ = writeln!(out, "|{}|", rules.collect::<Vec<_>>().join("|"));
        for cells in &self.rows {
            let text = |entry: &Entry| match (escaped(&entry.text), entry.best) {
                (text, true) => format!("**{text}**"),
                (text, false) => text,
            };
            let _ = writeln!(out, "{}", row(cells.iter().map(text).collect()));
        }
    }
}

/// What Markdown would take for its own.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut text, c| {
        if matches!(c, '|' | '*' | '_' | '`' | '<' | '[' | '\\') {
            text.push('\\');
        }
        text.push(if c.is_control() { ' ' } else { c });
        text
    })
}

/// A paragraph in lines of at most `width` characters, if no word is longer.
fn wrapped(paragraph: &str, width: usize) -> String {
    let (mut text, mut column) = (String::from("-"), 1);
    for word in paragraph.split_whitespace() {
        let length = word.chars().count();
        if column + 1 + length > width {
            text.push_str("\n ");
            column = 1;
        }
        text.push(' ');
        text.push_str(word);
        column += 1 + length;
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_does_not_break_a_markdown_table() {
        let entry = |text: &str, best| Entry { text: text.into(), best };
        let table = Table {
            title: "t".into(),
            header: vec!["policy".into(), "1 GiB".into()],
            rows: vec![vec![entry("a|b_c", false), entry("1.0", true)]],
        };
        let mut text = String::new();
        table.write_markdown(&mut text);
        assert!(text.ends_with("| policy | 1 GiB |\n|---|--:|\n| a\\|b\\_c | **1.0** |\n"), "{text}");
        let mut text = String::new();
        table.write_aligned(&mut text);
        assert_eq!(text, "  policy 1 GiB\n  a|b_c    1.0 *\n");
    }

    #[test]
    fn no_line_is_longer_than_asked_for() {
        let text = wrapped(&"word ".repeat(60), 40);
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        assert_eq!(text.split_whitespace().filter(|&word| word == "word").count(), 60);
    }
}
