//! Policies that are written, built and used: from an empty directory to a replay.

use std::{env, fs, os::unix::fs::PermissionsExt, path::Path, process::Command, time::Duration};

use serde_json::Value;

use crate::shell::{Run, Shell};

/// A compiler that starts from nothing on a busy machine.
const BUILT_AFTER: Duration = Duration::from_secs(900);

/// What a build says where it has no compiler, or cannot fetch what the SDK depends on.
const TOOLS_MISSING: [&str; 4] = ["no compiler for", "failed to download", "failed to get", "no matching package"];

/// Runs `reprise policy build` with these words. `None`, with a notice, where tools are missing and need not be there.
fn build(shell: &Shell, words: &str) -> Option<Run> {
    let line = format!("policy build {words}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_reprise"));
    command.args(line.split_whitespace());
    // Tests share what the SDK depends on; as a user has it, that is in the folder.
    command.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("policies"));
    let run = shell.start_command(&line, command).wait_up_to(BUILT_AFTER);
    let missing = run.code != Some(0) && TOOLS_MISSING.iter().any(|says| run.err.contains(says));
    if missing && env::var_os("REPRISE_REQUIRE_TOOLS").is_none_or(|value| value != "1") {
        eprintln!("skipped: {run}");
        return None;
    }
    Some(run)
}

/// A folder with a policy in Rust that is locked to what this repository is locked to.
fn new_in_rust(shell: &Shell, words: &str, folder: &str) -> Run {
    let run = shell.run(&format!("policy new {words} --sdk repo")).exits(0);
    fs::copy(shell.path("repo/Cargo.lock"), shell.path(&format!("{folder}/Cargo.lock"))).unwrap();
    run
}

#[test]
fn a_policy_from_the_template_does_not_need_a_change_to_serve_a_replay() {
    let shell = Shell::new();
    let new = new_in_rust(&shell, "mine", "mine");
    for step in ["cd mine", "reprise policy build", "policy check build/mine.wasm", "replay --eviction build/mine.wasm"]
    {
        assert!(new.out.contains(step), "expected `{step}`: {new}");
    }
    let Some(built) = build(&shell, "mine --json") else { return };
    let built = built.exits(0);
    let json = built.json();
    assert_eq!((&json["file"], &json["refused"]), (&"mine/build/mine.wasm".into(), &Value::Null), "{built}");
    assert_eq!((&json["policy"]["name"], &json["policy"]["kind"]), (&"mine".into(), &"cache".into()), "{built}");

    shell.run("policy check mine/build/mine.wasm --events 65536 --profile integer").exits(0);
    let seen = shell.run("policy inspect mine/build/mine.wasm --json").exits(0).json();
    assert_eq!((&seen["digest"], &seen["imports"]), (&json["digest"], &Value::Array(Vec::new())), "{seen}");
    assert_eq!((&seen["metadata"]["name"], &seen["metadata"]["version"]), (&"mine".into(), &"0.1.0".into()), "{seen}");
    assert_eq!(seen["metadata"]["languages"][0]["name"], "Rust", "{seen}");

    let replay = "replay --limit 12 --history-gib 0.1 --window-gib 0.02 --json --strict-policy";
    let mine = shell.run(&format!("{replay} --eviction mine/build/mine.wasm")).exits(0);
    assert_eq!(mine.policy("eviction")["name"], "mine", "{mine}");
    assert!(mine.number("evicted_history") > 0, "{mine}");
    shell.run("policy bench mine/build/mine.wasm:chances=2 --records 4096 --seconds 0.05 --json").exits(0);

    // What the compiler left is no component, and becomes one without the folder.
    let module = Path::new(env!("CARGO_TARGET_TMPDIR")).join("policies/wasm32-unknown-unknown/release/mine.wasm");
    let again = build(&shell, &format!("{} -o alone.wasm --json", module.display())).unwrap().exits(0).json();
    assert_eq!(again["policy"], json["policy"]);
}

