//! What is said of figures made up for it.

use serde_json::Value;

use super::*;
use crate::{
    compare::{CellResults, UntypedFigures, html, split::Division},
    score::{GroupScore, Score},
};

/// Thousandths of the tokens that a policy gains at each budget, and the gibibytes it writes there; `None`: it fails.
type Row = (&'static str, [Option<(u64, u64)>; 3]);

const TOKENS: u64 = 1_000_000;

fn results(rows: &[Row], bounds: [Option<u64>; 3]) -> Results {
    let cell = |policy: usize, size: usize, figures: Option<(u64, u64)>| {
        let verdict = figures.ok_or_else(|| "it trapped".to_owned()).map(|(gained, gib)| {
            let history = GroupScore { written_bytes: gib << 30, device_bytes: gib << 30, ..GroupScore::default() };
            let score = Score {
                prompt_tokens: TOKENS,
                saved_tokens: gained * 1000,
                computed_tokens: TOKENS - gained * 1000,
                prefill_ns: 60_000_000_000,
                cold_prefill_ns: 90_000_000_000,
                trace_us: 86_400_000_000,
                history,
                ..Score::default()
            };
            Figures::Typed { score: Box::new(score), sessions: Default::default(), learned_permille: None }
        });
        CellResults { policy, size, division: Division::Searched, split: None, replays: 1, verdict }
    };
    let cells = rows.iter().enumerate().flat_map(|(policy, (_, figures))| {
        figures.iter().enumerate().map(move |(size, &figures)| cell(policy, size, figures))
    });
    let trace = TraceResults {
        name: "t".into(),
        format: "mooncake".into(),
        requests: 1,
        prompt_tokens: TOKENS,
        trace_us: 86_400_000_000,
        sessions: (1, false),
        long_sessions: 0,
        largest_sessions: Vec::new(),
        sizes: vec![1 << 30, 2 << 30, 4 << 30],
        bounds: bounds.map(|bound| bound.map(|thousandths| thousandths * 1000)).into(),
        policies: rows.iter().map(|(name, _)| (*name).to_owned()).collect(),
        hindsight: None,
        cells: cells.collect(),
    };
    Results { untyped: false, options: Value::Null, traces: vec![trace] }
}

fn sentences(rows: &[Row]) -> Vec<String> {
    let results = results(rows, [None; 3]);
    Advice::new(&results, &results.traces[0]).sentences()
}

const fn all(figures: [(u64, u64); 3]) -> [Option<(u64, u64)>; 3] {
    [Some(figures[0]), Some(figures[1]), Some(figures[2])]
}

#[test]
fn a_policy_that_loses_much_somewhere_is_not_recommended_for_what_it_wins_elsewhere() {
    let rows = [
        ("spiky", all([(300, 9), (400, 9), (500, 9)])),
        ("steady", all([(280, 5), (420, 5), (560, 5)])),
        ("poor", all([(100, 1), (110, 1), (120, 1)])),
    ];
    let said = sentences(&rows);
    assert_eq!(said[0], "Take steady: over these budgets it is never more than 2.00 points behind the best.");
    assert_eq!(
        said[1],
        "The ranking changes with the budget: at 1 GiB spiky leads, by 2.00 points; from 2 GiB to 4 GiB steady leads, by up to 6.00 \
         points at 4 GiB."
    );
    assert!(
        said[2].starts_with(
            "At 4 GiB, where the policies differ most, steady gains 56.00 % and writes 5.0 GiB; spiky gains"
        )
    );
}

#[test]
fn a_difference_of_nothing_is_not_sold_as_a_win() {
    let rows = [("a", all([(300, 9), (400, 9), (500, 9)])), ("b", all([(300, 3), (400, 9), (500, 9)]))];
    let said = sentences(&rows);
    assert_eq!(
        said[0],
        "Take b: no other gains more at any of these budgets. a is within 0.1 points of it everywhere; b writes least of them."
    );
    assert_eq!(said[1], "From 1 GiB to 4 GiB all are within 0.1 points, and the choice makes no difference in tokens.");
}

#[test]
fn writes_that_cost_little_to_spare_are_not_kept_from_the_reader() {
    let rows = [("a", all([(300, 10), (400, 10), (500, 10)])), ("b", all([(280, 9), (395, 2), (480, 1)]))];
    let said = sentences(&rows);
    assert!(
        said.contains(&"If writes matter more: b writes 80 % less at 2 GiB for 0.50 points less.".to_owned()),
        "{said:?}"
    );
}

#[test]
fn a_policy_that_failed_is_not_recommended_and_not_passed_over_in_silence() {
    let rows = [("a", [Some((900, 1)), None, None]), ("b", all([(300, 1), (400, 1), (500, 1)]))];
    let said = sentences(&rows);
    assert!(said[0].starts_with("Take b: over these budgets it is never more than 60.00 points behind"), "{said:?}");
    assert_eq!(said.last().unwrap(), "a failed at 2 GiB, 4 GiB: it trapped. It has no figures there.");
    let said = sentences(&[("a", [None; 3])]);
    assert_eq!(said[0], "No policy has figures at every budget: there is none to recommend.");
}

#[test]
fn a_bound_is_not_left_out() {
    let results = results(&[("a", all([(300, 1), (400, 1), (500, 1)]))], [Some(310), None, Some(650)]);
    let said = Advice::new(&results, &results.traces[0]).sentences();
    assert!(
        said.contains(&"Room is left most at 4 GiB: the bound for any policy is 65.00 %, a gains 50.00 %.".to_owned()),
        "{said:?}"
    );
    let report = html(&results);
    assert!(
        report.contains("<path class=\"bound\" d=\"M")
            && report.contains("<th scope=\"row\">(bound)</th><td>31.00</td><td>-</td>")
    );
}

#[test]
fn what_hindsight_finds_is_not_recommended() {
    let mut results =
        results(&[("lru", all([(1, 1), (2, 1), (3, 1)])), ("optimal", all([(1, 1), (2, 1), (3, 1)]))], [None; 3]);
    results.untyped = true;
    results.traces[0].hindsight = Some(1);
    results.traces[0].sizes = vec![10, 20, 40];
    for cell in &mut results.traces[0].cells {
        let found_tokens = if cell.policy == 1 { 400 } else { 300 };
        let figures =
            UntypedFigures { measured_tokens: 1000, found_tokens, underfilled: false, written_blocks: Some(7_000) };
        cell.verdict = Ok(Figures::Untyped(figures));
    }
    let said = Advice::new(&results, &results.traces[0]).sentences();
    assert_eq!(said[0], "lru is the only policy compared.");
    assert!(said.iter().any(|said| said.contains("optimal (hindsight) is 40.00 %, lru gains 30.00 %")), "{said:?}");
    let report = html(&results);
    assert!(report.contains("Blocks written over the trace") && report.contains("7,000 blocks"));
    assert_eq!(report.matches("<g class=\"series").count(), 2 + 3, "two charts of one policy, three frontiers");
}

#[test]
fn loads_that_take_longer_than_what_they_spare_are_not_passed_over() {
    let mut results = results(&[("a", all([(300, 1), (400, 1), (500, 1)]))], [None; 3]);
    let said = |results: &Results| Advice::new(results, &results.traces[0]).sentences().join(" ");
    assert!(
        said(&results).contains("60.0 s of prefill instead of 90.0 s, 0 ms of loads. At the pace"),
        "{}",
        said(&results)
    );
    for cell in &mut results.traces[0].cells {
        if let Ok(Figures::Typed { score, .. }) = &mut cell.verdict {
            score.load_ns = 30_000_000_001;
        }
    }
    assert!(said(&results).contains("The loads take longer than the prefill they spare"), "{}", said(&results));
}
