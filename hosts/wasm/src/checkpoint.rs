//! A checkpoint policy that runs as a component.

use reprise_core::policy::Span;

use crate::{
    engine::Allowance,
    error::PolicyError,
    instance::{Export, Instance},
    wire,
};

/// An exact plan, offered for choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Tokens the engine would compute, replayed ones included.
    pub computed_tokens: u32,
    /// Tokens whose records would be adopted.
    pub adopted_tokens: u32,
    /// Adopted tokens that would be computed again to rebuild window state.
    pub replayed_tokens: u32,
    /// Bytes that would be loaded.
    pub loaded_bytes: u64,
}

/// Says where checkpoints are kept, see [`reprise_core::policy::CheckpointPolicy`].
///
/// After an error it is unusable: every call answers [`PolicyError::Failed`].
pub struct CheckpointPolicy {
    instance: Instance,
    choose: Export<wire::Choose>,
    choose_plan: Option<Export<wire::ChoosePlan>>,
}

impl CheckpointPolicy {
    pub(crate) fn new(mut instance: Instance) -> Self {
        let choose = instance.checked_export();
        let choose_plan = instance.export().ok();
        Self { instance, choose, choose_plan }
    }

    /// Linear memory that it has, in bytes. Not counted: machine code, which all instances of a component share, and what the host
    /// keeps about an instance (a few KiB).
    pub fn memory_bytes(&self) -> usize {
        self.instance.memory_bytes()
    }

    /// Fuel that its calls used; 0 where time is measured.
    pub(crate) fn fuel_used(&self) -> u64 {
        self.instance.fuel_used()
    }

    /// Whether it also chooses among plans.
    pub fn chooses_plans(&self) -> bool {
        self.choose_plan.is_some()
    }

    /// Appends the positions of the span that the policy names.
    ///
    /// What is checked here is how many there are, and that the reserved bits are 0; the caller checks each position.
    ///
    /// # Panics
    /// When the span's blocks have no tokens.
    pub fn choose(&mut self, span: &Span, positions: &mut Vec<u32>) -> Result<(), PolicyError> {
        let most = (span.end.saturating_sub(span.start) / span.block_tokens) as usize + 1;
        let allowance = Allowance { items: most as u64, rare: false, answer_bytes: most * size_of::<u64>() };
        let (answer,) = self.instance.call(&self.choose, (wire::Span::from(span),), allowance)?;
        if answer.len() > most {
            let what = format!("{} positions where at most {most} make sense", answer.len());
            return Err(self.instance.reject("choose", what));
        }
        let before = positions.len();
        for word in answer {
            let Ok(position) = u32::try_from(word) else {
                positions.truncate(before);
                return Err(self.instance.reject("choose", format!("{word:#x}, whose high 32 bits are not 0")));
            };
            positions.push(position);
        }
        Ok(())
    }

    /// The index of the plan to take, or `None` if the policy leaves the choice to the host.
    pub fn choose_plan(&mut self, candidates: &[Candidate]) -> Result<Option<usize>, PolicyError> {
        let Some(choose_plan) = &self.choose_plan else { return Ok(None) };
        let offered: Vec<wire::Candidate> = candidates.iter().map(wire::Candidate::from).collect();
        let allowance = Allowance { items: offered.len() as u64, rare: false, answer_bytes: 0 };
        let (index,) = self.instance.call(choose_plan, (&offered,), allowance)?;
        if index as usize >= offered.len() {
            let what = format!("plan {index} of {}", offered.len());
            return Err(self.instance.reject("choose-plan", what));
        }
        Ok(Some(index as usize))
    }
}

impl From<&Span> for wire::Span {
    fn from(span: &Span) -> Self {
        let &Span { now, start, end, prompt_tokens, matched, junction, block_tokens } = span;
        Self { now, start, end, prompt_tokens, matched, junction, block_tokens }
    }
}

impl From<&Candidate> for wire::Candidate {
    fn from(candidate: &Candidate) -> Self {
        let &Candidate { computed_tokens, adopted_tokens, replayed_tokens, loaded_bytes } = candidate;
        Self { computed_tokens, adopted_tokens, replayed_tokens, loaded_bytes }
    }
}
