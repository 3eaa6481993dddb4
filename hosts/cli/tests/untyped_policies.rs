//! Cache policies in the pool without types: the same integers natively, as components and as the simulator's rules, and what becomes of a
//! policy that breaks a rule.

use std::sync::OnceLock;

use proptest::prelude::*;
use reprise::{PolicyLoader, PolicyTerms};
use reprise_cli::{
    trace::{ReadOptions, Trace},
    untyped::{Eviction, Options, Outcome, Paths, Rule, replay_paths},
};

/// Loads each shipped policy once for all tests.
fn loader(native: bool) -> &'static PolicyLoader {
    static LOADERS: [OnceLock<PolicyLoader>; 2] = [OnceLock::new(), OnceLock::new()];
    LOADERS[usize::from(native)]
        .get_or_init(|| PolicyLoader::new(PolicyTerms { native, records: 1 << 20, ..PolicyTerms::default() }))
}

fn policy(choice: &str, native: bool) -> Eviction {
    let eviction = Eviction::policy(&choice.parse().expect("a choice"), loader(native)).expect("it loads");
    assert_eq!(eviction.form(), if native { "native" } else { "component" });
    eviction
}

/// The integers, without the time.
fn replayed(paths: &Paths, eviction: &Eviction, capacity_blocks: u32) -> Outcome {
    let options = Options { capacity_blocks, eviction: eviction.clone() };
    Outcome { elapsed: Default::default(), ..replay_paths(paths, &options).expect("a replay") }
}

/// Paths of blocks of one token, one session.
fn made_up(paths: &[Vec<u32>]) -> Paths {
    let mut text = "{\"trace\":\"made up\",\"block_size\":1}\n".to_owned();
    for ids in paths {
        let runs: Vec<[u32; 2]> = ids.iter().map(|&id| [id, 1]).collect();
        text += &format!("{{\"t\":0,\"in\":{},\"ref\":-1,\"lcp\":0,\"new\":{runs:?}}}\n", ids.len());
    }
    let trace = Trace::from_reader("made up", text.as_bytes(), &ReadOptions::default()).expect("a good trace");
    Paths::of(&trace, None).expect("requests")
}

/// Prompts that leave each other, go on from each other and are longer than small pools.
fn prompts() -> impl Strategy<Value = Vec<Vec<u32>>> {
    let step = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), prop::collection::vec(0..3_u32, 0..7));
    prop::collection::vec(step, 1..40).prop_map(|steps| {
        let mut prompts: Vec<Vec<u32>> = vec![vec![0]];
        for (before, cut, new) in steps {
            let before = before.get(&prompts);
            let mut ids = before[..cut.index(before.len() + 1)].to_vec();
            ids.extend(new);
            if !ids.is_empty() {
                prompts.push(ids);
            }
        }
        prompts
    })
}

proptest! {
    #[test]
    fn lru_as_a_policy_never_differs_from_the_simulators_rule(prompts in prompts(), capacity in 1..20_u32) {
        let paths = made_up(&prompts);
        let rule = replayed(&paths, &Rule::Lru.into(), capacity);
        prop_assert_eq!(&replayed(&paths, &policy("lru", true), capacity), &rule);
        prop_assert_eq!(&replayed(&paths, &policy("lru", false), capacity), &rule);
    }

    #[test]
    fn a_component_never_differs_from_its_native_twin(prompts in prompts(), capacity in 1..20_u32) {
        let paths = made_up(&prompts);
        for name in ["fifo", "two-hit"] {
            let native = replayed(&paths, &policy(name, true), capacity);
            prop_assert_eq!(&replayed(&paths, &policy(name, false), capacity), &native, "{}", name);
            prop_assert_eq!(native.failure, None);
        }
    }
}

#[test]
fn no_form_of_lru_differs_on_the_sample() {
    let paths = Paths::of(&Trace::sample().expect("bundled"), None).expect("requests");
    for capacity in [1, 100, 1_000, 5_000, 20_000] {
        let rule = replayed(&paths, &Rule::Lru.into(), capacity);
        assert_eq!(replayed(&paths, &policy("lru", true), capacity), rule, "native, {capacity} blocks");
        assert_eq!(replayed(&paths, &policy("lru", false), capacity), rule, "as a component, {capacity} blocks");
    }
}

/// Blocks written are the writes of the policy `two-hit` on purpose: what it is for.
#[test]
fn a_refused_block_is_not_written() {
    let paths = made_up(&[vec![1, 2], vec![3], vec![4], vec![3]]);
    let two_hit = replayed(&paths, &policy("two-hit", true), 2);
    let lru = replayed(&paths, &Rule::Lru.into(), 2);
    // Of a full pool, 3 is refused once and 4 for good.
    assert_eq!((two_hit.written_blocks, two_hit.measured_written_blocks, two_hit.found_blocks), (3, 1, 0));
    assert_eq!((lru.written_blocks, lru.measured_written_blocks, lru.found_blocks), (4, 1, 1));
}
