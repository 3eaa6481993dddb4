//! Batches bring the records that were asked for, each for itself.

use std::fs::OpenOptions;
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use reprise_disk::{EngineChoice, Get, IoEngine, IoOptions, Miss, Options, Put, Store, StoreError};

use crate::device::{self, Way, engines};
use crate::fixture::{HISTORY, WINDOW, check, classes, filled, gets_of, key, options, put_of, tenant};

fn open_with(dir: &Path, engine: EngineChoice) -> Store {
    let options = Options { io: IoOptions { engine, ..IoOptions::default() }, ..options() };
    let (store, report) = Store::open(dir, &classes(), &options).unwrap();
    assert_eq!(matches!(report.engine, IoEngine::Ring { .. }), engine == EngineChoice::Ring, "{report}");
    store
}

#[test]
fn the_results_of_two_records_are_not_mixed_up() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        let store = open_with(dir.path(), engine);
        let namespace = store.namespace(&tenant(0)).unwrap();
        let slots = (0..10).map(|slot| (HISTORY, slot)).chain((0..5).map(|slot| (WINDOW, slot)));
        let mut puts: Vec<Put> =
            slots.map(|(group, slot)| put_of(group, slot, key(namespace, 20 * group + slot as u8))).collect();
        let gets: Vec<Get> = puts.iter().map(|put| Get { group: put.group, slot: put.slot, key: put.key }).collect();
        // A slot that is not there, a buffer that is too short, a namespace that nobody asked for.
        puts.push(put_of(HISTORY, 10, key(namespace, 99)));
        puts.push(put_of(WINDOW, 0, key(7, 99)));
        let lens: Vec<usize> = puts.iter().map(|put| put.buffer.len()).collect();
        let mut outcomes = vec![None; puts.len()];
        for (index, outcome) in store.put_batch(puts, None) {
            assert_eq!(outcome.buffer.expect("no put is stuck").len(), lens[index], "the buffer comes back as it was");
            let previous = outcomes[index].replace(outcome.result.map_err(|error| error.to_string()));
            assert!(previous.is_none(), "record {index} has two outcomes");
        }
        assert!(outcomes[..15].iter().all(|outcome| *outcome == Some(Ok(()))), "{outcomes:?}");
        assert!(outcomes[15..].iter().all(|outcome| matches!(outcome, Some(Err(_)))), "{outcomes:?}");

        // Each twice, and in between the keys of the neighbours, which are not there.
        let wrong = gets.windows(2).map(|pair| Get { slot: pair[0].slot, group: pair[0].group, ..pair[1] });
        let asked: Vec<Get> = gets.iter().copied().chain(wrong).chain(gets.iter().rev().copied()).collect();
        let mut seen = vec![false; asked.len()];
        for (index, got) in store.get_batch(&asked, None) {
            assert!(!std::mem::replace(&mut seen[index], true), "record {index} has two outcomes");
            match (15..29).contains(&index) {
                true => assert!(matches!(got, Err(Miss::Absent))),
                false => check(&asked[index], got).unwrap(),
            }
        }
        assert!(seen.iter().all(|seen| *seen));
    }
}

#[test]
fn a_short_read_is_not_taken_for_a_whole_record() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        drop(filled(dir.path()));
        let store = open_with(dir.path(), engine);
        // The chunk ends in the middle of slot 2.
        let chunk = dir.path().join("history-11111111-0000.chunk");
        OpenOptions::new().write(true).open(chunk).unwrap().set_len(2 * 12_288 + 4096).unwrap();
        let gets = gets_of(HISTORY);
        for (index, got) in store.get_batch(&gets, None) {
            match index {
                2 | 3 => assert!(matches!(got, Err(Miss::Corrupt { section: None })), "{got:?}"),
                _ => check(&gets[index], got).unwrap(),
            }
        }
    }
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path()));
    let (store, device) = device::open(dir.path(), Way::SystemCalls, IoOptions::default());
    device.cut_short(5000);
    let gets = gets_of(HISTORY);
    store.get_batch(&gets, None).for_each(|(index, got)| check(&gets[index], got).unwrap());
    assert!(device.reads() >= 3 * gets.len(), "every read is cut short");
}

#[test]
fn damage_to_one_record_does_not_cost_another() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        drop(filled(dir.path()));
        let chunk = dir.path().join("history-11111111-0001.chunk");
        let mut bytes = std::fs::read(&chunk).unwrap();
        // Slot 5, its second section.
        bytes[12_288 + 5000] ^= 1;
        std::fs::write(&chunk, bytes).unwrap();
        let store = open_with(dir.path(), engine);
        let gets = gets_of(HISTORY);
        for (index, got) in store.get_batch(&gets, None) {
            match index {
                5 => assert!(matches!(got, Err(Miss::Corrupt { section: Some(1) })), "{got:?}"),
                _ => check(&gets[index], got).unwrap(),
            }
        }
    }
}

