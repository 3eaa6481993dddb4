//! The sections that records are checksummed by.

use proptest::prelude::*;
use reprise_core::{
    layout::{GroupLayout, Layout},
    model::preset,
};

use super::random;

const MIN_BYTES: u64 = 64 << 10;
const PAGE: u64 = 4096;

fn group(model: &str, block_tokens: u32, name: &str) -> GroupLayout {
    Layout::new(&preset(model).unwrap(), block_tokens).unwrap().group(name).unwrap().clone()
}

proptest! {
    #[test]
    fn sections_tile_the_record_and_keep_their_rules((model, block_tokens) in random::model_and_block()) {
        for group in Layout::new(&model, block_tokens).unwrap().groups() {
            let ends = group.sections();
            prop_assert!(ends.is_sorted_by(|a, b| a < b));
            prop_assert_eq!(*ends.last().unwrap(), group.record_bytes());
            let mut end = 0;
            for index in 0..ends.len() {
                let section = group.section(index);
                prop_assert_eq!(section.start, end);
                end = section.end;
                if ends.len() > 1 {
                    prop_assert!(section.end - section.start >= MIN_BYTES);
                }
            }
            for cut in &ends[..ends.len() - 1] {
                prop_assert_eq!(cut % PAGE, 0);
                // A layer ends in the page that begins at the cut.
                prop_assert!(group.extents().any(|extent| extent.bytes.end - extent.bytes.end % PAGE == *cut));
            }
        }
    }

    #[test]
    fn a_type_that_fills_a_section_shares_none_that_it_could_do_without((model, block_tokens) in random::model_and_block()) {
        for group in Layout::new(&model, block_tokens).unwrap().groups() {
            let ends = group.sections();
            for pair in group.types().windows(2) {
                let boundary = pair[0].bytes().end / PAGE * PAGE;
                let (before, after) = (boundary - pair[0].bytes().start.min(boundary), group.record_bytes() - boundary);
                // One page less: the type itself may start within a page.
                let fills_a_section = before >= MIN_BYTES + PAGE && after >= MIN_BYTES;
                if fills_a_section {
                    prop_assert!(ends.contains(&boundary), "no cut at {boundary} of {ends:?}");
                }
            }
        }
    }

    #[test]
    fn sections_of_a_range_are_those_that_hold_any_of_it(
        (model, block_tokens) in random::model_and_block(),
        a in 0_u64..1 << 22,
        b in 0_u64..1 << 22,
    ) {
        for group in Layout::new(&model, block_tokens).unwrap().groups() {
            let (a, b) = (a % (group.record_bytes() + 1), b % (group.record_bytes() + 1));
            let bytes = a.min(b)..a.max(b);
            let covering = group.sections_of(bytes.clone());
            for index in 0..group.sections().len() {
                let section = group.section(index);
                let holds_some = section.start.max(bytes.start) < section.end.min(bytes.end);
                prop_assert_eq!(covering.contains(&index), holds_some, "section {}", index);
            }
        }
    }
}

#[test]
fn a_window_is_checked_layer_by_layer() {
    let window = group("v4-pro", 128, "window");
    // 61 layers of 74,752 bytes, then 614,400 bytes of overlap state in runs of four layers (81,920 bytes), the last of which takes
    // the rest.
    assert_eq!(window.sections().len(), 61 + 7);
    assert_eq!(window.sections()[..3], [73_728, 147_456, 221_184]);
    assert_eq!(window.sections()[60], 4_559_872 / 4_096 * 4_096);
    // A layer that begins or ends within a page needs its neighbour's section, too.
    assert_eq!(window.sections_of(window.extent("swa", 0).unwrap()), 0..2);
    assert_eq!(window.sections_of(window.extent("swa", 5).unwrap()), 5..7);
}

#[test]
fn types_too_small_for_a_section_share_one() {
    let history = group("v4-pro", 128, "history");
    let ends = history.sections();
    // HCA (18,104 bytes) and indexer (65,280 bytes) together, from the page in which CSA ends.
    assert_eq!(history.section(ends.len() - 1), 557_056..644_024);
    assert_eq!(history.sections_of(history.extent("hca", 0).unwrap()), ends.len() - 1..ends.len());
}

#[test]
fn a_small_record_is_one_section() {
    let history = group("gpt-oss-20b", 1, "history");
    assert_eq!(history.sections(), [24_576]);
    assert_eq!(history.sections_of(0..24_576), 0..1);
    assert_eq!(history.sections_of(24_576..30_000), 1..1);
    assert!(history.sections_of(5..5).is_empty());
    // 98,304 bytes would leave less than 64 KiB for a second.
    assert_eq!(group("gpt-oss-20b", 4, "history").sections(), [98_304]);
    assert_eq!(group("gpt-oss-20b", 8, "history").sections(), [65_536, 131_072, 196_608]);
}
