//! Records outside of a store: a stream that says for itself what it holds, drawn in `FORMAT.md`.

mod export;
mod frame;
mod import;
mod room;

use std::io;

use crate::error::StoreError;

pub use export::{Exported, ExportedGroup, export};
pub use import::{Imported, ImportedGroup, import, import_in};

/// Why an archive was not written, or not brought in at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The stream is something else.
    #[error("this is no archive of a Reprise store; `reprise store export` makes one")]
    NotAnArchive,
    /// What the archive says about itself is damaged: nothing of it can be used.
    #[error("the archive is damaged before its first record ({what}); make or copy it again")]
    Damaged {
        /// Where.
        what: String,
    },
    /// The records would not fit the store's.
    #[error(
        "the archive holds {group} records of another layout than the store in this place ({why}); import it into a store of the same \
         model and block size, or into an empty directory"
    )]
    Layout {
        /// The group.
        group: String,
        /// The difference.
        why: String,
    },
    /// A group that the store lacks has no room on the file system, not even for one record.
    #[error(
        "there is no room for the {group} records of the archive: one takes {slot_bytes} bytes, and {free_bytes} bytes are free; \
         free space on the file system, or import into a store on another one"
    )]
    NoRoom {
        /// The group.
        group: String,
        /// What a record takes, in bytes.
        slot_bytes: u64,
        /// What is free on the file system, in bytes.
        free_bytes: u64,
    },
    /// The archive cannot be read.
    #[error("reading the archive: {0}")]
    Read(#[source] io::Error),
    /// The archive cannot be written.
    #[error("writing the archive: {0}")]
    Write(#[source] io::Error),
    /// The store refuses, or was written by a later version; so may the archive be.
    #[error(transparent)]
    Store(#[from] StoreError),
}
