//! A long run of random operations with random faults, from a seed.

use reprise_disk::Durability;

use crate::disk::Disk;
use crate::faults::{Faults, Random};
use crate::medium::Crash;
use crate::model::{Memory, Model};

/// How many operations the run has: `REPRISE_DISK_OPERATIONS`, or a number that suits CI. The long run is a million.
fn operations() -> u64 {
    match std::env::var("REPRISE_DISK_OPERATIONS") {
        Ok(number) => number.parse().expect("REPRISE_DISK_OPERATIONS is a number of operations"),
        Err(_) => 20_000,
    }
}

/// One run, by batches or record by record; returns how many reads brought a record.
fn run(seed: u64, operations: u64, fault_one_in: Option<u64>, batched: bool) -> u64 {
    let mut random = Random::new(seed);
    let mut disk = Disk::new();
    let mut memory = Memory::default();
    let mut done = 0;
    let mut hits = 0;
    while done < operations {
        // Damage before an open: a few flipped bits.
        if fault_one_in.is_some() {
            for _ in 0..random.below(3) {
                disk.rot(&mut random);
                memory.forget_all();
            }
        }
        let slots = [6, 6, 6, 4, 9][random.below(5) as usize];
        let durability = if random.one_in(4) { Durability::Strict } else { Durability::Relaxed };
        disk.set_faults(Faults::None);
        let mut model = Model::open(&disk, slots, durability, memory)
            .unwrap_or_else(|failed| panic!("seed {seed}, operation {done}: open failed: {}", failed.0));
        model.batched = batched;
        model.check_recovered();
        if let Some(one_in) = fault_one_in {
            disk.set_faults(Faults::Chance { one_in, random: Random::new(random.next()) });
        }
        for _ in 0..20 + random.below(200) {
            done += 1;
            step(&mut model, &mut random);
        }
        if fault_one_in.is_some() {
            // A write that went astray may have hit any record.
            model.memory().forget_all();
        } else {
            model.check_all();
        }
        hits += std::mem::take(&mut model.memory().hits);
        match random.below(4) {
            0 => memory = model.close(),
            mode => {
                // The power goes while the store is open: what drop would have synced is not.
                let after = disk.crash(match mode {
                    1 => Crash::LoseAll,
                    2 => Crash::KeepAll,
                    _ => Crash::Some { seed: random.next() },
                });
                memory = model.close();
                memory.forget_volatile();
                disk = after;
            }
        }
    }
    hits
}

fn step(model: &mut Model, random: &mut Random) {
    let group = random.below(2) as u8;
    let slot = random.below(u64::from(model.slots(group))) as u32;
    // Few names, so that the same ones come again in other slots and versions.
    let (tenant, number) = (random.below(3) as u8, random.below(12) as u16);
    match random.below(20) {
        0..8 => drop(model.put(group, slot, tenant, number)),
        8..15 => drop(model.get(group, slot, tenant, number, None)),
        15..17 => drop(model.get(group, slot, tenant, number, Some(random.below(2) as usize))),
        17 => drop(model.free(group, slot)),
        18 => model.store.touch(group, slot, random.next()),
        _ => {
            let _ = model.sync();
        }
    }
}

#[test]
fn a_random_run_with_faults_brings_no_wrong_bytes_and_no_failed_open() {
    let operations = operations();
    for (seed, one_in, batched) in [(1, 20, false), (2, 100, true), (3, 500, false), (4, 5, true)] {
        let hits = run(seed, operations / 4, Some(one_in), batched);
        // A fault in every fifth operation leaves little; the run must still have read something to have checked it.
        assert!(hits > operations / 1000, "seed {seed}: only {hits} reads brought a record");
    }
}

#[test]
fn a_random_run_with_nothing_but_crashes_loses_nothing_that_was_synced() {
    let operations = operations();
    for seed in 10..14 {
        let hits = run(seed, operations / 4, None, seed % 2 == 0);
        assert!(hits > operations / 40, "seed {seed}: only {hits} reads brought a record");
    }
}
