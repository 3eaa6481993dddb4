//! A zoo of hostile policies, each let loose on a real store: requests are served the same records as with the native fallback, every
//! byte is right, what it did is on its record by name, and the cache goes on.
//!
//! Calls run on fuel, so that nothing here depends on a clock; `hosts/wasm/tests/deadline.rs` measures what a loop costs in time.

#[path = "zoo/text.rs"]
mod text;

use std::path::Path;

use reprise::{Cache, Config, Group, Namespace, NamespaceHandle, PolicyStatus, Restored, Role};
use reprise_tests::engine::{BLOCK_TOKENS, Kv, prompt, small};

/// Blocks of the cache, few enough that every path has to make room.
const BLOCKS: u64 = 24;

fn config(directory: &Path) -> Config {
    Config { store: Some(directory.join("store")), deterministic: true, ..small(BLOCKS, 6) }
}

fn namespace(cache: &Cache) -> NamespaceHandle {
    cache.namespace(&Namespace::new("small", "1").block_tokens(BLOCK_TOKENS)).unwrap()
}

/// One request as an engine serves it; its memory compares every byte that comes back.
fn serve(cache: &Cache, namespace: &NamespaceHandle, tokens: &[u32], now: u64) -> Restored {
    let mut sequence = namespace.sequence(tokens);
    let plan = sequence.plan(now).unwrap();
    let (restored, kv) = plan.restore(Kv::new(tokens)).unwrap().wait();
    let blocks = kv.accepted().iter().filter(|record| record.group == Group::History).count() as u32;
    assert!(blocks * BLOCK_TOKENS >= restored.adopted_tokens);
    // The lease ends after the save: eviction meets leased blocks.
    let captures = plan.captures.clone();
    drop(plan);
    sequence.save(&mut Kv::new(tokens)).unwrap();
    for position in captures {
        // A window whose block was not kept is no failure of the policy's.
        let _ = sequence.capture_at(position, &mut Kv::new(tokens));
    }
    cache.drain();
    restored
}

/// Conversations that grow, come back, and leave each other's paths; more of them than the cache holds.
fn requests() -> Vec<Vec<u32>> {
    (0..48_u32)
        .map(|turn| {
            let who = [0, 1, 0, 2, 1, 0, 3, 0, 1, 4][turn as usize % 10];
            let mut tokens = prompt(who, (turn / 10 + who + 2) * BLOCK_TOKENS + turn % 3);
            if turn % 4 == 3 {
                tokens.extend(prompt(100 + turn, 3 * BLOCK_TOKENS));
            }
            tokens
        })
        .collect()
}

/// All requests, and what each was served.
fn visit(cache: &Cache) -> Vec<Restored> {
    let namespace = namespace(cache);
    (1..).zip(requests()).map(|(now, tokens)| serve(cache, &namespace, &tokens, now)).collect()
}

/// What the native policies serve.
fn fallback() -> Vec<Restored> {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(Config { native_policies: true, ..config(directory.path()) }).unwrap();
    let served = visit(&cache);
    let hits = served.iter().filter(|restored| restored.adopted_tokens > 0).count();
    assert!(hits > 10 && hits < 40, "the requests are too tame to tell anything: {hits} hits");
    assert!(cache.stats().counters.group(Group::History).evicted_records > 50);
    served
}

/// The policy in the seat, as it stands at the end.
fn status(cache: &Cache, role: Role) -> PolicyStatus {
    cache.policies().status().into_iter().find(|policy| policy.role == role).unwrap()
}

/// After all, the cache takes another policy, keeps what it is given and gives it back.
#[track_caller]
fn is_usable(cache: &Cache, role: Role) {
    let next = match role {
        Role::Eviction => "lru",
        Role::Checkpoints => "events",
    };
    cache.policies().swap(role, &next.parse().unwrap()).unwrap();
    let namespace = namespace(cache);
    let tokens = prompt(9, 5 * BLOCK_TOKENS + 1);
    serve(cache, &namespace, &tokens, 1000);
    assert_eq!(serve(cache, &namespace, &tokens, 1001).adopted_tokens, 5 * BLOCK_TOKENS);
    let status = status(cache, role);
    assert_eq!((status.name.as_str(), status.strikes), (next, 0));
    let stats = cache.stats();
    assert_eq!(stats.leases, 0);
    for group in [Group::History, Group::Window] {
        let counts = stats.counters.group(group);
        let went = counts.evicted_records + counts.orphaned_records;
        assert_eq!(counts.written_records - went, stats.resident_records[group as usize], "{}", group.name());
    }
}