#[test]
fn a_component_does_not_lack_what_its_manifest_says_nor_tell_where_it_was_built() {
    let shell = Shell::new();
    new_in_rust(&shell, "far-apart --kind checkpoint --dir deep/down/far", "deep/down/far");
    let manifest = fs::read_to_string(shell.path("deep/down/far/Cargo.toml")).unwrap();
    let said = "version = \"2.3.4\"\ndescription = \"windows far apart\"\nlicense = \"MIT\"\nauthors = [\"Ada\", \"Grace\"]\n\
                repository = \"https://example.org/far\"\n";
    shell.write("deep/down/far/Cargo.toml", manifest.replacen("version = \"0.1.0\"\n", said, 1));
    // A crate that has the path of its source in the component.
    fs::create_dir_all(shell.path("beside/src")).unwrap();
    shell.write("beside/Cargo.toml", "[package]\nname = \"beside\"\nedition = \"2024\"\n");
    shell.write("beside/src/lib.rs", "#![no_std]\npub const SOURCE: &str = file!();\n");
    let manifest = fs::read_to_string(shell.path("deep/down/far/Cargo.toml")).unwrap();
    let depends = "[dependencies]\nbeside = { path = \"../../../beside\" }\n";
    shell.write("deep/down/far/Cargo.toml", manifest.replacen("[dependencies]\n", depends, 1));
    let source = fs::read_to_string(shell.path("deep/down/far/src/lib.rs")).unwrap();
    let here = "\n#[unsafe(no_mangle)]\nextern \"C\" fn here() -> *const u8 {\n    beside::SOURCE.as_ptr()\n}\n";
    shell.write("deep/down/far/src/lib.rs", source + here);

    let Some(built) = build(&shell, "deep/down/far -o far.wasm") else { return };
    let built = built.exits(0);
    let bytes = fs::read(shell.path("far.wasm")).unwrap();
    let (text, root) = (String::from_utf8_lossy(&bytes), shell.path("").canonicalize().unwrap());
    assert!(text.contains("beside/src/lib.rs") && !text.contains(&*root.to_string_lossy()), "{built}");
    assert!(
        built.out.starts_with("far.wasm: ") && built.out.contains("policy  far-apart 0.1.0: checkpoints"),
        "{built}"
    );
    assert!(!shell.exists("deep/down/far/build/far-apart.wasm"), "{built}");
    let metadata = shell.run("policy inspect far.wasm --json").exits(0).json()["metadata"].clone();
    for (key, value) in [
        ("name", "far-apart"),
        ("version", "2.3.4"),
        ("description", "windows far apart"),
        ("licenses", "MIT"),
        ("authors", "Ada, Grace"),
        ("source", "https://example.org/far"),
    ] {
        assert_eq!(metadata[key], value, "{metadata}");
    }
    shell.run("policy check far.wasm --events 16384").exits(0);
    let run = shell.run("replay --limit 6 --dry-run --json --strict-policy --checkpoints far.wasm").exits(0);
    assert_eq!(run.policy("checkpoints")["name"], "far-apart", "{run}");
}

#[test]
fn a_policy_that_does_not_compile_does_not_leave_a_component() {
    let shell = Shell::new();
    new_in_rust(&shell, "broken", "broken");
    shell.write("broken/src/lib.rs", "fn broken( {}\n");
    let Some(run) = build(&shell, "broken") else { return };
    let run = run.exits(1).says("compiling broken failed");
    assert!(run.err.contains("src/lib.rs:1") && !shell.exists("broken/build"), "{run}");
}

#[test]
fn a_folder_that_cannot_be_written_or_built_is_not_touched() {
    let shell = Shell::new();
    fs::create_dir(shell.path("stuffed")).unwrap();
    shell.write("stuffed/file", "mine");
    shell.write("file", "");
    fs::create_dir(shell.path("empty")).unwrap();
    for (line, says) in [
        ("new 9lives --sdk repo", "a letter first"),
        ("new a/b --sdk repo", "a letter first"),
        ("new ../up --sdk repo", "a letter first"),
        ("new fn --sdk repo", "means something in Rust"),
        ("new lru --sdk repo", "`lru` is a shipped policy"),
        ("new stuffed --sdk repo", "stuffed is not empty, and nothing in it is touched"),
        ("new mine --dir file --sdk repo", "looking whether the folder file is empty"),
        ("new mine --lang cobol", "cobol"),
        ("new mine --lang c --kind checkpoint", "no template for a checkpoint policy in C; there is c-cache, "),
        ("new mine --lang c --sdk repo", "--sdk is for policies in Rust"),
        ("new mine --sdk empty", "empty is no checkout of Reprise"),
        ("new mine --sdk nowhere", "looking for the SDK in nowhere: No such file"),
        ("build empty", "empty holds neither Cargo.toml nor build.sh"),
        ("build nowhere", "looking at nowhere: No such file"),
    ] {
        let run = shell.run(&format!("policy {line}")).exits(2).says(says);
        assert_eq!(run.out, "", "{run}");
        assert!(!shell.exists("mine"), "{run}");
    }
    assert_eq!(fs::read_dir(shell.path("stuffed")).unwrap().count(), 1);
    assert_eq!(fs::read_dir(shell.path("empty")).unwrap().count(), 0);
    // One that is there and empty will do, and what no compiler wrote is none of its output.
    shell.run("policy new mine --dir empty --lang python").exits(0);
    shell.write("text.wasm", "(module)");
    shell.run("policy build text.wasm -o out.wasm").exits(1).says("making the component out.wasm");
    assert!(!shell.exists("out.wasm"));
}

