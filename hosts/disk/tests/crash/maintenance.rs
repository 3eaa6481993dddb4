//! Purges and imports, stopped at every single operation in turn.

use std::collections::BTreeSet;
use std::sync::Arc;

use reprise_core::Digest;
use reprise_disk::storage::{Access, Content, Storage};
use reprise_disk::tools::{self, Filter, Maintenance, ReadOnly, Removal};
use reprise_disk::{Buffer, Durability, GroupClass, Key, Miss, Store, StoreError};

use crate::disk::Disk;
use crate::faults::{Fault, Faults};
use crate::medium::Crash;
use crate::model::{classes, options, tenant};

const BLOCKS: u32 = 8;
const CRASHES: u64 = 4;

/// The block number `depth` of a tenant's only path, or the checkpoint at its end.
fn key(tenant: u8, depth: u8) -> Key {
    let mut digest = [tenant + 1; 32];
    digest[31] = depth;
    Key { namespace: u16::from(tenant), digest: Digest(digest), position: 128 * u64::from(depth) }
}

fn payload(class: &GroupClass, key: &Key) -> Vec<u8> {
    (0..class.payload_bytes as usize).map(|at| key.digest.0[at % 32] ^ (at / 32) as u8 ^ class.group).collect()
}

fn open(disk: &Disk) -> Result<Store, StoreError> {
    Store::open_in(Arc::new(disk.clone()), &classes(BLOCKS), &options(Durability::Relaxed)).map(|(store, _)| store)
}

/// A disk with a store in which two tenants have a path of three blocks each, and a checkpoint; the slots alternate.
fn filled() -> Disk {
    let disk = Disk::new();
    let store = open(&disk).unwrap();
    for number in 0..2 {
        store.namespace(&tenant(number)).unwrap();
    }
    let classes = classes(BLOCKS);
    for (group, slot, tenant, depth) in
        [(0, 0, 0, 1), (0, 1, 1, 1), (0, 2, 0, 2), (0, 3, 1, 2), (0, 4, 0, 3), (0, 5, 1, 3), (1, 0, 0, 3), (1, 1, 1, 3)]
    {
        let key = key(tenant, depth);
        let bytes = payload(&classes[group], &key);
        let mut buffer = Buffer::zeroed(bytes.len());
        buffer.bytes_mut().copy_from_slice(&bytes);
        let parent = self::key(tenant, depth - 1).digest;
        store.put(group as u8, slot, &key, parent, u64::from(depth), &mut buffer).unwrap();
    }
    drop(store);
    disk
}

/// What is left of a tenant: group and depth. No read brings wrong bytes, and what the open reports is read or a miss.
fn survivors(disk: &Disk, number: u8, context: &dyn std::fmt::Debug) -> BTreeSet<(u8, u8)> {
    let store = open(disk).unwrap_or_else(|error| panic!("{context:?}: open failed: {error}"));
    let mut found = BTreeSet::new();
    for class in classes(BLOCKS) {
        for record in store.take_records(class.group) {
            let key = Key { namespace: record.namespace, digest: record.digest, position: record.position };
            let tenant_of = store.namespaces()[usize::from(record.namespace)].1.salt_hash.0[0];
            assert_eq!(tenant_of + 1, record.digest.0[0], "{context:?}: a record of another tenant");
            let mut buffer = Buffer::new();
            match store.get(class.group, record.slot, &key, &mut buffer) {
                Ok(()) => assert!(buffer.bytes() == payload(&class, &key), "{context:?}: wrong bytes for {key:?}"),
                Err(Miss::Absent | Miss::Corrupt { .. }) => continue,
                Err(miss) => panic!("{context:?}: {miss}"),
            }
            if tenant_of == number {
                found.insert((class.group, record.digest.0[31]));
            }
        }
    }
    found
}

/// Whether any chunk file holds bytes of the tenant's payloads.
fn holds_bytes(disk: &Disk, tenant: u8) -> bool {
    let chunks = disk.list().unwrap().into_iter().filter(|name| name.ends_with(".chunk"));
    let contents = chunks.map(|name| {
        let file = disk.open(&name, Access::Read, Content::Metadata).unwrap();
        let mut bytes = vec![0; file.len_bytes().unwrap() as usize];
        file.read_at(&mut bytes, 0).unwrap();
        bytes
    });
    let begins: Vec<Vec<u8>> =
        classes(BLOCKS).iter().map(|class| payload(class, &key(tenant, 3))[..64].to_vec()).collect();
    contents.into_iter().any(|bytes| bytes.windows(64).any(|window| begins.iter().any(|begin| window == begin)))
}