/// What becomes of an animal.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// It is no policy: opening a cache with it is an error that says so.
    NotTaken,
    /// It serves, or is tried, and is retired; its record says so.
    Retired,
    /// It stays: nothing of what it does is wrong, or the cache asks it too rarely.
    Stays,
}

/// Opens a cache with the animal in its seat, and lets it serve; then does the same by a swap, a third of the way.
#[track_caller]
fn let_loose(name: &str, role: Role, component: &[u8], end: End, says: &str, expected: &[Restored]) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("animal.wasm");
    std::fs::write(&file, component).unwrap();
    let choice = file.display().to_string().parse().unwrap();
    let config = match role {
        Role::Eviction => Config { eviction: choice, ..config(directory.path()) },
        Role::Checkpoints => Config { checkpoints: choice, ..config(directory.path()) },
    };
    match Cache::open(config) {
        Err(error) => {
            let said = chain(&error);
            assert!(end == End::NotTaken && said.contains(says), "{name}: {said}");
        }
        Ok(cache) => {
            assert_ne!(end, End::NotTaken, "{name} was taken");
            assert_eq!(visit(&cache), expected, "{name}");
            let policy = status(&cache, role);
            assert_eq!(policy.retired, end == End::Retired, "{name}: {policy:?}");
            let said = policy.last_strike.unwrap_or_default();
            assert!(said.contains(says), "{name}: {said}");
            assert_eq!(cache.policies().take_notices().is_empty(), end == End::Stays, "{name}");
            is_usable(&cache, role);
        }
    }

    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(self::config(directory.path())).unwrap();
    let namespace = namespace(&cache);
    for ((now, tokens), expected) in (1..).zip(requests()).zip(expected) {
        if now == 16 || now == 32 {
            // The second time with the animal itself as its predecessor: it is asked what it would hand over.
            let _ = cache.policies().swap_bytes(role, component, name, &[]);
        }
        assert_eq!(&serve(&cache, &namespace, &tokens, now), expected, "{name}, request {now}");
    }
    is_usable(&cache, role);
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        said = format!("{said}: {error}");
        source = error.source();
    }
    said
}

const LOOP: &str = "(loop $again (br $again))";
const TRAP: &str = "unreachable";
const DEEP: &str = "(drop (call $deep (i32.const 0)))";
const BOMB: &str = "(loop $again (drop (memory.grow (i32.const 1024))) (br $again))";
/// Lists whose length claims a billion items, and 250,000 that are really there.
const CLAIMS: &str = "(i32.store (i32.const 132) (i32.const 1000000000)) (return (i32.const 128))";
const MANY: &str = "(i32.store (i32.const 128) (i32.const 1024)) (i32.store (i32.const 132) (i32.const 250000)) (return (i32.const 128))";

fn cache() -> text::Cache {
    text::Cache::default()
}

#[test]
fn eviction_policies_that_break_down_do_not_change_what_is_served() {
    let expected = fallback();
    let animals: [(&str, text::Cache, &str); 12] = [
        ("traps in step", text::Cache { step: TRAP, ..cache() }, "`step` trapped"),
        ("traps in admit", text::Cache { admit: TRAP, ..cache() }, "`admit` trapped"),
        ("traps in attach", text::Cache { attach: TRAP, ..cache() }, "`attach` trapped"),
        ("traps in configure", text::Cache { configure: TRAP, ..cache() }, "`configure` trapped"),
        ("traps in describe", text::Cache { describe: TRAP, ..cache() }, "`describe` trapped"),
        ("traps in start", text::Cache { start: TRAP, ..cache() }, "`instantiate` trapped"),
        ("loops in step", text::Cache { step: LOOP, ..cache() }, "`step` took more than"),
        ("loops in admit", text::Cache { admit: LOOP, ..cache() }, "`admit` took more than"),
        ("recurses in step", text::Cache { step: DEEP, ..cache() }, "`step` trapped: wasm trap: call stack exhausted"),
        ("recurses in admit", text::Cache { admit: DEEP, ..cache() }, "call stack exhausted"),
        ("takes all memory in step", text::Cache { step: BOMB, ..cache() }, "`step` asked for more than"),
        ("takes all memory in admit", text::Cache { admit: BOMB, ..cache() }, "`admit` asked for more than"),
    ];
    for (name, animal, says) in animals {
        let_loose(name, Role::Eviction, &animal.component(), End::Retired, says, &expected);
    }
}

/// Loops off the way of requests have five hundred times the fuel: one for all of them.
#[test]
fn a_policy_that_loops_before_it_serves_does_not_hang_its_host() {
    let expected = fallback();
    let animal = text::Cache { attach: LOOP, ..cache() };
    let_loose(
        "loops in attach",
        Role::Eviction,
        &animal.component(),
        End::Retired,
        "`attach` took more than",
        &expected,
    );
}

