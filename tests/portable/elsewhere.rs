//! The component in Python and in Node, each with its own tools. What stands in `policies/README.md` is run as it stands there.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use reprise_tests::{
    repository,
    tools::{self, folder, required, run, skip},
};

/// Versions that this was written for.
const WASMTIME: &str = "wasmtime==50.0.1";
const JCO: &str = "@bytecodealliance/jco-transpile@0.15.0";

const CORE: &str = "policies/dist/core.wasm";
const VECTORS: &str = "tests/portable/vectors.json";

/// A Python that has wasmtime, or `None` where it is missing and may be. Installed once, whichever test is first.
fn python() -> Option<PathBuf> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    PYTHON.get_or_init(|| tools::python(env!("CARGO_TARGET_TMPDIR"), "core-python", &[WASMTIME], "portable")).clone()
}

/// A folder with the core as a JavaScript module, `core.js`, or `None` where jco is missing and may be. Made once, as above.
fn transpiled() -> Option<PathBuf> {
    static CORE: OnceLock<Option<PathBuf>> = OnceLock::new();
    CORE.get_or_init(transpile).clone()
}

fn transpile() -> Option<PathBuf> {
    let packages = folder(env!("CARGO_TARGET_TMPDIR")).join("core-node");
    if !packages.join("node_modules/@bytecodealliance/jco-transpile").exists() {
        if !required() {
            skip("jco", "portable");
            return None;
        }
        fs::create_dir_all(&packages).expect("the folder of tools");
        run(Command::new("npm")
            .args(["install", "--silent", "--no-audit", "--no-fund", "--no-save", "--prefix"])
            .arg(&packages)
            .arg(JCO));
    }
    let core = Path::new(env!("CARGO_TARGET_TMPDIR")).join("core");
    run(Command::new("node")
        .arg(repository("tests/portable/transpile.mjs").canonicalize().expect("a script"))
        .arg(repository(CORE).canonicalize().expect("the core"))
        .arg(&core)
        .current_dir(&packages));
    Some(core)
}

/// The example in `policies/README.md` in a language.
fn example(language: &str) -> String {
    let readme = fs::read_to_string(repository("policies/README.md")).expect("the README");
    let start = format!("```{language}\n");
    let code = readme.split_once(&start).unwrap_or_else(|| panic!("no example in {language}")).1;
    code.split_once("```").expect("the end of the example").0.to_owned()
}

/// What the README says that its examples print.
const PRINTED: &str = "2 digests, 1288048 bytes a record, 13600 tokens to compute\n";

#[test]
fn python_gives_nothing_else_than_the_vectors() {
    let Some(python) = python() else { return };
    let said = run(Command::new(&python)
        .arg(repository("tests/portable/check.py"))
        .arg(repository(CORE))
        .arg(repository(VECTORS)));
    assert!(said.ends_with("vectors hold\n"), "{said}");
}

#[test]
fn node_gives_nothing_else_than_the_vectors() {
    let Some(core) = transpiled() else { return };
    let said = run(Command::new("node")
        .arg(repository("tests/portable/check.mjs"))
        .arg(core.join("core.js"))
        .arg(repository(VECTORS)));
    assert!(said.ends_with("vectors hold\n"), "{said}");
}

#[test]
fn the_examples_of_the_readme_do_not_print_anything_else() {
    if let Some(python) = python() {
        let mut command = Command::new(python);
        assert_eq!(run(command.args(["-c", &example("python")]).current_dir(repository("policies/dist"))), PRINTED);
    }
    if let Some(core) = transpiled() {
        let script = core.parent().expect("it lies in the target directory").join("example.mjs");
        fs::write(&script, example("js")).expect("a file in the target directory");
        assert_eq!(run(Command::new("node").arg(&script)), PRINTED);
    }
}
