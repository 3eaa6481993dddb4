//! Strategies: at which positions of a span a window is kept.
//!
//! The first three are those of arXiv:2606.19348 §3.5.2; `Events` is what was deployed. What each costs and where it fits:
//! a checkpoint of V4-Pro is as large as the compressed entries of about 1,010 tokens.

use alloc::vec::Vec;

use crate::policy::Span;

/// Where to keep a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// At the end of every block.
    Full,
    /// At every multiple of `period_tokens` that ends a block.
    Periodic {
        /// Distance in tokens, at least 1.
        period_tokens: u32,
    },
    /// Nowhere: a hit recomputes the window.
    Zero,
    /// At the end of the last complete block, and at a junction: where a request leaves a cached path in its middle.
    Events {
        /// How many blocks before the last the end's checkpoint is kept: 1 where drafts are on and the engine drops one more block.
        back_blocks: u32,
    },
}

impl Strategy {
    /// Appends the positions for `span`, in tokens, ascending.
    pub fn choose(self, span: &Span, positions: &mut Vec<u32>) {
        let block = span.block_tokens;
        match self {
            Self::Full => positions.extend(multiples(block, span)),
            Self::Periodic { period_tokens } => {
                positions.extend(multiples(block, span).filter(|position| position.is_multiple_of(period_tokens)));
            }
            Self::Zero => {}
            Self::Events { back_blocks } => {
                let end = span.end.saturating_sub(back_blocks.saturating_mul(block));
                let (first, second) = (span.junction.min(end), span.junction.max(end));
                positions.extend(Some(first).filter(|&position| span.allows(position)));
                positions.extend(Some(second).filter(|&position| position != first && span.allows(position)));
            }
        }
    }
}

fn multiples(block_tokens: u32, span: &Span) -> impl Iterator<Item = u32> {
    let first = span.start / block_tokens + 1;
    let last = span.end / block_tokens;
    (first..=last).map(move |block| block * block_tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(strategy: Strategy, span: Span) -> Vec<u32> {
        let mut positions = Vec::new();
        strategy.choose(&span, &mut positions);
        assert!(positions.iter().all(|&position| span.allows(position)), "{strategy:?} asks for what hosts refuse");
        assert!(positions.is_sorted_by(|a, b| a < b));
        positions
    }

    #[test]
    fn no_strategy_keeps_a_window_outside_the_span() {
        let span =
            Span { start: 256, end: 1024, prompt_tokens: 1100, matched: 512, block_tokens: 128, ..Span::default() };
        let junction = Span { junction: 512, ..span };
        let at_start = Span { start: 512, junction: 512, ..span };
        let at_end = Span { start: 1024, matched: 1024, ..span };
        for (strategy, span, expected) in [
            (Strategy::Full, span, &[384, 512, 640, 768, 896, 1024][..]),
            (Strategy::Full, at_end, &[]),
            (Strategy::Periodic { period_tokens: 512 }, span, &[512, 1024]),
            (Strategy::Periodic { period_tokens: 192 }, span, &[384, 768]),
            (Strategy::Periodic { period_tokens: 4096 }, span, &[]),
            (Strategy::Zero, junction, &[]),
            (Strategy::Events { back_blocks: 0 }, span, &[1024]),
            (Strategy::Events { back_blocks: 0 }, junction, &[512, 1024]),
            (Strategy::Events { back_blocks: 0 }, at_start, &[512, 1024]),
            (Strategy::Events { back_blocks: 0 }, at_end, &[]),
            (Strategy::Events { back_blocks: 1 }, span, &[896]),
            (Strategy::Events { back_blocks: 9 }, span, &[]),
            (Strategy::Events { back_blocks: 9 }, junction, &[512]),
            (Strategy::Events { back_blocks: 4 }, junction, &[512]),
        ] {
            assert_eq!(chosen(strategy, span), expected, "{strategy:?} {span:?}");
        }
    }
}
