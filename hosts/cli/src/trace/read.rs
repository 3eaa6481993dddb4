//! Reading a trace: which reader takes what, and what all readers share.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::field::{Object, Scalar, required};
use super::ids::{BlockIds, Span};
use super::source::Source;
use super::{Format, MAX_BLOCK_TOKENS, MAX_PROMPT_TOKENS, RecordFault, Request, Trace, TraceError};
use super::{flat, kv_cache_tester, sessions};

/// How a trace is to be read. The default recognises the format and stops at the first bad record.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// The format, if it is not to be recognised from the content.
    pub format: Option<Format>,
    /// Tokens of a block, for formats that do not say: instead of 512 (Mooncake) or 16 (Bailian).
    pub block_tokens: Option<u32>,
    /// Leave bad records out and count them in [`Trace::skipped`]. A request whose `ref` was left out is itself bad, and
    /// so are all requests of a session whose header is. A stream that breaks off is an error all the same.
    pub skip_bad: bool,
}

impl Trace {
    /// Reads a trace: a file, a directory of kv-cache-tester session files, or standard input if the path is `-`.
    /// Compression (gzip, Zstandard) is told from the content.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is in no known format, holds no request, or, unless [`ReadOptions::skip_bad`], has a bad
    /// record. The message names the file, the line and the reason.
    pub fn read(path: &Path, options: &ReadOptions) -> Result<Self, TraceError> {
        let name = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into());
        if !path.is_dir() {
            return Self::from_source(name, Source::open(path)?, options);
        }
        let format = options.format.unwrap_or(Format::KvCacheTester);
        if format != Format::KvCacheTester {
            return Err(TraceError::Directory { path: path.into(), format });
        }
        let mut builder = Builder::new(name, path.display().to_string(), format, options)?;
        for file in session_files(path)? {
            let mut source = Source::open(&file)?;
            source.head()?; // drops a byte order mark
            kv_cache_tester::read(&mut source, &mut builder)?;
        }
        builder.finish()
    }

    /// Reads a trace from memory or any other stream; `name` stands for the file name in messages.
    ///
    /// # Errors
    ///
    /// As [`Trace::read`].
    pub fn from_reader(name: &str, input: impl Read, options: &ReadOptions) -> Result<Self, TraceError> {
        Self::from_source(name.into(), Source::new(name.into(), input)?, options)
    }

    /// The bundled sample: the first requests of five coding-agent sessions (see `sample/NOTICE`).
    ///
    /// # Errors
    ///
    /// None, unless the program was built with a broken sample.
    pub fn sample() -> Result<Self, TraceError> {
        let sample = include_bytes!("../../sample/coding-agent-sample.jsonl");
        Self::from_reader("coding-agent-sample.jsonl", &sample[..], &ReadOptions::default())
    }

    fn from_source(name: String, mut source: Source<'_>, options: &ReadOptions) -> Result<Self, TraceError> {
        let head = source.head()?;
        let file = source.name.clone();
        if head.trim_ascii().is_empty() {
            return Err(TraceError::NoRequests { file, skipped: 0 });
        }
        let Some(format) = options.format.or_else(|| Format::recognise(&head)) else {
            return Err(TraceError::Unrecognised { file });
        };
        let mut builder = Builder::new(name, file, format, options)?;
        match format {
            Format::Mooncake => flat::read(&mut source, &mut builder, flat::MILLISECOND_US)?,
            Format::Bailian => flat::read(&mut source, &mut builder, flat::SECOND_US)?,
            Format::Sessions => sessions::read(&mut source, &mut builder)?,
            Format::KvCacheTester => kv_cache_tester::read(&mut source, &mut builder)?,
        }
        builder.finish()
    }
}

