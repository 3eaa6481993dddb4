//! The core as a component gives what the core gives natively.

use reprise_core::{
    Digest,
    layout::Layout,
    model::{preset, presets},
    plan::{Candidates, Lookup},
    prefix::{Chain, Namespace, digests},
};
use wasmtime::{
    Store,
    component::{Component, ComponentNamedList, ComponentType, Instance, Lift, Linker, Lower},
};

struct Core {
    store: Store<()>,
    instance: Instance,
}

impl Core {
    fn new() -> Self {
        let engine = wasmtime::Engine::default();
        let bytes = reprise_policies_dist::component("core").unwrap();
        let component = Component::from_binary(&engine, bytes).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = Linker::new(&engine).instantiate(&mut store, &component).unwrap();
        Self { store, instance }
    }

    fn call<P: ComponentNamedList + Lower, A: Lift + 'static>(&mut self, interface: &str, name: &str, params: P) -> A
    where
        (A,): ComponentNamedList + Lift,
    {
        let interface = format!("reprise:policy/{interface}@0.1.0");
        let interface = self.instance.get_export_index(&mut self.store, None, &interface).unwrap();
        let index = self.instance.get_export_index(&mut self.store, Some(&interface), name).unwrap();
        let function = self.instance.get_typed_func::<P, (A,)>(&mut self.store, index).unwrap();
        function.call(&mut self.store, params).unwrap().0
    }
}

#[derive(Clone, ComponentType, Lower)]
#[component(record)]
struct WireNamespace {
    model: String,
    revision: String,
    #[component(name = "block-tokens")]
    block_tokens: u32,
    tenant: Vec<u8>,
    adapter: String,
    rank: u32,
    ranks: u32,
    extensions: Vec<(String, String)>,
}

#[derive(Clone, ComponentType, Lower)]
#[component(record)]
struct Mark {
    digest: Vec<u8>,
    blocks: u32,
}

#[derive(Clone, ComponentType, Lower)]
#[component(record)]
struct Extra {
    position: u64,
    bytes: Vec<u8>,
}

#[derive(Debug, PartialEq, ComponentType, Lift)]
#[component(variant)]
enum PrefixError {
    #[component(name = "namespace")]
    Namespace(String),
    #[component(name = "length")]
    Length(u32),
    #[component(name = "late-extra")]
    LateExtra(u64),
}

type Named = Result<Vec<u8>, PrefixError>;

fn namespace() -> (Namespace, WireNamespace) {
    let native = Namespace::new("deepseek-v4-pro", "9b1f00d")
        .block_tokens(4)
        .tenant(*b"salt")
        .adapter("sql@3")
        .rank(1, 2)
        .extension("rope", "yarn");
    let wire = WireNamespace {
        model: native.model.clone(),
        revision: native.revision.clone(),
        block_tokens: 4,
        tenant: native.tenant.clone(),
        adapter: native.adapter.clone(),
        rank: 1,
        ranks: 2,
        extensions: native.extensions.clone().into_iter().collect(),
    };
    (native, wire)
}

fn packed(digests: &[Digest]) -> Vec<u8> {
    digests.iter().flat_map(|digest| digest.0).collect()
}

#[test]
fn the_component_names_no_block_differently() {
    let mut core = Core::new();
    let (native, wire) = namespace();
    let key = native.key().unwrap();
    let tokens: Vec<u32> = (0..30).map(|token| token * 1_000_003).collect();
    let (no_mark, no_extras) = (None::<Mark>, Vec::<Extra>::new());

    let root: Named = core.call("prefix", "root", (wire.clone(),));
    assert_eq!(root.unwrap(), key.root().0);

    let mut expected = Vec::new();
    digests(&key, &tokens, &mut expected);
    let named: Named = core.call("prefix", "digests", (wire.clone(), no_mark, &tokens[..], no_extras.clone()));
    assert_eq!(named.unwrap(), packed(&expected));

    // The second half from where the first one ends.
    let mark = Some(Mark { digest: expected[2].0.to_vec(), blocks: 3 });
    let named: Named = core.call("prefix", "digests", (wire.clone(), mark, &tokens[12..], no_extras));
    assert_eq!(named.unwrap(), packed(&expected[3..]));

    let mut chain = Chain::new(&key);
    chain.attach(5, b"image").unwrap();
    let mut expected = Vec::new();
    chain.extend(&tokens, &mut expected);
    let extras = vec![Extra { position: 5, bytes: b"image".to_vec() }];
    let named: Named = core.call("prefix", "digests", (wire.clone(), None::<Mark>, &tokens[..], extras));
    assert_eq!(named.unwrap(), packed(&expected));

    let keys = [[1_u8; 32], [2; 32]];
    let named: Named = core.call("prefix", "engine-digests", (wire, keys.concat()));
    assert_eq!(named.unwrap(), packed(&keys.map(|own| key.engine_digest(&own))));
}

