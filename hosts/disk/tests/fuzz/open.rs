//! Opens what an input stands for, and checks what a store promises about it.

use std::sync::Arc;

use reprise_disk::{Buffer, GroupClass, Key, ReadOnly, Recovered, Store, StoreError};

use crate::fixture::{
    CHUNKS, Files, SLOTS_PER_CHUNK, TABLES, classes, fill, key, open, payload, read_files, write_files,
};
use crate::image::Image;

const PAGE_BYTES: usize = 4096;
const ENTRY_BYTES: usize = 128;
/// The part of an entry that does not change when the record is used.
const COVERED_BYTES: usize = 112;

/// Opens the directory that `input` stands for.
///
/// # Panics
///
/// If the store breaks a promise.
pub fn run(input: &[u8]) {
    let image = Image::parse(input);
    let disk = write_files(&image.files);
    if let Ok(store) = ReadOnly::open_in(Arc::new(disk.clone())) {
        store.verify(&mut |_, _| {});
    }
    assert!(read_files(&disk) == image.files, "reading has changed a file");
    let (store, report) = match open(&disk) {
        Ok(opened) => opened,
        Err(error) => {
            check_refusal(&image, &error);
            assert!(read_files(&disk) == image.files, "a directory that was refused has changed: {error}");
            return;
        }
    };
    assert!(report.notes.is_empty(), "the disk is sound: {report}");
    check_space(&store);
    let found = check_records(&image, &store);
    assert_eq!(
        found.iter().map(Vec::len).sum::<usize>() as u64,
        report.classes.iter().map(|class| class.records).sum()
    );
    check_owed(&image, &store);
    drop(store);

    // What had to go is gone, and counted once.
    let (store, report) = open(&disk).expect("a store that was opened opens again");
    assert!(!report.created && !report.superblock_repaired && report.catalogue_cut_bytes == 0, "{report}");
    assert!(report.dropped() == 0 && report.removed.is_empty() && report.notes.is_empty(), "{report}");
    assert!(report.classes.iter().all(|class| !class.header_repaired && class.slots_before.is_none()), "{report}");
    assert_eq!(classes().iter().map(|class| store.take_records(class.group)).collect::<Vec<_>>(), found);
    // And it is as good as new.
    fill(&store).expect("a store that opens takes records");
    check_space(&store);
    drop(store);
    let (store, _) = open(&disk).expect("a store that was opened opens again");
    for class in classes() {
        let records = store.take_records(class.group);
        assert_eq!(records.len(), class.slots as usize);
        for record in records {
            assert!(is_read(&store, &class, record.slot, &key_of(&record), true), "{record:?} was put just now");
        }
    }
}

fn check_refusal(image: &Image, error: &StoreError) {
    match error {
        StoreError::Foreign { .. } | StoreError::SuperblockLost => {}
        // Only a sound header says so.
        StoreError::NewerFormat { .. } | StoreError::UnknownFeatures { .. } => {
            assert!(image.origin.is_none() || image.sealed, "{error}");
        }
        _ => panic!("no reason to refuse a directory: {error}"),
    }
    if let Some(origin) = image.origin
        && !image.sealed
    {
        assert!(!has_sound_header(&image.files, origin), "a store is refused although it has a sound header: {error}");
    }
}

/// Whether a header that says whose directory it is has not been damaged.
fn has_sound_header(files: &Files, origin: &Files) -> bool {
    let pages = [(0, 0), (0, 1), (1, 0), (TABLES[0], 0), (TABLES[1], 0)];
    let page = |files: &Files, (place, page): (usize, usize)| -> Option<Vec<u8>> {
        files[place].as_ref()?.get(page * PAGE_BYTES..(page + 1) * PAGE_BYTES).map(<[u8]>::to_vec)
    };
    pages.into_iter().any(|at| page(files, at).is_some_and(|found| Some(found) == page(origin, at)))
}

fn check_space(store: &Store) {
    let usage = store.usage();
    for class in &usage.classes {
        assert!(class.allocated_bytes <= class.quota_bytes, "{class:?}");
    }
    let most: u64 = classes().iter().map(|class| (PAGE_BYTES + ENTRY_BYTES * class.slots as usize) as u64).sum();
    assert!(usage.table_bytes <= most, "{usage:?}");
}

pub fn key_of(record: &Recovered) -> Key {
    Key { namespace: record.namespace, digest: record.digest, position: record.position }
}

/// Reads a record. Whether it is there or not, no byte of it is wrong; `known` says that the input cannot have made one up.
pub fn is_read(store: &Store, class: &GroupClass, slot: u32, key: &Key, known: bool) -> bool {
    let mut buffer = Buffer::new();
    let result = store.get(class.group, slot, key, &mut buffer);
    match &result {
        Ok(()) if known => {
            assert!(buffer.bytes() == payload(class, key), "wrong bytes in slot {slot} of {}", class.name)
        }
        Ok(()) => assert_eq!(buffer.len() as u64, class.payload_bytes),
        Err(_) => assert!(buffer.is_empty(), "a miss left bytes in the buffer"),
    }
    result.is_ok()
}

/// Reads every record that the store offers, and every one that it may not offer.
fn check_records(image: &Image, store: &Store) -> Vec<Vec<Recovered>> {
    let known = image.origin.is_some();
    let check = |class: &GroupClass| {
        let records = store.take_records(class.group);
        assert!(records.windows(2).all(|pair| pair[0].slot < pair[1].slot));
        for record in &records {
            assert!(record.slot < class.slots, "{record:?}");
            is_read(store, class, record.slot, &key_of(record), known);
        }
        for slot in 0..class.slots {
            let key = key(slot);
            if is_read(store, class, slot, &key, known) {
                assert!(
                    records.iter().any(|record| record.slot == slot && key_of(record) == key),
                    "not offered: {key:?}"
                );
            }
        }
        records
    };
    classes().iter().map(check).collect()
}

/// A record of which nothing was damaged is there, whatever became of the others.
fn check_owed(image: &Image, store: &Store) {
    let Some(origin) = image.origin else { return };
    let same = |place: usize, start: usize, len: usize| {
        let part =
            |files: &Files| files[place].as_ref().and_then(|file| file.get(start..start + len)).map(<[u8]>::to_vec);
        part(&image.files).is_some() && part(&image.files) == part(origin)
    };
    let catalogue_bytes = origin[1].as_ref().map_or(0, Vec::len);
    for (index, class) in classes().iter().enumerate() {
        let slot_bytes = class.slot_bytes() as usize;
        let whole = (0..class.slots).filter(|slot| {
            let chunk = CHUNKS[index][(slot / SLOTS_PER_CHUNK) as usize];
            same(1, 0, catalogue_bytes)
                && (!image.sealed || same(TABLES[index], 0, PAGE_BYTES))
                && same(TABLES[index], PAGE_BYTES + *slot as usize * ENTRY_BYTES, COVERED_BYTES)
                && same(TABLES[index], PAGE_BYTES + *slot as usize * ENTRY_BYTES + 120, 8)
                && same(chunk, (slot % SLOTS_PER_CHUNK) as usize * slot_bytes, slot_bytes)
        });
        for slot in whole {
            assert!(is_read(store, class, slot, &key(slot), true), "slot {slot} of {} is lost", class.name);
        }
    }
}
