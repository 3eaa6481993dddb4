//! A simulated disk that keeps apart what was written and what is durable.
//!
//! Reads see all writes. A crash keeps what was synced, and of the rest whatever subset the crash mode says: a change
//! can survive although an earlier one is lost, and a write can survive in any subset of its sectors.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use reprise_disk::storage::{Access, Content, FileSize, IoMode, LockGuard, LockRefusal, Storage, StorageFile};

use crate::faults::{Fault, Faults, LATENESS, Random, Tally};
use crate::medium::{Change, Crash, Inode, NameChange, SECTOR_BYTES};

/// What the disk says that it can hold. It never is so much.
const CAPACITY_BYTES: usize = 1 << 24;

#[derive(Default)]
struct State {
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    pending_names: Vec<NameChange>,
    /// Operations on files and names so far, those that only read included.
    operations: u64,
    /// The most bytes that all chunk files together have ever had.
    peak_chunk_bytes: usize,
    off: bool,
    locked: bool,
    faults: Faults,
    tally: Tally,
}

impl State {
    /// Counts an operation and says what goes wrong with it.
    fn step(&mut self, is_change: bool) -> io::Result<Option<Fault>> {
        if self.off {
            return Err(io::Error::other("the power is off"));
        }
        self.operations += 1;
        let fault = self.faults.next(self.operations, is_change);
        self.off |= matches!(fault, Some(Fault::PowerCut));
        Ok(fault)
    }

    /// What a fault does to an operation that it makes fail, if it does.
    fn fail(&mut self, what: &'static str, fault: Fault) -> io::Result<()> {
        match (fault, what) {
            (Fault::Error { .. }, "a read" | "looking at a file") => self.count("EIO on a read"),
            (Fault::Error { .. }, "a sync") => self.count("failed sync"),
            (Fault::Error { .. }, _) => self.count("EIO on a write"),
            (Fault::Full, _) => self.count("ENOSPC"),
            _ => {}
        }
        fault.as_error()
    }

    fn count(&mut self, kind: &'static str) {
        *self.tally.entry(kind).or_default() += 1;
    }

    fn note_peak(&mut self) {
        let chunks = self.names.iter().filter(|(name, _)| name.ends_with(".chunk"));
        let bytes = chunks.map(|(_, inode)| self.inodes[*inode].written.len()).sum();
        self.peak_chunk_bytes = self.peak_chunk_bytes.max(bytes);
    }
}

/// The disk. A clone is the same disk.
#[derive(Clone, Default)]
pub struct Disk(Arc<Mutex<State>>);

impl Disk {
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Counts an operation, and waits if it is to be late. Says what else goes wrong with it.
    fn step(&self, is_change: bool) -> io::Result<(MutexGuard<'_, State>, Option<Fault>)> {
        let mut state = self.state();
        let fault = state.step(is_change)?;
        if !matches!(fault, Some(Fault::Late)) {
            return Ok((state, fault));
        }
        state.count("late operation");
        drop(state);
        std::thread::sleep(LATENESS);
        // What comes when the power is gone has no effect.
        let state = self.state();
        if state.off { Err(io::Error::other("the power is off")) } else { Ok((state, None)) }
    }

    /// What went wrong so far.
    pub fn tally(&self) -> Tally {
        self.state().tally.clone()
    }

    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    pub fn peak_chunk_bytes(&self) -> usize {
        self.state().peak_chunk_bytes
    }

    /// Flips one bit of one file, on the medium and in memory.
    pub fn rot(&self, random: &mut Random) {
        let mut state = self.state();
        let inodes: Vec<usize> = state.names.values().copied().collect();
        if inodes.is_empty() {
            return;
        }
        let inode = &mut state.inodes[inodes[random.below(inodes.len() as u64) as usize]];
        if inode.written.is_empty() {
            return;
        }
        let at = random.below(inode.written.len() as u64) as usize;
        let bit = 1 << random.below(8);
        inode.written[at] ^= bit;
        if let Some(byte) = inode.durable.get_mut(at) {
            *byte ^= bit;
        }
        state.count("bit flipped at rest");
    }

