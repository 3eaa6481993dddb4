//! A progress bar for people; nothing where nobody looks.

use std::{borrow::Cow, time::Duration};

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

/// A spinner on standard error, for work of which nobody knows how far it is; invisible as a bar is.
pub(crate) fn spinner(message: impl Into<Cow<'static, str>>, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let style =
        ProgressStyle::with_template("{spinner} {msg}, {elapsed}").unwrap_or_else(|_| ProgressStyle::default_spinner());
    let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10)).with_style(style);
    spinner.set_message(message);
    spinner.enable_steady_tick(Duration::from_millis(200));
    spinner
}