#[test]
fn wrong_names_are_errors_not_traps() {
    let mut core = Core::new();
    let (_, wire) = namespace();
    let nobody = WireNamespace { model: String::new(), ..wire.clone() };
    let refused: Named = core.call("prefix", "root", (nobody,));
    assert!(matches!(&refused, Err(PrefixError::Namespace(said)) if said.contains("model")), "{refused:?}");
    let refused: Named = core.call("prefix", "engine-digests", (wire.clone(), vec![0_u8; 33]));
    assert_eq!(refused, Err(PrefixError::Length(1)));
    let short = Some(Mark { digest: vec![0; 31], blocks: 1 });
    let refused: Named = core.call("prefix", "digests", (wire.clone(), short, vec![0_u32; 4], Vec::<Extra>::new()));
    assert_eq!(refused, Err(PrefixError::Length(31)));
    let mark = Some(Mark { digest: vec![0; 32], blocks: 1 });
    let late = vec![Extra { position: 3, bytes: Vec::new() }];
    let refused: Named = core.call("prefix", "digests", (wire, mark, vec![0_u32; 4], late));
    assert_eq!(refused, Err(PrefixError::LateExtra(3)));
}

#[derive(Clone, Copy, ComponentType, Lift, Lower)]
#[component(variant)]
enum Kind {
    #[component(name = "compressed")]
    Compressed(u32),
    #[component(name = "windowed")]
    Windowed(u32),
    #[component(name = "state")]
    State(u32),
    #[component(name = "draft")]
    Draft(u32),
    #[component(name = "draft-state")]
    DraftState(u32),
}

#[derive(Clone, ComponentType, Lift, Lower)]
#[component(record)]
struct CacheType {
    name: String,
    group: String,
    kind: Kind,
    layers: Vec<u16>,
    #[component(name = "row-bytes")]
    row_bytes: u32,
    #[component(name = "row-format")]
    row_format: String,
}

#[derive(Clone, ComponentType, Lift, Lower)]
#[component(record)]
struct Model {
    name: String,
    groups: Vec<String>,
    types: Vec<CacheType>,
}

#[derive(Debug, Clone, Copy, PartialEq, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[expect(dead_code, reason = "only ever made by lifting")]
enum Role {
    #[component(name = "block")]
    Block,
    #[component(name = "checkpoint")]
    Checkpoint,
    #[component(name = "draft")]
    Draft,
}

#[derive(Debug, ComponentType, Lift)]
#[component(record)]
struct TypeLayout {
    name: String,
    layers: Vec<u16>,
    start: u64,
    rows: u32,
    #[component(name = "row-bytes")]
    row_bytes: u32,
}

#[derive(Debug, ComponentType, Lift)]
#[component(record)]
struct GroupLayout {
    name: String,
    role: Role,
    fingerprint: Vec<u8>,
    #[component(name = "record-bytes")]
    record_bytes: u64,
    #[component(name = "slot-bytes")]
    slot_bytes: u64,
    types: Vec<TypeLayout>,
    sections: Vec<u64>,
}

#[derive(Debug, ComponentType, Lift)]
#[component(record)]
struct WireLayout {
    #[component(name = "block-multiple")]
    block_multiple: u32,
    #[component(name = "zero-replay-tokens")]
    zero_replay_tokens: u32,
    groups: Vec<GroupLayout>,
}

#[derive(Debug, PartialEq, ComponentType, Lift)]
#[component(variant)]
enum LayoutError {
    #[component(name = "name")]
    Name(String),
    #[component(name = "model")]
    Model(String),
    #[component(name = "block")]
    Block(String),
}

#[test]
fn the_component_lays_no_model_out_differently() {
    let mut core = Core::new();
    for known in presets() {
        let model: Result<Model, LayoutError> = core.call("layout", "preset", (known.name,));
        let laid: Result<WireLayout, LayoutError> = core.call("layout", "layout-of", (model.unwrap(), 256_u32));
        let (laid, model) = (laid.unwrap(), preset(known.name).unwrap());
        let native = Layout::new(&model, 256).unwrap();
        assert_eq!(
            (laid.block_multiple, laid.zero_replay_tokens),
            (model.block_multiple(), model.zero_replay_tokens())
        );
        assert_eq!(laid.groups.len(), native.groups().len());
        for (said, group) in laid.groups.iter().zip(native.groups()) {
            assert_eq!((said.name.as_str(), &said.fingerprint[..]), (group.name(), &group.fingerprint().0[..]));
            assert_eq!((said.record_bytes, said.slot_bytes), (group.record_bytes(), group.slot_bytes()));
            assert_eq!(said.sections, group.sections());
            assert_eq!(format!("{:?}", said.role), format!("{:?}", group.role()));
            for (said, cache_type) in said.types.iter().zip(group.types()) {
                assert_eq!(said.name, cache_type.name());
                // Each layer lies where the native layout says.
                for (index, &layer) in said.layers.iter().enumerate() {
                    let bytes = u64::from(said.rows) * u64::from(said.row_bytes);
                    let start = said.start + index as u64 * bytes;
                    assert_eq!(cache_type.layer_bytes(layer), Some(start..start + bytes));
                }
            }
        }
    }
}

