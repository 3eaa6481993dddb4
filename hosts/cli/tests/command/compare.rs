//! Policies against one another: what is found is what a replay finds, whatever stopped it on the way.

use std::{collections::HashMap, fs, path::Path, process::Command};

use serde_json::Value;

use crate::shell::{Run, Shell};

const EDGES: &str = "repo/tests/data/edges.jsonl";
const HOSTILE: &str = "repo/tests/fixtures/hostile.wasm";
/// Two policies at two budgets, of which the smaller makes them differ.
const GRID: &str =
    "repo/tests/data/edges.jsonl --policy lru --policy two-hit+periodic:2048 --budget-gib 0.1,0.25 --quiet";
const FILES: [&str; 3] = ["results.csv", "results.json", "report.html"];

/// The files of a comparison.
fn files(shell: &Shell, out: &str) -> [Vec<u8>; 3] {
    FILES.map(|name| fs::read(shell.path(out).join(name)).unwrap())
}

/// Lines of a CSV file by the names of its columns. Fields may be quoted.
fn rows(text: &str) -> Vec<HashMap<String, String>> {
    let mut lines: Vec<Vec<String>> = vec![vec![String::new()]];
    let mut quoted = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let line = lines.last_mut().unwrap();
        match letter {
            '"' if quoted && letters.next_if_eq(&'"').is_some() => line.last_mut().unwrap().push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => line.push(String::new()),
            '\r' if !quoted && letters.next_if_eq(&'\n').is_some() => lines.push(vec![String::new()]),
            letter => line.last_mut().unwrap().push(letter),
        }
    }
    assert_eq!(lines.pop(), Some(vec![String::new()]), "the last line ends");
    let names = lines.remove(0);
    assert!(lines.iter().all(|line| line.len() == names.len()), "{names:?}\n{lines:?}");
    lines.into_iter().map(|line| names.iter().cloned().zip(line).collect()).collect()
}

fn cells(run: &Run) -> Vec<Value> {
    run.json()["traces"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|trace| trace["cells"].as_array().unwrap().clone())
        .collect()
}

#[test]
fn a_cell_is_not_another_replay_than_the_one_it_names() {
    let shell = Shell::new();
    let run = shell.run(&format!("compare {GRID} --json")).exits(0);
    let cells = cells(&run);
    assert_eq!(cells.len(), 4);
    for cell in cells {
        let gib = |name: &str| cell[name].as_u64().unwrap() as f64 / f64::from(1 << 30);
        let (eviction, checkpoints) = cell["policy"].as_str().unwrap().split_once('+').unwrap();
        let line = format!(
            "replay {EDGES} --dry-run --json --history-gib {} --window-gib {} --eviction {eviction} --checkpoints {checkpoints}",
            gib("history_bytes"),
            gib("window_bytes")
        );
        let replay = shell.run(&line).exits(0);
        let figures = &cell["figures"];
        for name in [
            "requests",
            "hits",
            "matched_tokens",
            "adopted_tokens",
            "replayed_tokens",
            "computed_tokens",
            "saved_tokens",
        ] {
            assert_eq!(figures[name].as_u64(), Some(replay.number(name)), "{name} of {cell}");
        }
        for (group, what, name) in [
            ("history", "written_bytes", "written_history"),
            ("window", "written_bytes", "written_window"),
            ("history", "loaded_bytes", "loaded_history"),
            ("window", "loaded_bytes", "loaded_window"),
            ("history", "evicted_records", "evicted_history"),
            ("window", "evicted_records", "evicted_window"),
            ("window", "orphaned_records", "orphaned_window"),
        ] {
            assert_eq!(figures[group][what].as_u64(), Some(replay.number(name)), "{name} of {cell}");
        }
        let budget = cell["budget"].as_u64().unwrap();
        assert!(cell["history_bytes"].as_u64().unwrap() + cell["window_bytes"].as_u64().unwrap() <= budget, "{cell}");
    }
}

