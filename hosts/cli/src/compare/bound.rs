//! What no policy can be above.

use super::{Mode, Subject};

/// Most tokens that any policy can gain on `subject`, for each of `sizes`, however it divides them; `None` where no bound is known.
///
/// This is the one place where a bound comes into the comparison: it is drawn and told wherever this gives one. Called once for each
/// trace, behind the replays.
pub fn tokens(_subject: &Subject, _mode: &Mode, sizes: &[u64]) -> Vec<Option<u64>> {
    vec![None; sizes.len()]
}
