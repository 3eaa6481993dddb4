//! `cache`, `admission` and `state` on top of [`CachePolicy`].

use alloc::vec::Vec;

use bindings::exports::reprise::policy::{admission, cache, state};
use reprise_core::policy::{Admission, CachePolicy, Events, GroupInfo, Policy};

use crate::slot::Resident;

/// What wit-bindgen makes of the interfaces.
#[expect(missing_docs, reason = "generated; the documentation is in wit/")]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package reprise:sdk-cache; \
                 world cache-part { \
                     export reprise:policy/cache@0.1.0; \
                     export reprise:policy/admission@0.1.0; \
                     export reprise:policy/state@0.1.0; \
                 }",
        world: "reprise:sdk-cache/cache-part",
        pub_export_macro: true,
        export_macro_name: "export_cache",
    });
}

impl<R: Resident<Policy: CachePolicy>> cache::Guest for R {
    fn attach(groups: Vec<cache::GroupInfo>) {
        let groups: Vec<GroupInfo> = groups.into_iter().map(GroupInfo::from).collect();
        R::slot().with(|policy| policy.attach(&groups));
    }

    fn step(events: Vec<u64>, want: u32) -> Vec<u32> {
        let mut victims = Vec::new();
        R::slot().with(|policy| policy.step(Events::new(&events), want, &mut victims));
        victims
    }
}

impl<R: Resident<Policy: CachePolicy>> admission::Guest for R {
    fn admit(now: u64, group: u8, keys: Vec<u64>, first: u32, free: u32) -> Vec<u8> {
        let mut verdicts = Vec::new();
        R::slot().with(|policy| policy.admit(&Admission { now, group, keys: &keys, first, free }, &mut verdicts));
        verdicts.into_iter().map(u8::from).collect()
    }
}

impl<R: Resident<Policy: Policy + CachePolicy>> state::Guest for R {
    fn save() -> Vec<u8> {
        R::slot().with(|policy| policy.save())
    }

    fn load(schema: u32, bytes: Vec<u8>) -> bool {
        schema == R::Policy::DESCRIPTION.state_schema && R::slot().with(|policy| policy.load(&bytes))
    }
}

impl From<cache::GroupInfo> for GroupInfo {
    fn from(info: cache::GroupInfo) -> Self {
        let cache::GroupInfo { group, name, record_bytes, capacity_records, recompute_tokens, tree } = info;
        Self { group, name, record_bytes, capacity_records, recompute_tokens, tree }
    }
}
