//! Carrying records from one store to another.

use std::path::Path;

use reprise_core::Digest;
use reprise_disk::tools::{self, ArchiveError, Exported, Filter, Imported, ReadOnly};
use reprise_disk::{Store, StoreError};

use crate::fixture::{DRAFT, Filling, HISTORY, WINDOW, classes, names, options, read_all, tenant};

/// One path used at 30 with a checkpoint at its end, one used at 20 that branches off, one of another tenant.
fn source(dir: &Path) {
    let mut filling = Filling::new(dir, 16, 8, 3);
    for (tenant, path, last_use) in
        [(0, "z", 20), (0, "zy", 20), (0, "a", 7), (0, "ab", 8), (0, "abc", 9), (2, "a", 3), (2, "ab", 4)]
    {
        filling.block(tenant, path, last_use);
    }
    filling.checkpoint(0, "zy", 19).checkpoint(0, "abc", 30).checkpoint(2, "ab", 5);
}

const TENANT_0: [&str; 9] = ["0a", "0ab", "0abc", "0z", "0zy", "1abc", "1zy", "2abc", "2zy"];

fn export(dir: &Path, filter: &Filter) -> (Vec<u8>, Exported) {
    let mut archive = Vec::new();
    let exported = tools::export(&ReadOnly::open(dir).unwrap(), filter, &mut archive, &mut |_, _| {}).unwrap();
    (archive, exported)
}

fn import(dir: &Path, archive: &[u8]) -> Result<Imported, ArchiveError> {
    tools::import(dir, &mut &*archive, &mut |_| {})
}

/// Imported, present, full and unreachable, by group.
fn counts(imported: &Imported) -> Vec<[u64; 4]> {
    imported.groups.iter().map(|group| [group.imported, group.present, group.full, group.unreachable]).collect()
}

#[test]
fn an_import_does_not_lose_or_alter_a_record() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    source(from.path());
    let (before, _) = read_all(from.path(), 16, 8);
    let (archive, exported) = export(from.path(), &Filter::default());
    assert_eq!((exported.namespaces, exported.left_out), (2, 0));
    assert_eq!(exported.groups.iter().map(|group| group.records).collect::<Vec<_>>(), [7, 3, 3]);

    // The store is made, with the quotas of the other; what it has not, and then all of it, is there already.
    let (part, _) = export(from.path(), &Filter { namespaces: Some([2].into()), ..Filter::default() });
    assert_eq!(counts(&import(to.path(), &part).unwrap()), [[2, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]);
    assert_eq!(counts(&import(to.path(), &archive).unwrap()), [[5, 2, 0, 0], [2, 1, 0, 0], [2, 1, 0, 0]]);
    assert_eq!(counts(&import(to.path(), &archive).unwrap()), [[0, 7, 0, 0], [0, 3, 0, 0], [0, 3, 0, 0]]);

    let (after, report) = read_all(to.path(), 16, 8);
    assert_eq!((report.dropped(), report.classes[0].slots_before), (0, None), "{report}");
    assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    let advisory = |record: &reprise_disk::Recovered| (record.last_use, record.position, record.digest);
    assert!(after.iter().all(|(name, record)| advisory(record) == advisory(&before[name])));
    let pairs = |group| after.iter().filter(move |(name, _)| name.0 == group).map(|(_, record)| record.slot);
    assert!(pairs(WINDOW).eq(pairs(DRAFT)), "a checkpoint has one slot in all of its groups");
}

#[test]
fn an_export_of_a_part_does_not_lack_what_leads_to_it() {
    let dir = tempfile::tempdir().unwrap();
    source(dir.path());
    let of_tenant_0 = || Filter { namespaces: Some([0].into()), ..Filter::default() };
    for (filter, expected) in [
        (of_tenant_0(), TENANT_0.to_vec()),
        (Filter { group: Some(HISTORY), ..of_tenant_0() }, vec!["0a", "0ab", "0abc", "0z", "0zy"]),
        (Filter { positions: 384..385, ..of_tenant_0() }, vec!["0a", "0ab", "0abc", "1abc", "2abc"]),
        (
            Filter { digest_prefix: "017a79".into(), group: Some(DRAFT), ..of_tenant_0() },
            vec!["0z", "0zy", "1zy", "2zy"],
        ),
        (Filter { positions: 1000..2000, ..of_tenant_0() }, vec![]),
    ] {
        let to = tempfile::tempdir().unwrap();
        let imported = import(to.path(), &export(dir.path(), &filter).0).unwrap();
        assert_eq!(imported.stopped, None);
        let (after, _) = read_all(to.path(), 16, 8);
        assert_eq!(names(&after, 0), expected, "{filter:?}");
        assert_eq!(names(&after, 2), Vec::<String>::new());
    }
}

