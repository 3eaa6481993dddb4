//! What the store costs on a device: its puts and gets by turns with the plain input and output that they are made of.

mod fio;
mod lane;
mod latency;
mod order;
mod pattern;
mod place;
mod rate;
mod raw;
mod report;
mod store;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use anyhow::Context;
use reprise::disk::{IoEngine, IoMode};

use fio::Fio;
use lane::Compared;
use pattern::Pattern;
use place::Place;
use rate::{Rate, Until};
use raw::Raw;
use store::Bench;

pub use fio::version as fio_version;
pub(crate) use latency::Latencies;
pub(crate) use rate::median;

/// What is measured, where, and for how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// An existing directory on the device.
    pub directory: PathBuf,
    /// Bytes of a record, at least 1.
    pub record_bytes: u64,
    /// Records of a data set, if there is room for so many; `None` for as many as there is room for.
    pub records: Option<u32>,
    /// Records under way at once, at least 1.
    pub depth: usize,
    /// How many times each contender has its turn in each direction, at least 1.
    pub rounds: u32,
    /// How long a turn is.
    pub turn: Duration,
    /// The version of fio, if it is to have its turns as well.
    pub fio: Option<String>,
}

impl Options {
    /// How many times [`run`] calls its `step`.
    pub fn steps(&self) -> u64 {
        let contenders = 2 + u64::from(self.fio.is_some());
        4 + u64::from(self.rounds) * contenders * Direction::ALL.len() as u64
    }

    /// Bytes of one plain transfer: a record, rounded up to what direct input and output take.
    fn transfer_bytes(&self) -> u64 {
        self.record_bytes.next_multiple_of(4096)
    }
}

/// Which way records go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// Into the file.
    Put,
    /// Out of the file.
    Get,
}

impl Direction {
    const ALL: [Self; 2] = [Self::Put, Self::Get];

    fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
        }
    }
}

/// Who carries the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Store,
    Raw,
    Fio,
}

impl Name {
    fn text(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Raw => "raw",
            Self::Fio => "fio",
        }
    }
}

/// Carries records for the length of a turn.
trait Contender {
    fn name(&self) -> Name;

    fn turn(&mut self, direction: Direction, length: Duration) -> anyhow::Result<Rate>;
}

/// What was measured.
pub struct Outcome {
    options: Options,
    /// Records of each data set.
    records: u32,
    slot_bytes: u64,
    mode: IoMode,
    engine: IoEngine,
    /// What the store could not do as it was asked to.
    notes: Vec<String>,
    /// One for each round.
    rates: BTreeMap<(Direction, Name), Vec<Rate>>,
    /// Of the store, over all rounds.
    latencies: BTreeMap<Direction, Latencies>,
    /// Bytes written to the device for each byte put, where that is known.
    write_amplification: Option<f64>,
    compared: Compared,
}

impl Outcome {
    /// Bytes that came back from the store and were not those put there.
    pub fn wrong_bytes(&self) -> u64 {
        self.compared.wrong_bytes
    }

    /// Whether records went past the page cache, so that the figures are about a device.
    fn is_direct(&self) -> bool {
        self.mode == IoMode::Direct
    }
}

/// Measures. `place` is told the temporary directory before anything is written there; `step` is told what comes next,
/// [`Options::steps`] times.
///
/// # Errors
///
/// What keeps the directory from being made, filled, read back or removed: no permission, no room, an error of the device.
pub fn run(
    options: Options,
    place: impl FnOnce(&std::path::Path),
    mut step: impl FnMut(&str),
) -> anyhow::Result<Outcome> {
    let temporary = Place::new(&options.directory)?;
    place(temporary.path());
    let outcome = measure(options, &temporary, &mut step)?;
    temporary.remove()?;
    Ok(outcome)
}

fn measure(options: Options, place: &Place, step: &mut impl FnMut(&str)) -> anyhow::Result<Outcome> {
    let pattern = Pattern::new(options.record_bytes as usize);
    let class = store::class(options.record_bytes, 0);
    let records = place.records(&options, class.slot_bytes())?;
    let mut store = Bench::open(&place.path().join("store"), &options, records, &pattern)?;
    let mut raw = Raw::create(&place.path().join(raw::FILE), &options, records, &pattern, store.is_direct())?;
    step("filling the store");
    store.fill()?;
    step("filling the file for raw transfers");
    raw.fill()?;
    let mut fio = options.fio.as_ref().map(|_| Fio::new(place.path(), &options, store.is_direct()));

    step("comparing every record");
    let mut compared = store.compare()?;
    let mut rates: BTreeMap<_, Vec<Rate>> = BTreeMap::new();
    for round in 0..options.rounds {
        for direction in Direction::ALL {
            let mut contenders: Vec<&mut dyn Contender> = vec![&mut store, &mut raw];
            contenders.extend(fio.as_mut().map(|fio| fio as &mut dyn Contender));
            if round % 2 == 1 {
                contenders.reverse();
            }
            for contender in contenders {
                let name = contender.name();
                step(&format!("round {}: {}, {}", round + 1, direction.name(), name.text()));
                let rate = contender.turn(direction, options.turn);
                let rate = rate.with_context(|| format!("{}, {}", direction.name(), name.text()))?;
                rates.entry((direction, name)).or_default().push(rate);
            }
        }
    }
    step("comparing every record");
    compared += store.compare()?;
    let (mode, engine, notes) = (store.mode().clone(), store.engine().clone(), store.notes().to_vec());
    let write_amplification = store.write_amplification();
    Ok(Outcome {
        options,
        records,
        slot_bytes: class.slot_bytes(),
        mode,
        engine,
        notes,
        rates,
        latencies: store.into_latencies(),
        write_amplification,
        compared,
    })
}
