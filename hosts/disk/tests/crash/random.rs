//! A long run of random operations with random faults, from a seed:
//! `REPRISE_DISK_OPERATIONS=1000000 cargo test -p reprise-disk --test crash random -- --nocapture` prints what was injected.

use reprise_disk::Durability;

use crate::disk::Disk;
use crate::faults::{Faults, LATENESS, Random, Tally};
use crate::medium::Crash;
use crate::model::{Memory, Model};

/// How many operations the run has: `REPRISE_DISK_OPERATIONS`, or a number that suits CI. The long run is a million.
fn operations() -> u64 {
    match std::env::var("REPRISE_DISK_OPERATIONS") {
        Ok(number) => number.parse().expect("REPRISE_DISK_OPERATIONS is a number of operations"),
        Err(_) => 20_000,
    }
}

/// What is run, from a seed.
struct Plan {
    seed: u64,
    operations: u64,
    /// A fault once in so many operations of the disk.
    fault_one_in: Option<u64>,
    /// By batches instead of record by record.
    batched: bool,
    /// Whether some batches have a deadline that passes.
    hurried: bool,
}

/// What came of runs.
#[derive(Default)]
struct Ran {
    operations: u64,
    disk_operations: u64,
    /// Reads that brought a record.
    hits: u64,
    wrong_reads: u64,
    opens: u64,
    failed_opens: u64,
    tally: Tally,
}

impl Ran {
    fn add(&mut self, other: Self) {
        self.operations += other.operations;
        self.disk_operations += other.disk_operations;
        self.hits += other.hits;
        self.wrong_reads += other.wrong_reads;
        self.opens += other.opens;
        self.failed_opens += other.failed_opens;
        for (kind, count) in other.tally {
            *self.tally.entry(kind).or_default() += count;
        }
    }

    /// Prints what was injected and what came of it.
    fn print(&self, title: &str) {
        println!("{title}");
        let faults: u64 = self.tally.values().sum();
        for (what, count) in [
            ("operations of the store", self.operations),
            ("operations of the disk", self.disk_operations),
            ("faults", faults),
        ] {
            println!("  {what:<44}{count:>12}");
        }
        self.tally.iter().for_each(|(kind, count)| println!("    {kind:<42}{count:>12}"));
        for (what, count) in [
            ("reads that brought a record", self.hits),
            ("reads that brought wrong bytes", self.wrong_reads),
            ("opens", self.opens),
            ("failed opens", self.failed_opens),
        ] {
            println!("  {what:<44}{count:>12}");
        }
    }
}

fn run(plan: &Plan) -> Ran {
    let Plan { seed, operations, fault_one_in, batched, hurried } = *plan;
    let mut random = Random::new(seed);
    let mut disk = Disk::new();
    let mut memory = Memory::default();
    memory.counts_wrong = true;
    let mut ran = Ran::default();
    while ran.operations < operations {
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
        ran.opens += 1;
        let before = disk.operations();
        let mut model = match Model::open(&disk, slots, durability, memory) {
            Ok(model) => model,
            Err(failed) => {
                eprintln!("seed {seed}, operation {}: open failed: {}", ran.operations, failed.0);
                ran.failed_opens += 1;
                memory = failed.1;
                memory.forget_all();
                disk = Disk::new();
                continue;
            }
        };
        model.batched = batched;
        model.check_recovered();
        if let Some(one_in) = fault_one_in {
            disk.set_faults(Faults::Chance { one_in, random: Random::new(random.next()) });
        }
        for _ in 0..20 + random.below(200) {
            ran.operations += 1;
            model.patience = (hurried && random.one_in(4)).then_some(LATENESS / 2);
            step(&mut model, &mut random);
        }
        model.patience = None;
        if fault_one_in.is_some() {
            // A write that went astray may have hit any record.
            model.memory().forget_all();
        } else {
            model.check_all();
        }
        ran.hits += std::mem::take(&mut model.memory().hits);
        ran.disk_operations += disk.operations() - before;
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
    ran.wrong_reads = memory.wrong_reads;
    ran.tally = disk.tally();
    ran
}

fn step(model: &mut Model, random: &mut Random) {
    let group = random.below(2) as u8;
    let slot = random.below(u64::from(model.slots(group))) as u32;
    // Few names, so that the same ones come again in other slots and versions.
    let (tenant, number) = (random.below(3) as u8, random.below(12) as u16);
    match random.below(20) {
        0 if model.batched => {
            // A few slots, one after the other, each with a record of its own.
            let count = 2 + random.below(4) as u32;
            let slots = model.slots(group);
            let records: Vec<_> = (0..count.min(slots))
                .map(|place| (group, (slot + place) % slots, tenant, (number + place as u16) % 12))
                .collect();
            drop(model.put_many(&records));
        }
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
    let operations = operations() / 5;
    let mut all = Ran::default();
    for (seed, one_in, batched, hurried) in [
        (1, 20, false, false),
        (2, 100, true, false),
        (3, 500, false, false),
        (4, 5, true, false),
        // With deadlines, threads go on by themselves, and no run is like another.
        (5, 50, true, true),
    ] {
        let ran = run(&Plan { seed, operations, fault_one_in: Some(one_in), batched, hurried });
        // A fault in every fifth operation leaves little; the run must still have read something to have checked it.
        assert!(ran.hits > operations / 250, "seed {seed}: only {} reads brought a record", ran.hits);
        all.add(ran);
    }
    all.print("with faults");
    for kind in [
        "short read",
        "short write",
        "EIO on a read",
        "EIO on a write",
        "EIO on a write of which a part is done",
        "failed sync",
        "failed sync that drops what was written",
        "ENOSPC",
        "misdirected write",
        "sync that lies",
        "late operation",
        "bit flipped at rest",
        "power cut",
        "change lost by a crash",
        "write torn to a prefix by a crash",
        "write torn by sectors by a crash",
    ] {
        assert!(all.tally.get(kind).is_some_and(|count| *count > 0), "never happened: {kind}");
    }
    assert_eq!((all.wrong_reads, all.failed_opens), (0, 0));
}

#[test]
fn a_random_run_with_nothing_but_crashes_loses_nothing_that_was_synced() {
    let operations = operations() / 4;
    let mut all = Ran::default();
    for seed in 10..14 {
        let ran = run(&Plan { seed, operations, fault_one_in: None, batched: seed % 2 == 0, hurried: false });
        assert!(ran.hits > operations / 10, "seed {seed}: only {} reads brought a record", ran.hits);
        all.add(ran);
    }
    all.print("with nothing but crashes");
    assert_eq!((all.wrong_reads, all.failed_opens), (0, 0));
}
