//! What a saved token costs in writes: each policy as a point, those that no other beats in both marked.

use super::{
    axis::{Axis, Unit},
    chart::{Plot, height, x, y},
    series::{class, marker},
    text::escaped,
};

/// A policy at one budget.
#[derive(Clone, Debug)]
pub(super) struct Point<'a> {
    pub policy: usize,
    pub name: &'a str,
    /// Bytes, or blocks without types.
    pub written: u64,
    /// Tokens that are computed in spite of the cache.
    pub computed: u64,
}

/// Which of the points no other beats: none writes as little or less and computes as little or less, one of the two truly less.
pub(super) fn optimal(points: &[Point<'_>]) -> Vec<bool> {
    let beats = |a: &Point<'_>, b: &Point<'_>| {
        a.written <= b.written && a.computed <= b.computed && (a.written, a.computed) != (b.written, b.computed)
    };
    points.iter().map(|point| !points.iter().any(|other| beats(other, point))).collect()
}

/// The frontier of one budget as a figure.
pub(super) fn figure(
    id: &str,
    budget: &str,
    points: &[Point<'_>],
    whole: u64,
    bytes: bool,
    amount: &dyn Fn(u64) -> String,
) -> String {
    let percent = |point: &Point<'_>| super::super::results::points(point.computed, whole);
    let across = Axis::new(points.iter().map(|point| point.written as f64), Unit::Written { bytes });
    let up = Axis::new(points.iter().map(percent), Unit::Percent);
    let best = optimal(points);
    let names: Vec<&str> = points.iter().zip(&best).filter(|(_, best)| **best).map(|(point, _)| point.name).collect();
    let title = format!("Computed against written at {budget}");
    let description =
        format!("A point for each policy; lower left is better. No other beats {} in both.", names.join(", "));
    let mut plot = Plot::begin(id, &title, &description, height());
    plot.upright(&up);
    let ticks = across.ticks.iter().map(|(value, label)| (across.place(*value), label.clone()));
    let logarithmic = if across.is_logarithmic() { ", logarithmic" } else { "" };
    plot.level(ticks, &format!("written over the trace{logarithmic}{}", up.remark()));
    let place = |point: &Point<'_>| (x(across.place(point.written as f64)), y(up.place(percent(point))));
    let mut front: Vec<&Point<'_>> =
        points.iter().zip(&best).filter(|(_, best)| **best).map(|(point, _)| point).collect();
    front.sort_by_key(|point| (point.written, point.computed));
    if front.len() > 1 {
        let steps = front.iter().enumerate().map(|(index, point)| {
            let (x, y) = place(point);
            if index == 0 { format!("M{x:.1} {y:.1}") } else { format!("H{x:.1}V{y:.1}") }
        });
        plot.push(&format!("<path class=\"front\" d=\"{}\"/>\n", steps.collect::<String>()));
    }
    for (point, best) in points.iter().zip(&best) {
        let (x, y) = place(point);
        let says =
            format!("{}: computes {:.2} % of the tokens, writes {}", point.name, percent(point), amount(point.written));
        plot.push(&format!("<g class=\"series {}\">{}", class(point.policy), marker(point.policy, x, y, &says)));
        if *best {
            plot.push(&format!("<circle class=\"ring\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"8\"/>"));
        }
        plot.push("</g>\n");
    }
    format!(
        "<figure>\n<figcaption>{}: tokens computed, % of the prompts</figcaption>\n{}</figure>\n",
        escaped(budget),
        plot.end()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_is_beaten_in_both_is_not_on_the_frontier() {
        let point = |written, computed| Point { policy: 0, name: "", written, computed };
        let points = [point(5, 5), point(6, 5), point(5, 6), point(1, 9), point(9, 1), point(5, 5), point(2, 9)];
        assert_eq!(optimal(&points), [true, false, false, true, true, true, false]);
    }
}
