//! The templates, embedded: folders named after a language and a kind.

use std::path::Path;

use include_dir::{Dir, DirEntry, include_dir};

static TEMPLATES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../policies/examples/templates");

/// One folder.
pub(super) struct Template(&'static Dir<'static>);

impl Template {
    /// That of this language and kind, if there is one.
    pub fn find(language: &str, kind: &str) -> Option<Self> {
        TEMPLATES.get_dir(format!("{language}-{kind}")).map(Self)
    }

    /// Names of all.
    pub fn names() -> Vec<String> {
        let mut names: Vec<String> = TEMPLATES.dirs().map(|dir| dir.path().display().to_string()).collect();
        names.sort();
        names
    }

    /// Whether it is made with the SDK, and needs no copy of the contract.
    pub fn needs_sdk(&self) -> bool {
        self.0.get_file(self.0.path().join("Cargo.toml")).is_some()
    }

    /// Its files by their paths in it, with each placeholder replaced by what is given for it. What is no text stays as it is.
    pub fn files(&self, given: &[(&str, String)]) -> Vec<(&'static Path, Vec<u8>)> {
        let mut files = Vec::new();
        collect(self.0, &mut files);
        let filled = |file: &'static include_dir::File<'static>| {
            let path = file.path().strip_prefix(self.0.path()).unwrap_or(file.path());
            let bytes = match file.contents_utf8() {
                Some(text) => {
                    given.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value)).into_bytes()
                }
                None => file.contents().to_vec(),
            };
            (path, bytes)
        };
        files.into_iter().map(filled).collect()
    }
}

fn collect(dir: &'static Dir<'static>, files: &mut Vec<&'static include_dir::File<'static>>) {
    for entry in dir.entries() {
        match entry {
            DirEntry::Dir(dir) => collect(dir, files),
            DirEntry::File(file) => files.push(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_placeholder_is_left_in_a_new_folder() {
        let given = ["{{name}}", "{{sdk}}", "{{testing}}"].map(|name| (name, "filled".to_owned()));
        assert!(Template::names().contains(&"rust-cache".to_owned()));
        for name in Template::names() {
            let (language, kind) = name.split_once('-').unwrap();
            let files = Template::find(language, kind).unwrap().files(&given);
            let mut filled = 0;
            for (path, bytes) in &files {
                let text = String::from_utf8_lossy(bytes);
                filled += text.matches("filled").count();
                let left = text.split("{{").skip(1).filter(|rest| {
                    let word = rest.split("}}").next().unwrap_or_default();
                    rest.contains("}}") && !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase())
                });
                assert_eq!(left.count(), 0, "{name}/{}", path.display());
                assert!(path.is_relative() && !path.starts_with(&name), "{}", path.display());
            }
            assert!(filled >= 2, "{name}: {filled}");
        }
    }

    #[test]
    fn no_folder_is_without_a_build() {
        for name in Template::names() {
            let (language, kind) = name.split_once('-').unwrap();
            let files = Template::find(language, kind).unwrap().files(&[]);
            let file = |name: &str| files.iter().find(|(path, _)| *path == Path::new(name));
            let (manifest, script) = (file("Cargo.toml"), file("build.sh"));
            // Two ways to the same file would leave two different ones there.
            assert!(manifest.is_some() != script.is_some(), "{name}");
            assert!(script.is_none_or(|(_, bytes)| bytes.starts_with(b"#!")), "{name}");
        }
    }
}
