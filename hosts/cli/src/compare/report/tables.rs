//! Tables in HTML.

use std::fmt::Write;

use super::text::escaped;
use crate::compare::table::{Entry, FAILED, Table};

/// A table that scrolls where it is too wide.
pub(super) fn table(table: &Table) -> String {
    let mut text = String::from("<div class=\"scroll\" tabindex=\"0\">\n<table>\n");
    let _ =
        write!(text, "<caption>{}</caption>\n<thead><tr>", escaped(&table.title.replace(" (* best)", ", best marked")));
    for name in &table.header {
        let _ = write!(text, "<th scope=\"col\">{}</th>", escaped(name));
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        text.push_str("<tr>");
        for (column, entry) in row.iter().enumerate() {
            text.push_str(&cell(column, entry));
        }
        text.push_str("</tr>\n");
    }
    text + "</tbody>\n</table>\n</div>\n"
}

fn cell(column: usize, entry: &Entry) -> String {
    let content = escaped(&entry.text);
    match entry {
        _ if column == 0 => format!("<th scope=\"row\">{content}</th>"),
        Entry { best: true, .. } => format!("<td class=\"best\">{content}</td>"),
        Entry { text, .. } if text == FAILED => format!("<td class=\"failed\">{content}</td>"),
        _ => format!("<td>{content}</td>"),
    }
}

/// Tables behind a line that opens them.
pub(super) fn folded(summary: &str, tables: &[Table]) -> String {
    let tables: String = tables.iter().map(table).collect();
    format!("<details>\n<summary>{}</summary>\n{tables}</details>\n", escaped(summary))
}
