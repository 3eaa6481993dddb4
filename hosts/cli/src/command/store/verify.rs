//! `reprise store verify`.

use std::path::Path;

use anyhow::anyhow;
use reprise::{
    StoreReader,
    disk::tools::{Finding, Removal, VerifyReport},
};
use serde_json::{Value, json};

use super::{
    Failure, failure, follow, lock, print, read,
    remove::{Outcome, take_out},
};
use crate::{figures::columns, progress::bar};

/// Most bad records that a person is shown; JSON has all.
const SHOWN: usize = 100;

pub(super) fn run(directory: &Path, json: bool) -> Result<(), Failure> {
    let store = read(directory)?;
    let report = check(&store, json);
    print(&if json { format!("{:#}\n", as_json(&report, None)) } else { table(&report) })?;
    if report.is_clean() {
        return Ok(());
    }
    Err(Failure::work(anyhow!(
        "the store has damaged records: they are misses, and their slots are used again; if their number grows, check the device"
    )))
}

pub(super) fn repair(directory: &Path, json: bool) -> Result<(), Failure> {
    let store = lock(directory)?;
    let report = check(store.reader(), json);
    let inventory = store.reader().inventory().map_err(failure)?;
    let removal = Removal::damaged(&inventory, &report);
    let outcome = take_out(&store, &inventory, &removal, json)?;
    print(&if json {
        format!("{:#}\n", as_json(&report, Some(&outcome)))
    } else {
        table(&report) + &outcome.table("freed")
    })?;
    match report.classes.iter().map(|class| class.unreadable).sum() {
        0 => Ok(()),
        unreadable => {
            let why =
                "records cannot be read for an error of the operating system and were not freed: check the device";
            Err(Failure::work(anyhow!("{unreadable} {why}")))
        }
    }
}

fn check(store: &StoreReader, quiet: bool) -> VerifyReport {
    let bar = bar(0, "slots", quiet);
    let report = store.verify(&mut follow(&bar));
    bar.finish_and_clear();
    report
}

fn as_json(report: &VerifyReport, repaired: Option<&Outcome>) -> Value {
    let mut object = json!({
        "clean": report.is_clean(),
        "namespaces": report.namespaces,
        "classes": report.classes.iter().map(|class| json!({
            "name": class.stem, "damaged_header": class.damaged_header, "records": class.records, "good": class.good,
            "corrupt": class.corrupt, "damaged_entries": class.damaged_entries, "unreadable": class.unreadable,
            "changed": class.changed, "bad": class.findings.iter().map(finding).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    });
    if let Some(outcome) = repaired {
        object["repaired"] = outcome.json();
    }
    object
}

fn finding(finding: &Finding) -> Value {
    let record = finding.record.map(|record| {
        json!({
            "namespace": record.namespace, "position": record.position, "digest": record.digest.to_string(),
            "parent": record.parent.to_string(), "last_use": record.last_use,
        })
    });
    json!({ "file": finding.file, "slot": finding.slot, "fault": finding.fault.to_string(), "record": record })
}

fn table(report: &VerifyReport) -> String {
    let head = ["", "records", "good", "corrupt", "damaged entries", "unreadable", "changed"].map(str::to_owned);
    let mut rows = vec![head];
    for class in report.classes.iter().filter(|class| !class.damaged_header) {
        let counts = [class.records, class.good, class.corrupt, class.damaged_entries, class.unreadable, class.changed];
        let [records, good, corrupt, damaged, unreadable, changed] = counts.map(|count| count.to_string());
        rows.push([class.stem.clone(), records, good, corrupt, damaged, unreadable, changed]);
    }
    let mut lines = vec![format!("{} namespaces", report.namespaces)];
    lines.extend(columns(&rows, &[0]));
    for class in report.classes.iter().filter(|class| class.damaged_header) {
        lines.push(format!("{}: the header of its table is damaged: nothing in it can be used", class.stem));
    }
    lines.extend(report.findings().take(SHOWN).map(describe));
    match report.findings().count() {
        0..=SHOWN => {}
        all => lines.push(format!("… and {} more; --json lists all", all - SHOWN)),
    }
    lines.join("\n") + "\n"
}

fn describe(finding: &Finding) -> String {
    let record = finding.record.map_or_else(String::new, |record| {
        let digest = record.digest.to_string();
        format!(", namespace {}, position {}, digest {}…", record.namespace, record.position, &digest[..16])
    });
    format!("{}, slot {}{record}: {}", finding.file, finding.slot, finding.fault)
}
