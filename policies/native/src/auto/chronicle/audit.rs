//! Everything that a chronicle keeps twice is the same in both places.

use alloc::{collections::BTreeMap, vec, vec::Vec};

use super::{CELLS, Chronicle, NONE, Run, Waits};

impl Chronicle {
    /// Panics where it is not, or if other blocks are resident than those `told`: ids with their depths.
    pub fn audit(&self, told: &BTreeMap<u32, u32>) {
        for (&id, &depth) in told {
            let run = self.run_of(id).expect("resident");
            let Run { start, resident, tail, .. } = self.runs[run as usize];
            assert_eq!(self.rows[id as usize].depth, depth);
            assert!(depth > start && depth <= start + resident, "in its run");
            assert_eq!(depth == start + resident, tail == id, "the last is the tail");
        }
        let resident: u64 = self.runs.iter().map(|run| u64::from(run.resident)).sum();
        assert_eq!(resident, told.len() as u64, "resident blocks");
        let mut blocks = vec![0; CELLS];
        let (mut remembered, mut children, mut live) = (0, BTreeMap::new(), BTreeMap::new());
        for run in self.runs.iter().filter(|run| run.len > 0) {
            blocks[run.cell as usize] += u64::from(run.len);
            remembered += u64::from(run.len - run.resident);
            *children.entry(run.parent).or_insert(0) += 1;
            *live.entry(run.parent).or_insert(0) += u32::from(run.resident > 0);
            assert!(run.tags.is_empty() || run.tags.len() == run.len as usize);
            assert_eq!(run.resident > 0, run.tail != NONE);
            if run.parent != NONE {
                let above = &self.runs[run.parent as usize];
                assert_eq!(above.start + above.len, run.start, "a child hangs at its parent's end");
                assert!(run.resident == 0 || above.resident == above.len, "what is resident is closed under prefixes");
                assert!(run.last <= above.last, "a parent is never older than its child");
            }
        }
        assert_eq!(blocks, self.cells.iter().map(|cell| cell.blocks).collect::<Vec<_>>());
        assert_eq!(remembered, self.remembered);
        for (id, run) in self.runs.iter().enumerate().filter(|(_, run)| run.len > 0) {
            assert_eq!(run.children, children.get(&(id as u32)).copied().unwrap_or(0));
            assert_eq!(run.live_children, live.get(&(id as u32)).copied().unwrap_or(0));
            let waits = match (run.resident, run.children, run.live_children + run.pins) {
                (0, 0, _) => Waits::ToBeForgotten,
                (1.., _, 0) => Waits::ToGo,
                _ => Waits::Nowhere,
            };
            assert_eq!(run.waits, waits);
        }
        for cell in 0..CELLS {
            let rank = self.hazards.rank(cell);
            assert_eq!(self.waiting.iter().any(|bit| bit == rank), self.cells[cell].to_go.first != NONE);
            assert_eq!(self.busy.iter().any(|bit| bit == cell), self.cells[cell].by_age.first != NONE);
        }
    }
}
