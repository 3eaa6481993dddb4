//! Checkpoint policies: the core's strategies, each as a policy of its own.

use alloc::vec::Vec;

use reprise_core::{
    checkpoint::Strategy,
    policy::{CheckpointPolicy, Description, Kind, Policy, Setting, Settings, Span},
};

const fn description(name: &'static str, settings: &'static [Setting]) -> Description {
    Description { name, version: "0.1.0", kind: Kind::Checkpoint, admission: false, state_schema: 0, settings }
}

macro_rules! strategy_policy {
    ($(#[$doc:meta])* $policy:ident, $name:literal, $settings:expr, $strategy:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $policy(Strategy);

        impl Policy for $policy {
            const DESCRIPTION: Description = description($name, $settings);

            fn new(settings: &Settings) -> Self {
                let strategy: fn(&Settings) -> Strategy = $strategy;
                Self(strategy(settings))
            }
        }

        impl CheckpointPolicy for $policy {
            fn choose(&mut self, span: &Span, positions: &mut Vec<u32>) {
                self.0.choose(span, positions);
            }
        }
    };
}

strategy_policy!(
    /// `full`: a checkpoint at the end of every block.
    Full,
    "full",
    &[],
    |_| Strategy::Full
);

strategy_policy!(
    /// `periodic`: a checkpoint at every multiple of `period` tokens that ends a block.
    Periodic,
    "periodic",
    &[Setting {
        key: "period",
        help: "tokens between checkpoints; positions that end no block are passed over",
        default: 2048,
        min: 1,
        max: u32::MAX as u64,
    }],
    |settings| Strategy::Periodic { period_tokens: settings.get("period") as u32 }
);

strategy_policy!(
    /// `zero`: no checkpoint; a hit recomputes its windows.
    Zero,
    "zero",
    &[],
    |_| Strategy::Zero
);

strategy_policy!(
    /// `events`: a checkpoint at the end of the prompt and where a request leaves a cached path.
    Events,
    "events",
    &[Setting {
        key: "back",
        help: "blocks before the last complete one at which the end's checkpoint is kept: 1 if drafts are on",
        default: 0,
        min: 0,
        max: 1024,
    }],
    |settings| Strategy::Events { back_blocks: settings.get("back") as u32 }
);
