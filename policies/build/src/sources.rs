//! One digest over everything that components are made from.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// Files and folders, from the workspace's root.
const SOURCES: &[&str] = &[
    "core/Cargo.toml",
    "core/src",
    "policies/native/Cargo.toml",
    "policies/native/src",
    "policies/sdk/Cargo.toml",
    "policies/sdk/src",
    "policies/components/Cargo.toml",
    "policies/components/src",
    "wit",
];

/// BLAKE3 over names and contents, each with its length before it, sorted by name; as hexadecimal digits.
pub fn digest(root: &Path) -> Result<String> {
    let mut files = Vec::new();
    for source in SOURCES {
        list(root, Path::new(source), &mut files)?;
    }
    files.sort();
    let mut hasher = blake3::Hasher::new();
    for file in files {
        let content = fs::read(root.join(&file)).with_context(|| format!("reading {}", file.display()))?;
        for part in [file.as_os_str().as_encoded_bytes(), &content] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    Ok(hasher.finalize().to_hex().to_string())
}

fn list(root: &Path, path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let full = root.join(path);
    if !full.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(&full).with_context(|| format!("listing {}", full.display()))? {
        list(root, &path.join(entry?.file_name()), files)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for source in SOURCES {
            let path = root.path().join(source);
            if source.ends_with(".toml") {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, source).unwrap();
            } else {
                fs::create_dir_all(&path).unwrap();
            }
        }
        root
    }

    #[test]
    fn a_changed_a_moved_or_a_new_source_does_not_go_unseen() {
        let root = workspace();
        let file = |name: &str| root.path().join("core/src").join(name);
        let mut seen = vec![digest(root.path()).unwrap()];
        let mut expect_new = |root: &Path| {
            let digest = digest(root).unwrap();
            assert!(!seen.contains(&digest));
            seen.push(digest);
        };
        fs::write(file("lib.rs"), "one").unwrap();
        expect_new(root.path());
        fs::write(file("lib.rs"), "two").unwrap();
        expect_new(root.path());
        fs::rename(file("lib.rs"), file("tree.rs")).unwrap();
        expect_new(root.path());
        fs::create_dir(file("tree")).unwrap();
        fs::write(file("tree/slab.rs"), "two").unwrap();
        expect_new(root.path());
    }

    #[test]
    fn a_missing_source_is_an_error_that_names_it() {
        let root = workspace();
        fs::remove_file(root.path().join("core/Cargo.toml")).unwrap();
        assert!(format!("{:#}", digest(root.path()).unwrap_err()).contains("core/Cargo.toml"));
    }
}
