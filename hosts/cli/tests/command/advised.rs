//! `reprise advise`, and the configuration it writes.

use std::fs;

use reprise::Config;
use serde_json::Value;

use crate::shell::Shell;

#[test]
fn a_replay_of_what_was_advised_does_not_give_other_integers_than_were_promised() {
    let shell = Shell::new();
    for (index, machine) in
        ["--budget-gib 0.6", "--budget-gib 0.2 --limit 20 --no-replay --prefill-rate 4000"].iter().enumerate()
    {
        let file = format!("advice{index}.toml");
        let advice: Value = advised(&shell, &format!("{machine} --out {file}"));
        let limit = if machine.contains("--limit") { "--limit 20" } else { "" };
        // As components, as a serving process runs them.
        let replayed = shell.run(&format!("replay --config {file} --dry-run --json {limit}")).exits(0);
        let choice = &advice["choice"];
        for (name, number) in replayed.integers() {
            assert_eq!(choice["expected"][name], number, "{name}");
        }
        assert!(choice["expected"]["saved_tokens"].as_u64().unwrap() > 0, "{choice}");
        let options = &replayed.json()["options"];
        assert_eq!(options["history_bytes"], choice["history_bytes"]);
        assert_eq!((&options["eviction"], &options["checkpoints"]), (&choice["eviction"], &choice["checkpoints"]));
        assert_eq!(options["prices"], advice["prices"]);
    }
}

#[test]
fn what_is_chosen_is_not_worse_than_what_was_tried() {
    let shell = Shell::new();
    let advice = advised(&shell, "");
    let time = |trial: &Value| trial["prefill_seconds"].as_f64().unwrap() + trial["load_seconds"].as_f64().unwrap();
    let (choice, tried) = (&advice["choice"], advice["tried"].as_array().unwrap());
    for trial in tried {
        assert!(time(choice) <= time(trial), "{choice} {trial}");
    }
    for name in ["lru", "fifo", "two-hit"] {
        assert!(tried.iter().any(|trial| trial["eviction"] == name), "{name} was not tried");
    }
    let runner_up = &advice["runner_up"];
    assert!((time(runner_up) - time(choice) - runner_up["loses_seconds"].as_f64().unwrap()).abs() < 1e-6);
    assert_ne!((&runner_up["eviction"], &runner_up["checkpoints"]), (&choice["eviction"], &choice["checkpoints"]));
    let quotas = ["history_bytes", "window_bytes"].map(|key| choice[key].as_u64().unwrap());
    assert_eq!(quotas.iter().sum::<u64>(), advice["budget_bytes"].as_u64().unwrap(), "nothing is given twice or lost");
    let saved = choice["expected"]["saved_tokens"].as_u64().unwrap();
    assert!(saved <= advice["bound_saved_tokens"].as_u64().unwrap());
    assert_eq!(advised(&shell, "--jobs 1"), advised(&shell, "--jobs 3"), "how many work on it must not matter");
}

#[test]
fn a_load_slower_than_a_prefill_is_not_advised() {
    let shell = Shell::new();
    let rates = "--disk-gib-per-second 50 --pcie-gib-per-second 0.0001";
    let advice = advised(&shell, rates);
    assert_eq!(advice["choice"]["expected"]["saved_tokens"], 0, "PCIe is the bottleneck");
    let run = shell.run(&format!("advise {rates}")).exits(0);
    assert!(run.out.starts_with("No cache of 614.4 MiB saves anything"), "{run}");
    assert_ne!(advised(&shell, "--disk-gib-per-second 50")["choice"]["expected"]["saved_tokens"], 0);
}

#[test]
fn no_sentence_lacks_the_figures_behind_it() {
    let shell = Shell::new();
    let run = shell.run("advise --budget-gib 0.6 --limit 30 --out advice.toml --pcie-gib-per-second 20").exits(0);
    let words = words(&run.out);
    for part in [
        "Take the eviction policy `",
        "of the 614.4 MiB to compressed entries",
        "the first of 36 by --limit",
        "prompt tokens (",
        "a day at the pace of the trace",
        "No policy can save more than ",
        "the disk, which is slower than PCIe",
        "Next comes `",
        "written to advice.toml",
        "reprise replay --limit 30 --dry-run --config advice.toml",
    ] {
        assert!(words.contains(part), "{part}: {run}");
    }
    assert!(run.out.lines().all(|line| line.chars().count() <= 120), "{run}");
}