#[test]
fn nonsense_about_victims_does_not_change_who_goes() {
    let expected = fallback();
    let step = |step| text::Cache { step, ..cache() };
    let animals = [
        ("claims a billion victims", step(CLAIMS), "invalid answer"),
        ("names 250,000 victims", step(MANY), "too much data is being copied"),
        (
            "names one more than wanted",
            step("(return (call $all (i32.const 0) (i32.add (local.get $want) (i32.const 1))))"),
            "were wanted",
        ),
        ("names ids that never were", step("(return (call $all (i32.const -2) (local.get $want)))"), "4294967294"),
        ("names ids past the group's end", step("(return (call $all (i32.const 24) (local.get $want)))"), "24"),
        ("names what has children", step("(return (call $all (global.get $inner) (local.get $want)))"), "not a leaf"),
        (
            "names what is leased",
            step(
                "(if (i32.ne (global.get $leased) (i32.const -1)) \
                  (then (return (call $all (global.get $leased) (local.get $want)))))",
            ),
            "leased",
        ),
    ];
    for (name, animal, says) in animals {
        let_loose(name, Role::Eviction, &animal.component(), End::Retired, says, &expected);
    }
}

/// Its first victim is a good one, so that others may go than the fallback would have taken: the books must add up all the same.
#[test]
fn a_victim_named_twice_is_not_evicted_twice() {
    let directory = tempfile::tempdir().unwrap();
    let hostile = format!("{}:mode=7", reprise_tests::repository("tests/fixtures/hostile.wasm").display());
    let eviction = hostile.parse().unwrap();
    let cache = Cache::open(Config { eviction, ..config(directory.path()) }).unwrap();
    let hits = visit(&cache).iter().filter(|restored| restored.adopted_tokens > 0).count();
    assert!(hits > 10, "{hits}");
    let policy = status(&cache, Role::Eviction);
    assert!(policy.retired && policy.last_strike.is_some_and(|strike| strike.contains("no such record")));
    is_usable(&cache, Role::Eviction);
}

#[test]
fn nonsense_about_admission_does_not_keep_blocks_out() {
    let expected = fallback();
    let admit = |admit| text::Cache { admit, ..cache() };
    let animals = [
        ("claims a billion verdicts", admit(CLAIMS), "invalid answer"),
        ("gives no verdict", admit("(return (i32.const 64))"), "0 verdicts where"),
        (
            "gives a verdict of two",
            admit(
                "(i32.store (i32.const 128) (i32.const 2048)) \
                   (i32.store (i32.const 132) (i32.sub (local.get $count) (local.get $first))) \
                   (memory.fill (i32.const 2048) (i32.const 2) (i32.sub (local.get $count) (local.get $first))) \
                   (return (i32.const 128))",
            ),
            "a verdict of 2",
        ),
    ];
    for (name, animal, says) in animals {
        let_loose(name, Role::Eviction, &animal.component(), End::Retired, says, &expected);
    }
}

/// 16 MiB a batch: it reaches the limit while it serves.
#[test]
fn state_that_grows_with_events_does_not_take_the_hosts_memory() {
    let expected = fallback();
    let animal = text::Cache { step: "(drop (memory.grow (i32.const 256)))", ..cache() };
    let says = "`step` asked for more than";
    let_loose("grows", Role::Eviction, &animal.component(), End::Retired, says, &expected);
}

/// A hand-over is asked for at a swap between policies of one name only; the seat is taken without what was not handed over.
#[test]
fn a_hand_over_that_goes_wrong_does_not_stop_a_swap() {
    let expected = fallback();
    // Bytes 132 to 135 say how many bytes the state has: 4 GiB less one.
    const FOUR_GIB: &str = "(i32.store (i32.const 132) (i32.const -1)) (return (i32.const 128))";
    let animals = [
        ("traps in save", text::Cache { save: TRAP, ..cache() }),
        ("saves 4 GiB", text::Cache { save: FOUR_GIB, ..cache() }),
        ("recurses in save", text::Cache { save: DEEP, ..cache() }),
        ("traps in load", text::Cache { load: TRAP, ..cache() }),
        ("takes all memory in load", text::Cache { load: BOMB, ..cache() }),
    ];
    for (name, animal) in animals {
        let_loose(name, Role::Eviction, &animal.component(), End::Stays, "", &expected);
    }
}