#[test]
fn a_batch_without_records_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    assert!(store.get_batch(&[], None).next().is_none());
    assert!(store.put_batch(Vec::new(), None).next().is_none());
    let nowhere = Get { group: 9, slot: 0, key: key(0, 0) };
    assert!(matches!(store.get_batch(&[nowhere], None).next(), Some((0, Err(Miss::Absent)))));
}

#[test]
fn more_reads_than_buffers_are_not_under_way() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path()));
    // Room for six records of history, as of what two classes share each has its half; and half of that for a batch.
    let io = IoOptions { buffer_bytes: 2 * 6 * 12_288, ..IoOptions::default() };
    let (store, device) = device::open(dir.path(), Way::SystemCalls, io.clone());
    let gets = gets_of(HISTORY);
    let deadline = || Some(Instant::now() + Duration::from_millis(500));
    let outcomes: Vec<_> = store.get_batch(&gets, deadline()).collect();
    let held = outcomes.iter().filter(|(_, got)| got.is_ok()).count();
    let late = outcomes.iter().filter(|(_, got)| matches!(got, Err(Miss::TimedOut))).count();
    assert_eq!((held, late), (3, 7), "while three are held, no other comes");
    // Another batch gets on meanwhile. Dropped one by one, three are enough for any number.
    let many: Vec<Get> = (0..50).flat_map(|_| gets.clone()).collect();
    store.get_batch(&many, None).for_each(|(index, got)| check(&many[index], got).unwrap());
    assert!(device.buffers() <= 6, "{} buffers for history", device.buffers());

    drop((outcomes, store, device));
    for way in Way::all() {
        let (store, _device) = device::open(dir.path(), way, io.clone());
        let outcomes: Vec<_> = store.get_batch(&gets, deadline()).collect();
        assert_eq!(outcomes.iter().filter(|(_, got)| got.is_ok()).count(), 3, "{way:?}");
    }
}

/// A put, a free, or reads of some slots.
#[derive(Clone, Debug)]
enum Step {
    Put(Vec<(u8, u32, u8)>),
    Get(Vec<(u8, u32, u8)>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Few keys, so that slots are asked for what they hold and for what they do not.
    let record = (0..2_u8, 0..11_u32, 0..3_u8);
    let records = prop::collection::vec(record, 1..20);
    let step = prop_oneof![records.clone().prop_map(Step::Put), records.prop_map(Step::Get)];
    prop::collection::vec(step, 1..12)
}

/// What a store says to a step, by record.
fn answers(store: &Store, namespace: u16, step: &Step) -> Vec<String> {
    match step {
        Step::Put(records) => {
            // Each slot once: of two puts into one, either may win.
            let mut puts: Vec<Put> =
                records.iter().map(|&(group, slot, number)| put_of(group, slot, key(namespace, number))).collect();
            puts.sort_by_key(|put| (put.group, put.slot));
            puts.dedup_by_key(|put| (put.group, put.slot));
            let mut answers = vec![String::new(); puts.len()];
            for (index, outcome) in store.put_batch(puts, None) {
                assert!(!matches!(outcome.result, Err(StoreError::Io { .. } | StoreError::SlotBusy { .. })));
                answers[index] = outcome.result.map_or_else(|error| error.to_string(), |()| "put".to_owned());
            }
            answers
        }
        Step::Get(records) => {
            let gets: Vec<Get> =
                records.iter().map(|&(group, slot, number)| Get { group, slot, key: key(namespace, number) }).collect();
            let mut answers = vec![String::new(); gets.len()];
            for (index, got) in store.get_batch(&gets, None) {
                let answer = check(&gets[index], got).map_or_else(|miss| miss.to_string(), |()| "read".to_owned());
                answers[index] = answer;
            }
            answers
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn io_uring_does_not_give_other_bytes_than_system_calls(steps in steps()) {
        let dirs: Vec<_> = engines().iter().map(|_| tempfile::tempdir().unwrap()).collect();
        let stores: Vec<Store> = engines().into_iter().zip(&dirs).map(|(engine, dir)| open_with(dir.path(), engine)).collect();
        for store in &stores {
            prop_assert_eq!(store.namespace(&tenant(0)).unwrap(), 0);
        }
        for step in &steps {
            let answers: Vec<Vec<String>> = stores.iter().map(|store| answers(store, 0, step)).collect();
            prop_assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
        }
        drop(stores);
        // The files are the same to the byte, and either engine reads what the other has written.
        for entry in std::fs::read_dir(dirs[0].path()).unwrap() {
            let name = entry.unwrap().file_name();
            if name.to_string_lossy().ends_with(".chunk") {
                let files: Vec<Vec<u8>> = dirs.iter().map(|dir| std::fs::read(dir.path().join(&name)).unwrap()).collect();
                prop_assert!(files.windows(2).all(|pair| pair[0] == pair[1]), "{name:?} differs");
            }
        }
    }
}
