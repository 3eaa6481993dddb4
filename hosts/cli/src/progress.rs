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