/// The session files of a directory, sorted by file name.
fn session_files(directory: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let failed = |source| TraceError::Open { path: directory.into(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if [".json", ".json.gz", ".json.zst"].iter().any(|end| name.ends_with(end)) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() { Err(TraceError::NoSessionFiles { path: directory.into() }) } else { Ok(files) }
}

/// What a reader knows of a request besides its ids.
pub(super) struct Row {
    pub(super) time_us: u64,
    pub(super) session: u32,
    pub(super) scope: u32,
    pub(super) prompt_tokens: u32,
    pub(super) output_tokens: Option<u32>,
}

/// A trace while it is read.
pub(super) struct Builder {
    trace: Trace,
    file: String,
    skip_bad: bool,
    block_known: bool,
}

impl Builder {
    fn new(name: String, file: String, format: Format, options: &ReadOptions) -> Result<Self, TraceError> {
        let default = format.default_block_tokens();
        let block_tokens = match (options.block_tokens, default) {
            (Some(_), None) => return Err(TraceError::StatedBlock { file, format }),
            (Some(tokens), _) if tokens == 0 || tokens > MAX_BLOCK_TOKENS => {
                return Err(TraceError::BlockTokens { tokens });
            }
            (tokens, default) => tokens.or(default),
        };
        let trace = Trace {
            name,
            format,
            block_tokens: block_tokens.unwrap_or(0),
            sessions: 0,
            requests: Vec::new(),
            skipped: 0,
            ids: BlockIds::default(),
        };
        Ok(Self { trace, file, skip_bad: options.skip_bad, block_known: block_tokens.is_some() })
    }

    /// Begins the next session and returns its number.
    pub(super) fn begin_session(&mut self) -> u32 {
        self.trace.sessions += 1;
        self.trace.sessions - 1
    }

    /// Takes the block size that a session states; it must be that of the others.
    pub(super) fn state_block(&mut self, field: &Option<Scalar>) -> Result<(), RecordFault> {
        let found = required(field, "block_size")?.count("block_size", u64::from(MAX_BLOCK_TOKENS))? as u32;
        if found == 0 {
            return Err(RecordFault::NoBlock);
        }
        let first = if self.block_known { self.trace.block_tokens } else { found };
        if found != first {
            return Err(RecordFault::OtherBlock { found, first });
        }
        self.trace.block_tokens = found;
        self.block_known = true;
        Ok(())
    }

    /// The blocks of a prompt, the partial one included.
    pub(super) fn blocks(&self, prompt_tokens: u32) -> u32 {
        prompt_tokens.div_ceil(self.trace.block_tokens)
    }

    /// Adds a request whose ids are all written out. Ids beyond the blocks of the prompt say nothing and are dropped.
    pub(super) fn push(&mut self, row: Row, ids: &[u64]) -> Result<(), TraceError> {
        let len = ids.len().min(self.blocks(row.prompt_tokens) as usize);
        self.push_shared(row, None, len, ids.iter().copied()).map(|_| ())
    }

    /// Adds a request with the first ids of an earlier one and `own_len` of its own.
    pub(super) fn push_shared(
        &mut self,
        row: Row,
        shared: Option<(Span, u32)>,
        own_len: usize,
        own: impl Iterator<Item = u64>,
    ) -> Result<Span, TraceError> {
        let too_large = || TraceError::TooLarge { file: self.file.clone() };
        if self.trace.requests.len() >= u32::MAX as usize {
            return Err(too_large());
        }
        let span = self.trace.ids.push(shared, own_len, own).map_err(|_| too_large())?;
        let Row { time_us, session, scope, prompt_tokens, output_tokens } = row;
        self.trace.requests.push(Request { time_us, session, scope, prompt_tokens, output_tokens, span });
        Ok(span)
    }

    /// Stops at a bad record, or counts it.
    pub(super) fn bad(&mut self, error: TraceError) -> Result<(), TraceError> {
        match error {
            TraceError::BadRecord { .. } if self.skip_bad => {
                self.trace.skipped += 1;
                Ok(())
            }
            error => Err(error),
        }
    }

    fn finish(mut self) -> Result<Trace, TraceError> {
        if self.trace.requests.is_empty() {
            return Err(TraceError::NoRequests { file: self.file, skipped: self.trace.skipped });
        }
        self.trace.ids.finish();
        self.trace.requests.shrink_to_fit();
        Ok(self.trace)
    }
}

/// The tokens of a prompt.
pub(super) fn prompt_tokens(field: &Option<Scalar>, name: &'static str) -> Result<u32, RecordFault> {
    Ok(required(field, name)?.count(name, u64::from(MAX_PROMPT_TOKENS))? as u32)
}

/// Reads one record from its text.
pub(super) fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, RecordFault> {
    let object: Object<T> = serde_json::from_str(text).map_err(|error| RecordFault::json(&error))?;
    Ok(object.0)
}
