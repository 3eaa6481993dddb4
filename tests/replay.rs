//! Replays give the integers of the rules, whatever runs the policies and wherever the records go.

use std::collections::BTreeMap;

use reprise::{Cache, Config, Planner, Role};
use reprise_cli::replay::{Options, Outcome, Swap, replay};
use reprise_cli::trace::Trace;
use reprise_tests::cases::{self, Case};

fn run(config: Config, trace: &Trace, options: &Options) -> (Cache, Outcome) {
    let cache = Cache::open(config).expect("a cache");
    let outcome = replay(&cache, trace, options, &mut |_, _, _| {}).expect("a replay");
    (cache, outcome)
}

fn integers(outcome: &Outcome) -> BTreeMap<String, u64> {
    let value = serde_json::to_value(&outcome.integers).unwrap();
    serde_json::from_value(value).unwrap()
}

/// Every policy did its own work: a fallback that happens to give the same integers does not count.
fn assert_no_fallback(outcome: &Outcome, case: &Case) {
    for policy in &outcome.stats.policies {
        assert_eq!((policy.strikes, policy.retired), (0, false), "{case:?}: {policy:?}");
    }
    let counters = &outcome.stats.counters;
    assert_eq!((counters.native_evictions, counters.native_checkpoints), (0, 0), "{case:?}");
}

fn check_all(native: bool) {
    let mut checked = 0;
    for case in cases::all() {
        let Some(expected) = &case.result else { continue };
        let (_, outcome) = run(case.config(native), &case.trace(), &case.driving());
        assert_eq!(&integers(&outcome), expected, "{case:?}");
        assert_no_fallback(&outcome, &case);
        checked += 1;
    }
    assert!(checked > 100, "the expected results are there");
}

#[test]
fn native_policies_do_not_differ_from_the_rules() {
    check_all(true);
}

#[test]
fn component_policies_do_not_differ_from_the_rules() {
    check_all(false);
}

#[test]
fn block_sizes_that_do_not_divide_are_not_replayed() {
    for case in cases::all().into_iter().filter(|case| case.exit == Some(2)) {
        let refused = match Cache::open(case.config(true)) {
            Err(_) => true,
            Ok(cache) => replay(&cache, &case.trace(), &case.driving(), &mut |_, _, _| {}).is_err(),
        };
        assert!(refused, "{case:?}");
    }
}

/// With real records, written and read back: the same integers, and no wrong byte.
#[test]
fn a_real_store_does_not_differ_from_the_books() {
    let sample = |case: &Case| {
        case.trace.contains("sample")
            && case.options.block_tokens == 128
            && case.options.allow_replay
            && case.options.limit.is_none()
    };
    let mut checked = 0;
    for case in cases::all().into_iter().filter(sample) {
        let Some(_) = &case.result else { continue };
        let directory = tempfile::tempdir().unwrap();
        let limited = Options { limit: Some(case.options.limit.unwrap_or(9).min(6)), ..case.driving() };
        let stored = Config { store: Some(directory.path().join("store")), ..case.config(checked % 2 == 0) };
        let trace = case.trace();
        let (_, on_disk) = run(stored, &trace, &limited);
        let (_, on_paper) = run(case.config(true), &trace, &limited);
        assert_eq!(integers(&on_disk), integers(&on_paper), "{case:?}");
        let loaded = on_disk.integers.loaded_history + on_disk.integers.loaded_window;
        assert_eq!(on_disk.verified_bytes, loaded, "every byte was compared");
        checked += 1;
    }
    assert!(checked >= 12, "{checked}");
}

/// A swap to the same policy hands everything over: what it kept of its own, and what the host knows. Of two policies that is not all:
/// `flop-aware` ranks what it is told anew, and `adaptive` begins to learn anew.
#[test]
fn a_swap_to_the_same_policy_changes_nothing() {
    let wanted = |case: &Case| {
        case.result.is_some()
            && case.options.block_tokens == 128
            && !case.trace.contains("edges")
            && case.options.limit.is_none()
            && case.options.eviction != "flop-aware"
            && case.options.checkpoints != "adaptive"
    };
    let mut checked = 0;
    for (number, case) in cases::all().into_iter().filter(wanted).enumerate() {
        let swap = |before, role| Swap {
            before,
            role,
            choice: match role {
                Role::Eviction => case.options.eviction.parse().unwrap(),
                Role::Checkpoints => case.options.checkpoints.parse().unwrap(),
            },
        };
        let trace = case.trace();
        let middle = trace.requests.len() as u64 / 2;
        let swaps = vec![swap(2, Role::Eviction), swap(middle, Role::Eviction), swap(middle, Role::Checkpoints)];
        let options = Options { swaps, ..case.driving() };
        let (_, outcome) = run(case.config(number % 2 == 0), &trace, &options);
        assert_eq!(Some(integers(&outcome)), case.result, "{case:?}");
        assert_no_fallback(&outcome, &case);
        checked += 1;
    }
    assert!(checked > 20, "{checked}");
}

