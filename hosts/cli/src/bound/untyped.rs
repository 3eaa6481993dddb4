//! The bound for the replay without types.

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

/// Bounds the tokens that any policy finds in a pool of blocks, by the rules of the [replay without types](crate::untyped): those of the
/// measured half, however full the pool was before ([`crate::untyped::Outcome::found_tokens`]). `capacities` are numbers of blocks; ask for
/// the bound with `Room::Together(blocks)`.
///
/// It stands above `--eviction optimal`, too. That policy knows the future, evicts the leaf whose next use is furthest and refuses what is
/// used later still. Where all blocks are worth the same and every request is measured, nobody finds more: tests hold it against
/// everything that could be kept, on small traces. But here the last block of a prompt may be worth fewer tokens, and a hit in the
/// half that is not measured is worth none, of which the policy knows nothing. So its figure is what that simulator calls optimal, and there
/// are traces on which another choice finds more; the figure here is above all of them.
///
/// # Errors
/// When a block of the trace has no tokens.
pub fn untyped_hit_tokens(trace: &Trace, limit: Option<usize>, capacities: &[u32]) -> Result<Bound, Misfit> {
    let grid = Grid::new(trace.block_tokens, trace.block_tokens)?;
    let replayed = trace.requests.iter().filter(|request| request.prompt_tokens > 0 && !trace.ids(request).is_empty());
    let requests: Vec<_> = replayed.take(limit.unwrap_or(usize::MAX)).collect();
    let block_tokens = u64::from(trace.block_tokens);
    let mut demand = Demand::new(Sizes { block: 1, checkpoint: 0, replay_tokens: None, block_tokens });
    let mut names = Vec::new();
    let mut last_uses = LastUses::default();
    let mut prompt_tokens = 0;
    for (time, request) in (1..).zip(&requests) {
        let measured = time as usize > requests.len() / 2;
        let ids = trace.ids(request);
        names.clear();
        grid.name_by_ids(request.scope, ids, ids.len() as u32, &mut names);
        let mut tokens = 0;
        for (place, name) in (0..).zip(&names) {
            // Ids beyond the prompt count a token each.
            tokens += u64::from(request.prompt_tokens).saturating_sub(place * block_tokens).clamp(1, block_tokens);
            if let Some(since) = last_uses.replace(name, time).filter(|_| measured) {
                demand.push(time, since, tokens);
            }
        }
        prompt_tokens += if measured { tokens } else { 0 };
    }
    let market = Market::new(&demand);
    let mut lines = vec![market.unlimited()];
    lines.extend(capacities.iter().map(|&blocks| market.best(Room::Together(blocks.into()))));
    Ok(Bound { requests: requests.len() as u64, prompt_tokens, lines })
}
