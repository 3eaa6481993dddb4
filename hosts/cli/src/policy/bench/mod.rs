//! Eviction policies in turns with the native `lru`: how many events a second, and what a decision takes.

mod contender;
mod load;
mod report;

use std::time::{Duration, Instant};

use anyhow::Context;

use crate::bench::Latencies;
use contender::Contender;
use load::Load;

use super::{Compiler, Problem, Subject};

/// Events of a batch.
const BATCH: usize = 256;
/// Turns that each contender has.
const TURNS: u32 = 10;

/// How long, and with how many records.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What each contender is given, in calls.
    pub time: Duration,
    /// Resident records, at least 1024.
    pub records: u32,
}

/// How many times [`run`] calls its `step`.
pub fn steps(policies: usize) -> u64 {
    (policies as u64 + 1) * u64::from(TURNS + 1)
}

/// What was measured.
pub struct Outcome {
    options: Options,
    /// The native `lru` first.
    contenders: Vec<Measured>,
}

impl Outcome {
    /// Policies that failed, each with how.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.contenders.iter().filter_map(|measured| Some((measured.origin.as_str(), measured.failure.as_deref()?)))
    }
}

/// What was measured of one contender.
struct Measured {
    origin: String,
    name: String,
    version: String,
    /// Events a second, one for each turn.
    rates: Vec<f64>,
    /// Calls that asked for victims.
    decisions: Latencies,
    /// Victims asked for and not named.
    unnamed: u64,
    /// Calls that were made.
    calls: u64,
    /// Calls that took longer than a host allows, waiting for the machine included.
    late: u64,
    /// The longest of these, and what it was allowed.
    latest: Option<(Duration, Duration)>,
    /// Linear memory in bytes; `None` of the native policy.
    memory_bytes: Option<usize>,
    /// How it failed; it had no turn after that.
    failure: Option<String>,
}

/// A contender with its own books.
struct Lane {
    contender: Contender,
    load: Load,
    victims: Vec<u32>,
    measured: Measured,
}

/// Measures. `step` is told what comes next, [`steps`] times.
///
/// # Errors
/// [`Problem::Input`] when a policy does not load, is no eviction policy, or does not take its settings. That one fails while it runs is in
/// the outcome.
pub fn run(
    subjects: &[Subject],
    options: Options,
    compiler: &Compiler,
    mut step: impl FnMut(&str),
) -> Result<Outcome, Problem> {
    let group = load::group(options.records);
    let mut lanes = vec![Lane::new(Contender::native(&group), "lru (native)", options.records)];
    for subject in subjects {
        let contender = Contender::load(subject, &group, compiler)?;
        lanes.push(Lane::new(contender, &subject.origin, options.records));
    }
    for lane in &mut lanes {
        step(&format!("{}: inserting", lane.measured.origin));
        lane.fill();
    }
    for turn in 0..TURNS {
        for index in 0..lanes.len() {
            // Whoever comes first in a round has the machine as the others left it: that changes from round to round.
            let place = (index + turn as usize) % lanes.len();
            let lane = &mut lanes[place];
            step(&lane.measured.origin);
            lane.turn(options.time / TURNS);
        }
    }
    Ok(Outcome { options, contenders: lanes.into_iter().map(Lane::end).collect() })
}

impl Lane {
    fn new(contender: Contender, origin: &str, records: u32) -> Self {
        let (name, version) = contender.identity();
        let measured = Measured {
            origin: origin.to_owned(),
            name,
            version,
            rates: Vec::new(),
            decisions: Latencies::default(),
            unnamed: 0,
            calls: 0,
            late: 0,
            latest: None,
            memory_bytes: None,
            failure: None,
        };
        Self { contender, load: Load::new(records), victims: Vec::new(), measured }
    }

    /// Inserts until nothing more fits.
    fn fill(&mut self) {
        let mut filled = || -> anyhow::Result<()> {
            while self.load.fill_batch() {
                self.call(0)?;
            }
            self.call(load::WANT).map(drop)
        };
        self.measured.failure = filled().context("while records were inserted").err().map(|error| format!("{error:#}"));
    }

    /// One turn: calls that take `length` together. What is between them is not counted.
    fn turn(&mut self, length: Duration) {
        let (mut busy, mut events) = (Duration::ZERO, 0_u64);
        while self.measured.failure.is_none() && busy < length {
            let want = self.load.batch();
            match self.call(want) {
                Ok(took) => {
                    busy += took;
                    events += self.load.events();
                    if want > 0 {
                        self.measured.decisions.add(took);
                    }
                }
                Err(error) => self.measured.failure = Some(format!("{error:#}")),
            }
        }
        if self.measured.failure.is_none() {
            self.measured.rates.push(events as f64 / busy.as_secs_f64());
        }
    }

    /// One call with the batch that is ready, and what it took.
    fn call(&mut self, want: u32) -> anyhow::Result<Duration> {
        self.victims.clear();
        let begun = Instant::now();
        let stepped = self.contender.step(self.load.words(), want, &mut self.victims);
        let took = begun.elapsed();
        stepped?;
        let deadline = self.contender.deadline(self.load.events() + u64::from(want));
        self.measured.calls += 1;
        if let Some(deadline) = deadline.filter(|deadline| took > *deadline) {
            self.measured.late += 1;
            self.measured.latest = self.measured.latest.max(Some((took, deadline)));
        }
        self.measured.unnamed += self.load.take(want, &self.victims)?;
        Ok(took)
    }

    fn end(mut self) -> Measured {
        self.measured.memory_bytes = self.contender.memory_bytes();
        self.measured
    }
}
