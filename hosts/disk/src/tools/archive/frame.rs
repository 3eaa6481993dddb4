//! The frames that an archive is made of, to the byte, and reading them one by one.

use std::collections::BTreeMap;
use std::hash::Hasher as _;
use std::io::{self, Read, Write};

use twox_hash::XxHash3_64;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::Buffer;
use crate::class::GroupClass;
use crate::format::table::{self, Entry};
use crate::format::{PAGE_BYTES, catalogue, page};
use crate::payload::Expected;
use crate::record::{Key, NamespaceRecord};
use reprise_core::Digest;

use super::ArchiveError;

const MAGIC: [u8; 8] = *b"REPRARC\0";
const CLASS: [u8; 4] = *b"CLAS";
const NAMESPACE: [u8; 4] = *b"NSPC";
const RECORD: [u8; 4] = *b"RECD";
const DONE: [u8; 4] = *b"DONE";

/// Bytes of a record that memory is taken for before any of them has come.
const FIRST_STEP_BYTES: usize = 1 << 20;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Head {
    kind: [u8; 4],
    reserved: U32,
    /// Counts the frames from 0.
    number: U64,
    body_bytes: U64,
    /// Of the fields before.
    sum: U64,
}

/// What stands before the slot in the body of a record.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RecordHead {
    /// The slot in the store that the record comes from: its entry's checksum covers it.
    slot: U32,
    reserved: U32,
    entry: Entry,
}

impl Head {
    fn new(kind: [u8; 4], number: u64, body_bytes: u64) -> Self {
        let mut head =
            Self { kind, reserved: 0.into(), number: number.into(), body_bytes: body_bytes.into(), sum: 0.into() };
        head.sum = head.compute_sum().into();
        head
    }

    fn compute_sum(&self) -> u64 {
        let bytes = self.as_bytes();
        XxHash3_64::oneshot(&bytes[..bytes.len() - 8])
    }
}

/// The checksum of the body of frame `number`, whose bytes are in these parts.
fn body_sum(number: u64, parts: &[&[u8]]) -> u64 {
    let mut hasher = XxHash3_64::with_seed(number);
    parts.iter().for_each(|part| hasher.write(part));
    hasher.finish()
}

/// Writes an archive.
pub struct Writer<'a> {
    out: &'a mut dyn Write,
    frames: u64,
    records: u64,
}

impl<'a> Writer<'a> {
    pub fn new(out: &'a mut dyn Write) -> io::Result<Self> {
        out.write_all(&page::seal(MAGIC, &[])[..])?;
        Ok(Self { out, frames: 0, records: 0 })
    }

    pub fn class(&mut self, class: &GroupClass, slots_per_chunk: u32) -> io::Result<()> {
        self.frame(CLASS, &[&table::encode_header(class, slots_per_chunk)[..]])
    }

    /// `record` is one of a catalogue.
    pub fn namespace(&mut self, record: &[u8]) -> io::Result<()> {
        self.frame(NAMESPACE, &[record])
    }

    /// `bytes` are those of the slot that the entry belongs to, trailer included.
    pub fn record(&mut self, slot: u32, entry: &Entry, bytes: &[u8]) -> io::Result<()> {
        let head = RecordHead { slot: slot.into(), reserved: 0.into(), entry: *entry };
        self.records += 1;
        self.frame(RECORD, &[head.as_bytes(), bytes])
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.frame(DONE, &[&self.records.to_le_bytes()])?;
        self.out.flush()
    }

    fn frame(&mut self, kind: [u8; 4], parts: &[&[u8]]) -> io::Result<()> {
        let body_bytes = parts.iter().map(|part| part.len() as u64).sum();
        self.out.write_all(Head::new(kind, self.frames, body_bytes).as_bytes())?;
        parts.iter().try_for_each(|part| self.out.write_all(part))?;
        self.out.write_all(&body_sum(self.frames, parts).to_le_bytes())?;
        self.frames += 1;
        Ok(())
    }
}

/// An archive that is being read, behind what it says about itself.
pub struct Reader<'a> {
    input: &'a mut dyn Read,
    pub classes: Vec<GroupClass>,
    pub namespaces: BTreeMap<u16, NamespaceRecord>,
    frames: u64,
    records: u64,
    /// The head of the next frame, if it has been read.
    ahead: Option<Head>,
}

/// What comes next in an archive.
pub enum Next {
    /// A record whose every byte is right. Its payload is at the start of the buffer.
    Record { class_index: usize, entry: Entry },
    /// A record that is damaged, of that class as far as can be told.
    Damaged { class_index: usize },
    /// The end.
    Done,
    /// The end, too early, or something from which the next frame cannot be found.
    Broken { why: String },
}

/// Why a frame cannot be had.
enum Fault {
    Broken(String),
    Read(io::Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Broken("it is cut off".to_owned()),
            _ => Self::Read(error),
        }
    }
}

