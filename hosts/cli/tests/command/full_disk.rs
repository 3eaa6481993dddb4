//! Limits that a machine sets: a full disk, a read-only one, few open files.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use crate::shell::Shell;

/// A small file system in memory, unmounted when this is dropped.
struct Mount(PathBuf);

impl Mount {
    /// `None`, and says so, where this user may not mount.
    fn new(shell: &Shell, name: &str, options: &str) -> Option<Self> {
        let path = shell.path(name);
        fs::create_dir(&path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&path).stderr(Stdio::null());
        if mount.status().is_ok_and(|status| status.success()) {
            return Some(Self(path));
        }
        eprintln!("skipped: mounting a tmpfs needs more rights");
        None
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_does_not_stop_a_replay() {
    let shell = Shell::new();
    let replay = "--limit 8 --history-gib 0.1 --window-gib 0.05";
    let all = shell.run(&format!("replay --json --dry-run {replay}")).exits(0);
    // Room for nothing; for windows and not for blocks; for blocks and not for windows.
    for size in ["8m", "80m", "120m"] {
        let name = format!("disk{size}");
        let Some(_mount) = Mount::new(&shell, &name, &format!("size={size}")) else { return };
        let run =
            shell.run(&format!("replay --json --store {name} {replay}")).exits(0).says("free: the store stops taking");
        assert_eq!(run.number("requests"), 8);
        assert!(run.json()["store_refuses"].as_str().is_some_and(|why| why.contains("space")), "{run}");
        assert!(run.number("matched_tokens") < all.number("matched_tokens"), "{run}");
        assert_eq!(run.number("refused_blocks"), 0, "a full disk is no refusal of the policy: {run}");
        let loaded = run.number("loaded_history") + run.number("loaded_window");
        assert_eq!(run.number("verified_bytes"), loaded, "{run}");
        shell.run(&format!("store verify {name}")).exits(0);
        let table = shell.run(&format!("replay --store {name} {replay}")).exits(0);
        assert!(table.out.contains("the store took no more records: "), "{table}");
    }
}

#[test]
fn a_disk_too_full_for_a_store_is_not_a_panic() {
    let shell = Shell::new();
    let Some(_mount) = Mount::new(&shell, "disk", "size=8k") else { return };
    shell.write("disk/filler", vec![1; 4096]);
    let run = shell.run("replay --json --store disk/st").exits(1).says("no space left");
    assert_eq!(run.out, "");
}

#[test]
fn a_read_only_disk_is_not_a_panic() {
    let shell = Shell::new();
    let Some(_mount) = Mount::new(&shell, "disk", "ro,size=1m") else { return };
    for store in ["disk", "disk/st"] {
        let run = shell.run(&format!("replay --json --store {store}")).exits(1).says("Read-only file system");
        assert_eq!(run.out, "");
    }
}

#[test]
fn few_open_files_are_not_too_few() {
    let shell = Shell::new();
    let line = "replay --json --limit 5 --history-gib 0.1 --window-gib 0.02 --store st";
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 64 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_reprise")]);
    limited.args(line.split_whitespace());
    let run = shell.start_command(line, limited).wait().exits(0);
    assert_eq!(run.integers(), shell.run(&line.replace("--store st", "--dry-run")).exits(0).integers());
}
