//! A cache that is audited after every request: by what it says of each path, by its counters, and by what its engine saw.

use std::collections::{BTreeSet, HashSet};

use reprise::{Cache, Config, Group, NamespaceHandle, Plan, PlanGuard, Presence, Record, Sequence};
use reprise_tests::engine::BLOCK_TOKENS;

use super::stream::{Keeping, Request, Rows, keys, open};

fn record(sequence: &Sequence, group: Group, position_tokens: u32) -> Record {
    let block = position_tokens / BLOCK_TOKENS - 1;
    Record { group, block, position_tokens, digest: sequence.digests()[block as usize] }
}

/// A cache and what must be true of it: the records that were written, less those that went.
pub struct Audited {
    /// The cache.
    pub cache: Cache,
    namespace: NamespaceHandle,
    /// Every path that was asked for.
    paths: BTreeSet<Vec<u8>>,
    /// Records that a plan may read now.
    live: HashSet<Record>,
    /// Records that were written at any time.
    written: HashSet<Record>,
    /// Records that were there when the counters began.
    at_open: [u64; 3],
}

impl Audited {
    /// A cache in which nothing was written yet, unless there is a store.
    pub fn open(config: &Config) -> Self {
        let (cache, namespace) = open(config);
        let (paths, live, written) = (BTreeSet::new(), HashSet::new(), HashSet::new());
        Self { cache, namespace, paths, live, written, at_open: [0; 3] }
    }

    /// The groups of which a checkpoint has a record.
    fn checkpoint_groups(&self) -> impl Iterator<Item = Group> {
        [Group::Window, Group::Draft].into_iter().filter(|&group| self.cache.shape().group(group).is_some())
    }

    fn sequence(&self, path: &[u8], tail_tokens: u32) -> Sequence {
        let tokens = path.len() as u64 * u64::from(BLOCK_TOKENS) + u64::from(tail_tokens);
        self.namespace.sequence_of_keys(tokens, &keys(path))
    }

    /// What the plan reads, in the order in which it is read.
    fn reads(&self, sequence: &Sequence, plan: &Plan) -> Vec<Record> {
        let blocks = 1..=plan.adopted_tokens / BLOCK_TOKENS;
        let mut records: Vec<Record> =
            blocks.map(|block| record(sequence, Group::History, block * BLOCK_TOKENS)).collect();
        if plan.loads_checkpoint {
            records.extend(self.checkpoint_groups().map(|group| record(sequence, group, plan.adopted_tokens)));
        }
        records
    }

    /// Every record that the plan of some path could read.
    fn nameable(&self) -> HashSet<Record> {
        let mut records = HashSet::new();
        for path in &self.paths {
            let sequence = self.sequence(path, 1);
            let presence = self.namespace.presence(&keys(path));
            let resident = presence.iter().take_while(|&&found| found == Presence::Hit).count();
            assert!(
                presence[resident..].iter().all(|&found| found == Presence::Miss),
                "a block behind a gap: {path:?}"
            );
            let ends = (1..=resident as u32).map(|block| block * BLOCK_TOKENS);
            records.extend(ends.map(|position| record(&sequence, Group::History, position)));
            for position in sequence.restorable() {
                records.extend(self.checkpoint_groups().map(|group| record(&sequence, group, position)));
            }
        }
        records
    }

    /// Looks at what is resident: `came` may have come in, other records may only have gone, and none takes room that no plan could name.
    fn look(&mut self, came: &HashSet<Record>) {
        self.written.extend(came);
        let now = self.nameable();
        let stranger = now.iter().find(|record| !self.live.contains(record) && !came.contains(record));
        assert_eq!(stranger, None, "resident, and not written since it went");
        self.live = now;
        let stats = self.cache.stats();
        for group in Group::ALL {
            let live = self.live.iter().filter(|record| record.group == group).count() as u64;
            assert_eq!(live, stats.resident_records[group as usize], "a {} that no plan can name", group.name());
        }
        for group in [Group::History].into_iter().chain(self.checkpoint_groups()) {
            let counts = stats.counters.group(group);
            let came = self.at_open[group as usize] + counts.written_records;
            let went = counts.evicted_records + counts.orphaned_records;
            assert_eq!(came - went, stats.resident_records[group as usize], "{}", group.name());
            assert_eq!(counts.failed_reads + counts.failed_writes, 0);
        }
    }

