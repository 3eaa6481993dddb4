//! What can be wrong with a trace, in words that say where, what, and what to do.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::Format;

/// Why a trace could not be read or made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file or directory cannot be opened.
    #[error("cannot open the trace {}: {source}", path.display())]
    Open {
        /// What was to be opened.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Reading or decompressing stopped short.
    #[error("cannot read {file} beyond line {line}: {source} (is the file complete?)")]
    Read {
        /// The file.
        file: String,
        /// The last line that could be read; 0 if none.
        line: u64,
        /// What the system or the decompressor said.
        source: io::Error,
    },
    /// A record that does not say what it must. Only this kind is counted instead by
    /// [`ReadOptions::skip_bad`](super::ReadOptions::skip_bad).
    #[error("{file}{place}: {fault}")]
    BadRecord {
        /// The file.
        file: String,
        /// Where in the file.
        place: Place,
        /// What is wrong.
        fault: RecordFault,
    },
    /// The content looks like no format that can be read.
    #[error(
        "{file} is in no trace format known ({}); name the format with --format if it is one of them",
        Format::LIST
    )]
    Unrecognised {
        /// The file.
        file: String,
    },
    /// There is nothing to replay.
    #[error("{file} holds no requests ({skipped} bad records skipped)")]
    NoRequests {
        /// The file.
        file: String,
        /// Bad records that were left out.
        skipped: u64,
    },
    /// A directory without session files.
    #[error("the directory {} holds no session files (*.json, *.json.gz, *.json.zst)", path.display())]
    NoSessionFiles {
        /// The directory.
        path: PathBuf,
    },
    /// A directory where one file is wanted.
    #[error("{} is a directory; only the format {} is read from one, not {format}", path.display(), Format::KvCacheTester)]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The format asked for.
        format: Format,
    },
    /// A block size was given for a format that states its own.
    #[error("{file} states its own block size ({format}); leave the block size of the trace out")]
    StatedBlock {
        /// The file.
        file: String,
        /// Its format.
        format: Format,
    },
    /// A block size that no trace has.
    #[error("a trace block of {tokens} tokens is out of range (1 to {max})", max = super::MAX_BLOCK_TOKENS)]
    BlockTokens {
        /// The size asked for.
        tokens: u32,
    },
    /// The trace does not fit the memory a trace may take.
    #[error("{file} has more than {max} block ids or 2^32 requests; cut it", max = super::ids::MAX_TRACE_IDS)]
    TooLarge {
        /// The file.
        file: String,
    },
    /// The made trace cannot be written.
    #[error("cannot write the made trace: {source}")]
    Write {
        /// What the system said.
        source: io::Error,
    },
}

/// Where in a file a bad record is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// A line, from 1.
    Line(u64),
    /// A request of a session file, from 1; within sub-agents one number per level.
    Request(Vec<u64>),
    /// The file as a whole.
    File,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, ":{line}"),
            Self::Request(path) => {
                let path: Vec<String> = path.iter().map(u64::to_string).collect();
                write!(f, ", request {}", path.join("."))
            }
            Self::File => Ok(()),
        }
    }
}

/// What is wrong with one record.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordFault {
    /// Not JSON, or not the kind of JSON value that belongs there.
    #[error("bad JSON: {0}")]
    Json(String),
    /// Not text.
    #[error("not UTF-8 from byte {0} on")]
    NotUtf8(usize),
    /// Too long to be taken into memory.
    #[error("longer than {0} bytes")]
    TooLong(u64),
    /// A field that must be there is not, or is null.
    #[error("missing field `{0}`")]
    Missing(&'static str),
    /// A field of another type.
    #[error("`{field}` is {found}, not {wanted}")]
    Type {
        /// The field.
        field: &'static str,
        /// What it holds.
        found: String,
        /// What it must hold.
        wanted: &'static str,
    },
    /// A count, id or time below zero.
    #[error("`{field}` is negative: {value}")]
    Negative {
        /// The field.
        field: &'static str,
        /// What it holds.
        value: String,
    },
    /// A count, id or time above what it may be.
    #[error("`{field}` is out of range: {value} (at most {max})")]
    TooLarge {
        /// The field.
        field: &'static str,
        /// What it holds.
        value: String,
        /// The largest value allowed.
        max: u64,
    },
    /// A block size of 0.
    #[error("`block_size` is 0")]
    NoBlock,
    /// A block size unlike the one before: a trace has one.
    #[error("`block_size` is {found}, but {first} before: a trace has one block size")]
    OtherBlock {
        /// This one.
        found: u32,
        /// The first one.
        first: u32,
    },
    /// A request before the first session header.
    #[error("a request before the first session header")]
    NoHeader,
    /// A request of a session whose header is bad.
    #[error("a request of a session whose header is bad")]
    BadHeader,
    /// `ref` names this request or a later one.
    #[error("`ref` is {reference}, not an earlier request of the session: this is request {index}")]
    RefNotEarlier {
        /// What it names.
        reference: u64,
        /// The index of the request itself, from 0.
        index: u64,
    },
    /// `ref` names a request that was skipped.
    #[error("`ref` is {0}, a request that was skipped as bad")]
    RefSkipped(u64),
    /// `lcp` without anything to share with.
    #[error("`lcp` is {0}, but `ref` is -1: there is nothing to share")]
    LcpWithoutRef(u64),
    /// `lcp` is longer than what it is a prefix of.
    #[error("`lcp` is {lcp}, but request {reference} has {len} ids")]
    LcpTooLong {
        /// How many ids are to be shared.
        lcp: u64,
        /// The request to share with.
        reference: u64,
        /// How many it has.
        len: u32,
    },
    /// The runs of `new` give far more ids than the prompt has blocks.
    #[error("`new` gives {ids} ids, but a prompt of {prompt_tokens} tokens has {blocks} blocks")]
    RunsTooLong {
        /// Ids in all runs.
        ids: u64,
        /// Tokens of the prompt.
        prompt_tokens: u32,
        /// Blocks of the prompt, the partial one included.
        blocks: u32,
    },
}

impl RecordFault {
    /// What `serde_json` said, without the line: a record is one line, and the place is told already.
    pub(super) fn json(error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let text = match text.rfind(" at line ") {
            Some(end) => format!("{} at column {}", &text[..end], error.column()),
            None => text,
        };
        Self::Json(text)
    }
}
