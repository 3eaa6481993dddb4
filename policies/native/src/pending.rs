//! What a policy learnt when it was asked for admission, until the blocks come in.

/// Requests whose blocks may be on their way at once. Of those beyond it, the policy knows what it knows without admission.
const REQUESTS: usize = 32;

#[derive(Clone, Copy, Debug, Default)]
struct Question {
    now: u64,
    known: u32,
}

/// The last few questions, by time.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    questions: [Question; REQUESTS],
    next: usize,
}

impl Pending {
    /// Words of [`Pending::words`].
    pub const WORDS: usize = 2 * REQUESTS;

    /// Blocks up to depth `known` of the request at `now` are known from before.
    pub fn note(&mut self, now: u64, known: u32) {
        self.questions[self.next] = Question { now, known };
        self.next = (self.next + 1) % REQUESTS;
    }

    /// Depth up to which the blocks that come in at `now` are known; 0 if no question is remembered.
    #[inline]
    pub fn known(&self, now: u64) -> u32 {
        let (newer, older) = self.questions.split_at(self.next);
        let mut latest_first = newer.iter().rev().chain(older.iter().rev());
        latest_first.find(|question| question.now == now).map_or(0, |question| question.known)
    }

    /// All of it, for a successor: the oldest question first.
    pub fn words(&self) -> impl Iterator<Item = u64> {
        let (newer, older) = self.questions.split_at(self.next);
        older.iter().chain(newer).flat_map(|question| [question.now, question.known.into()])
    }

    /// Takes what [`Pending::words`] gave.
    pub fn take(&mut self, words: &[u64]) {
        for pair in words.as_chunks::<2>().0 {
            self.note(pair[0], u32::try_from(pair[1]).unwrap_or(u32::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_not_mistaken_for_another_nor_kept_for_ever() {
        let mut pending = Pending::default();
        for now in 1..=REQUESTS as u64 + 1 {
            pending.note(now, now as u32 * 10);
        }
        assert_eq!([1, 2, 5, 99].map(|now| pending.known(now)), [0, 20, 50, 0], "the first was forgotten");
        pending.note(5, 7);
        assert_eq!(pending.known(5), 7, "the later answer counts");
        let mut after = Pending::default();
        after.take(&pending.words().collect::<alloc::vec::Vec<_>>());
        assert!((0..100).all(|now| after.known(now) == pending.known(now)));
    }
}
