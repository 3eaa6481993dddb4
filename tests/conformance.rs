//! Components against their native twins, on random streams of events.

use proptest::prelude::*;
use reprise_core::policy::{
    Admission, CachePolicy, CheckpointInfo, CheckpointPolicy, Event, EventBuffer, GroupInfo, Inserted, Kind, NO_PARENT,
    Policy, Prompt, Settings, Span, TOLD_KEYS,
};
use reprise_policies::{
    Adaptive, Auto, Events, Fifo, FlopAware, Full, Lru, Periodic, Segmented, TtlPriority, TwoHit, WriteSaver, Zero,
};
use reprise_wasm::{Budget, Component, Engine, Limits};

fn engine() -> Engine {
    Engine::new(&Limits { budget: Budget::FUEL, ..Limits::default() }).unwrap()
}

fn component(engine: &Engine, name: &str, kind: Kind) -> Component {
    let bytes = reprise_policies_dist::component(name).expect("it is shipped");
    engine.load(bytes, name, kind).unwrap()
}

fn groups(capacity_records: u64) -> Vec<GroupInfo> {
    vec![GroupInfo {
        group: 0,
        name: "history".into(),
        record_bytes: 4096,
        capacity_records,
        recompute_tokens: 128,
        tree: true,
    }]
}

/// A host that keeps the books as plainly as can be and makes a lawful stream of events out of random numbers.
#[derive(Default)]
struct Host {
    parents: Vec<Option<u32>>,
    pins: Vec<u32>,
    now: u64,
}

impl Host {
    fn is_leaf(&self, id: u32) -> bool {
        !self.parents.contains(&Some(id))
    }

    fn live(&self) -> Vec<u32> {
        (0..self.parents.len() as u32).filter(|&id| self.parents[id as usize].is_some()).collect()
    }

    fn insert(&mut self, pick: u32, depths: &mut Vec<u32>) -> Event {
        let live = self.live();
        let parent =
            if live.is_empty() || pick.is_multiple_of(5) { NO_PARENT } else { live[pick as usize % live.len()] };
        let id = match self.parents.iter().position(Option::is_none) {
            Some(free) => free as u32,
            None => {
                self.parents.push(None);
                self.pins.push(0);
                depths.push(0);
                self.parents.len() as u32 - 1
            }
        };
        self.parents[id as usize] = Some(parent);
        depths[id as usize] = if parent == NO_PARENT { 1 } else { depths[parent as usize] + 1 };
        Event::Inserted(Inserted { id, parent, group: 0, namespace: 3, depth: depths[id as usize], now: self.now })
    }
}

/// The same lawful stream for both; half way the component hands over to a fresh instance. Some victims are declined.
fn same_victims<P: Policy + CachePolicy>(name: &str, given: &[(&str, &str)], steps: &[(u8, u32)]) {
    let engine = engine();
    let component = component(&engine, name, Kind::Cache);
    let settings = Settings::parse(P::DESCRIPTION.settings, given.iter().copied()).unwrap();
    let mut native = P::new(&settings);
    native.attach(&groups(64));
    let given: Vec<_> = given.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    let mut guest = component.cache(&given, &groups(64)).unwrap();
    let (mut host, mut depths) = (Host::default(), Vec::new());
    let mut events = EventBuffer::default();
    for &(kind, pick) in steps {
        host.now += 1;
        let live = host.live();
        let now = host.now;
        let some = (!live.is_empty()).then(|| live[pick as usize % live.len()]);
        match (kind % 10, some) {
            (0..=4, _) | (_, None) => events.push(host.insert(pick, &mut depths)),
            (5, Some(id)) => events.push(Event::Used { id, group: 0, depth: depths[id as usize], now }),
            (6, Some(id)) => {
                host.pins[id as usize] += 1;
                events.push(Event::Pinned { id, group: 0, now });
            }
            (7, Some(id)) if host.pins[id as usize] > 0 => {
                host.pins[id as usize] -= 1;
                events.push(Event::Unpinned { id, group: 0, now });
            }
            (8, Some(id)) if host.is_leaf(id) && host.pins[id as usize] == 0 => {
                host.parents[id as usize] = None;
                events.push(Event::Evicted { id, group: 0, now });
            }
            _ => {
                let want = pick % 7;
                let (mut ours, mut theirs) = (Vec::new(), Vec::new());
                native.step(events.events(), want, &mut ours);
                guest.step(events.words(), want, &mut theirs).unwrap();
                assert_eq!(ours, theirs, "{name}");
                events.clear();
                let mut kept = Vec::new();
                for &victim in &ours {
                    assert!(
                        host.pins[victim as usize] == 0 && host.is_leaf(victim),
                        "{name} names {victim}, which may not go"
                    );
                    if pick.is_multiple_of(3) {
                        kept.push(victim);
                        // Declined, and with it everything above.
                        break;
                    }
                    host.parents[victim as usize] = None;
                }
                let declined = ours.iter().position(|victim| kept.contains(victim)).unwrap_or(ours.len());
                for &id in ours[declined..].iter().rev() {
                    events.push(Event::Kept { id, group: 0, now });
                }
            }
        }
    }
}

