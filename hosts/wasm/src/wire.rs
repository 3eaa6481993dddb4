//! The records and functions of `wit/`, as they cross the boundary.

use wasmtime::component::{ComponentType, Lift, Lower};

use crate::instance::Function;

/// `setup.kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[expect(dead_code, reason = "only ever made by lifting")]
pub(crate) enum Kind {
    #[component(name = "checkpoint")]
    Checkpoint,
    #[component(name = "cache")]
    Cache,
}

/// `setup.setting`.
#[derive(Clone, Debug, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Setting {
    pub key: String,
    pub help: String,
    pub default: u64,
    pub min: u64,
    pub max: u64,
}

/// `setup.description`.
#[derive(Clone, Debug, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Description {
    pub name: String,
    pub version: String,
    pub kind: Kind,
    pub admission: bool,
    #[component(name = "state-schema")]
    pub state_schema: u32,
    pub settings: Vec<Setting>,
}

/// `cache.group-info`.
#[derive(Clone, Debug, ComponentType, Lower)]
#[component(record)]
pub(crate) struct GroupInfo<'a> {
    pub group: u8,
    pub name: &'a str,
    #[component(name = "record-bytes")]
    pub record_bytes: u64,
    #[component(name = "capacity-records")]
    pub capacity_records: u64,
    #[component(name = "recompute-tokens")]
    pub recompute_tokens: u32,
    pub tree: bool,
}

/// `checkpoints.span`.
#[derive(Clone, Copy, Debug, ComponentType, Lower)]
#[component(record)]
pub(crate) struct Span {
    pub now: u64,
    pub start: u32,
    pub end: u32,
    #[component(name = "prompt-tokens")]
    pub prompt_tokens: u32,
    pub matched: u32,
    pub junction: u32,
    #[component(name = "block-tokens")]
    pub block_tokens: u32,
}

/// `reuse.checkpoint-info`.
#[derive(Clone, Copy, Debug, ComponentType, Lower)]
#[component(record)]
pub(crate) struct CheckpointInfo {
    #[component(name = "capacity-checkpoints")]
    pub capacity_checkpoints: u64,
    #[component(name = "checkpoint-bytes")]
    pub checkpoint_bytes: u64,
    #[component(name = "block-bytes")]
    pub block_bytes: u64,
    #[component(name = "replay-tokens")]
    pub replay_tokens: u32,
}

/// `reuse.request`.
#[derive(Clone, Copy, Debug, ComponentType, Lower)]
#[component(record)]
pub(crate) struct Request<'a> {
    pub now: u64,
    pub start: u32,
    pub end: u32,
    #[component(name = "prompt-tokens")]
    pub prompt_tokens: u32,
    pub matched: u32,
    pub junction: u32,
    #[component(name = "block-tokens")]
    pub block_tokens: u32,
    pub namespace: u16,
    #[component(name = "replayed-tokens")]
    pub replayed_tokens: u32,
    #[component(name = "matched-keys")]
    pub matched_keys: &'a [u64],
    #[component(name = "end-keys")]
    pub end_keys: &'a [u64],
}

/// `plan-choice.candidate`.
#[derive(Clone, Copy, Debug, ComponentType, Lower)]
#[component(record)]
pub(crate) struct Candidate {
    #[component(name = "computed-tokens")]
    pub computed_tokens: u32,
    #[component(name = "adopted-tokens")]
    pub adopted_tokens: u32,
    #[component(name = "replayed-tokens")]
    pub replayed_tokens: u32,
    #[component(name = "loaded-bytes")]
    pub loaded_bytes: u64,
}

/// Defines a type for each function of the contract: its interface, its name, what goes in and what comes out.
macro_rules! functions {
    ($($interface:literal $name:literal $function:ident ($($param:ty),*) -> ($($answer:ty),*);)*) => {$(
        pub(crate) enum $function {}

        impl Function for $function {
            const INTERFACE: &'static str = $interface;
            const NAME: &'static str = $name;
            type Params<'a> = ($($param,)*);
            type Answer = ($($answer,)*);
        }
    )*};
}

functions! {
    "setup" "describe" Describe () -> (Description);
    "setup" "configure" Configure (&'a [(String, String)]) -> (Result<(), String>);
    "cache" "attach" Attach (&'a [GroupInfo<'a>]) -> ();
    "cache" "step" Step (&'a [u64], u32) -> (Vec<u32>);
    "admission" "admit" Admit (u64, u8, &'a [u64], u32, u32) -> (Vec<u8>);
    "state" "save" Save () -> (Vec<u8>);
    "state" "load" Load (u32, &'a [u8]) -> (bool);
    "checkpoints" "choose" Choose (Span) -> (Vec<u64>);
    "reuse" "attach" AttachReuse (CheckpointInfo) -> ();
    "reuse" "choose-for" ChooseFor (Request<'a>) -> (Vec<u64>);
    "plan-choice" "choose-plan" ChoosePlan (&'a [Candidate]) -> (u32);
}
