//! A progress bar for people; nothing where nobody looks.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on standard error that counts to `length`; invisible if that is not a terminal, or `quiet`.
pub(crate) fn bar(length: u64, unit: &str, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let template = format!("{{bar:32}} {{pos}}/{{len}} {unit}  {{elapsed}}, {{eta}} left  {{wide_msg}}");
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr_with_hz(10)).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Bytes in the unit a person reads.
pub(crate) fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut scaled = bytes as f64 / 1024.0;
    let mut unit = UNITS[0];
    for &next in &UNITS[1..] {
        if scaled < 1000.0 {
            break;
        }
        scaled /= 1024.0;
        unit = next;
    }
    match bytes {
        0 => "0".to_owned(),
        1..1024 => format!("{bytes} B"),
        _ => format!("{scaled:.1} {unit}"),
    }
}