/// Of the sample `full` with next to no windows takes the least time, and writes every window.
#[test]
fn a_device_is_not_worn_out_for_a_percent_of_time() {
    let shell = Shell::new();
    let advice = advised(&shell, "");
    let (choice, lighter) = (&advice["choice"], &advice["lighter"]);
    let written = |trial: &Value| trial["device_bytes"].as_u64().unwrap();
    assert!(written(lighter) < written(choice) / 2, "{advice}");
    let run = shell.run("advise").exits(0);
    assert!(words(&run.out).contains("If what the device may write counts"), "{run}");

    let per_day = choice["device_bytes_per_day"].as_f64().unwrap() / advice["budget_bytes"].as_f64().unwrap();
    let allowed = advised(&shell, &format!("--writes-per-day {}", per_day / 2.0));
    assert_eq!(allowed["choice"]["writes_too_much"], false);
    assert!(written(&allowed["choice"]) <= written(choice) / 2);
    let run = shell.run("advise --writes-per-day 0").exits(0);
    assert!(words(&run.out).contains("more than is allowed, as does all that was tried"), "{run}");
}

#[test]
fn advice_on_a_model_from_a_file_does_not_need_that_file_afterwards() {
    let shell = Shell::new();
    let preset = Config::new("v4-flash").unwrap();
    fs::write(shell.path("model.toml"), toml::to_string(&preset.model).unwrap()).unwrap();
    advised(&shell, "--model model.toml --limit 12 --out advice.toml");
    fs::remove_file(shell.path("model.toml")).unwrap();
    let config = Config::from_toml(&shell.path("advice.toml")).unwrap();
    assert_eq!(config.model, preset.model);
    shell.run("replay --config advice.toml --dry-run --limit 12").exits(0);
}

#[test]
fn a_mistake_does_not_cost_a_hundred_replays() {
    let shell = Shell::new();
    shell.write("t.jsonl", "{\"timestamp\":0,\"input_length\":1000,\"hash_ids\":[1,2]}\n");
    shell.write("empty.jsonl", "");
    for (line, says) in [
        ("advise t.jsonl", "--budget-gib"),
        ("advise t.jsonl --budget-gib -1", "--budget-gib takes"),
        ("advise t.jsonl --budget-gib 0.0001", "does not hold one block"),
        ("advise t.jsonl --budget-gib 1 --model v9", "v9"),
        ("advise t.jsonl --budget-gib 1 --block-tokens 384", "do not fit"),
        ("advise t.jsonl --budget-gib 1 --limit 0", "no requests"),
        ("advise t.jsonl --budget-gib 1 --out no/such/place.toml", "no/such/place.toml"),
        ("advise t.jsonl --budget-gib 1 --out .", "is a directory"),
        ("advise t.jsonl --budget-gib 1 --prefill-rate 0", "--prefill-rate"),
        ("advise t.jsonl --budget-gib 1 --disk-gib-per-second nan", "--disk-gib-per-second"),
        ("advise missing.jsonl --budget-gib 1", "missing.jsonl"),
    ] {
        shell.run(line).exits(2).says(says);
    }
}

#[test]
fn a_misspelt_key_of_a_configuration_is_not_passed_over() {
    let shell = Shell::new();
    for (text, says) in [
        ("model = \"v4-flash\"\nhistory-gib = 3\n", "history-gib"),
        ("model = \"v4-flash\"\n[prices]\nload = 3\n", "load"),
        ("model = \"v4-flash\"\nhistory-bytes = -1\n", "history-bytes"),
        ("history-bytes = 1000\n", "model"),
        ("model = \"v4-flash\"\neviction = \"optimal\"\n", "--untyped"),
        ("model = \"v4-flash\"\neviction = \"lru2\"\n", "lru2"),
    ] {
        shell.write("cache.toml", text);
        shell.run("replay --config cache.toml --dry-run").exits(2).says(says);
    }
    shell.run("replay --config missing.toml").exits(2).says("missing.toml");
    shell.write("cache.toml", "model = \"v4-flash\"\n");
    for option in ["--history-gib 1", "--eviction fifo", "--planner min-compute", "--untyped --capacity-blocks 3"] {
        shell.run(&format!("replay --config cache.toml {option}")).exits(2).says("--config");
    }
}

/// A store in the file is used, one in the options goes before it, and --dry-run before both.
#[test]
fn a_store_is_not_touched_by_a_dry_run_of_a_configuration() {
    let shell = Shell::new();
    let store = shell.path("of-file");
    shell.write(
        "cache.toml",
        format!("model = \"v4-flash\"\nhistory-bytes = 40000000\nwindow-bytes = 20000000\nstore = {store:?}\n"),
    );
    shell.run("replay --config cache.toml --limit 2 --dry-run").exits(0);
    assert!(!store.exists());
    shell.run("replay --config cache.toml --limit 2 --store of-options --json").exits(0);
    assert!(!store.exists() && shell.path("of-options").exists());
    shell.run("replay --config cache.toml --limit 2 --json").exits(0);
    assert!(store.exists());
}

/// Text without its line breaks.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn advised(shell: &Shell, options: &str) -> Value {
    shell.run(&format!("advise --json {options}")).exits(0).json()
}