#[test]
fn models_that_make_no_sense_are_errors_not_traps() {
    let mut core = Core::new();
    let unknown: Result<Model, LayoutError> = core.call("layout", "preset", ("v5",));
    assert!(matches!(unknown, Err(LayoutError::Name(_))));
    let model: Result<Model, LayoutError> = core.call("layout", "preset", ("v4-pro",));
    let model = model.unwrap();
    let odd: Result<WireLayout, LayoutError> = core.call("layout", "layout-of", (model.clone(), 100_u32));
    assert!(matches!(odd, Err(LayoutError::Block(_))), "{odd:?}");
    let empty = Model { types: Vec::new(), ..model };
    let empty: Result<WireLayout, LayoutError> = core.call("layout", "layout-of", (empty, 128_u32));
    assert!(matches!(empty, Err(LayoutError::Model(_))), "{empty:?}");
}

#[derive(Clone, Copy, ComponentType, Lower)]
#[component(record)]
struct WireLookup {
    #[component(name = "prompt-tokens")]
    prompt_tokens: u32,
    #[component(name = "matched-tokens")]
    matched_tokens: u32,
    #[component(name = "checkpoint-tokens")]
    checkpoint_tokens: u32,
    #[component(name = "replay-tokens")]
    replay_tokens: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, ComponentType, Lift)]
#[component(record)]
struct Candidate {
    #[component(name = "computed-tokens")]
    computed_tokens: u32,
    #[component(name = "adopted-tokens")]
    adopted_tokens: u32,
    #[component(name = "replayed-tokens")]
    replayed_tokens: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
enum PlanError {
    #[component(name = "no-token-left")]
    NoTokenLeft,
    #[component(name = "checkpoint-past-match")]
    CheckpointPastMatch,
}

#[test]
fn the_component_plans_nothing_else_and_refuses_look_ups_that_cannot_be() {
    let mut core = Core::new();
    let wire = |prompt_tokens, matched_tokens, checkpoint_tokens, replay_tokens| WireLookup {
        prompt_tokens,
        matched_tokens,
        checkpoint_tokens,
        replay_tokens,
    };
    for (prompt_tokens, matched_tokens, checkpoint_tokens, replay_tokens) in [
        (1000, 0, 0, None),
        (20_000, 12_800, 6_400, None),
        (20_000, 12_800, 1_280, Some(7_808)),
        (20_000, 12_800, 0, Some(7_808)),
    ] {
        let lookup = Lookup { prompt_tokens, matched_tokens, checkpoint_tokens, replay_tokens };
        let native = Candidates::new(&lookup);
        let taken = native.min_compute();
        let asked = wire(prompt_tokens, matched_tokens, checkpoint_tokens, replay_tokens);
        let numbers = |plan: &Candidate| (plan.computed_tokens, plan.adopted_tokens, plan.replayed_tokens);
        let all: Result<Vec<Candidate>, PlanError> = core.call("plan", "candidates", (asked,));
        let expected: Vec<_> = native
            .as_slice()
            .iter()
            .map(|plan| (plan.computed_tokens, plan.adopted_tokens, plan.replayed_tokens))
            .collect();
        assert_eq!(all.unwrap().iter().map(numbers).collect::<Vec<_>>(), expected);
        let chosen: Result<Candidate, PlanError> = core.call("plan", "min-compute", (asked,));
        assert_eq!(numbers(&chosen.unwrap()), (taken.computed_tokens, taken.adopted_tokens, taken.replayed_tokens));
    }
    let refused: Result<Candidate, PlanError> = core.call("plan", "min-compute", (wire(100, 100, 0, None),));
    assert_eq!(refused, Err(PlanError::NoTokenLeft));
    let refused: Result<Candidate, PlanError> = core.call("plan", "min-compute", (wire(100, 50, 51, None),));
    assert_eq!(refused, Err(PlanError::CheckpointPastMatch));
}
