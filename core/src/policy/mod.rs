//! The contract between hosts and policies: what a policy is told, what it is asked, what it may answer.
//!
//! A policy is a value that implements [`CachePolicy`] or [`CheckpointPolicy`]. It imports nothing: settings come with
//! [`Policy::new`], logical time with the events. Its answers are proposals; the host checks each before it acts
//! (`wit/` says what is checked, function by function). The same traits are implemented natively (`policies/native`) and,
//! through the SDK's shells, by components.

mod description;
mod event;
mod span;

use alloc::{string::String, vec::Vec};

pub use description::{Description, Kind, Setting, Settings, SettingsError};
pub use event::{EVENT_WORDS, Event, EventBuffer, Events, Inserted, NO_PARENT};
pub use span::{CheckpointInfo, Prompt, Span, TOLD_KEYS};

/// What every policy has: a description and a constructor.
pub trait Policy: Sized {
    /// Name, version, kind and the settings it takes.
    const DESCRIPTION: Description;

    /// A policy with these settings (already checked against [`Description::settings`]) and no knowledge yet.
    fn new(settings: &Settings) -> Self;
}

/// One group of records that a cache policy ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupInfo {
    /// The number that events carry for this group.
    pub group: u8,
    /// For instance `history`.
    pub name: String,
    /// Bytes one record occupies.
    pub record_bytes: u64,
    /// How many records fit the group's quota.
    pub capacity_records: u64,
    /// Tokens a record spares when it is hit: what recomputing it would cost.
    pub recompute_tokens: u32,
    /// Whether records form a tree of which only leaves may go.
    pub tree: bool,
}

/// A question whether records may be written.
#[derive(Clone, Copy, Debug)]
pub struct Admission<'a> {
    /// Logical time, the clock of the events.
    pub now: u64,
    /// The group that the records are of.
    pub group: u8,
    /// Short keys ([`crate::Digest::short`]) of every complete block of the prompt, root first: what was asked for.
    pub keys: &'a [u64],
    /// Index in `keys` of the first block that is not resident. The answer has one verdict for each from here on.
    pub first: u32,
    /// Records that fit before something must be evicted.
    pub free: u32,
}

/// Ranks resident records: who goes when room is needed, and who may come in.
///
/// What the host guarantees: ids are dense and reused only after the record is gone; a parent is inserted before its
/// child; events arrive in order. What an implementor promises: to name only live, unpinned leaves (of groups with a tree),
/// each once, best first, and to depend on nothing but what it was told.
pub trait CachePolicy {
    /// Tells which groups there are. Called once, before any event.
    fn attach(&mut self, groups: &[GroupInfo]);

    /// Takes what happened since the last call, then appends up to `want` victims, best first.
    ///
    /// A victim named is gone, and its parent may be the next, unless a later [`Event::Kept`] says that the host declined.
    fn step(&mut self, events: Events<'_>, want: u32, victims: &mut Vec<u32>);

    /// Appends one verdict per block from [`Admission::first`] on; the host stops at the first `false`. Asked once a request,
    /// even when nothing is to be written, and only of policies whose description says [`Description::admission`].
    fn admit(&mut self, question: &Admission<'_>, verdicts: &mut Vec<bool>) {
        let asked = question.keys.len().saturating_sub(question.first as usize);
        verdicts.extend(core::iter::repeat_n(true, asked));
    }

    /// What the host's own table cannot tell a successor (it replays entries in order of insertion, with their last use).
    /// Empty when there is nothing.
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Takes what [`CachePolicy::save`] of a policy with the same name and schema gave. `false` when the bytes make no sense: the
    /// policy then goes on as it was.
    fn load(&mut self, _bytes: &[u8]) -> bool {
        true
    }
}

/// Decides at which positions of a span to keep a window.
pub trait CheckpointPolicy {
    /// Appends positions in tokens, ascending: multiples of the block, each in `(span.start, span.end]` or equal to
    /// `span.junction`.
    fn choose(&mut self, span: &Span, positions: &mut Vec<u32>);

    /// Tells what checkpoints cost here. Called once, before any span.
    fn attach(&mut self, _info: &CheckpointInfo) {}

    /// The same question with what else is known of the request, for policies that learn from it: hosts that can tell ask this one.
    fn choose_for(&mut self, span: &Span, _prompt: &Prompt<'_>, positions: &mut Vec<u32>) {
        self.choose(span, positions);
    }
}
