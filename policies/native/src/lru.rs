//! `lru`: the leaf used least recently goes first.

use alloc::vec::Vec;

use reprise_core::policy::{CachePolicy, Description, Event, Events, GroupInfo, Kind, Policy, Settings};

use crate::ranking::Ranking;

/// Leaf LRU: since a path is used as a whole, a parent is never older than its child.
#[derive(Clone, Debug, Default)]
pub struct Lru {
    ranking: Ranking,
}

impl Lru {
    #[inline]
    fn learn(&mut self, event: Event) {
        match event {
            Event::Inserted(block) => self.ranking.insert(&block, block.now),
            Event::Used { id, now, .. } => self.ranking.set_rank(id, now),
            Event::Evicted { id, .. } => self.ranking.remove(id, u64::max),
            Event::Kept { id, .. } => self.ranking.keep(id),
            Event::Pinned { id, .. } => self.ranking.pin(id),
            Event::Unpinned { id, .. } => self.ranking.unpin(id),
        }
    }
}

impl Policy for Lru {
    const DESCRIPTION: Description = Description {
        name: "lru",
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

impl CachePolicy for Lru {
    fn attach(&mut self, groups: &[GroupInfo]) {
        self.ranking.reserve(groups);
    }

    fn step(&mut self, events: Events<'_>, want: u32, victims: &mut Vec<u32>) {
        for event in events {
            self.learn(event);
        }
        self.ranking.name_victims(want, victims, u64::max);
    }
}
