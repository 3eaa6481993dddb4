//! How long ago a run was used, in buckets, and how often, in classes.
//!
//! Two buckets for each doubling of age: chances of reuse change with the order of magnitude of age, and a bucket that is too narrow has
//! too few uses in it to learn from.

/// Buckets of age; the last takes every age from about a million turns on.
pub const BUCKETS: usize = 40;

/// Classes of use: never used again, once, twice, three or four times, five to eight times, more often; and the last block of a prompt
/// that was never used again.
pub const CLASSES: usize = 7;

/// A class and a bucket.
pub const CELLS: usize = CLASSES * BUCKETS;

/// The class of a block that ends a prompt: many engines name it by tokens that the next prompt goes on from elsewhere.
const END: u8 = 6;

/// The greatest age in turns that belongs to a bucket: 1, 2, 3, 4, 6, 8, 12, 16, …
pub const fn last_age(bucket: usize) -> u32 {
    let half = bucket.div_ceil(2) as u32;
    match bucket {
        0 => 1,
        _ if bucket + 1 == BUCKETS => u32::MAX,
        _ if bucket % 2 == 1 => 1 << half,
        _ => (1 << half) + (1 << (half - 1)),
    }
}

/// Ages in turns that belong to a bucket; what the last has without end counts as twice its start.
pub const fn width(bucket: usize) -> u32 {
    match bucket {
        0 => 1,
        _ if bucket + 1 == BUCKETS => last_age(bucket - 1),
        _ => last_age(bucket) - last_age(bucket - 1),
    }
}

/// Uses are counted up to here: more make no difference.
pub const MOST_USES: u8 = 9;

/// The class of blocks that were used again `uses` times.
pub const fn class(uses: u8, ends_prompt: bool) -> u8 {
    match uses {
        0 if ends_prompt => END,
        0..=3 => uses,
        4 => 3,
        5..=8 => 4,
        _ => 5,
    }
}

/// The cell of a class and a bucket.
pub const fn cell(class: u8, bucket: usize) -> usize {
    class as usize * BUCKETS + bucket
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_age_is_left_out_and_none_is_in_two_buckets() {
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 7, 8].map(last_age), [1, 2, 3, 4, 6, 8, 12, 16, 24]);
        let mut before = 0;
        for bucket in 0..BUCKETS - 1 {
            assert_eq!(last_age(bucket), before + width(bucket), "bucket {bucket}");
            before = last_age(bucket);
        }
        assert_eq!(last_age(BUCKETS - 1), u32::MAX);
    }
}
