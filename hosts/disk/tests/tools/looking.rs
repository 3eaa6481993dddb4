//! Looking at a store.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use reprise_disk::tools::{Conditions, Format, Found, Owner, ReadOnly};
use reprise_disk::{IoMode, Store};

use crate::fixture::{Filling, classes, options};

/// All files with their bytes and times of change.
fn contents(dir: &Path) -> BTreeMap<String, (Vec<u8>, std::time::SystemTime)> {
    let files = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    let content = |path: &Path| (std::fs::read(path).unwrap(), path.metadata().unwrap().modified().unwrap());
    files.map(|file| (file.file_name().into_string().unwrap(), content(&file.path()))).collect()
}

#[test]
fn looking_at_a_store_in_use_does_not_change_it_nor_keep_it_from_being_opened() {
    let dir = tempfile::tempdir().unwrap();
    let mut filling = Filling::new(dir.path(), 16, 8, 1);
    filling.block(0, "a", 1).block(0, "ab", 2).checkpoint(0, "ab", 3);
    let (mode, engine) = (filling.store.mode().clone(), filling.store.engine().to_string());
    let before = contents(dir.path());

    let store = ReadOnly::open(dir.path()).unwrap();
    assert_eq!(store.format(), Some(Format { version: 1, required_features: 0, optional_features: 0 }));
    let conditions = Conditions::of(dir.path()).unwrap();
    let own = format!("process {} on ", std::process::id());
    assert!(matches!(&conditions.owner, Owner::Process { owner } if owner.starts_with(&own)), "{conditions:?}");
    assert_eq!(matches!(conditions.mode, IoMode::Direct), matches!(mode, IoMode::Direct), "{conditions:?}");
    assert_eq!(conditions.engine.to_string().starts_with("io_uring"), engine.starts_with("io_uring"));
    let usage = store.usage(conditions.mode.clone());
    assert_eq!(usage, reprise_disk::Usage { mode: conditions.mode, ..filling.store.usage() });

    let mut seen = Vec::new();
    let mut visit = |class: &reprise_disk::GroupClass, found| {
        let Found::Record(record) = found else { panic!("nothing is damaged") };
        seen.push((class.group, record.slot, record.position, record.last_use));
        if seen.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    store.visit(&mut visit).unwrap();
    assert_eq!(seen, [(0, 0, 128, 1), (0, 1, 256, 2), (1, 0, 256, 3)]);

    // What knows all records and none of the bytes.
    let mirror = tempfile::tempdir().unwrap();
    store.mirror(mirror.path()).unwrap();
    let (copy, report) = Store::open(mirror.path(), &classes(16, 8), &options()).unwrap();
    assert_eq!((report.dropped(), copy.take_records(0).len(), copy.take_records(2).len()), (0, 2, 1));

    assert!(store.verify(&mut |_, _| {}).is_clean());
    assert!(contents(dir.path()) == before);
    drop(filling);
    assert_eq!(Conditions::of(dir.path()).unwrap().owner, Owner::Nobody);
}
