//! io_uring on a thread of its own, which sleeps in the kernel until a transfer is over or a new one comes.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::time::Duration;

use super::ring::Ring;
use super::{Caller, Engine, IoEngine, Transfer, refusal};
use crate::Buffer;
use crate::locks::lock;
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Arc, Mutex};

/// How long to leave the kernel alone when it cannot take a submission.
const RETRY_AFTER: Duration = Duration::from_millis(1);

/// What waits for the thread.
#[derive(Default)]
struct Inbox {
    transfers: Vec<Transfer>,
    stopped: bool,
}

/// The engine. Its thread starts with the first transfer, and ends when it is stopped and nothing is under way.
pub struct Uring {
    inbox: Arc<Mutex<Inbox>>,
    bell: PipeWriter,
    thread: Mutex<Thread>,
}

enum Thread {
    /// Not started yet: what it is going to work with.
    Idle(Box<(Ring, PipeReader)>),
    Running(JoinHandle<()>),
    /// Ended, or could not be started.
    Gone,
}

impl Uring {
    /// An engine for so many transfers at once, with these buffers registered if the kernel lets it.
    pub fn new(transfers: usize, buffers: &mut [Buffer]) -> io::Result<(Self, IoEngine)> {
        let mut ring = Ring::new(transfers)?;
        let report = match ring.register(buffers) {
            Ok(registered_bytes) => IoEngine::Ring { registered_bytes, unregistered: None },
            Err(error) => IoEngine::Ring { registered_bytes: 0, unregistered: Some(refusal(&error)) },
        };
        let (listener, bell) = io::pipe()?;
        let thread = Mutex::new(Thread::Idle(Box::new((ring, listener))));
        Ok((Self { inbox: Arc::default(), bell, thread }, report))
    }

    /// Starts the thread if it has not been. Returns whether there is one.
    fn staff(&self) -> bool {
        let mut thread = lock(&self.thread);
        if let Thread::Idle(_) = &*thread
            && let Thread::Idle(parts) = std::mem::replace(&mut *thread, Thread::Gone)
        {
            let inbox = Arc::clone(&self.inbox);
            let body = move || {
                let (ring, listener) = *parts;
                run(ring, &inbox, listener);
            };
            if let Ok(handle) = thread::Builder::new().name("reprise-io".to_owned()).spawn(body) {
                *thread = Thread::Running(handle);
            }
        }
        matches!(*thread, Thread::Running(_))
    }

    /// Puts something into the inbox and wakes the thread if it may not know that there is something.
    fn send(&self, put: impl FnOnce(&mut Inbox)) {
        let mut inbox = lock(&self.inbox);
        let known = !inbox.transfers.is_empty() || inbox.stopped;
        put(&mut inbox);
        drop(inbox);
        if !known {
            // The listener lives until the thread has seen `stopped`.
            let _ = (&self.bell).write(&[0]);
        }
    }
}

impl Engine for Uring {
    fn start(&self, transfer: Transfer) {
        match self.staff() {
            true => self.send(|inbox| inbox.transfers.push(transfer)),
            false => {
                transfer.end(Err(io::Error::other("the thread for input and output cannot be started")), Caller::Busy)
            }
        }
    }

    fn stop(&self) {
        self.send(|inbox| inbox.stopped = true);
        if let Thread::Running(thread) = std::mem::replace(&mut *lock(&self.thread), Thread::Gone) {
            // A panic there was reported by the thread itself.
            let _ = thread.join();
        }
    }
}

impl Drop for Uring {
    /// Without waiting: it may be the thread itself that drops the engine, with the last transfer.
    fn drop(&mut self) {
        self.send(|inbox| inbox.stopped = true);
    }
}

fn run(mut ring: Ring, inbox: &Mutex<Inbox>, mut listener: PipeReader) {
    let mut ended: Vec<(Transfer, io::Result<()>)> = Vec::new();
    ring.listen(&listener);
    loop {
        let Inbox { transfers, stopped } = {
            let mut inbox = lock(inbox);
            Inbox { transfers: std::mem::take(&mut inbox.transfers), stopped: inbox.stopped }
        };
        for transfer in transfers {
            if let Err(transfer) = ring.push(transfer) {
                transfer.end(Err(io::ErrorKind::Unsupported.into()), Caller::Busy);
            }
        }
        // If one ended, this thread sees to it while the device is busy with the others. If more did, it cannot keep up,
        // and leaves them to other threads.
        if let Some((transfer, result)) = ended.pop() {
            ring.flush();
            transfer.end(result, Caller::Idle);
            continue;
        }
        if stopped && ring.in_flight() == 0 {
            return;
        }
        match ring.wait(&mut ended) {
            Ok(true) => {
                // It was rung, so this does not wait.
                let _ = listener.read(&mut [0; 64]);
                ring.listen(&listener);
            }
            Ok(false) => {}
            Err(_) => thread::sleep(RETRY_AFTER),
        }
        for (transfer, result) in ended.drain(1.min(ended.len())..) {
            transfer.end(result, Caller::Busy);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::engine::Direction;
    use crate::format::PAGE_BYTES;
    use crate::storage::{Access, Content, Directory, Storage};

    #[test]
    fn a_buffer_that_is_not_registered_does_not_get_other_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let file = Directory::create(dir.path(), false).unwrap();
        let file: Arc<dyn crate::storage::StorageFile> =
            Arc::from(file.open("file", Access::Create, Content::Payload).unwrap());
        let bytes: Vec<u8> = (0..3 * PAGE_BYTES).map(|at| (at / 7) as u8).collect();
        file.write_at(&bytes, 0).unwrap();

        let mut buffers = vec![Buffer::zeroed(2 * PAGE_BYTES)];
        let Ok((engine, report)) = Uring::new(4, &mut buffers) else {
            eprintln!("io_uring is refused here and was not tried");
            return;
        };
        assert!(matches!(report, IoEngine::Ring { .. }));
        buffers.push(Buffer::zeroed(2 * PAGE_BYTES));
        let (sender, receiver) = mpsc::channel();
        let carry = |direction, offset, buffer: Buffer| {
            let sender = sender.clone();
            let done = move |buffer, result: io::Result<()>, _| sender.send((buffer, result)).unwrap();
            let (file, len_bytes) = (Arc::clone(&file), buffer.len());
            engine.start(Transfer { file, direction, offset, buffer, len_bytes, done: Box::new(done) });
            receiver.recv().unwrap()
        };
        for buffer in buffers {
            let (mut buffer, result) = carry(Direction::Read, 4096, buffer);
            result.unwrap();
            assert!(buffer.bytes() == &bytes[PAGE_BYTES..]);
            // Beyond the end there is a page too few.
            buffer.bytes_mut().fill(9);
            let (buffer, result) = carry(Direction::Read, 8192, buffer);
            assert_eq!(result.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
            let (mut buffer, result) = carry(Direction::Write, 8192, buffer);
            result.unwrap();
            buffer.bytes_mut().fill(0);
            let (buffer, result) = carry(Direction::Read, 8192, buffer);
            result.unwrap();
            assert!(
                buffer.bytes()[..PAGE_BYTES] == bytes[2 * PAGE_BYTES..] && buffer.bytes()[PAGE_BYTES..] == [9; 4096]
            );
            file.truncate(3 * PAGE_BYTES as u64).unwrap();
        }
        engine.stop();
    }
}
