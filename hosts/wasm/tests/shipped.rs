//! The shipped components against the same policies as native code.

use reprise_core::policy::{Admission, Kind, Policy, Settings};
use reprise_policies::{
    Adaptive, Auto, Events, Fifo, FlopAware, Full, Lru, Periodic, Segmented, TtlPriority, TwoHit, WriteSaver, Zero,
};
use reprise_wasm::{Component, Engine, Limits};

mod stream;

use stream::{Requests, spans};

fn load(engine: &Engine, name: &str, kind: Kind) -> Component {
    let bytes = reprise_policies_dist::component(name).unwrap();
    engine.load(bytes, name, kind).unwrap_or_else(|error| panic!("{error}"))
}

fn own(settings: &[(&str, &str)]) -> Vec<(String, String)> {
    settings.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Runs the native policy and the component side by side over the same stream; in the middle the component is exchanged
/// for a new instance, to which state and residents are handed over, and so is the native one.
fn cache_agrees<P: Policy + reprise_core::policy::CachePolicy>(name: &str, swap: bool) {
    let engine = Engine::new(&Limits::default()).unwrap();
    let component = load(&engine, name, Kind::Cache);
    let settings = Settings::parse(P::DESCRIPTION.settings, [] as [(&str, &str); 0]).unwrap();
    let mut requests = Requests::new(11);
    let mut wasm = component.cache(&[], &requests.groups()).unwrap();
    let mut native = P::new(&settings);
    native.attach(&requests.groups());
    for turn in 0..2_000 {
        if swap && turn == 1_000 {
            let saved = wasm.save().unwrap();
            assert_eq!(
                saved.as_ref().map(|(_, bytes)| bytes.clone()),
                (P::DESCRIPTION.state_schema != 0).then(|| native.save())
            );
            let old = std::mem::replace(&mut native, P::new(&settings));
            native.attach(&requests.groups());
            wasm = component.cache(&[], &requests.groups()).unwrap();
            if let Some((schema, bytes)) = saved {
                assert!(wasm.load(schema, &bytes).unwrap());
                assert!(native.load(&old.save()));
            }
            requests.hand_over();
        }
        let (mut by_wasm, mut by_native) = (Vec::new(), Vec::new());
        requests.next();
        if let Some(question) = requests.question() {
            let (mut wasm_says, mut native_says) = (Vec::new(), Vec::new());
            wasm.step(requests.words(), 0, &mut by_wasm).unwrap();
            native.step(requests.events(), 0, &mut by_native);
            requests.taken();
            wasm.admit(&question.ask(), &mut wasm_says).unwrap();
            if P::DESCRIPTION.admission {
                native.admit(&question.ask(), &mut native_says);
            } else {
                native_says.resize(wasm_says.len(), true);
            }
            assert_eq!(wasm_says, native_says, "turn {turn}");
        }
        let want = requests.want();
        wasm.step(requests.words(), want, &mut by_wasm).unwrap();
        native.step(requests.events(), want, &mut by_native);
        requests.taken();
        assert_eq!(by_wasm, by_native, "turn {turn}");
        requests.evict(&by_native);
    }
    assert!(requests.evicted() > 1_000, "the stream is too tame to tell anything: {}", requests.evicted());
}

#[test]
fn lru_as_a_component_names_no_other_victims_than_natively() {
    cache_agrees::<Lru>("lru", false);
    cache_agrees::<Lru>("lru", true);
}

#[test]
fn fifo_as_a_component_names_no_other_victims_than_natively() {
    cache_agrees::<Fifo>("fifo", false);
    cache_agrees::<Fifo>("fifo", true);
}

#[test]
fn two_hit_as_a_component_admits_nothing_else_than_natively() {
    cache_agrees::<TwoHit>("two-hit", false);
    cache_agrees::<TwoHit>("two-hit", true);
}

#[test]
fn auto_as_a_component_keeps_nothing_else_than_natively() {
    cache_agrees::<Auto>("auto", false);
    cache_agrees::<Auto>("auto", true);
    cache_agrees::<WriteSaver>("write-saver", false);
}

#[test]
fn segmented_as_a_component_protects_nothing_else_than_natively() {
    cache_agrees::<Segmented>("segmented", false);
    cache_agrees::<Segmented>("segmented", true);
}

#[test]
fn flop_aware_as_a_component_weighs_nothing_otherwise_than_natively() {
    cache_agrees::<FlopAware>("flop-aware", false);
    cache_agrees::<FlopAware>("flop-aware", true);
}

#[test]
fn ttl_priority_as_a_component_names_no_other_victims_than_natively() {
    cache_agrees::<TtlPriority>("ttl-priority", false);
    cache_agrees::<TtlPriority>("ttl-priority", true);
}

fn checkpoints_agree<P: Policy + reprise_core::policy::CheckpointPolicy>(name: &str, settings: &[(&str, &str)]) {
    let engine = Engine::new(&Limits::default()).unwrap();
    let mut wasm = load(&engine, name, Kind::Checkpoint).checkpoint(&own(settings)).unwrap();
    let parsed = Settings::parse(P::DESCRIPTION.settings, settings.iter().copied()).unwrap();
    let mut native = P::new(&parsed);
    for span in spans(5, 1_000) {
        let (mut by_wasm, mut by_native) = (Vec::new(), Vec::new());
        wasm.choose(&span, &mut by_wasm).unwrap();
        native.choose(&span, &mut by_native);
        assert_eq!(by_wasm, by_native, "{span:?}");
    }
}

#[test]
fn checkpoint_policies_as_components_choose_nothing_else_than_natively() {
    checkpoints_agree::<Full>("full", &[]);
    checkpoints_agree::<Zero>("zero", &[]);
    checkpoints_agree::<Events>("events", &[]);
    let key = Periodic::DESCRIPTION.settings[0].key;
    for period in ["128", "1024", "2048"] {
        checkpoints_agree::<Periodic>("periodic", &[(key, period)]);
    }
}

#[test]
fn a_component_describes_itself_no_differently_than_its_native_twin() {
    let engine = Engine::new(&Limits::default()).unwrap();
    let caches = [Lru::DESCRIPTION, Fifo::DESCRIPTION, TwoHit::DESCRIPTION].into_iter().chain([
        Segmented::DESCRIPTION,
        FlopAware::DESCRIPTION,
        TtlPriority::DESCRIPTION,
        Auto::DESCRIPTION,
        WriteSaver::DESCRIPTION,
    ]);
    let twins = caches.chain([
        Adaptive::DESCRIPTION,
        Full::DESCRIPTION,
        Periodic::DESCRIPTION,
        Zero::DESCRIPTION,
        Events::DESCRIPTION,
    ]);
    for native in twins {
        let component = load(&engine, native.name, native.kind);
        let said = component.description();
        assert_eq!((said.name.as_str(), said.version.as_str(), said.kind), (native.name, native.version, native.kind));
        assert_eq!((said.admission, said.state_schema), (native.admission, native.state_schema));
        let settings: Vec<_> =
            said.settings.iter().map(|s| (s.key.as_str(), s.help.as_str(), s.default, s.min, s.max)).collect();
        let expected: Vec<_> = native.settings.iter().map(|s| (s.key, s.help, s.default, s.min, s.max)).collect();
        assert_eq!(settings, expected);
    }
}

#[test]
fn two_instances_do_not_answer_differently_nor_do_they_share_anything() {
    let engine = Engine::new(&Limits::default()).unwrap();
    let component = load(&engine, "lru", Kind::Cache);
    let run = |requests: &mut Requests| {
        let mut policy = component.cache(&[], &requests.groups()).unwrap();
        let mut all = Vec::new();
        for _ in 0..300 {
            requests.next();
            let mut victims = Vec::new();
            policy.step(requests.words(), requests.want(), &mut victims).unwrap();
            requests.taken();
            requests.evict(&victims);
            all.extend(victims);
        }
        all
    };
    let first = run(&mut Requests::new(3));
    assert_eq!(first, run(&mut Requests::new(3)));
    assert_ne!(first, run(&mut Requests::new(4)));
}

#[test]
fn a_million_live_records_do_not_exceed_the_default_memory() {
    const RECORDS: u32 = 1_000_000;
    let engine = Engine::new(&Limits::default()).unwrap();
    for name in ["lru", "fifo", "two-hit", "segmented", "flop-aware", "ttl-priority"] {
        let mut requests = Requests::of_capacity(1, RECORDS);
        let mut policy = load(&engine, name, Kind::Cache).cache(&[], &requests.groups()).unwrap();
        let mut none = Vec::new();
        while requests.resident() < RECORDS as usize {
            requests.insert_path(100);
            if requests.words().len() > 256 * 3 {
                policy.step(requests.words(), 0, &mut none).unwrap_or_else(|error| panic!("{name}: {error}"));
                requests.taken();
            }
        }
        // `two-hit` remembers twice as many keys as there are records.
        for first in (0..3 * u64::from(RECORDS)).step_by(1_000) {
            let keys: Vec<u64> = (first..first + 1_000).map(|key| key.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let question = Admission { now: first, group: 0, keys: &keys, first: 0, free: 0 };
            policy.admit(&question, &mut Vec::new()).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        let mut victims = Vec::new();
        policy.step(requests.words(), 1_000, &mut victims).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(victims.len(), 1_000, "{name}");
        // 28 bytes a record, and 14 for each key that is remembered, of a run up to 24; up to 12 more for those that were neither first
        // nor last when they came.
        let bytes_per_record = match name {
            "two-hit" => 28 + 2 * 14,
            "segmented" => 28 + 4 * 14 + 24,
            _ => 28,
        };
        let expected = RECORDS as usize * bytes_per_record;
        assert!(
            (expected..expected + (12 << 20)).contains(&policy.memory_bytes()),
            "{name}: {}",
            policy.memory_bytes()
        );
    }
}

#[test]
fn four_million_records_do_not_need_more_than_256_mib() {
    let engine = Engine::new(&Limits { memory_bytes: 256 << 20, ..Limits::default() }).unwrap();
    for name in ["lru", "fifo", "two-hit"] {
        let requests = Requests::of_capacity(1, 4_000_000);
        // All of it is taken at once, so that nothing has to be moved later.
        let mut policy = load(&engine, name, Kind::Cache).cache(&[], &requests.groups()).unwrap();
        let before = policy.memory_bytes();
        policy.step(&[], 1, &mut Vec::new()).unwrap();
        assert!(policy.memory_bytes() == before && before < 240 << 20, "{name}: {before}");
    }
}

#[test]
fn settings_that_do_not_fit_are_refused_with_the_policys_own_words() {
    let engine = Engine::new(&Limits::default()).unwrap();
    let periodic = load(&engine, "periodic", Kind::Checkpoint);
    let key = Periodic::DESCRIPTION.settings[0].key;
    for (settings, said) in
        [([("nonsense", "1")], "no setting `nonsense`"), ([(key, "often")], "whole number"), ([(key, "0")], "takes")]
    {
        let Err(error) = periodic.checkpoint(&own(&settings)) else { panic!("{settings:?} were taken") };
        assert!(error.to_string().contains(said), "{error}");
    }
}
