//! Where the block ids of all requests lie: one array of 32-bit ids, however wide the ids of the file are.

use std::collections::HashMap;

/// Most ids a trace may hold: 2 GiB of them.
pub(super) const MAX_TRACE_IDS: usize = 1 << 29;

/// The ids of one request: a part of the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    pub(super) len: u32,
}

/// The trace has more than [`MAX_TRACE_IDS`] ids.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooManyIds;

/// Ids as they stand in the file while all fit 32 bits; from the first that does not, numbers given in order of first
/// appearance. Equal ids stay equal and distinct ids distinct, which is all that an id says.
#[derive(Debug, Default)]
pub(super) struct BlockIds {
    ids: Vec<u32>,
    interned: Option<HashMap<u64, u32>>,
}

impl BlockIds {
    pub(super) fn get(&self, span: Span) -> &[u32] {
        &self.ids[span.start as usize..][..span.len as usize]
    }

    /// Adds the ids of one request: the first `shared` ids of an earlier one, if given, then `own`.
    ///
    /// # Panics
    ///
    /// If the earlier request has fewer than `shared` ids.
    pub(super) fn push(
        &mut self,
        shared: Option<(Span, u32)>,
        own_len: usize,
        own: impl Iterator<Item = u64>,
    ) -> Result<Span, TooManyIds> {
        let shared_len = shared.map_or(0, |(_, len)| len as usize);
        if shared_len + own_len > MAX_TRACE_IDS - self.ids.len() {
            return Err(TooManyIds);
        }
        let start = self.ids.len();
        if let Some((span, len)) = shared {
            assert!(len <= span.len, "{len} ids of a request that has {}", span.len);
            let from = span.start as usize;
            self.ids.extend_from_within(from..from + len as usize);
        }
        for id in own.take(own_len) {
            let id = self.narrow(id);
            self.ids.push(id);
        }
        // Both fit: MAX_TRACE_IDS is below 2^32.
        Ok(Span { start: start as u32, len: (self.ids.len() - start) as u32 })
    }

    fn narrow(&mut self, id: u64) -> u32 {
        match (&mut self.interned, u32::try_from(id)) {
            (None, Ok(id)) => id,
            (Some(map), _) => intern(map, id),
            (None, Err(_)) => {
                let mut map = HashMap::new();
                for known in &mut self.ids {
                    *known = intern(&mut map, u64::from(*known));
                }
                let id = intern(&mut map, id);
                self.interned = Some(map);
                id
            }
        }
    }

    /// Gives back what growing the array left unused, and the table of wide ids.
    pub(super) fn finish(&mut self) {
        self.ids.shrink_to_fit();
        self.interned = None;
    }
}

fn intern(map: &mut HashMap<u64, u32>, id: u64) -> u32 {
    let next = map.len() as u32; // fewer than MAX_TRACE_IDS entries
    *map.entry(id).or_insert(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_ids_are_never_confused_with_narrow_ones() {
        let wide = u64::from(u32::MAX) + 1; // its low half is 0
        let lists: [&[u64]; 4] = [&[0, 7, 7], &[wide, 0], &[u64::MAX, wide, 7], &[0, 7, 7]];
        let mut ids = BlockIds::default();
        let spans: Vec<Span> = lists.iter().map(|l| ids.push(None, l.len(), l.iter().copied()).unwrap()).collect();
        let all: Vec<(u64, u32)> = lists
            .iter()
            .zip(&spans)
            .flat_map(|(list, span)| list.iter().copied().zip(ids.get(*span).iter().copied()))
            .collect();
        for (wide_a, narrow_a) in &all {
            for (wide_b, narrow_b) in &all {
                assert_eq!(wide_a == wide_b, narrow_a == narrow_b, "{all:?}");
            }
        }
    }

    #[test]
    fn shared_ids_are_those_of_the_earlier_request() {
        let mut ids = BlockIds::default();
        let first = ids.push(None, 3, [5, 6, 7].into_iter()).unwrap();
        let second = ids.push(Some((first, 2)), 1, [9].into_iter()).unwrap();
        let third = ids.push(Some((second, 3)), 0, [].into_iter()).unwrap();
        assert_eq!((ids.get(first), ids.get(second), ids.get(third)), (&[5, 6, 7][..], &[5, 6, 9][..], &[5, 6, 9][..]));
    }

    #[test]
    fn a_request_beyond_the_limit_takes_no_memory() {
        let mut ids = BlockIds::default();
        assert_eq!(ids.push(None, MAX_TRACE_IDS + 1, 0..), Err(TooManyIds));
        assert_eq!(ids.ids.capacity(), 0);
    }
}
