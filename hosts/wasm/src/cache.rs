//! A cache policy that runs as a component.

use reprise_core::policy::{Admission, EVENT_WORDS, GroupInfo};

use crate::{
    component::Description,
    engine::Allowance,
    error::PolicyError,
    instance::{Export, Instance},
    wire,
};

/// Bytes of state that one item of a budget stands for.
const STATE_BYTES_PER_ITEM: usize = 8;

/// Ranks records and says what may come in, see [`reprise_core::policy::CachePolicy`].
///
/// After an error it is unusable: every call answers [`PolicyError::Failed`].
pub struct CachePolicy {
    instance: Instance,
    step: Export<wire::Step>,
    admit: Option<Export<wire::Admit>>,
    state: Option<State>,
}

struct State {
    schema: u32,
    save: Export<wire::Save>,
    load: Export<wire::Load>,
}

impl CachePolicy {
    pub(crate) fn new(
        mut instance: Instance,
        description: &Description,
        groups: &[GroupInfo],
    ) -> Result<Self, PolicyError> {
        let attach = instance.checked_export::<wire::Attach>();
        let infos: Vec<wire::GroupInfo<'_>> = groups.iter().map(wire::GroupInfo::from).collect();
        let records: u64 = groups.iter().map(|group| group.capacity_records).sum();
        instance.call(&attach, (&infos,), Allowance { items: records, rare: true, answer_bytes: 0 })?;
        let step = instance.checked_export();
        let admit = description.admission.then(|| instance.checked_export());
        let schema = description.state_schema;
        let state =
            (schema != 0).then(|| State { schema, save: instance.checked_export(), load: instance.checked_export() });
        Ok(Self { instance, step, admit, state })
    }

    /// Linear memory that it has, in bytes. Not counted: machine code, which all instances of a component share, and what the host
    /// keeps about an instance (a few KiB).
    pub fn memory_bytes(&self) -> usize {
        self.instance.memory_bytes()
    }

    /// Fuel that its calls used since `attach`; 0 where time is measured.
    pub(crate) fn fuel_used(&self) -> u64 {
        self.instance.fuel_used()
    }

    /// Hands over packed events (see [`reprise_core::policy::Event::pack`]) and appends up to `want` victims, best first.
    ///
    /// What is checked here is how many there are; the caller checks each of them.
    pub fn step(&mut self, words: &[u64], want: u32, victims: &mut Vec<u32>) -> Result<(), PolicyError> {
        let items = (words.len() / EVENT_WORDS) as u64 + u64::from(want);
        let allowance = Allowance { items, rare: false, answer_bytes: want as usize * size_of::<u32>() };
        let (answer,) = self.instance.call(&self.step, (words, want), allowance)?;
        if answer.len() > want as usize {
            let what = format!("{} victims where up to {want} were wanted", answer.len());
            return Err(self.instance.reject("step", what));
        }
        victims.extend_from_slice(&answer);
        Ok(())
    }

    /// Hands over packed events off the way of requests, for instance to a policy that has not taken its seat: with the budget of a rare
    /// call, since what it learns all at once may make it take memory all at once.
    pub fn tell(&mut self, words: &[u64]) -> Result<(), PolicyError> {
        let items = (words.len() / EVENT_WORDS) as u64;
        let (answer,) = self.instance.call(&self.step, (words, 0), Allowance { items, rare: true, answer_bytes: 0 })?;
        if answer.is_empty() {
            Ok(())
        } else {
            Err(self.instance.reject("step", format!("{} victims where up to 0 were wanted", answer.len())))
        }
    }

    /// Appends one verdict per block from [`Admission::first`] on; all are `true` if the policy is not to be asked.
    pub fn admit(&mut self, question: &Admission<'_>, verdicts: &mut Vec<bool>) -> Result<(), PolicyError> {
        let asked = question.keys.len().saturating_sub(question.first as usize);
        let Some(admit) = &self.admit else {
            verdicts.extend(std::iter::repeat_n(true, asked));
            return Ok(());
        };
        let &Admission { now, group, keys, first, free } = question;
        let allowance = Allowance { items: keys.len() as u64, rare: false, answer_bytes: asked };
        let (answer,) = self.instance.call(admit, (now, group, keys, first, free), allowance)?;
        if answer.len() != asked {
            let what = format!("{} verdicts where {asked} were asked for", answer.len());
            return Err(self.instance.reject("admit", what));
        }
        if let Some(odd) = answer.iter().find(|&&verdict| verdict > 1) {
            return Err(self.instance.reject("admit", format!("a verdict of {odd}, neither 0 nor 1")));
        }
        verdicts.extend(answer.into_iter().map(|verdict| verdict == 1));
        Ok(())
    }

    /// Schema and bytes of what a successor should know; `None` if the policy keeps nothing of that kind.
    pub fn save(&mut self) -> Result<Option<(u32, Vec<u8>)>, PolicyError> {
        let Some(State { schema, save, .. }) = &self.state else { return Ok(None) };
        let allowance = Allowance { items: 0, rare: true, answer_bytes: self.instance.limits().memory_bytes };
        let (bytes,) = self.instance.call(save, (), allowance)?;
        Ok(Some((*schema, bytes)))
    }

    /// Hands over what [`CachePolicy::save`] of a policy with the same name gave, before any event. `false` if the policy made
    /// nothing of it.
    pub fn load(&mut self, schema: u32, bytes: &[u8]) -> Result<bool, PolicyError> {
        let Some(State { load, .. }) = &self.state else { return Ok(false) };
        let items = (bytes.len() / STATE_BYTES_PER_ITEM) as u64;
        let (taken,) = self.instance.call(load, (schema, bytes), Allowance { items, rare: true, answer_bytes: 0 })?;
        Ok(taken)
    }
}

impl<'a> From<&'a GroupInfo> for wire::GroupInfo<'a> {
    fn from(info: &'a GroupInfo) -> Self {
        let &GroupInfo { group, ref name, record_bytes, capacity_records, recompute_tokens, tree } = info;
        Self { group, name, record_bytes, capacity_records, recompute_tokens, tree }
    }
}
