//! What may be opened, by whom.

use std::os::unix::fs::PermissionsExt;

use reprise_core::Digest;
use reprise_disk::{GroupClass, IoMode, Options, Store, StoreError};

use crate::fixture::{classes, filled, open, options};

#[test]
fn a_second_opener_is_refused_and_told_who_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    let error = Store::open(dir.path(), &classes(), &options()).unwrap_err();
    let StoreError::Locked { owner } = &error else { panic!("{error}") };
    assert!(owner.starts_with(&format!("process {} on ", std::process::id())), "{owner}");
    assert!(owner.contains(" since 2") && owner.ends_with(" UTC"), "{owner}");
    drop(store);
    open(dir.path());
}

#[test]
fn a_foreign_directory_is_refused_and_not_touched() {
    for name in ["notes.txt", "superblock", "catalogue", "a-directory/"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name.trim_end_matches('/'));
        if name.ends_with('/') {
            std::fs::create_dir(&path).unwrap();
        } else {
            std::fs::write(&path, "something of somebody else's").unwrap();
        }
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let error = Store::open(dir.path(), &classes(), &options()).unwrap_err();
        assert!(matches!(error, StoreError::Foreign { .. }), "{name}: {error}");
        assert!(error.to_string().contains(name.trim_end_matches('/')), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "{name}");
        assert_eq!(std::fs::metadata(dir.path()).unwrap().permissions().mode() & 0o777, 0o755);
    }
}

#[test]
fn a_file_that_is_not_the_stores_does_not_vanish() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path()));
    std::fs::write(dir.path().join("notes.txt"), "mine").unwrap();
    let (_, report) = open(dir.path());
    assert_eq!(report.dropped(), 0);
    assert_eq!(std::fs::read(dir.path().join("notes.txt")).unwrap(), b"mine");
}

#[test]
fn a_making_that_was_cut_off_does_not_stop_the_next() {
    for left in [&["LOCK"][..], &["LOCK", "superblock"], &["LOCK", "superblock", "probe"]] {
        let dir = tempfile::tempdir().unwrap();
        left.iter().for_each(|name| std::fs::write(dir.path().join(name), "").unwrap());
        let (_, report) = open(dir.path());
        assert!(report.created);
        assert!(!dir.path().join("probe").exists());
    }
}

#[test]
fn other_users_cannot_read_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("made/by/us");
    drop(filled(&path));
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    for entry in std::fs::read_dir(&path).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}

#[test]
fn memory_is_not_taken_for_a_device() {
    let shm = std::path::Path::new("/dev/shm");
    // Where there is no tmpfs there is nothing to test.
    let Ok(dir) = tempfile::tempdir_in(shm) else { return };
    let (_, report) = open(dir.path());
    assert_eq!(report.mode, IoMode::Buffered { why: "tmpfs is memory".into() });
    assert!(report.to_string().contains("may come from memory"));
}

#[test]
fn direct_input_and_output_is_not_used_against_the_callers_will() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { direct: false, ..options() };
    let (store, report) = Store::open(dir.path(), &classes(), &options).unwrap();
    assert!(matches!(report.mode, IoMode::Buffered { .. }));
    assert_eq!(store.mode(), &report.mode);
}

