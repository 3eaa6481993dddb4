//! Flat caches against libCacheSim on the same keys.

use reprise_cli::untyped::{Options, Outcome, Paths, Rule, replay_paths};

use crate::peers::{Subject, libcachesim, python, scratch, write_keys};

fn replayed(paths: &Paths, rule: Rule, capacity_blocks: u32) -> Outcome {
    replay_paths(paths, &Options { capacity_blocks, eviction: rule.into() }).expect("a rule does not fail")
}

#[test]
fn no_flat_cache_hits_more_or_less_often_than_libcachesims() {
    let Some(python) = python() else { return };
    for subject in Subject::all(python, "flat") {
        let paths = subject.paths();
        let keys = scratch("keys.oracleGeneral");
        write_keys(&paths, &keys);
        // The smallest are those with which S3-FIFO has a small queue of one key, of two, and of none of a round share.
        let distinct = paths.blocks();
        let sizes = [10, 19, 20, 29, 31, 439, distinct / 16, distinct / 7, distinct / 3, distinct + 100];
        let theirs = libcachesim(python, &keys, 1, &sizes);
        for (rule, results) in [(Rule::FlatLru, &theirs.lru), (Rule::FlatS3Fifo, &theirs.s3_fifo)] {
            assert_eq!(results.len(), sizes.len());
            for &(size, misses, _) in results {
                let ours = replayed(&paths, rule, size);
                assert_eq!(
                    (ours.blocks, ours.blocks - ours.found_blocks),
                    (theirs.requests, misses),
                    "requests and misses of {} with {size} keys on {}",
                    rule.name(),
                    subject.name
                );
            }
        }
        println!("{}: {} keys, {} sizes: equal", subject.name, theirs.requests, sizes.len());
    }
}