#[test]
fn a_folder_in_another_language_does_not_lack_the_contract() {
    let shell = Shell::new();
    for language in ["c", "python", "js"] {
        let run = shell.run(&format!("policy new mine --lang {language} --dir {language}")).exits(0);
        assert!(run.out.contains("reprise policy build") && !run.out.contains("cargo test"), "{run}");
        assert_eq!(run.out.contains("build/mine.wasm --policy-profile interpreted"), language != "c", "{run}");
        for file in fs::read_dir(shell.path("repo/wit")).unwrap() {
            let file = file.unwrap();
            let copy = shell.path(&format!("{language}/wit/{}", file.file_name().display()));
            assert_eq!(fs::read(copy).unwrap(), fs::read(file.path()).unwrap(), "{language}: {:?}", file.file_name());
        }
        let mode = fs::metadata(shell.path(&format!("{language}/build.sh"))).unwrap().permissions().mode();
        assert_eq!(mode & 0o100, 0o100, "{language}: build.sh cannot be run");
    }
}

/// A folder of a language that nobody here knows: its script counts.
fn folder_with_script(shell: &Shell, script: &str) {
    fs::create_dir_all(shell.path("other")).unwrap();
    shell.write("other/build.sh", format!("#!/bin/sh\nset -e\nmkdir -p build\n{script}\n"));
    fs::set_permissions(shell.path("other/build.sh"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_script_of_any_language_is_not_run_for_nothing() {
    let shell = Shell::new();
    folder_with_script(&shell, "echo a word\ncp ../repo/policies/dist/fifo.wasm build/other.wasm");
    let built = shell.run("policy build other --json").exits(0).says("running other/build.sh").says("a word");
    assert_eq!(
        (&built.json()["file"], &built.json()["policy"]["name"]),
        (&"other/build/other.wasm".into(), &"fifo".into())
    );
    // With nothing to do it leaves what it made before.
    folder_with_script(&shell, "");
    assert_eq!(shell.run("policy build other --json").exits(0).json(), built.json());

    for (script, says) in [
        ("exit 7", "ended with exit status: 7; what it said is above"),
        ("rm build/*", "wrote no .wasm file to other/build"),
        ("cp ../repo/policies/dist/fifo.wasm build/a.wasm; cp build/a.wasm build/b.wasm", "more than one .wasm file"),
        ("rm build/*; echo text > build/other.wasm", "no WebAssembly module"),
    ] {
        folder_with_script(&shell, script);
        let run = shell.run("policy build other").exits(1).says(says);
        assert_eq!(run.out, "", "{run}");
    }
    // What a host would refuse is written, so that it can be looked at, and said to be refused.
    folder_with_script(&shell, "rm build/*; cp ../repo/policies/dist/core.wasm build/other.wasm");
    let refused = shell.run("policy build other").exits(1).says("was built and would be refused").says("is no policy");
    assert!(refused.out.contains("REFUSED: ") && shell.exists("other/build/other.wasm"), "{refused}");

    fs::set_permissions(shell.path("other/build.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    shell.run("policy build other").exits(1).says("may not be executed: chmod +x it");
}

#[test]
fn a_tool_that_is_missing_is_not_looked_for_by_the_author() {
    let shell = Shell::new();
    fs::create_dir(shell.path("bin")).unwrap();
    for (language, program, install) in
        [("c", "python3", "name a clang"), ("python", "python3", "python3-venv"), ("js", "npm", "nodejs")]
    {
        shell.run(&format!("policy new mine --lang {language} --dir {language}")).exits(0);
        let mut command = Command::new(env!("CARGO_BIN_EXE_reprise"));
        command.args(["policy", "build", language]).env("PATH", shell.path("bin")).env_remove("CC");
        let run = shell.start_command(&format!("policy build {language}"), command).wait().exits(1);
        run.says(&format!("is built with `{program}`, which is not on the path")).says(install);
    }
    shell.run("policy new mine --sdk repo").exits(0);
    let mut command = Command::new(env!("CARGO_BIN_EXE_reprise"));
    command.args(["policy", "build", "mine"]).env("PATH", shell.path("bin")).env_remove("RUSTC").env_remove("CARGO");
    let run = shell.start_command("policy build mine", command).wait().exits(1);
    assert!(run.err.contains("no cargo/rustc on the PATH") && !shell.exists("mine/build"), "{run}");
    assert!(run.err.contains("rustup"), "{run}");
}
