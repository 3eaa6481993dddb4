//! A fixed run of the store, stopped at every single operation in turn.

use reprise_disk::storage::Storage;
use reprise_disk::{Durability, StoreError};

use crate::disk::Disk;
use crate::faults::{Fault, Faults};
use crate::medium::Crash;
use crate::model::{Memory, Model, classes, tenant};

/// What the workload left off with: the store's memory, and whether it ever was open.
struct Outcome {
    memory: Memory,
    opens: u32,
    failed_opens: Vec<StoreError>,
}

/// Puts, replaces, frees, touches and syncs; new namespaces; a reopen with fewer slots and one with more. Errors are
/// passed over: what they cost is in the model. Ends early when the power goes off.
fn workload(disk: &Disk, durability: Durability) -> Outcome {
    let mut outcome = Outcome { memory: Memory::default(), opens: 0, failed_opens: Vec::new() };
    let open = |slots, outcome: &mut Outcome| match Model::open(
        disk,
        slots,
        durability,
        std::mem::take(&mut outcome.memory),
    ) {
        Ok(model) => {
            outcome.opens += 1;
            Some(model)
        }
        Err(failed) => {
            let (error, memory) = *failed;
            outcome.memory = memory;
            outcome.failed_opens.push(error);
            None
        }
    };
    if let Some(mut model) = open(7, &mut outcome) {
        for slot in 0..7 {
            let _ = model.put(0, slot, 0, slot as u16);
        }
        let _ = model.put(1, 0, 0, 0);
        let _ = model.sync();
        let _ = model.put(0, 1, 0, 11);
        let _ = model.free(0, 2);
        model.store.touch(0, 3, 99);
        let _ = model.put(0, 2, 1, 2);
        let _ = model.put(1, 2, 1, 1);
        let _ = model.put(0, 4, 0, 4);
        let _ = model.sync();
        let _ = model.free(0, 0);
        let _ = model.put(0, 6, 2, 0);
        // Two chunks of one class and one of the other; slots that are free and slots that are not.
        let _ = model.put_many(&[(0, 0, 2, 5), (0, 1, 0, 11), (0, 5, 1, 7), (1, 2, 2, 8)]);
        outcome.memory = model.close();
    }
    if let Some(mut model) = open(5, &mut outcome) {
        let _ = model.put(0, 4, 1, 12);
        let _ = model.put(1, 0, 3, 1);
        let _ = model.sync();
        outcome.memory = model.close();
    }
    if let Some(mut model) = open(8, &mut outcome) {
        let _ = model.put(0, 7, 0, 13);
        let _ = model.free(0, 4);
        let _ = model.sync();
        let _ = model.put(0, 3, 0, 14);
        outcome.memory = model.close();
    }
    outcome
}

/// Opens what is left, checks it, fills every slot, and checks that after a restart.
fn check_survivors(disk: &Disk, mut memory: Memory, slots: u32, context: &dyn std::fmt::Debug) {
    memory.forget_volatile();
    let mut model = Model::open(disk, slots, Durability::Relaxed, memory)
        .unwrap_or_else(|failed| panic!("{context:?}: open failed: {}", failed.0));
    model.check_recovered();
    model.check_all();
    for group in [0, 1] {
        for slot in 0..model.slots(group) {
            model.put(group, slot, 4, 100 + slot as u16).unwrap_or_else(|error| panic!("{context:?}: {error}"));
        }
    }
    let memory = model.close();
    let mut model = Model::open(disk, slots, Durability::Relaxed, memory).map_err(|failed| failed.0).unwrap();
    assert_eq!(model.report.dropped(), 0, "{context:?}: {}", model.report);
    model.check_all();
    let quota: u64 = classes(slots.max(8)).iter().map(|class| u64::from(class.slots) * class.slot_bytes()).sum();
    assert!(disk.peak_chunk_bytes() as u64 <= quota, "{context:?}");
}

/// How many operations the undisturbed workload has.
fn operations(durability: Durability) -> u64 {
    let disk = Disk::new();
    let outcome = workload(&disk, durability);
    assert_eq!((outcome.opens, outcome.failed_opens.len()), (3, 0));
    let operations = disk.operations();
    let mut model = Model::open(&disk, 8, durability, outcome.memory).map_err(|failed| failed.0).unwrap();
    model.check_all();
    assert_eq!(model.memory().hits, 7, "the workload leaves records behind");
    operations
}

