//! `--swap N:eviction=…`: another policy before request N.

use std::str::FromStr;

use reprise::{PolicyChoice, PolicyChoiceError, Role};

/// A policy swap during a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swap {
    /// Number of the request, from 1, before which it is done.
    pub before: u64,
    /// Which seat.
    pub role: Role,
    /// What comes in.
    pub choice: PolicyChoice,
}

/// Why text is no swap.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SwapError {
    /// Not `N:seat=policy`.
    #[error("a swap is written N:checkpoints=POLICY or N:eviction=POLICY with a request number N from 1")]
    Form,
    /// The policy makes no sense.
    #[error(transparent)]
    Choice(#[from] PolicyChoiceError),
}

impl FromStr for Swap {
    type Err = SwapError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (before, rest) = text.split_once(':').ok_or(SwapError::Form)?;
        let before = before.parse().ok().filter(|&number| number > 0).ok_or(SwapError::Form)?;
        let (seat, choice) = rest.split_once('=').ok_or(SwapError::Form)?;
        let role = match seat {
            "eviction" => Role::Eviction,
            "checkpoints" => Role::Checkpoints,
            _ => return Err(SwapError::Form),
        };
        Ok(Self { before, role, choice: choice.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swap_without_number_seat_or_policy_is_refused() {
        let swap: Swap = "100:checkpoints=periodic:4096".parse().unwrap();
        assert_eq!((swap.before, swap.role), (100, Role::Checkpoints));
        assert_eq!(swap.choice.to_string(), "periodic:period=4096");
        let swap: Swap = "1:eviction=my.wasm:a=1,b=2".parse().unwrap();
        assert_eq!(swap.choice.to_string(), "my.wasm:a=1,b=2");
        for text in
            ["", "eviction=lru", "0:eviction=lru", "x:eviction=lru", "3:eviction", "3:placement=lru", "3:eviction="]
        {
            assert!(text.parse::<Swap>().is_err(), "{text}");
        }
    }
}
