//! The bound for typed caches, by the rules of a replay.

use reprise::Shape;

use super::{
    Bound, Room,
    demand::{Demand, Sizes},
    prices::Market,
    uses::LastUses,
};
use crate::{
    replay::{Grid, Misfit},
    trace::Trace,
};

/// What is bounded, by which rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Tokens per block of the cache.
    pub block_tokens: u32,
    /// What a block's record occupies.
    pub history_slot_bytes: u64,
    /// What a checkpoint occupies; `None` for a model without windows.
    pub window_slot_bytes: Option<u64>,
    /// Tokens that a replay computes again; `None` if plans never replay.
    pub replay_tokens: Option<u32>,
    /// Microseconds between the starts of sessions, for traces whose times count from the start of a session.
    pub session_gap_us: u64,
    /// Only the first requests, in order of arrival.
    pub limit: Option<usize>,
    /// The rooms that the bound is to be tight for.
    pub rooms: Vec<Room>,
}

impl Terms {
    /// For caches of this shape, whose quotas do not matter, that replay or do not. All requests of the trace, and no rooms yet.
    ///
    /// Draft records lie beside the quotas and take no room here either.
    pub fn new(shape: &Shape, replay: bool) -> Self {
        let window_slot_bytes = shape.window.as_ref().map(|window| window.slot_bytes);
        Self {
            block_tokens: shape.block_tokens,
            history_slot_bytes: shape.history.slot_bytes,
            window_slot_bytes,
            replay_tokens: (replay && window_slot_bytes.is_some()).then_some(shape.replay_tokens),
            session_gap_us: 0,
            limit: None,
            rooms: Vec::new(),
        }
    }
}

/// Bounds the tokens that any policies save on `trace`. The trace is read once, whatever the number of rooms.
///
/// # Errors
/// When the block sizes of cache and trace do not divide.
pub fn saved_tokens(trace: &Trace, terms: &Terms) -> Result<Bound, Misfit> {
    let grid = Grid::new(terms.block_tokens, trace.block_tokens)?;
    let mut order = trace.order_of_arrival(terms.session_gap_us);
    order.truncate(terms.limit.unwrap_or(usize::MAX));
    let block_tokens = u64::from(terms.block_tokens);
    let mut demand = Demand::new(Sizes {
        block: terms.history_slot_bytes,
        checkpoint: terms.window_slot_bytes.unwrap_or(0),
        replay_tokens: terms.replay_tokens.map(u64::from),
        block_tokens,
    });
    let mut prompt_tokens = 0;
    let mut names = Vec::new();
    let mut last_uses = LastUses::default();
    for (time, &index) in (1..).zip(&order) {
        let request = &trace.requests[index as usize];
        prompt_tokens += u64::from(request.prompt_tokens);
        let ids = trace.ids(request);
        names.clear();
        grid.name_by_ids(request.scope, ids, grid.complete_blocks(request.prompt_tokens, ids.len()), &mut names);
        // One token is always computed.
        let usable = u64::from(request.prompt_tokens.saturating_sub(1)) / block_tokens;
        for (tokens, name) in (1..).map(|block| block * block_tokens).zip(&names) {
            let since = last_uses.replace(name, time);
            // What is behind a block that was never used was never used either.
            if let Some(since) = since.filter(|_| tokens <= usable * block_tokens) {
                demand.push(time, since, tokens);
            }
        }
    }
    let market = Market::new(&demand);
    let mut lines = vec![market.unlimited()];
    lines.extend(terms.rooms.iter().map(|&room| market.best(room)));
    Ok(Bound { requests: order.len() as u64, prompt_tokens, lines })
}
