//! The namespaces of an open store, and the file that keeps them.

use std::io;

use super::{Core, Store};
use crate::error::StoreError;
use crate::format::{PAGE_BYTES, catalogue as format, names};
use crate::locks::{lock, read, write};
use crate::record::NamespaceRecord;
use crate::storage::{Access, Content, Storage, StorageFile, read_up_to, write_all};
use crate::sync::atomic::Ordering;
use crate::sync::{Mutex, RwLock};

/// The catalogue of an open store.
pub struct Catalogue {
    /// Changed only while `file` is locked; read at any time.
    namespaces: RwLock<Vec<NamespaceRecord>>,
    file: Mutex<Tail>,
}

/// Where the next record goes.
struct Tail {
    file: Option<Box<dyn StorageFile>>,
    /// The end of the sound records; 0 if not even the header is there.
    end: u64,
}

/// A catalogue as it is on disk.
#[derive(Default)]
pub struct Loaded {
    pub namespaces: Vec<NamespaceRecord>,
    /// The end of the sound records; 0 if not even the header is there.
    pub end: u64,
    /// Bytes behind `end`.
    pub damaged_bytes: u64,
}

/// Reads the catalogue. A missing, damaged or unreadable one has no namespaces; a note says so.
///
/// # Errors
///
/// If the catalogue was written by a later version.
pub fn load(storage: &dyn Storage, notes: &mut Vec<String>) -> Result<Loaded, StoreError> {
    match read_file(storage) {
        Ok(Ok(loaded)) => Ok(loaded),
        Ok(Err(error)) => Err(error),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Loaded::default()),
        Err(error) => {
            notes.push(format!("the catalogue cannot be read: {error}"));
            Ok(Loaded::default())
        }
    }
}

/// Reads up to the first record that is not sound. However long the file is, memory is taken for one record of the longest
/// kind, and for those that are sound.
fn read_file(storage: &dyn Storage) -> io::Result<Result<Loaded, StoreError>> {
    let file = storage.open(names::CATALOGUE, Access::Read, Content::Metadata)?;
    let len_bytes = file.len_bytes()?;
    let mut window = vec![0; PAGE_BYTES.max(format::MAX_RECORD_BYTES)];
    let count = read_up_to(&*file, &mut window[..PAGE_BYTES], 0)?;
    if let Err(fault) = format::check_header(&window[..count]) {
        let damaged = Loaded { damaged_bytes: len_bytes, ..Loaded::default() };
        return Ok(fault.refusal(names::CATALOGUE).map_or(Ok(damaged), Err));
    }
    let mut loaded = Loaded { namespaces: Vec::new(), end: PAGE_BYTES as u64, damaged_bytes: 0 };
    loop {
        let count = read_up_to(&*file, &mut window, loaded.end)?;
        match format::decode(&window[..count], &mut loaded.namespaces) {
            0 => break,
            bytes => loaded.end += bytes as u64,
        }
    }
    loaded.damaged_bytes = len_bytes.saturating_sub(loaded.end);
    Ok(Ok(loaded))
}

impl Catalogue {
    /// The catalogue that was loaded, with its damaged end cut off.
    pub fn new(loaded: Loaded, storage: &dyn Storage, notes: &mut Vec<String>) -> Self {
        let mut tail = Tail { file: None, end: loaded.end };
        if loaded.damaged_bytes > 0 {
            let cut = storage.open(names::CATALOGUE, Access::Write, Content::Metadata).and_then(|file| {
                file.truncate(loaded.end)?;
                Ok(file)
            });
            match cut {
                Ok(file) => tail.file = Some(file),
                // What is left there is overwritten by the next namespaces, or read as damaged again.
                Err(error) => notes.push(format!("the damaged end of the catalogue cannot be cut off: {error}")),
            }
        }
        Self { namespaces: RwLock::new(loaded.namespaces), file: Mutex::new(tail) }
    }

    /// The 64-bit check of a namespace.
    pub fn check(&self, namespace: u16) -> Option<u64> {
        read(&self.namespaces).get(usize::from(namespace)).map(|record| record.check)
    }
}

impl Store {
    /// The index of a namespace, for use in a [`Key`](crate::Key). One that the catalogue does not have yet is written
    /// and synced before this returns.
    ///
    /// # Errors
    ///
    /// As for [`put`](Store::put), and if there are 65,535 namespaces or a text is longer than 65,535 bytes.
    pub fn namespace(&self, namespace: &NamespaceRecord) -> Result<u16, StoreError> {
        self.core.namespace(namespace)
    }

    /// All namespaces with their indices.
    pub fn namespaces(&self) -> Vec<(u16, NamespaceRecord)> {
        read(&self.core.catalogue.namespaces)
            .iter()
            .cloned()
            .enumerate()
            .map(|(index, record)| (index as u16, record))
            .collect()
    }
}

impl Core {
    fn namespace(&self, namespace: &NamespaceRecord) -> Result<u16, StoreError> {
        let known = |list: &[NamespaceRecord]| list.iter().position(|record| record == namespace);
        if let Some(index) = known(&read(&self.catalogue.namespaces)) {
            return Ok(index as u16);
        }
        self.check_writable()?;
        // Only this lock is held over I/O, and only those who bring a new namespace wait for it.
        let mut tail = lock(&self.catalogue.file);
        let count = {
            let list = read(&self.catalogue.namespaces);
            if let Some(index) = known(&list) {
                return Ok(index as u16);
            }
            list.len()
        };
        let index = u16::try_from(count).ok().filter(|index| *index < u16::MAX);
        let index = index.ok_or(StoreError::TooManyNamespaces)?;
        let record = format::encode(index, namespace)?;
        let end = self.append(&mut tail, &record).map_err(|error| StoreError::io("writing the catalogue", error))?;
        let file = tail.file.as_deref().expect("append opened the file");
        self.synced("the catalogue", file.sync())?;
        self.sync_directory()?;
        tail.end = end;
        write(&self.catalogue.namespaces).push(namespace.clone());
        Ok(index)
    }

    /// Writes `record` at the catalogue's end, header first if there is none, and returns the new end.
    fn append(&self, tail: &mut Tail, record: &[u8]) -> io::Result<u64> {
        let file = match &mut tail.file {
            Some(file) => file,
            empty => {
                let file = self.storage.open(names::CATALOGUE, Access::Create, Content::Metadata)?;
                self.directory_dirty.fetch_or(tail.end == 0, Ordering::AcqRel);
                empty.insert(file)
            }
        };
        if tail.end == 0 {
            write_all(&**file, &format::encode_header()[..], 0, 1)?;
            tail.end = PAGE_BYTES as u64;
        }
        write_all(&**file, record, tail.end, 1)?;
        Ok(tail.end + record.len() as u64)
    }
}
