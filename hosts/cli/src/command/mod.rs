//! The commands: each takes its arguments and says how it ended.

mod advise;
mod bench;
mod compare;
mod model;
mod plan;
mod policy;
mod replay;
mod setup;
mod store;
mod trace;
mod untyped;
mod watch;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::anyhow;

use crate::args::{Arguments, Command};

/// How a command failed.
#[derive(Debug)]
pub enum Failure {
    /// It could not do its work: exit 1.
    Work(anyhow::Error),
    /// What it was given makes no sense, and nothing was touched: exit 2.
    Input(anyhow::Error),
    /// It ended, but a policy failed under `--strict-policy`: exit 3.
    Policy(anyhow::Error),
}

impl Failure {
    pub(crate) fn input(error: impl Into<anyhow::Error>) -> Self {
        Self::Input(error.into())
    }

    pub(crate) fn work(error: impl Into<anyhow::Error>) -> Self {
        Self::Work(error.into())
    }

    pub(crate) fn context(self, context: String) -> Self {
        match self {
            Self::Work(error) => Self::Work(error.context(context)),
            Self::Input(error) => Self::Input(error.context(context)),
            Self::Policy(error) => Self::Policy(error.context(context)),
        }
    }

    fn parts(&self) -> (u8, &anyhow::Error) {
        match self {
            Self::Work(error) => (1, error),
            Self::Input(error) => (2, error),
            Self::Policy(error) => (3, error),
        }
    }
}

/// Does what the command line says; prints what went wrong to standard error.
pub fn run(arguments: Arguments) -> ExitCode {
    let result = match arguments.command {
        Command::Replay(arguments) => match arguments.capacity_blocks {
            Some(capacity_blocks) => untyped::run(&arguments, capacity_blocks),
            None => replay::run(&arguments),
        },
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Advise(arguments) => advise::run(&arguments),
        Command::Model(command) => model::run(command),
        Command::Trace(command) => trace::run(command),
        Command::Store(command) => store::run(command),
        Command::Bench(command) => bench::run(command),
        Command::Policy(command) => policy::run(command),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let (code, error) = failure.parts();
            eprintln!("reprise: {}", in_one_line(error));
            ExitCode::from(code)
        }
    }
}

/// An error with its causes. Some errors say themselves what their cause says: that is not said again.
fn in_one_line(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| match text.as_str() {
        "" => cause,
        said if said.contains(&cause) => text,
        _ => format!("{text}: {cause}"),
    })
}

/// Prints a report to standard output.
fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().write_all(text.as_bytes()) {
        // A reader that closed the pipe has read enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::work(anyhow!(error).context("writing the report to standard output")))
        }
        _ => Ok(()),
    }
}
