//! What the files of a store are called.

/// The file that makes a directory a store.
pub const SUPERBLOCK: &str = "superblock";
/// The file that the owner of a store locks.
pub const LOCK: &str = "LOCK";
/// The list of namespaces.
pub const CATALOGUE: &str = "catalogue";
/// Written and removed at open to see whether direct I/O works.
pub const PROBE: &str = "probe";

const TABLE_ENDING: &str = ".table";
const CHUNK_ENDING: &str = ".chunk";

/// What a file is, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// The slot table of a class.
    Table {
        /// Group name and fingerprint.
        stem: String,
    },
    /// A chunk file of a class.
    Chunk {
        /// Group name and fingerprint.
        stem: String,
        /// The chunk's number.
        chunk: u32,
    },
    /// A file that each store has once.
    Single,
    /// None of the store's.
    Foreign,
}

/// The name of a class's table.
pub fn table(stem: &str) -> String {
    format!("{stem}{TABLE_ENDING}")
}

/// The name of chunk `chunk` of a class.
pub fn chunk(stem: &str, chunk: u32) -> String {
    format!("{stem}-{chunk:04}{CHUNK_ENDING}")
}

/// What the file called `name` is.
pub fn kind(name: &str) -> FileKind {
    if [SUPERBLOCK, LOCK, CATALOGUE, PROBE].contains(&name) {
        return FileKind::Single;
    }
    if let Some(stem) = name.strip_suffix(TABLE_ENDING)
        && is_stem(stem)
    {
        return FileKind::Table { stem: stem.to_owned() };
    }
    if let Some((stem, digits)) = name.strip_suffix(CHUNK_ENDING).and_then(|rest| rest.rsplit_once('-'))
        && is_stem(stem)
        && let Ok(number) = digits.parse()
        && chunk(stem, number) == name
    {
        return FileKind::Chunk { stem: stem.to_owned(), chunk: number };
    }
    FileKind::Foreign
}

/// Whether `stem` is a group's name, a dash and eight hexadecimal digits.
fn is_stem(stem: &str) -> bool {
    stem.rsplit_once('-').is_some_and(|(name, print)| {
        !name.is_empty() && print.len() == 8 && print.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_the_store_gives_are_taken_for_its_own() {
        let stem = || "win-dow-01234abc".to_owned();
        let cases = [
            ("win-dow-01234abc.table", FileKind::Table { stem: stem() }),
            ("win-dow-01234abc-0007.chunk", FileKind::Chunk { stem: stem(), chunk: 7 }),
            ("win-dow-01234abc-12345.chunk", FileKind::Chunk { stem: stem(), chunk: 12_345 }),
            ("win-dow-01234abc-7.chunk", FileKind::Foreign),
            ("win-dow-01234ABC.table", FileKind::Foreign),
            ("window.table", FileKind::Foreign),
            ("-01234abc.table", FileKind::Foreign),
            ("notes.txt", FileKind::Foreign),
            ("catalogue", FileKind::Single),
            ("LOCK", FileKind::Single),
        ];
        for (name, expected) in cases {
            assert_eq!(kind(name), expected, "{name}");
        }
    }
}
