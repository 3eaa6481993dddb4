//! Where a trace is read from: a file, standard input or memory; plain, gzip or Zstandard, told by its first bytes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use super::{Place, RecordFault, TraceError};

/// Longest line, or session file, that is taken into memory.
pub(super) const MAX_RECORD_BYTES: u64 = 512 << 20;

/// How much of the beginning is looked at to recognise the format.
const HEAD_BYTES: u64 = 1 << 20;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// An opened trace file, decompressed, and the place reached in it.
pub(super) struct Source<'a> {
    pub(super) name: String,
    pub(super) line: u64,
    reader: Box<dyn BufRead + 'a>,
    buffer: Vec<u8>,
    max_bytes: u64,
}

impl<'a> Source<'a> {
    /// Opens a file, or standard input if the path is `-`.
    pub(super) fn open(path: &Path) -> Result<Self, TraceError> {
        if path == Path::new("-") {
            return Self::new("standard input".into(), io::stdin());
        }
        let file = File::open(path).map_err(|source| TraceError::Open { path: path.into(), source })?;
        Self::new(path.display().to_string(), file)
    }

    /// A source that reads and, if need be, decompresses `input`.
    pub(super) fn new(name: String, mut input: impl Read + 'a) -> Result<Self, TraceError> {
        let mut source = Self { name, line: 0, reader: Box::new(io::empty()), buffer: Vec::new(), max_bytes: 0 };
        source.max_bytes = MAX_RECORD_BYTES;
        // A pipe may give fewer bytes than asked for, so the magic is read whole before it is judged.
        let magic = read_up_to(&mut input, ZSTD.len() as u64).map_err(|error| source.failed(error))?;
        let input = BufReader::with_capacity(1 << 16, Cursor::new(magic.clone()).chain(input));
        source.reader = if magic.starts_with(&GZIP) {
            Box::new(BufReader::with_capacity(1 << 16, flate2::bufread::MultiGzDecoder::new(input)))
        } else if magic == ZSTD {
            let decoder = zstd::Decoder::with_buffer(input).map_err(|error| source.failed(error))?;
            Box::new(BufReader::with_capacity(1 << 16, decoder))
        } else {
            Box::new(input)
        };
        Ok(source)
    }

    /// Up to a mebibyte of what comes next, without taking it; a byte order mark is dropped.
    pub(super) fn head(&mut self) -> Result<Vec<u8>, TraceError> {
        let mut head = read_up_to(&mut self.reader, HEAD_BYTES).map_err(|error| self.failed(error))?;
        if head.starts_with(BYTE_ORDER_MARK) {
            head.drain(..BYTE_ORDER_MARK.len());
        }
        let rest = std::mem::replace(&mut self.reader, Box::new(io::empty()));
        self.reader = Box::new(Cursor::new(head.clone()).chain(rest));
        Ok(head)
    }

    /// The next line that is not blank, without its end; none at the end of the file. The inner error is a bad line.
    pub(super) fn next_line(&mut self) -> Result<Option<Result<&str, RecordFault>>, TraceError> {
        loop {
            self.buffer.clear();
            let read = (&mut self.reader).take(self.max_bytes + 1).read_until(b'\n', &mut self.buffer);
            if read.map_err(|error| self.failed(error))? == 0 {
                return Ok(None);
            }
            self.line += 1;
            if self.buffer.last() == Some(&b'\n') {
                self.buffer.pop();
            } else if self.buffer.len() as u64 > self.max_bytes {
                self.reader.skip_until(b'\n').map_err(|error| self.failed(error))?;
                return Ok(Some(Err(RecordFault::TooLong(self.max_bytes))));
            }
            if !self.buffer.trim_ascii().is_empty() {
                break;
            }
        }
        Ok(Some(text(&self.buffer)))
    }

    /// Whether the bytes of the line last read contain `text`, even if they are not UTF-8.
    pub(super) fn line_contains(&self, text: &str) -> bool {
        self.buffer.windows(text.len()).any(|window| window == text.as_bytes())
    }

    /// All that is left, as text. The inner error says why that cannot be.
    pub(super) fn rest(&mut self) -> Result<Result<&str, RecordFault>, TraceError> {
        self.buffer = read_up_to(&mut self.reader, self.max_bytes + 1).map_err(|error| self.failed(error))?;
        if self.buffer.len() as u64 > self.max_bytes {
            return Ok(Err(RecordFault::TooLong(self.max_bytes)));
        }
        Ok(text(&self.buffer))
    }

    /// A bad record on the line last read.
    pub(super) fn bad_line(&self, fault: RecordFault) -> TraceError {
        TraceError::BadRecord { file: self.name.clone(), place: Place::Line(self.line), fault }
    }

    fn failed(&self, source: io::Error) -> TraceError {
        TraceError::Read { file: self.name.clone(), line: self.line, source }
    }
}

fn read_up_to(reader: &mut impl Read, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(max_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn text(bytes: &[u8]) -> Result<&str, RecordFault> {
    std::str::from_utf8(bytes).map_err(|error| RecordFault::NotUtf8(error.valid_up_to()))
}

#[cfg(test)]
pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    flate2::read::GzEncoder::new(bytes, flate2::Compression::fast()).read_to_end(&mut out).expect("memory");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time, as a slow pipe may.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let len = self.0.len().min(buffer.len()).min(1);
            buffer[..len].copy_from_slice(&self.0[..len]);
            self.0 = &self.0[len..];
            Ok(len)
        }
    }

    fn lines(mut source: Source<'_>) -> Vec<String> {
        source.head().unwrap();
        let mut lines = Vec::new();
        while let Some(line) = source.next_line().unwrap() {
            lines.push(line.map_or_else(|fault| fault.to_string(), str::to_owned));
        }
        lines
    }

    #[test]
    fn compression_and_slow_pipes_change_nothing() {
        let plain = "\u{feff}one\n\n  \ntwo\r\nthree";
        let zstd = zstd::encode_all(plain.as_bytes(), 1).unwrap();
        let two_members = [gzip(&plain.as_bytes()[..8]), gzip(&plain.as_bytes()[8..])].concat();
        for bytes in [plain.as_bytes(), &gzip(plain.as_bytes()), &zstd, &two_members] {
            let source = Source::new("t".into(), Drip(bytes)).unwrap();
            assert_eq!(lines(source), ["one", "two\r", "three"]);
        }
    }

    #[test]
    fn a_cut_off_stream_is_never_taken_for_the_end() {
        let text = "{\"a\": 1}\n".repeat(50_000);
        for whole in [gzip(text.as_bytes()), zstd::encode_all(text.as_bytes(), 1).unwrap()] {
            let mut source = Source::new("t.gz".into(), &whole[..whole.len() - 5]).unwrap();
            let error = loop {
                match source.next_line() {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("the end is missing"),
                    Err(error) => break error.to_string(),
                }
            };
            assert!(error.starts_with("cannot read t.gz beyond line "), "{error}");
            assert!(error.ends_with("(is the file complete?)"), "{error}");
        }
    }

    #[test]
    fn a_line_too_long_takes_neither_memory_nor_its_neighbours() {
        let mut source = Source::new("t".into(), &b"short\n0123456789abcdef\n0123456789\nend"[..]).unwrap();
        source.max_bytes = 10;
        assert_eq!(lines(source), ["short", "longer than 10 bytes", "0123456789", "end"]);
    }
}
