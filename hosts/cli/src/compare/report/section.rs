//! The part of the report on one trace.

use std::fmt::Write;

use super::{
    axis::Unit,
    chart::{Chart, Curve},
    frontier::{self, Point},
    series::legend,
    sessions,
    tables::{folded, table},
    text::escaped,
};
use crate::{
    compare::{
        Advice, Figures, Results, TraceResults,
        results::points,
        table::{Entry, FAILED, Table},
    },
    figures::{grouped, human_bytes, seconds},
};

/// Everything about one trace.
pub(super) fn section(results: &Results, trace: &TraceResults, index: usize) -> String {
    let mut out = format!("<section id=\"trace-{index}\">\n<h2>{}</h2>\n", escaped(&trace.name));
    // Writing to a string does not fail.
    let _ = writeln!(out, "<p class=\"lead\">{}.</p>", escaped(&trace.summary(results)));
    let advice: String = Advice::new(results, trace)
        .sentences()
        .iter()
        .map(|sentence| format!("<p>{}</p>\n", escaped(sentence)))
        .collect();
    let _ = write!(out, "<div class=\"advice\">\n{advice}</div>\n");
    let shown: Vec<(usize, &str)> = trace.online().map(|policy| (policy, trace.policies[policy].as_str())).collect();
    out += &legend(&shown, trace.ceiling_name());
    out += "<div class=\"charts\">\n";
    out += &gains(results, trace, index).figure();
    if let Some(writes) = writes(results, trace, index) {
        out += &writes.figure();
    }
    out += "</div>\n";
    out += &table(&trace.gains(results));
    let more: Vec<Table> =
        [trace.writes(results), trace.prefill(results), trace.shares(results)].into_iter().flatten().collect();
    if !more.is_empty() {
        out += &folded("Written, modelled prefill and share of windows as tables", &more);
    }
    out += &frontiers(results, trace, index);
    out += &sessions::view(results, trace, index, trace.contested());
    if !results.untyped {
        out += "<h3>All figures</h3>\n";
        out += &(0..trace.sizes.len())
            .map(|size| folded(&results.size(trace.sizes[size]), &[everything(results, trace, size)]))
            .collect::<String>();
    }
    out + "</section>\n"
}

fn curves<'a>(trace: &'a TraceResults, value: impl Fn(&Figures) -> Option<f64>) -> Vec<Curve<'a>> {
    let values = |policy: usize| (0..trace.sizes.len()).map(|size| value(trace.figures(policy, size)?)).collect();
    trace.online().map(|policy| Curve { policy, name: &trace.policies[policy], values: values(policy) }).collect()
}

fn size_names(results: &Results, trace: &TraceResults) -> Vec<String> {
    trace.sizes.iter().map(|&size| results.size(size)).collect()
}

fn gains<'a>(results: &Results, trace: &'a TraceResults, index: usize) -> Chart<'a> {
    let whole = trace.whole_tokens();
    let best = (0..trace.sizes.len()).filter_map(|size| Some((size, trace.best_gain(size)?)));
    let best = best.map(|(size, gain)| format!("{:.1} % at {}", points(gain, whole), results.size(trace.sizes[size])));
    Chart {
        id: format!("gain-{index}"),
        title: format!("Tokens {} against the budget, % of the prompts", results.gain()),
        description: format!("A curve for each policy. The best: {}.", best.collect::<Vec<_>>().join(", ")),
        below: if results.untyped { "blocks" } else { "budget" },
        sizes: &trace.sizes,
        size_names: size_names(results, trace),
        curves: curves(trace, |figures| Some(points(figures.gained_tokens(), figures.whole_tokens()))),
        bound: trace.ceiling().iter().map(|bound| bound.map(|bound| points(bound, whole))).collect(),
        unit: Unit::Percent,
        says: &|percent| format!("{percent:.2} %"),
    }
}

fn writes<'a>(results: &Results, trace: &'a TraceResults, index: usize) -> Option<Chart<'a>> {
    let curves = curves(trace, |figures| figures.written().map(|written| written as f64));
    if curves.iter().all(|curve| curve.values.iter().all(Option::is_none)) {
        return None;
    }
    let (what, says): (_, &'static dyn Fn(f64) -> String) = match results.untyped {
        true => ("Blocks", &|blocks| format!("{} blocks", grouped(blocks as u64))),
        false => ("Bytes", &|bytes| human_bytes(bytes as u64)),
    };
    Some(Chart {
        id: format!("writes-{index}"),
        title: format!("{what} written over the trace against the budget"),
        description: "A curve for each policy; lower is better. The figures are in the table below.".to_owned(),
        below: if results.untyped { "blocks" } else { "budget" },
        sizes: &trace.sizes,
        size_names: size_names(results, trace),
        curves,
        bound: Vec::new(),
        unit: Unit::Written { bytes: !results.untyped },
        says,
    })
}