#[test]
fn neither_threads_nor_an_end_before_the_end_change_a_byte() {
    let shell = Shell::new();
    shell.run(&format!("compare {GRID} --jobs 1 --out one")).exits(0);
    let one = files(&shell, "one");
    shell.run(&format!("compare {GRID} --jobs 7 --out many")).exits(0);
    assert_eq!(files(&shell, "many"), one);
    let journal = fs::read(shell.path("many/journal.jsonl")).unwrap();
    for part in [0, 5, 40, 77] {
        let cut = journal.len() * part / 100;
        fs::create_dir_all(shell.path("cut")).unwrap();
        fs::write(shell.path("cut/journal.jsonl"), &journal[..cut]).unwrap();
        shell.run(&format!("compare {GRID} --jobs 3 --out cut")).exits(0);
        assert_eq!(files(&shell, "cut"), one, "after {part} % of the journal");
    }
    // Everything is there: nothing is replayed, nothing is added.
    let before = fs::metadata(shell.path("cut/journal.jsonl")).unwrap().len();
    let again = shell.run(&format!("compare {} --out cut", GRID.replace(" --quiet", ""))).exits(0);
    let replays = again.err.lines().find(|line| line.contains(" replays, ")).expect("a line on the replays");
    let counts: Vec<&str> = replays.split_whitespace().filter(|word| word.parse::<u64>().is_ok()).collect();
    assert_eq!(counts[1], counts[2], "all from the journal: {replays}");
    assert_eq!(fs::metadata(shell.path("cut/journal.jsonl")).unwrap().len(), before);
    assert_eq!(files(&shell, "cut"), one);
}

#[test]
fn a_killed_comparison_does_not_start_over() {
    let shell = Shell::new();
    let line = "compare --quiet --out out";
    shell.run("compare --quiet --out whole").exits(0);
    let mut running = shell.start(line);
    let finished =
        || fs::read(shell.path("out/journal.jsonl")).unwrap_or_default().iter().filter(|&&b| b == b'\n').count();
    while finished() < 10 && !running.has_ended() {
        std::thread::yield_now();
    }
    running.kill();
    let kept = finished() - 1;
    assert!(kept > 0);
    let run = shell.run(&line.replace("--quiet ", "")).exits(0);
    assert!(run.err.contains("of them from the journal"), "{run}");
    assert_eq!(files(&shell, "out"), files(&shell, "whole"));
    shell.run("compare --fresh --out out --limit 3 --policy lru --budget-gib 0.1").exits(0);
    assert!(finished() < kept + 20, "--fresh forgets");
}

#[test]
fn results_of_another_question_are_not_taken_for_these() {
    let shell = Shell::new();
    let base =
        format!("compare {EDGES} --model v4-flash --policy lru --budget-gib 0.1 --window-share 25 --json --out out");
    let figures = |line: &str, out: &str| {
        let run = shell.run(&line.replace("--out out", &format!("--out {out}"))).exits(0);
        cells(&run)
    };
    let first = figures(&base, "out");
    for other in [
        base.replace("lru", "fifo"),
        base.replace("0.1", "0.12"),
        base.replace("25", "30"),
        format!("{base} --no-replay"),
        format!("{base} --block-tokens 256"),
        format!("{base} --limit 20"),
        format!("{base} --prefill-rate 1000"),
        base.replace("v4-flash", "v4-pro"),
        base.replace(EDGES, "repo/tests/data/conversation-part.jsonl.gz"),
    ] {
        let here = figures(&other, "out");
        assert_eq!(here, figures(&other, "alone"), "{other}");
        assert_ne!(here, first, "{other}");
        fs::remove_dir_all(shell.path("alone")).unwrap();
    }
    assert_eq!(figures(&base, "out"), first);
}

#[test]
fn no_figure_is_lost_on_its_way_into_the_table() {
    let shell = Shell::new();
    let run = shell.run(&format!("compare {GRID} --json --out out")).exits(0);
    let rows = rows(&fs::read_to_string(shell.path("out/results.csv")).unwrap());
    let cells = cells(&run);
    assert_eq!(rows.len(), cells.len());
    for (row, cell) in rows.iter().zip(&cells) {
        assert_eq!(row["policy"], cell["policy"].as_str().unwrap());
        let mut compared = 0;
        for (name, text) in row {
            let (group, rest) = name.split_once('_').unwrap_or((name, ""));
            let figure = [&cell[name], &cell["figures"][name], &cell["derived"][name], &cell["figures"][group][rest]];
            if let Some(figure) = figure.into_iter().find_map(Value::as_u64) {
                assert_eq!(text, &figure.to_string(), "{name}");
                compared += 1;
            }
        }
        assert_eq!(compared, row.len() - 4, "all but trace, policy, failure and bound: {row:?}");
    }
    let printed: Value = serde_json::from_slice(&fs::read(shell.path("out/results.json")).unwrap()).unwrap();
    assert_eq!(printed, run.json());
}

