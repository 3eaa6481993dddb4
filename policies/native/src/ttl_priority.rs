//! `ttl-priority`: what has outlived its time goes first, then what an operator holds least dear, then what was used least recently.

use alloc::vec::Vec;

use reprise_core::policy::{
    CachePolicy, Description, Event, Events, GroupInfo, Inserted, Kind, Policy, Setting, Settings,
};

use crate::{
    order::{ranked, unranked},
    ranking::Ranking,
};

/// Rules there are: for all blocks, for the first blocks of a prompt, for some namespaces.
const RULES: usize = 3;

/// Leaf LRU with lifetimes and priorities.
///
/// A block has a priority and a time to live from the rule it falls under: that of its namespace, if there is one, else the common
/// one; the first blocks of a prompt, where system prompts and tools stand, have their own if that is higher. The time to live
/// counts from the last use and begins anew with each. Without rules this is `lru`.
///
/// Priorities are those of TensorRT-LLM's `KvCacheRetentionConfig` (0 to 100, 35 where nothing is said). There, a block whose
/// duration is over falls back to 35; here it goes before all others, as in caches that are sold by lifetime.
#[derive(Clone, Debug)]
pub struct TtlPriority {
    /// By class: the later, the higher the priority, and among equals the longer the life.
    rules: [Rule; RULES],
    common: u64,
    head: u64,
    favoured: u64,
    head_blocks: u64,
    namespaces: core::ops::Range<u64>,
    ranking: Ranking<RULES>,
    now: u64,
}

#[derive(Clone, Copy, Debug)]
struct Rule {
    priority: u64,
    /// Ticks after the last use; [`u64::MAX`] without an end.
    lifetime: u64,
}

/// The higher class and the later use of both: a use of the child was one of the parent.
fn later(parent: u64, child: u64) -> u64 {
    let ((above, used), (below, child_used)) = (unranked(parent), unranked(child));
    ranked(above.max(below), used.max(child_used))
}

impl TtlPriority {
    fn learn(&mut self, event: Event) {
        match event {
            Event::Inserted(block) => {
                self.now = self.now.max(block.now);
                self.ranking.insert(&block, ranked(self.class(&block), block.now));
            }
            Event::Used { id, now, .. } => {
                self.now = self.now.max(now);
                if let Some(rank) = self.ranking.rank(id) {
                    self.ranking.set_rank(id, ranked(unranked(rank).0, now));
                }
            }
            Event::Evicted { id, now, .. } => {
                self.now = self.now.max(now);
                self.ranking.remove(id, later);
            }
            Event::Kept { id, .. } => self.ranking.keep(id),
            Event::Pinned { id, now, .. } => {
                self.now = self.now.max(now);
                self.ranking.pin(id);
            }
            Event::Unpinned { id, .. } => self.ranking.unpin(id),
        }
    }

    /// Along a path it never rises.
    fn class(&self, block: &Inserted) -> u64 {
        let base = if self.namespaces.contains(&block.namespace.into()) { self.favoured } else { self.common };
        if u64::from(block.depth) <= self.head_blocks { base.max(self.head) } else { base }
    }

    fn next_victim(&self) -> Option<u32> {
        let leaves = || {
            let first = |class| self.ranking.first_of(class).map(|id| (id, self.rules[class]));
            (0..RULES).filter_map(first).map(|(id, rule)| {
                let used = self.ranking.rank(id).map_or(0, |rank| unranked(rank).1);
                (id, used, rule)
            })
        };
        let expired = leaves()
            .map(|(id, used, rule)| (used.saturating_add(rule.lifetime), id))
            .filter(|&(end, _)| end < self.now)
            .min();
        let id = match expired {
            Some((_, id)) => id,
            None => leaves().map(|(id, used, rule)| (rule.priority, used, id)).min()?.2,
        };
        Some(id)
    }
}

impl Policy for TtlPriority {
    const DESCRIPTION: Description = Description {
        name: "ttl-priority",
        version: "0.1.0",
        kind: Kind::Cache,
        admission: false,
        state_schema: 0,
        settings: &[
            priority("priority", "priority of blocks that no other rule speaks of; the lowest goes first", 35),
            lifetime("ttl", "ticks after its last use until a block goes before all others; 0: never"),
            Setting {
                key: "head-blocks",
                help: "first blocks of every prompt, which hold system prompts and tools, that have a rule of their own",
                default: 0,
                min: 0,
                max: u32::MAX as u64,
            },
            priority("head-priority", "priority of these first blocks, if that of their namespace is not higher", 100),
            lifetime("head-ttl", "ticks after its last use until such a first block goes before all others; 0: never"),
            Setting {
                key: "first-namespace",
                help: "first of the namespaces that have a rule of their own, by index",
                default: 0,
                min: 0,
                max: u16::MAX as u64,
            },
            Setting {
                key: "namespaces",
                help: "how many namespaces, from the first on, that rule is for",
                default: 0,
                min: 0,
                max: u16::MAX as u64 + 1,
            },
            priority("namespace-priority", "priority of the blocks of these namespaces", 35),
            lifetime(
                "namespace-ttl",
                "ticks after its last use until a block of theirs goes before all others; 0: never",
            ),
        ],
    };

    fn new(settings: &Settings) -> Self {
        let rule = |priority, lifetime| Rule {
            priority: settings.get(priority),
            lifetime: Some(settings.get(lifetime)).filter(|&ticks| ticks != 0).unwrap_or(u64::MAX),
        };
        let mut rules = [
            (0, rule("priority", "ttl")),
            (1, rule("head-priority", "head-ttl")),
            (2, rule("namespace-priority", "namespace-ttl")),
        ];
        rules.sort_by_key(|&(_, Rule { priority, lifetime })| (priority, lifetime));
        let class = |which| rules.iter().position(|&(rule, _)| rule == which).map_or(0, |class| class as u64);
        let first = settings.get("first-namespace");
        Self {
            common: class(0),
            head: class(1),
            favoured: class(2),
            rules: rules.map(|(_, rule)| rule),
            head_blocks: settings.get("head-blocks"),
            namespaces: first..first + settings.get("namespaces"),
            ranking: Ranking::default(),
            now: 0,
        }
    }
}

impl CachePolicy for TtlPriority {
    fn attach(&mut self, groups: &[GroupInfo]) {
        self.ranking.reserve(groups);
    }

    fn step(&mut self, events: Events<'_>, want: u32, victims: &mut Vec<u32>) {
        for event in events {
            self.learn(event);
        }
        for _ in 0..want {
            let Some(id) = self.next_victim() else { break };
            victims.push(id);
            self.ranking.remove(id, later);
        }
    }
}

const fn priority(key: &'static str, help: &'static str, default: u64) -> Setting {
    Setting { key, help, default, min: 0, max: 100 }
}

const fn lifetime(key: &'static str, help: &'static str) -> Setting {
    Setting { key, help, default: 0, min: 0, max: u64::MAX }
}
