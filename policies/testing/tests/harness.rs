//! The harness with policies that keep the contract, and with some that do not.

use std::panic::{AssertUnwindSafe, catch_unwind};

use reprise_core::policy::{
    CachePolicy, CheckpointPolicy, Description, Event, Events, GroupInfo, Kind, Policy, Settings, Span,
};
use reprise_policies::{Fifo, Lru, Periodic};
use reprise_policy_testing::{CacheHarness, CheckpointHarness};

/// What a policy that breaks the contract does.
const BROKEN: Description = Description {
    name: "broken",
    version: "0.1.0",
    kind: Kind::Cache,
    admission: false,
    state_schema: 0,
    settings: &[],
};

/// Names these ids whatever is asked for.
struct Names<const COUNT: usize, const FIRST: u32>;

impl<const COUNT: usize, const FIRST: u32> Policy for Names<COUNT, FIRST> {
    const DESCRIPTION: Description = BROKEN;

    fn new(_: &Settings) -> Self {
        Self
    }
}

impl<const COUNT: usize, const FIRST: u32> CachePolicy for Names<COUNT, FIRST> {
    fn attach(&mut self, _: &[GroupInfo]) {}

    fn step(&mut self, _: Events<'_>, want: u32, victims: &mut Vec<u32>) {
        if want > 0 {
            victims.extend((0..COUNT).map(|_| FIRST));
        }
    }
}

#[track_caller]
fn panic_of(run: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("the harness lets it pass");
    *panic.downcast::<String>().expect("a message")
}

fn three_in_a_row<P: Policy + CachePolicy + 'static>() -> CacheHarness {
    let mut host = CacheHarness::native::<P>();
    host.insert_path(None, 3);
    host
}

#[test]
fn an_answer_that_breaks_the_contract_does_not_pass() {
    let said = panic_of(|| drop(three_in_a_row::<Names<1, 7>>().victims(1)));
    assert!(said.ends_with("of these 7 may not go: it is not resident"), "{said}");
    let said = panic_of(|| drop(three_in_a_row::<Names<1, 1>>().victims(1)));
    assert!(said.ends_with("it is not a leaf"), "{said}");
    let said = panic_of(|| drop(three_in_a_row::<Names<2, 2>>().victims(2)));
    assert!(said.ends_with("it is not resident"), "named twice: {said}");
    let said = panic_of(|| drop(three_in_a_row::<Names<2, 2>>().victims(1)));
    assert_eq!(said, "the policy names 2 victims where 1 are wanted");
    let said = panic_of(|| {
        let mut host = three_in_a_row::<Names<1, 2>>();
        host.pin(2);
        host.victims(1);
    });
    assert!(said.ends_with("it is pinned"), "{said}");
}

#[test]
fn what_is_leased_while_a_policy_answers_does_not_go() {
    let mut host = CacheHarness::native::<Lru>();
    let (first, second) = (host.insert(None), host.insert(None));
    assert_eq!(host.victims_while(2, |host| host.pin(first)), [second]);
    assert_eq!(host.resident(), [first]);
    assert_eq!(host.victims(1), [] as [u32; 0], "it is told that the lease is there");
    host.unpin(first);
    assert_eq!(host.victims(1), [first]);
}

#[test]
fn a_successor_does_not_start_without_what_is_resident() {
    let mut host = CacheHarness::native::<Lru>();
    let path = host.insert_path(None, 3);
    let leased = host.insert(None);
    host.pin(leased);
    host.hand_over();
    assert_eq!(host.victims(9), [path[2], path[1], path[0]]);
}

#[test]
fn the_shipped_policies_do_not_break_the_contract() {
    for seed in 0..20 {
        CacheHarness::native::<Lru>().random_requests(seed, 500);
        CacheHarness::native::<Fifo>().random_requests(seed, 500);
    }
    let victims = |seed| CacheHarness::native::<Lru>().random_requests(seed, 500);
    assert_eq!(victims(1), victims(1));
    assert_ne!(victims(1), victims(2));
    assert!(victims(1).len() > 1_000, "the requests are too tame to tell anything");
}

/// Names a position off the grid, or two in the wrong order.
struct OffTheGrid;

impl Policy for OffTheGrid {
    const DESCRIPTION: Description = Description { kind: Kind::Checkpoint, ..BROKEN };

    fn new(_: &Settings) -> Self {
        Self
    }
}

impl CheckpointPolicy for OffTheGrid {
    fn choose(&mut self, span: &Span, positions: &mut Vec<u32>) {
        match span.start {
            0 => positions.push(span.end - 1),
            _ => positions.extend([span.end, span.end - span.block_tokens]),
        }
    }
}

#[test]
fn a_position_that_breaks_the_contract_does_not_pass() {
    let span = Span { end: 1024, prompt_tokens: 1030, block_tokens: 128, ..Span::default() };
    let said = panic_of(|| drop(CheckpointHarness::native::<OffTheGrid>().choose(&span)));
    assert!(said.contains("1023 is not one that"), "{said}");
    let said = panic_of(|| drop(CheckpointHarness::native::<OffTheGrid>().choose(&Span { start: 128, ..span })));
    assert!(said.contains("do not ascend"), "{said}");
    let key = Periodic::DESCRIPTION.settings[0].key;
    assert_eq!(CheckpointHarness::native_with::<Periodic>(&[(key, "512")]).choose(&span), [512, 1024]);
    assert_eq!(CheckpointHarness::native::<Periodic>().random_spans(1, 500).len(), 500);
}

#[test]
fn a_setting_that_does_not_fit_is_not_taken() {
    let said = panic_of(|| drop(CacheHarness::native_with::<Lru>(&[("chances", "2")])));
    assert!(said.contains("no setting `chances`"), "{said}");
}

/// Forgets that a record was used.
struct Forgetful(Lru);

impl Policy for Forgetful {
    const DESCRIPTION: Description = Lru::DESCRIPTION;

    fn new(settings: &Settings) -> Self {
        Self(Lru::new(settings))
    }
}

impl CachePolicy for Forgetful {
    fn attach(&mut self, groups: &[GroupInfo]) {
        self.0.attach(groups);
    }

    fn step(&mut self, events: Events<'_>, want: u32, victims: &mut Vec<u32>) {
        let told: Vec<u64> = events
            .into_iter()
            .filter(|event| !matches!(event, Event::Used { .. }))
            .flat_map(|event| event.pack())
            .collect();
        self.0.step(Events::new(&told), want, victims);
    }
}

#[test]
fn random_requests_do_not_hide_that_two_policies_differ() {
    let victims = CacheHarness::native::<Lru>().random_requests(3, 300);
    assert_ne!(victims, CacheHarness::native::<Forgetful>().random_requests(3, 300));
}
