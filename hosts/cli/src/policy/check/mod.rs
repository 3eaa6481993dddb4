//! The conformance suite on one policy.

mod report;

use reprise::wasm::{self, CheckOptions, Limits, LoadError, Profile, Report};

use super::{Compiler, Problem, Subject, inspect};

/// How a policy is checked.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What it may be made of; `None` for what it needs, and no less than the default.
    pub profile: Option<Profile>,
    /// Events of the long run.
    pub events: u64,
}

/// What came of it.
pub struct Outcome {
    origin: String,
    profile: Profile,
    events: u64,
    report: Result<Report, String>,
}

impl Outcome {
    /// Runs the suite.
    ///
    /// # Errors
    /// [`Problem::Input`] when the policy is no WebAssembly. That it does not load is an outcome.
    pub fn of(subject: &Subject, options: Options, compiler: &Compiler) -> Result<Self, Problem> {
        let Subject { origin, bytes, .. } = subject;
        let inspection = inspect::look(subject)?;
        let profile = options.profile.unwrap_or_else(|| inspect::profile(&inspection));
        let check = CheckOptions { limits: Limits::of(profile), cache: compiler.cache(), events: options.events };
        let report = inspect::kind(&inspection).map_err(|reason| format!("{origin} {reason}")).and_then(|kind| {
            wasm::check(bytes, origin, kind, &check).map_err(|error| hint(&error, profile, &inspection))
        });
        Ok(Self { origin: origin.clone(), profile, events: options.events, report })
    }

    /// Whether it loaded, and nothing failed.
    pub fn passed(&self) -> bool {
        self.report.as_ref().is_ok_and(Report::passed)
    }

    /// How many checks failed; `None` if it does not load.
    pub fn failures(&self) -> Option<usize> {
        let report = self.report.as_ref().ok()?;
        Some(report.checks.iter().filter(|check| check.failure.is_some()).count())
    }
}

/// Why it does not load; if another profile would do, which.
fn hint(error: &LoadError, profile: Profile, inspection: &wasm::Inspection) -> String {
    match (error, &inspection.profile) {
        (LoadError::Invalid { .. }, Ok(needed)) if *needed > profile => {
            format!("{error}; it is valid under --profile {needed}, not under {profile}")
        }
        _ => error.to_string(),
    }
}
