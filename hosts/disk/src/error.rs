//! What can go wrong, in kinds that a caller can act on.

use std::io;

/// Why the store could not do something that changes it, or could not be opened.
///
/// [`Full`](Self::Full) and [`Io`](Self::Io) leave the slot free and the store in order: the caller turns admission off
/// for a while and tries again. Reads are never affected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A class that the format cannot hold.
    #[error("group {name:?} cannot be stored: {why}; correct the group's layout or name")]
    InvalidClass {
        /// The group's name.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// A namespace whose description is too long for the catalogue.
    #[error("the namespace of model {model:?} cannot be recorded: {why}")]
    InvalidNamespace {
        /// The model's name, shortened.
        model: String,
        /// What is wrong with it.
        why: String,
    },
    /// All 65,535 namespace numbers are taken.
    #[error("the store holds 65,535 namespaces and takes no more; use another directory for new ones")]
    TooManyNamespaces,
    /// A key names a namespace that this store has not handed out.
    #[error("namespace {namespace} is not in this store's catalogue; ask the store for it first")]
    UnknownNamespace {
        /// The index that was used.
        namespace: u16,
    },
    /// A group or slot outside what the store was opened with.
    #[error("group {group} has no slot {slot} in this store")]
    NoSuchSlot {
        /// The group that was named.
        group: u8,
        /// The slot that was named.
        slot: u32,
    },
    /// A buffer that does not hold a whole payload.
    #[error("a record of group {group} is {expected_bytes} bytes, but the buffer holds {got_bytes}")]
    WrongLength {
        /// The group.
        group: u8,
        /// Payload bytes of the group.
        expected_bytes: u64,
        /// Bytes in the buffer.
        got_bytes: u64,
    },
    /// The directory holds files, and they are not a store. Nothing was touched.
    #[error(
        "the directory holds files that are no Reprise store ({example:?}, for one) and was left untouched; \
         name an empty or new directory"
    )]
    Foreign {
        /// One of the files found.
        example: String,
    },
    /// Nothing that could be read as a store.
    #[error("there is no Reprise store here: {why}")]
    NotAStore {
        /// What is missing.
        why: String,
    },
    /// Files of a store, but no header that says so: both copies of the superblock, the catalogue's and the tables'
    /// headers are damaged or missing.
    #[error(
        "this looks like a Reprise store, but its superblock and every other header are damaged; \
         delete the directory to start afresh (it is a cache: nothing but time is lost)"
    )]
    SuperblockLost,
    /// A store that only an open by its cache can settle.
    #[error("the store cannot be worked on as it is: {why}; let the cache open it once, which mends that")]
    Unsettled {
        /// What is in the way.
        why: String,
    },
    /// A file was written by a later version of this software.
    #[error(
        "{file} has format version {found}, and this build reads versions up to {supported}; \
         use a newer build, or another directory"
    )]
    NewerFormat {
        /// The file.
        file: String,
        /// Its version.
        found: u32,
        /// The highest version that this build reads.
        supported: u32,
    },
    /// A file needs a feature that this build does not know.
    #[error("{file} needs features {bits:#x} that this build does not know; use a newer build, or another directory")]
    UnknownFeatures {
        /// The file.
        file: String,
        /// The unknown bits.
        bits: u64,
    },
    /// Another process has the store open.
    #[error("the store is in use by {owner}; one process at a time can open it for writing")]
    Locked {
        /// What the owner wrote about itself: process id, host, since when.
        owner: String,
    },
    /// No space, or a disk quota is reached. It can come back by itself.
    #[error("no space left while {doing}: {source}; free space on the file system or lower the quotas")]
    Full {
        /// What was being done.
        doing: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// The operating system reports an error.
    #[error("input/output error while {doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// The deadline passed before the record was written. The slot is free, or holds the record if it was written at that
    /// very moment.
    #[error(
        "the put of slot {slot} of group {group} is not done by its deadline; check the device and try again later"
    )]
    TimedOut {
        /// The group.
        group: u8,
        /// The slot.
        slot: u32,
    },
    /// The batch was cancelled before the put began.
    #[error("the put of slot {slot} of group {group} was cancelled before it began")]
    Cancelled {
        /// The group.
        group: u8,
        /// The slot.
        slot: u32,
    },
    /// An earlier put of the slot is not over: its bytes may still arrive.
    #[error("slot {slot} of group {group} is still being written by an earlier put; put into another slot")]
    SlotBusy {
        /// The group.
        group: u8,
        /// The slot.
        slot: u32,
    },
    /// An earlier sync failed, so nobody knows what reached the disk. Reads go on.
    #[error(
        "the store takes no more writes, because a sync failed earlier and what reached the disk is unknown; \
         reads go on; check the device and open the store again"
    )]
    Poisoned,
}

impl StoreError {
    /// Sorts an operating system's error into [`Full`](Self::Full) or [`Io`](Self::Io).
    pub(crate) fn io(doing: impl Into<String>, source: io::Error) -> Self {
        let doing = doing.into();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { doing, source },
            _ => Self::Io { doing, source },
        }
    }
}

/// Why a read brought no bytes. It never means that wrong bytes were delivered: on a miss the buffer is empty.
#[derive(Debug, thiserror::Error)]
pub enum Miss {
    /// The slot does not hold this record.
    #[error("the slot does not hold this record")]
    Absent,
    /// The slot should hold this record, but its bytes are not those that were put.
    #[error("the record is damaged ({})", damaged_part(.section))]
    Corrupt {
        /// The first damaged section, or `None` if it is the trailer or the record is not there in full.
        section: Option<usize>,
    },
    /// The operating system reports an error.
    #[error("the record cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The deadline passed before the record was read and checked.
    #[error("the record was not read by its deadline")]
    TimedOut,
    /// The batch was cancelled before the read began.
    #[error("the read was cancelled before it began")]
    Cancelled,
}

fn damaged_part(section: &Option<usize>) -> String {
    section.map_or_else(|| "trailer".to_owned(), |section| format!("section {section}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_full_is_not_taken_for_one_that_is_broken() {
        let kind = |code| StoreError::io("writing", io::Error::from_raw_os_error(code));
        // ENOSPC and EDQUOT come back by themselves, EIO does not.
        for code in [28, 122] {
            assert!(matches!(kind(code), StoreError::Full { .. }), "{code}");
        }
        assert!(matches!(kind(5), StoreError::Io { .. }));
    }
}
