//! A real directory whose payload can be made to get stuck, seen from the system calls or from the kernel.

use std::collections::BTreeSet;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, OnceLock};

use reprise_disk::storage::{
    Access, Content, Directory, FileSize, IoMode, LockGuard, LockRefusal, Storage, StorageFile,
};
use reprise_disk::{EngineChoice, IoEngine, IoOptions, Options, Store};

use crate::fixture::{classes, options};

/// Which engine the device is for, and so where it gets stuck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// `read_at` and `write_at` do not return.
    SystemCalls,
    /// The descriptor is that of a pipe into which nobody writes, so the kernel does not end a read.
    Ring,
}

impl Way {
    /// All that can be gone here: io_uring may be refused.
    pub fn all() -> Vec<Self> {
        let ring = engines().contains(&EngineChoice::Ring).then_some(Self::Ring);
        ring.into_iter().chain([Self::SystemCalls]).collect()
    }

    fn engine(self) -> EngineChoice {
        match self {
            Self::SystemCalls => EngineChoice::Blocking,
            Self::Ring => EngineChoice::Ring,
        }
    }
}

/// The engines there are here.
pub fn engines() -> Vec<EngineChoice> {
    let dir = tempfile::tempdir().unwrap();
    let io = IoOptions { engine: EngineChoice::Ring, ..IoOptions::default() };
    let (store, _) = Store::open(dir.path(), &classes(), &Options { io, ..options() }).unwrap();
    match store.engine() {
        IoEngine::Ring { .. } => vec![EngineChoice::Ring, EngineChoice::Blocking],
        IoEngine::Blocking { .. } => vec![EngineChoice::Blocking],
    }
}

#[test]
fn io_uring_is_not_left_out_where_the_kernel_has_it() {
    let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    if disabled.trim() == "0" && status.lines().any(|line| line.split_whitespace().eq(["Seccomp:", "0"])) {
        assert!(engines().contains(&EngineChoice::Ring));
    }
}

/// What the test holds of the device.
#[derive(Default)]
pub struct Valve {
    state: Mutex<State>,
    changed: Condvar,
    pipe: OnceLock<(PipeReader, Mutex<Option<PipeWriter>>)>,
}

#[derive(Default)]
struct State {
    stuck: bool,
    /// Reads and writes that are stuck now; in the kernel, descriptors handed out while it was stuck.
    waiting: usize,
    /// How many reads of payload have begun.
    reads: usize,
    /// A read or write does at most so many bytes.
    most_bytes: Option<usize>,
    /// Where the memory of reads begins.
    buffers: BTreeSet<usize>,
}

impl Valve {
    /// From now on, payload does not come and does not go.
    pub fn close(&self) {
        self.state.lock().unwrap().stuck = true;
    }

    /// Lets go of what is stuck. Reads stuck in the kernel find the end of the file.
    pub fn open(&self) {
        self.state.lock().unwrap().stuck = false;
        self.changed.notify_all();
        if let Some((_, writer)) = self.pipe.get() {
            writer.lock().unwrap().take();
        }
    }

    /// Waits until so many operations are stuck.
    pub fn wait_for_stuck(&self, count: usize) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |state| state.waiting < count).unwrap());
    }

    /// Reads and writes do at most so many bytes at once.
    pub fn cut_short(&self, most_bytes: usize) {
        self.state.lock().unwrap().most_bytes = Some(most_bytes);
    }

    /// How many reads of payload have begun.
    pub fn reads(&self) -> usize {
        self.state.lock().unwrap().reads
    }

    /// How many different buffers were read into.
    pub fn buffers(&self) -> usize {
        self.state.lock().unwrap().buffers.len()
    }

    /// Waits while the device is stuck, and says how many of `len` bytes to do.
    fn pass(&self, read_into: Option<usize>, len: usize) -> usize {
        let mut state = self.state.lock().unwrap();
        state.reads += usize::from(read_into.is_some());
        state.buffers.extend(read_into);
        state.waiting += 1;
        self.changed.notify_all();
        let mut state = self.changed.wait_while(state, |state| state.stuck).unwrap();
        state.waiting -= 1;
        state.most_bytes.map_or(len, |most| most.min(len))
    }

    /// The end of a pipe to wait at, if the device is stuck.
    fn dead_end(&self) -> Option<BorrowedFd<'_>> {
        let mut state = self.state.lock().unwrap();
        if !state.stuck {
            return None;
        }
        state.waiting += 1;
        self.changed.notify_all();
        let (reader, _) = self.pipe.get_or_init(|| {
            let (reader, writer) = io::pipe().unwrap();
            (reader, Mutex::new(Some(writer)))
        });
        Some(reader.as_fd())
    }
}

struct Device {
    directory: Directory,
    valve: Arc<Valve>,
    way: Way,
}

/// A store of the fixture's classes on such a device; the options' `io` is given.
pub fn open(dir: &Path, way: Way, io: IoOptions) -> (Store, Arc<Valve>) {
    let valve = Arc::<Valve>::default();
    let directory = Directory::create(dir, true).unwrap();
    let device = Device { directory, valve: Arc::clone(&valve), way };
    let options = Options { io: IoOptions { engine: way.engine(), ..io }, ..options() };
    let (store, report) = Store::open_in(Arc::new(device), &classes(), &options).unwrap();
    assert_eq!(matches!(report.engine, IoEngine::Ring { .. }), way == Way::Ring, "{report}");
    (store, valve)
}

impl Storage for Device {
    fn list(&self) -> io::Result<Vec<String>> {
        self.directory.list()
    }

    fn open(&self, name: &str, access: Access, content: Content) -> io::Result<Box<dyn StorageFile>> {
        let file = self.directory.open(name, access, content)?;
        let payload = content == Content::Payload;
        Ok(Box::new(DeviceFile { file, valve: Arc::clone(&self.valve), payload, way: self.way }))
    }

    fn size(&self, name: &str) -> io::Result<FileSize> {
        self.directory.size(name)
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.directory.free_bytes()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.directory.remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.directory.sync_directory()
    }

    fn lock(&self) -> Result<Box<dyn LockGuard>, LockRefusal> {
        self.directory.lock()
    }

    fn probe(&self) -> IoMode {
        self.directory.probe()
    }
}

struct DeviceFile {
    file: Box<dyn StorageFile>,
    valve: Arc<Valve>,
    payload: bool,
    way: Way,
}

impl StorageFile for DeviceFile {
    fn len_bytes(&self) -> io::Result<u64> {
        self.file.len_bytes()
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        if !self.payload {
            return self.file.read_at(bytes, offset);
        }
        let count = self.valve.pass(Some(bytes.as_ptr() as usize), bytes.len());
        // Direct I/O takes whole pages only, so it is done in full, and what lies behind the count is spoilt.
        let count = self.file.read_at(bytes, offset)?.min(count);
        bytes[count..].fill(0xdb);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let count = if self.payload { self.valve.pass(None, bytes.len()) } else { bytes.len() };
        Ok(self.file.write_at(bytes, offset)?.min(count))
    }

    fn allocate(&self, len_bytes: u64) -> io::Result<()> {
        self.file.allocate(len_bytes)
    }

    fn truncate(&self, len_bytes: u64) -> io::Result<()> {
        self.file.truncate(len_bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match (self.way, self.payload) {
            (Way::SystemCalls, _) => None,
            (Way::Ring, false) => self.file.descriptor(),
            (Way::Ring, true) => self.valve.dead_end().or_else(|| self.file.descriptor()),
        }
    }
}
