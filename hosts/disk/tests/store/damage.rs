//! Damaged files: a miss or the right bytes, and never a store that does not open.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use reprise_core::Digest;
use reprise_disk::{Buffer, GroupClass, Miss, OpenReport, Options, Store, StoreError};

use crate::fixture::{HISTORY, WINDOW, classes, filled, filled_with, get, key, open, options, put, tenant};

const SUPERBLOCK: &str = "superblock";
const CATALOGUE: &str = "catalogue";
const TABLES: [&str; 2] = ["history-11111111.table", "window-22222222.table"];

/// A directory in memory where there is one: these tests open and sync a store thousands of times.
fn fast_directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Which records of the filled store can be read; fails on wrong bytes.
fn readable(store: &Store) -> Vec<(u8, u32)> {
    let slots = classes().into_iter().flat_map(|class| (0..class.slots).map(move |slot| (class.group, slot)));
    slots.filter(|(group, slot)| get(store, *group, *slot, &key(0, *slot as u8)).is_ok()).collect()
}

struct Snapshot(BTreeMap<PathBuf, Vec<u8>>);

impl Snapshot {
    fn take(dir: &Path) -> Self {
        let paths = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        Self(
            paths
                .filter(|path| !path.ends_with("LOCK"))
                .map(|path| (path.clone(), std::fs::read(path).unwrap()))
                .collect(),
        )
    }

    fn restore(&self) {
        self.0.iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
    }
}

#[test]
fn no_flipped_byte_of_the_small_files_stops_an_open_or_costs_more_than_it_must() {
    let dir = fast_directory();
    let mut few = classes();
    (few[0].slots, few[1].slots) = (2, 1);
    drop(filled_with(dir.path(), &few));
    let snapshot = Snapshot::take(dir.path());
    for name in [SUPERBLOCK, CATALOGUE, TABLES[0], TABLES[1]] {
        let path = dir.path().join(name);
        let original = snapshot.0[&path].clone();
        for offset in 0..original.len() {
            let mut bytes = original.clone();
            bytes[offset] ^= 1 << (offset % 8);
            std::fs::write(&path, &bytes).unwrap();
            let (store, report) = Store::open(dir.path(), &few, &options()).unwrap();
            let left = readable(&store).len();
            assert_eq!(left as u64, report.classes.iter().map(|class| class.records).sum::<u64>());
            assert_eq!(left as u64 + report.dropped(), 3, "{name} {offset}");
            let least = match name {
                SUPERBLOCK => 3,
                CATALOGUE => 0,
                // One entry is damaged at most; the header can be done without.
                _ => 3 - usize::from(offset >= 4096),
            };
            assert!(left >= least, "{name} {offset}: {left} records are left");
            drop(store);
            for changed in [SUPERBLOCK, CATALOGUE, TABLES[0], TABLES[1]].map(|name| dir.path().join(name)) {
                if std::fs::read(&changed).unwrap() != snapshot.0[&changed] {
                    std::fs::write(&changed, &snapshot.0[&changed]).unwrap();
                }
            }
        }
    }
}

#[test]
fn no_flipped_byte_of_a_record_is_ever_read() {
    let dir = fast_directory();
    let buffered = Options { direct: false, ..options() };
    drop(filled(dir.path()));
    let (store, _) = Store::open(dir.path(), &classes(), &buffered).unwrap();
    for (class, slot) in [(&classes()[0], 1), (&classes()[1], 2)] {
        let name = format!("{}-0000.chunk", TABLES[usize::from(class.group)].trim_end_matches(".table"));
        let file = std::fs::File::options().read(true).write(true).open(dir.path().join(name)).unwrap();
        let trailer_end = class.payload_bytes.next_multiple_of(8) + 72 + 8 * class.sections.len() as u64;
        for offset in 0..class.slot_bytes() {
            let at = slot * class.slot_bytes() + offset;
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ (1 << (offset % 8))], at).unwrap();
            let whole = get(&store, class.group, slot as u32, &key(0, slot as u8));
            let in_section = class.sections.iter().position(|end| offset < *end);
            match whole {
                Err(Miss::Corrupt { section }) => assert_eq!(section, in_section, "offset {offset}"),
                // What nobody reads may be anything: the gap before the trailer is part of no section.
                Ok(()) => assert!(
                    in_section.is_none() && !(class.payload_bytes.next_multiple_of(8)..trailer_end).contains(&offset)
                ),
                other => panic!("offset {offset}: {other:?}"),
            }
            // The other sections of a damaged record are still good.
            if let Some(damaged) = in_section {
                for section in 0..class.sections.len() {
                    let mut buffer = Buffer::new();
                    let part = store.get_sections(
                        class.group,
                        slot as u32,
                        &key(0, slot as u8),
                        section..section + 1,
                        &mut buffer,
                    );
                    assert_eq!(part.is_ok(), section != damaged, "offset {offset}, section {section}");
                }
            }
            file.write_all_at(&byte, at).unwrap();
        }
        get(&store, class.group, slot as u32, &key(0, slot as u8)).unwrap();
    }
}

