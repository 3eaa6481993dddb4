//! What the policy decides, on a small host that checks every answer.

use reprise_policy_testing::CacheHarness;

use super::Clock;

/// The policy in this process; with the feature `wasm`, the component that `reprise policy build` made.
fn host() -> CacheHarness {
    #[cfg(feature = "wasm")]
    return CacheHarness::from_component(&reprise_policy_testing::component("build/{{name}}.wasm"));
    #[cfg(not(feature = "wasm"))]
    CacheHarness::native::<Clock>()
}

#[test]
fn a_leaf_that_was_used_does_not_go_before_one_that_was_not() {
    let mut host = host();
    let (first, second, third) = (host.insert(None), host.insert(None), host.insert(None));
    host.touch(first);
    assert_eq!(host.victims(2), [second, third]);
    assert_eq!(host.victims(1), [first], "it was passed over once");
}

#[test]
fn a_second_path_is_not_begun_before_the_first_is_gone() {
    let mut host = host();
    let first = host.insert_path(None, 3);
    host.insert_path(None, 3);
    assert_eq!(host.victims(2), [first[2], first[1]]);
    assert_eq!(host.victims(1), [first[0]]);
}

#[test]
fn what_is_leased_or_kept_is_not_lost() {
    let mut host = host();
    let (leased, other) = (host.insert(None), host.insert(None));
    host.pin(leased);
    assert_eq!(host.victims(2), [other]);
    host.unpin(leased);
    // It is leased again before the host acts on the answer, and declined.
    assert!(host.victims_while(1, |host| host.pin(leased)).is_empty());
    host.unpin(leased);
    assert_eq!(host.victims(1), [leased]);
}

#[test]
fn a_used_leaf_is_not_passed_over_more_often_than_set() {
    let mut host = CacheHarness::native_with::<Clock>(&[("chances", "0")]);
    let used = host.insert(None);
    host.insert(None);
    host.touch(used);
    assert_eq!(host.victims(1), [used]);
}

#[test]
fn no_request_gets_an_answer_that_breaks_the_contract() {
    for seed in 0..5 {
        host().random_requests(seed, 1_000);
    }
}
