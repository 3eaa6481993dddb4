//! Compiled components on disk, so that a component is compiled once a machine and not once a process.
//!
//! Whoever can write a file here could have it run as native code. Hence a directory that belongs to this user and that nobody else
//! can write to, and a code of authentication in each file under a key that is kept there too: what this host did not write,
//! or wrote for another component or another engine, is not looked at but compiled again and written over.

mod artefact;
mod directory;

use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
};

use thiserror::Error;

pub(crate) use artefact::{Name, engine_digest};
use directory::Directory;

/// Bytes that a cache of compiled components takes unless told otherwise.
const LIMIT_BYTES: u64 = 256 << 20;

/// Why compiled components are not kept in a directory.
#[derive(Debug, Error)]
pub enum CompileCacheError {
    /// There is neither `XDG_CACHE_HOME` nor a home directory.
    #[error("keeping compiled policies: neither XDG_CACHE_HOME nor HOME says where; set one, or name a directory")]
    NoHome,
    /// It cannot be made, opened or written to.
    #[error("keeping compiled policies in {}: {source}", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It belongs to somebody else, who could put native code into it.
    #[error("keeping compiled policies in {}: it belongs to user {owner}, not to the one this process runs as", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// Number of the user it belongs to.
        owner: u32,
    },
    /// Others may write to it, and could put native code into it.
    #[error("keeping compiled policies in {}: others may write to it (mode {mode:o}); chmod go-w it, or name another", path.display())]
    Writable {
        /// The directory.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
}

/// A directory of compiled components. Cheap to clone; engines and processes may share it.
#[derive(Clone)]
pub struct CompileCache {
    inner: Arc<Inner>,
}

struct Inner {
    directory: Directory,
    key: [u8; 32],
    limit_bytes: u64,
}

impl CompileCache {
    /// The cache of this user: `reprise/compiled` in `$XDG_CACHE_HOME` or `~/.cache`, of 256 MiB at most.
    ///
    /// # Errors
    /// As [`CompileCache::open`], and when there is no home directory.
    pub fn of_user() -> Result<Self, CompileCacheError> {
        let absolute = |variable: &str| env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
        Self::open(&caches.ok_or(CompileCacheError::NoHome)?.join("reprise/compiled"), LIMIT_BYTES)
    }

    /// A cache in `directory`, which is made if it is not there. What it holds stays below `limit_bytes`: the oldest goes.
    ///
    /// # Errors
    /// When the directory or its key cannot be made or read, belongs to another user, or can be written to by others.
    pub fn open(directory: &Path, limit_bytes: u64) -> Result<Self, CompileCacheError> {
        let opened = Directory::open(directory)?;
        let key = opened.key().map_err(|source| CompileCacheError::Io { path: directory.to_owned(), source })?;
        Ok(Self { inner: Arc::new(Inner { directory: opened, key, limit_bytes }) })
    }

    /// The machine code that this host wrote under `name`.
    pub(crate) fn find(&self, name: &Name) -> Found {
        let Inner { directory, key, limit_bytes } = &*self.inner;
        match directory.read(&name.file(), *limit_bytes) {
            Ok(Some(file)) => artefact::open(file, name, key).map_or(Found::Untrusted, Found::Code),
            Ok(None) => Found::Nothing,
            Err(_) => Found::Untrusted,
        }
    }

    /// Writes machine code under `name`. Returns whether it was written.
    pub(crate) fn keep(&self, name: &Name, code: &[u8]) -> bool {
        let Inner { directory, key, limit_bytes } = &*self.inner;
        let head = artefact::seal(code, name, key);
        let bytes = (head.len() + code.len()) as u64;
        bytes <= *limit_bytes
            && directory.shrink(limit_bytes - bytes).is_ok()
            && directory.write(&name.file(), &[&head, code]).is_ok()
    }
}

/// What is under a name.
pub(crate) enum Found {
    /// Code that this host wrote.
    Code(artefact::Code),
    /// Nothing.
    Nothing,
    /// Something that this host did not write there, or that is damaged.
    Untrusted,
}
