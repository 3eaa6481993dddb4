//! What no policy can be above.

use super::{Mode, Subject};
use crate::bound::{Bound, Room, Terms, saved_tokens, untyped_hit_tokens};

/// Most tokens that any policy can gain on `subject`, for each of `sizes`, however it divides them; `None` where no bound is known.
///
/// This is the one place where a bound comes into the comparison: it is drawn and told wherever this gives one. Called once for each
/// trace, behind the replays.
pub fn tokens(subject: &Subject, mode: &Mode, sizes: &[u64]) -> Vec<Option<u64>> {
    let bound: Option<Bound> = match mode {
        Mode::Typed(setting) => {
            let terms = Terms {
                session_gap_us: setting.session_gap_us,
                limit: Some(subject.order.len()),
                rooms: sizes.iter().map(|&size| Room::Together(size)).collect(),
                ..Terms::new(setting.shape(), setting.config.replay)
            };
            saved_tokens(&subject.trace, &terms).ok()
        }
        Mode::Untyped(pool) => {
            let capacities: Vec<u32> = sizes.iter().map(|&size| u32::try_from(size).unwrap_or(u32::MAX)).collect();
            untyped_hit_tokens(&subject.trace, pool.limit, &capacities).ok()
        }
    };
    sizes.iter().map(|&size| Some(bound.as_ref()?.tokens(Room::Together(size)))).collect()
}
