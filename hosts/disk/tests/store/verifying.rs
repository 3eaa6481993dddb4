//! Checking a store changes nothing and misses nothing.

use std::os::unix::fs::FileExt;

use reprise_disk::{ReadOnly, StoreError, VerifyReport};

use crate::fixture::{HISTORY, classes, filled, key, open, put};

fn verify(dir: &std::path::Path) -> VerifyReport {
    let mut steps = Vec::new();
    let report = ReadOnly::open(dir).unwrap().verify(&mut |done, total| steps.push((done, total)));
    assert!(steps.is_sorted() && steps.last() == Some(&(15, 15)), "{steps:?}");
    report
}

#[test]
fn a_good_store_in_use_is_not_called_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    store.free(HISTORY, 3).unwrap();
    let report = verify(dir.path());
    assert!(report.is_clean());
    assert_eq!(report.namespaces, 1);
    let counts: Vec<_> = report.classes.iter().map(|class| (class.stem.as_str(), class.records, class.good)).collect();
    assert_eq!(counts, [("history-11111111", 9, 9), ("window-22222222", 5, 5)]);
    let read_only = ReadOnly::open(dir.path()).unwrap();
    assert_eq!(read_only.classes().cloned().collect::<Vec<_>>(), classes());
    assert_eq!(read_only.namespaces()[0].model, "deepseek-v4-flash");
}

#[test]
fn damage_is_not_overlooked() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path()));
    let write = |name: &str, at: u64| {
        let file = std::fs::File::options().write(true).open(dir.path().join(name)).unwrap();
        file.write_all_at(b"garbage", at).unwrap();
    };
    write("history-11111111-0000.chunk", 12_288 + 5000);
    write("history-11111111-0001.chunk", 10_008 + 30);
    write("history-11111111.table", 4096 + 9 * 128 + 40);
    std::fs::remove_file(dir.path().join("window-22222222-0001.chunk")).unwrap();
    let report = verify(dir.path());
    assert!(!report.is_clean());
    let [history, window] = &report.classes[..] else { panic!("{report:?}") };
    assert_eq!((history.records, history.good, history.corrupt, history.damaged_entries), (10, 7, 2, 1));
    assert_eq!((window.records, window.good, window.corrupt), (5, 4, 1));
    // It is still all there for the next open to find.
    assert_eq!(verify(dir.path()), report);
}

#[test]
fn a_damaged_table_header_is_not_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path()));
    let file = std::fs::File::options().write(true).open(dir.path().join("window-22222222.table")).unwrap();
    file.write_all_at(b"garbage", 50).unwrap();
    let report = ReadOnly::open(dir.path()).unwrap().verify(&mut |_, _| {});
    assert!(!report.is_clean());
    assert!(report.classes[1].damaged_header && !report.classes[0].damaged_header);
    // The next owner repairs it.
    drop(open(dir.path()));
    assert!(verify(dir.path()).is_clean());
}

#[test]
fn what_is_no_store_is_not_verified() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(ReadOnly::open(dir.path()), Err(StoreError::NotAStore { .. })));
    assert!(matches!(ReadOnly::open(&dir.path().join("missing")), Err(StoreError::NotAStore { .. })));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    std::fs::write(dir.path().join("notes.txt"), "mine").unwrap();
    assert!(matches!(ReadOnly::open(dir.path()), Err(StoreError::Foreign { .. })));
}

#[test]
fn a_record_replaced_during_the_check_is_not_called_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    // At the first slot, the owner replaces the record of a later one, whose entry has been read already.
    let mut replaced = false;
    let report = ReadOnly::open(dir.path()).unwrap().verify(&mut |_, _| {
        if !std::mem::replace(&mut replaced, true) {
            put(&store, HISTORY, 7, &key(0, 99)).unwrap();
        }
    });
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.classes[0].good, report.classes[0].changed), (9, 1));
}
