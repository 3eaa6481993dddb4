//! The deadline of a call, which does not run while the machine lets the thread wait.
//!
//! Time comes in two halves. The first is wall-clock time, because it costs nothing to measure. A call that is not done by then
//! has its second half measured in CPU time of its thread: on a busy machine a thread may be off the processor for
//! longer than any deadline, and an honest policy must not be cut for that. On a quiet machine the two add up to the deadline.

use wasmtime::{StoreContextMut, UpdateDeadline};

use crate::instance::Bounds;

/// The deadline of the call that runs now.
#[derive(Clone, Copy, Default)]
pub(crate) struct Deadline {
    half_ns: u64,
    tick_ns: u64,
    /// CPU time of the thread when the first half was over.
    second_half_began_ns: Option<u64>,
}

impl Deadline {
    /// A deadline of `total_ns`, with a clock that ticks every `tick_ns`.
    pub(crate) fn new(total_ns: u64, tick_ns: u64) -> Self {
        Self { half_ns: total_ns / 2, tick_ns, second_half_began_ns: None }
    }

    /// Ticks of the first half. The tick under way may end at once, hence one more.
    pub(crate) fn first_ticks(&self) -> u64 {
        self.half_ns.div_ceil(self.tick_ns) + 1
    }

    /// What happens when the ticks are used up, given the thread's CPU time: ticks to go on with, or nothing.
    fn expire(&mut self, cpu_ns: u64) -> Option<u64> {
        let spent = cpu_ns.saturating_sub(*self.second_half_began_ns.get_or_insert(cpu_ns));
        // The clock ticks at the half's end, give or take: a remainder this small is not worth another tick.
        let left = self.half_ns.checked_sub(spent).filter(|&left| left > self.tick_ns / 4)?;
        Some(left.div_ceil(self.tick_ns))
    }
}

/// The epoch callback of every store.
pub(crate) fn expired(mut store: StoreContextMut<'_, Bounds>) -> wasmtime::Result<UpdateDeadline> {
    Ok(store.data_mut().deadline.expire(thread_cpu_ns()).map_or(UpdateDeadline::Interrupt, UpdateDeadline::Continue))
}

/// CPU time of the calling thread.
fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of this frame, which the call fills in and does not keep.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0, "every thread has a CPU clock");
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_thread_that_was_made_to_wait_is_not_cut() {
        let mut deadline = Deadline::new(2 * MS, MS / 5);
        assert_eq!(deadline.first_ticks(), 6);
        // The ticks are over and over again, but the thread has hardly run.
        for cpu_ns in [10 * MS, 10 * MS, 10 * MS + 100, 10 * MS + 200_000] {
            assert!(deadline.expire(cpu_ns).is_some(), "{cpu_ns}");
        }
        assert_eq!(deadline.expire(11 * MS - MS / 5), Some(1));
    }

    #[test]
    fn a_thread_that_runs_on_is_cut_when_its_time_is_used_up() {
        let mut deadline = Deadline::new(2 * MS, MS / 5);
        assert_eq!(deadline.expire(10 * MS), Some(5));
        // A tick that comes a hair too early is not an invitation to run for another one.
        assert_eq!(deadline.expire(11 * MS - MS / 20), None);
        assert_eq!(deadline.expire(11 * MS), None);
    }

    #[test]
    fn the_clock_of_a_thread_does_not_stand_still_while_it_works() {
        let before = thread_cpu_ns();
        while thread_cpu_ns() < before + MS {
            std::hint::spin_loop();
        }
    }
}
