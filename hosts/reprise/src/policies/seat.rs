//! The seat of a policy: who sits in it, what it did wrong, and who answers when it is empty.

use std::fmt;

use serde::Serialize;

use super::runner::{Origin, PolicyError};

/// What a policy decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Which blocks are admitted and which go.
    Eviction,
    /// Where windows are kept.
    Checkpoints,
}

impl Role {
    const fn fallback(self) -> &'static str {
        match self {
            Self::Eviction => "the native LRU",
            Self::Checkpoints => "the native `events`",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Eviction => "eviction",
            Self::Checkpoints => "checkpoint",
        })
    }
}

/// Something an operator should see once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Notice {
    /// Which seat.
    pub role: Role,
    /// The policy.
    pub policy: String,
    /// What it did, and what follows.
    pub text: String,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} policy `{}`: {}", self.role, self.policy, self.text)
    }
}

/// How a policy is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PolicyStatus {
    /// Which seat.
    pub role: Role,
    /// The policy.
    pub name: String,
    /// Whether it runs as a component.
    pub component: bool,
    /// Calls made.
    pub calls: u64,
    /// What it decided: victims named, or positions chosen.
    pub decisions: u64,
    /// Failures since it took its seat.
    pub strikes: u32,
    /// What its last failure was.
    pub last_strike: Option<String>,
    /// Whether it was retired, so that the native fallback answers.
    pub retired: bool,
}

impl PolicyStatus {
    fn new(role: Role, name: &str, component: bool) -> Self {
        let name = name.to_owned();
        Self { role, name, component, calls: 0, decisions: 0, strikes: 0, last_strike: None, retired: false }
    }
}

/// A running policy with its record.
pub(crate) struct Seat<R> {
    /// Makes another instance; `None` if the policy never ran.
    pub origin: Option<Origin>,
    /// `None` once retired.
    pub running: Option<R>,
    pub status: PolicyStatus,
    allowed_strikes: u32,
    notices: Vec<Notice>,
}

impl<R> Seat<R> {
    pub fn new(role: Role, origin: Origin, running: R, allowed_strikes: u32) -> Self {
        let status = PolicyStatus::new(role, &origin.name, origin.is_component());
        let allowed_strikes = allowed_strikes.max(1);
        Self { origin: Some(origin), running: Some(running), status, allowed_strikes, notices: Vec::new() }
    }

    /// A seat whose policy failed before it could sit down: the fallback answers from the start.
    pub fn vacant(role: Role, name: &str, error: &PolicyError) -> Self {
        let status = PolicyStatus::new(role, name, true);
        let mut seat = Self { origin: None, running: None, status, allowed_strikes: 1, notices: Vec::new() };
        seat.strike(error);
        seat
    }

    /// Notes a failure. Returns whether the policy stays; says so once, at the first.
    pub fn strike(&mut self, error: &PolicyError) -> bool {
        let PolicyStatus { role, strikes, .. } = &mut self.status;
        *strikes += 1;
        let stays = *strikes < self.allowed_strikes;
        if *strikes == 1 {
            let for_good = match self.allowed_strikes {
                1 => String::new(),
                allowed => format!(", and for good after {allowed} such failures"),
            };
            let text = format!("{error}; {} answers in its place{for_good}", role.fallback());
            self.notices.push(Notice { role: *role, policy: self.status.name.clone(), text });
        }
        self.status.last_strike = Some(error.to_string());
        if !stays {
            self.retire();
        }
        stays
    }

    /// Gives the seat to another policy. What an operator should see of the one before is not lost.
    pub fn give_to(&mut self, mut next: Self) {
        next.notices = std::mem::take(&mut self.notices);
        *self = next;
    }

    /// Empties the seat: the fallback answers from now on.
    pub fn retire(&mut self) {
        self.running = None;
        self.status.retired = true;
    }

    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }
}
