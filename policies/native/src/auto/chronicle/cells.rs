//! Where runs wait: by class and age, and in the order in which they go or are forgotten.

use super::*;

impl Chronicle {
    pub(super) fn leave_cell(&mut self, run: u32) {
        let Run { cell: index, len, waits, .. } = self.runs[run as usize];
        self.account(index as usize);
        let cell = &mut self.cells[index as usize];
        cell.blocks -= u64::from(len);
        cell.by_age.remove(&mut self.runs, run, BY_AGE);
        if cell.by_age.first == NONE {
            self.busy.set(index as usize, false);
        }
        if waits == Waits::ToGo {
            self.stop_waiting(run);
        }
    }

    pub(super) fn stop_waiting(&mut self, run: u32) {
        let index = self.runs[run as usize].cell as usize;
        let to_go = &mut self.cells[index].to_go;
        to_go.remove(&mut self.runs, run, WAITING);
        if to_go.first == NONE {
            self.waiting.set(self.hazards.rank(index), false);
        }
    }

    pub(super) fn enter_cell(&mut self, run: u32, to: usize) {
        self.runs[run as usize].cell = to as u16;
        let Run { len, waits, last, .. } = self.runs[run as usize];
        self.account(to);
        let cell = &mut self.cells[to];
        if cell.by_age.first == NONE {
            self.due[to] = last.saturating_add(last_age(to % BUCKETS));
        }
        cell.blocks += u64::from(len);
        cell.by_age.push(&mut self.runs, run, BY_AGE);
        self.busy.set(to, true);
        if waits == Waits::ToGo {
            cell.to_go.push(&mut self.runs, run, WAITING);
            self.waiting.set(self.hazards.rank(to), true);
        }
    }

    /// Puts a run into the list where it has to wait now.
    pub(super) fn sort_out(&mut self, run: u32) {
        let row = &self.runs[run as usize];
        let waits = match row.resident {
            0 if row.children == 0 => Waits::ToBeForgotten,
            0 => Waits::Nowhere,
            _ if row.live_children == 0 && row.pins == 0 => Waits::ToGo,
            _ => Waits::Nowhere,
        };
        if waits != row.waits {
            self.wait(run, waits);
        }
    }

    pub(super) fn wait(&mut self, run: u32, waits: Waits) {
        let cell = self.runs[run as usize].cell as usize;
        match core::mem::replace(&mut self.runs[run as usize].waits, waits) {
            Waits::Nowhere => {}
            Waits::ToGo => self.stop_waiting(run),
            Waits::ToBeForgotten => self.to_be_forgotten.remove(&mut self.runs, run, WAITING),
        }
        match waits {
            Waits::Nowhere => {}
            Waits::ToGo => {
                self.cells[cell].to_go.insert_by_last_use(&mut self.runs, run, WAITING);
                self.waiting.set(self.hazards.rank(cell), true);
            }
            Waits::ToBeForgotten => self.to_be_forgotten.push(&mut self.runs, run, WAITING),
        }
    }

    /// A run is used in this turn.
    pub(super) fn touch(&mut self, run: u32) {
        let Run { last, len, cell: before, .. } = self.runs[run as usize];
        if last == self.turn {
            return;
        }
        self.leave_cell(run);
        if self.learning {
            self.hazards.note_use(before as usize, u64::from(len));
        }
        let row = &mut self.runs[run as usize];
        row.last = self.turn;
        row.uses = MOST_USES.min(row.uses + 1);
        let class = class(row.uses, row.ends_prompt);
        self.enter_cell(run, cell(class, 0));
        if self.runs[run as usize].waits == Waits::ToBeForgotten {
            self.to_be_forgotten.remove(&mut self.runs, run, WAITING);
            self.to_be_forgotten.push(&mut self.runs, run, WAITING);
        }
    }

    /// A parent is never older than its child; at a hand-over nobody says so.
    pub(super) fn freshen(&mut self, mut run: u32) {
        while run != NONE && self.runs[run as usize].last != self.turn {
            self.leave_cell(run);
            let row = &mut self.runs[run as usize];
            row.last = self.turn;
            let class = row.cell as usize / BUCKETS;
            let parent = row.parent;
            self.enter_cell(run, class * BUCKETS);
            run = parent;
        }
    }
}
