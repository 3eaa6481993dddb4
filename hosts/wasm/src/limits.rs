//! What a policy may use.

use std::time::Duration;

use crate::profile::Profile;

/// How much a call may do. A call's allowance grows with what it is given and asked for: its *items* are events and
/// wanted victims, blocks of a question, eight-byte words of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Time: what a serving process sets. It is measured in ticks of a tenth of `per_call`, and a call is cut within two ticks
    /// of its deadline. The deadline does not run while the machine lets the thread wait. A replay that only wants to be safe
    /// from endless loops sets seconds: then no honest policy is ever cut, and the result depends on no clock.
    Deadline {
        /// For each call.
        per_call: Duration,
        /// For each item, in addition.
        per_item: Duration,
    },
    /// Instructions, roughly: what a replay sets if it must repeat exactly even where a policy is cut. Costs a quarter to a third
    /// of the speed. Comparable within one version of wasmtime only.
    Fuel {
        /// For each call.
        per_call: u64,
        /// For each item, in addition.
        per_item: u64,
    },
}

impl Budget {
    /// 2 ms a call and 500 ns an item.
    pub const DEADLINE: Self =
        Self::Deadline { per_call: Duration::from_millis(2), per_item: Duration::from_nanos(500) };

    /// About what [`Budget::DEADLINE`] allows, in fuel.
    pub const FUEL: Self = Self::Fuel { per_call: 5_000_000, per_item: 2_000 };
}

/// Limits of an [`Engine`](crate::Engine); each closes a way in which a component could harm its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What WebAssembly a component may be made of.
    pub profile: Profile,
    /// Of each call on the way of a request: `step`, `admit`, `choose`, `choose-plan`.
    pub budget: Budget,
    /// How many calls' worth the rare calls get: instantiation, `describe`, `configure`, `attach`, `save`, `load`.
    pub rare_calls: u32,
    /// Linear memory of one policy, all its memories together. Default 128 MiB: a million records of any shipped policy
    /// fit. Shipped policies need 40 bytes a record of the group's capacity, `two-hit` 70, `segmented` 110.
    pub memory_bytes: usize,
    /// Elements of all its tables together.
    pub table_elements: usize,
    /// Core instances, memories and tables, each.
    pub instances: usize,
    /// Size of a component. The compiler's own time and memory grow with it and cannot be bounded otherwise: load off the way of
    /// requests.
    pub component_bytes: usize,
    /// Stack of the compiled code.
    pub stack_bytes: usize,
    /// What an answer may hold beyond what was asked for before the copy is refused. Bounds what a lying length makes the host
    /// allocate.
    pub answer_slack_bytes: usize,
}

impl Limits {
    /// The default limits, or for [`Profile::Interpreted`] what an interpreter and a language's library inside a component need: 64 MiB
    /// of component, 512 MiB of memory, and 50 ms a call.
    pub fn of(profile: Profile) -> Self {
        match profile {
            Profile::Integer | Profile::Compiled => Self { profile, ..Self::default() },
            Profile::Interpreted => Self {
                profile,
                budget: Budget::Deadline { per_call: Duration::from_millis(50), per_item: Duration::from_micros(50) },
                rare_calls: 200,
                memory_bytes: 512 << 20,
                table_elements: 1 << 20,
                instances: 256,
                component_bytes: 64 << 20,
                stack_bytes: 1 << 20,
                answer_slack_bytes: 1 << 20,
            },
        }
    }

    /// The same limits with fuel in place of time, about as generous.
    pub fn fuelled(self) -> Self {
        let budget = match self.profile {
            Profile::Integer | Profile::Compiled => Budget::FUEL,
            Profile::Interpreted => Budget::Fuel { per_call: 100_000_000, per_item: 100_000 },
        };
        Self { budget, ..self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            budget: Budget::DEADLINE,
            rare_calls: 500,
            memory_bytes: 128 << 20,
            table_elements: 10_000,
            instances: 16,
            component_bytes: 16 << 20,
            stack_bytes: 512 << 10,
            answer_slack_bytes: 64 << 10,
        }
    }
}