/// Going from one policy to another and back is not the same as staying: the test above could fail.
#[test]
fn a_swap_to_another_policy_is_not_ignored() {
    let case = cases::all()
        .into_iter()
        .find(|case| {
            case.trace.contains("conversation")
                && case.options.checkpoints == "events"
                && case.options.eviction == "lru"
        })
        .unwrap();
    let trace = case.trace();
    let swap = Swap { before: 300, role: Role::Checkpoints, choice: "zero".parse().unwrap() };
    let options = Options { swaps: vec![swap], ..case.driving() };
    let (cache, outcome) = run(case.config(false), &trace, &options);
    assert_ne!(Some(integers(&outcome)), case.result);
    assert_eq!(cache.policies().status()[1].name, "zero");
}

/// The figures of the page for the full traces, native and as components. Needs the traces in a directory named by
/// `REPRISE_TRACES`; run it with
/// `REPRISE_TRACES=DIR cargo test -p reprise-tests --test replay -- --ignored`.
#[test]
#[ignore = "needs the full traces"]
fn the_full_traces_do_not_differ_from_the_reference_results() {
    let directory = std::env::var_os("REPRISE_TRACES").expect("REPRISE_TRACES names the directory of the full traces");
    let read = |name: &str| Trace::read(&std::path::Path::new(&directory).join(name), &Default::default()).unwrap();
    let (conversation, agents) = (read("mooncake-conversation.jsonl.gz"), read("coding-agent-180.jsonl.gz"));
    // checkpoints, eviction, hits, matched, adopted, replayed, computed, written_history, written_window
    let rows: [(&Trace, &str, &str, [Option<u64>; 7]); 8] = [
        (
            &conversation,
            "full",
            "lru",
            [12_030, 47_133_440, 39_419_776, 11_883_776, 117_257_823, 487_684_597_904, 4_230_013_928_448].map(Some),
        ),
        (
            &conversation,
            "periodic:2048",
            "lru",
            [3_026, 47_133_440, 38_962_560, 3_013_888, 108_845_151, 487_684_597_904, 236_702_246_912].map(Some),
        ),
        (
            &conversation,
            "events",
            "lru",
            [12_029, 47_133_440, 42_821_376, 4_208_512, 106_180_959, 487_684_597_904, 74_700_964_864].map(Some),
        ),
        (
            &conversation,
            "zero",
            "lru",
            [1_613, 47_133_440, 34_565_760, 12_594_304, 122_822_367, 487_684_597_904, 0].map(Some),
        ),
        (
            &conversation,
            "events",
            "fifo",
            [12_029, 47_036_032, 42_717_312, 4_216_320, 106_292_831, 488_174_700_168, 74_742_359_040].map(Some),
        ),
        (&agents, "events", "lru", [None, None, None, None, Some(61_878_169), None, Some(69_800_929_280)]),
        (&agents, "full", "lru", [None, None, None, None, Some(66_936_729), None, Some(2_407_386_964_992)]),
        (&agents, "zero", "lru", [None, None, None, None, Some(160_296_985), None, Some(0)]),
    ];
    let options = Options { session_gap_us: 120_000_000, ..Options::default() };
    for native in [true, false] {
        for (trace, checkpoints, eviction, expected) in &rows {
            let config = Config {
                checkpoints: checkpoints.parse().unwrap(),
                eviction: eviction.parse().unwrap(),
                native_policies: native,
                planner: Planner::MinCompute,
                deterministic: true,
                ..Config::new("v4-pro").unwrap()
            };
            let (_, outcome) = run(config, trace, &options);
            let i = &outcome.integers;
            let got = [
                i.hits,
                i.matched_tokens,
                i.adopted_tokens,
                i.replayed_tokens,
                i.computed_tokens,
                i.written_history,
                i.written_window,
            ];
            for (got, expected) in got.into_iter().zip(expected) {
                assert!(
                    expected.is_none_or(|expected| expected == got),
                    "{checkpoints} {eviction} native={native}: {i:?}"
                );
            }
        }
    }
}
