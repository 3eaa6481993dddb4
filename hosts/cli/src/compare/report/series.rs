//! How policies look: colours that people with any colour vision tell apart, and a marker and a dash besides.

use std::fmt::Write;

use super::text::escaped;

/// Colours for light and for dark ground, after the palette of Okabe and Ito, set darker and lighter so that each has three times the
/// luminance of its ground or a third of it (WCAG 2.2, 1.4.11).
const COLOURS: [(&str, &str); 10] = [
    ("#0072b2", "#56b4e9"),
    ("#c04f00", "#ff9a57"),
    ("#007a5a", "#2ed1a2"),
    ("#a8487f", "#e8a2cb"),
    ("#8f6a00", "#f0c13c"),
    ("#3b3f46", "#d8dce2"),
    ("#6a4fb3", "#b8a4f2"),
    ("#a13030", "#ff8f8f"),
    ("#4f7f00", "#a3d94f"),
    ("#007d8a", "#5fd3e0"),
];
const DASHES: [&str; 4] = ["", "7 3", "2 3", "9 3 2 3"];
const MARKERS: usize = 6;

/// The class by which a policy is coloured.
pub(super) fn class(policy: usize) -> String {
    format!("c{}", policy % COLOURS.len())
}

/// The dash of its line.
pub(super) fn dash(policy: usize) -> String {
    match DASHES[(policy + policy / COLOURS.len()) % DASHES.len()] {
        "" => String::new(),
        dash => format!(" stroke-dasharray=\"{dash}\""),
    }
}

/// Its marker around a place, with what it says when pointed at.
pub(super) fn marker(policy: usize, x: f64, y: f64, says: &str) -> String {
    let r = 4.2;
    let title = if says.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(says)) };
    let polygon = |corners: &[(f64, f64)]| {
        let points: Vec<String> =
            corners.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx * r, y + dy * r)).collect();
        format!("<polygon class=\"mark\" points=\"{}\">{title}</polygon>", points.join(" "))
    };
    match (policy + policy / COLOURS.len()) % MARKERS {
        0 => format!("<circle class=\"mark\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\">{title}</circle>"),
        1 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        2 => polygon(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]),
        3 => polygon(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
        4 => polygon(&[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)]),
        _ => polygon(&[
            (-0.4, -1.2),
            (0.4, -1.2),
            (0.4, -0.4),
            (1.2, -0.4),
            (1.2, 0.4),
            (0.4, 0.4),
            (0.4, 1.2),
            (-0.4, 1.2),
            (-0.4, 0.4),
            (-1.2, 0.4),
            (-1.2, -0.4),
            (-0.4, -0.4),
        ]),
    }
}

/// The list that says which is which.
pub(super) fn legend(policies: &[(usize, &str)], bound: Option<&str>) -> String {
    let mut text = String::from("<ul class=\"legend\">\n");
    for &(policy, name) in policies {
        let _ = writeln!(
            text,
            "<li><svg class=\"key {}\" viewBox=\"0 0 34 14\" aria-hidden=\"true\"><path class=\"line\" d=\"M1 7H33\"{}/>{}</svg>{}</li>",
            class(policy),
            dash(policy),
            marker(policy, 17.0, 7.0, ""),
            escaped(name)
        );
    }
    if let Some(bound) = bound {
        let _ = writeln!(
            text,
            "<li><svg class=\"key\" viewBox=\"0 0 34 14\" aria-hidden=\"true\"><path class=\"bound\" d=\"M1 7H33\"/></svg>{}</li>",
            escaped(bound)
        );
    }
    text + "</ul>\n"
}

/// The colours as a style sheet.
pub(super) fn style() -> String {
    let rules = |of: fn(&(&'static str, &'static str)) -> &'static str| -> String {
        COLOURS.iter().enumerate().map(|(index, colours)| format!(".c{index}{{--c:{}}}", of(colours))).collect()
    };
    format!("{}\n@media (prefers-color-scheme:dark){{{}}}\n", rules(|colours| colours.0), rules(|colours| colours.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance, WCAG 2.2.
    fn luminance(colour: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn no_colour_is_lost_on_its_ground() {
        for (light, dark) in COLOURS {
            assert!(contrast(light, super::super::style::LIGHT_GROUND) >= 4.5, "{light}");
            assert!(contrast(dark, super::super::style::DARK_GROUND) >= 4.5, "{dark}");
        }
    }

    #[test]
    fn no_two_of_many_policies_look_the_same() {
        let looks: Vec<String> = (0..16)
            .map(|policy| format!("{}{}{}", class(policy), dash(policy), marker(policy, 0.0, 0.0, "")))
            .collect();
        for (index, look) in looks.iter().enumerate() {
            assert!(!looks[..index].contains(look), "{index}");
        }
        let dashed = |policy: usize| format!("{}{}", dash(policy), marker(policy, 0.0, 0.0, ""));
        for index in 1..8 {
            assert!((0..index).all(|other| dashed(other) != dashed(index)), "{index} without colour");
        }
    }
}
