//! How long records take.

use std::time::Duration;

/// Buckets to a power of two.
const STEPS: u64 = 32;

/// Counts times in buckets that are a 32nd wide, so that any number of them takes a few KiB.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    counts: Vec<u64>,
    total: u64,
    longest: Duration,
}

impl Latencies {
    /// Counts one.
    pub fn add(&mut self, time: Duration) {
        let bucket = bucket(nanoseconds(time));
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.total += 1;
        self.longest = self.longest.max(time);
    }

    /// Counts all of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.total += other.total;
        self.longest = self.longest.max(other.longest);
    }

    /// The time within which `share` of all ended: the end of its bucket, so it is too long by a 32nd at most. Zero if there
    /// are none.
    pub fn within(&self, share: f64) -> Duration {
        let wanted = (share * self.total as f64).ceil() as u64;
        let mut counted = 0;
        let bucket = self.counts.iter().position(|count| {
            counted += count;
            counted >= wanted
        });
        bucket.map_or(self.longest, |bucket| Duration::from_nanos(end(bucket)).min(self.longest))
    }

    /// The longest time.
    pub fn longest(&self) -> Duration {
        self.longest
    }
}

/// Beyond a century is a century.
fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos().min(1 << 62) as u64
}

fn bucket(nanoseconds: u64) -> usize {
    let octave = nanoseconds.max(STEPS).ilog2() - STEPS.ilog2();
    (u64::from(octave) * STEPS + (nanoseconds >> octave)) as usize
}

/// The longest time that falls into a bucket, in nanoseconds.
fn end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let octave = (bucket / STEPS).saturating_sub(1);
    ((bucket - octave * STEPS + 1) << octave) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_told_shorter_than_it_was_or_longer_by_more_than_a_32nd() {
        for power in 0..62 {
            for nanoseconds in [1_u64 << power, (1 << power) + 1, (1 << power) * 3 / 2, (2 << power) - 1] {
                let end = end(bucket(nanoseconds));
                assert!(nanoseconds <= end && end - nanoseconds <= nanoseconds / 32, "{nanoseconds}: {end}");
            }
        }
    }

    #[test]
    fn a_share_does_not_leave_out_times_of_other_threads() {
        let mut all = Latencies::default();
        assert_eq!(all.within(0.5), Duration::ZERO);
        for thread in 0..4 {
            let mut some = Latencies::default();
            (1..=250).for_each(|time| some.add(Duration::from_micros(thread * 250 + time)));
            all.merge(&some);
        }
        let near = |share, micros: u64| {
            let (told, exact) = (all.within(share), Duration::from_micros(micros));
            assert!(exact <= told && told <= exact + exact / 32, "{told:?}");
        };
        near(0.5, 500);
        near(0.99, 990);
        assert_eq!((all.within(1.0), all.longest()), (Duration::from_millis(1), Duration::from_millis(1)));
    }
}
