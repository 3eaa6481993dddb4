//! Axes: from values to places, with ticks at round numbers.

/// Ticks that an axis has at most.
const MOST_TICKS: f64 = 6.0;
/// Largest over smallest value from which an axis is logarithmic, where it may be.
const LOGARITHMIC_FROM: f64 = 8.0;

/// What the values of an axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Percent.
    Percent,
    /// Bytes, or blocks without types.
    Written {
        /// Bytes.
        bytes: bool,
    },
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    least: f64,
    most: f64,
    logarithmic: bool,
    /// Values and what stands beside them.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis for these values.
    pub fn new(values: impl Iterator<Item = f64> + Clone, unit: Unit) -> Self {
        let most = values.clone().fold(0.0, f64::max);
        let least = values.fold(most, f64::min).max(0.0);
        let (scale, name) = unit.scale(most);
        if matches!(unit, Unit::Written { .. }) && least > 0.0 && most / least >= LOGARITHMIC_FROM {
            return Self::logarithmic(least, most, unit);
        }
        // Values that are all near their top are told apart only without what lies below them.
        let base = if least > most / 2.0 { least } else { 0.0 };
        let step = round_step((most - base) / scale);
        let first = (base / scale / step).floor();
        let last = ((most / scale / step).ceil()).max(first + 1.0);
        let digits = (-step.log10().floor()).max(0.0) as usize;
        let count = (last - first) as usize;
        let ticks = (0..=count).map(|index| (first + index as f64) * step);
        let ticks: Vec<(f64, String)> = ticks.map(|tick| (tick * scale, format!("{tick:.digits$}{name}"))).collect();
        let ends = ticks.first().zip(ticks.last()).map_or((0.0, 1.0), |(first, last)| (first.0, last.0));
        Self { least: ends.0, most: ends.1, logarithmic: false, ticks }
    }

    fn logarithmic(least: f64, most: f64, unit: Unit) -> Self {
        let (first, last) = (least.log10().floor() as i32, most.log10().ceil() as i32);
        // Decades of the unit of the largest, so that ticks are round in it.
        let (scale, name) = unit.scale(most);
        let decades = (first - 12..=last + 12).map(|decade| 10_f64.powi(decade) * scale);
        let low = decades.clone().filter(|&tick| tick <= least).fold(0.0, f64::max);
        let high = decades.clone().filter(|&tick| tick >= most).fold(f64::INFINITY, f64::min);
        let within = decades.filter(|&tick| tick >= low && tick <= high);
        let ticks = within.map(|tick| (tick, format!("{}{name}", tick / scale))).collect();
        Self { least: low, most: high, logarithmic: true, ticks }
    }

    /// Where a value lies, from 0 to 1.
    pub fn place(&self, value: f64) -> f64 {
        let place = |value: f64| if self.logarithmic { value.max(self.least).log10() } else { value };
        let (least, most) = (place(self.least), place(self.most));
        ((place(value) - least) / (most - least)).clamp(0.0, 1.0)
    }

    /// What a reader has to know of an upright axis, behind the title of the other.
    pub fn remark(&self) -> &'static str {
        match (self.logarithmic, self.least > 0.0) {
            (true, _) => " (upright axis logarithmic)",
            (false, true) => " (upright axis not from 0)",
            (false, false) => "",
        }
    }

    /// Whether equal steps are equal factors.
    pub fn is_logarithmic(&self) -> bool {
        self.logarithmic
    }
}

impl Unit {
    /// What a tick is counted in, and its name.
    fn scale(self, most: f64) -> (f64, &'static str) {
        match self {
            Self::Percent => (1.0, " %"),
            Self::Written { bytes: true } => {
                let units = [(1e15, " PiB", 50), (1e12, " TiB", 40), (1e9, " GiB", 30), (1e6, " MiB", 20)];
                let unit = units.iter().find(|(from, ..)| most >= *from);
                unit.map_or((1024.0, " KiB"), |&(_, name, bits)| ((1_u64 << bits) as f64, name))
            }
            Self::Written { bytes: false } if most >= 1e6 => (1e6, " M"),
            Self::Written { bytes: false } if most >= 1e3 => (1e3, " k"),
            Self::Written { bytes: false } => (1.0, ""),
        }
    }
}

/// A step of 1, 2 or 5 of some power of ten that divides `span` into few parts.
fn round_step(span: f64) -> f64 {
    if span <= 0.0 {
        return 1.0;
    }
    let rough = span / (MOST_TICKS - 1.0);
    let power = 10_f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|&step| step >= rough).unwrap_or(rough)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_lies_outside_its_axis() {
        let gib = f64::from(1 << 30);
        for (values, unit, labels) in [
            (vec![3.0, 41.2], Unit::Percent, vec!["0 %", "10 %", "20 %", "30 %", "40 %", "50 %"]),
            (vec![95.4, 96.1], Unit::Percent, vec!["95.4 %", "95.6 %", "95.8 %", "96.0 %", "96.2 %"]),
            (vec![0.0], Unit::Percent, vec!["0 %", "1 %"]),
            (vec![7.0, 7.0], Unit::Percent, vec!["7 %", "8 %"]),
            (
                vec![2.0 * gib, 9.0 * gib],
                Unit::Written { bytes: true },
                vec!["0 GiB", "2 GiB", "4 GiB", "6 GiB", "8 GiB", "10 GiB"],
            ),
            (vec![2.0 * gib, 90.0 * gib], Unit::Written { bytes: true }, vec!["1 GiB", "10 GiB", "100 GiB"]),
            (vec![1500.0, 400.0], Unit::Written { bytes: false }, vec!["0.0 k", "0.5 k", "1.0 k", "1.5 k"]),
        ] {
            let axis = Axis::new(values.iter().copied(), unit);
            assert_eq!(axis.ticks.iter().map(|(_, label)| label.as_str()).collect::<Vec<_>>(), labels, "{values:?}");
            for value in values {
                assert!((axis.least..=axis.most).contains(&value), "{value} in {axis:?}");
            }
            assert!((axis.place(axis.least), axis.place(axis.most)) == (0.0, 1.0));
        }
    }
}
