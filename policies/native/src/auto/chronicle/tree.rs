//! The tree itself: runs found by name, cut, added and forgotten.

use super::*;

impl Chronicle {
    /// Cuts the first `blocks` of a run off: they become a run of their own, which is returned. `end` is their last block if it is
    /// resident and known.
    pub(super) fn split(&mut self, run: u32, blocks: u32, end: Option<u32>) -> u32 {
        self.unindex(run);
        let row = &mut self.runs[run as usize];
        let lower_tags = if row.tags.is_empty() { Vec::new() } else { row.tags.split_off(blocks as usize) };
        let upper = Run {
            children: 1,
            live_children: u32::from(row.resident > blocks),
            len: blocks,
            resident: row.resident.min(blocks),
            pins: 0,
            ends_prompt: false,
            tags: core::mem::replace(&mut row.tags, lower_tags),
            by_age: Links::NONE,
            waiting: Links::NONE,
            waits: Waits::Nowhere,
            ..*row
        };
        let tail = row.tail;
        let above = row.resident.saturating_sub(blocks);
        row.start += blocks;
        row.len -= blocks;
        row.resident = above;
        if above == 0 {
            row.tail = NONE;
        }
        let cell = row.cell as usize;
        let id = self.place(upper);
        self.runs[run as usize].parent = id;
        let end = match above {
            0 => tail,
            _ => end.unwrap_or_else(|| self.ancestor(tail, above)),
        };
        self.runs[id as usize].tail = end;
        self.claim(id, end);
        // Its blocks were counted with the other part. It stands behind it, as parents do.
        let behind = List::next(&mut self.runs, run, BY_AGE);
        self.cells[cell].by_age.insert(&mut self.runs, id, behind, BY_AGE);
        self.index(id);
        self.index(run);
        self.sort_out(run);
        self.sort_out(id);
        id
    }

    /// Joins the runs of the path down to `run`, all just used, that share their fate again: else a path that is left at many places would
    /// fall apart into single blocks.
    pub(super) fn join_path(&mut self, mut run: u32) {
        while self.runs[run as usize].parent != NONE {
            let parent = self.runs[run as usize].parent;
            if self.can_join(parent, run) {
                self.join(parent, run);
            } else {
                run = parent;
            }
        }
    }

    fn can_join(&self, parent: u32, run: u32) -> bool {
        let (above, below) = (&self.runs[parent as usize], &self.runs[run as usize]);
        let is_whole = above.resident == above.len || below.resident == 0;
        let alike = above.cell == below.cell && above.uses == below.uses && above.last == below.last;
        alike && is_whole && above.children == 1 && above.pins == 0 && above.tags.is_empty() == below.tags.is_empty()
    }

    /// Makes one run of a run and its only child, whose place it takes.
    fn join(&mut self, parent: u32, run: u32) {
        self.unindex(parent);
        self.unindex(run);
        let end = self.runs[parent as usize].tail;
        self.claim_from(run, end, self.runs[parent as usize].resident);
        self.wait(parent, Waits::Nowhere);
        self.leave_cell(parent);
        self.leave_cell(run);
        let above = &mut self.runs[parent as usize];
        let (start, len, resident, parent_of_both) = (above.start, above.len, above.resident, above.parent);
        let mut tags = core::mem::take(&mut above.tags);
        (above.len, above.resident) = (0, 0);
        self.free.push(parent);
        let below = &mut self.runs[run as usize];
        tags.append(&mut below.tags);
        if below.resident == 0 {
            below.tail = end;
        }
        (below.parent, below.start, below.tags) = (parent_of_both, start, tags);
        below.len += len;
        below.resident += resident;
        let cell = below.cell;
        self.enter_cell(run, cell as usize);
        self.index(run);
        self.sort_out(run);
    }

    /// The resident blocks of a run, which ends at `end`, are told that they are of that run.
    pub(super) fn claim(&mut self, run: u32, end: u32) {
        self.claim_from(run, end, self.runs[run as usize].resident);
    }

    fn claim_from(&mut self, run: u32, mut end: u32, blocks: u32) {
        for _ in 0..blocks {
            let row = &mut self.rows[end as usize];
            row.run = run;
            end = row.parent;
        }
    }

    pub(super) fn ancestor(&self, mut id: u32, levels: u32) -> u32 {
        for _ in 0..levels {
            id = self.rows[id as usize].parent;
        }
        id
    }

    pub(super) fn place(&mut self, run: Run) -> u32 {
        match self.free.pop() {
            Some(id) => {
                self.runs[id as usize] = run;
                id
            }
            None => {
                self.runs.push(run);
                self.runs.len() as u32 - 1
            }
        }
    }

    /// A new run at the end of `parent`, of which nothing is resident.
    pub(super) fn add(&mut self, parent: u32, start: u32, len: u32, tags: Vec<u32>, ends_prompt: bool) -> u32 {
        let id = self.place(Run {
            parent,
            children: 0,
            live_children: 0,
            start,
            len,
            resident: 0,
            tail: NONE,
            pins: 0,
            last: self.turn,
            uses: 0,
            ends_prompt,
            cell: 0,
            tags,
            by_age: Links::NONE,
            waiting: Links::NONE,
            waits: Waits::Nowhere,
        });
        self.enter_cell(id, cell(class(0, ends_prompt), 0));
        self.remembered += u64::from(len);
        self.index(id);
        if parent != NONE {
            self.runs[parent as usize].children += 1;
            self.sort_out(parent);
        }
        self.sort_out(id);
        id
    }

    pub(super) fn index(&mut self, run: u32) {
        let Run { parent, ref tags, .. } = self.runs[run as usize];
        if let Some(&tag) = tags.first() {
            let runs = &self.runs;
            self.index.insert_unique(hash(parent, tag), run, |&other| {
                let other = &runs[other as usize];
                hash(other.parent, other.tags.first().copied().unwrap_or_default())
            });
        }
    }

    pub(super) fn unindex(&mut self, run: u32) {
        let Run { parent, ref tags, .. } = self.runs[run as usize];
        if let Some(&tag) = tags.first()
            && let Ok(entry) = self.index.find_entry(hash(parent, tag), |&other| other == run)
        {
            entry.remove();
        }
    }

    pub(super) fn child(&self, parent: u32, tag: u32) -> Option<u32> {
        let is = |&run: &u32| {
            let run = &self.runs[run as usize];
            run.parent == parent && run.tags.first() == Some(&tag)
        };
        self.index.find(hash(parent, tag), is).copied()
    }

    pub(super) fn shorten(&mut self, run: u32, len: u32) {
        let row = &mut self.runs[run as usize];
        let gone = row.len - len;
        row.len = len;
        row.tags.truncate(len as usize);
        let cell = row.cell as usize;
        self.remembered -= u64::from(gone);
        self.account(cell);
        self.cells[cell].blocks -= u64::from(gone);
    }

    pub(super) fn drop_run(&mut self, run: u32) {
        self.wait(run, Waits::Nowhere);
        self.leave_cell(run);
        self.unindex(run);
        let row = &mut self.runs[run as usize];
        self.remembered -= u64::from(row.len);
        row.len = 0;
        row.tags = Vec::new();
        let parent = row.parent;
        self.free.push(run);
        if parent != NONE {
            self.runs[parent as usize].children -= 1;
            self.sort_out(parent);
        }
    }
}

/// Tags are parts of digests and need no mixing, parents are small numbers.
fn hash(parent: u32, tag: u32) -> u64 {
    (u64::from(tag) << 32 | u64::from(tag)) ^ u64::from(parent).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