#[test]
fn no_crash_point_brings_wrong_bytes_or_costs_what_was_synced() {
    for durability in [Durability::Relaxed, Durability::Strict] {
        let operations = operations(durability);
        assert!(operations > 150, "{operations}");
        for point in 1..=operations {
            let modes = [Crash::LoseAll, Crash::KeepAll].into_iter();
            let modes = modes.chain((0..3).map(|round| Crash::Some { seed: point * 3 + round }));
            for mode in modes {
                let disk = Disk::new();
                disk.set_faults(Faults::At(point, Fault::PowerCut));
                let outcome = workload(&disk, durability);
                let after = disk.crash(mode);
                check_survivors(&after, outcome.memory, 8, &(durability, point, mode));
            }
        }
    }
}

#[test]
fn a_crash_during_the_open_after_a_crash_is_not_worse() {
    let operations = operations(Durability::Relaxed);
    for point in (1..=operations).step_by(7) {
        let disk = Disk::new();
        disk.set_faults(Faults::At(point, Fault::PowerCut));
        let mut memory = workload(&disk, Durability::Relaxed).memory;
        memory.forget_volatile();
        let mut disk = disk.crash(Crash::Some { seed: point });
        // The first, second, third … operation of an open fails, until one comes through.
        for within in 1.. {
            disk.set_faults(Faults::At(within, Fault::PowerCut));
            match Model::open(&disk, 6, Durability::Relaxed, memory) {
                Ok(model) => {
                    // Dropping syncs, and may run into the power cut.
                    memory = model.close();
                    if disk.operations() < within {
                        break;
                    }
                }
                Err(failed) => memory = failed.1,
            }
            disk = disk.crash(Crash::Some { seed: point * 1000 + within });
        }
        check_survivors(&disk.crash(Crash::KeepAll), memory, 6, &point);
    }
}

#[test]
fn no_single_error_stops_an_open_or_brings_wrong_bytes() {
    for durability in [Durability::Relaxed, Durability::Strict] {
        let operations = operations(durability);
        for point in 1..=operations {
            for fault in [
                Fault::Error { part: 1 },
                Fault::Error { part: 4000 },
                Fault::Short { part: 700 },
                Fault::Short { part: 5000 },
                Fault::Misdirect { part: 2 * point },
                Fault::Misdirect { part: 2 * point + 1 },
                Fault::Lie,
                Fault::Full,
            ] {
                let disk = Disk::new();
                disk.set_faults(Faults::At(point, fault));
                let mut outcome = workload(&disk, durability);
                disk.set_faults(Faults::None);
                // A store that does not exist yet may fail to be made; one that does always opens.
                let making = outcome.failed_opens.len() == 1 && outcome.opens == 2;
                assert!(outcome.failed_opens.is_empty() || making, "{point} {fault:?}: {:?}", outcome.failed_opens);
                match fault {
                    // A count that is short is no error at all.
                    Fault::Short { .. } => assert_eq!(outcome.memory.failed_puts, 0, "{point} {fault:?}"),
                    _ => outcome.memory.forget_all(),
                }
                check_survivors(&disk, outcome.memory, 8, &(durability, point, fault));
            }
        }
    }
}

#[test]
fn a_full_disk_does_not_stop_reads_and_is_over_when_there_is_space() {
    let operations = operations(Durability::Relaxed);
    for point in 1..=operations {
        let disk = Disk::new();
        disk.set_faults(Faults::At(u64::MAX, Fault::Full));
        let mut model =
            Model::open(&disk, 7, Durability::Relaxed, Memory::default()).map_err(|failed| failed.0).unwrap();
        disk.set_faults(Faults::From(point, Fault::Full));
        for round in 0..3_u16 {
            for slot in 0..7 {
                match model.put(0, slot, 0, 20 * round + slot as u16) {
                    Ok(()) | Err(StoreError::Full { .. }) => {}
                    Err(error) => panic!("{point}: {error}"),
                }
            }
            // Whatever was put, is there, and nothing else comes out.
            model.check_all();
        }
        // Nor does it stop an open, even one that has something to tidy up.
        for slots in [7, 5, 7] {
            let memory = model.close();
            model = Model::open(&disk, slots, Durability::Relaxed, memory).map_err(|failed| failed.0).unwrap();
            model.check_all();
        }
        disk.set_faults(Faults::None);
        for slot in 0..7 {
            model.put(0, slot, 0, 500 + slot as u16).unwrap();
        }
        model.check_all();
        model.sync().unwrap();
    }
}