    /// Takes the power away and gives it back: a disk with what survived, nothing pending, nothing locked, no faults.
    pub fn crash(&self, mode: Crash) -> Self {
        let mut state = self.state();
        state.off = true;
        let mut random = Random::new(match mode {
            Crash::Some { seed } => seed,
            Crash::LoseAll | Crash::KeepAll => 0,
        });
        let mut names = state.durable_names.clone();
        for change in &state.pending_names {
            match mode {
                Crash::LoseAll => {}
                Crash::Some { .. } if random.one_in(2) => {}
                Crash::KeepAll | Crash::Some { .. } => change.apply(&mut names),
            }
        }
        let mut tally = std::mem::take(&mut state.tally);
        *tally.entry("power cut").or_default() += 1;
        let inodes = state.inodes.iter().map(|inode| inode.crash(mode, &mut random, &mut tally)).collect();
        let peak_chunk_bytes = state.peak_chunk_bytes;
        Self(Arc::new(Mutex::new(State {
            inodes,
            names: names.clone(),
            durable_names: names,
            peak_chunk_bytes,
            tally,
            ..State::default()
        })))
    }
}

impl Storage for Disk {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.state().names.keys().cloned().collect())
    }

    fn open(&self, name: &str, access: Access, content: Content) -> io::Result<Box<dyn StorageFile>> {
        let mut state = self.state();
        let inode = match state.names.get(name) {
            Some(inode) => *inode,
            None if access == Access::Create => {
                if let Some(fault) = state.step(true)? {
                    state.fail("making a file", fault)?;
                }
                state.inodes.push(Inode::default());
                let inode = state.inodes.len() - 1;
                state.names.insert(name.to_owned(), inode);
                state.pending_names.push(NameChange::Create(name.to_owned(), inode));
                inode
            }
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(Box::new(SimulatedFile { disk: self.clone(), inode, content }))
    }

    fn size(&self, name: &str) -> io::Result<FileSize> {
        let (mut state, fault) = self.step(false)?;
        if let Some(fault) = fault {
            state.fail("looking at a file", fault)?;
        }
        let inode = *state.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        let len_bytes = state.inodes[inode].written.len() as u64;
        Ok(FileSize { len_bytes, allocated_bytes: len_bytes })
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let used: usize = self.state().inodes.iter().map(|inode| inode.written.len()).sum();
        Ok(CAPACITY_BYTES.saturating_sub(used) as u64)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let (mut state, fault) = self.step(true)?;
        if let Some(fault) = fault {
            state.fail("removing a file", fault)?;
        }
        if state.names.remove(name).is_some() {
            state.pending_names.push(NameChange::Remove(name.to_owned()));
        }
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        let (mut state, fault) = self.step(true)?;
        match fault {
            Some(Fault::Lie) => {
                state.count("sync that lies");
                return Ok(());
            }
            // The space was reserved before.
            Some(Fault::Full) | None => {}
            Some(fault) => state.fail("a sync", fault)?,
        }
        for change in std::mem::take(&mut state.pending_names) {
            change.apply(&mut state.durable_names);
        }
        Ok(())
    }

    fn lock(&self) -> Result<Box<dyn LockGuard>, LockRefusal> {
        let mut state = self.state();
        if std::mem::replace(&mut state.locked, true) {
            return Err(LockRefusal::Held { owner: "the simulation".to_owned() });
        }
        Ok(Box::new(SimulatedLock(self.clone())))
    }

    fn probe(&self) -> IoMode {
        IoMode::Buffered { why: "simulated".to_owned() }
    }
}

struct SimulatedLock(Disk);

impl LockGuard for SimulatedLock {}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        self.0.state().locked = false;
    }
}

struct SimulatedFile {
    disk: Disk,
    inode: usize,
    content: Content,
}

impl SimulatedFile {
    /// Payload travels as direct I/O demands it.
    fn check_alignment(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let aligned =
            [bytes.as_ptr() as u64, bytes.len() as u64, offset].iter().all(|number| number.is_multiple_of(4096));
        if self.content == Content::Payload && !aligned { Err(io::Error::from_raw_os_error(22)) } else { Ok(()) }
    }
}

