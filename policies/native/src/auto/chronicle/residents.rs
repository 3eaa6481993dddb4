//! Resident blocks: what a host tells of them, and which goes next.

use super::*;

impl Chronicle {
    /// The run of a resident block.
    pub(super) fn run_of(&self, id: u32) -> Option<u32> {
        let Row { depth, run, .. } = *self.rows.get(id as usize)?;
        (depth & GONE == 0).then_some(run)
    }

    pub(super) fn is_resident(&self, id: u32) -> bool {
        self.rows.get(id as usize).is_some_and(|row| row.depth & GONE == 0)
    }

    /// The run of a resident block, cut so that it ends there.
    pub(super) fn run_ending_at(&mut self, id: u32) -> Option<u32> {
        let run = self.run_of(id)?;
        let blocks = self.rows[id as usize].depth - self.runs[run as usize].start;
        Some(if blocks < self.runs[run as usize].len { self.split(run, blocks, Some(id)) } else { run })
    }

    /// A path was used, down to this block.
    pub fn use_path(&mut self, id: u32, now: u64) {
        self.advance(now);
        let Some(end) = self.run_ending_at(id) else { return };
        self.used = id;
        let mut run = end;
        while run != NONE {
            self.touch(run);
            run = self.runs[run as usize].parent;
        }
        self.join_path(end);
    }

    /// Takes the next block out that is to go.
    pub fn take_next(&mut self) -> Option<u32> {
        let run = self.cells[self.hazards.cell_at(self.waiting.first()?)].to_go.first;
        let id = self.runs[run as usize].tail;
        self.remove_tail(run);
        Some(id)
    }

    pub(super) fn remove_tail(&mut self, run: u32) {
        let row = &mut self.runs[run as usize];
        let id = row.tail;
        row.resident -= 1;
        row.tail = if row.resident == 0 { NONE } else { self.rows[id as usize].parent };
        let (resident, parent) = (row.resident, row.parent);
        self.rows[id as usize].depth |= GONE;
        self.remembered += 1;
        if resident == 0 {
            self.sort_out(run);
            if parent != NONE {
                self.runs[parent as usize].live_children -= 1;
                self.sort_out(parent);
            }
        }
        self.forget_nameless(run);
    }

    /// What nothing is known of but its age is of no use once it is gone: nobody can find it again.
    fn forget_nameless(&mut self, mut run: u32) {
        while run != NONE {
            let Run { parent, children, resident, ref tags, .. } = self.runs[run as usize];
            if children > 0 || !tags.is_empty() {
                break;
            }
            if resident > 0 {
                self.shorten(run, resident);
                break;
            }
            self.drop_run(run);
            run = parent;
        }
    }

    /// The host took a block out.
    pub fn remove(&mut self, id: u32) {
        // It can only be a leaf.
        if let Some(run) = self.run_of(id).filter(|&run| self.runs[run as usize].tail == id) {
            self.remove_tail(run);
        }
    }

    /// A block came in behind its parent.
    pub fn insert(&mut self, id: u32, parent: u32, depth: u32, now: u64) {
        self.advance(now);
        if self.rows.len() <= id as usize {
            self.rows.resize(id as usize + 1, NO_ROW);
        }
        self.remove(id);
        let above = if parent == NONE { NONE } else { self.run_of(parent).unwrap_or(NONE) };
        // What is told of a parent that is not there, or of another depth than it has, is not in this tree.
        let expected = match above {
            NONE => u32::from(parent == NONE),
            _ => self.rows[parent as usize].depth + 1,
        };
        if depth != expected || depth == 0 || self.is_resident(id) {
            return;
        }
        let run = self.place_for(parent, above, depth);
        self.settle_in(id, parent, run);
    }

    /// A block that was taken out stays after all.
    pub fn put_back(&mut self, id: u32) {
        let Some(&Row { parent, depth, run }) = self.rows.get(id as usize) else { return };
        let depth = depth & !GONE;
        if depth == 0 || self.is_resident(id) {
            return;
        }
        let above = if parent == NONE { NONE } else { self.run_of(parent).unwrap_or(NONE) };
        // Its run may have been cut or forgotten meanwhile.
        if self.fits(run, parent, above, depth) {
            self.settle_in(id, parent, run);
        } else {
            self.insert(id, parent, depth, 0);
        }
    }

    /// A block is resident from now on, as the next of `run`.
    pub(super) fn settle_in(&mut self, id: u32, parent: u32, run: u32) {
        let row = &mut self.runs[run as usize];
        row.resident += 1;
        row.tail = id;
        let (above, is_first) = (row.parent, row.resident == 1);
        self.rows[id as usize] = Row { parent, depth: row.start + row.resident, run };
        self.remembered -= 1;
        if is_first && above != NONE {
            self.runs[above as usize].live_children += 1;
            self.sort_out(above);
        }
        self.sort_out(run);
    }

    /// Whether a block at this depth behind `parent`, a block of `above`, can be the next of `run` to come in.
    pub(super) fn fits(&self, run: u32, parent: u32, above: u32, depth: u32) -> bool {
        let at = &self.runs[run as usize];
        let next = at.resident < at.len && at.start + at.resident + 1 == depth;
        next && if at.resident == 0 { at.parent == above } else { at.tail == parent }
    }

    /// The run whose first block that is not resident comes in at this depth behind `parent`, which ends the resident part of `above`.
    pub(super) fn place_for(&mut self, parent: u32, above: u32, depth: u32) -> u32 {
        if let Some(&run) = self.path.iter().rev().find(|&&run| self.runs[run as usize].start < depth)
            && self.fits(run, parent, above, depth)
        {
            return run;
        }
        if above == NONE {
            return self.add(NONE, 0, 1, Vec::new(), false);
        }
        let row = &self.runs[above as usize];
        let (start, blocks) = (row.start, depth - 1 - row.start);
        // A chain that is told block by block is one run, as far as it is of one age.
        if row.len == blocks && row.children == 0 && row.tags.is_empty() && row.last == self.turn && row.pins == 0 {
            let cell = row.cell as usize;
            self.runs[above as usize].len += 1;
            self.account(cell);
            self.cells[cell].blocks += 1;
            self.remembered += 1;
            return above;
        }
        let above = if blocks < row.len { self.split(above, blocks, Some(parent)) } else { above };
        self.freshen(above);
        self.add(above, start + blocks, 1, Vec::new(), false)
    }

    /// A block must stay, and with it all above it.
    pub fn pin(&mut self, id: u32) {
        if let Some(run) = self.run_ending_at(id) {
            let row = &mut self.runs[run as usize];
            row.pins = row.pins.saturating_add(1);
            self.sort_out(run);
        }
    }

    /// Takes one pin back.
    pub fn unpin(&mut self, id: u32) {
        if let Some(run) = self.run_of(id) {
            let row = &mut self.runs[run as usize];
            row.pins = row.pins.saturating_sub(1);
            self.sort_out(run);
        }
    }
}
