//! An io_uring that owns what the kernel works on. The only unsafe code of this crate is here.

use std::collections::HashMap;
use std::io::{self, IoSliceMut, PipeReader};
use std::os::fd::{AsRawFd, RawFd};

use io_uring::squeue::Entry;
use io_uring::types::Fd;
use io_uring::{IoUring, Probe, opcode};

use super::{Direction, Transfer};
use crate::Buffer;
use crate::format::PAGE_BYTES;
use crate::storage::{Progress, whole_read, whole_write};

/// Marks the completion of the bell; transfers are marked by their place in the list.
const BELL: u64 = u64::MAX;

/// The most bytes of one step: the kernel takes less than 2 GiB at a time.
const MAX_STEP_BYTES: usize = 1 << 30;

/// What the store needs of the kernel.
const OPERATIONS: [u8; 5] =
    [opcode::Read::CODE, opcode::Write::CODE, opcode::ReadFixed::CODE, opcode::WriteFixed::CODE, opcode::PollAdd::CODE];

/// A transfer that the kernel works on.
struct Flight {
    transfer: Transfer,
    progress: Progress,
    descriptor: RawFd,
}

/// An io_uring with room for a number of transfers.
pub struct Ring {
    uring: IoUring,
    /// Each keeps its file open and its buffer in place until the kernel is done with both.
    flights: Vec<Option<Flight>>,
    vacant: Vec<usize>,
    /// Registered buffers: number and bytes, by address.
    registered: HashMap<usize, (u16, usize)>,
}

