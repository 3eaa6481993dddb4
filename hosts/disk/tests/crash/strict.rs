//! Strict puts of a batch: none is reported before it is durable.

use reprise_disk::{Durability, StoreError};

use crate::disk::Disk;
use crate::faults::{Fault, Faults};
use crate::medium::Crash;
use crate::model::{Memory, Model};

/// Seven blocks in three chunks, and three windows in two.
const RECORDS: [(u8, u32, u8, u16); 10] = [
    (0, 0, 0, 0),
    (0, 1, 0, 1),
    (0, 2, 0, 2),
    (0, 3, 0, 3),
    (0, 4, 0, 4),
    (0, 5, 0, 5),
    (0, 6, 0, 6),
    (1, 0, 0, 0),
    (1, 1, 0, 1),
    (1, 2, 0, 2),
];

fn open(disk: &Disk, memory: Memory) -> Model {
    let mut model = Model::open(disk, 7, Durability::Strict, memory).map_err(|failed| failed.0).unwrap();
    model.batched = true;
    model
}

/// A disk with a store that has a record in every slot, and what is owed of it.
fn filled() -> (Disk, Memory) {
    let disk = Disk::new();
    let mut model = open(&disk, Memory::default());
    assert!(model.put_many(&RECORDS).iter().all(Result::is_ok));
    let memory = model.close();
    (disk.crash(Crash::KeepAll), memory)
}

#[test]
fn no_crash_during_a_strict_batch_costs_a_put_that_was_reported() {
    let (disk, memory) = filled();
    let before = disk.operations();
    let mut model = open(&disk, memory);
    assert!(model.put_many(&RECORDS).iter().all(Result::is_ok));
    let operations = disk.operations() - before;
    drop(model.close());
    let mut reported = 0;
    for point in 1..=operations + 1 {
        for mode in [Crash::LoseAll, Crash::KeepAll, Crash::Some { seed: point }, Crash::Some { seed: point + 999 }] {
            let (disk, memory) = filled();
            let mut model = open(&disk, memory);
            disk.set_faults(Faults::At(disk.operations() + point, Fault::PowerCut));
            reported += model.put_many(&RECORDS).iter().filter(|result| result.is_ok()).count();
            let after = disk.crash(mode);
            let mut memory = model.close();
            memory.forget_volatile();
            let mut model = open(&after, memory);
            model.check_recovered();
            model.check_all();
        }
    }
    assert!(reported >= 4 * RECORDS.len(), "{reported}");
}

#[test]
fn a_sync_that_fails_is_not_reported_as_success_to_any_put_of_a_batch() {
    let (disk, memory) = filled();
    let before = disk.operations();
    let mut model = open(&disk, memory);
    assert!(model.put_many(&RECORDS).iter().all(Result::is_ok));
    let operations = disk.operations() - before;
    let mut failed = 0;
    for point in 1..=operations {
        // One operation, or everything from there on as on a device that is gone; what a sync drops is not there any more.
        for faults in [Faults::At, Faults::From] {
            let (disk, memory) = filled();
            let mut model = open(&disk, memory);
            disk.set_faults(faults(disk.operations() + point, Fault::Error { part: 0 }));
            let results = model.put_many(&RECORDS);
            disk.set_faults(Faults::None);
            let is_io = |result: &Result<(), StoreError>| {
                matches!(result, Ok(()) | Err(StoreError::Io { .. } | StoreError::Poisoned))
            };
            assert!(results.iter().all(is_io), "{results:?}");
            failed += results.iter().filter(|result| result.is_err()).count();
            let after = disk.crash(Crash::LoseAll);
            let mut memory = model.close();
            memory.forget_volatile();
            open(&after, memory).check_all();
        }
    }
    assert!(failed > 50, "{failed}");
}
