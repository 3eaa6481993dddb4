//! A cache policy, native or as a component, behind one set of calls.

use reprise_core::policy::{Admission, CachePolicy, Events, GroupInfo, Policy, Settings};

/// A policy that was configured and attached.
pub(crate) trait Guest {
    fn step(&mut self, words: &[u64], want: u32, victims: &mut Vec<u32>) -> Result<(), String>;
    fn admit(&mut self, question: &Admission<'_>, verdicts: &mut Vec<bool>) -> Result<(), String>;
    /// The same policy with the same settings, which takes over what this one saves.
    fn successor(&mut self) -> Result<Box<dyn Guest>, String>;
}

pub(crate) struct Native<P> {
    policy: P,
    settings: Settings,
    groups: Vec<GroupInfo>,
}

impl<P: Policy + CachePolicy + 'static> Native<P> {
    pub fn new(settings: Settings, groups: Vec<GroupInfo>) -> Self {
        let mut policy = P::new(&settings);
        policy.attach(&groups);
        Self { policy, settings, groups }
    }
}

impl<P: Policy + CachePolicy + 'static> Guest for Native<P> {
    fn step(&mut self, words: &[u64], want: u32, victims: &mut Vec<u32>) -> Result<(), String> {
        self.policy.step(Events::new(words), want, victims);
        Ok(())
    }

    fn admit(&mut self, question: &Admission<'_>, verdicts: &mut Vec<bool>) -> Result<(), String> {
        self.policy.admit(question, verdicts);
        Ok(())
    }

    fn successor(&mut self) -> Result<Box<dyn Guest>, String> {
        let mut fresh = Self::new(self.settings.clone(), self.groups.clone());
        let refused = P::DESCRIPTION.state_schema != 0 && !fresh.policy.load(&self.policy.save());
        if refused { Err("it refuses what it saved itself".into()) } else { Ok(Box::new(fresh)) }
    }
}

#[cfg(feature = "wasm")]
pub(crate) struct Wasm {
    component: reprise_wasm::Component,
    settings: Vec<(String, String)>,
    groups: Vec<GroupInfo>,
    policy: reprise_wasm::CachePolicy,
}

#[cfg(feature = "wasm")]
impl Wasm {
    pub fn new(
        component: reprise_wasm::Component,
        settings: Vec<(String, String)>,
        groups: Vec<GroupInfo>,
    ) -> Result<Self, String> {
        let policy = component.cache(&settings, &groups).map_err(|error| error.to_string())?;
        Ok(Self { component, settings, groups, policy })
    }
}

#[cfg(feature = "wasm")]
impl Guest for Wasm {
    fn step(&mut self, words: &[u64], want: u32, victims: &mut Vec<u32>) -> Result<(), String> {
        self.policy.step(words, want, victims).map_err(|error| error.to_string())
    }

    fn admit(&mut self, question: &Admission<'_>, verdicts: &mut Vec<bool>) -> Result<(), String> {
        self.policy.admit(question, verdicts).map_err(|error| error.to_string())
    }

    fn successor(&mut self) -> Result<Box<dyn Guest>, String> {
        let saved = self.policy.save().map_err(|error| error.to_string())?;
        let mut fresh = Self::new(self.component.clone(), self.settings.clone(), self.groups.clone())?;
        if let Some((schema, bytes)) = saved
            && !fresh.policy.load(schema, &bytes).map_err(|error| error.to_string())?
        {
            return Err("it refuses what it saved itself".into());
        }
        Ok(Box::new(fresh))
    }
}
