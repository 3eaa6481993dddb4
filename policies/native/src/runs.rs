//! Blocks that came in one behind another, and how much of each such run has been used again.
//!
//! A use covers a path from its root, so of a run it covers the front. One number per run says how far, and a hit at any depth costs
//! what the path has runs, not what it has blocks.

use alloc::{vec, vec::Vec};

use reprise_core::policy::Inserted;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Place {
    run: u32,
    depth: u32,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    /// The block before the first, [`reprise_core::policy::NO_PARENT`] if there is none; in a run that is free, the next free one.
    above: u32,
    first: u32,
    last: u32,
    /// Depth up to which its blocks are marked; less than `first` if none is.
    marked: u32,
}

/// Which blocks are marked, by run. The blocks above a marked one are marked.
///
/// Memory: 8 bytes per id, and 16 per run.
#[derive(Clone, Debug)]
pub struct Runs {
    places: Vec<Place>,
    runs: Vec<Run>,
    free: u32,
    unmarked: u64,
}

impl Default for Runs {
    fn default() -> Self {
        Self { places: Vec::new(), runs: Vec::new(), free: NONE, unmarked: 0 }
    }
}

impl Runs {
    /// Makes room for ids below `ids`: see [`crate::ranking::Ranking::reserve`].
    pub fn reserve(&mut self, ids: usize) {
        self.places.reserve_exact(ids.saturating_sub(self.places.len()));
        self.runs.reserve_exact(ids.saturating_sub(self.runs.len()));
    }

    /// How many blocks are not marked.
    pub fn unmarked(&self) -> u64 {
        self.unmarked
    }

    /// Which blocks are marked: bit `id % 64` of word `id / 64`.
    pub fn marks(&self) -> Vec<u64> {
        let mut words = vec![0; self.places.len().div_ceil(64)];
        for (id, place) in self.places.iter().enumerate() {
            let marked = self.runs.get(place.run as usize).is_some_and(|run| place.depth <= run.marked);
            words[id / 64] |= u64::from(marked) << (id % 64);
        }
        words
    }

    /// A block came in.
    #[inline]
    pub fn insert(&mut self, block: &Inserted, marked: bool) {
        let Inserted { id, parent, depth, .. } = *block;
        if self.places.len() <= id as usize {
            self.places.resize(id as usize + 1, Place { run: NONE, depth: 0 });
        }
        // Only if the host forgot to say that it is gone.
        self.remove(id);
        self.place(id, parent, depth, marked);
    }

    fn place(&mut self, id: u32, parent: u32, depth: u32, marked: bool) {
        let run = match self.run_behind(parent, depth, marked) {
            Some(run) => run,
            None => self.begin(parent, depth),
        };
        let entry = &mut self.runs[run as usize];
        entry.last = depth;
        if marked {
            entry.marked = depth;
        }
        self.unmarked += u64::from(!marked);
        self.places[id as usize] = Place { run, depth };
    }

    /// The run that `parent` ends, if a block can follow in it.
    #[inline]
    fn run_behind(&self, parent: u32, depth: u32, marked: bool) -> Option<u32> {
        let above = self.places.get(parent as usize)?;
        let run = self.runs.get(above.run as usize)?;
        let follows = run.last == above.depth && depth == above.depth + 1;
        (follows && (!marked || run.marked == above.depth)).then_some(above.run)
    }

    fn begin(&mut self, above: u32, depth: u32) -> u32 {
        let run = Run { above, first: depth, last: depth, marked: depth.saturating_sub(1) };
        match self.runs.get_mut(self.free as usize) {
            Some(place) => {
                let at = self.free;
                self.free = place.above;
                *place = run;
                at
            }
            None => {
                self.runs.push(run);
                self.runs.len() as u32 - 1
            }
        }
    }

    /// Marks a block and all above it.
    #[inline]
    pub fn mark(&mut self, id: u32) {
        let mut next = id;
        while let Some(&Place { run, depth }) = self.places.get(next as usize) {
            let Some(run) = self.runs.get_mut(run as usize).filter(|run| run.marked < depth) else { break };
            self.unmarked = self.unmarked.saturating_sub(depth.min(run.last).saturating_sub(run.marked).into());
            run.marked = depth;
            next = run.above;
        }
    }

    /// A block is gone: as a leaf, it was the last of its run.
    #[inline]
    pub fn remove(&mut self, id: u32) {
        let Some(&Place { run: at, depth }) = self.places.get(id as usize) else { return };
        let Some(run) = self.runs.get_mut(at as usize) else { return };
        self.places[id as usize].run = NONE;
        // All behind it goes with it, which is nothing unless the host took an inner block.
        let unmarked_from = run.marked.max(depth.saturating_sub(1));
        self.unmarked = self.unmarked.saturating_sub(run.last.saturating_sub(unmarked_from).into());
        run.last = run.last.min(depth.saturating_sub(1));
        run.marked = run.marked.min(run.last);
        if run.last < run.first {
            run.above = self.free;
            run.first = NONE;
            self.free = at;
        }
    }

    /// A block that was removed is there after all, behind its parent.
    pub fn keep(&mut self, id: u32, parent: u32, marked: bool) {
        let Some(&Place { run, depth }) = self.places.get(id as usize) else { return };
        if run == NONE && depth > 0 {
            self.place(id, parent, depth, marked);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use proptest::prelude::*;
    use reprise_core::policy::NO_PARENT;

    use super::*;

    #[derive(Clone, Copy)]
    struct Plain {
        parent: u32,
        depth: u32,
        marked: bool,
    }

    proptest! {
        /// Leaves come, go and come back; a model marks block by block.
        #[test]
        fn no_block_is_counted_other_than_one_by_one(
            steps in prop::collection::vec((0..6_u8, any::<u32>()), 1..400),
        ) {
            let (mut runs, mut model) = (Runs::default(), BTreeMap::<u32, Plain>::new());
            for (kind, pick) in steps {
                let live: Vec<u32> = model.keys().copied().collect();
                let one = live.get(pick as usize % live.len().max(1)).copied();
                let is_leaf = |id: u32| !model.values().any(|block| block.parent == id);
                match (kind, one) {
                    (0..=2, _) | (_, None) => {
                        let parent = one.filter(|_| kind > 0).unwrap_or(NO_PARENT);
                        let above = model.get(&parent).copied();
                        let depth = above.map_or(1, |above| above.depth + 1);
                        let marked = kind == 2 && above.is_none_or(|above| above.marked);
                        let id = (0..).find(|id| !model.contains_key(id)).unwrap();
                        runs.insert(&Inserted { id, parent, group: 0, namespace: 0, depth, now: 0 }, marked);
                        model.insert(id, Plain { parent, depth, marked });
                    }
                    (3, Some(id)) => {
                        runs.mark(id);
                        let mut next = id;
                        while let Some(block) = model.get_mut(&next) {
                            block.marked = true;
                            next = block.parent;
                        }
                    }
                    (4, Some(id)) if is_leaf(id) => {
                        runs.remove(id);
                        model.remove(&id);
                    }
                    (_, Some(id)) if is_leaf(id) => {
                        runs.remove(id);
                        runs.keep(id, model[&id].parent, model[&id].marked);
                    }
                    _ => {}
                }
                prop_assert_eq!(runs.unmarked(), model.values().filter(|block| !block.marked).count() as u64);
                prop_assert!(runs.runs.len() <= runs.places.len(), "no more runs than blocks");
            }
            let marks = runs.marks();
            for (&id, block) in &model {
                prop_assert_eq!(marks[id as usize / 64] >> (id % 64) & 1 == 1, block.marked);
            }
        }
    }
}
