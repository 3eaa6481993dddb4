//! Taking records out.

use std::os::unix::fs::FileExt;

use reprise_disk::tools::{Fault, Filter, Maintenance, ReadOnly, Removal};
use reprise_disk::{Store, StoreError};

use crate::fixture::{
    DRAFT, Filling, HISTORY, WINDOW, chunk_bytes, classes, mark, names, options, read_all, remove, tenant,
};

/// Two tenants whose slots alternate, each with a path, a branch and checkpoints.
fn two_tenants(dir: &std::path::Path) {
    let mut filling = Filling::new(dir, 16, 8, 2);
    for (path, last_use) in [("a", 10), ("ab", 20), ("abc", 30), ("x", 5)] {
        filling.block(0, path, last_use).block(1, path, last_use);
    }
    for path in ["ab", "abc", "x"] {
        filling.checkpoint(0, path, 15).checkpoint(1, path, 15);
    }
    // A record of tenant 1 that was evicted long ago: its bytes are still in the chunk.
    filling.put(HISTORY, 12, 1, "gone", 1);
    filling.store.free(HISTORY, 12).unwrap();
}

const ALL: [&str; 10] = ["0a", "0ab", "0abc", "0x", "1ab", "1abc", "1x", "2ab", "2abc", "2x"];

#[test]
fn a_purge_of_one_tenant_does_not_touch_another_nor_leave_a_byte_behind() {
    let dir = tempfile::tempdir().unwrap();
    two_tenants(dir.path());
    let contains = |tenant| chunk_bytes(dir.path()).windows(16).any(|window| window == mark(tenant));
    assert!(contains(1));
    let (before, _) = read_all(dir.path(), 16, 8);
    let inventory = ReadOnly::open(dir.path()).unwrap().inventory().unwrap();
    let filter = Filter { namespaces: Some([1].into()), ..Filter::default() };
    let removal = Removal::matching(&inventory, &filter, None);
    assert_eq!((removal.named.len(), removal.behind.len()), (10, 0));
    let returned = remove(dir.path(), &removal);
    assert!(returned >= 10 * 8192, "{returned} bytes came back");
    assert!(!contains(1) && contains(0), "bytes of the tenant are still there");

    let (after, report) = read_all(dir.path(), 16, 8);
    assert_eq!(report.dropped(), 0, "{report}");
    assert_eq!(names(&after, 1), Vec::<String>::new());
    assert_eq!(names(&after, 0), ALL);
    assert!(after.iter().all(|(name, record)| before[name] == *record), "slots and last uses are as they were");
}

#[test]
fn a_block_that_is_purged_does_not_leave_what_it_led_to() {
    let dir = tempfile::tempdir().unwrap();
    two_tenants(dir.path());
    let removal = |filter: Filter, unused_since| {
        let inventory = ReadOnly::open(dir.path()).unwrap().inventory().unwrap();
        Removal::matching(&inventory, &filter, unused_since)
    };
    let of_tenant_0 = || Filter { namespaces: Some([0].into()), ..Filter::default() };
    let cases = [
        (Filter { positions: 200..300, ..of_tenant_0() }, None, (3, 3)),
        (Filter { positions: 200..300, group: Some(HISTORY), ..of_tenant_0() }, None, (1, 5)),
        (Filter { group: Some(WINDOW), ..of_tenant_0() }, None, (3, 3)),
        (Filter { digest_prefix: "0161".into(), ..of_tenant_0() }, None, (7, 0)),
        (Filter { digest_prefix: "016".into(), group: Some(DRAFT), ..Filter::default() }, None, (2, 2)),
        // Block `a` was last used at 10, but the path through it at 30; the checkpoint at `x` keeps its block, last used at 5.
        (of_tenant_0(), Some(15), (0, 0)),
        (of_tenant_0(), Some(16), (7, 0)),
        (Filter::default(), Some(31), (20, 0)),
    ];
    for (filter, unused_since, expected) in cases {
        let removal = removal(filter.clone(), unused_since);
        assert_eq!((removal.named.len(), removal.behind.len()), expected, "{filter:?} {unused_since:?}: {removal:?}");
    }
    remove(dir.path(), &removal(Filter { positions: 200..300, ..of_tenant_0() }, None));
    let (after, _) = read_all(dir.path(), 16, 8);
    assert_eq!(names(&after, 0), ["0a", "0x", "1x", "2x"]);
    assert_eq!(names(&after, 1), ALL);
}

#[test]
fn an_eviction_does_not_take_what_was_used_later() {
    let dir = tempfile::tempdir().unwrap();
    two_tenants(dir.path());
    let inventory = ReadOnly::open(dir.path()).unwrap().inventory().unwrap();
    // Eight of sixteen slots are free already.
    assert!(Removal::least_recent(&inventory, HISTORY, 8).unwrap().is_empty());
    assert_eq!(Removal::least_recent(&inventory, HISTORY, 17), None);
    let removal = Removal::least_recent(&inventory, HISTORY, 11).unwrap();
    // Both `x` went first, then one of the two `abc`; with each its checkpoint.
    assert_eq!((removal.named.len(), removal.behind.len()), (3, 6));
    let removal = Removal::least_recent(&inventory, DRAFT, 4).unwrap();
    assert_eq!((removal.named.len(), removal.behind.len()), (2, 2));
    remove(dir.path(), &removal);
    let (after, _) = read_all(dir.path(), 16, 8);
    assert_eq!(names(&after, 0).into_iter().chain(names(&after, 1)).filter(|name| name.ends_with('x')).count(), 2);
    assert_eq!(names(&after, 0).iter().filter(|name| name.starts_with('0')).count(), 4);

    let inventory = ReadOnly::open(dir.path()).unwrap().inventory().unwrap();
    remove(dir.path(), &Removal::least_recent(&inventory, HISTORY, 16).unwrap());
    assert!(read_all(dir.path(), 16, 8).0.is_empty());
    assert_eq!(chunk_bytes(dir.path()).len(), 0, "chunks without a record are files no more");
}

