//! Tools of other languages that a test runs if they are there: what a test does without them, and where it puts them.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// If this variable is set, a test installs what it needs, and what cannot be had is a failure.
const REQUIRE: &str = "REPRISE_REQUIRE_TOOLS";

/// Whether a test may not be skipped.
pub fn required() -> bool {
    std::env::var_os(REQUIRE).is_some_and(|value| !value.is_empty() && value != "0")
}

/// Where tools are installed: `REPRISE_TOOLS`, or a folder of the target directory.
pub fn folder(target_tmp: &str) -> PathBuf {
    std::env::var_os("REPRISE_TOOLS").map_or_else(|| Path::new(target_tmp).join("tools"), PathBuf::from)
}

/// Says that a test did not run, past the capture of its output: `missing` is what was not found, and `test` the file of the test.
pub fn skip(missing: &str, test: &str) {
    let notice = format!(
        "\n*** SKIPPED: {missing} is not installed. To install it into the target directory and run the test:\n\
         ***     {REQUIRE}=1 cargo test --workspace --test {test}\n"
    );
    // A notice that cannot be written is no reason to fail.
    let _ = std::io::stderr().write_all(notice.as_bytes());
}

/// The Python of an environment `name` among the tools that has exactly these `packages`, each as `name==version`, with what they need; `None`
/// where it is missing and may be, which is said. `test` is the file of the test.
///
/// # Panics
/// When it is missing, may not be, and cannot be installed.
pub fn python(target_tmp: &str, name: &str, packages: &[&str], test: &str) -> Option<PathBuf> {
    let environment = folder(target_tmp).join(name);
    let python = environment.join("bin/python");
    // Written last: an environment that was not finished, or is of other versions, is not taken for one that is.
    let ready = environment.join(packages.join(","));
    if !ready.exists() {
        if !required() {
            skip(&packages.join(" and "), test);
            return None;
        }
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment));
        run(Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(packages));
        fs::write(ready, "").expect("a file in the folder of tools");
    }
    Some(python)
}

/// Runs a command and returns what it prints.
///
/// # Panics
/// When it cannot be started or fails; the message has what it printed.
#[track_caller]
pub fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}
