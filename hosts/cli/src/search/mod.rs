//! The best share of something that is split in two: a few shares first, then what lies between the best and its neighbours.

use std::collections::BTreeMap;

/// Looks for the share, in thousandths, of the highest value.
///
/// `values` is asked for several shares at once, each once at most, and answers in their order: first for all of `coarse` (sorted or
/// not), then, round by round, for the middle between the best share so far and its neighbours on either side, until those are less than 2 × `finest`
/// thousandths away. Of equals the smallest share is the best. A pure function of what `values` answers; it finds the best share if values rise to it and
/// fall behind it, and a good one otherwise.
///
/// Returns all shares that were asked for, with their values. [`best`] is the one looked for.
///
/// # Errors
/// The first that `values` returns.
///
/// # Panics
/// If `values` answers with another number of values than it was asked for.
pub fn maximise<V: Ord + Clone, E>(
    coarse: &[u16],
    finest: u16,
    mut values: impl FnMut(&[u16]) -> Result<Vec<V>, E>,
) -> Result<BTreeMap<u16, V>, E> {
    let mut known = BTreeMap::new();
    let mut asked: Vec<u16> = coarse.to_vec();
    asked.sort_unstable();
    asked.dedup();
    while !asked.is_empty() {
        let answers = values(&asked)?;
        assert_eq!(answers.len(), asked.len(), "a value for each share");
        known.extend(asked.iter().copied().zip(answers));
        asked = between(&known, finest.max(1));
    }
    Ok(known)
}

/// The share of the highest value, the smallest of several; `None` of nothing.
pub fn best<V: Ord>(known: &BTreeMap<u16, V>) -> Option<(u16, &V)> {
    known.iter().rev().max_by_key(|&(_, value)| value).map(|(&share, value)| (share, value))
}

/// The shares halfway between the best one and its neighbours, where there is enough in between.
fn between<V: Ord>(known: &BTreeMap<u16, V>, finest: u16) -> Vec<u16> {
    let Some((best, _)) = best(known) else { return Vec::new() };
    let below = known.range(..best).next_back().map(|(&share, _)| (share, best));
    let above = known.range(best + 1..).next().map(|(&share, _)| (best, share));
    let far = |&(from, to): &(u16, u16)| u32::from(to - from) >= 2 * u32::from(finest);
    [below, above].into_iter().flatten().filter(far).map(|(from, to)| from + (to - from) / 2).collect()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn search(coarse: &[u16], finest: u16, value: impl Fn(u16) -> u64) -> (u16, Vec<u16>) {
        let mut asked = Vec::new();
        let known = maximise(coarse, finest, |shares: &[u16]| {
            asked.extend_from_slice(shares);
            Ok::<_, Infallible>(shares.iter().map(|&share| value(share)).collect())
        });
        let known = known.unwrap();
        let (share, &value_there) = best(&known).unwrap();
        assert_eq!(value(share), value_there);
        (share, asked)
    }

    #[test]
    fn a_peak_is_not_missed_wherever_it_lies() {
        for peak in 0..=1000_u16 {
            let (share, asked) =
                search(&[0, 50, 125, 250, 500, 1000], 5, |share| 10_000 - u64::from(share.abs_diff(peak)));
            assert!(share.abs_diff(peak) < 10, "{peak}: {share}");
            let distinct: std::collections::BTreeSet<_> = asked.iter().collect();
            assert_eq!(distinct.len(), asked.len(), "no share is tried twice");
            assert!(asked.len() <= 6 + 2 * 8, "{asked:?}");
        }
    }

    #[test]
    fn nothing_is_spent_on_a_second_group_that_gains_nothing() {
        assert_eq!(search(&[500, 0, 125, 125], 10, |_| 7).0, 0);
        assert_eq!(search(&[0], 10, |_| 7), (0, vec![0]));
        assert_eq!(maximise(&[], 10, |_| Ok::<Vec<u8>, Infallible>(Vec::new())), Ok(BTreeMap::new()));
    }

    #[test]
    fn a_failure_does_not_pass_for_a_value() {
        let mut rounds = 0;
        let result = maximise(&[0, 500], 10, |shares| {
            rounds += 1;
            if rounds == 2 { Err(shares.to_vec()) } else { Ok(vec![1, 2]) }
        });
        assert_eq!(result, Err(vec![250]));
    }
}
