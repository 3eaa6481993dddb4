//! Which policies are tried.

use std::fmt;

use reprise::{PolicyChoice, Role, shipped};
use reprise_core::policy::Description;

/// The setting by which a checkpoint policy says how far apart positions are.
const PERIOD: &str = "period";

/// Periods tried at first, in blocks.
const PERIOD_BLOCKS: [u64; 3] = [8, 32, 128];

/// Two policies that work together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// What is admitted and evicted.
    pub eviction: PolicyChoice,
    /// Where checkpoints are kept.
    pub checkpoints: PolicyChoice,
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {}", self.eviction, self.checkpoints)
    }
}

impl Pair {
    /// The names without settings.
    pub(super) fn names(&self) -> [String; 2] {
        [&self.eviction, &self.checkpoints].map(|choice| match choice {
            PolicyChoice::Shipped { name, .. } => name.clone(),
            PolicyChoice::File { path, .. } => path.display().to_string(),
        })
    }

    /// The period, where there is one.
    pub fn period(&self) -> Option<u64> {
        let settings = self.checkpoints.settings();
        settings.iter().find(|(key, _)| key == PERIOD).and_then(|(_, period)| period.parse().ok())
    }

    /// The same with half and with double the period, as far as the policy takes them.
    pub(super) fn neighbours(&self) -> Vec<Self> {
        let [_, name] = self.names();
        let Some(policy) = shipped(Role::Checkpoints).iter().find(|policy| policy.name == name) else {
            return Vec::new();
        };
        let periods = self.period().into_iter().flat_map(|period| [period / 2, period * 2]);
        periods
            .filter_map(|period| with_period(policy, period))
            .map(|checkpoints| Self { checkpoints, ..self.clone() })
            .collect()
    }
}

/// Every shipped eviction policy with every shipped checkpoint policy, those that have a period with several. In a fixed order.
pub(super) fn pairs(block_tokens: u32) -> Vec<Pair> {
    let checkpoints: Vec<PolicyChoice> =
        shipped(Role::Checkpoints).iter().flat_map(|policy| variants(policy, block_tokens)).collect();
    let evictions = shipped(Role::Eviction).iter().map(|policy| PolicyChoice::shipped(policy.name));
    evictions
        .flat_map(|eviction| {
            let with =
                |checkpoints: &PolicyChoice| Pair { eviction: eviction.clone(), checkpoints: checkpoints.clone() };
            checkpoints.iter().map(with).collect::<Vec<_>>()
        })
        .collect()
}

fn variants(policy: &Description, block_tokens: u32) -> Vec<PolicyChoice> {
    if !policy.settings.iter().any(|setting| setting.key == PERIOD) {
        return vec![PolicyChoice::shipped(policy.name)];
    }
    PERIOD_BLOCKS.iter().filter_map(|blocks| with_period(policy, blocks * u64::from(block_tokens))).collect()
}

fn with_period(policy: &Description, period: u64) -> Option<PolicyChoice> {
    let setting = policy.settings.iter().find(|setting| setting.key == PERIOD)?;
    let settings = vec![(PERIOD.to_owned(), period.to_string())];
    (setting.min..=setting.max)
        .contains(&period)
        .then(|| PolicyChoice::Shipped { name: policy.name.to_owned(), settings })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_shipped_policy_is_left_untried() {
        let pairs = pairs(128);
        for eviction in shipped(Role::Eviction) {
            for checkpoints in shipped(Role::Checkpoints) {
                let named = pairs.iter().filter(|pair| pair.names() == [eviction.name, checkpoints.name]).count();
                let periodic = checkpoints.settings.iter().any(|setting| setting.key == PERIOD);
                assert_eq!(named, if periodic { 3 } else { 1 }, "{} with {}", eviction.name, checkpoints.name);
            }
        }
        let periodic = pairs.iter().find(|pair| pair.period() == Some(4096)).expect("32 blocks");
        let periods: Vec<_> = periodic.neighbours().iter().map(|pair| (pair.names(), pair.period())).collect();
        assert_eq!(periods, [(periodic.names(), Some(2048)), (periodic.names(), Some(8192))]);
    }
}
