//! A record is found under its own name only.

use reprise_core::Digest;
use reprise_disk::{Key, Miss, NamespaceRecord, StoreError};

use crate::fixture::{HISTORY, get, key, open, put, tenant};

#[test]
fn two_namespaces_with_the_same_digest_do_not_mix() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    let (first, second) = (store.namespace(&tenant(1)).unwrap(), store.namespace(&tenant(2)).unwrap());
    assert_ne!(first, second);
    put(&store, HISTORY, 0, &key(first, 7)).unwrap();
    assert!(matches!(get(&store, HISTORY, 0, &key(second, 7)), Err(Miss::Absent)));
    put(&store, HISTORY, 1, &key(second, 7)).unwrap();
    get(&store, HISTORY, 0, &key(first, 7)).unwrap();
    get(&store, HISTORY, 1, &key(second, 7)).unwrap();
}

#[test]
fn two_namespaces_with_the_same_check_do_not_mix() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    let twin = NamespaceRecord { model: "another".into(), ..tenant(1) };
    let (first, second) = (store.namespace(&tenant(1)).unwrap(), store.namespace(&twin).unwrap());
    put(&store, HISTORY, 0, &key(first, 7)).unwrap();
    assert!(matches!(get(&store, HISTORY, 0, &key(second, 7)), Err(Miss::Absent)));
    get(&store, HISTORY, 0, &key(first, 7)).unwrap();
}

#[test]
fn another_position_digest_or_namespace_is_a_miss() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    let namespace = store.namespace(&tenant(1)).unwrap();
    let right = key(namespace, 7);
    put(&store, HISTORY, 0, &right).unwrap();
    let mut digest = right.digest;
    digest.0[31] ^= 1;
    for wrong in [
        Key { position: right.position + 128, ..right },
        Key { position: 0, ..right },
        Key { digest, ..right },
        Key { namespace: namespace + 1, ..right },
    ] {
        assert!(matches!(get(&store, HISTORY, 0, &wrong), Err(Miss::Absent)), "{wrong:?}");
    }
    get(&store, HISTORY, 0, &right).unwrap();
}

#[test]
fn a_namespace_is_not_recorded_twice_and_keeps_its_number() {
    let dir = tempfile::tempdir().unwrap();
    let all: Vec<NamespaceRecord> = vec![
        tenant(0),
        tenant(1),
        NamespaceRecord { adapter: "lora-ä".into(), ..tenant(1) },
        NamespaceRecord { revision: String::new(), ..tenant(1) },
        NamespaceRecord { extensions: "x".repeat(65_535), ..tenant(1) },
        NamespaceRecord { rank: 1, ranks: 2, ..tenant(1) },
        NamespaceRecord { block_tokens: 256, ..tenant(1) },
    ];
    for _ in 0..3 {
        let (store, report) = open(dir.path());
        assert_eq!(report.catalogue_cut_bytes, 0);
        for (index, namespace) in all.iter().enumerate() {
            assert_eq!(store.namespace(namespace).unwrap() as usize, index);
        }
        let found: Vec<_> = store.namespaces().into_iter().map(|(_, namespace)| namespace).collect();
        assert_eq!(found, all);
    }
}

#[test]
fn a_text_that_does_not_fit_is_refused_and_not_cut() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    let long = NamespaceRecord { model: "m".repeat(65_536), ..tenant(0) };
    assert!(matches!(store.namespace(&long), Err(StoreError::InvalidNamespace { .. })));
    assert_eq!(store.namespace(&tenant(0)).unwrap(), 0);
}

#[test]
fn a_secret_salt_has_no_place_in_the_catalogue() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    let hash = Digest([0xc3; 32]);
    store.namespace(&NamespaceRecord { salt_hash: hash, ..tenant(0) }).unwrap();
    let file = std::fs::read(dir.path().join("catalogue")).unwrap();
    assert!(file.windows(32).any(|bytes| bytes == hash.0), "the hash is what is kept");
}
