//! The `reprise` command.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    reprise_cli::command::run(reprise_cli::args::Arguments::parse())
}
