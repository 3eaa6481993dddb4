//! `reprise store purge` and `evict`: what takes records out.

use std::path::Path;

use anyhow::anyhow;
use reprise::disk::tools::{Inventory, Maintenance, Removal, RemovalCount, Removed};
use serde_json::{Value, json};

use super::{Failure, class, failure, filter, follow, lock, print, read};
use crate::{
    args::{FilterOptions, Room},
    figures::{columns, grouped, human_bytes},
    progress::bar,
};

pub(super) fn purge(
    directory: &Path,
    options: &FilterOptions,
    unused_since: Option<u64>,
    dry_run: bool,
    json: bool,
) -> Result<(), Failure> {
    if options.is_empty() && unused_since.is_none() {
        return Err(Failure::input(anyhow!(
            "say which records are to go, for instance with --tenant-file, --model or --unused-since; to drop all, delete the directory"
        )));
    }
    if dry_run {
        let store = read(directory)?;
        let filter = filter(&store, directory, options)?;
        let inventory = store.inventory().map_err(failure)?;
        let removal = Removal::matching(&inventory, &filter, unused_since);
        return show(&Outcome { counts: removal.counts(&inventory), removed: None }, "would be taken out", json);
    }
    let store = lock(directory)?;
    let filter = filter(store.reader(), directory, options)?;
    let inventory = store.reader().inventory().map_err(failure)?;
    let removal = Removal::matching(&inventory, &filter, unused_since);
    show(&take_out(&store, &inventory, &removal, json)?, "taken out", json)
}

pub(super) fn evict(directory: &Path, group: &str, room: Room, json: bool) -> Result<(), Failure> {
    let store = lock(directory)?;
    let class = class(store.reader(), directory, group)?;
    let wanted = room.bytes.map_or(0, |bytes| bytes.div_ceil(class.slot_bytes())).max(room.records.unwrap_or(0).into());
    let inventory = store.reader().inventory().map_err(failure)?;
    let removal = u32::try_from(wanted).ok().and_then(|slots| Removal::least_recent(&inventory, class.group, slots));
    let Some(removal) = removal else {
        let (slots, bytes) = (grouped(class.slots.into()), human_bytes(u64::from(class.slots) * class.slot_bytes()));
        return Err(Failure::input(anyhow!(
            "group {group} has {slots} slots, {bytes} in all: so many as {} cannot be free",
            grouped(wanted)
        )));
    };
    show(&take_out(&store, &inventory, &removal, json)?, "taken out", json)
}

/// What was taken out, or would be.
pub(super) struct Outcome {
    counts: Vec<RemovalCount>,
    /// `None`: nothing was done.
    removed: Option<Removed>,
}

/// Carries a removal out.
pub(super) fn take_out(
    store: &Maintenance,
    inventory: &Inventory,
    removal: &Removal,
    quiet: bool,
) -> Result<Outcome, Failure> {
    let bar = bar(0, "records", quiet);
    let removed = store.remove(removal, &mut follow(&bar)).map_err(Failure::work)?;
    bar.finish_and_clear();
    Ok(Outcome { counts: removal.counts(inventory), removed: Some(removed) })
}

fn show(outcome: &Outcome, done: &str, json: bool) -> Result<(), Failure> {
    print(&if json { format!("{:#}\n", outcome.json()) } else { outcome.table(done) })
}

impl Outcome {
    pub(super) fn json(&self) -> Value {
        json!({
            "dry_run": self.removed.is_none(),
            "groups": self.counts.iter().map(|count| json!({
                "group": count.group, "named": count.named, "behind": count.behind, "bytes": count.bytes,
            })).collect::<Vec<_>>(),
            "records": self.counts.iter().map(|count| count.named + count.behind).sum::<u64>(),
            "returned_bytes": self.removed.map(|removed| removed.returned_bytes),
        })
    }

    /// `done` says what has become of the records.
    pub(super) fn table(&self, done: &str) -> String {
        let mut lines = match self.counts.as_slice() {
            [] => vec![format!("no records {done}")],
            counts => {
                let mut rows = vec![[done, "named", "behind", "bytes"].map(str::to_owned)];
                rows.extend(counts.iter().map(|count| {
                    let [named, behind] = [count.named, count.behind].map(grouped);
                    [count.group.clone(), named, behind, human_bytes(count.bytes)]
                }));
                columns(&rows, &[0])
            }
        };
        if let Some(removed) = self.removed {
            lines.push(format!("{} given back to the file system", human_bytes(removed.returned_bytes)));
        }
        lines.join("\n") + "\n"
    }
}
