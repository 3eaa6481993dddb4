//! Templates as `reprise policy new` writes them, built by cargo or their own script.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use reprise_components_build::{CONTRACT, Metadata, make};
use reprise_core::policy::Kind;
use reprise_tests::{
    repository,
    tools::{folder, required, run, skip},
};
use reprise_wasm::{Component, Engine, Limits, Profile};

/// The placeholder of a template is its own name here, so that descriptions are equal to those of the natively run examples.
const NAME: &str = "{{name}}";
/// The name of crates and files, which cannot be the placeholder.
const FILE_NAME: &str = "example";

/// A folder of `policies/examples/templates`.
pub struct Template {
    /// Its name.
    pub folder: &'static str,
    /// For people.
    pub language: &'static str,
    /// What builds it.
    compiler: &'static str,
    /// Where that is, from the folder of tools; `None` for what comes with Rust.
    installed: Option<&'static str>,
    /// What it is made of.
    pub profile: Profile,
    kind: Kind,
    built: OnceLock<Option<Vec<u8>>>,
}

impl Template {
    const fn new(
        folder: &'static str,
        language: &'static str,
        (compiler, installed): (&'static str, Option<&'static str>),
        profile: Profile,
        kind: Kind,
    ) -> Self {
        Self { folder, language, compiler, installed, profile, kind, built: OnceLock::new() }
    }
}

const RUST: (&str, Option<&str>) = ("the target wasm32-unknown-unknown of rustc", None);

pub static RUST_CHECKPOINT: Template =
    Template::new("rust-checkpoint", "Rust", RUST, Profile::Compiled, Kind::Checkpoint);

/// The cache policy in every language.
pub static CACHE: [Template; 4] = [
    Template::new("rust-cache", "Rust", RUST, Profile::Compiled, Kind::Cache),
    Template::new(
        "c-cache",
        "C",
        ("a C compiler for WebAssembly", Some("c/bin/zig-cc")),
        Profile::Compiled,
        Kind::Cache,
    ),
    Template::new(
        "python-cache",
        "Python",
        ("componentize-py", Some("python/bin/componentize-py")),
        Profile::Interpreted,
        Kind::Cache,
    ),
    Template::new(
        "js-cache",
        "JavaScript",
        ("componentize-qjs", Some("js/node_modules/.bin/componentize-qjs")),
        Profile::Interpreted,
        Kind::Cache,
    ),
];

/// The cache policy in a language.
pub fn cache_in(language: &str) -> &'static Template {
    CACHE.iter().find(|template| template.language == language).expect("there is an example in this language")
}

impl Template {
    /// The component that is made of the template, or `None` where its tools are missing and may be.
    pub fn component(&self) -> Option<&[u8]> {
        self.built.get_or_init(|| self.build()).as_deref()
    }

    /// The component, eligible under the limits of its profile.
    pub fn load(&self) -> Option<Component> {
        let engine = Engine::new(&Limits::of(self.profile)).expect("a thread for the clock");
        let bytes = self.component()?;
        Some(engine.load(bytes, self.folder, self.kind).unwrap_or_else(|error| panic!("{error}")))
    }

    fn build(&self) -> Option<Vec<u8>> {
        let tools = folder(env!("CARGO_TARGET_TMPDIR"));
        if !required() && !self.is_installed(&tools) {
            skip(self.compiler, "examples");
            return None;
        }
        let project = Path::new(env!("CARGO_TARGET_TMPDIR")).join("examples").join(self.folder);
        self.write(&project);
        let mut build = Command::new(if self.installed.is_some() { "bash" } else { "cargo" });
        let module = if self.installed.is_some() {
            build.arg(project.join("build.sh")).env("REPRISE_TOOLS", tools);
            project.join(format!("build/{FILE_NAME}.wasm"))
        } else {
            let target = "wasm32-unknown-unknown";
            build.current_dir(&project).args([
                "build",
                "--release",
                "--target",
                target,
                "--target-dir",
                "build/target",
            ]);
            project.join(format!("build/target/{target}/release/{FILE_NAME}.wasm"))
        };
        // What this test was compiled with is nothing to the component.
        build.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS").env_remove("CC");
        run(&mut build);
        let module = fs::read(&module).unwrap_or_else(|error| panic!("{}: {error}", module.display()));
        Some(make(&module, None, &Metadata::default()).unwrap_or_else(|error| panic!("{}: {error}", self.folder)))
    }

    fn is_installed(&self, tools: &Path) -> bool {
        match self.installed {
            Some(program) => tools.join(program).exists(),
            None => {
                let mut rustc = Command::new("rustc");
                let library = run(rustc.args(["--print", "target-libdir", "--target", "wasm32-unknown-unknown"]));
                Path::new(library.trim()).is_dir()
            }
        }
    }

    /// Writes the project as `reprise policy new` does.
    fn write(&self, project: &Path) {
        let crate_at = |path: &str| format!("{{ path = {:?} }}", repository(path).canonicalize().expect("a crate"));
        let (sdk, testing) = (crate_at("policies/sdk"), crate_at("policies/testing"));
        let template = repository("policies/examples/templates").join(self.folder);
        for file in files(&template) {
            let path = project.join(file.strip_prefix(&template).expect("a file of the template"));
            let bytes = fs::read(&file).expect("a file of the template");
            // The object file of the C bindings is no text.
            let Ok(text) = String::from_utf8(bytes.clone()) else {
                write(&path, &bytes);
                continue;
            };
            let text = text.replace("{{sdk}}", &sdk).replace("{{testing}}", &testing);
            let is_source = path.extension().is_some_and(|ending| ["rs", "c", "py", "js"].iter().any(|e| ending == *e));
            let text = if is_source { text } else { text.replace(NAME, FILE_NAME) };
            write(&path, text.as_bytes());
        }
        for (name, text) in CONTRACT {
            write(&project.join("wit").join(name), text.as_bytes());
        }
        if self.installed.is_none() {
            // The versions of this workspace, so that nothing else is fetched.
            write(&project.join("Cargo.lock"), &fs::read(repository("Cargo.lock")).expect("the lock file"));
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of templates") {
        let path = entry.expect("an entry").path();
        // What an author's build would leave there.
        let is_output = ["build", "target", "__pycache__"].iter().any(|name| path.ends_with(name));
        match path.is_dir() {
            true if is_output => {}
            true => all.extend(files(&path)),
            false => all.push(path),
        }
    }
    all
}

/// Writes a file if it is not there as it should be: compilers look at times.
fn write(path: &Path, bytes: &[u8]) {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return;
    }
    fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("a folder of the target directory");
    fs::write(path, bytes).expect("a file of the target directory");
}
