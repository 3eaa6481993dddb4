//! A directory that nobody but this user writes to, and files in it. It is opened once and checked; every file is reached through
//! that handle, so that the path cannot be led elsewhere later.

use std::{
    fs::{DirBuilder, File},
    io::{self, Read, Write},
    os::{
        fd::OwnedFd,
        unix::fs::{DirBuilderExt, MetadataExt},
    },
    path::Path,
    time::SystemTime,
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, linkat, open, openat, renameat, statat, unlinkat},
    io::Errno,
    process::geteuid,
};

use super::CompileCacheError;

const KEY: &str = "key";
/// What names of files begin with that are being written. One that was left behind goes like any other, oldest first.
const UNFINISHED: &str = "new-";

pub(super) struct Directory {
    handle: OwnedFd,
}

/// Bytes that nobody can guess.
fn random<const BYTES: usize>() -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

impl Directory {
    /// Opens a directory, and makes it and what is missing above it.
    pub fn open(path: &Path) -> Result<Self, CompileCacheError> {
        let failed = |source: io::Error| CompileCacheError::Io { path: path.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let handle = open(path, flags, Mode::empty()).map_err(|errno| failed(errno.into()))?;
        let Stat { st_uid, st_mode, .. } = fstat(&handle).map_err(|errno| failed(errno.into()))?;
        if st_uid != geteuid().as_raw() {
            return Err(CompileCacheError::Foreign { path: path.to_owned(), owner: st_uid });
        }
        if st_mode & 0o022 != 0 {
            return Err(CompileCacheError::Writable { path: path.to_owned(), mode: st_mode & 0o7777 });
        }
        Ok(Self { handle })
    }

    /// The key of this directory: random, made by who comes first.
    pub fn key(&self) -> io::Result<[u8; 32]> {
        // Who loses the race to make it reads the winner's.
        for _ in 0..3 {
            match self.read(KEY, 32).map(|key| key.map(<[u8; 32]>::try_from)) {
                Ok(Some(Ok(key))) => return Ok(key),
                Ok(None) => {}
                // Something is there that is no key: only that is taken away, never one that another process has just made.
                Ok(Some(Err(_))) | Err(_) => self.remove(KEY)?,
            }
            let key = random()?;
            let unfinished = self.create(&[&key])?;
            // Unlike a rename, a link never takes the place of another's key.
            let linked = linkat(&self.handle, &unfinished, &self.handle, KEY, AtFlags::empty());
            self.remove(&unfinished)?;
            match linked {
                Ok(()) => return Ok(key),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(io::Error::other("its key is exchanged again and again"))
    }

    /// The content of a file of at most `limit` bytes that only this user reads and writes; `None` if there is no file of that name.
    /// It counts as used now.
    pub fn read(&self, name: &str, limit: u64) -> io::Result<Option<Vec<u8>>> {
        // Without `NONBLOCK` a pipe of that name would have us wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.handle, name, flags, Mode::empty()) {
            Ok(handle) => File::from(handle),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let metadata = file.metadata()?;
        let ours = metadata.uid() == geteuid().as_raw() && metadata.mode() & 0o077 == 0;
        if !metadata.is_file() || !ours || metadata.len() > limit {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut content = Vec::with_capacity(metadata.len() as usize);
        (&file).take(limit).read_to_end(&mut content)?;
        // Only decides what goes first when the directory is full.
        let _ = file.set_modified(SystemTime::now());
        Ok(Some(content))
    }

    /// Puts a file in place of whatever has this name, in one step.
    pub fn write(&self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        let unfinished = self.create(parts)?;
        renameat(&self.handle, &unfinished, &self.handle, name).map_err(|errno| {
            let _ = self.remove(&unfinished);
            errno.into()
        })
    }

    /// Writes a file under a name of its own, which is returned.
    fn create(&self, parts: &[&[u8]]) -> io::Result<String> {
        // Processes of two containers may have the same number: names are random.
        let name = format!("{UNFINISHED}{:016x}", u64::from_le_bytes(random()?));
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.handle, &name, flags, Mode::RUSR | Mode::WUSR)?);
        for part in parts {
            if let Err(error) = file.write_all(part) {
                let _ = self.remove(&name);
                return Err(error);
            }
        }
        Ok(name)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Removes what was not used for longest until at most `limit_bytes` are left, the key aside.
    pub fn shrink(&self, limit_bytes: u64) -> io::Result<()> {
        let mut files = Vec::new();
        let mut bytes = 0_u64;
        for entry in Dir::read_from(&self.handle)? {
            let entry = entry?;
            let name = entry.file_name();
            let Ok(Stat { st_mode, st_size, st_mtime, st_mtime_nsec, .. }) =
                statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW)
            else {
                // Another process was faster.
                continue;
            };
            if FileType::from_raw_mode(st_mode) == FileType::RegularFile && name.to_bytes() != KEY.as_bytes() {
                bytes += st_size as u64;
                files.push((st_mtime, st_mtime_nsec, st_size as u64, name.to_owned()));
            }
        }
        files.sort();
        for (_, _, size, name) in files {
            if bytes <= limit_bytes {
                break;
            }
            bytes -= size;
            match unlinkat(&self.handle, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }
}
