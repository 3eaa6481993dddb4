//! Imports what an input stands for into an empty directory, and checks what came in.
//!
//! An input that begins with an even byte is the archive itself; one that begins with an odd byte holds changes to an archive of
//! a whole store, as in `image.rs`. The archive is its file number 0. Then the checksums of one frame are made right again: the
//! frame's own and, by the highest bit of its number, those of what it holds, so that every field of a class and a namespace can
//! be forged.

use std::sync::{Arc, OnceLock};

use reprise_disk::tools::{ArchiveError, Filter, export, import_in};
use reprise_disk::{ReadOnly, StoreError};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::disk::Disk;
use crate::fixture::{Files, classes, open, whole, write_files};
use crate::image::Image;
use crate::open::{is_read, key_of};

const PAGE_BYTES: usize = 4096;
const HEAD_BYTES: usize = 32;

/// The archive of a whole store.
pub fn whole_archive() -> Vec<u8> {
    let store = ReadOnly::open_in(Arc::new(write_files(&whole()))).expect("a whole store opens");
    let mut archive = Vec::new();
    export(&store, &Filter::default(), &mut archive, &mut |_, _| {}).expect("memory takes an archive");
    archive
}

fn origin() -> &'static Files {
    static ORIGIN: OnceLock<Files> = OnceLock::new();
    ORIGIN.get_or_init(|| {
        let mut files = Files::default();
        files[0] = Some(whole_archive());
        files
    })
}

/// Says that what a frame holds is sealed, too.
const INSIDE: u8 = 0x80;

/// Makes the checksum of what a frame holds right again: a page that describes a class, or a namespace's record.
fn seal_body(kind: &[u8], body: &mut [u8]) -> Option<()> {
    let covered = body.len().checked_sub(8)?;
    let seed = match kind {
        b"CLAS" => 0,
        b"NSPC" => u64::from(u16::from_le_bytes(body.get(60..62)?.try_into().ok()?)),
        _ => return None,
    };
    let sum = xxh3_64_with_seed(&body[..covered], seed);
    body[covered..].copy_from_slice(&sum.to_le_bytes());
    Some(())
}

/// Makes the checksums of a frame right again, or does nothing if there is no such frame. Returns whether what it holds was
/// sealed, too.
fn seal_frame(archive: &mut [u8], frame: u8) -> bool {
    let mut sealed = false;
    let _ = try_seal_frame(archive, frame, &mut sealed);
    sealed
}

fn try_seal_frame(archive: &mut [u8], frame: u8, sealed: &mut bool) -> Option<()> {
    let index = usize::from(frame & !INSIDE);
    let inside = frame & INSIDE != 0;
    let mut start = PAGE_BYTES;
    for number in 0..=index {
        let len = archive.get(start + 16..start + 24)?;
        let len = usize::try_from(u64::from_le_bytes(len.try_into().ok()?)).ok()?;
        let end = start.checked_add(HEAD_BYTES)?.checked_add(len)?.checked_add(8)?;
        let frame = archive.get_mut(start..end)?;
        if number == index {
            let (head, rest) = frame.split_at_mut(HEAD_BYTES);
            *sealed = inside && seal_body(&head[..4], &mut rest[..len]).is_some();
            let sum = xxh3_64(&frame[..HEAD_BYTES - 8]);
            frame[HEAD_BYTES - 8..HEAD_BYTES].copy_from_slice(&sum.to_le_bytes());
            let sum = xxh3_64_with_seed(&frame[HEAD_BYTES..HEAD_BYTES + len], number as u64);
            frame[HEAD_BYTES + len..].copy_from_slice(&sum.to_le_bytes());
        }
        start = end;
    }
    Some(())
}

/// Imports the archive that `input` stands for.
///
/// # Panics
///
/// If the store breaks a promise.
pub fn run(input: &[u8]) {
    let (archive, is_known, may_be_newer) = match input.split_first() {
        Some((first, changes)) if first % 2 == 1 => {
            let (frame, changes) = changes.split_first().unwrap_or((&0, &[]));
            let mut image = Image::damaged(origin(), changes);
            let mut archive = image.files[0].take().unwrap_or_default();
            let forged = seal_frame(&mut archive, *frame);
            (archive, !forged, image.sealed || forged)
        }
        Some((_, archive)) => (archive.to_vec(), false, true),
        None => (Vec::new(), false, true),
    };
    let disk = Disk::new();
    let imported = match import_in(Arc::new(disk.clone()), &mut archive.as_slice(), &mut |_| {}) {
        Ok(imported) => imported.groups.iter().map(|group| group.imported).sum::<u64>(),
        Err(ArchiveError::NotAnArchive | ArchiveError::Damaged { .. }) => return,
        Err(ArchiveError::Store(StoreError::NewerFormat { .. } | StoreError::UnknownFeatures { .. }))
            if may_be_newer =>
        {
            return;
        }
        Err(ArchiveError::Store(StoreError::InvalidClass { .. }) | ArchiveError::NoRoom { .. }) if !is_known => return,
        Err(error) => panic!("no reason to refuse an archive: {error}"),
    };
    let store = ReadOnly::open_in(Arc::new(disk.clone())).expect("an import leaves a store");
    let report = store.verify(&mut |_, _| {});
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.classes.iter().map(|class| class.good).sum::<u64>(), imported);
    if !is_known {
        return;
    }
    let (store, _) = open(&disk).expect("an import leaves a store");
    for class in classes() {
        for record in store.take_records(class.group) {
            assert!(is_read(&store, &class, record.slot, &key_of(&record), true), "not whole: {record:?}");
        }
    }
}
