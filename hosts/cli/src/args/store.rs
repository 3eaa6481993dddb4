//! `reprise store`.

use std::{ops::Range, path::PathBuf};

use clap::{Args, Subcommand};

/// Shown with the list of commands.
pub(super) const HELP: &str = "\
Look at a store, and take records out of it or from one to another.

`info`, `ls`, `verify`, `export` and `purge --dry-run` only read: they work while a cache has the store open, and change nothing. \
`verify --repair`, `evict`, `purge` and `import` need the store for themselves: stop the process that serves from it first. They can \
be interrupted at any moment; what is left is a good store, and the same command again does the rest.

A record is a block (group history) or a part of the checkpoint at the end of a block (groups window and draft). A block is found only \
through the blocks before it: what nothing leads to any more is taken out with what led to it, and counted apart (`behind`).

Times of last use are those of the process that serves: whatever clock it gave the cache. `info` shows the oldest and the newest.";

/// Look at a store, and take records out of it or from one to another.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// What a store is, what it holds by namespace and group, what it takes, and who has it open; changes nothing
    #[command(after_help = "Exit status: 0 done; 1 a table cannot be read; 2 there is no store.")]
    Info {
        /// Directory of the store
        directory: PathBuf,
        /// Print the result as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// List records by their table entries, one a line, in the order of groups and slots; changes nothing
    #[command(after_help = LS_HELP)]
    Ls {
        /// Directory of the store
        directory: PathBuf,
        /// Which records.
        #[command(flatten)]
        filter: FilterOptions,
        /// Stop after N records
        #[arg(long, value_name = "N")]
        limit: Option<u64>,
        /// Print one JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Read every record and check every byte; changes nothing, and works while a cache has the store open
    #[command(after_help = VERIFY_HELP)]
    Verify {
        /// Directory of the store
        directory: PathBuf,
        /// Free the slots of damaged records and of what nothing leads to without them; needs the store for itself
        #[arg(long)]
        repair: bool,
        /// Print the result as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Take out the records used least recently until there is room; needs the store for itself
    #[command(after_help = EVICT_HELP)]
    Evict {
        /// Directory of the store
        directory: PathBuf,
        /// Group to make room in
        #[arg(long, value_name = "GROUP", default_value = "history")]
        group: String,
        /// How much room.
        #[command(flatten)]
        room: Room,
        /// Print the result as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Take out records by namespace, tenant, age or position; needs the store for itself
    #[command(after_help = PURGE_HELP)]
    Purge {
        /// Directory of the store
        directory: PathBuf,
        /// Which records.
        #[command(flatten)]
        filter: FilterOptions,
        /// Only what was last used before this time; a block counts as used when one behind it was
        #[arg(long, value_name = "TIME")]
        unused_since: Option<u64>,
        /// Say what would go, and take nothing out
        #[arg(long)]
        dry_run: bool,
        /// Print the result as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Write records into an archive, with all blocks that lead to them; changes nothing
    #[command(after_help = EXPORT_HELP)]
    Export {
        /// Directory of the store
        directory: PathBuf,
        /// Archive to write, compressed if its name ends in .zst; `-` for standard output
        file: PathBuf,
        /// Which records.
        #[command(flatten)]
        filter: FilterOptions,
        /// Print the result as one JSON object; on standard error if the archive goes to standard output
        #[arg(long)]
        json: bool,
    },
    /// Bring the records of an archive into a store; needs the store for itself
    #[command(after_help = IMPORT_HELP)]
    Import {
        /// Directory of the store; made if it is missing or empty, with the quotas of the store that the archive comes from
        directory: PathBuf,
        /// Archive to read, plain or compressed; `-` for standard input
        file: PathBuf,
        /// Print the result as one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// Which records are meant: those that fit all options given.
#[derive(Clone, Debug, Default, Args)]
pub struct FilterOptions {
    /// Only of namespace N, as `store info` counts them; may be repeated
    #[arg(long, value_name = "N", help_heading = "Which records")]
    pub namespace: Vec<u16>,
    /// Only of namespaces with this model
    #[arg(long, value_name = "NAME", help_heading = "Which records")]
    pub model: Option<String>,
    /// Only of namespaces with this revision of the weights
    #[arg(long, value_name = "REVISION", help_heading = "Which records")]
    pub revision: Option<String>,
    /// Only of namespaces with this adapter; an empty name for the base model
    #[arg(long, value_name = "ADAPTER", help_heading = "Which records")]
    pub adapter: Option<String>,
    /// Only of the tenant whose secret salt is the bytes of this file
    #[arg(long, value_name = "FILE", help_heading = "Which records")]
    pub tenant_file: Option<PathBuf>,
    /// Only of this group: history, window or draft
    #[arg(long, value_name = "GROUP", help_heading = "Which records")]
    pub group: Option<String>,
    /// Only at token positions from A up to, but not including, B; either may be left out. The position of a record is where its
    /// block ends
    #[arg(long, value_name = "A..B", value_parser = positions, help_heading = "Which records")]
    pub position: Option<Range<u64>>,
    /// Only with digests that begin so
    #[arg(long, value_name = "HEX", value_parser = hexadecimal, help_heading = "Which records")]
    pub digest: Option<String>,
}

impl FilterOptions {
    /// Whether no option was given.
    pub fn is_empty(&self) -> bool {
        let Self { namespace, model, revision, adapter, tenant_file, group, position, digest } = self;
        namespace.is_empty()
            && [model, revision, adapter, group, digest].into_iter().all(Option::is_none)
            && tenant_file.is_none()
            && position.is_none()
    }
}

/// How much room is to be made in a group.
#[derive(Clone, Copy, Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Room {
    /// Until so many bytes of the group's slots are free: a number, or one with KiB, MiB, GiB or TiB
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub bytes: Option<u64>,
    /// Until so many slots of the group are free
    #[arg(long, value_name = "N")]
    pub records: Option<u32>,
}

fn positions(text: &str) -> Result<Range<u64>, String> {
    let number = |text: &str, otherwise| if text.is_empty() { Some(otherwise) } else { text.parse().ok() };
    let range = text.split_once("..").and_then(|(start, end)| Some(number(start, 0)?..number(end, u64::MAX)?));
    range.filter(|range| range.start < range.end).ok_or_else(|| {
        "positions are written A..B, A.. or ..B, in tokens, for instance 4096..8192; A is smaller than B".to_owned()
    })
}

fn hexadecimal(text: &str) -> Result<String, String> {
    let is_digest = (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_digest {
        Ok(text.to_ascii_lowercase())
    } else {
        Err("a digest begins with 1 to 64 hexadecimal digits".to_owned())
    }
}

fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u32); 5] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10), ("", 0)];
    let (unit, shift) =
        UNITS.into_iter().find(|(unit, _)| text.ends_with(unit)).expect("every text ends with no unit at all");
    let number = text[..text.len() - unit.len()].trim_end().parse::<u64>().ok();
    number.and_then(|number| number.checked_mul(1 << shift)).ok_or_else(|| {
        "bytes are a whole number, alone or with KiB, MiB, GiB or TiB behind it, for instance 10GiB".to_owned()
    })
}

const LS_HELP: &str = "\
Records are listed as the tables hold them, without reading all of them first: by group, then by slot. For another order, sort:
  reprise store ls DIR --json | jq -s 'sort_by(.position)[]'

Exit status: 0 done; 1 a table cannot be read; 2 wrong arguments, or no such store or namespace.";

const VERIFY_HELP: &str = "\
Each bad record is shown with its file, slot, name, and what is wrong: the section of the payload, the trailer, or the table entry. A \
read of it is a miss, and the next save writes it again. Records that the operating system cannot read are not freed by --repair: the \
error may pass.

Exit status: 0 every record is good, or --repair has freed what is not; 1 records are damaged, or there are some that --repair cannot \
free; 2 there is no store, or it is in use (--repair).";

const EVICT_HELP: &str = "\
Only ends of paths go, the one used longest ago first, as a cache without a policy would evict. Room that is free counts. The space \
of all free slots goes back to the file system.

Examples:
  reprise store evict /mnt/nvme/cache --bytes 10GiB
  reprise store evict /mnt/nvme/cache --group window --records 1000

Exit status: 0 done; 1 the work failed; 2 wrong arguments, no store, the store is in use, or the group has not so much room.";

const PURGE_HELP: &str = "\
At least one option says which records. With --group, only records of that group are meant, and what depends on them: checkpoints on \
their blocks. Namespaces stay in the catalogue, with a hash of the tenant's salt. The space of all free slots goes back to the file \
system, and so do the bytes in it; a file system that cannot punch holes has all free slots overwritten instead.

Examples:
  reprise store purge /mnt/nvme/cache --tenant-file salt --dry-run
  reprise store purge /mnt/nvme/cache --model deepseek-v4 --revision 3f2a
  reprise store purge /mnt/nvme/cache --unused-since 1700000000

Exit status: 0 done, also if there was nothing to take out; 1 the work failed; 2 wrong arguments, no such store, namespace or group, or \
the store is in use.";

const EXPORT_HELP: &str = "\
The paths used last come first, so that a smaller store takes what matters most. Records that are damaged are left out. The archive \
holds payloads as they are: keep it as safe as the store. A file takes its name when it is complete.

Examples:
  reprise store export /mnt/nvme/cache cache.reprise
  reprise store export /mnt/nvme/cache - --model deepseek-v4 | ssh host reprise store import /mnt/nvme/cache -

Exit status: 0 done, also if damaged records were left out; 1 the work failed; 2 wrong arguments, or no such store or namespace.";

const IMPORT_HELP: &str = "\
Every record is verified. What is there already is skipped, and so is what has no room: a path ends where its group is full. Records of \
another model, block size or layout are refused. A cache that opens the store finds what was brought in, under the same namespaces. \
Verify and repair a damaged store first: a damaged record counts as there.

Exit status: 0 done; 1 the work failed, or the archive is damaged or cut off (what came before is in the store); 2 no archive, or one that \
does not fit the store, or the store is in use.";