/// A frontier for each budget.
fn frontiers(results: &Results, trace: &TraceResults, index: usize) -> String {
    let mut figures = String::new();
    let mut rows = Vec::new();
    let whole = trace.whole_tokens();
    for (size, &budget) in trace.sizes.iter().enumerate() {
        let point = |policy: usize| {
            let figures = trace.figures(policy, size)?;
            let (written, computed) = (figures.written()?, figures.computed_tokens());
            Some(Point { policy, name: &trace.policies[policy], written, computed })
        };
        let points: Vec<Point<'_>> = trace.online().filter_map(point).collect();
        if points.is_empty() {
            continue;
        }
        let budget = results.size(budget);
        let id = format!("frontier-{index}-{size}");
        figures +=
            &frontier::figure(&id, &budget, &points, whole, !results.untyped, &|written| results.amount(written));
        for (point, best) in points.iter().zip(frontier::optimal(&points)) {
            let replayed = trace
                .figures(point.policy, size)
                .and_then(|figures| figures.score())
                .map(|score| score.replayed_tokens);
            rows.push(vec![
                Entry::plain(format!("{}, {budget}", point.name)),
                Entry::plain(results.amount(point.written)),
                Entry::plain(grouped(point.computed)),
                Entry::plain(replayed.map_or("-".to_owned(), grouped)),
                Entry { text: if best { "unbeaten" } else { "beaten" }.to_owned(), best },
            ]);
        }
    }
    if figures.is_empty() {
        return String::new();
    }
    let header = ["policy, budget", "written", "tokens computed", "of these recomputed", ""].map(str::to_owned).into();
    let table = Table { title: "What is computed and written".into(), header, rows };
    format!(
        "<h3>Cost frontier</h3>\n<p class=\"remark\">Tokens computed (of these, the replays that rebuild windows are in the table) \
         against what is written: lower left is better. Ringed: no other policy is as good in both and better in one.</p>\n\
         <div class=\"charts\">\n{figures}</div>\n{}",
        folded("Figures of the frontiers", &[table])
    )
}

/// Every figure at one budget.
fn everything(results: &Results, trace: &TraceResults, size: usize) -> Table {
    type Column = (&'static str, fn(&crate::score::Score, u64) -> String);
    const COLUMNS: [Column; 22] = [
        ("saved", |score, _| grouped(score.saved_tokens)),
        ("matched", |score, _| grouped(score.matched_tokens)),
        ("adopted", |score, _| grouped(score.adopted_tokens)),
        ("recomputed", |score, _| grouped(score.replayed_tokens)),
        ("computed", |score, _| grouped(score.computed_tokens)),
        ("hits", |score, _| grouped(score.hits)),
        ("prefill", |score, _| time(score.prefill_ns)),
        ("prefill saved", |score, _| time(score.saved_prefill_ns())),
        ("loads", |score, _| time(score.load_ns)),
        ("history written", |score, _| human_bytes(score.history.written_bytes)),
        ("windows written", |score, _| human_bytes(score.window.written_bytes)),
        ("drafts written", |score, _| human_bytes(score.draft.written_bytes)),
        ("history read", |score, _| human_bytes(score.history.loaded_bytes)),
        ("windows read", |score, _| human_bytes(score.window.loaded_bytes)),
        ("drafts read", |score, _| human_bytes(score.draft.loaded_bytes)),
        ("device writes a day", |score, _| score.device_bytes_per_day().map_or("-".to_owned(), human_bytes)),
        ("DWPD", |score, budget| {
            score
                .drive_writes_per_day_milli(budget)
                .map_or("-".to_owned(), |milli| format!("{:.2}", milli as f64 / 1e3))
        }),
        ("blocks evicted", |score, _| grouped(score.history.evicted_records)),
        ("windows evicted", |score, _| grouped(score.window.evicted_records)),
        ("windows orphaned", |score, _| grouped(score.window.orphaned_records)),
        ("blocks refused", |score, _| grouped(score.refused_blocks)),
        ("host's evictions", |score, _| grouped(score.host_evictions)),
    ];
    let budget = trace.sizes[size];
    let header =
        ["policy", "share of windows"].into_iter().chain(COLUMNS.map(|(name, _)| name)).map(str::to_owned).collect();
    let row = |policy: usize| {
        let split = trace.cell(policy, size).and_then(|cell| cell.split);
        let share = split.map_or("-".to_owned(), |split| format!("{:.1} %", f64::from(split.window_permille) / 10.0));
        let score = trace.figures(policy, size).and_then(Figures::score);
        let entry = |(_, column): Column| Entry::plain(score.map_or(FAILED.to_owned(), |score| column(score, budget)));
        [Entry::plain(&trace.policies[policy]), Entry::plain(share)].into_iter().chain(COLUMNS.map(entry)).collect()
    };
    Table {
        title: format!("All figures at {}; tokens, modelled times, payload bytes", results.size(budget)),
        header,
        rows: (0..trace.policies.len()).map(row).collect(),
    }
}

fn time(nanoseconds: u64) -> String {
    seconds(nanoseconds as f64 / 1e9)
}
