//! A checkpoint policy that runs as a component.

use reprise_core::policy::{CheckpointInfo, Prompt, Span};

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
    reuse: Option<(Export<wire::AttachReuse>, Export<wire::ChooseFor>)>,
    choose_plan: Option<Export<wire::ChoosePlan>>,
}

impl CheckpointPolicy {
    pub(crate) fn new(mut instance: Instance) -> Self {
        let choose = instance.checked_export();
        let reuse = instance.export().ok().zip(instance.export().ok());
        let choose_plan = instance.export().ok();
        Self { instance, choose, reuse, choose_plan }
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

    /// Whether it learns which checkpoints are used again.
    pub fn learns(&self) -> bool {
        self.reuse.is_some()
    }

    /// Tells a policy that learns what checkpoints cost. To be called once, before any span.
    pub fn attach(&mut self, info: &CheckpointInfo) -> Result<(), PolicyError> {
        let Some((attach, _)) = &self.reuse else { return Ok(()) };
        let allowance = Allowance { items: 0, rare: true, answer_bytes: 0 };
        self.instance.call(attach, (wire::CheckpointInfo::from(info),), allowance)?;
        Ok(())
    }

    /// Appends the positions of the span that the policy names.
    ///
    /// What is checked here is how many there are, and that the reserved bits are 0; the caller checks each position.
    ///
    /// # Panics
    /// When the span's blocks have no tokens.
    pub fn choose(&mut self, span: &Span, positions: &mut Vec<u32>) -> Result<(), PolicyError> {
        let (answer,) = self.instance.call(&self.choose, (wire::Span::from(span),), allowance(span))?;
        self.take("choose", span, &answer, positions)
    }

    /// The same with what else is known of the request, for a policy that learns; another one is asked about the span alone.
    ///
    /// # Panics
    /// When the span's blocks have no tokens.
    pub fn choose_for(
        &mut self,
        span: &Span,
        prompt: &Prompt<'_>,
        positions: &mut Vec<u32>,
    ) -> Result<(), PolicyError> {
        let Some((_, choose_for)) = &self.reuse else { return self.choose(span, positions) };
        let (answer,) = self.instance.call(choose_for, (request(span, prompt),), allowance(span))?;
        self.take("choose-for", span, &answer, positions)
    }

    fn take(
        &mut self,
        call: &'static str,
        span: &Span,
        answer: &[u64],
        positions: &mut Vec<u32>,
    ) -> Result<(), PolicyError> {
        let most = most_positions(span);
        if answer.len() > most {
            let what = format!("{} positions where at most {most} make sense", answer.len());
            return Err(self.instance.reject(call, what));
        }
        let before = positions.len();
        for &word in answer {
            let Ok(position) = u32::try_from(word) else {
                positions.truncate(before);
                return Err(self.instance.reject(call, format!("{word:#x}, whose high 32 bits are not 0")));
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

fn most_positions(span: &Span) -> usize {
    (span.end.saturating_sub(span.start) / span.block_tokens) as usize + 1
}

fn allowance(span: &Span) -> Allowance {
    let most = most_positions(span);
    Allowance { items: most as u64, rare: false, answer_bytes: most * size_of::<u64>() }
}

impl From<&CheckpointInfo> for wire::CheckpointInfo {
    fn from(info: &CheckpointInfo) -> Self {
        let &CheckpointInfo { capacity_checkpoints, checkpoint_bytes, block_bytes, replay_tokens } = info;
        Self { capacity_checkpoints, checkpoint_bytes, block_bytes, replay_tokens }
    }
}

fn request<'a>(span: &Span, prompt: &Prompt<'a>) -> wire::Request<'a> {
    let &Span { now, start, end, prompt_tokens, matched, junction, block_tokens } = span;
    let &Prompt { namespace, replayed_tokens, matched_keys, end_keys } = prompt;
    wire::Request {
        now,
        start,
        end,
        prompt_tokens,
        matched,
        junction,
        block_tokens,
        namespace,
        replayed_tokens,
        matched_keys,
        end_keys,
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
