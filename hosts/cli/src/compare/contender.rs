//! The policies that are compared: pairs EVICTION[+CHECKPOINTS], or an eviction policy alone where nothing has types.

use std::{fmt, str::FromStr};

use reprise::{
    PolicyChoice, PolicyChoiceError, PolicyKind,
    wasm::{Inspection, inspect},
};

/// Checkpoints of a pair that names none.
const CHECKPOINTS: &str = "events";
/// The eviction policy that goes with a split learned on the way.
const LEARNER: &str = "auto";
/// The checkpoint policy that keeps no windows.
const NO_CHECKPOINTS: &str = "zero";
/// The eviction policy that every checkpoint policy is tried with by default.
const EVICTION: &str = "lru";

/// Who decides: what is admitted and evicted, and where windows are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contender {
    /// What is admitted and evicted.
    pub eviction: PolicyChoice,
    /// Where windows are kept; `None` of a pool without types.
    pub checkpoints: Option<PolicyChoice>,
}

/// Why text names no pair.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContenderError {
    /// One of the two makes no sense.
    #[error("--policy {given}: {source}")]
    Choice {
        /// What was given.
        given: String,
        /// Why.
        source: PolicyChoiceError,
    },
    /// Checkpoints where there are none.
    #[error("--policy {given}: without types there are no checkpoints: leave out what stands behind the `+`")]
    Untyped {
        /// What was given.
        given: String,
    },
}

impl Contender {
    /// A policy of a pool without types.
    ///
    /// # Errors
    /// When it makes no sense, or is a pair.
    pub fn untyped(text: &str) -> Result<Self, ContenderError> {
        match halves(text) {
            (_, Some(_)) => Err(ContenderError::Untyped { given: text.to_owned() }),
            (eviction, None) => Ok(Self { eviction: choice(text, eviction)?, checkpoints: None }),
        }
    }

    /// Whether it never keeps a window, so that all of a budget goes to the history.
    pub fn keeps_no_windows(&self) -> bool {
        matches!(&self.checkpoints, Some(PolicyChoice::Shipped { name, .. }) if name == NO_CHECKPOINTS)
    }

    /// Whether nobody has to tell it how to divide a budget.
    pub fn learns_its_split(&self) -> bool {
        matches!(&self.eviction, PolicyChoice::Shipped { name, .. } if name == LEARNER)
    }

    /// What its code is, for telling whether an earlier result is one of the same: BLAKE3 of the components. What cannot be read is told
    /// apart by name only: it does not load either.
    pub fn identity(&self) -> String {
        let choices = [Some(&self.eviction), self.checkpoints.as_ref()];
        let digests = choices.into_iter().flatten().map(|choice| match component(choice) {
            Some(bytes) => format!("{choice}={}", blake3::hash(&bytes)),
            None => choice.to_string(),
        });
        digests.collect::<Vec<_>>().join("+")
    }

    /// Every shipped eviction policy with the checkpoints of a pair that names none; one of them with every other checkpoint policy.
    pub fn shipped() -> Vec<Self> {
        let (caches, checkpoints) = (shipped(PolicyKind::Cache), shipped(PolicyKind::Checkpoint));
        let first = caches.iter().find(|&&name| name == EVICTION).or(caches.first()).copied();
        let others = checkpoints.into_iter().filter(|&name| name != CHECKPOINTS);
        let pairs = caches.iter().map(|&name| (name, CHECKPOINTS));
        let pairs = pairs.chain(others.filter_map(|name| first.map(|eviction| (eviction, name))));
        pairs
            .map(|(eviction, checkpoints)| Self {
                eviction: PolicyChoice::shipped(eviction),
                checkpoints: Some(PolicyChoice::shipped(checkpoints)),
            })
            .collect()
    }
}

/// Names of the shipped policies of a kind.
pub fn shipped(kind: PolicyKind) -> Vec<&'static str> {
    let kind_of = |name| inspect(reprise_policies_dist::component(name)?).ok().and_then(|found: Inspection| found.kind);
    reprise_policies_dist::NAMES.iter().copied().filter(|name| kind_of(name) == Some(kind)).collect()
}

