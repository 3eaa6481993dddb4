//! What goes wrong with the simulated disk, and when: at one operation, or by chance from a seed.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// A small generator of numbers (SplitMix64), so that a seed names a run.
#[derive(Clone, Debug, Default)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True once in `chance` times.
    pub fn one_in(&mut self, chance: u64) -> bool {
        self.below(chance) == 0
    }
}

/// What goes wrong with one operation. `part` is any number and decides the details.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// It is cut short.
    Short { part: u64 },
    /// EIO, perhaps after a part of it was done.
    Error { part: u64 },
    /// ENOSPC.
    Full,
    /// A write goes to the wrong place.
    Misdirect { part: u64 },
    /// A sync does nothing and says that it did.
    Lie,
    /// It takes its time.
    Late,
    /// The power goes off during it.
    PowerCut,
}

/// How long a late operation takes: longer than some deadlines.
pub const LATENESS: Duration = Duration::from_micros(500);

/// How often what went wrong, by kind. Only what had an effect counts.
pub type Tally = BTreeMap<&'static str, u64>;

impl Fault {
    /// The fault as the error of an operation that it makes fail; others go on.
    pub fn as_error(self) -> io::Result<()> {
        match self {
            Self::Error { .. } => Err(io::Error::from_raw_os_error(5)),
            Self::Full => Err(io::Error::from_raw_os_error(28)),
            Self::PowerCut => Err(io::Error::other("the power is off")),
            Self::Short { .. } | Self::Misdirect { .. } | Self::Lie | Self::Late => Ok(()),
        }
    }
}

/// When what goes wrong.
#[derive(Clone, Debug, Default)]
pub enum Faults {
    #[default]
    None,
    /// One fault, at the operation with this number.
    At(u64, Fault),
    /// One fault, at every operation that changes something from this number on.
    From(u64, Fault),
    /// A fault once in so many operations.
    Chance { one_in: u64, random: Random },
}

impl Faults {
    /// What goes wrong with operation number `operation`.
    pub fn next(&mut self, operation: u64, is_change: bool) -> Option<Fault> {
        match self {
            Self::None => None,
            Self::At(at, fault) => (*at == operation).then_some(*fault),
            Self::From(from, fault) => (is_change && operation >= *from).then_some(*fault),
            Self::Chance { one_in, random } => {
                if !random.one_in(*one_in) {
                    return None;
                }
                let part = random.next();
                let kinds: &[Fault] = match is_change {
                    true => &[
                        Fault::Short { part },
                        Fault::Error { part },
                        Fault::Full,
                        Fault::Misdirect { part },
                        Fault::Lie,
                        Fault::Late,
                    ],
                    false => &[Fault::Short { part }, Fault::Error { part }, Fault::Late],
                };
                Some(kinds[random.below(kinds.len() as u64) as usize])
            }
        }
    }
}