#[test]
fn a_description_that_lies_is_not_believed() {
    let expected = fallback();
    // See `text::Cache`: name and its length at 0 and 4, version at 8 and 12, kind at 16, settings at 24 and 28.
    let lie = |address, byte| text::Cache { lie: Some((address, byte)), ..cache() };
    let animals = [
        ("calls itself a checkpoint policy", lie(16, 0), "calls itself a policy of kind Checkpoint"),
        ("has no name", lie(4, 0), "name is empty"),
        ("has a name of megabytes", lie(6, 0x20), "gave an invalid answer"),
        ("has a name of 200 bytes", lie(4, 200), "its name"),
        (
            "has a name of line ends",
            text::Cache { describe: "(i32.store8 (i32.const 33) (i32.const 10))", ..cache() },
            "control characters",
        ),
        ("is of a kind that is none", lie(16, 7), "gave an invalid answer"),
        ("has millions of settings", lie(30, 0x20), "gave an invalid answer"),
        // Read as a setting, the memory at 4096 is all zero: its key is empty.
        (
            "has a setting without a key",
            text::Cache {
                describe: "(i32.store (i32.const 24) (i32.const 4096)) (i32.store (i32.const 28) (i32.const 1))",
                ..cache()
            },
            "key of a setting is empty",
        ),
    ];
    for (name, animal, says) in animals {
        let end = if says == "gave an invalid answer" { End::Retired } else { End::NotTaken };
        let_loose(name, Role::Eviction, &animal.component(), end, says, &expected);
    }
}

#[test]
fn checkpoint_policies_that_break_down_do_not_change_what_is_served() {
    let expected = fallback();
    let animals = [
        ("traps in choose", TRAP, "`choose` trapped"),
        ("loops in choose", LOOP, "`choose` took more than"),
        ("recurses in choose", DEEP, "call stack exhausted"),
        ("takes all memory in choose", BOMB, "`choose` asked for more than"),
        ("claims a billion positions", CLAIMS, "invalid answer"),
        ("names 250,000 positions", MANY, "too much data is being copied"),
        (
            "names a position off the grid",
            "(return (call $one (i64.extend_i32_u (i32.sub (local.get $end) (i32.const 1)))))",
            "a checkpoint at token",
        ),
        (
            "names a position past the end",
            "(return (call $one (i64.extend_i32_u (i32.add (local.get $end) (local.get $block)))))",
            "a checkpoint at token",
        ),
        ("names position 0", "(return (call $one (i64.const 0)))", "a checkpoint at token 0"),
        (
            "uses the reserved bits",
            "(return (call $one (i64.or (i64.const 0x100000000) (i64.extend_i32_u (local.get $end)))))",
            "whose high 32 bits are not 0",
        ),
    ];
    for (name, choose, says) in animals {
        let_loose(name, Role::Checkpoints, &text::checkpoints(choose), End::Retired, says, &expected);
    }
}

/// Serves all requests with a policy that chooses among plans.
fn visit_with_planner(choose_plan: &str) -> (Cache, Vec<Restored>, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(config(directory.path())).unwrap();
    cache.policies().swap_bytes(Role::Checkpoints, &text::planner(choose_plan), "planner", &[]).unwrap();
    let served = visit(&cache);
    (cache, served, directory)
}

#[test]
fn a_policy_that_chooses_plans_is_not_passed_over() {
    let (_, last, _directory) = visit_with_planner("(i32.sub (local.get $count) (i32.const 1))");
    assert!(last.iter().filter(|restored| restored.adopted_tokens > 0).count() > 10);
    // The first plan adopts nothing.
    let (cache, first, _directory) = visit_with_planner("(i32.const 0)");
    assert!(first.iter().all(|restored| restored.adopted_tokens == 0), "{first:?}");
    assert!(cache.stats().counters.matched_tokens > 0);
    assert_eq!(status(&cache, Role::Checkpoints).strikes, 0);
    is_usable(&cache, Role::Checkpoints);
}

#[test]
fn a_plan_that_is_none_does_not_cost_a_hit() {
    for (choose_plan, says) in [
        ("(local.get $count)", "plan 2 of 2"),
        ("(i32.const -1)", "plan 4294967295 of"),
        (TRAP, "`choose-plan` trapped"),
        ("(loop $again (br $again)) (i32.const 0)", "`choose-plan` took more than"),
    ] {
        let (cache, served, _directory) = visit_with_planner(choose_plan);
        // It has failed too often, and its predecessor has the seat again.
        let [_, policy] = cache.policies().status();
        let notices = cache.policies().take_notices();
        let told = notices.iter().any(|notice| notice.text.contains(says));
        assert!(told && policy.name == "events" && !policy.retired, "{says}: {policy:?} {notices:?}");
        assert!(served.iter().filter(|restored| restored.adopted_tokens > 0).count() > 10, "{says}");
        is_usable(&cache, Role::Checkpoints);
    }
}
