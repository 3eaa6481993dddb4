//! `reprise policy describe`.

use super::{Failure, print};
use crate::args::PolicyCommand;

pub(super) fn run(command: PolicyCommand) -> Result<(), Failure> {
    let PolicyCommand::Describe { policy } = command;
    let description = reprise::describe(&policy).map_err(Failure::input)?;
    let kind = match description.kind {
        reprise::PolicyKind::Cache if description.admission => "eviction, with admission",
        reprise::PolicyKind::Cache => "eviction",
        reprise::PolicyKind::Checkpoint => "checkpoints",
    };
    let mut text = format!("{} {}: {kind}\n", description.name, description.version);
    if description.settings.is_empty() {
        text += "no settings\n";
    }
    for setting in &description.settings {
        let line =
            format!("  {}={} ({} to {}): {}\n", setting.key, setting.default, setting.min, setting.max, setting.help);
        text += &line;
    }
    print(&text)
}
