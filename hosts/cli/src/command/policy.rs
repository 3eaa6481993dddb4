//! `reprise policy describe`.

use super::Failure;
use crate::args::PolicyCommand;

pub(super) fn run(command: PolicyCommand) -> Result<(), Failure> {
    let PolicyCommand::Describe { policy } = command;
    let description = reprise::describe(&policy).map_err(Failure::input)?;
    let kind = match description.kind {
        reprise::PolicyKind::Cache if description.admission => "eviction, with admission",
        reprise::PolicyKind::Cache => "eviction",
        reprise::PolicyKind::Checkpoint => "checkpoints",
    };
    println!("{} {}: {kind}", description.name, description.version);
    if description.settings.is_empty() {
        println!("no settings");
    }
    for setting in &description.settings {
        println!("  {}={} ({} to {}): {}", setting.key, setting.default, setting.min, setting.max, setting.help);
    }
    Ok(())
}
