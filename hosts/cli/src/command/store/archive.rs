//! `reprise store export` and `import`.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, IsTerminal, Read, Write},
    path::Path,
};

use anyhow::{Context, anyhow};
use indicatif::ProgressBar;
use reprise::{
    StoreReader,
    disk::tools::{self, ArchiveError, Exported, Filter, Imported, ImportedGroup},
};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::{Failure, failure, filter, follow, print, read};
use crate::{
    args::FilterOptions,
    figures::{columns, grouped, human_bytes},
    progress::bar,
};

/// Fast, and about as small as it gets: payloads are nearly random.
const ZSTD_LEVEL: i32 = 1;
/// What a stream of zstd begins with (RFC 8878, section 3.1.1).
const ZSTD_MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();
const BUFFER_BYTES: usize = 1 << 20;

pub(super) fn export(directory: &Path, file: &Path, options: &FilterOptions, json: bool) -> Result<(), Failure> {
    let store = read(directory)?;
    let filter = filter(&store, directory, options)?;
    let to_stdout = file == Path::new("-");
    if to_stdout && io::stdout().is_terminal() {
        return Err(Failure::input(anyhow!(
            "an archive is not for a terminal; name a file, or send it on with a pipe"
        )));
    }
    let bar = bar(0, "records", json);
    let exported = match to_stdout {
        true => write(&store, &filter, io::stdout().lock(), &bar),
        false => write_file(&store, &filter, file, &bar),
    };
    bar.finish_and_clear();
    let exported = exported?;
    let text = if json { format!("{:#}\n", exported_json(&exported)) } else { exported_table(&exported) };
    if to_stdout {
        eprint!("{text}");
        return Ok(());
    }
    print(&text)
}

fn write(store: &StoreReader, filter: &Filter, out: impl Write, bar: &ProgressBar) -> Result<Exported, Failure> {
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, out);
    let exported = tools::export(store, filter, &mut out, &mut follow(bar)).map_err(archive_failure)?;
    out.flush().map_err(|error| archive_failure(ArchiveError::Write(error)))?;
    Ok(exported)
}

/// Writes under another name, so that the file is there in full or not at all.
fn write_file(store: &StoreReader, filter: &Filter, file: &Path, bar: &ProgressBar) -> Result<Exported, Failure> {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let making = || format!("making {}", file.display());
    let partial = NamedTempFile::new_in(parent).with_context(making).map_err(Failure::Input)?;
    let exported = if file.extension().is_some_and(|extension| extension == "zst") {
        let mut encoder =
            zstd::Encoder::new(partial.as_file(), ZSTD_LEVEL).with_context(making).map_err(Failure::Work)?;
        let exported = write(store, filter, &mut encoder, bar)?;
        encoder.finish().with_context(making).map_err(Failure::Work)?;
        exported
    } else {
        write(store, filter, partial.as_file(), bar)?
    };
    partial.as_file().sync_all().with_context(making).map_err(Failure::Work)?;
    partial.persist(file).with_context(making).map_err(Failure::Work)?;
    Ok(exported)
}

pub(super) fn import(directory: &Path, file: &Path, json: bool) -> Result<(), Failure> {
    let bar = bar(0, "bytes", json);
    let imported = match file == Path::new("-") {
        true => read_from(directory, io::stdin().lock(), &bar),
        false => {
            let opened = File::open(file).and_then(|opened| Ok((opened.metadata()?.len(), opened)));
            let (len_bytes, opened) =
                opened.with_context(|| format!("reading {}", file.display())).map_err(Failure::Input)?;
            bar.set_length(len_bytes);
            read_from(directory, opened, &bar)
        }
    };
    bar.finish_and_clear();
    let imported = imported?;
    print(&if json { format!("{:#}\n", imported_json(&imported)) } else { imported_table(&imported) })?;
    let damaged: u64 = imported.groups.iter().map(|group| group.damaged).sum();
    match &imported.stopped {
        Some(why) => Err(Failure::work(anyhow!("the import stopped before the archive's end: {why}"))),
        None if damaged > 0 => {
            Err(Failure::work(anyhow!("{damaged} records of the archive are damaged and were left out")))
        }
        None => Ok(()),
    }
}

fn read_from(directory: &Path, input: impl Read, bar: &ProgressBar) -> Result<Imported, Failure> {
    let mut input = BufReader::with_capacity(BUFFER_BYTES, bar.wrap_read(input));
    let mut begin = [0; 4];
    let count = fill(&mut input, &mut begin).map_err(|error| archive_failure(ArchiveError::Read(error)))?;
    let input = begin[..count].chain(input);
    let result = if begin == ZSTD_MAGIC {
        let decoder = zstd::Decoder::new(input).map_err(|error| archive_failure(ArchiveError::Read(error)))?;
        tools::import(directory, &mut { decoder }, &mut |_| {})
    } else {
        tools::import(directory, &mut { input }, &mut |_| {})
    };
    result.map_err(archive_failure)
}

/// Reads until `bytes` are full or the input ends; how many there are.
fn fill(input: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < bytes.len() {
        match input.read(&mut bytes[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

fn archive_failure(error: ArchiveError) -> Failure {
    match error {
        ArchiveError::Store(error) => failure(error),
        error @ (ArchiveError::Read(_) | ArchiveError::Write(_)) => Failure::work(error),
        error => Failure::input(error),
    }
}

fn exported_json(exported: &Exported) -> Value {
    json!({
        "namespaces": exported.namespaces,
        "groups": exported.groups.iter().map(|group| json!({
            "group": group.group, "records": group.records, "bytes": group.payload_bytes,
        })).collect::<Vec<_>>(),
        "left_out": exported.left_out,
    })
}

fn exported_table(exported: &Exported) -> String {
    let mut rows = vec![["exported", "records", "bytes"].map(str::to_owned)];
    rows.extend(
        exported
            .groups
            .iter()
            .map(|group| [group.group.clone(), grouped(group.records), human_bytes(group.payload_bytes)]),
    );
    let mut lines = columns(&rows, &[0]);
    if exported.left_out > 0 {
        lines.push(format!(
            "{} damaged records, and records behind them, were left out; `reprise store verify` says which",
            exported.left_out
        ));
    }
    lines.join("\n") + "\n"
}

fn imported_json(imported: &Imported) -> Value {
    json!({
        "groups": imported.groups.iter().map(|group| json!({
            "group": group.group, "imported": group.imported, "present": group.present, "full": group.full,
            "unreachable": group.unreachable, "incomplete": group.incomplete, "damaged": group.damaged,
        })).collect::<Vec<_>>(),
        "stopped": imported.stopped,
    })
}

fn imported_table(imported: &Imported) -> String {
    let mut rows = vec![["", "imported", "there already", "no room", "behind those", "damaged"].map(str::to_owned)];
    rows.extend(imported.groups.iter().map(|group| {
        let ImportedGroup { imported, present, full, unreachable, damaged, .. } = *group;
        let [imported, present, full, unreachable, damaged] =
            [imported, present, full, unreachable, damaged].map(grouped);
        [group.group.clone(), imported, present, full, unreachable, damaged]
    }));
    let mut lines = columns(&rows, &[0]);
    let sum = |count: fn(&ImportedGroup) -> u64| imported.groups.iter().map(count).sum::<u64>();
    if sum(|group| group.full) > 0 {
        lines.push("a group is full: raise its quota, or make room with `reprise store evict`".to_owned());
    }
    if sum(|group| group.incomplete) > 0 {
        lines.push("checkpoints were left out: the archive lacks a group of them that the store keeps".to_owned());
    }
    lines.join("\n") + "\n"
}
