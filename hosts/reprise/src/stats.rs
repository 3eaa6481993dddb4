//! Counts and sizes of a cache, for a program and for Prometheus.

use std::fmt::Write;

use serde::Serialize;

use crate::{
    cache::{Inner, lock},
    counters::Counters,
    group::Group,
    policies::{Policies, PolicyStatus},
};

/// A snapshot of a cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Stats {
    /// Counts since the cache was opened.
    pub counters: Counters,
    /// Records resident, by group.
    pub resident_records: [u64; Group::ALL.len()],
    /// Bytes they occupy: slots, by group.
    pub resident_bytes: [u64; Group::ALL.len()],
    /// Bytes the quota allows, in whole slots, by group.
    pub capacity_bytes: [u64; Group::ALL.len()],
    /// Leases in force.
    pub leases: u64,
    /// Memory of the tree.
    pub tree_memory_bytes: u64,
    /// Why the store takes no records at the moment.
    pub store_refuses: Option<String>,
    /// How the policies are doing.
    pub policies: [PolicyStatus; 2],
}

impl Stats {
    pub(crate) fn of(inner: &Inner) -> Self {
        let policies = Policies(inner).status();
        let store_refuses = inner.threads.as_ref().and_then(|threads| threads.writer.refusal());
        let ledger = lock(&inner.ledger);
        let checkpoints = u64::from(ledger.tree.checkpoints().len());
        let resident_records = [u64::from(ledger.tree.len()), checkpoints, checkpoints];
        let slot_bytes = |group: Group| inner.shape.group(group).map_or(0, |shape| shape.slot_bytes);
        let each = |of: &dyn Fn(Group) -> u64| Group::ALL.map(of);
        let checkpoint_limit = u64::from(ledger.tree.checkpoints().limit());
        let limits = [u64::from(ledger.tree.limit()), checkpoint_limit, checkpoint_limit];
        Self {
            counters: ledger.counters.clone(),
            resident_records: each(&|group| if slot_bytes(group) == 0 { 0 } else { resident_records[group as usize] }),
            resident_bytes: each(&|group| resident_records[group as usize] * slot_bytes(group)),
            capacity_bytes: each(&|group| limits[group as usize] * slot_bytes(group)),
            leases: ledger.leases.len() as u64,
            tree_memory_bytes: ledger.tree.memory_bytes() as u64,
            store_refuses,
            policies,
        }
    }

    /// The snapshot in Prometheus' text format.
    pub fn prometheus(&self) -> String {
        let mut text = Text(String::new());
        let counters = &self.counters;
        for (name, help, value) in [
            ("requests", "Plans made.", counters.requests),
            ("hits", "Plans that adopt something.", counters.hits),
            ("prompt_tokens", "Tokens of the prompts.", counters.prompt_tokens),
            ("matched_tokens", "Tokens covered by leading resident blocks.", counters.matched_tokens),
            ("adopted_tokens", "Tokens taken from the cache.", counters.adopted_tokens),
            ("replayed_tokens", "Tokens computed again to rebuild windows.", counters.replayed_tokens),
            ("computed_tokens", "Tokens that need a forward pass.", counters.computed_tokens),
            ("captures_planned", "Checkpoints asked for.", counters.captures_planned),
            ("captures_skipped", "Checkpoints asked for and not kept.", counters.captures_skipped),
            ("refused_blocks", "Blocks refused by admission.", counters.refused_blocks),
            ("unsaved_blocks", "Blocks without room.", counters.unsaved_blocks),
            ("native_evictions", "Evictions decided by the native LRU.", counters.native_evictions),
            ("native_checkpoints", "Checkpoint decisions taken natively.", counters.native_checkpoints),
            ("expired_leases", "Leases that ended by their deadline.", counters.expired_leases),
        ] {
            text.family(&format!("{name}_total"), "counter", help, [(String::new(), value)]);
        }
        let reasons = counters.explained().map(|(reason, count)| (format!("reason=\"{}\"", reason.name()), count));
        text.family("plans_total", "counter", "Plans by the reason why they are not longer.", reasons);
        type Field = fn(&crate::GroupCounters) -> u64;
        let fields: [(&str, &str, Field); 8] = [
            ("written_records_total", "Records written.", |group| group.written_records),
            ("written_bytes_total", "Payload bytes written.", |group| group.written_bytes),
            ("loaded_records_total", "Records loaded.", |group| group.loaded_records),
            ("loaded_bytes_total", "Payload bytes loaded.", |group| group.loaded_bytes),
            ("evicted_records_total", "Records evicted.", |group| group.evicted_records),
            ("orphaned_records_total", "Checkpoints dropped with their block.", |group| group.orphaned_records),
            ("failed_writes_total", "Records that could not be written.", |group| group.failed_writes),
            ("failed_reads_total", "Records that could not be read.", |group| group.failed_reads),
        ];
        for (name, help, field) in fields {
            let samples = Group::ALL.map(|group| (group_label(group), field(counters.group(group))));
            text.family(name, "counter", help, samples);
        }
        let by_group = |values: &[u64; 3]| Group::ALL.map(|group| (group_label(group), values[group as usize]));
        text.family("resident_records", "gauge", "Records resident.", by_group(&self.resident_records));
        text.family("resident_bytes", "gauge", "Bytes of the slots in use.", by_group(&self.resident_bytes));
        text.family("capacity_bytes", "gauge", "Bytes of all slots that may be used.", by_group(&self.capacity_bytes));
        text.family("leases", "gauge", "Leases in force.", [(String::new(), self.leases)]);
        text.family("tree_memory_bytes", "gauge", "Memory of the tree.", [(String::new(), self.tree_memory_bytes)]);
        let refuses = u64::from(self.store_refuses.is_some());
        text.family("store_refuses", "gauge", "1 while the store takes no records.", [(String::new(), refuses)]);
        let policy = |value: fn(&PolicyStatus) -> u64| {
            self.policies.iter().map(move |status| {
                (format!("role=\"{}\",policy=\"{}\"", status.role, escape(&status.name)), value(status))
            })
        };
        text.family("policy_calls_total", "counter", "Calls of policies.", policy(|status| status.calls));
        text.family("policy_strikes_total", "counter", "Failures of policies.", policy(|s| u64::from(s.strikes)));
        text.family("policy_retired", "gauge", "1 if the fallback answers.", policy(|s| u64::from(s.retired)));
        text.0
    }
}

fn group_label(group: Group) -> String {
    format!("tier=\"disk\",group=\"{}\"", group.name())
}

fn escape(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str, samples: impl IntoIterator<Item = (String, u64)>) {
        let text = &mut self.0;
        // Writing to a string does not fail.
        let _ = writeln!(text, "# HELP reprise_{name} {help}\n# TYPE reprise_{name} {kind}");
        for (labels, value) in samples {
            let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
            let _ = writeln!(text, "reprise_{name}{labels} {value}");
        }
    }
}
