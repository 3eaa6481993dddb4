//! Imports arbitrary and damaged archives: `cargo fuzz run archive`. What is checked is in `tests/fuzz` of the store.

#![no_main]

#[path = "../../tests/fuzz/archive.rs"]
mod archive;
#[path = "../../tests/crash/disk.rs"]
#[expect(dead_code, reason = "the crash tests use more of it")]
mod disk;
#[path = "../../tests/crash/faults.rs"]
#[expect(dead_code, reason = "the crash tests use more of it")]
mod faults;
#[path = "../../tests/fuzz/fixture.rs"]
mod fixture;
#[path = "../../tests/fuzz/image.rs"]
mod image;
#[path = "../../tests/crash/medium.rs"]
#[expect(dead_code, reason = "the crash tests use more of it")]
mod medium;
#[path = "../../tests/fuzz/open.rs"]
#[expect(dead_code, reason = "the other target uses the rest")]
mod open;

libfuzzer_sys::fuzz_target!(|input: &[u8]| archive::run(input));