#[test]
fn a_file_cut_short_missing_or_overwritten_is_no_error_of_open() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path()));
    let snapshot = Snapshot::take(dir.path());
    for (path, bytes) in &snapshot.0 {
        let lengths = [0, 1, 511, 4095, 4096, 4096 + 127, 4096 + 300, 12_288, 30_000];
        let mut damaged: Vec<Option<Vec<u8>>> = vec![None, Some(vec![0; bytes.len()]), Some(vec![0xff; bytes.len()])];
        damaged.extend(lengths.into_iter().filter(|len| *len < bytes.len()).map(|len| Some(bytes[..len].to_vec())));
        damaged.extend(snapshot.0.values().filter(|other| *other != bytes).cloned().map(Some));
        for damage in damaged {
            match &damage {
                None => std::fs::remove_file(path).unwrap(),
                Some(bytes) => std::fs::write(path, bytes).unwrap(),
            }
            let (store, report) = open(dir.path());
            let left = readable(&store);
            let said: u64 = report.classes.iter().map(|class| class.records).sum();
            assert!(left.len() as u64 <= said, "{}: {report}", path.display());
            // The store is as good as new.
            let namespace = store.namespace(&tenant(5)).unwrap();
            put(&store, HISTORY, 9, &key(namespace, 200)).unwrap();
            put(&store, WINDOW, 4, &key(namespace, 201)).unwrap();
            drop(store);
            let (store, report) = open(dir.path());
            assert_eq!(report.dropped(), 0, "what was dropped is dropped once: {report}");
            get(&store, HISTORY, 9, &key(namespace, 200)).unwrap();
            get(&store, WINDOW, 4, &key(namespace, 201)).unwrap();
            drop(store);
            snapshot.restore();
        }
    }
}

/// What an open says after `damage`, and what can be read then.
fn after(damage: impl FnOnce(&Path)) -> (OpenReport, Vec<(u8, u32)>) {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path()));
    damage(dir.path());
    let (store, report) = open(dir.path());
    let left = readable(&store);
    (report, left)
}

#[test]
fn the_reasons_for_what_is_gone_are_not_kept_secret() {
    let garble = |path: PathBuf, at: u64, bytes: &[u8]| {
        std::fs::File::options().write(true).open(path).unwrap().write_all_at(bytes, at).unwrap();
    };
    let (report, left) = after(|dir| garble(dir.join(TABLES[0]), 4096 + 3 * 128 + 20, &[1, 2, 3]));
    assert_eq!((report.classes[0].dropped.damaged_entries, left.len()), (1, 14));
    assert!(!left.contains(&(HISTORY, 3)));

    let (report, left) = after(|dir| std::fs::remove_file(dir.join(CATALOGUE)).unwrap());
    assert_eq!(report.classes.iter().map(|class| class.dropped.unknown_namespace).sum::<u64>(), 15);
    assert_eq!((left.len(), report.namespaces), (0, 0));

    let (report, left) = after(|dir| std::fs::remove_file(dir.join("history-11111111-0001.chunk")).unwrap());
    assert_eq!((report.classes[0].dropped.missing_chunk, left.len()), (4, 11));

    let (report, left) = after(|dir| {
        let chunk = std::fs::File::options().write(true).open(dir.join("history-11111111-0001.chunk")).unwrap();
        chunk.set_len(3 * 12_288 - 1).unwrap();
    });
    assert_eq!((report.classes[0].dropped.missing_chunk, left.len()), (2, 13));
    assert!(report.to_string().contains("2 dropped (missing chunk file)"), "{report}");

    let (report, left) = after(|dir| garble(dir.join(TABLES[1]), 100, b"garbage"));
    assert_eq!((report.classes[1].header_repaired, left.len()), (true, 15));

    let (report, left) = after(|dir| garble(dir.join(SUPERBLOCK), 4096, b"garbage"));
    assert_eq!((report.superblock_repaired, left.len()), (true, 15));
}

#[test]
fn a_lost_superblock_is_written_again_as_long_as_one_header_says_whose_it_is() {
    let headers = [SUPERBLOCK, CATALOGUE, TABLES[0], TABLES[1]];
    let damage = |dir: &Path, count: usize| {
        for name in &headers[..count] {
            let file = std::fs::File::options().write(true).open(dir.join(name)).unwrap();
            file.write_all_at(&[0x55; 8192][..if *name == SUPERBLOCK { 8192 } else { 4096 }], 0).unwrap();
        }
    };
    // With the catalogue's header go all namespaces and so all records.
    for (count, records) in [(1, 15), (2, 0), (3, 0)] {
        let (report, left) = after(|dir| damage(dir, count));
        assert_eq!((report.superblock_repaired, report.created, left.len()), (true, false, records));
    }
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path()));
    damage(dir.path(), 4);
    let snapshot = Snapshot::take(dir.path());
    let error = Store::open(dir.path(), &classes(), &options()).unwrap_err();
    assert!(matches!(error, StoreError::SuperblockLost), "{error}");
    assert!(Snapshot::take(dir.path()).0 == snapshot.0);
}

