//! What the tables of a store say it holds.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::class::GroupClass;
use crate::error::StoreError;
use crate::record::{NamespaceRecord, Recovered};
use crate::store::Store;

use super::reader::ReadOnly;

/// A slot of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The group.
    pub group: u8,
    /// The slot.
    pub slot: u32,
}

/// What a slot that is not free holds, by its table entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A record; whether its payload is good shows when it is read.
    Record(Recovered),
    /// Nothing that can be read: the entry is damaged, its namespace is not in the catalogue, or its chunk is not there. The next
    /// open drops it.
    Damaged {
        /// The slot.
        slot: u32,
    },
}

/// All that the tables of a store hold, at one moment.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// The namespaces, by index.
    pub namespaces: Vec<NamespaceRecord>,
    /// The groups, by number.
    pub shelves: Vec<Shelf>,
}

/// What one group holds.
#[derive(Clone, Debug)]
pub struct Shelf {
    /// The group.
    pub class: GroupClass,
    /// Its records, by slot.
    pub records: Vec<Recovered>,
    /// Slots with entries that are damaged, ascending.
    pub damaged: Vec<u32>,
}

impl ReadOnly {
    /// Reads all tables; about 100 bytes of memory a record.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unsettled`] if it cannot be told what a table holds or which of two tables counts, and [`StoreError::Io`].
    pub fn inventory(&self) -> Result<Inventory, StoreError> {
        self.check_settled()?;
        let mut inventory = Inventory { namespaces: self.namespaces().to_vec(), shelves: Vec::new() };
        for layout in self.layouts() {
            let mut shelf = Shelf { class: layout.class.clone(), records: Vec::new(), damaged: Vec::new() };
            let _ = self.visit_class(&layout, &mut |found| {
                match found {
                    Found::Record(record) => shelf.records.push(record),
                    Found::Damaged { slot } => shelf.damaged.push(slot),
                }
                ControlFlow::Continue(())
            })?;
            inventory.shelves.push(shelf);
        }
        Ok(inventory)
    }

    fn check_settled(&self) -> Result<(), StoreError> {
        if let Some((stem, _)) = self.survey.tables.iter().find(|(_, header)| header.is_none()) {
            return Err(StoreError::Unsettled { why: format!("the header of the table of {stem} is damaged") });
        }
        let mut groups = BTreeSet::new();
        match self.classes().find(|class| !groups.insert(class.group)) {
            None => Ok(()),
            Some(class) => Err(StoreError::Unsettled { why: format!("group {} has two layouts", class.name) }),
        }
    }
}

impl Inventory {
    /// What an open found; the store's own lists of records are empty then.
    pub(super) fn of_open(store: &Store, classes: &[GroupClass]) -> Self {
        let shelf = |class: &GroupClass| Shelf {
            class: class.clone(),
            records: store.take_records(class.group),
            damaged: Vec::new(),
        };
        let namespaces = store.namespaces().into_iter().map(|(_, namespace)| namespace).collect();
        let mut shelves: Vec<Shelf> = classes.iter().map(shelf).collect();
        shelves.sort_by_key(|shelf| shelf.class.group);
        Self { namespaces, shelves }
    }

    /// What the group holds.
    pub fn shelf(&self, group: u8) -> Option<&Shelf> {
        self.shelves.iter().find(|shelf| shelf.class.group == group)
    }

    /// The depth of a record in blocks, from 1; 0 if its namespace or position makes no sense.
    pub(super) fn depth(&self, record: &Recovered) -> u32 {
        let namespace = self.namespaces.get(usize::from(record.namespace));
        namespace.map_or(0, |namespace| depth(namespace, record.position))
    }
}

/// The depth of what lies at a position, in blocks of the namespace; 0 if there is none.
pub(super) fn depth(namespace: &NamespaceRecord, position: u64) -> u32 {
    let blocks = position.checked_div(u64::from(namespace.block_tokens)).unwrap_or(0);
    u32::try_from(blocks).unwrap_or(0)
}
