//! `reprise policy`.

mod bench;
mod build;
mod check;
mod inspect;
mod new;

use super::{Failure, print};
use crate::{
    args::PolicyCommand,
    policy::{Compiler, Problem},
};

pub(super) fn run(command: PolicyCommand) -> Result<(), Failure> {
    match command {
        PolicyCommand::New(arguments) => new::run(arguments),
        PolicyCommand::Build(arguments) => build::run(&arguments),
        PolicyCommand::Check(arguments) => check::run(&arguments),
        PolicyCommand::Inspect { policy, json } => inspect::run(&policy, json),
        PolicyCommand::Bench(arguments) => bench::run(&arguments),
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Input(error) => Self::Input(error),
            Problem::Work(error) => Self::Work(error),
        }
    }
}

/// A compiler that warns once if it cannot keep what it compiles.
fn compiler() -> Compiler {
    Compiler::of_user(|reason| eprintln!("reprise: warning: {reason}; policies are compiled anew each time"))
}
