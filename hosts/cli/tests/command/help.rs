//! Help, and readers that go before they have heard all.

use std::process::{Command, Stdio};

use crate::shell::Shell;

#[test]
fn no_command_is_without_help_and_exit_status() {
    let shell = Shell::new();
    let commands = "|replay|compare|plan|advise|model show|model list|trace make|store info|store ls|store verify|store evict|store purge|store export|\
                    store import|policy new|policy build|policy check|policy inspect|policy bench";
    for command in commands.split('|') {
        let run = shell.run(&format!("{command} --help")).exits(0);
        assert!(run.out.contains("Usage: reprise") && run.out.contains("Exit status: 0 "), "{run}");
        assert!(run.out.lines().all(|line| line.chars().count() <= 120), "{run}");
    }
    for (command, says) in [
        ("replay", "Without TRACE, a sample"),
        ("plan", "The store is only read"),
        ("store", "They can"),
        ("policy", "From nothing"),
    ] {
        assert!(shell.run(&format!("{command} --help")).exits(0).out.contains(says), "{command}");
    }
    for command in ["model", "trace", "store", "policy"] {
        assert!(shell.run(&format!("{command} --help")).exits(0).out.contains("Commands:"));
        shell.run(command).exits(2);
    }
    shell.run("").exits(2).says("Usage: reprise");
    shell.run("--version").exits(0);
    shell.run("replya").exits(2).says("replay");
}

/// `reprise … | head -1`, and a reader that is gone before the first byte.
#[test]
fn a_closed_pipe_is_not_a_panic() {
    let shell = Shell::new();
    shell.write("tokens.jsonl", "{\"t\": 0, \"tokens\": [1, 2, 3]}\n");
    shell.run("replay --json --limit 1 --history-gib 0.02 --window-gib 0 --store st").exits(0);
    for line in [
        "replay --dry-run",
        "replay --dry-run --json",
        "store verify st",
        "store verify st --json",
        "store info st",
        "store ls st",
        "store export st -",
        "policy inspect lru",
        "compare --policy lru --budget-gib 0.1 --window-share 20 --out cmp",
        "plan --request 3",
        "model show v4-pro",
        "model list",
        "trace make tokens.jsonl",
        "replay --help",
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_reprise"))
            .args(line.split_whitespace())
            .current_dir(shell.path(""))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code < 2), "{line}: {:?} {err}", output.status);
        assert!(!err.contains("panicked"), "{line}: {err}");
    }
}
