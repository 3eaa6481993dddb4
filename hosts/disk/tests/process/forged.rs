//! Files that say of themselves whatever they like, under checksums that are right, read with little memory to be had. What a
//! length or a count asks for must not be taken before the bytes are there.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use reprise_disk::tools::{ArchiveError, Filter, Imported, Maintenance, Removal, export, import};
use reprise_disk::{ReadOnly, Store};
use rustix::process::Resource;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::fixture::{HISTORY, classes, filled, get, key, options};
use crate::{in_child, limit};

/// Memory that the child may have, in bytes of addresses: far more than it needs, and less than one lie asks for.
const MEMORY_BYTES: u64 = 1 << 30;
const PAGE_BYTES: usize = 4096;
/// Where fields of a table's header page lie.
const PAYLOAD_BYTES_AT: usize = 64;
const SLOTS_AT: usize = 72;
const SECTIONS_AT: usize = 152;

/// The archive of a store with one block and the checkpoint at its end.
fn archive() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path()));
    let mut archive = Vec::new();
    let exported = export(&ReadOnly::open(dir.path()).unwrap(), &Filter::default(), &mut archive, &mut |_, _| {});
    assert_eq!(exported.unwrap().groups.iter().map(|group| group.records).sum::<u64>(), 2);
    archive
}

fn seal_page(page: &mut [u8]) {
    let sum = xxh3_64(&page[..PAGE_BYTES - 8]);
    page[PAGE_BYTES - 8..PAGE_BYTES].copy_from_slice(&sum.to_le_bytes());
}

/// Where the frames of an archive begin.
fn frames(archive: &[u8]) -> Vec<usize> {
    let next = |&at: &usize| {
        let body_bytes = archive.get(at + 16..at + 24)?;
        Some(at + 40 + u64::from_le_bytes(body_bytes.try_into().unwrap()) as usize)
    };
    std::iter::successors(Some(PAGE_BYTES), next).collect()
}

/// Changes the header of class number `index`, which is the body of the frame with that number, and makes all checksums right.
fn forge_class(archive: &mut [u8], index: usize, forge: impl FnOnce(&mut [u8])) {
    let start = frames(archive)[index] + 32;
    let (body, sum) = archive[start..].split_at_mut(PAGE_BYTES);
    forge(body);
    seal_page(body);
    sum[..8].copy_from_slice(&xxh3_64_with_seed(body, index as u64).to_le_bytes());
}

/// A payload of so many bytes in one section more than it had.
fn forge_payload(header: &mut [u8], payload_bytes: u64) {
    let sections = u32::from_le_bytes(header[80..84].try_into().unwrap()) as usize;
    header[PAYLOAD_BYTES_AT..][..8].copy_from_slice(&payload_bytes.to_le_bytes());
    header[SECTIONS_AT + 8 * (sections - 1)..][..8].copy_from_slice(&payload_bytes.to_le_bytes());
}

/// The head of a frame, sealed.
fn head(kind: &[u8; 4], number: u64, body_bytes: u64) -> Vec<u8> {
    let mut head = [kind.as_slice(), &[0; 4], &number.to_le_bytes(), &body_bytes.to_le_bytes()].concat();
    let sum = xxh3_64(&head);
    head.extend_from_slice(&sum.to_le_bytes());
    head
}

fn try_import(archive: &[u8]) -> Result<Imported, ArchiveError> {
    import(tempfile::tempdir().unwrap().path(), &mut &*archive, &mut |_| {})
}

