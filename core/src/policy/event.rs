//! Events as packed words: a list of `u64` crosses the component boundary as one copy.
//!
//! | word | bits | what |
//! |---|---|---|
//! | 0 | 0–7 | kind, see [`Event`] |
//! | 0 | 8–15 | group |
//! | 0 | 16–31 | namespace, an index that the host assigns |
//! | 0 | 32–63 | id of the record |
//! | 1 | 0–31 | id of the parent, [`NO_PARENT`] for a root; zero unless inserted |
//! | 1 | 32–63 | depth in blocks, from 1; zero unless inserted or used |
//! | 2 | 0–63 | logical time |

use alloc::vec::Vec;

/// Words an event takes.
pub const EVENT_WORDS: usize = 3;

/// The parent of a block at depth 1, and of records of groups without a tree.
pub const NO_PARENT: u32 = u32::MAX;

const INSERTED: u8 = 1;
const USED: u8 = 2;
const EVICTED: u8 = 3;
const KEPT: u8 = 4;
const PINNED: u8 = 5;
const UNPINNED: u8 = 6;

/// A record that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inserted {
    /// Dense id, reused once the record is gone.
    pub id: u32,
    /// Id of the block before it, or [`NO_PARENT`].
    pub parent: u32,
    /// Group.
    pub group: u8,
    /// Namespace index.
    pub namespace: u16,
    /// Depth in blocks, from 1: its position is `depth` times the block size.
    pub depth: u32,
    /// Logical time of insertion; at a hand-over, of the last use.
    pub now: u64,
}

/// Something that happened to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A record came in. At a hand-over the host sends one for each resident record, in order of insertion.
    Inserted(Inserted),
    /// A path was used, from the root to this record: ancestors are implied.
    Used {
        /// The deepest record used.
        id: u32,
        /// Its group.
        group: u8,
        /// Its depth in blocks.
        depth: u32,
        /// Logical time.
        now: u64,
    },
    /// The host took a record out that the policy had not named.
    Evicted {
        /// The record.
        id: u32,
        /// Its group.
        group: u8,
        /// Logical time.
        now: u64,
    },
    /// The policy had named a record and the host declined: it is resident. Sent parent before child.
    Kept {
        /// The record.
        id: u32,
        /// Its group.
        group: u8,
        /// Logical time.
        now: u64,
    },
    /// The record and its ancestors must not be named until as many [`Event::Unpinned`] follow.
    Pinned {
        /// The deepest record of the pinned path.
        id: u32,
        /// Its group.
        group: u8,
        /// Logical time.
        now: u64,
    },
    /// Takes one [`Event::Pinned`] back.
    Unpinned {
        /// The deepest record of the path.
        id: u32,
        /// Its group.
        group: u8,
        /// Logical time.
        now: u64,
    },
}

impl Event {
    /// The event as words.
    #[inline]
    pub fn pack(&self) -> [u64; EVENT_WORDS] {
        let head = |kind: u8, group: u8, namespace: u16, id: u32| {
            u64::from(kind) | u64::from(group) << 8 | u64::from(namespace) << 16 | u64::from(id) << 32
        };
        match *self {
            Self::Inserted(Inserted { id, parent, group, namespace, depth, now }) => {
                [head(INSERTED, group, namespace, id), u64::from(parent) | u64::from(depth) << 32, now]
            }
            Self::Used { id, group, depth, now } => [head(USED, group, 0, id), u64::from(depth) << 32, now],
            Self::Evicted { id, group, now } => [head(EVICTED, group, 0, id), 0, now],
            Self::Kept { id, group, now } => [head(KEPT, group, 0, id), 0, now],
            Self::Pinned { id, group, now } => [head(PINNED, group, 0, id), 0, now],
            Self::Unpinned { id, group, now } => [head(UNPINNED, group, 0, id), 0, now],
        }
    }

    /// The event that three words hold, or `None` for a kind that this version does not know: a policy skips those.
    #[inline]
    pub fn unpack(words: &[u64; EVENT_WORDS]) -> Option<Self> {
        let [head, middle, now] = *words;
        let (group, id) = ((head >> 8) as u8, (head >> 32) as u32);
        Some(match head as u8 {
            INSERTED => Self::Inserted(Inserted {
                id,
                parent: middle as u32,
                group,
                namespace: (head >> 16) as u16,
                depth: (middle >> 32) as u32,
                now,
            }),
            USED => Self::Used { id, group, depth: (middle >> 32) as u32, now },
            EVICTED => Self::Evicted { id, group, now },
            KEPT => Self::Kept { id, group, now },
            PINNED => Self::Pinned { id, group, now },
            UNPINNED => Self::Unpinned { id, group, now },
            _ => return None,
        })
    }
}

/// Packed events as they were handed over; iterates over those of known kinds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Events<'a>(&'a [[u64; EVENT_WORDS]]);

impl<'a> Events<'a> {
    /// Events in `words`; a trailing incomplete event is left out.
    #[inline]
    pub fn new(words: &'a [u64]) -> Self {
        Self(words.as_chunks().0)
    }

    /// How many events there are, unknown kinds included.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> IntoIterator for Events<'a> {
    type Item = Event;
    type IntoIter =
        core::iter::FilterMap<core::slice::Iter<'a, [u64; EVENT_WORDS]>, fn(&[u64; EVENT_WORDS]) -> Option<Event>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().filter_map(Event::unpack)
    }
}

/// A host's buffer of events not yet handed over.
#[derive(Clone, Debug, Default)]
pub struct EventBuffer {
    words: Vec<u64>,
}

impl EventBuffer {
    /// An empty buffer with room for so many events.
    pub fn with_capacity(events: usize) -> Self {
        Self { words: Vec::with_capacity(events * EVENT_WORDS) }
    }

    /// Adds an event.
    #[inline]
    pub fn push(&mut self, event: Event) {
        self.words.extend_from_slice(&event.pack());
    }

    /// How many events wait.
    pub fn len(&self) -> usize {
        self.words.len() / EVENT_WORDS
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The words, to hand over.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The events, to hand over to a native policy.
    pub fn events(&self) -> Events<'_> {
        Events::new(&self.words)
    }

    /// Adds another buffer's events behind these.
    pub fn append(&mut self, other: &Self) {
        self.words.extend_from_slice(&other.words);
    }

    /// Forgets all events, keeps the memory.
    pub fn clear(&mut self) {
        self.words.clear();
    }
}
