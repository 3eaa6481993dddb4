//! Policies that trap, loop, allocate or lie: the host gets an error, never a hang.

use std::time::Duration;

use reprise_core::policy::{Event, EventBuffer, GroupInfo, Inserted, Kind, NO_PARENT, Span};
use reprise_wasm::{Budget, CachePolicy, Candidate, Component, Engine, Limits, LoadError, PolicyError};

mod kit;

fn fuelled() -> Engine {
    Engine::new(&Limits { budget: Budget::FUEL, ..Limits::default() }).unwrap()
}

fn hostile(engine: &Engine) -> Component {
    engine.load(include_bytes!("../../../tests/fixtures/hostile.wasm"), "hostile", Kind::Cache).unwrap()
}

fn history() -> [GroupInfo; 1] {
    [GroupInfo {
        group: 0,
        name: "history".into(),
        record_bytes: 4096,
        capacity_records: 8,
        recompute_tokens: 128,
        tree: true,
    }]
}

fn misbehaving(engine: &Engine, mode: u32) -> CachePolicy {
    hostile(engine).cache(&[("mode".into(), mode.to_string())], &history()).unwrap()
}

/// A chain of three records, and one beside it that is pinned.
fn four_records() -> EventBuffer {
    let mut events = EventBuffer::default();
    let (group, namespace, now) = (0, 0, 1);
    for (id, parent, depth) in [(0, NO_PARENT, 1), (1, 0, 2), (2, 1, 3), (3, NO_PARENT, 1)] {
        events.push(Event::Inserted(Inserted { id, parent, group, namespace, depth, now }));
    }
    events.push(Event::Pinned { id: 3, group, now });
    events
}

#[test]
fn a_trap_does_not_reach_the_host_and_the_policy_is_not_called_again() {
    for engine in [fuelled(), Engine::new(&Limits::default()).unwrap()] {
        let mut policy = misbehaving(&engine, 1);
        let mut victims = Vec::new();
        let first = policy.step(&[], 1, &mut victims).unwrap_err();
        assert!(matches!(&first, PolicyError::Trap { call: "step", what } if what.contains("unreachable")), "{first}");
        let second = policy.step(&[], 1, &mut victims).unwrap_err();
        assert_eq!(second, PolicyError::Failed { call: "step", first: Box::new(first) });
        assert!(victims.is_empty());
        // Another instance of the same component is not affected.
        assert!(hostile(&engine).cache(&[], &history()).unwrap().step(&[], 1, &mut victims).is_ok());
    }
}

#[test]
fn an_endless_loop_does_not_hang_the_host() {
    let short = Budget::Deadline { per_call: Duration::from_millis(1), per_item: Duration::ZERO };
    for engine in [fuelled(), Engine::new(&Limits { budget: short, ..Limits::default() }).unwrap()] {
        let error = misbehaving(&engine, 2).step(&[], 1, &mut Vec::new()).unwrap_err();
        assert!(matches!(error, PolicyError::Deadline { call: "step", .. }), "{error}");
    }
}

#[test]
fn an_endless_allocation_does_not_take_the_hosts_memory() {
    let limits = Limits { budget: Budget::FUEL, memory_bytes: 16 << 20, ..Limits::default() };
    let error = misbehaving(&Engine::new(&limits).unwrap(), 3).step(&[], 1, &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), format!("`step` asked for more than {} bytes of memory", 16 << 20));
}

#[test]
fn more_victims_than_wanted_are_not_taken() {
    let mut victims = Vec::new();
    let error = misbehaving(&fuelled(), 8).step(four_records().words(), 2, &mut victims).unwrap_err();
    assert_eq!(error.to_string(), "`step` gave an invalid answer: 3 victims where up to 2 were wanted");
    assert!(victims.is_empty());
}

