//! The few operations that the store needs of a file system, as traits, so that a simulated disk can take its place.

mod directory;
mod exact;
mod lock;

use std::os::fd::BorrowedFd;
use std::{fmt, io};

pub use directory::Directory;
pub(crate) use exact::{Progress, read_exact, read_up_to, whole_read, whole_write, write_all};
pub use lock::Owner;

/// How payloads are read and written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IoMode {
    /// Past the operating system's page cache.
    Direct,
    /// Through the page cache: a read may come from memory and say nothing about the device.
    Buffered {
        /// Why not direct.
        why: String,
    },
}

impl fmt::Display for IoMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Direct => f.write_str("direct"),
            Self::Buffered { why } => write!(f, "buffered ({why}; reads may come from memory)"),
        }
    }
}

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading an existing file.
    Read,
    /// Reading and writing an existing file.
    Write,
    /// Reading and writing; the file is made if it is not there.
    Create,
}

/// What a file holds, which decides how its bytes travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Superblock, catalogue, tables: small accesses at any offset, through the page cache.
    Metadata,
    /// Chunks: memory, offset and length of every access are multiples of 4 KiB.
    Payload,
}

/// The size of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSize {
    /// Where it ends, in bytes.
    pub len_bytes: u64,
    /// What it takes of the device, in bytes.
    pub allocated_bytes: u64,
}

/// Why a lock was not given.
#[derive(Debug)]
pub enum LockRefusal {
    /// Somebody has it.
    Held {
        /// What the owner wrote about itself.
        owner: String,
    },
    /// It could not be asked for.
    Io(io::Error),
}

/// Keeps a lock while it lives.
pub trait LockGuard: Send + Sync {}

/// A flat directory of files.
pub trait Storage: Send + Sync {
    /// The names of all files (and whatever else there is), in any order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens a file.
    fn open(&self, name: &str, access: Access, content: Content) -> io::Result<Box<dyn StorageFile>>;

    /// The size of a file, by name.
    fn size(&self, name: &str) -> io::Result<FileSize>;

    /// Bytes that files can still take on the file system.
    fn free_bytes(&self) -> io::Result<u64>;

    /// Removes a file. One that is missing already is success.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes creations and removals durable.
    fn sync_directory(&self) -> io::Result<()>;

    /// Takes the writer's lock, or says who has it.
    fn lock(&self) -> Result<Box<dyn LockGuard>, LockRefusal>;

    /// Finds out how payload can travel; called once, under the lock, before the first payload file is opened.
    fn probe(&self) -> IoMode;
}

/// An open file. All methods may be called from several threads at once.
pub trait StorageFile: Send + Sync {
    /// Where the file ends, in bytes.
    fn len_bytes(&self) -> io::Result<u64>;

    /// Reads at most `bytes.len()` bytes at `offset` and says how many; 0 at the file's end.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes at most `bytes.len()` bytes at `offset` and says how many.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Makes the file at least `len_bytes` long, with space reserved for all of it. On an error the file is as before.
    fn allocate(&self, len_bytes: u64) -> io::Result<()>;

    /// Cuts the file.
    fn truncate(&self, len_bytes: u64) -> io::Result<()>;

    /// Gives the space of a range back: it reads as zeros from then on, and the file is as long as before.
    /// [`io::ErrorKind::Unsupported`] where that cannot be done.
    fn punch(&self, _offset: u64, _len_bytes: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Makes what was written durable, as far as it is needed to read it back.
    fn sync(&self) -> io::Result<()>;

    /// The file as the operating system knows it, if it is one: what io_uring needs. Without it, transfers go through
    /// [`read_at`](Self::read_at) and [`write_at`](Self::write_at).
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
