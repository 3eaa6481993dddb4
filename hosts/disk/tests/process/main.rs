//! What holds for a whole process: limits, and the use of the processor. Each is tried in a process of its own: this program
//! again, with one test to run and a variable that says that it is the child. It is a program apart from the other tests
//! because a new process keeps the locks of all stores that are open at that moment until it runs its own program.

#[expect(dead_code, reason = "the other tests use the rest")]
#[path = "../store/fixture.rs"]
mod fixture;
mod forged;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use reprise_disk::{EngineChoice, Get, IoOptions, Options, Store};
use rustix::process::{Resource, Rlimit, getrlimit, getuid, setrlimit};

use fixture::{HISTORY, check, classes, key, options, put_of, tenant};

/// Says to the child that it is one.
const CHILD: &str = "REPRISE_DISK_CHILD";

/// Whether this is the child. If not, the child is run, and has to succeed. Root may lock memory whatever the limit, and
/// what others have locked is counted by user: if this is root, the child becomes a `user` of its own.
fn in_child(test: &str, user: u32) -> bool {
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    // A program that is still open for writing, in a child that another test has just made, cannot be run.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let turn = ONE_AT_A_TIME.lock().unwrap();
    // Where another user may run it and write.
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("child");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    for path in [dir.path(), &program] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
    }
    let mut command = Command::new(&program);
    command.args(["--exact", test, "--nocapture"]).env(CHILD, "1").env("TMPDIR", dir.path()).current_dir(dir.path());
    if getuid().is_root() {
        command.uid(user).gid(user);
    }
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(turn);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    false
}

fn limit(resource: Resource, value: u64) {
    let maximum = getrlimit(resource).maximum;
    setrlimit(resource, Rlimit { current: Some(value), maximum }).unwrap();
}

/// The fixture's options, with io_uring where it is granted.
fn ring() -> Options {
    Options { io: IoOptions { engine: EngineChoice::Ring, ..IoOptions::default() }, ..options() }
}

/// Many slots of which each has a chunk of its own, put and read in batches.
fn serve(options: &Options) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut classes = classes();
    classes[0].slots = 150;
    let (store, report) = Store::open(dir.path(), &classes, options).unwrap();
    let namespace = store.namespace(&tenant(0)).unwrap();
    for _ in 0..2 {
        let puts = (0..150).map(|slot| put_of(HISTORY, slot, key(namespace, slot as u8))).collect();
        for (slot, outcome) in store.put_batch(puts, None) {
            outcome.result.unwrap_or_else(|error| panic!("{report}: slot {slot}: {error}"));
        }
        let gets: Vec<Get> =
            (0..150).map(|slot| Get { group: HISTORY, slot, key: key(namespace, slot as u8) }).collect();
        for (slot, got) in store.get_batch(&gets, None) {
            check(&gets[slot], got).unwrap_or_else(|miss| panic!("{report}: slot {slot}: {miss}"));
        }
    }
    report.to_string()
}

#[test]
fn a_limit_of_64_open_files_does_not_cost_a_record() {
    if in_child("a_limit_of_64_open_files_does_not_cost_a_record", 60_001) {
        limit(Resource::Nofile, 64);
        let report = serve(&Options { chunk_bytes: 1, ..ring() });
        assert!(report.contains("this process may open 64 files only"), "{report}");
    }
}

#[test]
fn memory_that_may_not_be_locked_does_not_cost_a_record() {
    if in_child("memory_that_may_not_be_locked_does_not_cost_a_record", 60_002) {
        // By kernel and by what else the user has locked, io_uring itself is refused or only its buffers are.
        for bytes in [64 << 10, 0] {
            limit(Resource::Memlock, bytes);
            let report = serve(&ring());
            assert!(report.contains("raise RLIMIT_MEMLOCK") || report.contains("not permitted"), "{bytes}: {report}");
        }
    }
}

#[test]
fn an_idle_store_does_not_use_the_processor() {
    if in_child("an_idle_store_does_not_use_the_processor", 60_003) {
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(dir.path(), &classes(), &ring()).unwrap();
        // All threads have been at work, and there is nothing left to do.
        let namespace = store.namespace(&tenant(0)).unwrap();
        let puts = (0..10).map(|slot| put_of(HISTORY, slot, key(namespace, slot as u8))).collect();
        store.put_batch(puts, None).for_each(|(_, outcome)| outcome.result.unwrap());
        let (before, slept) = (processor_time(), Duration::from_secs(2));
        std::thread::sleep(slept);
        // What the processor did, not how long it took: other programs do not count.
        let used = processor_time() - before;
        assert!(used < slept / 100, "{used:?} in {slept:?}");
    }
}

/// What all threads have used of the processor.
fn processor_time() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().map(|thread| thread.unwrap().path());
    let used = threads.map(|thread| std::fs::read_to_string(thread.join("schedstat")).unwrap());
    Duration::from_nanos(used.map(|used| used.split_whitespace().next().unwrap().parse::<u64>().unwrap()).sum())
}