#[test]
fn victims_that_make_no_sense_are_handed_on_for_the_caller_to_check() {
    for (mode, expected) in
        [(0, &[2, 1][..]), (4, &[u32::MAX - 1, u32::MAX - 2]), (5, &[3]), (6, &[0, 1]), (7, &[2, 2])]
    {
        let mut victims = Vec::new();
        misbehaving(&fuelled(), mode).step(four_records().words(), 2, &mut victims).unwrap();
        assert_eq!(victims, expected, "mode {mode}");
    }
}

#[test]
fn honesty_for_a_while_is_not_honesty() {
    let settings = [("mode".to_owned(), "1".to_owned()), ("after".to_owned(), "3".to_owned())];
    let mut policy = hostile(&fuelled()).cache(&settings, &history()).unwrap();
    for _ in 0..3 {
        policy.step(&[], 1, &mut Vec::new()).unwrap();
    }
    assert!(matches!(policy.step(&[], 1, &mut Vec::new()), Err(PolicyError::Trap { .. })));
}

#[test]
fn a_million_positions_are_not_copied() {
    let engine = fuelled();
    let fixture = include_bytes!("../../../tests/fixtures/hostile-checkpoints.wasm");
    let component = engine.load(fixture, "hostile-checkpoints", Kind::Checkpoint).unwrap();
    let span = Span { end: 1024, prompt_tokens: 1030, block_tokens: 128, ..Span::default() };
    let answer = |mode: u32| {
        let mut positions = Vec::new();
        let mut policy = component.checkpoint(&[("mode".into(), mode.to_string())]).unwrap();
        policy.choose(&span, &mut positions).map(|()| positions)
    };
    assert_eq!(answer(0), Ok(vec![1024]));
    assert!(matches!(answer(1), Err(PolicyError::Trap { call: "choose", .. })));
    assert!(matches!(answer(2), Err(PolicyError::Deadline { call: "choose", .. })));
    assert_eq!(answer(3), Ok(vec![1152]));
    assert_eq!(answer(4), Ok(vec![1023]));
    assert_eq!(answer(5), Ok(vec![1024, 896, 768, 640, 512, 384, 256, 128]));
    // Either its allocator or the copy is stopped, by whatever limit it meets first.
    assert!(answer(6).is_err());
}

#[test]
fn the_same_input_does_not_cost_different_fuel() {
    let step = "(local $turn i32)
        (loop $again
            (local.set $turn (i32.add (local.get $turn) (i32.const 1)))
            (br_if $again (i32.lt_u (local.get $turn) (i32.const 1000))))
        i32.const 64";
    let component = kit::CachePolicy { step, ..Default::default() }.component();
    let enough = |per_call: u64| {
        let limits = Limits { budget: Budget::Fuel { per_call, per_item: 0 }, ..Limits::default() };
        Engine::new(&limits).unwrap().load(&component, "looping", Kind::Cache).is_ok()
    };
    // The least fuel a call that will do, found twice.
    let least = || {
        let (mut too_little, mut ample) = (0_u64, 1_u64 << 16);
        assert!(enough(ample) && !enough(too_little));
        while ample - too_little > 1 {
            let middle = too_little.midpoint(ample);
            if enough(middle) { ample = middle } else { too_little = middle }
        }
        ample
    };
    let first = least();
    assert!(first > 1000, "{first}");
    assert_eq!(first, least());
}