#[test]
fn a_forged_archive_does_not_get_memory_for_what_it_does_not_hold() {
    if !in_child("forged::a_forged_archive_does_not_get_memory_for_what_it_does_not_hold", 60_004) {
        return;
    }
    let archive = archive();
    limit(Resource::As, MEMORY_BYTES);
    // A number of slots that no disk has room for: the records come in all the same, into as many as there is room for.
    let mut slots = archive.clone();
    for class in 0..2 {
        forge_class(&mut slots, class, |header| header[SLOTS_AT..][..4].copy_from_slice(&u32::MAX.to_le_bytes()));
    }
    let imported = try_import(&slots).unwrap();
    assert_eq!(imported.groups.iter().map(|group| group.imported).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(imported.stopped, None);

    // Records of 640 MiB, of which there is one slot: the store has memory for one, and there is none for a second before its
    // bytes have come. A frame is not as long as that, and one that says so ends too early.
    let payload_bytes = 640 << 20;
    let mut payload = archive.clone();
    forge_class(&mut payload, 0, |header| {
        forge_payload(header, payload_bytes);
        header[SLOTS_AT..][..4].copy_from_slice(&1_u32.to_le_bytes());
    });
    let first_record = frames(&payload)[3];
    let mut long = payload[..first_record].to_vec();
    let slot_bytes = (payload_bytes + 72 + 8 * 3).next_multiple_of(4096);
    long.extend(head(b"RECD", 3, 8 + 128 + slot_bytes));
    long.extend(std::iter::repeat_n(7, 3 << 20));
    for (archive, damaged, stopped) in
        [(&payload, 1, None), (&long, 0, Some("the archive is not whole: it is cut off"))]
    {
        match try_import(archive) {
            Ok(imported) => {
                assert_eq!((imported.groups[0].damaged, imported.stopped.as_deref()), (damaged, stopped));
                assert!(imported.groups.iter().all(|group| group.imported == 0), "{imported:?}");
            }
            // Where there is not so much space.
            Err(ArchiveError::NoRoom { group, .. }) => assert_eq!(group, "history"),
            Err(error) => panic!("{error}"),
        }
    }

    // More than there can be.
    let mut both = archive.clone();
    forge_class(&mut both, 0, |header| {
        forge_payload(header, u64::from(u32::MAX) - 7);
        header[SLOTS_AT..][..4].copy_from_slice(&u32::MAX.to_le_bytes());
    });
    assert!(matches!(try_import(&both), Err(ArchiveError::Damaged { .. })));

    // The same class or namespace without end.
    for frame in [0, 2] {
        let (start, end) = (frames(&archive)[frame], frames(&archive)[frame + 1]);
        let mut endless = archive[..end].to_vec();
        let body = archive[start + 32..end - 8].to_vec();
        let kind: [u8; 4] = archive[start..start + 4].try_into().unwrap();
        for number in frame as u64 + 1..frame as u64 + 3 {
            endless.extend(head(&kind, number, body.len() as u64));
            endless.extend_from_slice(&body);
            endless.extend(xxh3_64_with_seed(&body, number).to_le_bytes());
        }
        let error = try_import(&endless).unwrap_err();
        assert!(error.to_string().contains("is described twice"), "{error}");
    }
}

fn forge_file(path: &Path, forge: impl FnOnce(&mut [u8])) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut page = vec![0; PAGE_BYTES];
    file.read_exact_at(&mut page, 0).unwrap();
    forge(&mut page);
    seal_page(&mut page);
    file.write_all_at(&page, 0).unwrap();
}

#[test]
fn forged_headers_of_a_store_do_not_get_memory_for_what_it_does_not_hold() {
    if !in_child("forged::forged_headers_of_a_store_do_not_get_memory_for_what_it_does_not_hold", 60_005) {
        return;
    }
    let (dir, archive) = (tempfile::tempdir().unwrap(), archive());
    drop(filled(dir.path()));
    limit(Resource::As, MEMORY_BYTES);
    // Four thousand million slots, each in a chunk file of its own, of which there are as many as before.
    forge_file(&dir.path().join("history-11111111.table"), |header| {
        header[SLOTS_AT..][..4].copy_from_slice(&u32::MAX.to_le_bytes());
        header[SLOTS_AT + 4..][..4].copy_from_slice(&1_u32.to_le_bytes());
    });
    // Files that are long and hold next to nothing.
    for name in ["catalogue", "superblock", "LOCK"] {
        File::options().write(true).open(dir.path().join(name)).unwrap().set_len(1 << 40).unwrap();
    }
    let store = ReadOnly::open(dir.path()).unwrap();
    assert_eq!(store.namespaces().len(), 1);
    let records = |store: &ReadOnly| store.inventory().unwrap().shelf(HISTORY).unwrap().records.len();
    assert!(records(&store) > 0);
    let report = store.verify(&mut |_, _| {});
    assert_eq!(report.classes.iter().map(|class| class.records).sum::<u64>(), 15);
    let mut copy = Vec::new();
    export(&store, &Filter::default(), &mut copy, &mut |_, _| {}).unwrap();
    drop(store);

    let imported = import(dir.path(), &mut &*archive, &mut |_| {}).unwrap();
    assert_eq!(imported.groups.iter().map(|group| group.present).collect::<Vec<_>>(), [1, 1]);
    let maintenance = Maintenance::open(dir.path()).unwrap();
    let inventory = maintenance.reader().inventory().unwrap();
    let removal = Removal::least_recent(&inventory, HISTORY, 1).unwrap();
    maintenance.remove(&removal, &mut |_, _| {}).unwrap();
    drop(maintenance);

    let (store, report) = Store::open(dir.path(), &classes(), &options()).unwrap();
    assert!(report.classes[0].records > 0, "{report}");
    get(&store, HISTORY, 0, &key(0, 0)).unwrap();
}
