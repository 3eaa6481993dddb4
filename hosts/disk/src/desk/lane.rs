//! Jobs that wait for something of which there is little, shared out evenly among batches.

use std::collections::{HashMap, VecDeque};

/// What jobs wait for. `R` is what a job takes and gives back, `J` the job.
pub struct Lane<R, J> {
    free: Vec<R>,
    /// The most that one batch may hold: if nobody takes what it has read, others still get on.
    share: usize,
    /// How much each batch holds, if it holds anything.
    held: HashMap<u64, usize>,
    /// Jobs that wait, by batch. A batch that was served goes to the end.
    batches: VecDeque<(u64, VecDeque<J>)>,
}

impl<R, J> Lane<R, J> {
    /// A lane with what there is to give out, and the most that goes to one batch.
    pub fn new(free: Vec<R>, share: usize) -> Self {
        Self { free, share, held: HashMap::new(), batches: VecDeque::new() }
    }

    /// Queues a job of a batch.
    pub fn push(&mut self, batch: u64, job: J) {
        match self.batches.back_mut() {
            Some((last, jobs)) if *last == batch => jobs.push_back(job),
            _ => self.batches.push_back((batch, VecDeque::from([job]))),
        }
    }

    /// The next job with what it needs, if there is both: of the batch that holds least.
    pub fn next(&mut self) -> Option<(R, J)> {
        if self.free.is_empty() {
            return None;
        }
        let held = |batch: u64| self.held.get(&batch).copied().unwrap_or(0);
        let waiting = self.batches.iter().enumerate().map(|(index, (batch, _))| (held(*batch), index));
        let (_, index) = waiting.filter(|(held, _)| *held < self.share).min()?;
        let (batch, mut jobs) = self.batches.remove(index)?;
        let job = jobs.pop_front().expect("a batch leaves with its last job");
        if !jobs.is_empty() {
            self.batches.push_back((batch, jobs));
        }
        *self.held.entry(batch).or_default() += 1;
        self.free.pop().map(|resource| (resource, job))
    }

    /// Takes back what a job of a batch has had.
    pub fn give_back(&mut self, batch: u64, resource: R) {
        self.free.push(resource);
        let held = self.held.get_mut(&batch).expect("a batch gives back what it holds");
        *held -= 1;
        if *held == 0 {
            self.held.remove(&batch);
        }
    }

    /// The jobs of a batch that have not begun.
    pub fn withdraw(&mut self, batch: u64) -> Vec<J> {
        let (leaving, staying): (VecDeque<_>, _) =
            std::mem::take(&mut self.batches).into_iter().partition(|(id, _)| *id == batch);
        self.batches = staying;
        leaving.into_iter().flat_map(|(_, jobs)| jobs).collect()
    }

    /// Whether no job waits.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// The batches that wait.
    pub fn batches(&self) -> impl Iterator<Item = u64> {
        self.batches.iter().map(|(batch, _)| *batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(lane: &mut Lane<char, u32>, batch: u64, jobs: std::ops::Range<u32>) {
        jobs.for_each(|job| lane.push(batch, job));
    }

    #[test]
    fn a_long_batch_does_not_keep_a_short_one_waiting() {
        let mut lane = Lane::new(vec!['r'], 1);
        queue(&mut lane, 1, 0..4);
        queue(&mut lane, 2, 10..11);
        let mut order = Vec::new();
        while let Some((resource, job)) = lane.next() {
            assert!(lane.next().is_none(), "there is one resource only");
            lane.give_back(if job < 10 { 1 } else { 2 }, resource);
            order.push(job);
            if job == 1 {
                assert_eq!(lane.withdraw(1), [2, 3]);
            }
        }
        assert_eq!(order, [0, 10, 1]);
        assert!(lane.is_empty());
    }

    #[test]
    fn a_batch_that_gives_nothing_back_does_not_stop_another() {
        let mut lane = Lane::new(vec!['r'; 4], 2);
        queue(&mut lane, 1, 0..10);
        assert_eq!(
            [lane.next(), lane.next(), lane.next()].map(|next| next.map(|(_, job)| job)),
            [Some(0), Some(1), None]
        );
        queue(&mut lane, 2, 20..30);
        for round in 20..30 {
            let (resource, job) = lane.next().expect("there is something left for the other");
            assert_eq!(job, round);
            lane.give_back(2, resource);
        }
        assert!(lane.next().is_none());
    }
}
