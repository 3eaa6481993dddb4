//! Reads and writes that go on after a short count.

use std::io;

use super::StorageFile;

/// How often an operation may make no progress before it is an error.
const MAX_STALLS: u32 = 4;

/// Fills `bytes` from `offset` on. `step_bytes` is the unit in which a short count is continued: 4,096 for payload, as
/// direct I/O needs aligned offsets, 1 for the rest.
pub fn read_exact(file: &dyn StorageFile, bytes: &mut [u8], offset: u64, step_bytes: usize) -> io::Result<()> {
    let len = bytes.len();
    match transfer(len, step_bytes, |done| file.read_at(&mut bytes[done..], offset + done as u64))? {
        done if done == len => Ok(()),
        done => {
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("the file ends {} bytes too early", len - done)))
        }
    }
}

/// Reads until `bytes` is full or the file ends, and returns how many bytes were read.
pub fn read_up_to(file: &dyn StorageFile, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    transfer(bytes.len(), 1, |done| file.read_at(&mut bytes[done..], offset + done as u64))
}

/// Writes all of `bytes` at `offset`; `step_bytes` as in [`read_exact`].
pub fn write_all(file: &dyn StorageFile, bytes: &[u8], offset: u64, step_bytes: usize) -> io::Result<()> {
    match transfer(bytes.len(), step_bytes, |done| file.write_at(&bytes[done..], offset + done as u64))? {
        done if done == bytes.len() => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::WriteZero, "the file takes no more bytes")),
    }
}

/// Calls `once` with the bytes done so far until `len` are done or it returns 0.
fn transfer(len: usize, step_bytes: usize, mut once: impl FnMut(usize) -> io::Result<usize>) -> io::Result<usize> {
    let mut done = 0;
    let mut stalls = 0;
    while done < len {
        let count = match once(done) {
            Ok(0) => break,
            Ok(count) => count.min(len - done),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        let step = if done + count == len { count } else { count - count % step_bytes };
        done += step;
        stalls = if step == 0 { stalls + 1 } else { 0 };
        if stalls == MAX_STALLS {
            return Err(io::Error::other("the operation is cut short again and again"));
        }
    }
    Ok(done)
}