#[test]
fn a_class_that_the_format_cannot_hold_is_refused_with_a_reason() {
    let good = classes().remove(0);
    let cases: Vec<(GroupClass, &str)> = vec![
        (GroupClass { name: String::new(), ..good.clone() }, "letters"),
        (GroupClass { name: "../up".into(), ..good.clone() }, "letters"),
        (GroupClass { name: "n".repeat(65), ..good.clone() }, "letters"),
        (GroupClass { sections: vec![], ..good.clone() }, "0 sections"),
        (GroupClass { sections: vec![10_000], ..good.clone() }, "the payload at 10001"),
        (GroupClass { sections: vec![0, 10_001], ..good.clone() }, "ascend"),
        (GroupClass { sections: vec![8192, 4096, 10_001], ..good.clone() }, "ascend"),
        (GroupClass { sections: vec![5000, 10_001], ..good.clone() }, "5000"),
        (
            GroupClass {
                payload_bytes: 4096 * 481,
                sections: (1..=481).map(|section| section * 4096).collect(),
                ..good.clone()
            },
            "481 sections",
        ),
    ];
    for (class, reason) in cases {
        let dir = tempfile::tempdir().unwrap();
        let error = Store::open(dir.path(), &[class], &options()).unwrap_err();
        assert!(matches!(error, StoreError::InvalidClass { .. }), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
    for twin in [GroupClass { name: "other".into(), ..good.clone() }, GroupClass { group: 7, ..good.clone() }] {
        let dir = tempfile::tempdir().unwrap();
        let error = Store::open(dir.path(), &[good.clone(), twin], &options()).unwrap_err();
        assert!(matches!(error, StoreError::InvalidClass { .. }), "{error}");
    }
}

#[test]
fn the_longest_header_that_is_allowed_does_fit() {
    let dir = tempfile::tempdir().unwrap();
    let class = GroupClass {
        group: 255,
        name: "n".repeat(reprise_disk::MAX_NAME_BYTES),
        fingerprint: Digest([1; 32]),
        payload_bytes: 4096 * reprise_disk::MAX_SECTIONS as u64,
        sections: (1..=reprise_disk::MAX_SECTIONS as u64).map(|section| section * 4096).collect(),
        slots: 1,
    };
    for round in 0..2 {
        let (store, report) = Store::open(dir.path(), std::slice::from_ref(&class), &options()).unwrap();
        assert_eq!(report.classes[0].records, round);
        let namespace = store.namespace(&crate::fixture::tenant(0)).unwrap();
        let mut buffer = reprise_disk::Buffer::zeroed(class.payload_bytes as usize);
        store.put(255, 0, &crate::fixture::key(namespace, 1), Digest([0; 32]), 0, &mut buffer).unwrap();
    }
}

#[test]
fn a_store_of_a_later_version_is_refused_and_not_touched() {
    let cases = [("superblock", 8), ("catalogue", 8), ("history-11111111.table", 8), ("window-22222222.table", 8)];
    for (name, version_offset) in cases {
        for (offset, value, kind) in [(version_offset, 2, "version 2"), (version_offset + 8, 0x40, "features 0x40")] {
            let dir = tempfile::tempdir().unwrap();
            drop(filled(dir.path()));
            let path = dir.path().join(name);
            let mut file = std::fs::read(&path).unwrap();
            file[offset] = value;
            let sum = xxhash_rust::xxh3::xxh3_64(&file[..4088]);
            file[4088..4096].copy_from_slice(&sum.to_le_bytes());
            std::fs::write(&path, &file).unwrap();
            let files = || {
                let entries = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
                let mut files: Vec<_> = entries.filter(|path| !path.ends_with("LOCK")).collect();
                files.sort();
                files.iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect::<Vec<_>>()
            };
            let before = files();
            // Not even classes that do not want the table may remove it.
            for classes in [classes(), vec![]] {
                let error = Store::open(dir.path(), &classes, &options()).unwrap_err();
                assert!(
                    matches!(error, StoreError::NewerFormat { .. } | StoreError::UnknownFeatures { .. }),
                    "{error}"
                );
                assert!(error.to_string().contains(kind) && error.to_string().contains(name), "{error}");
            }
            assert!(files() == before, "{name} {kind}");
        }
    }
}

#[test]
fn no_more_files_stay_open_than_were_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { open_files: 2, ..options() };
    drop(filled(dir.path()));
    let (store, _) = Store::open(dir.path(), &classes(), &options).unwrap();
    for round in 0..3 {
        for slot in 0..10 {
            crate::fixture::get(&store, 0, slot, &crate::fixture::key(0, slot as u8)).unwrap();
            crate::fixture::put(&store, 1, slot % 5, &crate::fixture::key(0, 50 + round)).unwrap();
        }
    }
    let links =
        std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    let open = links.filter(|path| path.starts_with(dir.path())).count();
    // Two chunks of five, two tables, and the lock.
    assert_eq!(open, 5);
}
