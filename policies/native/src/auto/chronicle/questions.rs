//! Prompts: what of them is known, and what is remembered from now on.

use super::*;

impl Chronicle {
    /// A prompt asks for these blocks, of which the first `resident` are in the cache. Everything of it that is remembered is used, the rest
    /// is remembered from now on.
    pub fn ask(&mut self, keys: &[u64], resident: u32, now: u64) {
        self.advance(now);
        if !self.learning {
            // What happened before was not told as it happened.
            self.cells.iter_mut().for_each(|cell| cell.since = self.turn);
            self.learning = true;
        }
        self.path.clear();
        let (mut at, mut depth) = self.follow(NONE, 0, keys);
        if depth < resident as usize
            && let Some(run) = self.introduce(keys, resident)
        {
            (at, depth) = self.follow(run, resident as usize, keys);
        }
        for index in 0..self.path.len() {
            self.touch(self.path[index]);
        }
        if at != NONE {
            self.join_path(at);
            self.find_path(at);
        }
        // A path that cannot be found by name stays unknown: it is told block by block as it comes in.
        if depth >= resident as usize {
            self.remember(at, depth, keys);
        }
        self.settle();
    }

    /// Follows known runs from the end of `at`, which is `depth` blocks deep. Returns the last and its depth.
    pub(super) fn follow(&mut self, mut at: u32, mut depth: usize, keys: &[u64]) -> (u32, usize) {
        while let Some(&key) = keys.get(depth) {
            let Some(run) = self.child(at, tag(key)) else { break };
            let blocks = self.common(run, &keys[depth..]);
            at = if blocks < self.runs[run as usize].len { self.split(run, blocks, None) } else { run };
            self.path.push(at);
            depth += blocks as usize;
        }
        (at, depth)
    }

    /// How many leading blocks of a run bear these keys: at least one. A key names its whole path, so that those that do are in front.
    pub(super) fn common(&self, run: u32, keys: &[u64]) -> u32 {
        let tags = &self.runs[run as usize].tags;
        let most = tags.len().min(keys.len());
        if tags[most - 1] == tag(keys[most - 1]) {
            return most as u32;
        }
        let (mut same, mut other) = (1, most - 1);
        while same < other {
            let middle = same.midpoint(other);
            if tags[middle] == tag(keys[middle]) {
                same = middle + 1;
            } else {
                other = middle;
            }
        }
        same as u32
    }

    /// The resident path was told without names: gives its runs the names of this prompt's blocks, if it ends where the last use said.
    pub(super) fn introduce(&mut self, keys: &[u64], resident: u32) -> Option<u32> {
        let end = self.run_ending_at(self.used)?;
        if self.rows[self.used as usize].depth != resident || keys.len() < resident as usize {
            return None;
        }
        self.find_path(end);
        for index in 0..self.path.len() {
            let run = self.path[index];
            let Run { start, len, ref tags, .. } = self.runs[run as usize];
            if tags.is_empty() {
                let keys = &keys[start as usize..(start + len) as usize];
                self.runs[run as usize].tags = keys.iter().map(|&key| tag(key)).collect();
                self.index(run);
            }
        }
        Some(end)
    }

    /// The path asked for is the one down to `run`.
    fn find_path(&mut self, mut run: u32) {
        self.path.clear();
        while run != NONE {
            self.path.push(run);
            run = self.runs[run as usize].parent;
        }
        self.path.reverse();
    }

    /// Adds what of a prompt is not known yet, behind `at`: the last block as a run of its own.
    pub(super) fn remember(&mut self, mut at: u32, depth: usize, keys: &[u64]) {
        let tags = |from: usize, to: usize| keys[from..to].iter().map(|&key| tag(key)).collect::<Vec<_>>();
        let last = keys.len().saturating_sub(1);
        if depth < last {
            at = self.add(at, depth as u32, (last - depth) as u32, tags(depth, last), false);
            self.path.push(at);
        }
        if depth < keys.len() {
            let from = depth.max(last);
            at = self.add(at, from as u32, 1, tags(from, keys.len()), true);
            self.path.push(at);
        }
    }
}

/// What of a key tells the children of a run apart, and a block from others at its depth. A mistake costs a hit, at worst.
const fn tag(key: u64) -> u32 {
    key as u32
}
