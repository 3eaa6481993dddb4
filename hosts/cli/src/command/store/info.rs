//! `reprise store info`.

use std::{collections::BTreeMap, ops::ControlFlow, path::Path};

use reprise::{
    StoreReader, StoreUsage,
    disk::{
        IoEngine, IoMode, NamespaceRecord,
        tools::{Conditions, Found, Owner},
    },
};
use serde_json::{Value, json};

use super::{Failure, failure, opening, print, read};
use crate::figures::{columns, grouped, human_bytes};

pub(super) fn run(directory: &Path, json: bool) -> Result<(), Failure> {
    let store = read(directory)?;
    let conditions = Conditions::of(directory).map_err(|error| opening(directory, error))?;
    let usage = store.usage(conditions.mode.clone());
    let contents = Contents::of(&store)?;
    let info = Info { directory, store: &store, conditions, usage, contents };
    print(&if json { format!("{:#}\n", info.json()) } else { info.table() })
}

/// What tables hold, counted.
#[derive(Default)]
struct Contents {
    /// By group and namespace.
    counts: BTreeMap<(u8, u16), Count>,
    /// Entries that the next open drops, by group.
    damaged: BTreeMap<u8, u64>,
}

#[derive(Clone, Copy, Default)]
struct Count {
    records: u64,
    oldest_use: Option<u64>,
    newest_use: Option<u64>,
}

impl Count {
    fn add(&mut self, other: Self) {
        let both = |one: Option<u64>, other: Option<u64>, choose: fn(u64, u64) -> u64| match (one, other) {
            (Some(one), Some(other)) => Some(choose(one, other)),
            (one, other) => one.or(other),
        };
        self.records += other.records;
        self.oldest_use = both(self.oldest_use, other.oldest_use, u64::min);
        self.newest_use = both(self.newest_use, other.newest_use, u64::max);
    }
}

impl Contents {
    fn of(store: &StoreReader) -> Result<Self, Failure> {
        let mut contents = Self::default();
        let mut visit = |class: &reprise::disk::GroupClass, found| {
            match found {
                Found::Record(record) => {
                    let (oldest_use, newest_use) = (Some(record.last_use), Some(record.last_use));
                    let one = Count { records: 1, oldest_use, newest_use };
                    contents.counts.entry((class.group, record.namespace)).or_default().add(one);
                }
                Found::Damaged { .. } => *contents.damaged.entry(class.group).or_default() += 1,
            }
            ControlFlow::Continue(())
        };
        store.visit(&mut visit).map_err(failure)?;
        Ok(contents)
    }

    fn count(&self, is_meant: impl Fn(u8, u16) -> bool) -> Count {
        let mut sum = Count::default();
        let meant = self.counts.iter().filter(|((group, namespace), _)| is_meant(*group, *namespace));
        meant.for_each(|(_, count)| sum.add(*count));
        sum
    }
}

struct Info<'a> {
    directory: &'a Path,
    store: &'a StoreReader,
    conditions: Conditions,
    usage: StoreUsage,
    contents: Contents,
}

