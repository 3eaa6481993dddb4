//! The report: one file, complete in itself. No script, nothing fetched, drawings as inline SVG; colours for light and dark, told apart
//! by marker and dash as well; a table beside every drawing.

mod axis;
mod chart;
mod frontier;
mod section;
mod series;
mod sessions;
mod style;
mod tables;
mod text;

use std::fmt::Write;

use serde_json::Value;

use super::Results;
use style::STYLE;
use text::escaped;

/// Nothing may be fetched or run, whatever a name of a trace or policy smuggles in.
const CONTENT: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// The report of a comparison.
pub fn html(results: &Results) -> String {
    let mut out = String::new();
    let names: Vec<&str> = results.traces.iter().map(|trace| trace.name.as_str()).collect();
    let title = format!("Policies compared on {}", names.join(", "));
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{CONTENT}\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>\n{STYLE}{}</style>\n</head>\n<body>\n<main>\n<h1>{}</h1>\n",
        escaped(&title),
        series::style(),
        escaped(&title)
    );
    let _ = writeln!(out, "<p class=\"lead\">{}</p>", escaped(&setting(results)));
    if results.traces.len() > 1 {
        let links = results.traces.iter().enumerate();
        let links = links.map(|(index, trace)| format!("<a href=\"#trace-{index}\">{}</a>", escaped(&trace.name)));
        let _ = writeln!(out, "<nav aria-label=\"Traces\">{}</nav>", links.collect::<Vec<_>>().join(" "));
    }
    for (index, trace) in results.traces.iter().enumerate() {
        out += &section::section(results, trace, index);
    }
    out += &notes(results);
    out + "</main>\n</body>\n</html>\n"
}

/// One sentence on what all figures have in common.
fn setting(results: &Results) -> String {
    let option = |name: &str| match &results.options[name] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if results.untyped {
        return "One pool of equal blocks, the trace's own, without types; the last half of the requests is measured, by the rules of \
                kvcache-simulator."
            .to_owned();
    }
    let replay = if results.options["replay"] == Value::Bool(false) { ", windows never rebuilt by replay" } else { "" };
    format!(
        "{}, blocks of {} tokens, planner {}{replay}. A budget holds both groups, history and windows.",
        option("model"),
        option("block_tokens"),
        option("planner")
    )
}

fn notes(results: &Results) -> String {
    let mut text = String::from("<section>\n<h2>How the figures are made</h2>\n<dl class=\"notes\">\n");
    let mut note = |term: &str, meaning: &str| {
        let _ = writeln!(text, "<dt>{}</dt><dd>{}</dd>", escaped(term), escaped(meaning));
    };
    if results.untyped {
        note(
            "found",
            "Tokens of the measured prompts whose blocks lead the prompt and are in the pool: block i of a prompt of N tokens \
              counts max(1, min(S, N − i·S)).",
        );
        note(
            "optimal",
            "Knows every later request and evicts the leaf that is used again last; what it finds is what hindsight allows.",
        );
        note(
            "cold",
            "The pool was not full before the measured half began: the figure tells of a cold start rather than of the capacity.",
        );
        return text + "</dl>\n</section>\n";
    }
    let price = |name: &str| results.options["prices"][name].as_f64().unwrap_or(0.0);
    note(
        "saved",
        "Prompt tokens that need no forward pass: all, less those computed. What is recomputed to rebuild windows counts as computed.",
    );
    note(
        "share of windows",
        "Each budget is divided between history and windows. Eight shares are tried first, then the middle between the best and its \
         neighbours until these are near; most saved tokens win, among equals fewer bytes written.",
    );
    note(
        "modelled prefill",
        &format!(
            "Token t of a context costs {:.1} µs + {:.1} ns · t/1024, summed over what each request computes: a straight line through a \
             published measurement unless other prices were given (reprise::Prices names it). Queues and batches are not modelled.",
            price("token-ps") / 1e6,
            price("context-ps") / 1e3
        ),
    );
    note(
        "modelled loads",
        &format!(
            "Bytes at {:.2} GiB/s and {:.0} µs for each record, summed over what each request loads. Not taken off the prefill saved.",
            price("load-bytes-per-second") / f64::from(1 << 30),
            price("load-record-ns") / 1e3
        ),
    );
    note("written, read", "Payload bytes of records, all groups, over the whole trace.");
    note(
        "device writes a day",
        "Records written in whole 4 KiB pages, scaled from the time between the first arrival and the last to 24 hours; over the budget it \
         is the drive writes per day (DWPD) by which drives are rated. Tables of the store and the drive's own write amplification come on top.",
    );
    note("bound", "No online policy can save more at that budget. Where none is drawn, none was computed.");
    note(
        "sessions",
        "As the trace says. Where it does not, a prompt that repeats all complete blocks of an earlier one, the last of which that one \
         brought, goes on with its session.",
    );
    note("small differences", "Below 0.1 points of the prompt tokens two policies are taken for equal.");
    text + "</dl>\n</section>\n"
}
