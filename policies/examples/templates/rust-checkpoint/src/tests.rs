//! What the policy decides, on a small host that checks every answer.

use reprise_policy_sdk::policy::Span;
use reprise_policy_testing::CheckpointHarness;

use super::Geometric;

/// The policy in this process; with the feature `wasm`, the component that `reprise policy build` made.
fn host() -> CheckpointHarness {
    #[cfg(feature = "wasm")]
    return CheckpointHarness::from_component(&reprise_policy_testing::component("build/{{name}}.wasm"));
    #[cfg(not(feature = "wasm"))]
    CheckpointHarness::native::<Geometric>()
}

const PROMPT: Span =
    Span { now: 1, start: 0, end: 8192, prompt_tokens: 8200, matched: 0, junction: 0, block_tokens: 128 };

#[test]
fn the_windows_of_a_long_prompt_do_not_lie_at_equal_distances() {
    assert_eq!(host().choose(&PROMPT), [1024, 1536, 2304, 3456, 5120, 7680, 8192]);
}

#[test]
fn what_was_adopted_does_not_get_windows_again() {
    assert_eq!(host().choose(&Span { start: 4096, matched: 4096, ..PROMPT }), [5120, 7680, 8192]);
}

#[test]
fn the_place_where_a_path_forks_is_not_left_without_a_window() {
    assert_eq!(host().choose(&Span { start: 4096, matched: 4096, junction: 4096, ..PROMPT }), [4096, 5120, 7680, 8192]);
}

#[test]
fn no_span_gets_an_answer_that_breaks_the_contract() {
    host().random_spans(1, 2_000);
    for (first, growth) in [("1", "1"), ("1000000", "1000")] {
        CheckpointHarness::native_with::<Geometric>(&[("first", first), ("growth", growth)]).random_spans(2, 2_000);
    }
}