#[test]
fn the_figures_of_a_fallback_are_never_those_of_a_policy_that_failed() {
    let shell = Shell::new();
    for mode in [1, 4, 6] {
        let line = format!(
            "compare {EDGES} --policy {HOSTILE}:mode={mode} --policy lru --budget-gib 0.1 --window-share 30 --out out{mode}"
        );
        let run = shell.run(&format!("{line} --quiet")).exits(0);
        let words: Vec<&str> = run.out.split_whitespace().collect();
        assert!(
            words.join(" ").contains(&format!("{HOSTILE}:mode={mode}+events failed at 102.4 MiB: the eviction policy")),
            "{run}"
        );
        let rows = rows(&fs::read_to_string(shell.path(&format!("out{mode}/results.csv"))).unwrap());
        assert!(rows[0]["failed"].starts_with("the eviction policy `"), "{rows:?}");
        assert_eq!(rows[0]["saved_tokens"], "");
        assert_ne!(rows[1]["saved_tokens"], "");
        let report = fs::read_to_string(shell.path(&format!("out{mode}/report.html"))).unwrap();
        assert!(report.contains("class=\"failed\"") && report.contains("It has no figures there"), "mode {mode}");
    }
}

#[test]
fn components_do_not_give_other_figures() {
    let shell = Shell::new();
    let native = cells(&shell.run(&format!("compare {GRID} --window-share 20 --json --out native")).exits(0));
    let components =
        shell.run(&format!("compare {GRID} --window-share 20 --json --components --out components")).exits(0);
    assert_eq!(cells(&components), native);
}

