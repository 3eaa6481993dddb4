//! `fifo`: the leaf inserted first goes first; a use changes nothing.

use alloc::vec::Vec;

use reprise_core::policy::{CachePolicy, Description, Event, Events, GroupInfo, Kind, Policy, Settings};

use crate::ranking::Ranking;

/// Leaf FIFO. The rank of a block is the number of its insertion, so that a hand-over in order of insertion tells it all.
#[derive(Clone, Debug, Default)]
pub struct Fifo {
    ranking: Ranking,
    insertions: u64,
}

/// A parent keeps its own place in the order.
fn own(parent: u64, _child: u64) -> u64 {
    parent
}

impl Policy for Fifo {
    const DESCRIPTION: Description = Description {
        name: "fifo",
        version: "0.1.0",
        kind: Kind::Cache,
        admission: false,
        state_schema: 0,
        settings: &[],
    };

    fn new(_: &Settings) -> Self {
        Self::default()
    }
}

impl CachePolicy for Fifo {
    fn attach(&mut self, groups: &[GroupInfo]) {
        self.ranking.reserve(groups);
    }

    fn step(&mut self, events: Events<'_>, want: u32, victims: &mut Vec<u32>) {
        for event in events {
            match event {
                Event::Inserted(block) => {
                    self.insertions += 1;
                    self.ranking.insert(&block, self.insertions);
                }
                Event::Used { .. } => {}
                Event::Evicted { id, .. } => self.ranking.remove(id, own),
                Event::Kept { id, .. } => self.ranking.keep(id),
                Event::Pinned { id, .. } => self.ranking.pin(id),
                Event::Unpinned { id, .. } => self.ranking.unpin(id),
            }
        }
        self.ranking.name_victims(want, victims, own);
    }
}
