//! The open chunk files: a bounded number of them.

use std::io;

use crate::locks::lock;
use crate::storage::{Access, Content, Storage, StorageFile};
use crate::sync::{Arc, Mutex};

/// Which chunk: the class's place in the store's list, and the chunk's number in the class.
pub type ChunkId = (usize, u32);

/// Keeps the chunk files used last open.
pub struct ChunkFiles {
    limit: usize,
    /// The file used last comes last.
    open: Mutex<Vec<(ChunkId, Arc<dyn StorageFile>)>>,
}

impl ChunkFiles {
    /// Keeps at most `limit` files open, and at least one. Files in use at the moment come on top.
    pub fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), open: Mutex::new(Vec::new()) }
    }

    /// The file called `name`, opened if it is not open.
    pub fn file(
        &self,
        id: ChunkId,
        name: impl FnOnce() -> String,
        access: Access,
        storage: &dyn Storage,
    ) -> io::Result<Arc<dyn StorageFile>> {
        {
            let mut open = lock(&self.open);
            if let Some(index) = open.iter().position(|(known, _)| *known == id) {
                let found = open.remove(index);
                let file = Arc::clone(&found.1);
                open.push(found);
                return Ok(file);
            }
        }
        // Two threads may both open the file; then one of the handles closes again soon.
        let file: Arc<dyn StorageFile> = Arc::from(storage.open(&name(), access, Content::Payload)?);
        let mut open = lock(&self.open);
        if open.len() >= self.limit {
            open.remove(0);
        }
        open.push((id, Arc::clone(&file)));
        Ok(file)
    }
}