impl StorageFile for SimulatedFile {
    fn len_bytes(&self) -> io::Result<u64> {
        let (mut state, fault) = self.disk.step(false)?;
        if let Some(fault) = fault {
            state.fail("looking at a file", fault)?;
        }
        Ok(state.inodes[self.inode].written.len() as u64)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.check_alignment(bytes, offset)?;
        let (mut state, fault) = self.disk.step(false)?;
        let file = &state.inodes[self.inode].written;
        let start = (offset as usize).min(file.len());
        let mut count = bytes.len().min(file.len() - start);
        match fault {
            Some(Fault::Short { part }) if count > 1 => {
                count = 1 + part as usize % (count - 1);
                state.count("short read");
            }
            Some(fault) => state.fail("a read", fault)?,
            None => {}
        }
        bytes[..count].copy_from_slice(&state.inodes[self.inode].written[start..start + count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.check_alignment(bytes, offset)?;
        let (mut state, fault) = self.disk.step(true)?;
        let mut change = Change::Write { offset: offset as usize, bytes: bytes.to_vec() };
        let mut count = bytes.len();
        let mut inode = self.inode;
        let mut result = Ok(());
        match fault {
            Some(Fault::Short { part }) if count > 1 => {
                count = 1 + part as usize % (count - 1);
                state.count("short write");
                change = Change::Write { offset: offset as usize, bytes: bytes[..count].to_vec() };
            }
            // The bytes go to some other place, in this file or in another one.
            Some(Fault::Misdirect { part }) => {
                state.count("misdirected write");
                let inodes: Vec<usize> = state.names.values().copied().collect();
                inode = if part % 2 == 0 { inode } else { inodes[(part / 2) as usize % inodes.len()] };
                let len = state.inodes[inode].written.len();
                let wrong = (part / 64) as usize % (len / SECTOR_BYTES + 1) * SECTOR_BYTES;
                if wrong + count > len {
                    return Ok(count);
                }
                change = Change::Write { offset: wrong, bytes: bytes.to_vec() };
            }
            // Part of it is done before the error comes.
            Some(Fault::Error { part }) if part % 2 == 0 => {
                let done = part as usize % (count + 1);
                change = Change::Write { offset: offset as usize, bytes: bytes[..done].to_vec() };
                state.count("EIO on a write of which a part is done");
                result = Fault::Error { part }.as_error();
            }
            Some(Fault::PowerCut) => {
                state.inodes[inode].change(change);
                return Fault::PowerCut.as_error().map(|()| 0);
            }
            Some(fault) => state.fail("a write", fault)?,
            None => {}
        }
        state.inodes[inode].change(change);
        state.note_peak();
        result.map(|()| count)
    }

    fn allocate(&self, len_bytes: u64) -> io::Result<()> {
        let (mut state, fault) = self.disk.step(true)?;
        if let Some(fault) = fault {
            state.fail("reserving space", fault)?;
        }
        let len = len_bytes as usize;
        let inode = &mut state.inodes[self.inode];
        if inode.written.len() < len {
            inode.change(Change::Resize { len });
        }
        state.note_peak();
        Ok(())
    }

    fn truncate(&self, len_bytes: u64) -> io::Result<()> {
        let (mut state, fault) = self.disk.step(true)?;
        if let Some(fault) = fault {
            state.fail("cutting a file", fault)?;
        }
        state.inodes[self.inode].change(Change::Resize { len: len_bytes as usize });
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let (mut state, fault) = self.disk.step(true)?;
        match fault {
            Some(Fault::Lie) => {
                state.count("sync that lies");
                return Ok(());
            }
            Some(Fault::Full) | None => {}
            // What was not written is dropped from memory, too, as Linux may do.
            Some(fault @ Fault::Error { part }) if part % 2 == 0 => {
                let inode = &mut state.inodes[self.inode];
                inode.pending.clear();
                inode.written = inode.durable.clone();
                state.count("failed sync that drops what was written");
                fault.as_error()?;
            }
            Some(fault) => state.fail("a sync", fault)?,
        }
        state.inodes[self.inode].sync();
        Ok(())
    }
}