#[test]
fn a_damaged_namespace_costs_it_and_the_later_ones_only() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    let mut ends = Vec::new();
    for number in 0..4 {
        assert_eq!(store.namespace(&tenant(number)).unwrap(), number as u16);
        put(&store, HISTORY, number as u32, &key(number as u16, 9)).unwrap();
        ends.push(std::fs::metadata(dir.path().join(CATALOGUE)).unwrap().len());
    }
    drop(store);
    let file = std::fs::File::options().write(true).open(dir.path().join(CATALOGUE)).unwrap();
    file.write_all_at(b"?", ends[1] + 10).unwrap();
    let (store, report) = open(dir.path());
    assert_eq!((report.namespaces, report.catalogue_cut_bytes), (2, ends[3] - ends[1]));
    assert_eq!(report.classes[0].dropped.unknown_namespace, 2);
    // A new namespace takes the number of a lost one, and none of its records.
    assert_eq!(store.namespace(&tenant(7)).unwrap(), 2);
    for (namespace, there) in [(0, true), (1, true), (2, false), (3, false)] {
        assert_eq!(get(&store, HISTORY, u32::from(namespace), &key(namespace, 9)).is_ok(), there);
    }
    drop(store);
    let (store, report) = open(dir.path());
    assert_eq!((report.namespaces, report.dropped(), report.catalogue_cut_bytes), (3, 0, 0));
    assert_eq!(store.namespaces()[2].1, tenant(7));
}

#[test]
fn an_entry_in_another_slot_or_table_is_not_believed() {
    // The same layout twice, in groups of different number and name.
    let twin = GroupClass { group: WINDOW, name: "twin".into(), ..classes().remove(0) };
    let classes = [classes().remove(0), twin];
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(dir.path(), &classes, &options()).unwrap();
    let namespace = store.namespace(&tenant(0)).unwrap();
    let mut buffer = Buffer::zeroed(10_001);
    for group in [HISTORY, WINDOW] {
        store.put(group, 0, &key(namespace, group), Digest([0; 32]), 0, &mut buffer).unwrap();
    }
    drop(store);
    let read = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
    let table = std::fs::File::options().write(true).open(dir.path().join(TABLES[0])).unwrap();
    table.write_all_at(&read(TABLES[0])[4096..4224], 4096 + 128).unwrap();
    table.write_all_at(&read("twin-11111111.table")[4096..4224], 4096).unwrap();
    let (store, report) = Store::open(dir.path(), &classes, &options()).unwrap();
    assert_eq!(report.classes[0].dropped.damaged_entries, 2);
    for slot in [0, 1] {
        assert!(matches!(store.get(HISTORY, slot, &key(namespace, 0), &mut buffer), Err(Miss::Absent)));
    }
    // Payloads that changed places with their entries in order are noticed as well.
    store.put(HISTORY, 0, &key(namespace, 0), Digest([0; 32]), 0, &mut Buffer::zeroed(10_001)).unwrap();
    let (from, to) = (dir.path().join("history-11111111-0000.chunk"), dir.path().join("twin-11111111-0000.chunk"));
    std::fs::write(to, std::fs::read(from).unwrap()).unwrap();
    assert!(matches!(store.get(WINDOW, 0, &key(namespace, 1), &mut buffer), Err(Miss::Corrupt { section: None })));
}

#[test]
fn a_chunk_that_vanishes_while_the_store_is_open_is_a_miss() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path()));
    let options = Options { open_files: 1, ..options() };
    let (store, _) = Store::open(dir.path(), &classes(), &options).unwrap();
    put(&store, HISTORY, 0, &key(0, 20)).unwrap();
    get(&store, HISTORY, 8, &key(0, 8)).unwrap();
    std::fs::remove_file(dir.path().join("history-11111111-0000.chunk")).unwrap();
    assert!(matches!(get(&store, HISTORY, 0, &key(0, 20)), Err(Miss::Absent)));
    get(&store, HISTORY, 8, &key(0, 8)).unwrap();
    // Nor does it stop what comes after.
    store.sync().unwrap();
    put(&store, HISTORY, 1, &key(0, 21)).unwrap();
    get(&store, HISTORY, 1, &key(0, 21)).unwrap();
    assert!(get(&store, HISTORY, 2, &key(0, 2)).is_err());
}