/// The same questions for both; at `swap` the component hands over to a fresh instance. What both remember stays equal.
fn same_verdicts<P: Policy + CachePolicy>(name: &str, requests: &[(Vec<u64>, u32)], swap: usize) {
    let engine = engine();
    let component = component(&engine, name, Kind::Cache);
    let settings = Settings::parse::<&str, &str>(P::DESCRIPTION.settings, []).unwrap();
    let mut native = P::new(&settings);
    native.attach(&groups(6));
    let mut guest = component.cache(&[], &groups(6)).unwrap();
    for (number, (keys, free)) in requests.iter().enumerate() {
        if number == swap {
            let (schema, bytes) = guest.save().unwrap().expect("it keeps what it saw");
            assert_eq!(bytes, native.save(), "{name}");
            guest = component.cache(&[], &groups(6)).unwrap();
            native = P::new(&settings);
            native.attach(&groups(6));
            assert!(!guest.load(schema + 1, &bytes).unwrap(), "another schema is refused");
            assert!(guest.load(schema, &bytes).unwrap() && native.load(&bytes));
        }
        let question = Admission { now: number as u64, group: 0, keys, first: keys.len() as u32 / 3, free: *free };
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        native.admit(&question, &mut ours);
        guest.admit(&question, &mut theirs).unwrap();
        assert_eq!(ours, theirs, "{name}");
    }
    assert_eq!(guest.save().unwrap().map(|(_, bytes)| bytes), Some(native.save()), "{name}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_component_never_names_another_victim_than_its_native_twin(
        steps in prop::collection::vec((any::<u8>(), any::<u32>()), 1..400),
    ) {
        same_victims::<Lru>("lru", &[], &steps);
        same_victims::<Fifo>("fifo", &[], &steps);
        same_victims::<TwoHit>("two-hit", &[], &steps);
        same_victims::<Segmented>("segmented", &[], &steps);
        same_victims::<Segmented>("segmented", &[("probation", "50")], &steps);
        same_victims::<Auto>("auto", &[], &steps);
        same_victims::<WriteSaver>("write-saver", &[("memory", "0")], &steps);
        same_victims::<FlopAware>("flop-aware", &[], &steps);
        same_victims::<FlopAware>("flop-aware", &[("tune", "0"), ("alpha", "8")], &steps);
        same_victims::<TtlPriority>("ttl-priority", &[], &steps);
        let rules = [
            ("ttl", "60"),
            ("head-blocks", "2"),
            ("head-ttl", "150"),
            ("namespaces", "4"),
            ("namespace-priority", "10"),
        ];
        same_victims::<TtlPriority>("ttl-priority", &rules, &steps);
    }

    #[test]
    fn a_component_never_admits_what_its_native_twin_refuses(
        requests in prop::collection::vec((prop::collection::vec(0..40_u64, 0..12), 0..4_u32), 1..60),
        swap in 0..60_usize,
    ) {
        same_verdicts::<TwoHit>("two-hit", &requests, swap);
        same_verdicts::<Segmented>("segmented", &requests, swap);
        same_verdicts::<FlopAware>("flop-aware", &requests, swap);
        same_verdicts::<Auto>("auto", &requests, swap);
        same_verdicts::<WriteSaver>("write-saver", &requests, swap);
    }

    #[test]
    fn a_component_never_keeps_another_window_than_its_native_twin(
        start in 0..40_u32, length in 0..60_u32, tail in 0..128_u32, matched in 0..40_u32, at_junction: bool, period in 1..9_u32,
    ) {
        let matched = (start + matched).min(start + length);
        let span = Span {
            now: 1,
            start: start * 128,
            end: (start + length) * 128,
            prompt_tokens: (start + length) * 128 + tail,
            matched: matched * 128,
            junction: if at_junction { matched * 128 } else { 0 },
            block_tokens: 128,
        };
        fn same<P: Policy + CheckpointPolicy>(engine: &Engine, name: &str, given: &[(&str, String)], span: &Span) {
            let settings = Settings::parse(P::DESCRIPTION.settings, given.iter().map(|(key, value)| (*key, value))).unwrap();
            let owned: Vec<(String, String)> = given.iter().map(|(key, value)| (key.to_string(), value.clone())).collect();
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            P::new(&settings).choose(span, &mut ours);
            component(engine, name, Kind::Checkpoint).checkpoint(&owned).unwrap().choose(span, &mut theirs).unwrap();
            assert_eq!(ours, theirs, "{name}");
            assert!(ours.iter().all(|&position| span.allows(position)), "{name}: {ours:?} {span:?}");
        }
        let engine = engine();
        same::<Full>(&engine, "full", &[], &span);
        same::<Zero>(&engine, "zero", &[], &span);
        same::<Periodic>(&engine, "periodic", &[("period", (period * 96).to_string())], &span);
        same::<Events>(&engine, "events", &[("back", (period % 3).to_string())], &span);
    }

    #[test]
    fn a_component_does_not_learn_anything_else_than_its_native_twin(
        prompts in prop::collection::vec((0..9_u64, 0..40_u32, 0..40_u32, any::<bool>(), any::<bool>(), 0..3_u16), 1..300),
        price in 0..2_u64,
    ) {
        let given = [("prompts", "24".to_owned()), ("write-price", (price * 40_000).to_string())];
        let settings = Settings::parse(Adaptive::DESCRIPTION.settings, given.iter().map(|(key, value)| (*key, value)));
        let owned: Vec<_> = given.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        let info = CheckpointInfo {
            capacity_checkpoints: 8,
            checkpoint_bytes: 5 << 20,
            block_bytes: 1 << 19,
            replay_tokens: 2_000,
        };
        let mut native = Adaptive::new(&settings.unwrap());
        native.attach(&info);
        let mut guest = component(&engine(), "adaptive", Kind::Checkpoint).checkpoint(&owned).unwrap();
        prop_assert!(guest.learns());
        guest.attach(&info).unwrap();
        for (number, &(conversation, matched, more, loads, leaves, namespace)) in prompts.iter().enumerate() {
            let end = matched + more;
            let keys = |blocks: u32| -> Vec<u64> {
                let told = blocks.saturating_sub(TOLD_KEYS as u32)..blocks;
                told.map(|block| (conversation + 1) << 32 | u64::from(block)).collect()
            };
            let span = Span {
                now: number as u64,
                start: if loads { matched * 128 } else { 0 },
                end: end * 128,
                prompt_tokens: end * 128 + 7,
                matched: matched * 128,
                junction: if leaves && more > 0 { matched * 128 } else { 0 },
                block_tokens: 128,
            };
            let prompt = Prompt { namespace, replayed_tokens: 0, matched_keys: &keys(matched), end_keys: &keys(end) };
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            native.choose_for(&span, &prompt, &mut ours);
            guest.choose_for(&span, &prompt, &mut theirs).unwrap();
            prop_assert!(ours.iter().all(|&position| span.allows(position)) && ours.is_sorted_by(|a, b| a < b));
            prop_assert_eq!(ours, theirs);
        }
    }
}
