//! A first look at a directory, before anything in it is changed: is it a store, may this build open it, what is there?

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::class::GroupClass;
use crate::error::StoreError;
use crate::format::names::FileKind;
use crate::format::page::HeaderFault;
use crate::format::superblock::Superblock;
use crate::format::{PAGE_BYTES, catalogue, names, superblock, table};
use crate::storage::{Access, Content, Storage, read_up_to};

/// What a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Nothing yet, or the first steps of a store whose making was cut off.
    Empty,
    /// A store.
    Store {
        /// The superblock has to be written again, in part or in full.
        damaged_superblock: bool,
    },
}

/// Finds out what a directory with these files is, and refuses one that is no store or that this build cannot read.
pub fn identify(storage: &dyn Storage, names: &[String]) -> Result<Identity, StoreError> {
    let superblock = head(storage, names::SUPERBLOCK, superblock::LEN_BYTES);
    if let Ok(bytes) = &superblock {
        match superblock::decode(bytes) {
            Ok(found) => return Ok(Identity::Store { damaged_superblock: found == Superblock::Half }),
            Err(fault) => fault.refusal(names::SUPERBLOCK).map_or(Ok(()), Err)?,
        }
    }
    // The catalogue says whose directory it is just as well.
    let catalogue = head(storage, names::CATALOGUE, PAGE_BYTES);
    if let Ok(bytes) = &catalogue {
        match catalogue::check_header(bytes) {
            Ok(()) => return Ok(Identity::Store { damaged_superblock: true }),
            Err(fault) => fault.refusal(names::CATALOGUE).map_or(Ok(()), Err)?,
        }
    }
    // So does a table; one of a later version is refused when all tables are looked at.
    let is_table = |name: &&String| matches!(names::kind(name), FileKind::Table { .. });
    let knows = |name: &String| {
        let page = head(storage, name, PAGE_BYTES);
        page.is_ok_and(|page| table::decode_header(&page).err() != Some(HeaderFault::Garbled))
    };
    if names.iter().filter(is_table).any(knows) {
        return Ok(Identity::Store { damaged_superblock: true });
    }
    for (name, result) in [(names::SUPERBLOCK, &superblock), (names::CATALOGUE, &catalogue)] {
        if let Err(error) = result
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(StoreError::io(format!("reading {name}"), io::Error::new(error.kind(), error.to_string())));
        }
    }

    // A superblock that holds what no cut-off writing of one leaves behind is somebody else's file.
    let foreign_superblock = superblock.as_ref().is_ok_and(|bytes| !superblock::may_be_torn(bytes));
    let early = [names::SUPERBLOCK, names::LOCK, names::PROBE];
    let later = names.iter().find(|name| !early.contains(&name.as_str()));
    let slots = |name: &String| matches!(names::kind(name), FileKind::Table { .. } | FileKind::Chunk { .. });
    match later {
        None if foreign_superblock => Err(StoreError::Foreign { example: names::SUPERBLOCK.to_owned() }),
        None => Ok(Identity::Empty),
        Some(_) if names.iter().any(slots) || superblock.is_ok() && catalogue.is_ok() => {
            Err(StoreError::SuperblockLost)
        }
        Some(example) => Err(StoreError::Foreign { example: example.clone() }),
    }
}

/// The tables and chunks in a directory.
#[derive(Default)]
pub struct Survey {
    /// By stem: the class and the slots of a chunk, or `None` if the header is damaged.
    pub tables: BTreeMap<String, Option<(GroupClass, u32)>>,
    /// By stem: the numbers of the chunk files.
    pub chunks: BTreeMap<String, BTreeSet<u32>>,
}

impl Survey {
    /// Looks at all files of these names.
    ///
    /// # Errors
    ///
    /// If a table was written by a later version.
    pub fn new(storage: &dyn Storage, names: &[String]) -> Result<Self, StoreError> {
        let mut survey = Self::default();
        for name in names {
            match names::kind(name) {
                FileKind::Table { stem } => {
                    let page = head(storage, name, PAGE_BYTES).map_err(|_| HeaderFault::Garbled);
                    let header = match page.and_then(|page| table::decode_header(&page)) {
                        // The header of another table, written to the wrong place, says nothing about this one.
                        Ok(header) => Some(header).filter(|(class, _)| class.stem() == stem),
                        Err(fault) => fault.refusal(name).map_or(Ok(None), Err)?,
                    };
                    survey.tables.insert(stem, header);
                }
                FileKind::Chunk { stem, chunk } => {
                    survey.chunks.entry(stem).or_default().insert(chunk);
                }
                FileKind::Single | FileKind::Foreign => {}
            }
        }
        Ok(survey)
    }

    /// The header of a class's table, if it is sound and of the same layout.
    pub fn header(&self, class: &GroupClass) -> Option<&(GroupClass, u32)> {
        let header = self.tables.get(&class.stem())?.as_ref();
        header.filter(|(found, _)| found.same_layout(class))
    }

    /// The stems of files that none of these classes can use.
    pub fn old_stems(&self, classes: &[GroupClass]) -> BTreeSet<String> {
        let is_old = |stem: &&String| match classes.iter().find(|class| class.stem() == **stem) {
            // A damaged header is no reason: every entry says for itself what layout it belongs to.
            Some(class) => matches!(self.tables.get(*stem), Some(Some((found, _))) if !found.same_layout(class)),
            None => true,
        };
        self.tables.keys().chain(self.chunks.keys()).filter(is_old).cloned().collect()
    }
}

/// The first bytes of a file, at most `len_bytes`.
fn head(storage: &dyn Storage, name: &str, len_bytes: usize) -> io::Result<Vec<u8>> {
    let file = storage.open(name, Access::Read, Content::Metadata)?;
    let mut bytes = vec![0; len_bytes];
    let count = read_up_to(&*file, &mut bytes, 0)?;
    bytes.truncate(count);
    Ok(bytes)
}
