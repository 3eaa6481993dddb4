//! `reprise trace make`.

use std::{
    io::{self, BufWriter, Write},
    path::Path,
};

use anyhow::Context;

use super::Failure;
use crate::{
    args::TraceCommand,
    trace::{
        Salt, TraceError,
        make::{Made, MakeOptions, make},
    },
};

pub(super) fn run(command: TraceCommand) -> Result<(), Failure> {
    let TraceCommand::Make { input, output, block_tokens, salt, skip_bad } = command;
    let salt = match salt {
        Some(phrase) => Salt::from_phrase(&phrase),
        None => Salt::random().context("reading a random salt; give one with --salt").map_err(Failure::work)?,
    };
    let options = MakeOptions { block_tokens, salt, skip_bad };
    let made = match &output {
        Some(path) => make_file(&input, path, &options)?,
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            let made = make(&input, &mut out, &options).map_err(classify)?;
            out.flush().context("writing the trace to standard output").map_err(Failure::work)?;
            made
        }
    };
    let Made { requests, blocks, distinct_blocks, skipped } = made;
    let left_out = if skipped > 0 { format!("; {skipped} bad lines left out") } else { String::new() };
    eprintln!("reprise: {requests} requests, {blocks} blocks, {distinct_blocks} of them distinct{left_out}");
    Ok(())
}

/// The file appears under its name when it is complete; a failed run leaves none, and an older one as it was.
fn make_file(input: &Path, path: &Path, options: &MakeOptions) -> Result<Made, Failure> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let creating = || format!("creating {}", path.display());
    let file = tempfile::Builder::new()
        .prefix(".reprise-trace-")
        .tempfile_in(directory)
        .with_context(creating)
        .map_err(Failure::work)?;
    let mut out = BufWriter::new(file);
    let made = make(input, &mut out, options).map_err(classify)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error);
    let file = file.with_context(|| format!("writing {}", path.display())).map_err(Failure::work)?;
    file.persist(path).with_context(creating).map_err(Failure::work)?;
    Ok(made)
}

fn classify(error: TraceError) -> Failure {
    match error {
        TraceError::Write { .. } => Failure::work(error),
        error => Failure::input(error),
    }
}
