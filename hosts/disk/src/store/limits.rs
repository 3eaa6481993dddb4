//! Fitting a store into the number of files that the process may open.

use rustix::process::{Resource, getrlimit};

use super::Options;

/// Files besides tables and chunks: standard streams, lock, catalogue, superblock, io_uring and what wakes it, with some to
/// spare.
const OTHER_FILES: usize = 16;

/// What the options become.
pub struct Limits {
    pub open_files: usize,
    pub depth: usize,
    /// What was made smaller and why, if anything was.
    pub note: Option<String>,
}

impl Limits {
    /// The options for a store of so many classes, made to fit the process's limit. Each transfer under way may keep a
    /// chunk file open that is no longer among the last ones used.
    pub fn fit(options: &Options, classes: usize) -> Self {
        let allowed = getrlimit(Resource::Nofile).current.and_then(|limit| usize::try_from(limit).ok());
        Self::within(allowed.unwrap_or(usize::MAX), options, classes)
    }

    fn within(allowed: usize, options: &Options, classes: usize) -> Self {
        let (open_files, depth) = (options.open_files.max(1), options.io.depth.max(1));
        let wanted = open_files.saturating_add(depth.saturating_mul(2)).saturating_add(classes + OTHER_FILES);
        if wanted <= allowed {
            return Self { open_files, depth, note: None };
        }
        // Half of what is allowed is left to the rest of the process.
        let spare = (allowed / 2).saturating_sub(classes);
        let (open_files, depth) = (open_files.min(spare / 4).max(1), depth.min(spare / 4).max(1));
        let note = format!(
            "this process may open {allowed} files only: {open_files} chunk files are kept open and {depth} operations of a \
             kind run at once; raise RLIMIT_NOFILE"
        );
        Self { open_files, depth, note: Some(note) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_does_not_open_more_files_than_it_may() {
        let options = Options::default();
        for allowed in [0, 8, 40, 64, 100, 200, 1024, usize::MAX] {
            let limits = Limits::within(allowed, &options, 3);
            let most = limits.open_files + 2 * limits.depth + 3;
            assert!(most <= (allowed / 2).max(6) || limits.note.is_none(), "{allowed}: {most}");
            assert_eq!(limits.note.is_some(), allowed < options.open_files + 2 * options.io.depth + 3 + OTHER_FILES);
            assert!(limits.open_files >= 1 && limits.depth >= 1);
        }
    }
}
