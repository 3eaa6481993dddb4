//! A file per record, as serving engines do it: written under another name and renamed, never synced.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use crate::contender::{Closing, Contender, Reader, spread};
use crate::records::{Records, Tally};

/// Files of a directory.
const FILES: usize = 256;

/// The most threads that write. More only wait for each other at the directory that all of them add files to.
const WRITERS: usize = 4;

/// Files, through the page cache.
#[derive(Clone, Copy)]
pub struct Files {
    /// How many reads are under way at once, each on a thread of its own.
    pub depth: usize,
}

fn path_of(place: &Path, index: usize) -> PathBuf {
    place.join(format!("{:04x}", index / FILES)).join(format!("{:032x}", Records::key(index)))
}

fn write(place: &Path, index: usize, payload: &[u8]) -> Result<()> {
    let path = path_of(place, index);
    let unfinished = path.with_extension("tmp");
    fs::write(&unfinished, payload).with_context(|| format!("writing {}", unfinished.display()))?;
    fs::rename(&unfinished, &path).with_context(|| format!("renaming to {}", path.display()))
}

impl Contender for Files {
    fn name(&self) -> String {
        "file per record".to_owned()
    }

    fn write(&self, place: &Path, records: &Records) -> Result<Closing> {
        for first in (0..records.count).step_by(FILES) {
            let path = path_of(place, first);
            let dir = path.parent().expect("a record lies in a directory");
            fs::create_dir(dir).with_context(|| format!("making {}", dir.display()))?;
        }
        let writers = self.depth.min(WRITERS);
        spread(writers, records.count, || (), |(), index| write(place, index, records.payload(index)))?;
        Ok(Box::new(|| Ok(())))
    }

    fn open(&self, place: &Path, records: &Records) -> Result<Box<dyn Reader>> {
        Ok(Box::new(FileReader { files: *self, place: place.to_owned(), records: records.clone() }))
    }
}

struct FileReader {
    files: Files,
    place: PathBuf,
    records: Records,
}

impl FileReader {
    fn read(&self, index: usize, buffer: &mut [u8], tally: &Tally) -> Result<()> {
        let path = path_of(&self.place, index);
        let Ok(mut file) = File::open(&path) else { return Ok(()) };
        file.read_exact(buffer).with_context(|| format!("reading {}", path.display()))?;
        tally.check(index, buffer);
        Ok(())
    }

    fn buffer(&self) -> Vec<u8> {
        vec![0; self.records.bytes]
    }
}

impl Reader for FileReader {
    fn read_all(&mut self, order: &Arc<[usize]>, tally: &Arc<Tally>) -> Result<()> {
        let read = |buffer: &mut Vec<u8>, at: usize| self.read(order[at], buffer, tally);
        spread(self.files.depth, order.len(), || self.buffer(), read)
    }

    fn read_one(&mut self, index: usize, tally: &Tally) -> Result<()> {
        self.read(index, &mut self.buffer(), tally)
    }

    fn forget_pages(&self) -> Result<()> {
        spread(
            1,
            self.records.count,
            || (),
            |(), index| {
                let path = path_of(&self.place, index);
                let file = File::open(&path).with_context(|| format!("opening {}", path.display()))?;
                posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)
                    .with_context(|| format!("dropping the pages of {}", path.display()))
            },
        )
    }
}