fn component(choice: &PolicyChoice) -> Option<Vec<u8>> {
    match choice {
        PolicyChoice::Shipped { name, .. } => reprise_policies_dist::component(name).map(<[u8]>::to_vec),
        PolicyChoice::File { path, .. } => std::fs::read(path).ok(),
    }
}

/// The two sides of the first `+` that is not in a path: what stands before it names no folder, or ends a `.wasm` file.
fn halves(text: &str) -> (&str, Option<&str>) {
    let ends_a_choice = |at: usize| text[..at].contains(".wasm") || !text[..at].contains('/');
    match text.match_indices('+').find(|&(at, _)| ends_a_choice(at)) {
        Some((at, plus)) => (&text[..at], Some(&text[at + plus.len()..])),
        None => (text, None),
    }
}

fn choice(given: &str, text: &str) -> Result<PolicyChoice, ContenderError> {
    text.parse().map_err(|source| ContenderError::Choice { given: given.to_owned(), source })
}

impl FromStr for Contender {
    type Err = ContenderError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (eviction, checkpoints) = halves(text);
        let checkpoints = checkpoints.unwrap_or(CHECKPOINTS);
        Ok(Self { eviction: choice(text, eviction)?, checkpoints: Some(choice(text, checkpoints)?) })
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.eviction)?;
        match &self.checkpoints {
            Some(checkpoints) => write!(f, "+{checkpoints}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_or_a_path_is_not_taken_for_the_other_half() {
        for (text, printed) in [
            ("lru", "lru+events"),
            ("lru+events", "lru+events"),
            ("two-hit+periodic:4096", "two-hit+periodic:period=4096"),
            ("segmented:probation=10+adaptive", "segmented:probation=10+adaptive"),
            ("mine.wasm+zero", "mine.wasm+zero"),
            ("mine.wasm:ways=8+theirs.wasm:a=1", "mine.wasm:ways=8+theirs.wasm:a=1"),
            ("lru+mine.wasm:a=1", "lru+mine.wasm:a=1"),
            ("./c++/mine.wasm+zero", "./c++/mine.wasm+zero"),
            ("./c++/mine.wasm", "./c++/mine.wasm+events"),
        ] {
            let contender: Contender = text.parse().unwrap();
            assert_eq!(contender.to_string(), printed, "{text}");
            assert_eq!(printed.parse(), Ok(contender), "what is printed is read back");
        }
        for text in ["", "+events", "lru+", "lru:8"] {
            assert!(text.parse::<Contender>().is_err(), "{text}");
        }
        assert_eq!(Contender::untyped("lru").unwrap().to_string(), "lru");
        assert!(matches!(Contender::untyped("lru+events"), Err(ContenderError::Untyped { .. })));
    }

    #[test]
    fn no_shipped_policy_is_left_out() {
        let names: Vec<String> = Contender::shipped().iter().map(ToString::to_string).collect();
        for name in shipped(PolicyKind::Cache) {
            assert!(names.contains(&format!("{name}+events")), "{name}: {names:?}");
        }
        for name in shipped(PolicyKind::Checkpoint) {
            assert!(names.contains(&format!("lru+{name}")), "{name}: {names:?}");
        }
        assert!(shipped(PolicyKind::Cache).len() >= 3 && shipped(PolicyKind::Checkpoint).len() >= 4);
        assert!(!names.iter().any(|name| name.contains("core")), "{names:?}");
    }

    #[test]
    fn a_policy_that_was_built_anew_is_not_taken_for_the_one_before() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mine.wasm");
        let mine: Contender = format!("{}+events", path.display()).parse().unwrap();
        let missing = mine.identity();
        std::fs::write(&path, b"one").unwrap();
        let one = mine.identity();
        std::fs::write(&path, b"two").unwrap();
        assert!(missing != one && one != mine.identity());
    }
}