impl Ring {
    /// A ring for `capacity` transfers at once.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it (a filter of system calls, `kernel.io_uring_disabled`) or is too old.
    pub fn new(capacity: usize) -> io::Result<Self> {
        // One entry more, for the bell.
        let uring = IoUring::new(u32::try_from(capacity + 1).unwrap_or(u32::MAX).next_power_of_two())?;
        let mut probe = Probe::new();
        uring.submitter().register_probe(&mut probe)?;
        if OPERATIONS.iter().any(|code| !probe.is_supported(*code)) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the kernel does not know all operations needed"));
        }
        let flights = (0..capacity).map(|_| None).collect();
        Ok(Self { uring, flights, vacant: (0..capacity).collect(), registered: HashMap::new() })
    }

    /// Makes the kernel pin these buffers once instead of at every transfer. Returns how many bytes they have.
    ///
    /// # Errors
    ///
    /// If the kernel refuses, for instance because of RLIMIT_MEMLOCK; transfers work all the same.
    pub fn register(&mut self, buffers: &mut [Buffer]) -> io::Result<u64> {
        if buffers.is_empty() {
            return Ok(0);
        }
        let bytes = buffers.iter().map(|buffer| buffer.len() as u64).sum();
        let places: HashMap<usize, (u16, usize)> = (0..)
            .zip(buffers.iter())
            .map(|(number, buffer)| (buffer.bytes().as_ptr() as usize, (number, buffer.len())))
            .collect();
        let slices: Vec<IoSliceMut<'_>> =
            buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer.bytes_mut())).collect();
        // SAFETY: `IoSliceMut` has the layout of `iovec` on Unix, and both slices are as long. The addresses are valid
        // now, and the kernel holds their pages until the ring is gone, whatever becomes of the addresses. It writes to
        // them only in a transfer that names the buffer's number, and `entry` names it only for a transfer that owns a
        // buffer at that very address.
        unsafe {
            let vectors = std::slice::from_raw_parts(slices.as_ptr().cast(), slices.len());
            self.uring.submitter().register_buffers(vectors)?;
        }
        self.registered = places;
        Ok(bytes)
    }

    /// Takes a transfer in. [`wait`](Self::wait) submits it, together with what else came.
    ///
    /// # Errors
    ///
    /// The transfer, if its file has no descriptor.
    ///
    /// # Panics
    ///
    /// If there are more transfers than the ring was made for.
    pub fn push(&mut self, transfer: Transfer) -> Result<(), Transfer> {
        let Some(descriptor) = transfer.file.descriptor().map(|descriptor| descriptor.as_raw_fd()) else {
            return Err(transfer);
        };
        let place = self.vacant.pop().expect("no more transfers than the ring has room for");
        let progress = Progress::new(transfer.len_bytes, PAGE_BYTES);
        self.flights[place] = Some(Flight { transfer, progress, descriptor });
        self.submit(place);
        Ok(())
    }

    /// Queues the next step of a transfer.
    fn submit(&mut self, place: usize) {
        let flight = self.flights[place].as_mut().expect("a transfer lies in its place until it is over");
        let entry = flight.entry(&self.registered).user_data(place as u64);
        // SAFETY: the entry names a file and memory that `flights` owns. Both stay there, unused by anybody else, until the
        // kernel reports the end of this step; a ring that is dropped before leaks them.
        unsafe { self.uring.submission().push(&entry) }.expect("there is an entry for every transfer and the bell");
    }

    /// Makes [`wait`](Self::wait) return when the bell is rung, once. The bell must outlive the ring.
    pub fn listen(&mut self, bell: &PipeReader) {
        let poll = opcode::PollAdd::new(Fd(bell.as_raw_fd()), POLL_IN).build().user_data(BELL);
        // SAFETY: the entry names no memory, and a file that was closed would be an error reported.
        unsafe { self.uring.submission().push(&poll) }.expect("there is an entry for every transfer and the bell");
    }

    /// Transfers that the kernel has not given back.
    pub fn in_flight(&self) -> usize {
        self.flights.len() - self.vacant.len()
    }

    /// Submits what was pushed.
    pub fn flush(&mut self) {
        // What the kernel cannot take now, it takes with the next call.
        let _ = self.uring.submit();
    }

    /// Submits what was pushed, sleeps until something is over, and moves the transfers that are over to `ended`. Returns
    /// whether the bell was rung.
    ///
    /// # Errors
    ///
    /// If the kernel cannot take the submissions now; they are kept for the next call.
    pub fn wait(&mut self, ended: &mut Vec<(Transfer, io::Result<()>)>) -> io::Result<bool> {
        let waited = self.uring.submit_and_wait(1);
        let completions: Vec<(u64, i32)> =
            self.uring.completion().map(|completion| (completion.user_data(), completion.result())).collect();
        let mut rung = false;
        for (place, result) in completions {
            match place {
                BELL => rung = true,
                place => ended.extend(self.land(place as usize, result)),
            }
        }
        match waited {
            Err(error) if error.kind() != io::ErrorKind::Interrupted && ended.is_empty() && !rung => Err(error),
            _ => Ok(rung),
        }
    }

    /// Takes in the result of a step: the transfer if it is over.
    fn land(&mut self, place: usize, result: i32) -> Option<(Transfer, io::Result<()>)> {
        let step = usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result));
        let flight = self.flights[place].as_mut().expect("a transfer lies in its place until it is over");
        let Some(end) = flight.progress.advance(step) else {
            self.submit(place);
            return None;
        };
        let Flight { transfer, .. } = self.flights[place].take().expect("it was there above");
        self.vacant.push(place);
        let result = end.and_then(|done| match transfer.direction {
            Direction::Read => whole_read(done, transfer.len_bytes),
            Direction::Write => whole_write(done, transfer.len_bytes),
        });
        Some((transfer, result))
    }
}

/// `POLLIN` of poll(2).
const POLL_IN: u32 = 1;

impl Flight {
    /// The next step.
    fn entry(&mut self, registered: &HashMap<usize, (u16, usize)>) -> Entry {
        let (done, descriptor) = (self.progress.done(), Fd(self.descriptor));
        let Transfer { direction, offset, buffer, .. } = &mut self.transfer;
        let offset = *offset + done as u64;
        let bytes = &mut buffer.bytes_mut()[..done + self.progress.left()];
        let number = registered.get(&(bytes.as_ptr() as usize)).filter(|(_, len)| *len >= bytes.len());
        let start = bytes[done..].as_mut_ptr();
        let len = self.progress.left().min(MAX_STEP_BYTES) as u32;
        match (direction, number) {
            (Direction::Read, Some((number, _))) => {
                opcode::ReadFixed::new(descriptor, start, len, *number).offset(offset).build()
            }
            (Direction::Read, None) => opcode::Read::new(descriptor, start, len).offset(offset).build(),
            (Direction::Write, Some((number, _))) => {
                opcode::WriteFixed::new(descriptor, start, len, *number).offset(offset).build()
            }
            (Direction::Write, None) => opcode::Write::new(descriptor, start, len).offset(offset).build(),
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // The kernel may still write to these buffers.
        self.flights.drain(..).flatten().for_each(std::mem::forget);
    }
}
