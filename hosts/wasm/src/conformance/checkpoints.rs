//! What is expected of a checkpoint policy.

use reprise_core::policy::{CheckpointInfo, Prompt, Span, TOLD_KEYS};

use super::{
    BLOCK_TOKENS,
    endurance::{self, Endurance},
    report::{Calls, Report, quantiles},
    takes_its_settings,
};
use crate::{
    checkpoint::{Candidate, CheckpointPolicy},
    component::Component,
    error::PolicyError,
};

const SPANS: u64 = 400;

/// Spans of 0 to 36 blocks that start at 0 to 12 blocks; every third leaves a cached path.
pub(super) fn span(now: u64) -> Span {
    let (start, blocks) = ((now % 13) as u32 * BLOCK_TOKENS, (now % 37) as u32);
    let end = start + blocks * BLOCK_TOKENS;
    let matched = if blocks == 0 { start } else { start + (now % u64::from(blocks)) as u32 * BLOCK_TOKENS };
    let junction = if now.is_multiple_of(3) { matched } else { 0 };
    Span { now, start, end, prompt_tokens: end + 7, matched, junction, block_tokens: BLOCK_TOKENS }
}

/// What a policy that learns is told of checkpoints: a replay takes more than most of the spans have.
pub(super) const INFO: CheckpointInfo = CheckpointInfo {
    capacity_checkpoints: 64,
    checkpoint_bytes: 1 << 20,
    block_bytes: 1 << 16,
    replay_tokens: 16 * BLOCK_TOKENS,
};

/// A policy of this component with its default settings, told what checkpoints cost.
pub(super) fn made(component: &Component) -> Result<CheckpointPolicy, PolicyError> {
    let mut policy = component.checkpoint(&[])?;
    policy.attach(&INFO)?;
    Ok(policy)
}

/// Asks for one span and checks the answer, which is left in `positions`. A policy that learns is told keys of which many come again.
pub(super) fn ask(policy: &mut CheckpointPolicy, span: &Span, positions: &mut Vec<u32>) -> Result<(), PolicyError> {
    positions.clear();
    let keys: [u64; TOLD_KEYS] = std::array::from_fn(|block| 1 + span.now % 40 * 8 + block as u64);
    let told = |position: u32| {
        let blocks = (position / span.block_tokens) as usize;
        &keys[TOLD_KEYS.saturating_sub(blocks)..]
    };
    let prompt = Prompt {
        namespace: (span.now % 3) as u16,
        replayed_tokens: 0,
        matched_keys: told(span.matched),
        end_keys: told(span.end),
    };
    policy.choose_for(span, &prompt, positions)?;
    if let Some(position) = positions.iter().find(|&&position| !span.allows(position)) {
        let what = format!("position {position} is not one of {span:?}");
        return Err(PolicyError::Answer { call: "choose", what });
    }
    if !positions.is_sorted_by(|a, b| a < b) {
        return Err(PolicyError::Answer { call: "choose", what: "positions that do not ascend".to_owned() });
    }
    Ok(())
}

/// A few hundred spans. Gives all answers.
pub(super) fn spans(component: &Component) -> Result<Vec<u32>, PolicyError> {
    let mut policy = made(component)?;
    let (mut all, mut positions) = (Vec::new(), Vec::new());
    for now in 1..=SPANS {
        ask(&mut policy, &span(now), &mut positions)?;
        all.push(positions.len() as u32);
        all.extend_from_slice(&positions);
    }
    Ok(all)
}

/// Spans at the ends of what there can be: empty, one block, at the end of the largest prompt, blocks of one token.
fn extreme_spans() -> [Span; 5] {
    let top = u32::MAX / BLOCK_TOKENS * BLOCK_TOKENS;
    let span = |start, end, prompt_tokens, block_tokens| Span {
        now: u64::MAX,
        start,
        end,
        prompt_tokens,
        matched: start,
        junction: start,
        block_tokens,
    };
    [
        span(0, 0, 0, BLOCK_TOKENS),
        span(0, 0, 5, BLOCK_TOKENS),
        span(0, BLOCK_TOKENS, BLOCK_TOKENS, BLOCK_TOKENS),
        span(top - 4 * BLOCK_TOKENS, top, u32::MAX, BLOCK_TOKENS),
        span(7, 9, 9, 1),
    ]
}

/// Checks everything and notes what came of it. `fuelled` is the same component in an engine that counts fuel.
pub(super) fn check(timed: &Component, fuelled: &Component, events: u64, report: &mut Report) {
    report.note("positions end blocks of the span, and ascend", spans(timed));
    let extremes = || {
        let mut policy = made(timed)?;
        let mut positions = Vec::new();
        extreme_spans().iter().try_for_each(|span| ask(&mut policy, span, &mut positions))
    };
    report.note("spans at the ends of what there can be are answered", extremes());
    let repeats = || match (spans(timed), spans(fuelled)) {
        (Ok(first), Ok(second)) if first == second => Ok(()),
        (Ok(_), Ok(_)) => Err("their answers differ".to_owned()),
        (Err(error), _) | (_, Err(error)) => Err(error.to_string()),
    };
    report.note("the same spans give the same answers in two instances", repeats());
    if timed.checkpoint(&[]).is_ok_and(|policy| policy.chooses_plans()) {
        report.note("a plan that is chosen is one of those offered", plans(timed));
    }
    let taken = |given: &[(String, String)]| timed.checkpoint(given).map(drop);
    report.note("it takes the settings it declares and refuses others", takes_its_settings(timed, taken));
    // A span is a request: there are fewer of them than events.
    let requests = events / 16;
    let ran = endurance::checkpoints(timed, requests);
    if let Some(Endurance { mut times, memory_bytes, .. }) = report.note(endurance::NAME, ran) {
        report.saw_memory(memory_bytes);
        let fuel = report.note("it keeps to an amount of fuel", endurance::checkpoints(fuelled, requests.min(1 << 12)));
        report.calls = quantiles(&mut times).map(|(median, p99)| Calls {
            calls: requests,
            items: requests,
            median,
            p99,
            fuel_per_item: fuel.map(|ran| ran.fuel_per_item),
        });
    }
}

/// One to eight plans.
fn plans(component: &Component) -> Result<(), PolicyError> {
    let mut policy = component.checkpoint(&[])?;
    for count in 1..=8_u32 {
        let candidates: Vec<Candidate> = (0..count)
            .map(|plan| Candidate {
                computed_tokens: 10_000 - plan * 1_000,
                adopted_tokens: plan * 1_000,
                replayed_tokens: plan * 10,
                loaded_bytes: u64::from(plan) << 20,
            })
            .collect();
        policy.choose_plan(&candidates)?;
    }
    Ok(())
}
