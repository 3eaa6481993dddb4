//! Compiled components on disk: used when they are this host's own, compiled anew and written over when they are anything else.

use std::{
    fs,
    os::unix::fs::{DirBuilderExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use reprise_core::policy::Kind;
use reprise_wasm::{CompileCache, CompileCacheError, CompileCounts, Engine, Limits};

const ROOM: u64 = 64 << 20;
/// Set in a child process of the test that needs two.
const SHARED: &str = "REPRISE_TEST_COMPILED";

fn compiled(compiled: u64) -> CompileCounts {
    CompileCounts { compiled, ..CompileCounts::default() }
}

fn cached(cached: u64) -> CompileCounts {
    CompileCounts { cached, ..CompileCounts::default() }
}

const REFUSED: CompileCounts = CompileCounts { compiled: 1, cached: 0, refused: 1 };

/// What a new process does: opens the directory, loads one policy. Returns what became of it.
fn load_from(directory: &Path, limits: &Limits, name: &str) -> CompileCounts {
    let engine = Engine::with_cache(limits, CompileCache::open(directory, ROOM).unwrap()).unwrap();
    engine.load(reprise_policies_dist::component(name).unwrap(), name, Kind::Cache).unwrap();
    engine.compile_counts()
}

fn load(directory: &Path) -> CompileCounts {
    load_from(directory, &Limits::default(), "lru")
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let outer = tempfile::tempdir().unwrap();
    let inner = outer.path().join("reprise/compiled");
    (outer, inner)
}

/// Files of machine code.
fn artefacts(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().is_some_and(|name| name != "key"))
        .collect();
    found.sort();
    found
}

/// The only one.
fn artefact(directory: &Path) -> PathBuf {
    let found = artefacts(directory);
    assert_eq!(found.len(), 1, "{found:?}");
    found.into_iter().next().unwrap()
}

/// After `change` the artefact is not trusted, and after that everything is as before.
fn not_trusted_after(change: impl Fn(&Path)) {
    let (_outer, directory) = folder();
    assert_eq!(load(&directory), compiled(1));
    let path = artefact(&directory);
    change(&path);
    assert_eq!(load(&directory), REFUSED);
    assert_eq!(artefact(&directory), path, "it was written over");
    assert_eq!(load(&directory), cached(1));
}

#[test]
fn a_component_is_not_compiled_twice_on_one_machine() {
    let (_outer, directory) = folder();
    assert_eq!(load(&directory), compiled(1));
    assert_eq!(load(&directory), cached(1));
    let engine = Engine::with_cache(&Limits::default(), CompileCache::open(&directory, ROOM).unwrap()).unwrap();
    let bytes = reprise_policies_dist::component("lru").unwrap();
    for _ in 0..3 {
        let component = engine.load(bytes, "lru", Kind::Cache).unwrap();
        assert_eq!(component.description().name, "lru");
    }
    assert_eq!(engine.compile_counts(), cached(3));
    // Without a cache each engine compiles for itself.
    let alone = Engine::new(&Limits::default()).unwrap();
    alone.load(bytes, "lru", Kind::Cache).unwrap();
    assert_eq!(alone.compile_counts(), compiled(1));
}

#[test]
fn nobody_else_may_read_or_write_what_is_kept() {
    let (_outer, directory) = folder();
    load(&directory);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&directory), 0o700);
    assert_eq!(mode(directory.parent().unwrap()), 0o700);
    assert_eq!((mode(&artefact(&directory)), mode(&directory.join("key"))), (0o600, 0o600));
}

#[test]
fn a_forged_artefact_is_not_run() {
    // Everything about the machine code of another component is right but what only the key can tell.
    let (_outer, other) = folder();
    load_from(&other, &Limits::default(), "fifo");
    let foreign = fs::read(artefact(&other)).unwrap();
    not_trusted_after(|path| {
        let own = fs::read(path).unwrap();
        let head = [&own[..80], &foreign[80..]].concat();
        fs::write(path, head).unwrap();
    });
}