fn crashes(point: u64) -> impl Iterator<Item = Crash> {
    [Crash::LoseAll, Crash::KeepAll]
        .into_iter()
        .chain((0..CRASHES).map(move |round| Crash::Some { seed: point * CRASHES + round }))
}

fn purge(disk: &Disk) -> Result<u64, StoreError> {
    let store = Maintenance::open_in(Arc::new(disk.clone()))?;
    let inventory = store.reader().inventory()?;
    let filter = Filter { namespaces: Some([1].into()), ..Filter::default() };
    let removal = Removal::matching(&inventory, &filter, None);
    Ok(store.remove(&removal, &mut |_, _| {})?.records)
}

const WHOLE: [(u8, u8); 4] = [(0, 1), (0, 2), (0, 3), (1, 3)];

#[test]
fn a_purge_that_was_cut_off_does_not_cost_another_tenant_or_fail_the_next_open() {
    let disk = filled();
    let before = disk.operations();
    assert_eq!(purge(&disk).unwrap(), 4);
    let operations = disk.operations() - before;
    assert!(operations > 15, "{operations}");
    for point in 1..=operations {
        for mode in crashes(point) {
            let disk = filled().crash(Crash::KeepAll);
            disk.set_faults(Faults::At(disk.operations() + point, Fault::PowerCut));
            let has_ended = purge(&disk).is_ok();
            let disk = disk.crash(mode);
            let context = (point, mode);
            assert!(!has_ended || survivors(&disk, 1, &context).is_empty(), "{context:?}");
            // Entries are durable before payload is touched: nothing looks damaged.
            let report = ReadOnly::open_in(Arc::new(disk.clone())).unwrap().verify(&mut |_, _| {});
            let corrupt: u64 = report.classes.iter().map(|class| class.corrupt).sum();
            assert_eq!(corrupt, 0, "{context:?}: {report:?}");
            assert_eq!(survivors(&disk, 0, &context), WHOLE.into(), "{context:?}");
            // Again, and it is done for good.
            purge(&disk).unwrap();
            let disk = disk.crash(Crash::LoseAll);
            assert_eq!(survivors(&disk, 1, &context), [].into(), "{context:?}");
            assert!(!holds_bytes(&disk, 1) && holds_bytes(&disk, 0), "{context:?}");
            assert_eq!(survivors(&disk, 0, &context), WHOLE.into(), "{context:?}");
        }
    }
}

#[test]
fn an_import_that_was_cut_off_leaves_nothing_half_visible() {
    let mut archive = Vec::new();
    let source = ReadOnly::open_in(Arc::new(filled())).unwrap();
    tools::export(&source, &Filter::default(), &mut archive, &mut |_, _| {}).unwrap();
    let import = |disk: &Disk| tools::import_in(Arc::new(disk.clone()), &mut &*archive, &mut |_| {});
    let purged = || {
        let disk = filled();
        purge(&disk).unwrap();
        disk.crash(Crash::KeepAll)
    };
    let disk = purged();
    assert_eq!(import(&disk).unwrap().groups.iter().map(|group| group.imported).sum::<u64>(), 4);
    let operations = disk.operations();
    assert!(operations > 40, "{operations}");
    for point in 1..=operations {
        for mode in crashes(point) {
            let disk = purged();
            disk.set_faults(Faults::At(point, Fault::PowerCut));
            let result = import(&disk);
            assert!(result.is_err() || result.is_ok_and(|imported| imported.stopped.is_some()) || point == operations);
            let disk = disk.crash(mode);
            let context = (point, mode);
            assert_eq!(survivors(&disk, 0, &context), WHOLE.into(), "{context:?}");
            survivors(&disk, 1, &context);
            let _ = import(&disk).unwrap();
            let repaired = Maintenance::open_in(Arc::new(disk.clone())).unwrap();
            let report = repaired.reader().verify(&mut |_, _| {});
            let removal = Removal::damaged(&repaired.reader().inventory().unwrap(), &report);
            repaired.remove(&removal, &mut |_, _| {}).unwrap();
            drop(repaired);
            // What was damaged counted as there; after the repair all of it comes in.
            assert_eq!(import(&disk).unwrap().stopped, None);
            let disk = disk.crash(Crash::LoseAll);
            for number in 0..2 {
                assert_eq!(survivors(&disk, number, &context), WHOLE.into(), "{context:?}");
            }
        }
    }
}
