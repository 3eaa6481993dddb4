//! What carries payload between buffers and files: io_uring, or plain system calls where it is refused.

mod blocking;
mod ring;
mod uring;

use std::sync::Arc;
use std::{fmt, io};

use crate::Buffer;
use crate::storage::{IoMode, StorageFile};
use blocking::Blocking;
use uring::Uring;

/// What carries out batches, as the caller wants it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// io_uring where the kernel grants it and payload travels past the page cache, else system calls. Through the page
    /// cache io_uring would copy on one thread what system calls copy on several.
    #[default]
    Automatic,
    /// io_uring where the kernel grants it, else system calls.
    Ring,
    /// System calls.
    Blocking,
}

/// What carries out batches, as it was found out at open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IoEngine {
    /// io_uring, on a thread of its own.
    Ring {
        /// Bytes of read buffers that the kernel has pinned once and for all.
        registered_bytes: u64,
        /// Why not all are.
        unregistered: Option<String>,
    },
    /// `pread` and `pwrite`, on a few threads.
    Blocking {
        /// How many operations run at once.
        threads: usize,
        /// Why not io_uring.
        why: String,
    },
}

impl fmt::Display for IoEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ring { registered_bytes, unregistered: None } => {
                write!(f, "io_uring with {} KiB of registered buffers", registered_bytes / 1024)
            }
            Self::Ring { unregistered: Some(why), .. } => write!(f, "io_uring with unregistered buffers ({why})"),
            Self::Blocking { threads, why } => write!(f, "pread and pwrite on {threads} threads ({why})"),
        }
    }
}

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the file into the buffer.
    Read,
    /// From the buffer into the file.
    Write,
}

/// Bytes to be carried, all or not at all.
pub struct Transfer {
    pub file: Arc<dyn StorageFile>,
    pub direction: Direction,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// The bytes, from its start; owned by the engine until the transfer is over.
    pub buffer: Buffer,
    pub len_bytes: usize,
    /// Called once, on any thread, when the transfer is over and nothing reads or writes the buffer any more.
    pub done: Box<dyn FnOnce(Buffer, io::Result<()>, Caller) + Send>,
}

/// Who tells that a transfer is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A thread that has nothing else to do at the moment: it may be given some work, but must not wait for the device.
    Idle,
    /// A thread that others wait for.
    Busy,
}

impl Transfer {
    /// Ends the transfer.
    fn end(self, result: io::Result<()>, caller: Caller) {
        (self.done)(self.buffer, result, caller);
    }
}

/// Carries out transfers.
pub trait Engine: Send + Sync {
    /// Carries out one transfer, now or behind the caller's back. No more may be under way than the engine was made for.
    fn start(&self, transfer: Transfer);

    /// Ends what the engine has of its own. Nothing may be under way.
    fn stop(&self);
}

/// What files there are.
pub struct Ground {
    /// How payload travels.
    pub mode: IoMode,
    /// Whether the files have descriptors.
    pub descriptors: bool,
}

/// Why the kernel refuses something, and what to do about it where that is known.
fn refusal(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::OutOfMemory => format!("{error}; raise RLIMIT_MEMLOCK"),
        io::ErrorKind::PermissionDenied => format!("{error}; see kernel.io_uring_disabled and filters of system calls"),
        _ => error.to_string(),
    }
}

/// The best engine there is for files that lie on `ground`, and what it is. It can have `transfers` under way, and knows the
/// `buffers` that reads go into.
pub fn choose(
    choice: EngineChoice,
    ground: &Ground,
    transfers: usize,
    threads: usize,
    buffers: &mut [Buffer],
) -> (Box<dyn Engine>, IoEngine) {
    let why = match choice {
        EngineChoice::Blocking => "asked for".to_owned(),
        EngineChoice::Automatic if ground.mode != IoMode::Direct => "no direct input/output".to_owned(),
        EngineChoice::Automatic | EngineChoice::Ring if !ground.descriptors => {
            "the storage has no file descriptors".to_owned()
        }
        EngineChoice::Automatic | EngineChoice::Ring => match Uring::new(transfers, buffers) {
            Ok((engine, report)) => return (Box::new(engine), report),
            Err(error) => format!("io_uring is refused: {}", refusal(&error)),
        },
    };
    (Box::new(Blocking), IoEngine::Blocking { threads, why })
}