#[test]
fn after_a_failed_sync_nothing_more_is_written_and_reads_go_on() {
    let disk = Disk::new();
    let mut model = Model::open(&disk, 7, Durability::Relaxed, Memory::default()).map_err(|failed| failed.0).unwrap();
    model.put(0, 0, 0, 1).unwrap();
    model.sync().unwrap();
    model.put(0, 1, 0, 2).unwrap();
    disk.set_faults(Faults::From(0, Fault::Error { part: 1 }));
    let error = model.sync().unwrap_err();
    assert!(
        matches!(error, StoreError::Io { .. }) && error.to_string().contains("syncing history-01010101-0000.chunk")
    );
    disk.set_faults(Faults::None);
    for error in [
        model.put(0, 2, 0, 3).unwrap_err(),
        model.free(0, 0).unwrap_err(),
        model.sync().unwrap_err(),
        model.namespace(9).unwrap_err(),
    ] {
        assert!(matches!(error, StoreError::Poisoned), "{error}");
        assert!(error.to_string().contains("open the store again"));
    }
    model.get(0, 1, 0, 2, None).unwrap();
    // The refused free left its record where it was.
    model.get(0, 0, 0, 1, None).unwrap();
    let memory = model.close();
    check_survivors(&disk, memory, 7, &"after a failed sync");
}

#[test]
fn a_full_disk_and_a_broken_one_are_not_the_same_error() {
    let disk = Disk::new();
    let mut model = Model::open(&disk, 7, Durability::Relaxed, Memory::default()).map_err(|failed| failed.0).unwrap();
    model.put(0, 0, 0, 1).unwrap();
    disk.set_faults(Faults::From(0, Fault::Full));
    assert!(matches!(model.put(0, 1, 0, 2), Err(StoreError::Full { .. })));
    disk.set_faults(Faults::From(0, Fault::Error { part: 1 }));
    assert!(matches!(model.put(0, 1, 0, 2), Err(StoreError::Io { .. })));
    disk.set_faults(Faults::None);
    model.put(0, 1, 0, 2).unwrap();
    model.check_all();
}

#[test]
fn a_put_that_failed_is_not_found_as_damage_later() {
    let mut failed = 0;
    for operation in 1..12 {
        for part in [0, 64, 100, 127] {
            let disk = Disk::new();
            let mut model =
                Model::open(&disk, 7, Durability::Relaxed, Memory::default()).map_err(|failed| failed.0).unwrap();
            model.put(0, 0, 0, 1).unwrap();
            // An error after this many bytes were written.
            let fault = Fault::Error { part: 2 * part };
            disk.set_faults(Faults::At(disk.operations() + operation, fault));
            failed += u32::from(model.put(0, 1, 0, 2).is_err());
            disk.set_faults(Faults::None);
            let memory = model.close();
            let mut model = Model::open(&disk, 7, Durability::Relaxed, memory).map_err(|failed| failed.0).unwrap();
            assert_eq!(model.report.dropped(), 0, "operation {operation}: {}", model.report);
            model.check_all();
        }
    }
    assert!(failed >= 8, "only {failed} puts failed");
}

#[test]
fn a_table_that_was_lost_and_made_again_is_not_lost_again() {
    let disk = Disk::new();
    let mut model = Model::open(&disk, 7, Durability::Strict, Memory::default()).map_err(|failed| failed.0).unwrap();
    model.put(0, 0, 0, 1).unwrap();
    let mut memory = model.close();
    memory.forget_all();
    disk.remove("history-01010101.table").unwrap();
    disk.sync_directory().unwrap();
    let mut model = Model::open(&disk, 7, Durability::Strict, memory).map_err(|failed| failed.0).unwrap();
    model.put(0, 0, 0, 2).unwrap();
    let after = disk.crash(Crash::LoseAll);
    let mut model = Model::open(&after, 7, Durability::Strict, model.close()).map_err(|failed| failed.0).unwrap();
    model.check_all();
    assert_eq!(model.memory().hits, 1);
}

#[test]
fn a_namespace_that_was_given_out_is_not_lost_by_a_crash() {
    for count in 1..4 {
        let disk = Disk::new();
        let mut model =
            Model::open(&disk, 7, Durability::Relaxed, Memory::default()).map_err(|failed| failed.0).unwrap();
        let indices: Vec<u16> = (0..count).map(|number| model.namespace(number).unwrap()).collect();
        let after = disk.crash(Crash::LoseAll);
        let model = Model::open(&after, 7, Durability::Relaxed, Memory::default()).map_err(|failed| failed.0).unwrap();
        let expected: Vec<_> = indices.into_iter().zip((0..count).map(tenant)).collect();
        assert_eq!(model.store.namespaces(), expected);
    }
}
