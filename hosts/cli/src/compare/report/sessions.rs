//! What each session is spared: a heat map of the largest, and how the share is spread over all.

use super::{
    chart::{Plot, WIDTH},
    series::class,
    text::escaped,
};
use crate::compare::{
    QUANTILES, Results, TraceResults,
    results::points,
    table::{Entry, Table},
};
use crate::figures::{grouped, percent};

const ROW: f64 = 26.0;
/// Rows of names and cells.
const NAME: f64 = 18.0;
const MARGIN: f64 = 8.0;

/// The view of sessions at one budget; empty where there is none.
pub(super) fn view(results: &Results, trace: &TraceResults, index: usize, size: usize) -> String {
    let of = |policy: usize| trace.figures(policy, size).and_then(|figures| figures.sessions());
    let policies: Vec<usize> = trace.online().filter(|&policy| of(policy).is_some()).collect();
    if policies.is_empty() || trace.largest_sessions.is_empty() {
        return String::new();
    }
    let budget = results.size(trace.sizes[size]);
    let mut text = format!(
        "<h3>By session, at {}</h3>\n<p class=\"remark\">The budget at which the policies differ most. {} sessions, {} of them of more \
         than one request.</p>\n<div class=\"charts\">\n",
        escaped(&budget),
        grouped(trace.sessions.0 as u64),
        grouped(trace.long_sessions as u64)
    );
    text += &heat(trace, index, &policies, size);
    text += &spread(trace, index, &policies, size);
    text += "</div>\n";
    text + &super::tables::folded(
        "Figures by session",
        &[largest_table(trace, &policies, size), spread_table(trace, &policies, size)],
    )
}

fn share(trace: &TraceResults, policy: usize, size: usize, session: usize) -> (u64, u64) {
    let saved = trace.figures(policy, size).and_then(|figures| figures.sessions());
    let saved = saved.and_then(|sessions| sessions.largest_saved_tokens.get(session).copied()).unwrap_or(0);
    (saved, trace.largest_sessions[session].0)
}

fn heat(trace: &TraceResults, index: usize, policies: &[usize], size: usize) -> String {
    let count = trace.largest_sessions.len();
    let title = format!("Saved share of the {count} largest sessions");
    let description =
        "A row for each policy, a cell for each session from the largest on the left; the darker, the more is saved.";
    let row = ROW + NAME;
    let height = policies.len() as f64 * row + 4.0;
    let width = (WIDTH - 2.0 * MARGIN) / count as f64;
    let mut plot = Plot::begin(&format!("heat-{index}"), &title, description, height);
    for (place, &policy) in policies.iter().enumerate() {
        let top = place as f64 * row;
        plot.text((MARGIN, top + NAME - 4.0), "start", "name", &trace.policies[policy]);
        plot.push("<g class=\"series\">");
        for session in 0..count {
            let (saved, whole) = share(trace, policy, size, session);
            let says = format!(
                "{}, session {}: {} of {} tokens saved",
                trace.policies[policy],
                session + 1,
                grouped(saved),
                grouped(whole)
            );
            plot.push(&format!(
                "<rect class=\"heat\" x=\"{:.2}\" y=\"{:.1}\" width=\"{width:.2}\" height=\"{:.1}\" fill-opacity=\"{:.3}\"><title>{}</title></rect>",
                MARGIN + session as f64 * width,
                top + NAME,
                ROW - 4.0,
                points(saved, whole) / 100.0,
                escaped(&says)
            ));
        }
        plot.push(&format!(
            "<rect class=\"frame\" x=\"{MARGIN}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/></g>\n",
            top + NAME,
            WIDTH - 2.0 * MARGIN,
            ROW - 4.0
        ));
    }
    let swatches: String = [0, 25, 50, 75, 100]
        .iter()
        .map(|percent| {
            let opacity = f64::from(*percent) / 100.0;
            format!(
                "<li><svg class=\"swatch\" viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect class=\"heat\" width=\"10\" height=\"10\" \
                 fill-opacity=\"{opacity}\"/><rect class=\"frame\" width=\"10\" height=\"10\"/></svg>{percent} %</li>\n"
            )
        })
        .collect();
    format!(
        "<figure>\n<figcaption>{}</figcaption>\n{}<ul class=\"legend\">\n{swatches}</ul>\n</figure>\n",
        escaped(&title),
        plot.end()
    )
}

