//! Readers, writers and evictors on one store at once, with real threads on the real file system.

mod book;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use book::{Book, Random, Reading};
use reprise_core::Digest;
use reprise_disk::{
    Buffer, EngineChoice, Get, GroupClass, IoOptions, Key, Miss, NamespaceRecord, Options, Put, ReadOnly, Store,
};

const GROUP: u8 = 0;
/// Few, so that a slot gets another record while it is being read.
const SLOTS: u32 = 16;
const PAYLOAD_BYTES: usize = 9000;

/// How long each engine is used, in seconds: `REPRISE_DISK_SECONDS`, or a time that suits CI.
fn duration() -> Duration {
    match std::env::var("REPRISE_DISK_SECONDS") {
        Ok(seconds) => Duration::from_secs(seconds.parse().expect("REPRISE_DISK_SECONDS is a number of seconds")),
        Err(_) => Duration::from_secs(2),
    }
}

fn open(dir: &Path, engine: EngineChoice) -> Store {
    let class = GroupClass {
        group: GROUP,
        name: "history".into(),
        fingerprint: Digest([1; 32]),
        payload_bytes: PAYLOAD_BYTES as u64,
        sections: vec![4096, PAYLOAD_BYTES as u64],
        slots: SLOTS,
    };
    // More chunks than may be open, and fewer buffers than a batch has reads.
    let options = Options {
        chunk_bytes: 4 * class.slot_bytes(),
        open_files: 2,
        io: IoOptions {
            engine,
            depth: 4,
            buffer_bytes: 6 * class.slot_bytes(),
            threads: 3,
            patience: Duration::from_secs(3600),
        },
        ..Options::default()
    };
    let (store, report) = Store::open(dir, &[class], &options).expect("the store opens");
    assert_eq!(report.dropped(), 0, "{report}");
    store
}

fn tenant() -> NamespaceRecord {
    NamespaceRecord {
        check: 0x1234,
        model: "m".into(),
        revision: "r".into(),
        salt_hash: Digest([0; 32]),
        adapter: String::new(),
        rank: 0,
        ranks: 1,
        block_tokens: 128,
        extensions: String::new(),
    }
}

/// Record `number`, which is put once.
fn key(number: u64) -> Key {
    let mut digest = [0; 32];
    digest[..8].copy_from_slice(&number.to_le_bytes());
    Key { namespace: 0, digest: Digest(digest), position: 128 }
}

fn fill(number: u64, bytes: &mut [u8]) {
    let mut random = Random::new(number);
    for word in bytes.chunks_mut(8) {
        word.copy_from_slice(&random.next().to_le_bytes()[..word.len()]);
    }
}

fn check(number: u64, bytes: &[u8]) {
    let mut expected = vec![0; PAYLOAD_BYTES];
    fill(number, &mut expected);
    assert!(bytes == expected, "wrong bytes for record {number}");
}

/// What came of it all.
#[derive(Default)]
struct Counts {
    puts: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
}

/// Threads' common ground.
struct Shop<'a> {
    store: &'a Store,
    book: Book,
    counts: Counts,
    end: Instant,
}

/// What a thread does again and again.
type Step<'a> = fn(&Shop<'a>, &mut Random);