impl Info<'_> {
    fn json(&self) -> Value {
        let Self { store, conditions, usage, contents, .. } = self;
        let total = contents.count(|_, _| true);
        let (owner, owner_unknown) = match &conditions.owner {
            Owner::Nobody => (None, None),
            Owner::Process { owner } => (Some(owner), None),
            Owner::Unknown { why } => (None, Some(why)),
        };
        json!({
            "format": store.format().map(|format| json!({
                "version": format.version, "required_features": format.required_features,
                "optional_features": format.optional_features,
            })),
            "owner": owner,
            "owner_unknown": owner_unknown,
            "io": {
                "direct": conditions.mode == IoMode::Direct, "mode": conditions.mode.to_string(),
                "io_uring": matches!(conditions.engine, IoEngine::Ring { .. }), "engine": engine(&conditions.engine),
            },
            "namespaces": (0..).zip(store.namespaces()).map(|(index, namespace)| self.namespace(index, namespace)).collect::<Vec<_>>(),
            "groups": store.classes().map(|class| {
                let count = contents.count(|group, _| group == class.group);
                let of_group = usage.classes.iter().find(|usage| usage.name == class.name);
                json!({
                    "group": class.name, "fingerprint": class.fingerprint.to_string(), "record_bytes": class.payload_bytes,
                    "slot_bytes": class.slot_bytes(), "sections": class.sections.len(), "slots": class.slots, "records": count.records,
                    "damaged_entries": contents.damaged.get(&class.group).copied().unwrap_or(0),
                    "quota_bytes": of_group.map(|usage| usage.quota_bytes),
                    "allocated_bytes": of_group.map(|usage| usage.allocated_bytes),
                    "trailer_overhead_bytes": of_group.map(|usage| usage.overhead_bytes),
                })
            }).collect::<Vec<_>>(),
            "table_bytes": usage.table_bytes,
            "catalogue_bytes": usage.catalogue_bytes,
            "oldest_use": total.oldest_use,
            "newest_use": total.newest_use,
        })
    }

    fn namespace(&self, index: u16, namespace: &NamespaceRecord) -> Value {
        let count = self.contents.count(|_, of| of == index);
        let groups = self.store.classes().map(|class| {
            let records = self.contents.count(|group, of| group == class.group && of == index).records;
            (class.name.clone(), json!({ "records": records, "bytes": records * class.slot_bytes() }))
        });
        json!({
            "namespace": index, "model": namespace.model, "revision": namespace.revision,
            "tenant": namespace.salt_hash.to_string(), "adapter": namespace.adapter, "rank": namespace.rank,
            "ranks": namespace.ranks, "block_tokens": namespace.block_tokens,
            "extensions": namespace.extensions.lines().collect::<Vec<_>>(),
            "groups": groups.collect::<serde_json::Map<_, _>>(),
            "oldest_use": count.oldest_use, "newest_use": count.newest_use,
        })
    }

    fn table(&self) -> String {
        let Self { directory, store, conditions, usage, contents } = self;
        let format = store.format().map_or_else(
            || "its superblock is damaged, the next open mends it".to_owned(),
            |format| match format.required_features | format.optional_features {
                0 => format!("format {}", format.version),
                features => format!("format {}, features {features:#x}", format.version),
            },
        );
        let owner = match &conditions.owner {
            Owner::Nobody => "not in use".to_owned(),
            Owner::Process { owner } => format!("in use by {owner}"),
            Owner::Unknown { why } => format!("whether it is in use is unknown ({why})"),
        };
        let mut lines = vec![
            format!("store {}: {format}, {owner}", directory.display()),
            format!("input/output here: {} by {}", conditions.mode, engine(&conditions.engine)),
            String::new(),
        ];
        lines.extend(self.groups());
        let overhead: u64 = usage.classes.iter().map(|class| class.overhead_bytes).sum();
        let (tables, catalogue) = (human_bytes(usage.table_bytes), human_bytes(usage.catalogue_bytes));
        lines.push(format!(
            "beside the quotas: {tables} of tables, {catalogue} of catalogue; of the quotas {} for trailers",
            human_bytes(overhead)
        ));
        let total = contents.count(|_, _| true);
        if let (Some(oldest), Some(newest)) = (total.oldest_use, total.newest_use) {
            lines.push(format!("last uses from {oldest} to {newest}, in the time of the process that serves"));
        }
        lines.push(String::new());
        lines.extend(self.namespaces());
        lines.join("\n") + "\n"
    }

    fn groups(&self) -> Vec<String> {
        let head = ["group", "layout", "record", "slots", "used", "damaged", "quota", "on disk"].map(str::to_owned);
        let mut rows = vec![head];
        for class in self.store.classes() {
            let of_group = self.usage.classes.iter().find(|usage| usage.name == class.name);
            rows.push([
                class.name.clone(),
                short(&class.fingerprint.to_string()),
                human_bytes(class.payload_bytes),
                grouped(class.slots.into()),
                grouped(self.contents.count(|group, _| group == class.group).records),
                grouped(self.contents.damaged.get(&class.group).copied().unwrap_or(0)),
                human_bytes(of_group.map_or(0, |usage| usage.quota_bytes)),
                human_bytes(of_group.map_or(0, |usage| usage.allocated_bytes)),
            ]);
        }
        columns(&rows, &[0, 1])
    }

    fn namespaces(&self) -> Vec<String> {
        let shared = reprise::Namespace::new("", "").tenant_digest();
        let head =
            ["namespace", "model", "revision", "block", "rank", "tenant", "adapter", "records", "bytes", "last uses"];
        let mut rows = vec![head.map(str::to_owned)];
        for (index, namespace) in (0..).zip(self.store.namespaces()) {
            let count = self.contents.count(|_, of| of == index);
            let bytes: u64 = self
                .store
                .classes()
                .map(|class| {
                    let records = self.contents.count(|group, of| group == class.group && of == index).records;
                    records * class.slot_bytes()
                })
                .sum();
            let with_extensions = match namespace.extensions.replace('\n', ", ") {
                none if none.is_empty() => namespace.model.clone(),
                extensions => format!("{} ({extensions})", namespace.model),
            };
            rows.push([
                index.to_string(),
                with_extensions,
                namespace.revision.clone(),
                namespace.block_tokens.to_string(),
                format!("{}/{}", namespace.rank, namespace.ranks),
                if namespace.salt_hash == shared { "-".to_owned() } else { short(&namespace.salt_hash.to_string()) },
                if namespace.adapter.is_empty() { "-".to_owned() } else { namespace.adapter.clone() },
                grouped(count.records),
                human_bytes(bytes),
                match (count.oldest_use, count.newest_use) {
                    (Some(oldest), Some(newest)) => format!("{oldest}–{newest}"),
                    _ => "-".to_owned(),
                },
            ]);
        }
        columns(&rows, &[1, 2, 5, 6])
    }
}

/// The first digits of a digest.
fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}

fn engine(engine: &IoEngine) -> String {
    match engine {
        IoEngine::Ring { .. } => "io_uring".to_owned(),
        engine => engine.to_string(),
    }
}