#[test]
fn a_lying_length_does_not_make_the_host_copy() {
    // A million ids are more than the whole memory; 60,000 fit, and are far more than were wanted.
    for (length, words) in [(1_000_000, "\\40\\42\\0f\\00"), (60_000, "\\60\\ea\\00\\00")] {
        let fields = format!(r#"(data (i32.const 512) "\00\10\00\00{words}")"#);
        // The run at load does not ask for as many as that.
        let step = "(select (i32.const 512) (i32.const 64) (i32.eq (local.get $want) (i32.const 77)))";
        let component = kit::CachePolicy { step, fields: &fields, ..Default::default() };
        let component = fuelled().load(&component.component(), "liar", Kind::Cache).unwrap();
        let error = component.cache(&[], &history()).unwrap().step(&[], 77, &mut Vec::new()).unwrap_err();
        assert!(matches!(error, PolicyError::Answer { call: "step", .. }), "{length}: {error}");
    }
}

#[test]
fn a_start_function_that_loops_does_not_hang_the_load() {
    let component = kit::CachePolicy { start: "(loop $again (br $again))", ..Default::default() }.component();
    let Err(error) = fuelled().load(&component, "looping.wasm", Kind::Cache) else { panic!("taken") };
    let expected = |error: &LoadError| {
        matches!(error, LoadError::Behaviour { error: PolicyError::Deadline { call: "instantiate", .. }, .. })
    };
    assert!(expected(&error), "{error}");
}

#[test]
fn a_policy_that_fails_its_first_run_is_not_eligible() {
    for (step, said) in [
        ("unreachable", "trapped"),
        ("(loop $again (br $again)) i32.const 64", "took more than"),
        ("(drop (memory.grow (i32.const 10000))) i32.const 64", "asked for more than"),
        (
            "(i32.store (i32.const 512) (i32.const 64)) (i32.store (i32.const 516) (local.get $want)) i32.const 512",
            "victim 0 is not there",
        ),
    ] {
        let component = kit::CachePolicy { step, ..Default::default() }.component();
        let Err(error) = fuelled().load(&component, "bad.wasm", Kind::Cache) else { panic!("`{step}` was taken") };
        assert!(matches!(error, LoadError::Behaviour { .. }), "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
}

/// A checkpoint policy that also chooses plans: always this index.
fn planner(index: &str) -> Vec<u8> {
    let text = format!(
        r#"(module
            (memory (export "memory") 1)
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
            (data (i32.const 0) "\20\00\00\00\04\00\00\00\24\00\00\00\05\00\00\00\00\00\00\00\00\00\00\00")
            (data (i32.const 32) "none0.1.0")
            (func (export "reprise:policy/setup@0.1.0#describe") (result i32) (i32.const 0))
            (func (export "reprise:policy/setup@0.1.0#configure") (param i32 i32) (result i32) (i32.const 64))
            (func (export "reprise:policy/checkpoints@0.1.0#choose")
                (param i64 i32 i32 i32 i32 i32 i32) (result i32) (i32.const 64))
            (func (export "reprise:policy/plan-choice@0.1.0#choose-plan") (param $plans i32) (param $count i32) (result i32)
                {index}))"#
    );
    let world = "world planner { include checkpoint-policy; export plan-choice; }";
    let change =
        |wit: &str| if wit.contains("world cache-policy {") { format!("{wit}\n{world}") } else { wit.to_owned() };
    kit::component(wat::parse_str(text).unwrap(), "planner", change)
}

#[test]
fn a_plan_that_was_not_offered_is_not_taken() {
    let plan = Candidate { computed_tokens: 9, adopted_tokens: 8, replayed_tokens: 1, loaded_bytes: 4096 };
    let engine = fuelled();
    let choice = |index: &str, count: usize| {
        let component = engine.load(&planner(index), "planner", Kind::Checkpoint).unwrap();
        let mut policy = component.checkpoint(&[]).unwrap();
        assert!(policy.chooses_plans());
        policy.choose_plan(&vec![plan; count])
    };
    assert_eq!(choice("(i32.sub (local.get $count) (i32.const 1))", 3), Ok(Some(2)));
    for (index, said) in [("(local.get $count)", "plan 3 of 3"), ("(i32.const -1)", "plan 4294967295 of 3")] {
        let error = choice(index, 3).unwrap_err();
        assert_eq!(error, PolicyError::Answer { call: "choose-plan", what: said.to_owned() });
    }
    assert!(matches!(choice("unreachable", 3), Err(PolicyError::Trap { call: "choose-plan", .. })));
    assert!(matches!(
        choice("(loop $again (br $again)) (i32.const 0)", 3),
        Err(PolicyError::Deadline { call: "choose-plan", .. })
    ));
}
