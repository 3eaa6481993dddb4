//! `reprise model`.

use reprise::Config;
use reprise_core::model::presets;

use super::{Failure, print};
use crate::{args::ModelCommand, footprint::Footprint};

pub(super) fn run(command: ModelCommand) -> Result<(), Failure> {
    match command {
        ModelCommand::Show { model, block_tokens, json } => show(&model, block_tokens, json),
        ModelCommand::List => list(),
    }
}

fn show(model: &str, block_tokens: u32, json: bool) -> Result<(), Failure> {
    let model = Config::new(model).map_err(Failure::input)?.model;
    let footprint = Footprint::new(model, block_tokens).map_err(Failure::input)?;
    print(&if json { format!("{}\n", footprint.json()) } else { footprint.table() })
}

fn list() -> Result<(), Failure> {
    let mut text = String::new();
    for preset in presets() {
        text += &format!("{:<14}{}\n", preset.name, preset.help);
        for option in preset.options {
            text += &format!("{:<14}  {}={}: {}\n", "", option.key, option.values.join("|"), option.help);
        }
    }
    print(&text)
}
