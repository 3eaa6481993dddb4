//! `reprise store verify`.

use anyhow::anyhow;
use reprise::{StoreReader, VerifyReport};
use serde_json::json;

use super::{Failure, print};
use crate::{args::StoreCommand, progress::bar};

pub(super) fn run(command: StoreCommand) -> Result<(), Failure> {
    let StoreCommand::Verify { directory, json } = command;
    let store = StoreReader::open(&directory).map_err(|error| {
        Failure::input(anyhow!(error).context(format!("opening the store in {}", directory.display())))
    })?;
    let bar = bar(0, "slots", json);
    let report = store.verify(&mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    print(&if json { format!("{:#}\n", as_json(&report)) } else { table(&report) })?;
    if report.is_clean() {
        Ok(())
    } else {
        Err(Failure::work(anyhow!(
            "the store has damaged records: they are misses, and their slots are used again; if their number grows, check the device"
        )))
    }
}

fn as_json(report: &VerifyReport) -> serde_json::Value {
    json!({
        "clean": report.is_clean(),
        "namespaces": report.namespaces,
        "classes": report.classes.iter().map(|class| json!({
            "name": class.stem, "damaged_header": class.damaged_header, "records": class.records, "good": class.good,
            "corrupt": class.corrupt, "damaged_entries": class.damaged_entries, "unreadable": class.unreadable,
            "changed": class.changed,
        })).collect::<Vec<_>>(),
    })
}

fn table(report: &VerifyReport) -> String {
    let mut text = format!("{} namespaces\n", report.namespaces);
    text += &format!(
        "{:<24}{:>10}{:>10}{:>10}{:>16}{:>12}{:>10}\n",
        "", "records", "good", "corrupt", "damaged entries", "unreadable", "changed"
    );
    for class in &report.classes {
        text += &if class.damaged_header {
            format!("{:<24}the header of its table is damaged: nothing in it can be used\n", class.stem)
        } else {
            format!(
                "{:<24}{:>10}{:>10}{:>10}{:>16}{:>12}{:>10}\n",
                class.stem,
                class.records,
                class.good,
                class.corrupt,
                class.damaged_entries,
                class.unreadable,
                class.changed
            )
        };
    }
    text
}