#[test]
fn a_store_that_gets_full_does_not_get_what_it_cannot_use() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    source(from.path());
    let (archive, _) = export(from.path(), &Filter::default());
    // Room for four more blocks and one more checkpoint.
    Filling::new(to.path(), 5, 2, 2).block(1, "q", 1).checkpoint(1, "q", 1);
    let imported = import(to.path(), &archive).unwrap();
    // `abc` was used last, by its checkpoint; then `zy`, of which the first block fits.
    assert_eq!(counts(&imported), [[4, 0, 2, 1], [1, 0, 0, 2], [1, 0, 0, 2]]);
    let (after, _) = read_all(to.path(), 5, 2);
    assert_eq!(names(&after, 0), ["0a", "0ab", "0abc", "0z", "1abc", "2abc"]);
    assert_eq!(names(&after, 1), ["0q", "1q", "2q"], "what was there is still there");
}

#[test]
fn records_of_another_layout_are_not_brought_in() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    source(from.path());
    let (archive, _) = export(from.path(), &Filter::default());
    let mut other = classes(16, 8);
    other[1].fingerprint = Digest([0xaa; 32]);
    let (store, _) = Store::open(to.path(), &other, &options()).unwrap();
    store.namespace(&tenant(0)).unwrap();
    assert!(matches!(import(to.path(), &archive), Err(ArchiveError::Store(StoreError::Locked { .. }))));
    for (group, slot) in [(HISTORY, 0), (WINDOW, 0)] {
        let mut buffer = reprise_disk::Buffer::zeroed(8192);
        store.put(group, slot, &crate::fixture::key(0, "q"), Digest::default(), 1, &mut buffer).unwrap();
    }
    drop(store);
    let error = import(to.path(), &archive).unwrap_err();
    assert!(matches!(&error, ArchiveError::Layout { group, .. } if group == "window"), "{error}");
    let (_, report) = Store::open(to.path(), &other, &options()).unwrap();
    assert_eq!((report.dropped(), report.classes[0].records, report.classes[1].records), (0, 1, 1));
    std::fs::write(from.path().join("notes"), "x").unwrap();
    assert!(matches!(import(from.path(), b"no archive"), Err(ArchiveError::NotAnArchive)));
}

#[test]
fn a_damaged_record_is_not_exported_nor_what_is_behind_it() {
    use std::os::unix::fs::FileExt;
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    source(from.path());
    // Slot 3 is block `ab`, slot 0 of the drafts belongs to `zy`.
    for (name, at) in [("history-11111111-0000.chunk", 3 * 8192 + 100), ("draft-33333333-0000.chunk", 100)] {
        let file = std::fs::File::options().write(true).open(from.path().join(name)).unwrap();
        file.write_all_at(b"garbage", at).unwrap();
    }
    let (archive, exported) = export(from.path(), &Filter { namespaces: Some([0].into()), ..Filter::default() });
    assert_eq!(exported.left_out, 6, "`ab`, `abc` and the two checkpoints");
    import(to.path(), &archive).unwrap();
    assert_eq!(names(&read_all(to.path(), 16, 8).0, 0), ["0a", "0z", "0zy"]);
}

/// Where the frames of an archive begin, and its length.
fn frames(archive: &[u8]) -> Vec<usize> {
    let next = |&at: &usize| {
        let body_bytes = archive.get(at + 16..at + 24)?;
        Some(at + 32 + u64::from_le_bytes(body_bytes.try_into().unwrap()) as usize + 8)
    };
    std::iter::successors(Some(4096), next).collect()
}

/// In every frame: a bit of each byte of its head and of what its body begins with, of its checksum, and of some of the rest.
#[test]
fn a_damaged_archive_does_not_bring_wrong_bytes_nor_pass_for_whole() {
    let from = tempfile::tempdir().unwrap();
    source(from.path());
    let (archive, _) = export(from.path(), &Filter { namespaces: Some([2].into()), ..Filter::default() });
    let check = |archive: &[u8], context: &str| {
        let to = tempfile::tempdir().unwrap();
        let result = import(to.path(), archive);
        let is_whole =
            |imported: &Imported| imported.stopped.is_none() && imported.groups.iter().all(|group| group.damaged == 0);
        assert!(!result.as_ref().is_ok_and(is_whole), "{context}: {result:?}");
        // What came in reads back right.
        if let Ok(imported) = result {
            let (after, report) = read_all(to.path(), 16, 8);
            assert_eq!(report.dropped(), 0, "{context}");
            let imported: u64 = imported.groups.iter().map(|group| group.imported).sum();
            assert_eq!(after.len() as u64, imported, "{context}");
        }
    };
    let frames = frames(&archive);
    assert_eq!((frames.len(), frames.last()), (3 + 1 + 4 + 1 + 1, Some(&archive.len())));
    let places = frames.windows(2).flat_map(|frame| {
        let (start, end) = (frame[0], frame[1]);
        (start..end).filter(move |at| at - start < 32 + 136 || end - at <= 8 || at % 997 == 0)
    });
    for at in (0..4096).step_by(61).chain(places) {
        let mut flipped = archive.clone();
        flipped[at] ^= 1 << (at % 8);
        check(&flipped, &format!("byte {at} of {}", archive.len()));
    }
    for len in (0..archive.len()).step_by(1009) {
        check(&archive[..len], &format!("the first {len} bytes"));
    }
}