impl<'a> Reader<'a> {
    /// Reads what the archive says about itself.
    pub fn new(input: &'a mut dyn Read) -> Result<Self, ArchiveError> {
        let mut first = [0; PAGE_BYTES];
        input.read_exact(&mut first).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => ArchiveError::NotAnArchive,
            _ => ArchiveError::Read(error),
        })?;
        if let Err(fault) = page::open(&first, MAGIC) {
            return Err(fault.refusal("the archive").map_or(ArchiveError::NotAnArchive, ArchiveError::Store));
        }
        let mut reader =
            Self { input, classes: Vec::new(), namespaces: BTreeMap::new(), frames: 0, records: 0, ahead: None };
        reader.read_prologue().map_err(|fault| match fault {
            Fault::Read(error) => ArchiveError::Read(error),
            Fault::Broken(what) => ArchiveError::Damaged { what },
        })?;
        Ok(reader)
    }

    /// There is one class a group and one record a namespace, so that what is kept is bounded however many frames there are.
    fn read_prologue(&mut self) -> Result<(), Fault> {
        loop {
            let head = self.head()?;
            let most = match head.kind {
                CLASS => PAGE_BYTES,
                NAMESPACE => catalogue::MAX_RECORD_BYTES,
                _ => {
                    self.ahead = Some(head);
                    return Ok(());
                }
            };
            let broken = || Fault::Broken(format!("frame {} is damaged", head.number));
            let len = usize::try_from(head.body_bytes.get()).ok().filter(|len| *len <= most).ok_or_else(broken)?;
            let mut body = vec![0; len];
            self.input.read_exact(&mut body)?;
            if !self.body_is_sound(&head, &[&body])? {
                return Err(broken());
            }
            if head.kind == CLASS {
                let (class, _) = table::decode_header(&body).map_err(|_| broken())?;
                if self.classes.iter().any(|known| known.group == class.group || known.name == class.name) {
                    return Err(Fault::Broken(format!("group {} is described twice", class.name)));
                }
                self.classes.push(class);
            } else {
                let (index, namespace) = catalogue::decode_one(&body).ok_or_else(broken)?;
                if self.namespaces.insert(index, namespace).is_some() {
                    return Err(Fault::Broken(format!("namespace {index} is described twice")));
                }
            }
        }
    }

    /// Reads the next record into `buffer`.
    pub fn next(&mut self, buffer: &mut Buffer) -> Result<Next, ArchiveError> {
        match self.try_next(buffer) {
            Ok(next) => Ok(next),
            Err(Fault::Broken(why)) => Ok(Next::Broken { why }),
            Err(Fault::Read(error)) => Err(ArchiveError::Read(error)),
        }
    }

    fn try_next(&mut self, buffer: &mut Buffer) -> Result<Next, Fault> {
        let head = match self.ahead.take() {
            Some(head) => head,
            None => self.head()?,
        };
        let body_bytes = head.body_bytes.get();
        match head.kind {
            DONE => return self.done(&head),
            RECORD => self.records += 1,
            _ => return Err(Fault::Broken(format!("frame {} is of no known kind", head.number))),
        }
        let bytes = |class: &GroupClass| size_of::<RecordHead>() as u64 + class.slot_bytes();
        let Some(guess) = self.classes.iter().position(|class| bytes(class) == body_bytes) else {
            return Err(Fault::Broken(format!("frame {} is as long as no record", head.number)));
        };
        let mut record = RecordHead::new_zeroed();
        self.input.read_exact(record.as_mut_bytes())?;
        self.fill(buffer, self.classes[guess].slot_bytes() as usize)?;
        if !self.body_is_sound(&head, &[record.as_bytes(), buffer.bytes()])? {
            return Ok(Next::Damaged { class_index: guess });
        }
        // Two classes can have slots of one length; the entry knows its own.
        let of_entry = self.classes.iter().position(|class| class.group == record.entry.group);
        let class_index = of_entry.unwrap_or(guess);
        Ok(match self.record_is_good(class_index, &record, buffer) {
            true => {
                buffer.resize(self.classes[class_index].payload_bytes as usize);
                Next::Record { class_index, entry: record.entry }
            }
            false => Next::Damaged { class_index },
        })
    }

    /// Reads `len` bytes into the buffer, which takes memory as they come: where a length says more than there is, it takes
    /// no more than twice of what there is.
    fn fill(&mut self, buffer: &mut Buffer, len: usize) -> io::Result<()> {
        let mut done = 0;
        while done < len {
            let end = len.min((2 * done).max(FIRST_STEP_BYTES));
            buffer.resize(end);
            self.input.read_exact(&mut buffer.bytes_mut()[done..end])?;
            done = end;
        }
        Ok(())
    }

    fn done(&mut self, head: &Head) -> Result<Next, Fault> {
        let mut body = [0; 8];
        self.input.read_exact(&mut body)?;
        let is_sound = self.body_is_sound(head, &[&body])? && u64::from_le_bytes(body) == self.records;
        if is_sound { Ok(Next::Done) } else { Err(Fault::Broken("its last frame is damaged".to_owned())) }
    }

    /// Whether entry, trailer and sections fit together, as they do in a store.
    fn record_is_good(&self, class_index: usize, record: &RecordHead, buffer: &Buffer) -> bool {
        let (class, entry) = (&self.classes[class_index], &record.entry);
        let key =
            Key { namespace: entry.namespace.get(), digest: Digest(entry.digest), position: entry.position.get() };
        let namespace = self.namespaces.get(&key.namespace);
        namespace.is_some_and(|namespace| namespace.check == entry.namespace_check.get())
            && class.slot_bytes() == buffer.len() as u64
            && entry.is_sound(class, record.slot.get())
            && Expected { class, key: &key, entry }.check(buffer.bytes()).is_ok()
    }

    fn head(&mut self) -> Result<Head, Fault> {
        let mut head = Head::new_zeroed();
        self.input.read_exact(head.as_mut_bytes())?;
        if head.sum.get() != head.compute_sum() || head.number.get() != self.frames {
            return Err(Fault::Broken(format!("the head of frame {} is damaged", self.frames)));
        }
        self.frames += 1;
        Ok(head)
    }

    fn body_is_sound(&mut self, head: &Head, parts: &[&[u8]]) -> Result<bool, Fault> {
        let mut sum = [0; 8];
        self.input.read_exact(&mut sum)?;
        Ok(u64::from_le_bytes(sum) == body_sum(head.number.get(), parts))
    }
}
