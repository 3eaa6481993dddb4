//! A list of numbers, each in it at most once, from which any goes in constant time.

/// No neighbour: an end of the list.
const END: u32 = u32::MAX;
/// In place of both neighbours: not in the list.
const ABSENT: Node = Node { before: END - 1, after: END - 1 };

#[derive(Clone, Copy, PartialEq, Eq)]
struct Node {
    before: u32,
    after: u32,
}

/// Numbers below a bound, in order of arrival. Memory: 8 bytes per number below the bound.
pub(super) struct List {
    nodes: Vec<Node>,
    first: u32,
    last: u32,
    len: usize,
}

impl List {
    /// An empty list for numbers below `bound`.
    pub(super) fn new(bound: u32) -> Self {
        Self { nodes: vec![ABSENT; bound as usize], first: END, last: END, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn first(&self) -> Option<u32> {
        (self.first != END).then_some(self.first)
    }

    /// Adds a number that is not in the list, as the last.
    pub(super) fn push_back(&mut self, number: u32) {
        self.nodes[number as usize] = Node { before: self.last, after: END };
        match self.last {
            END => self.first = number,
            last => self.nodes[last as usize].after = number,
        }
        self.last = number;
        self.len += 1;
    }

    /// Takes a number out. Returns whether it was in.
    pub(super) fn remove(&mut self, number: u32) -> bool {
        let node = std::mem::replace(&mut self.nodes[number as usize], ABSENT);
        if node == ABSENT {
            return false;
        }
        match node.before {
            END => self.first = node.after,
            before => self.nodes[before as usize].after = node.after,
        }
        match node.after {
            END => self.last = node.before,
            after => self.nodes[after as usize].before = node.before,
        }
        self.len -= 1;
        true
    }

    /// Takes the first out.
    pub(super) fn pop_front(&mut self) -> Option<u32> {
        let first = self.first()?;
        self.remove(first);
        Some(first)
    }
}
