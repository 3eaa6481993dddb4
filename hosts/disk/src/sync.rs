//! Locks, atomic numbers and threads: the operating system's, or those of a model checker that tries out the orders in which
//! threads can run. What blocks or is shared between threads in this crate takes them from here.

#[cfg(feature = "shuttle")]
pub use shuttle::{sync::*, thread};
#[cfg(not(feature = "shuttle"))]
pub use std::{sync::*, thread};
