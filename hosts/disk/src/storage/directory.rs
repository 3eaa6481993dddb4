//! The real file system: one directory, `pread` and `pwrite`.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{FallocateFlags, OFlags, fallocate, statfs, statvfs};
use rustix::io::Errno;

use super::write_all;
use super::{Access, Content, FileSize, IoMode, LockGuard, LockRefusal, Owner, Storage, StorageFile, lock, read_exact};
use crate::Buffer;
use crate::format::{PAGE_BYTES, names};

/// `f_type` of file systems that are memory: direct I/O is refused there or means nothing (linux/magic.h).
const MEMORY_FILE_SYSTEMS: [(u64, &str); 2] = [(0x0102_1994, "tmpfs"), (0x8584_58f6, "ramfs")];

/// A directory of the real file system.
pub struct Directory {
    path: PathBuf,
    want_direct: bool,
    mode: OnceLock<IoMode>,
}

impl Directory {
    /// The directory at `path`, which is made with mode 0700 if it is not there; one that is empty gets that mode.
    /// `direct` asks for direct I/O of payload where that works.
    pub fn create(path: &Path, direct: bool) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        if std::fs::read_dir(path)?.next().is_none() {
            std::fs::set_permissions(path, Permissions::from_mode(0o700))?;
        }
        Ok(Self { path: path.to_owned(), want_direct: direct, mode: OnceLock::new() })
    }

    /// The directory at `path`, for reading only: nothing is made or changed.
    pub fn existing(path: &Path) -> io::Result<Self> {
        std::fs::read_dir(path)?;
        Ok(Self { path: path.to_owned(), want_direct: false, mode: OnceLock::new() })
    }

    fn open_file(&self, name: &str, access: Access, flags: OFlags) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(access != Access::Read)
            .create(access == Access::Create)
            .mode(0o600)
            .custom_flags(flags.bits() as i32)
            .open(self.path.join(name))
    }

    /// The name of the file system if it is memory.
    fn memory_file_system(&self) -> Option<&'static str> {
        let kind = statfs(&self.path).ok()?.f_type as u64;
        MEMORY_FILE_SYSTEMS.iter().find(|(memory, _)| *memory == kind).map(|(_, name)| *name)
    }

    /// How payload would travel if the store was opened for writing, found out by reading a page of the superblock: nothing is
    /// made or changed.
    pub(crate) fn outlook(&self) -> IoMode {
        if let Some(name) = self.memory_file_system() {
            return IoMode::Buffered { why: format!("{name} is memory") };
        }
        let attempt = || {
            let file = RealFile(self.open_file(names::SUPERBLOCK, Access::Read, OFlags::DIRECT)?);
            read_exact(&file, Buffer::zeroed(PAGE_BYTES).bytes_mut(), 0, PAGE_BYTES)
        };
        match attempt() {
            Ok(()) => IoMode::Direct,
            Err(error) => IoMode::Buffered { why: format!("direct I/O does not work here: {error}") },
        }
    }

    /// Who has the store open for writing.
    pub(crate) fn owner(&self) -> Owner {
        lock::owner(&self.path.join(names::LOCK))
    }

    /// Why direct I/O does not work here, or `None` if it does: a page is written and read back.
    fn direct_fault(&self) -> Option<String> {
        if !self.want_direct {
            return Some("direct I/O was not asked for".to_owned());
        }
        if let Some(name) = self.memory_file_system() {
            return Some(format!("{name} is memory"));
        }
        let attempt = || {
            let file = RealFile(self.open_file(names::PROBE, Access::Create, OFlags::DIRECT)?);
            let mut page = Buffer::zeroed(2 * PAGE_BYTES);
            page.bytes_mut().fill(0xa5);
            // One page at an offset of one page: what the store relies on, and no more.
            write_all(&file, &page.bytes()[..PAGE_BYTES], PAGE_BYTES as u64, PAGE_BYTES)?;
            page.bytes_mut().fill(0);
            read_exact(&file, &mut page.bytes_mut()[..PAGE_BYTES], PAGE_BYTES as u64, PAGE_BYTES)?;
            match page.bytes()[..PAGE_BYTES].iter().all(|byte| *byte == 0xa5) {
                true => Ok(()),
                false => Err(io::Error::other("a page read back differs")),
            }
        };
        let fault = attempt().err().map(|error| format!("direct I/O does not work here: {error}"));
        // A probe that stays behind is taken for the store's own and written again next time.
        let _ = self.remove(names::PROBE);
        fault
    }
}

impl Storage for Directory {
    fn list(&self) -> io::Result<Vec<String>> {
        std::fs::read_dir(&self.path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn open(&self, name: &str, access: Access, content: Content) -> io::Result<Box<dyn StorageFile>> {
        let direct = content == Content::Payload && self.mode.get() == Some(&IoMode::Direct);
        let flags = if direct { OFlags::DIRECT } else { OFlags::empty() };
        Ok(Box::new(RealFile(self.open_file(name, access, flags)?)))
    }

    fn size(&self, name: &str) -> io::Result<FileSize> {
        let metadata = std::fs::metadata(self.path.join(name))?;
        Ok(FileSize { len_bytes: metadata.len(), allocated_bytes: metadata.blocks() * 512 })
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let system = statvfs(&self.path)?;
        Ok(system.f_bavail.saturating_mul(system.f_frsize))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match std::fs::remove_file(self.path.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn lock(&self) -> Result<Box<dyn LockGuard>, LockRefusal> {
        lock::take(&self.path.join(names::LOCK))
    }

    fn probe(&self) -> IoMode {
        let probe = || self.direct_fault().map_or(IoMode::Direct, |why| IoMode::Buffered { why });
        self.mode.get_or_init(probe).clone()
    }
}

/// An open file of the real file system.
struct RealFile(File);

impl StorageFile for RealFile {
    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(bytes, offset)
    }

    fn allocate(&self, len_bytes: u64) -> io::Result<()> {
        let before = self.len_bytes()?;
        let result = match fallocate(&self.0, FallocateFlags::empty(), 0, len_bytes) {
            // Some network and older file systems cannot reserve; then a write may find the disk full, and says so.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.0.set_len(len_bytes.max(before)),
            result => result.map_err(io::Error::from),
        };
        if result.is_err() {
            // A failed reservation may have grown the file in part; what it took goes back.
            let _ = self.0.set_len(before);
        }
        result
    }

    fn truncate(&self, len_bytes: u64) -> io::Result<()> {
        self.0.set_len(len_bytes)
    }

    fn punch(&self, offset: u64, len_bytes: u64) -> io::Result<()> {
        match fallocate(&self.0, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len_bytes) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Err(io::ErrorKind::Unsupported.into()),
            result => result.map_err(io::Error::from),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }
}