#[test]
fn without_types_a_cell_is_not_another_replay_either() {
    let shell = Shell::new();
    let run = shell.run(&format!("compare {EDGES} --untyped --capacity-blocks 40,10,10,100000 --json")).exits(0);
    let cells = cells(&run);
    assert!(cells.len() >= 9);
    for cell in cells {
        let line = format!(
            "replay {EDGES} --untyped --json --capacity-blocks {} --eviction {}",
            cell["budget"],
            cell["policy"].as_str().unwrap()
        );
        let replay = shell.run(&line).exits(0).json();
        let found = replay.get("unfilled_hit_tokens").unwrap_or(&replay["hit_tokens"]);
        assert_eq!(&cell["figures"]["found_tokens"], found, "{cell}");
        assert_eq!(cell["figures"]["underfilled"], replay["mode"] == "underfilled_at_window", "{cell}");
    }
    let run = shell.run(&format!("compare {EDGES} --untyped --capacity-blocks 100000 --quiet")).exits(0);
    assert!(run.out.contains("(cold)") && run.out.contains("tell of a cold start"), "{run}");
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_made() {
    let shell = Shell::new();
    shell.write("empty.jsonl", "");
    for (line, said) in [
        ("--policy lruu", "no eviction policy is named `lruu`"),
        ("--policy lru+evnets", "no checkpoint policy is named `evnets`"),
        ("--policy events", "no eviction policy is named `events`"),
        ("--policy optimal", "--policy optimal"),
        ("--policy missing.wasm", "missing.wasm"),
        ("--policy lru:a=1", "lru"),
        ("--policy lru+", "--policy lru+: "),
        ("--policy lru --policy lru+events", "--policy lru+events is given twice"),
        ("--policy lru --budget-gib 0.0001", "does not hold one block"),
        ("--budget-gib -4", "--budget-gib takes a number of GiB"),
        ("--budget-gib 4,x", "--budget-gib"),
        ("--window-share 100", "--window-share takes"),
        ("--window-share 12.34", "--window-share takes"),
        ("--budget-gib 0.01 --window-share 1", "does not hold one record of each kind"),
        ("--limit 0", "--limit 0"),
        ("--jobs 0", "--jobs"),
        ("empty.jsonl", "holds no requests"),
        ("missing.jsonl", "cannot open the trace"),
        ("repo/tests/data/edges.jsonl repo/tests/data/edges.jsonl", "is given twice"),
        ("repo/tests/data/edges.jsonl --block-tokens 384", "do not fit"),
        ("--model v9", "v9"),
        ("--untyped", "--capacity-blocks"),
        ("--capacity-blocks 4", "--untyped"),
        ("--untyped --capacity-blocks 4 --policy lru+events", "without types there are no checkpoints"),
        ("--untyped --capacity-blocks 4 --policy lruu", "lruu"),
        ("--untyped --capacity-blocks 4 --budget-gib 4", "--budget-gib"),
        ("--json --markdown", "--markdown"),
    ] {
        shell.run(&format!("compare {line} --out out")).exits(2).says(said);
        assert!(!shell.exists("out"), "{line}");
    }
}

#[test]
fn a_directory_that_takes_nothing_is_said_by_name() {
    let shell = Shell::new();
    shell.write("file", "");
    shell.run("compare --policy lru --budget-gib 0.1 --out file").exits(1).says("making the directory file");
    fs::create_dir(shell.path("notes")).unwrap();
    shell.write("notes/journal.jsonl", "mine\n");
    shell.run("compare --policy lru --budget-gib 0.1 --out notes").exits(2).says("--fresh");
    assert_eq!(fs::read(shell.path("notes/journal.jsonl")).unwrap(), b"mine\n");
    fs::create_dir(shell.path("blocked")).unwrap();
    fs::create_dir(shell.path("blocked/report.html")).unwrap();
    shell.run("compare --policy lru --budget-gib 0.1 --out blocked").exits(1).says("writing blocked/report.html");
}

#[test]
fn a_file_that_is_full_does_not_lose_what_was_finished() {
    let shell = Shell::new();
    let line = "compare --policy lru --budget-gib 0.1,0.2 --quiet --jobs 1 --out out";
    // Files of four KiB at most: enough for some lines of the journal.
    let mut command = Command::new("sh");
    let script = format!("trap '' XFSZ; ulimit -f 8; exec \"$0\" {line}");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_reprise")]);
    shell.start_command(line, command).wait().exits(1).says("writing out/journal.jsonl").says("goes on from there");
    let run = shell.run(&line.replace(" --quiet", "")).exits(0);
    assert!(run.err.contains("of them from the journal"), "{run}");
    shell.run(&line.replace("--out out", "--out whole")).exits(0);
    assert_eq!(files(&shell, "out"), files(&shell, "whole"));
}

#[test]
fn two_traces_of_one_name_are_not_mixed_up() {
    let shell = Shell::new();
    for (folder, tokens) in [("a", 900), ("b", 2000)] {
        fs::create_dir(shell.path(folder)).unwrap();
        let line =
            |time| format!("{{\"timestamp\": {time}, \"input_length\": {tokens}, \"hash_ids\": [1, 2, 3, 4]}}\n");
        shell.write(&format!("{folder}/t.jsonl"), (0..3).map(line).collect::<String>());
    }
    let run = shell.run("compare a/t.jsonl b/t.jsonl --policy lru --budget-gib 1 --json").exits(0);
    let json = run.json();
    let traces = json["traces"].as_array().unwrap();
    let named: Vec<(&str, u64)> = traces
        .iter()
        .map(|trace| (trace["trace"].as_str().unwrap(), trace["prompt_tokens"].as_u64().unwrap()))
        .collect();
    assert_eq!(named, [("a/t.jsonl", 2_700), ("b/t.jsonl", 6_000)]);
    let report = fs::read_to_string(shell.path("reprise-compare/report.html")).unwrap();
    assert!(report.contains("<h2>a/t.jsonl</h2>") && report.contains("<h2>b/t.jsonl</h2>"));
}

#[test]
fn a_policy_that_keeps_no_windows_is_given_no_share() {
    let shell = Shell::new();
    let run = shell.run(&format!("compare {EDGES} --policy lru+zero --budget-gib 0.1 --json")).exits(0);
    let cell = &cells(&run)[0];
    assert_eq!((cell["window_permille"].as_u64(), cell["division"].as_str()), (Some(0), Some("undivided")));
    assert_eq!(cell["replays"], 1);
}

#[test]
fn markdown_is_one_table_a_figure_with_all_policies() {
    let shell = Shell::new();
    let run = shell.run(&format!("compare {GRID} --markdown")).exits(0);
    let rows: Vec<&str> = run.out.lines().filter(|line| line.starts_with("| lru+events |")).collect();
    assert_eq!(rows.len(), 4, "saved, written, prefill, shares: {run}");
    assert!(run.out.starts_with("### edges.jsonl\n"), "{run}");
    assert!(run.out.contains("| **"), "the best is marked: {run}");
    assert!(run.out.lines().filter(|line| line.starts_with("| ")).all(|line| line.matches(" |").count() == 3), "{run}");
    assert!(Path::new(&shell.path("reprise-compare/report.html")).exists());
}
