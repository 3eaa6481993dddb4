//! `--shadow POLICY`: a candidate beside the policies that serve.

use std::str::FromStr;

use reprise::{PolicyChoice, PolicyChoiceError, PolicyError, PolicyKind, PolicyProfile, Role, Shadowing, describe};

/// A candidate, and the seat it is for, if that is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowChoice {
    /// `None`: its kind says.
    pub role: Option<Role>,
    /// The candidate.
    pub choice: PolicyChoice,
}

/// Why candidates make no shadow.
#[derive(Debug, thiserror::Error)]
pub enum ShadowError {
    /// One does not load.
    #[error("the candidate {choice} for the shadow")]
    Candidate {
        /// Which.
        choice: String,
        /// Why.
        source: Box<PolicyError>,
    },
    /// Two for one seat.
    #[error(
        "--shadow takes one candidate for a seat: {first} and {second} are both {role} policies; replay the trace once for each"
    )]
    Both {
        /// Which seat.
        role: Role,
        /// The first.
        first: String,
        /// The second.
        second: String,
    },
}

impl FromStr for ShadowChoice {
    type Err = PolicyChoiceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (role, choice) = match text.split_once('=') {
            Some(("eviction", choice)) => (Some(Role::Eviction), choice),
            Some(("checkpoints", choice)) => (Some(Role::Checkpoints), choice),
            _ => (None, text),
        };
        Ok(Self { role, choice: choice.parse()? })
    }
}

/// What the candidates together are shadowed as, `profile` being the widest that is taken; `None` without any.
///
/// # Errors
/// When one does not load, or two are for the same seat.
pub fn shadowing(candidates: &[ShadowChoice], profile: PolicyProfile) -> Result<Option<Shadowing>, ShadowError> {
    let mut shadowing = Shadowing::default();
    for ShadowChoice { role, choice } in candidates {
        let refused = |source| ShadowError::Candidate { choice: choice.to_string(), source: Box::new(source) };
        let role = match role {
            Some(role) => *role,
            None => match describe(choice).map_err(refused)?.kind {
                PolicyKind::Cache => Role::Eviction,
                PolicyKind::Checkpoint => Role::Checkpoints,
            },
        };
        reprise::check(role, choice, profile).map_err(refused)?;
        let seat = match role {
            Role::Eviction => &mut shadowing.eviction,
            Role::Checkpoints => &mut shadowing.checkpoints,
        };
        if let Some(first) = seat.replace(choice.clone()) {
            return Err(ShadowError::Both { role, first: first.to_string(), second: choice.to_string() });
        }
    }
    Ok((!candidates.is_empty()).then_some(shadowing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_of_a_candidate_is_not_taken_for_its_seat() {
        for (text, role, choice) in [
            ("mine.wasm:ways=8", None, "mine.wasm:ways=8"),
            ("eviction=mine.wasm:ways=8", Some(Role::Eviction), "mine.wasm:ways=8"),
            ("checkpoints=periodic:2048", Some(Role::Checkpoints), "periodic:period=2048"),
            ("two-hit", None, "two-hit"),
        ] {
            let shadow: ShadowChoice = text.parse().unwrap();
            assert_eq!((shadow.role, shadow.choice.to_string()), (role, choice.to_owned()), "{text}");
        }
        assert!("eviction=".parse::<ShadowChoice>().is_err());
    }

    #[test]
    fn two_candidates_for_one_seat_do_not_hide_each_other() {
        let candidates = ["fifo", "periodic:2048", "two-hit"].map(|text| text.parse().unwrap());
        let shadowing = |candidates| shadowing(candidates, PolicyProfile::default());
        assert_eq!(shadowing(&[]).unwrap(), None);
        let both = shadowing(&candidates[..2]).unwrap().unwrap();
        assert_eq!(both.eviction.unwrap().to_string(), "fifo");
        assert_eq!(both.checkpoints.unwrap().to_string(), "periodic:period=2048");
        assert!(matches!(shadowing(&candidates), Err(ShadowError::Both { role: Role::Eviction, .. })));
    }
}