#[test]
fn no_changed_byte_goes_unseen() {
    let (_outer, directory) = folder();
    load(&directory);
    let bytes = fs::metadata(artefact(&directory)).unwrap().len() as usize;
    // In each field of the head, at both ends of the code and in its middle.
    for at in [0, 8, 12, 16, 47, 48, 79, 80, 87, 88, 119, 120, bytes / 2, bytes - 1] {
        not_trusted_after(|path| {
            let mut file = fs::read(path).unwrap();
            file[at] ^= 1;
            fs::write(path, file).unwrap();
        });
    }
}

#[test]
fn a_truncated_or_padded_artefact_is_not_run() {
    for length in [0, 1, 87, 88, 119, 120, 5000] {
        not_trusted_after(|path| fs::File::options().write(true).open(path).unwrap().set_len(length).unwrap());
    }
    not_trusted_after(|path| {
        let longer = [fs::read(path).unwrap(), vec![0]].concat();
        fs::write(path, longer).unwrap();
    });
}

#[test]
fn another_components_artefact_is_not_run_in_its_place() {
    let (_outer, directory) = folder();
    load_from(&directory, &Limits::default(), "fifo");
    let fifo = artefact(&directory);
    load(&directory);
    let lru = artefacts(&directory).into_iter().find(|path| *path != fifo).unwrap();
    fs::copy(&fifo, &lru).unwrap();
    assert_eq!(load(&directory), REFUSED);
    assert_eq!(load(&directory), cached(1));
    assert_eq!(load_from(&directory, &Limits::default(), "fifo"), cached(1));
}

#[test]
fn another_engines_artefact_is_not_run_in_its_place() {
    let (_outer, directory) = folder();
    let fuelled = Limits::default().fuelled();
    load_from(&directory, &fuelled, "lru");
    let without_deadline = artefact(&directory);
    assert_eq!(load(&directory), compiled(1), "another engine looks under another name");
    let with_deadline = artefacts(&directory).into_iter().find(|path| *path != without_deadline).unwrap();
    fs::copy(&without_deadline, &with_deadline).unwrap();
    assert_eq!(load(&directory), REFUSED);
    assert_eq!((load(&directory), load_from(&directory, &fuelled, "lru")), (cached(1), cached(1)));
}

#[test]
fn an_artefact_sealed_with_another_key_is_not_run() {
    // That of another machine, copied here.
    let (_outer, other) = folder();
    load(&other);
    not_trusted_after(|path| {
        assert_eq!(path.file_name(), artefact(&other).file_name());
        fs::copy(artefact(&other), path).unwrap();
    });
}

#[test]
fn a_key_that_others_could_read_or_that_is_none_is_not_used() {
    type Change = fn(&Path);
    let changes: [Change; 5] = [
        |key| fs::set_permissions(key, fs::Permissions::from_mode(0o644)).unwrap(),
        |key| fs::write(key, [7; 31]).unwrap(),
        |key| fs::write(key, [7; 33]).unwrap(),
        |key| fs::remove_file(key).unwrap(),
        |key| {
            let elsewhere = key.with_file_name("new-elsewhere");
            fs::rename(key, &elsewhere).unwrap();
            symlink(elsewhere, key).unwrap();
        },
    ];
    for change in changes {
        let (_outer, directory) = folder();
        load(&directory);
        let before = fs::read(directory.join("key")).unwrap();
        change(&directory.join("key"));
        assert_eq!(load(&directory), REFUSED, "what was sealed with the old key");
        let after = fs::read(directory.join("key")).unwrap();
        assert!(after.len() == 32 && after != before);
        assert_eq!(load(&directory), cached(1));
    }
}

#[test]
fn something_else_in_the_place_of_an_artefact_does_not_stop_a_load() {
    for make in [
        |path: &Path| fs::create_dir(path).unwrap(),
        |path: &Path| symlink("/dev/zero", path).unwrap(),
        |path: &Path| {
            // A pipe that nobody writes to.
            assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        },
    ] {
        let (_outer, directory) = folder();
        load(&directory);
        let path = artefact(&directory);
        fs::remove_file(&path).unwrap();
        make(&path);
        assert_eq!(load(&directory), REFUSED);
    }
}

