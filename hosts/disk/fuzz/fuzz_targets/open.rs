//! Opens arbitrary and damaged stores: `cargo fuzz run open`. What is checked is in `tests/fuzz` of the store.

#![no_main]

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
mod open;

libfuzzer_sys::fuzz_target!(|input: &[u8]| open::run(input));
