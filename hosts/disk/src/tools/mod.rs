//! What an operator does with a store besides serving from it: look, check, take out, carry elsewhere.
//!
//! Looking takes no lock, so the store may be in use ([`ReadOnly`]); taking out and bringing in need it ([`Maintenance`],
//! [`import`]). All of it knows what the numbers of groups mean, see `FORMAT.md`: group 0 holds blocks, the others what lies at
//! the end of a block.

mod archive;
mod conditions;
mod filter;
mod inventory;
mod maintenance;
mod paths;
mod reader;
mod removal;
mod slots;
mod verify;

pub use crate::storage::Owner;
pub use archive::{ArchiveError, Exported, ExportedGroup, Imported, ImportedGroup, export, import, import_in};
pub use conditions::Conditions;
pub use filter::Filter;
pub use inventory::{Found, Inventory, Place, Shelf};
pub use maintenance::{Maintenance, Removed};
pub use reader::{Format, ReadOnly};
pub use removal::{Removal, RemovalCount};
pub use verify::{ClassVerdict, Fault, Finding, VerifyReport};

/// The group of blocks: each follows on its parent, and what no path of blocks leads to is never found.
const BLOCKS: u8 = 0;