    fn check_plan(&self, request: &Request, sequence: &Sequence, plan: &Plan, at_most_tokens: u32) {
        let may_hit = request.may_hit_blocks().min(at_most_tokens / BLOCK_TOKENS);
        let resident = |&block: &u32| self.live.contains(&record(sequence, Group::History, (block + 1) * BLOCK_TOKENS));
        let matched = (0..may_hit).take_while(resident).count() as u32 * BLOCK_TOKENS;
        assert_eq!(plan.matched_tokens, matched, "all that was written and not evicted is found");
        for read in self.reads(sequence, plan) {
            assert!(self.live.contains(&read), "{read:?} was not written, or is gone");
        }
        let replay = self.cache.shape().replay_tokens;
        let exact = match (plan.adopted_tokens, plan.replayed_tokens) {
            (0, 0) => !plan.loads_checkpoint,
            (_, 0) => plan.loads_checkpoint,
            (adopted, replayed) => adopted == matched && replayed == replay && !plan.loads_checkpoint,
        };
        assert!(exact, "{plan:?} rebuilds the windows neither from a checkpoint nor by a replay of {replay}");
        let end = request.path.len() as u32 * BLOCK_TOKENS;
        assert!(plan.captures.is_sorted_by(|first, second| first < second));
        let named = |&position: &u32| position > 0 && position <= end && position.is_multiple_of(BLOCK_TOKENS);
        assert!(plan.captures.iter().all(named), "{:?} in {end} tokens", plan.captures);
    }

    /// One request, and the plan that is to be held.
    pub fn serve(&mut self, request: &Request, now: u64) -> Option<PlanGuard> {
        self.paths.insert(request.path.clone());
        let mut sequence = self.sequence(&request.path, request.tail_tokens);
        let at_most_tokens = request.may_hit_blocks().saturating_sub(request.back_blocks) * BLOCK_TOKENS;
        let plan = sequence.plan_at_most(now, at_most_tokens).unwrap();
        self.check_plan(request, &sequence, &plan, at_most_tokens);

        let rows = Rows::default();
        let (restored, _) = plan.restore(rows.clone()).unwrap().wait();
        assert_eq!((restored.adopted_tokens, restored.shortened), (plan.adopted_tokens, false));
        if self.cache.config().store.is_some() {
            assert_eq!(*rows.accepted.lock().unwrap(), self.reads(&sequence, &plan), "read is what was planned");
        }
        let captures = plan.captures.clone();
        let held = request.held.then_some(plan);
        self.keep(request.keeping, &mut sequence, &captures, &rows);
        held
    }

    fn keep(&mut self, keeping: Keeping, sequence: &mut Sequence, captures: &[u32], rows: &Rows) {
        let mut source = rows.clone();
        let before = self.cache.stats().counters;
        let (saved, captured) = match keeping {
            Keeping::SavedThenCaptured => {
                let saved = sequence.save(&mut source).unwrap();
                (saved, sequence.capture(&mut source).unwrap())
            }
            Keeping::CapturedThenSaved => {
                let captured = sequence.capture(&mut source).unwrap();
                (sequence.save(&mut source).unwrap(), captured)
            }
            Keeping::Aborted => return self.look(&HashSet::new()),
        };
        self.cache.drain();
        let counters = self.cache.stats().counters;
        let written = |group| counters.group(group).written_records - before.group(group).written_records;
        assert_eq!(written(Group::History), u64::from(saved.new_blocks));
        for group in self.checkpoint_groups() {
            assert_eq!(written(group), u64::from(saved.checkpoints + captured.checkpoints), "{}", group.name());
        }

        let new = saved.resident_blocks - saved.new_blocks + 1..=saved.resident_blocks;
        let blocks: HashSet<Record> = new.map(|block| record(sequence, Group::History, block * BLOCK_TOKENS)).collect();
        let windows: HashSet<Record> = self
            .checkpoint_groups()
            .flat_map(|group| captures.iter().map(move |&position| (group, position)))
            .map(|(group, position)| record(sequence, group, position))
            .collect();
        if self.cache.config().store.is_some() {
            let (history, others): (HashSet<_>, HashSet<_>) =
                rows.filled.lock().unwrap().iter().partition(|record| record.group == Group::History);
            assert_eq!(history, blocks, "asked of the engine is what is stored");
            assert!(others.is_subset(&windows), "asked for, and at no position that was planned");
        }
        self.look(&blocks.union(&windows).copied().collect());
    }

    /// The same store in a new process. A window that went with its block may be found again when the block is back: its bytes are right.
    pub fn restart(self) -> Self {
        let config = self.cache.config().clone();
        let Self { cache, namespace, paths, live, written, .. } = self;
        drop((cache, namespace));
        let mut again = Self { paths, ..Self::open(&config) };
        let found = again.nameable();
        assert_eq!(live.difference(&found).next(), None, "lost by a restart");
        let back = found.difference(&live).find(|record| record.group == Group::History);
        assert_eq!(back, None, "evicted, and back after a restart");
        again.at_open = again.cache.stats().resident_records;
        again.look(&written);
        again
    }

    /// Every checkpoint that takes room serves a plan.
    pub fn check_use(&self, now: u64) {
        for path in &self.paths {
            let mut sequence = self.sequence(path, 1);
            for position in sequence.restorable() {
                let plan = sequence.plan_at_most(now, position).unwrap();
                assert_eq!((plan.adopted_tokens, plan.loads_checkpoint), (position, true), "{}", plan.explain());
            }
        }
    }
}
