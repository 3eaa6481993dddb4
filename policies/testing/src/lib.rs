//! A small host for the unit tests of a policy.
//!
//! [`CacheHarness`] keeps books as a real host does: it tells the policy what happens, asks it for victims and checks each answer
//! against the contract before it acts. [`CheckpointHarness`] does the same for positions. What breaks the contract is a panic that
//! says what was wrong.
//!
//! ```
//! use reprise_policies::Lru;
//! use reprise_policy_testing::CacheHarness;
//!
//! let mut host = CacheHarness::native::<Lru>();
//! let (first, second) = (host.insert(None), host.insert(None));
//! host.touch(first);
//! assert_eq!(host.victims(1), [second]);
//! ```
//!
//! With the feature `wasm` the same tests run on the policy as a component: `from_component` takes a file's bytes.

mod books;
mod cache;
mod checkpoint;
mod guest;
mod random;

pub use cache::{CAPACITY, CacheHarness};
pub use checkpoint::CheckpointHarness;

/// The bytes of a component's file.
///
/// # Panics
/// When it cannot be read.
#[cfg(feature = "wasm")]
#[track_caller]
pub fn component(path: impl AsRef<std::path::Path>) -> Vec<u8> {
    let path = path.as_ref();
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}; build the policy first", path.display()))
}
