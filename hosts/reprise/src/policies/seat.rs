//! The seat of a policy: who sits in it, what it did wrong, and who answers when it is empty.

use std::{fmt, time::Duration};

use serde::Serialize;

use super::runner::{Origin, PolicyError, SavedState};

/// How long a policy with so many failures is not made anew: 10 ms at first, twice as long each time.
pub(super) fn restart_delay(strikes: u32) -> Duration {
    const LONGEST: Duration = Duration::from_secs(10);
    Duration::from_millis(10).saturating_mul(1 << strikes.saturating_sub(1).min(16)).min(LONGEST)
}

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
    pub(super) const fn fallback(self) -> &'static str {
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
    /// Whether a policy failed; else something that was meant to happen did.
    pub failure: bool,
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
    /// Whether it is being made anew after a failure; the native fallback answers meanwhile.
    pub restarting: bool,
    /// The policy that was to follow this one and failed, if the seat was given back.
    pub rolled_back_from: Option<String>,
}

impl PolicyStatus {
    fn new(role: Role, name: &str, component: bool) -> Self {
        Self {
            role,
            name: name.to_owned(),
            component,
            calls: 0,
            decisions: 0,
            strikes: 0,
            last_strike: None,
            retired: false,
            restarting: false,
            rolled_back_from: None,
        }
    }
}

/// What a policy is made of again: its code and settings, and what it knew that the host's table does not hold.
#[derive(Clone)]
pub(crate) struct Script {
    pub origin: Origin,
    /// Schema and bytes of the last state there is.
    pub saved: Option<SavedState>,
}

/// A running policy with its record.
pub(crate) struct Seat<R> {
    /// Makes another instance; `None` if the policy never ran.
    pub script: Option<Script>,
    /// `None` once retired, and while it is being made anew.
    pub running: Option<R>,
    pub status: PolicyStatus,
    /// Who had the seat before: gets it back if this one is retired.
    pub predecessor: Option<Script>,
    allowed_strikes: u32,
    notices: Vec<Notice>,
}

/// What follows a failure.
pub(crate) enum Sentence {
    /// It is made anew.
    Again(Script),
    /// It goes, and its predecessor comes back.
    Back(Script),
    /// It goes, and the native fallback answers for good.
    Retired,
}

impl<R> Seat<R> {
    pub fn new(role: Role, script: Script, running: R, allowed_strikes: u32) -> Self {
        let status = PolicyStatus::new(role, &script.origin.name, script.origin.is_component());
        let allowed_strikes = allowed_strikes.max(1);
        Self {
            script: Some(script),
            running: Some(running),
            status,
            predecessor: None,
            allowed_strikes,
            notices: Vec::new(),
        }
    }

    /// A seat nobody has sat in yet.
    pub fn empty(role: Role) -> Self {
        let (status, notices) = (PolicyStatus::new(role, "", true), Vec::new());
        Self { script: None, running: None, status, predecessor: None, allowed_strikes: 1, notices }
    }

    /// A seat whose policy failed before it could sit down: the fallback answers from the start.
    pub fn vacant(role: Role, name: &str, error: &PolicyError) -> Self {
        let mut seat = Self { status: PolicyStatus::new(role, name, true), ..Self::empty(role) };
        seat.strike(error);
        seat
    }

    /// Notes a failure and empties the seat. Says so once, at the first. Returns what follows, and what was running.
    pub fn strike(&mut self, error: &PolicyError) -> (Sentence, Option<R>) {
        self.status.strikes += 1;
        self.status.last_strike = Some(error.to_string());
        let running = self.running.take();
        let fallback = self.status.role.fallback();
        if self.status.strikes == 1 {
            let for_good = match (self.allowed_strikes, &self.predecessor) {
                (1, _) => String::new(),
                (allowed, None) => format!(", and for good after {allowed} such failures"),
                (allowed, Some(before)) => {
                    format!(" until it is made anew; after {allowed} such failures `{}` comes back", before.origin.name)
                }
            };
            self.notice(format!("{error}; {fallback} answers in its place{for_good}"));
        }
        let sentence = match self.script.clone().filter(|_| self.status.strikes < self.allowed_strikes) {
            Some(script) => {
                self.status.restarting = true;
                Sentence::Again(script)
            }
            None => match self.predecessor.take() {
                Some(script) => {
                    let failed = std::mem::take(&mut self.status.name);
                    self.give_back(&script, &failed, error);
                    Sentence::Back(script)
                }
                None => {
                    self.retire();
                    Sentence::Retired
                }
            },
        };
        (sentence, running)
    }

    /// The seat is the predecessor's again, who is still to be made anew.
    fn give_back(&mut self, script: &Script, failed: &str, error: &PolicyError) {
        self.status = PolicyStatus::new(self.status.role, &script.origin.name, script.origin.is_component());
        self.status.restarting = true;
        self.status.rolled_back_from = Some(failed.to_owned());
        self.script = Some(script.clone());
        self.notice(format!(
            "is back: `{failed}`, which was to follow it, failed too often, the last time with: {error}"
        ));
    }

    /// An instance that was made anew sits down.
    pub fn sit_down(&mut self, running: R) {
        self.running = Some(running);
        self.status.restarting = false;
    }

    /// Gives the seat to another policy. What an operator should see of the one before is not lost.
    pub fn give_to(&mut self, mut next: Self) -> Self {
        self.notices.append(&mut next.notices);
        next.notices = std::mem::take(&mut self.notices);
        std::mem::replace(self, next)
    }

    /// Gives the seat back to the policy that had it before, which is as it was.
    pub fn return_to(&mut self, before: Self, error: &PolicyError) -> Self {
        let failed = self.give_to(before);
        let name = &failed.status.name;
        self.status.rolled_back_from = Some(name.clone());
        self.notice(format!("is back: `{name}`, which was to follow it, failed before its first answer: {error}"));
        failed
    }

    /// Empties the seat: the fallback answers from now on.
    pub fn retire(&mut self) {
        self.running = None;
        self.status.restarting = false;
        self.status.retired = true;
    }

    /// Notes a failure for an operator.
    pub fn notice(&mut self, text: String) {
        self.notices.push(Notice { role: self.status.role, policy: self.status.name.clone(), failure: true, text });
    }

    /// Notes something that went well.
    pub fn remark(&mut self, text: String) {
        self.notices.push(Notice { role: self.status.role, policy: self.status.name.clone(), failure: false, text });
    }

    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }
}