impl Shop<'_> {
    fn work(&self, seed: u64, step: fn(&Self, &mut Random)) {
        let mut random = Random::new(seed);
        while Instant::now() < self.end {
            step(self, &mut random);
            std::thread::yield_now();
        }
    }

    /// Puts records into free slots, side by side or one after the other.
    fn write(&self, random: &mut Random) {
        let claimed = self.book.claim_free(1 + random.below(6) as usize, random);
        let mut puts = claimed.iter().map(|(slot, number)| {
            let mut buffer = Buffer::zeroed(PAYLOAD_BYTES);
            fill(*number, buffer.bytes_mut());
            Put { group: GROUP, slot: *slot, key: key(*number), parent: Digest([0; 32]), last_use: 1, buffer }
        });
        if random.below(4) > 0 {
            for (index, outcome) in self.store.put_batch(puts.collect(), None) {
                outcome.result.expect("a healthy disk takes a record");
                self.book.settle(claimed[index].0);
            }
        } else {
            puts.by_ref().for_each(|Put { group, slot, key, parent, last_use, mut buffer }| {
                self.store
                    .put(group, slot, &key, parent, last_use, &mut buffer)
                    .expect("a healthy disk takes a record");
                self.book.settle(slot);
            });
        }
        self.counts.puts.fetch_add(claimed.len() as u64, Relaxed);
    }

    /// Reads records, some of which nobody holds, and does not always wait for all.
    fn read(&self, random: &mut Random) {
        let readings = self.book.choose(1 + random.below(12) as usize, random);
        let gets: Vec<Get> =
            readings.iter().map(|reading| Get { group: GROUP, slot: reading.slot, key: key(reading.number) }).collect();
        let mut batch = self.store.get_batch(&gets, None);
        let wanted = if random.below(8) == 0 { random.below(4) as usize } else { gets.len() };
        if random.below(8) == 0 {
            batch.cancel();
        }
        for (index, got) in batch.take(wanted) {
            let Reading { slot, number, is_held } = readings[index];
            match got {
                Ok(loan) => {
                    check(number, &loan);
                    self.counts.hits.fetch_add(1, Relaxed);
                }
                Err(Miss::Cancelled) => {}
                Err(miss) => {
                    assert!(!is_held, "record {number} is held in slot {slot}: {miss}");
                    self.counts.misses.fetch_add(1, Relaxed);
                }
            }
        }
        self.book.let_go(&readings);
    }

    /// Frees slots that nobody holds, whether they are being read or not; sometimes touches and syncs.
    fn evict(&self, random: &mut Random) {
        for slot in self.book.claim_resident(1 + random.below(4) as usize, random) {
            self.store.touch(GROUP, slot, random.next());
            self.store.free(GROUP, slot).expect("a healthy disk takes a change");
            self.book.settle(slot);
            self.counts.evictions.fetch_add(1, Relaxed);
        }
        if random.below(64) == 0 {
            self.store.sync().expect("a healthy disk syncs");
        }
    }
}

fn run(engine: EngineChoice) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), engine);
    assert_eq!(store.namespace(&tenant()).unwrap(), 0);
    let shop =
        Shop { store: &store, book: Book::new(SLOTS), counts: Counts::default(), end: Instant::now() + duration() };
    std::thread::scope(|scope| {
        let steps: [Step<'_>; 3] = [Shop::read, Shop::write, Shop::evict];
        let shop = &shop;
        for (seed, step) in (1..).zip([0, 0, 0, 1, 1, 1, 2, 2].map(|which| steps[which])) {
            scope.spawn(move || shop.work(seed, step));
        }
    });
    let Counts { puts, hits, misses, evictions } = shop.counts;
    let [puts, hits, misses, evictions] = [puts, hits, misses, evictions].map(AtomicU64::into_inner);
    println!("{:?}: {puts} puts, {hits} hits, {misses} misses, {evictions} evictions", store.engine());
    assert!(puts > 0 && hits > 0 && evictions > 0, "somebody was kept from working");

    let resident = shop.book.into_resident();
    assert_eq!(puts - evictions, resident.len() as u64, "a slot is lost");
    let usage = &store.usage().classes[0];
    assert!(usage.allocated_bytes <= usage.quota_bytes, "{usage:?}");
    drop(store);
    assert!(ReadOnly::open(dir.path()).unwrap().verify(&mut |_, _| {}).is_clean());
    let store = open(dir.path(), engine);
    let found = store.take_records(GROUP).into_iter().map(|record| (record.slot, record.digest));
    assert!(
        found.eq(resident.iter().map(|(slot, number)| (*slot, key(*number).digest))),
        "the books and the store differ"
    );
    let mut buffer = Buffer::new();
    for (slot, number) in resident {
        store.get(GROUP, slot, &key(number), &mut buffer).unwrap();
        check(number, buffer.bytes());
    }
}

#[test]
fn readers_writers_and_evictors_do_not_get_wrong_bytes_nor_lose_a_record_or_a_slot() {
    run(EngineChoice::Ring);
    run(EngineChoice::Blocking);
}
