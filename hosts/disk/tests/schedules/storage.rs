//! The simulated disk, seen by threads whose order a scheduler decides.

use std::io;

use reprise_disk::storage::{Access, Content, FileSize, IoMode, LockGuard, LockRefusal, Storage, StorageFile};
use shuttle::sync::atomic::{AtomicU64, Ordering};

use crate::disk::Disk;

const PAGE_BYTES: usize = 4096;

/// A disk on which another thread can come in before every operation. Reads come in parts, and so do writes of payload,
/// page by page: that is as far as a file system keeps accesses of several threads apart.
pub struct Interleaved(pub Disk);

/// Lets the scheduler change threads.
fn switch() {
    AtomicU64::new(0).load(Ordering::SeqCst);
}

impl Storage for Interleaved {
    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }

    fn open(&self, name: &str, access: Access, content: Content) -> io::Result<Box<dyn StorageFile>> {
        switch();
        let file = self.0.open(name, access, content)?;
        Ok(Box::new(InterleavedFile { file, content }))
    }

    fn size(&self, name: &str) -> io::Result<FileSize> {
        self.0.size(name)
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.0.free_bytes()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        switch();
        self.0.sync_directory()
    }

    fn lock(&self) -> Result<Box<dyn LockGuard>, LockRefusal> {
        self.0.lock()
    }

    fn probe(&self) -> IoMode {
        self.0.probe()
    }
}

struct InterleavedFile {
    file: Box<dyn StorageFile>,
    content: Content,
}

impl StorageFile for InterleavedFile {
    fn len_bytes(&self) -> io::Result<u64> {
        switch();
        self.file.len_bytes()
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        switch();
        let count = match self.content {
            Content::Payload => bytes.len().min(PAGE_BYTES),
            Content::Metadata if bytes.len() > 64 => bytes.len() / 2,
            Content::Metadata => bytes.len(),
        };
        self.file.read_at(&mut bytes[..count], offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        switch();
        let count = match self.content {
            Content::Payload => bytes.len().min(PAGE_BYTES),
            Content::Metadata => bytes.len(),
        };
        self.file.write_at(&bytes[..count], offset)
    }

    fn allocate(&self, len_bytes: u64) -> io::Result<()> {
        switch();
        self.file.allocate(len_bytes)
    }

    fn truncate(&self, len_bytes: u64) -> io::Result<()> {
        self.file.truncate(len_bytes)
    }

    fn sync(&self) -> io::Result<()> {
        switch();
        self.file.sync()
    }
}
