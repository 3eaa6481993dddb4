//! Curves over budgets, as SVG.

use std::fmt::Write;

use super::{
    axis::{Axis, Unit},
    series::{class, dash, marker},
    text::escaped,
};

pub(super) const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 52.0;
/// Between the middles of two labels below an axis, at least.
const LABEL_GAP: f64 = 62.0;

/// A drawing on its way.
pub(super) struct Plot {
    out: String,
}

/// One policy.
pub(super) struct Curve<'a> {
    /// Its index: how it looks.
    pub policy: usize,
    /// What it is called.
    pub name: &'a str,
    /// A value for each budget.
    pub values: Vec<Option<f64>>,
}

/// What a chart of curves shows.
pub(super) struct Chart<'a> {
    /// Unique in the report.
    pub id: String,
    /// Above it.
    pub title: String,
    /// What is to be seen, in words.
    pub description: String,
    /// What stands below the axis of budgets.
    pub below: &'a str,
    /// Budgets, ascending.
    pub sizes: &'a [u64],
    /// As people read them.
    pub size_names: Vec<String>,
    /// The policies.
    pub curves: Vec<Curve<'a>>,
    /// What none can be above.
    pub bound: Vec<Option<f64>>,
    /// Of the values.
    pub unit: Unit,
    /// A value as people read it.
    pub says: &'a dyn Fn(f64) -> String,
}

impl Plot {
    /// Begins a drawing that says what it is.
    pub fn begin(id: &str, title: &str, description: &str, height: f64) -> Self {
        let mut out = String::new();
        let _ = writeln!(
            out,
            "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
             <title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>",
            escaped(title),
            escaped(description)
        );
        Self { out }
    }

    pub fn push(&mut self, markup: &str) {
        self.out.push_str(markup);
    }

    pub fn text(&mut self, (x, y): (f64, f64), anchor: &str, class: &str, text: &str) {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let _ = writeln!(
            self.out,
            "<text{class} x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
            escaped(text)
        );
    }

    /// Lines and labels at the ticks of the upright axis.
    pub fn upright(&mut self, axis: &Axis) {
        for (value, label) in &axis.ticks {
            let y = y(axis.place(*value));
            let _ = writeln!(self.out, "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{:.1}\"/>", WIDTH - RIGHT);
            self.text((LEFT - 7.0, y + 4.0), "end", "", label);
        }
    }

    /// Labels at places of the lower axis, as many as there is room for, and what it shows.
    pub fn level(&mut self, ticks: impl Iterator<Item = (f64, String)>, below: &str) {
        let mut last = f64::NEG_INFINITY;
        for (place, label) in ticks {
            let x = x(place);
            let _ = writeln!(self.out, "<path class=\"grid\" d=\"M{x:.1} {:.1}v5\"/>", HEIGHT - BOTTOM);
            if x - last >= LABEL_GAP {
                last = x;
                self.text((x, HEIGHT - BOTTOM + 21.0), "middle", "", &label);
            }
        }
        self.text(((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 8.0), "middle", "", below);
    }

    /// The drawing.
    pub fn end(self) -> String {
        self.out + "</svg>\n"
    }
}

/// The height of drawings with two axes.
pub(super) const fn height() -> f64 {
    HEIGHT
}

/// A place on the lower axis, in the units of the drawing.
pub(super) fn x(place: f64) -> f64 {
    LEFT + 10.0 + place * (WIDTH - LEFT - RIGHT - 30.0)
}

/// A place on the upright axis.
pub(super) fn y(place: f64) -> f64 {
    HEIGHT - BOTTOM - place * (HEIGHT - TOP - BOTTOM)
}

impl Chart<'_> {
    /// The chart as a figure.
    pub fn figure(&self) -> String {
        let values = self.curves.iter().flat_map(|curve| &curve.values).chain(&self.bound);
        let axis = Axis::new(values.filter_map(|value| *value), self.unit);
        let mut plot = Plot::begin(&self.id, &self.title, &self.description, HEIGHT);
        plot.upright(&axis);
        let places = self.places();
        let below = format!("{}{}", self.below, axis.remark());
        plot.level(places.iter().copied().zip(self.size_names.iter().cloned()), &below);
        let at = |values: &[Option<f64>]| -> Vec<Option<(f64, f64)>> {
            values
                .iter()
                .zip(&places)
                .map(|(value, &place)| value.map(|value| (x(place), y(axis.place(value)))))
                .collect()
        };
        if self.bound.iter().any(Option::is_some) {
            plot.push(&format!("<path class=\"bound\" d=\"{}\"/>\n", path(&at(&self.bound))));
        }
        for curve in &self.curves {
            let points = at(&curve.values);
            plot.push(&format!("<g class=\"series {}\">", class(curve.policy)));
            plot.push(&format!("<path class=\"line\" d=\"{}\"{}/>", path(&points), dash(curve.policy)));
            for (index, point) in points.iter().enumerate() {
                let (Some((x, y)), Some(value)) = (point, curve.values[index]) else { continue };
                let says = format!("{} at {}: {}", curve.name, self.size_names[index], (self.says)(value));
                plot.push(&marker(curve.policy, *x, *y, &says));
            }
            plot.push("</g>\n");
        }
        format!("<figure>\n<figcaption>{}</figcaption>\n{}</figure>\n", escaped(&self.title), plot.end())
    }

    /// Budgets by their logarithm: each doubling is a step.
    fn places(&self) -> Vec<f64> {
        let log = |size: u64| (size.max(1) as f64).log2();
        let ends = self.sizes.first().zip(self.sizes.last()).map(|(&first, &last)| (log(first), log(last)));
        let (first, last) = ends.unwrap_or((0.0, 0.0));
        let place = |&size: &u64| if last > first { (log(size) - first) / (last - first) } else { 0.5 };
        self.sizes.iter().map(place).collect()
    }
}

/// A line through the points that are there.
fn path(points: &[Option<(f64, f64)>]) -> String {
    let mut path = String::new();
    let mut pen = 'M';
    for point in points {
        match point {
            Some((x, y)) => {
                let _ = write!(path, "{pen}{x:.1} {y:.1}");
                pen = 'L';
            }
            // What is not known is not drawn across.
            None => pen = 'M',
        }
    }
    path
}