fn spread(trace: &TraceResults, index: usize, policies: &[usize], size: usize) -> String {
    let ppm = |policy: usize| {
        let sessions = trace.figures(policy, size)?.sessions()?;
        <[u32; QUANTILES.len()]>::try_from(sessions.saved_ppm.as_slice()).ok()
    };
    let rows: Vec<(usize, [u32; QUANTILES.len()])> =
        policies.iter().filter_map(|&policy| Some((policy, ppm(policy)?))).collect();
    if rows.is_empty() {
        return String::new();
    }
    let title =
        format!("Saved share over the {} sessions of more than one request", grouped(trace.long_sessions as u64));
    let description = "A row for each policy: the line spans the middle 80 % of the sessions, the box the middle half, the bar is the median.";
    let row = ROW + NAME;
    let bottom = rows.len() as f64 * row;
    let mut plot = Plot::begin(&format!("spread-{index}"), &title, description, bottom + 24.0);
    let left = MARGIN + 6.0;
    let at = |ppm: u32| left + f64::from(ppm) / 1e6 * (WIDTH - 2.0 * left);
    for percent in [0_u32, 25, 50, 75, 100] {
        let x = at(percent * 10_000);
        plot.push(&format!("<path class=\"grid\" d=\"M{x:.1} 0V{:.1}\"/>\n", bottom + 4.0));
        let anchor = match percent {
            0 => "start",
            100 => "end",
            _ => "middle",
        };
        plot.text((x, bottom + 19.0), anchor, "", &format!("{percent} %"));
    }
    for (place, (policy, [low, lower, median, upper, high])) in rows.iter().enumerate() {
        let top = place as f64 * row;
        plot.text((left, top + NAME - 4.0), "start", "name", &trace.policies[*policy]);
        let (y, middle) = (top + NAME + 2.0, top + NAME + 2.0 + (ROW - 10.0) / 2.0);
        plot.push(&format!(
            "<g class=\"series {}\"><path class=\"whisker\" d=\"M{:.1} {middle:.1}H{:.1}\"/>\
             <rect class=\"box\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>\
             <path class=\"median\" d=\"M{:.1} {y:.1}v{:.1}\"/></g>\n",
            class(*policy),
            at(*low),
            at(*high),
            at(*lower),
            (at(*upper) - at(*lower)).max(0.5),
            ROW - 10.0,
            at(*median),
            ROW - 10.0
        ));
    }
    format!("<figure>\n<figcaption>{}</figcaption>\n{}</figure>\n", escaped(&title), plot.end())
}

fn largest_table(trace: &TraceResults, policies: &[usize], size: usize) -> Table {
    let names = policies.iter().map(|&policy| trace.policies[policy].clone());
    let header = ["session", "requests", "prompt tokens"].map(str::to_owned).into_iter().chain(names).collect();
    let row = |(session, &(tokens, requests)): (usize, &(u64, u32))| {
        let shares = policies.iter().map(|&policy| {
            let (saved, whole) = share(trace, policy, size, session);
            Entry::plain(percent(saved, whole))
        });
        let facts = [(session + 1).to_string(), grouped(requests.into()), grouped(tokens)].map(Entry::plain);
        facts.into_iter().chain(shares).collect()
    };
    let rows = trace.largest_sessions.iter().enumerate().map(row).collect();
    Table { title: "Saved share of the largest sessions".into(), header, rows }
}

fn spread_table(trace: &TraceResults, policies: &[usize], size: usize) -> Table {
    let names = QUANTILES.iter().map(|percent| format!("{percent} % are below"));
    let header = ["policy".to_owned()].into_iter().chain(names).collect();
    let row = |&policy: &usize| {
        let ppm =
            trace.figures(policy, size).and_then(|figures| figures.sessions()).map(|sessions| &sessions.saved_ppm);
        let shares = (0..QUANTILES.len()).map(|index| {
            let share = ppm.and_then(|ppm| ppm.get(index));
            Entry::plain(share.map_or("-".to_owned(), |&ppm| format!("{:.1} %", f64::from(ppm) / 1e4)))
        });
        [Entry::plain(&trace.policies[policy])].into_iter().chain(shares).collect()
    };
    let rows = policies.iter().map(row).collect();
    Table { title: "Saved share over the sessions of more than one request".into(), header, rows }
}