#[test]
fn a_directory_that_goes_away_does_not_stop_a_load() {
    let (outer, directory) = folder();
    let engine = Engine::with_cache(&Limits::default(), CompileCache::open(&directory, ROOM).unwrap()).unwrap();
    fs::remove_dir_all(outer.path().join("reprise")).unwrap();
    for _ in 0..2 {
        engine.load(reprise_policies_dist::component("lru").unwrap(), "lru", Kind::Cache).unwrap();
    }
    assert_eq!(engine.compile_counts(), compiled(2));
}

#[test]
fn a_directory_that_others_may_write_to_is_not_used() {
    let (outer, _) = folder();
    for (name, mode) in [("group", 0o770), ("others", 0o707), ("sticky", 0o1777)] {
        let directory = outer.path().join(name);
        fs::DirBuilder::new().mode(0o700).create(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
        match CompileCache::open(&directory, ROOM) {
            Err(CompileCacheError::Writable { mode: found, .. }) => assert_eq!(found, mode),
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("{name} was taken"),
        }
        assert!(fs::read_dir(&directory).unwrap().next().is_none(), "nothing was written");
    }
}

#[test]
fn a_file_in_the_place_of_the_directory_is_an_error_that_names_it() {
    let (outer, _) = folder();
    let file = outer.path().join("file");
    fs::write(&file, "").unwrap();
    let Err(error) = CompileCache::open(&file, ROOM) else { panic!("a file was taken") };
    assert!(matches!(error, CompileCacheError::Io { .. }) && error.to_string().contains("file"), "{error}");
}

#[test]
fn the_directory_does_not_outgrow_its_limit() {
    let (_outer, directory) = folder();
    load(&directory);
    let one = fs::metadata(artefact(&directory)).unwrap().len();
    let limit = one * 5 / 2;
    let engine = Engine::with_cache(&Limits::default(), CompileCache::open(&directory, limit).unwrap()).unwrap();
    let mut most = 0;
    for name in ["fifo", "two-hit", "lru", "fifo", "two-hit"] {
        engine.load(reprise_policies_dist::component(name).unwrap(), name, Kind::Cache).unwrap();
        let bytes: u64 = artefacts(&directory).iter().map(|path| fs::metadata(path).unwrap().len()).sum();
        assert!(bytes <= limit, "{bytes} of {limit}");
        most = most.max(artefacts(&directory).len());
    }
    assert_eq!(most, 2, "it is used, too");
    // What does not fit at all is not kept, and nothing goes for it.
    let before = artefacts(&directory);
    let small =
        Engine::with_cache(&Limits::default().fuelled(), CompileCache::open(&directory, 1000).unwrap()).unwrap();
    small.load(reprise_policies_dist::component("lru").unwrap(), "lru", Kind::Cache).unwrap();
    assert_eq!(artefacts(&directory), before);
}

/// Not a test by itself: what one of the two processes does.
#[test]
fn one_of_two_processes() {
    let Some(directory) = std::env::var_os(SHARED) else { return };
    let directory = PathBuf::from(directory);
    for _ in 0..6 {
        for name in ["lru", "fifo", "two-hit"] {
            let counts = load_from(&directory, &Limits::default(), name);
            assert_eq!(counts.refused, 0, "what the other writes is whole, and under the same key");
        }
    }
}

#[test]
fn two_processes_at_once_do_not_spoil_each_others_artefacts() {
    let (_outer, directory) = folder();
    let processes: Vec<_> = (0..2)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "one_of_two_processes"])
                .env(SHARED, &directory)
                .spawn()
                .unwrap()
        })
        .collect();
    for mut process in processes {
        assert!(process.wait().unwrap().success());
    }
    assert_eq!(artefacts(&directory).len(), 3, "nothing unfinished is left");
    assert_eq!(load(&directory), cached(1));
}
