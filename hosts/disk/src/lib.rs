//! The persistent store of Reprise: slots in preallocated chunks, checked by section.
//!
//! A [`Store`] is a directory of few large files. Every group of records that have the same length (a [`GroupClass`])
//! has a numbered row of slots; the caller decides which record lies in which slot, and the store keeps it there safely:
//! a [`get`](Store::get) returns exactly the bytes that were [`put`](Store::put) under the same key, or a [`Miss`].
//! [`get_batch`](Store::get_batch) and [`put_batch`](Store::put_batch) do the same for many records at once, through io_uring
//! where there is one. The format, and why a crash at any point keeps this promise, is drawn in `FORMAT.md` beside this crate.
//!
//! ```
//! use reprise_core::Digest;
//! use reprise_disk::{Buffer, GroupClass, Key, NamespaceRecord, Options, Store};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let history = GroupClass {
//!     group: 0,
//!     name: "history".into(),
//!     fingerprint: Digest([7; 32]),
//!     payload_bytes: 10_000,
//!     sections: vec![4096, 10_000],
//!     slots: 100,
//! };
//! let (store, report) = Store::open(dir.path(), &[history], &Options::default())?;
//! assert!(report.created);
//!
//! let namespace = store.namespace(&NamespaceRecord {
//!     check: 0x1234,
//!     model: "deepseek-v4-pro".into(),
//!     revision: "2026-01".into(),
//!     salt_hash: Digest([0; 32]),
//!     adapter: String::new(),
//!     rank: 0,
//!     ranks: 1,
//!     block_tokens: 128,
//!     extensions: String::new(),
//! })?;
//! let key = Key { namespace, digest: Digest([1; 32]), position: 128 };
//! let mut buffer = Buffer::zeroed(10_000);
//! buffer.bytes_mut().fill(42);
//! store.put(0, 17, &key, Digest([0; 32]), 1, &mut buffer)?;
//!
//! store.get(0, 17, &key, &mut buffer)?;
//! assert!(buffer.bytes().iter().all(|byte| *byte == 42));
//! # Ok(())
//! # }
//! ```

mod batch;
mod buffer;
mod chunks;
mod class;
mod desk;
mod engine;
mod error;
mod format;
mod loan;
mod locks;
mod payload;
mod record;
mod report;
pub mod storage;
mod store;
mod sync;
pub mod tools;

pub use batch::{Batch, Got, PutOutcome};
pub use buffer::Buffer;
pub use class::{GroupClass, MAX_NAME_BYTES};
pub use engine::{EngineChoice, IoEngine};
pub use error::{Miss, StoreError};
pub use format::table::MAX_SECTIONS;
pub use loan::Loan;
pub use record::{Get, Key, NamespaceRecord, Put, Recovered};
pub use report::{ClassReport, ClassUsage, Dropped, OpenReport, RemovedLayout, Usage};
pub use storage::IoMode;
pub use store::{Durability, IoOptions, Options, Store};
pub use tools::{ClassVerdict, ReadOnly, VerifyReport};
