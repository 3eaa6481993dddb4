//! `reprise store verify`.

use anyhow::anyhow;
use reprise::{StoreReader, VerifyReport};
use serde_json::json;

use super::Failure;
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
    if json {
        println!("{:#}", as_json(&report));
    } else {
        print_table(&report);
    }
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

fn print_table(report: &VerifyReport) {
    println!("{} namespaces", report.namespaces);
    println!(
        "{:<24}{:>10}{:>10}{:>10}{:>16}{:>12}{:>10}",
        "", "records", "good", "corrupt", "damaged entries", "unreadable", "changed"
    );
    for class in &report.classes {
        if class.damaged_header {
            println!("{:<24}the header of its table is damaged: nothing in it can be used", class.stem);
            continue;
        }
        println!(
            "{:<24}{:>10}{:>10}{:>10}{:>16}{:>12}{:>10}",
            class.stem,
            class.records,
            class.good,
            class.corrupt,
            class.damaged_entries,
            class.unreadable,
            class.changed
        );
    }
}