#[test]
fn a_repair_does_not_leave_damage_nor_take_what_is_good() {
    let dir = tempfile::tempdir().unwrap();
    two_tenants(dir.path());
    let write = |name: &str, at: u64| {
        let file = std::fs::File::options().write(true).open(dir.path().join(name)).unwrap();
        file.write_all_at(b"garbage", at).unwrap();
    };
    // Slot 2 is `ab` of tenant 0, slot 3 that of tenant 1; slot 5 of the windows is `x` of tenant 1.
    write("history-11111111-0000.chunk", 2 * 8192 + 4100);
    write("window-22222222.table", 4096 + 5 * 128 + 50);
    write("draft-33333333-0000.chunk", 7000 + 20);
    let store = Maintenance::open(dir.path()).unwrap();
    let report = store.reader().verify(&mut |_, _| {});
    let found: Vec<_> = report
        .findings()
        .map(|finding| {
            let position = finding.record.map(|record| (record.namespace, record.position));
            (finding.file.as_str(), finding.slot, finding.fault.clone(), position)
        })
        .collect();
    assert_eq!(
        found,
        [
            ("draft-33333333-0000.chunk", 0, Fault::Trailer, Some((0, 256))),
            ("history-11111111-0000.chunk", 2, Fault::Section { index: 1 }, Some((0, 256))),
            ("window-22222222.table", 5, Fault::Entry, None),
        ]
    );
    let inventory = store.reader().inventory().unwrap();
    let removal = Removal::damaged(&inventory, &report);
    assert_eq!(removal.named.len(), 3);
    store.remove(&removal, &mut |_, _| {}).unwrap();
    assert!(store.reader().verify(&mut |_, _| {}).is_clean());
    drop(store);
    let (after, report) = read_all(dir.path(), 16, 8);
    assert_eq!(report.dropped(), 0, "{report}");
    assert_eq!(names(&after, 0), ["0a", "0x", "1x", "2x"]);
    assert_eq!(names(&after, 1), ["0a", "0ab", "0abc", "0x", "1ab", "1abc", "2ab", "2abc"]);
    let inventory = ReadOnly::open(dir.path()).unwrap().inventory().unwrap();
    assert!(Removal::least_recent(&inventory, HISTORY, 0).unwrap().is_empty(), "nothing is unreachable");
}

#[test]
fn a_file_that_is_missing_does_not_stop_an_eviction() {
    let dir = tempfile::tempdir().unwrap();
    two_tenants(dir.path());
    let store = Maintenance::open(dir.path()).unwrap();
    let inventory = store.reader().inventory().unwrap();
    let removal = Removal::least_recent(&inventory, HISTORY, 14).unwrap();
    // Somebody was faster.
    for chunk in ["history-11111111-0000.chunk", "window-22222222-0000.chunk", "draft-33333333-0001.chunk"] {
        std::fs::remove_file(dir.path().join(chunk)).unwrap();
    }
    let removed = store.remove(&removal, &mut |_, _| {}).unwrap();
    assert!(removed.records > 0);
    drop(store);
    let (store, _) = Store::open(dir.path(), &classes(16, 8), &options()).unwrap();
    for slot in 0..16 {
        store.free(HISTORY, slot).unwrap();
    }
}

#[test]
fn a_store_in_use_or_half_known_is_not_worked_on() {
    let dir = tempfile::tempdir().unwrap();
    two_tenants(dir.path());
    let (store, _) = Store::open(dir.path(), &classes(16, 8), &options()).unwrap();
    assert!(matches!(Maintenance::open(dir.path()), Err(StoreError::Locked { .. })));
    drop(store);
    let missing = dir.path().join("missing");
    assert!(matches!(Maintenance::open(&missing), Err(StoreError::NotAStore { .. })) && !missing.exists());

    // With a damaged header, nobody knows what the table holds: an open with other classes would drop it.
    let table = dir.path().join("window-22222222.table");
    std::fs::File::options().write(true).open(&table).unwrap().write_all_at(b"garbage", 50).unwrap();
    let before = std::fs::read(&table).unwrap();
    let error = Maintenance::open(dir.path()).unwrap().reader().inventory().unwrap_err();
    assert!(matches!(&error, StoreError::Unsettled { .. }), "{error}");
    assert!(error.to_string().contains("window-22222222"), "{error}");
    assert_eq!(std::fs::read(&table).unwrap(), before);
    let (_, report) = read_all(dir.path(), 16, 8);
    assert_eq!(report.dropped(), 0);
    assert_eq!(ReadOnly::open(dir.path()).unwrap().namespaces(), [tenant(0), tenant(1)]);
}
