//! Reads and writes that go on after a short count.

use std::io;

use super::StorageFile;

/// How often an operation may make no progress before it is an error.
const MAX_STALLS: u32 = 4;

/// How far an operation has come that may take several steps.
pub struct Progress {
    len: usize,
    step_bytes: usize,
    done: usize,
    stalls: u32,
}

impl Progress {
    /// Of `len` bytes, nothing is done yet. `step_bytes` is the unit in which a short count is continued: 4,096 for
    /// payload, as direct I/O needs aligned offsets, 1 for the rest.
    pub const fn new(len: usize, step_bytes: usize) -> Self {
        Self { len, step_bytes, done: 0, stalls: 0 }
    }

    /// Bytes done so far: where the next step starts.
    pub const fn done(&self) -> usize {
        self.done
    }

    /// Bytes still to be done.
    pub const fn left(&self) -> usize {
        self.len - self.done
    }

    /// Takes in what one step brought: the end of the operation with the bytes that were done, or `None` if another
    /// step is needed.
    pub fn advance(&mut self, step: io::Result<usize>) -> Option<io::Result<usize>> {
        let count = match step {
            Ok(0) => return Some(Ok(self.done)),
            Ok(count) => count.min(self.left()),
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => 0,
            Err(error) => return Some(Err(error)),
        };
        let count = if count == self.left() { count } else { count - count % self.step_bytes };
        self.done += count;
        if self.left() == 0 {
            return Some(Ok(self.done));
        }
        self.stalls = if count == 0 { self.stalls + 1 } else { 0 };
        (self.stalls == MAX_STALLS).then(|| Err(io::Error::other("the operation is cut short again and again")))
    }
}

/// The result of a read of `len` bytes that brought `done`: less is an error, [`io::ErrorKind::UnexpectedEof`].
pub fn whole_read(done: usize, len: usize) -> io::Result<()> {
    match len - done {
        0 => Ok(()),
        missing => {
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("the file ends {missing} bytes too early")))
        }
    }
}

/// The result of a write of `len` bytes of which `done` were taken: less is an error, [`io::ErrorKind::WriteZero`].
pub fn whole_write(done: usize, len: usize) -> io::Result<()> {
    match done == len {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::WriteZero, "the file takes no more bytes")),
    }
}

/// Fills `bytes` from `offset` on; `step_bytes` as in [`Progress::new`].
pub fn read_exact(file: &dyn StorageFile, bytes: &mut [u8], offset: u64, step_bytes: usize) -> io::Result<()> {
    let len = bytes.len();
    let done = transfer(len, step_bytes, |done| file.read_at(&mut bytes[done..], offset + done as u64))?;
    whole_read(done, len)
}

/// Reads until `bytes` is full or the file ends, and returns how many bytes were read.
pub fn read_up_to(file: &dyn StorageFile, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    transfer(bytes.len(), 1, |done| file.read_at(&mut bytes[done..], offset + done as u64))
}

/// Writes all of `bytes` at `offset`; `step_bytes` as in [`Progress::new`].
pub fn write_all(file: &dyn StorageFile, bytes: &[u8], offset: u64, step_bytes: usize) -> io::Result<()> {
    let done = transfer(bytes.len(), step_bytes, |done| file.write_at(&bytes[done..], offset + done as u64))?;
    whole_write(done, bytes.len())
}

/// Calls `once` with the bytes done so far until `len` are done or it returns 0.
fn transfer(len: usize, step_bytes: usize, mut once: impl FnMut(usize) -> io::Result<usize>) -> io::Result<usize> {
    let mut progress = Progress::new(len, step_bytes);
    if len == 0 {
        return Ok(0);
    }
    loop {
        if let Some(end) = progress.advance(once(progress.done())) {
            return end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_count_is_not_taken_for_the_whole_nor_continued_off_a_page() {
        let interrupted = || Err(io::ErrorKind::Interrupted.into());
        let mut progress = Progress::new(3 * 4096, 4096);
        assert!(progress.advance(Ok(5000)).is_none());
        assert_eq!((progress.done(), progress.left()), (4096, 8192));
        assert!(progress.advance(interrupted()).is_none());
        assert!(progress.advance(Ok(100)).is_none());
        assert_eq!(progress.done(), 4096, "a part of a page is asked for again");
        assert_eq!(progress.advance(Ok(8192)).unwrap().unwrap(), 3 * 4096);

        let mut at_the_end = Progress::new(8192, 4096);
        assert!(at_the_end.advance(Ok(4096)).is_none());
        let done = at_the_end.advance(Ok(0)).unwrap().unwrap();
        assert_eq!(whole_read(done, 8192).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(whole_write(done, 8192).unwrap_err().kind(), io::ErrorKind::WriteZero);

        let mut stalled = Progress::new(8192, 4096);
        let ends: Vec<bool> = (0..4).map(|_| stalled.advance(interrupted()).is_some()).collect();
        assert_eq!(ends, [false, false, false, true], "an operation that never gets on ends");
    }
}
