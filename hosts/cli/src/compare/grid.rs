//! What is compared, and what a cell of it is.

use super::{
    Contender, Setting, Subject,
    figures::Verdict,
    split::{self, Division},
    untyped,
};

/// With types, or without.
pub enum Mode {
    /// Budgets are bytes.
    Typed(Box<Setting>),
    /// Budgets are blocks.
    Untyped(untyped::Pool),
}

/// What is compared.
pub struct Grid {
    /// On what.
    pub subjects: Vec<Subject>,
    /// Budgets of each subject, ascending: bytes, or blocks without types.
    pub sizes: Vec<Vec<u64>>,
    /// Who.
    pub contenders: Vec<Contender>,
    /// This share of windows instead of the best, in thousandths.
    pub share: Option<u32>,
    /// How.
    pub mode: Mode,
}

/// One trace under one policy at one budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Index of the trace.
    pub subject: usize,
    /// Index of the policy.
    pub contender: usize,
    /// The budget.
    pub size: u64,
    /// How it is divided.
    pub division: Division,
    /// Thousandths for windows.
    pub share: u32,
    /// Replays that the search took.
    pub replays: usize,
    /// What came out.
    pub verdict: Verdict,
}

impl Grid {
    /// How the split of a budget is found for a policy.
    pub fn division(&self, contender: usize) -> Division {
        let windows = match &self.mode {
            Mode::Typed(setting) => setting.shape().window.is_some(),
            Mode::Untyped(_) => false,
        };
        match self.share {
            _ if !windows || self.contenders[contender].keeps_no_windows() => Division::Undivided,
            Some(share) => Division::Given(share),
            None if self.contenders[contender].learns_its_split() => Division::Learned,
            None => Division::Searched,
        }
    }

    /// Whether a share of windows leaves room for a record in each part of a budget.
    pub fn admits(&self, size: u64, share: u32) -> bool {
        match &self.mode {
            Mode::Typed(setting) => split::admits(size, share, setting.shape()),
            Mode::Untyped(_) => true,
        }
    }
}
