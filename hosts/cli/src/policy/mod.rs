//! Policies as authors and operators handle them: written, built, checked, looked at, measured.

pub mod bench;
pub mod build;
pub mod check;
mod compiler;
pub mod inspect;
pub mod new;
mod subject;
mod terms;
mod text;

pub use compiler::Compiler;
pub use subject::Subject;
pub use terms::{check_terms, name_of};

/// Why something was not done.
#[derive(Debug)]
pub enum Problem {
    /// What was given makes no sense, and nothing was touched.
    Input(anyhow::Error),
    /// The work failed.
    Work(anyhow::Error),
}

impl Problem {
    fn input(error: impl Into<anyhow::Error>) -> Self {
        Self::Input(error.into())
    }
}
