//! Which compiler builds for wasm32, and how to get one.
//!
//! Either rustc comes with the target's standard library, or one that is packaged with the sources of `core` and `alloc` builds
//! them on the way (Debian's `rustc-web` and `rust-web-src`).

use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

/// The target of all components.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// Debian's compiler and sources.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_PACKAGES: [&str; 2] = ["rustc-web", "rust-web-src"];

/// A compiler that can build components.
pub struct Toolchain {
    rustc: PathBuf,
    version: String,
    /// Set when `core` and `alloc` are built from source.
    from_source: Option<FromSource>,
}

/// What building the standard library takes.
struct FromSource {
    library: PathBuf,
    linker: PathBuf,
}

impl Toolchain {
    /// The first toolchain that will do; installs one if there is none and a package client can. `say` is told what is done.
    ///
    /// # Errors
    /// When there is none after all, or a compiler cannot be run.
    pub fn find_or_install(say: impl Fn(&str)) -> Result<Self> {
        if let Some(found) = Self::find()? {
            return Ok(found);
        }
        say(&format!("no compiler for {TARGET} here, installing one"));
        for (program, arguments) in [
            ("rustup", &["target", "add", TARGET][..]),
            ("apt-get", &["update"]),
            ("apt-get", &["install", "-y", "--no-install-recommends", DEBIAN_PACKAGES[0], DEBIAN_PACKAGES[1]]),
        ] {
            // A client that is missing or fails is not the end: the next one may do.
            if let Err(error) = Command::new(program).args(arguments).stdin(Stdio::null()).status() {
                say(&format!("{program}: {error}"));
            }
            if let Some(found) = Self::find()? {
                return Ok(found);
            }
        }
        bail!(Self::missing())
    }

    /// What to say where there is none: how to get one.
    pub fn missing() -> String {
        format!(
            "no compiler for {TARGET}: install its standard library (`rustup target add {TARGET}`), or, as root on Debian, \
             `apt-get install {}` and a `rust-lld` (rustup's toolchain has one)",
            DEBIAN_PACKAGES.join(" ")
        )
    }

    /// The first toolchain that will do; `None` if there is none.
    ///
    /// # Errors
    /// When a compiler cannot be run.
    pub fn find() -> Result<Option<Self>> {
        let rustc = std::env::var_os("RUSTC").map_or_else(|| PathBuf::from("rustc"), PathBuf::from);
        let library = match print(&rustc, &["--print", "target-libdir", "--target", TARGET]) {
            Err(error) if is_missing(&error) => None,
            library => Some(library?),
        };
        if library.is_some_and(|library| Path::new(&library).is_dir()) {
            let version = print(&rustc, &["--version"])?;
            return Ok(Some(Self { rustc, version, from_source: None }));
        }
        if !Path::new(DEBIAN_RUSTC).exists() {
            return Ok(None);
        }
        let sysroot = print(Path::new(DEBIAN_RUSTC), &["--print", "sysroot"])?;
        let library = Path::new(&sysroot).join("lib/rustlib/src/rust/library");
        let (true, Some(linker)) = (library.join("core").is_dir(), linker()?) else { return Ok(None) };
        let version = print(Path::new(DEBIAN_RUSTC), &["--version"])?;
        Ok(Some(Self { rustc: DEBIAN_RUSTC.into(), version, from_source: Some(FromSource { library, linker }) }))
    }

    /// As `rustc --version` prints it.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// A `cargo build` for [`TARGET`] of the package or workspace at `root`. Paths of this machine are kept out of what is built: those
    /// below the folders in `hide` are written as below the names beside them.
    ///
    /// # Errors
    /// When it is not known where cargo keeps its own files.
    pub fn cargo_build(&self, root: &Path, hide: &[(&Path, &str)]) -> Result<Command> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(root).args(["build", "--release", "--target", TARGET]);
        command.env("RUSTC", &self.rustc);
        command.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "3");
        command.env("CARGO_PROFILE_RELEASE_LTO", "fat");
        command.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1");
        command.env("CARGO_PROFILE_RELEASE_PANIC", "abort");
        command.env("CARGO_PROFILE_RELEASE_STRIP", "true");
        // A stack of 64 KiB: the default of 1 MiB would be most of a small policy's memory.
        let mut flags = vec!["-Clink-arg=-zstack-size=65536".to_owned()];
        let mut write_as = |from: &Path, to: &str| flags.push(format!("--remap-path-prefix={}={to}", from.display()));
        hide.iter().for_each(|(from, to)| write_as(from, to));
        write_as(&cargo_home()?.join("registry/src"), "registry");
        if let Some(FromSource { library, linker }) = &self.from_source {
            write_as(library, "library");
            write_as(&library.canonicalize().context("following the path of the library's sources")?, "library");
            // Unstable options are allowed for this command only: exported, the variable would rebuild everything else.
            command.env("RUSTC_BOOTSTRAP", "1").args(["-Z", "build-std=core,alloc"]);
            command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
        command.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
        Ok(command)
    }
}

/// A `rust-lld`: that of the default toolchain or of Debian's, whichever there is. Distributions' own `lld` may be too old.
fn linker() -> Result<Option<PathBuf>> {
    for rustc in ["rustc", DEBIAN_RUSTC].map(Path::new) {
        let sysroot = match print(rustc, &["--print", "sysroot"]) {
            Err(error) if is_missing(&error) => continue,
            sysroot => sysroot?,
        };
        let host = print(rustc, &["--print", "host-tuple"])?;
        let path = Path::new(&sysroot).join("lib/rustlib").join(host).join("bin/rust-lld");
        if path.exists() {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn cargo_home() -> Result<PathBuf> {
    if let Some(home) = std::env::var_os("CARGO_HOME") {
        return Ok(home.into());
    }
    let home = std::env::home_dir().context("there is no home directory, and CARGO_HOME is not set")?;
    Ok(home.join(".cargo"))
}

/// Whether there is no such program.
fn is_missing(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// What a compiler prints, trimmed.
fn print(rustc: &Path, arguments: &[&str]) -> Result<String> {
    let output =
        Command::new(rustc).args(arguments).output().with_context(|| format!("running {}", rustc.display()))?;
    if !output.status.success() {
        bail!("{} {}: {}", rustc.display(), arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
