//! The inputs that the fuzzer of `fuzz/` starts from, and changes of them, without a fuzzer.

mod archive;
#[path = "../crash/disk.rs"]
#[expect(dead_code, reason = "the crash tests use more of it")]
mod disk;
#[path = "../crash/faults.rs"]
#[expect(dead_code, reason = "the crash tests use more of it")]
mod faults;
mod fixture;
mod image;
#[path = "../crash/medium.rs"]
#[expect(dead_code, reason = "the crash tests use more of it")]
mod medium;
mod open;
mod seeds;

use std::path::{Path, PathBuf};

use faults::Random;

/// How many changed inputs are tried: `REPRISE_DISK_INPUTS`, or a number that suits CI.
fn inputs() -> u64 {
    match std::env::var("REPRISE_DISK_INPUTS") {
        Ok(number) => number.parse().expect("REPRISE_DISK_INPUTS is a number of inputs"),
        Err(_) => 4_000,
    }
}

/// The inputs of a target in `fuzz/corpus`, in the order of their names.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = std::fs::read_dir(folder(target)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target)
}

/// Says which input it was if a test fails on it.
struct Tried<'a>(&'a [u8]);

impl Drop for Tried<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let hex: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
            eprintln!("the input: {hex}");
        }
    }
}

/// A target: its name, what it does with an input, and the inputs that it starts from.
type Target = (&'static str, fn(&[u8]), fn() -> Vec<(&'static str, Vec<u8>)>);

const TARGETS: [Target; 2] = [("open", open::run, seeds::of_open), ("archive", archive::run, seeds::of_archive)];

fn try_input(target: fn(&[u8]), input: &[u8]) {
    let _tried = Tried(input);
    target(input);
}

/// Changes an input in a few places, or puts a part of another one in.
fn change(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let at = random.below(input.len() as u64 + 1) as usize;
        let few = (1 + random.below(8)) as usize;
        match random.below(5) {
            0 => input.insert(at, random.next() as u8),
            1 => drop(input.drain(at..(at + few).min(input.len()))),
            2 => {
                let start = random.below(other.len() as u64 + 1) as usize;
                let part = &other[start..(start + 4 * few).min(other.len())];
                input.splice(at..at, part.iter().copied());
            }
            kind => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = if kind == 3 { random.next() as u8 } else { *byte ^ 1 << random.below(8) };
                }
            }
        }
    }
}

#[test]
fn no_input_that_the_fuzzer_knows_breaks_a_promise() {
    for (name, target, _) in TARGETS {
        corpus(name).iter().for_each(|input| try_input(target, input));
    }
}

#[test]
fn no_changed_input_breaks_a_promise() {
    for (name, target, _) in TARGETS {
        let corpus = corpus(name);
        let mut random = Random::new(1);
        let pick = |random: &mut Random| &corpus[random.below(corpus.len() as u64) as usize];
        for _ in 0..inputs() {
            let mut input = pick(&mut random).clone();
            change(&mut input, pick(&mut random), &mut random);
            try_input(target, &input);
        }
    }
}

#[test]
fn the_seeds_are_not_those_of_another_format() {
    for (target, _, seeds) in TARGETS {
        let corpus = corpus(target);
        for (name, seed) in seeds() {
            assert!(
                corpus.contains(&seed),
                "{name} is not in fuzz/corpus/{target}; run this test with --ignored to write it"
            );
        }
    }
}

#[test]
#[ignore = "writes the seeds"]
fn write_the_seeds() {
    for (target, _, seeds) in TARGETS {
        std::fs::create_dir_all(folder(target)).unwrap();
        for (name, seed) in seeds() {
            std::fs::write(folder(target).join(name), seed).unwrap();
        }
    }
}
