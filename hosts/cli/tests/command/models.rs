//! Models: presets, options, files, and those whose cache looks otherwise.

use reprise_core::model::preset;

use crate::shell::Shell;

#[test]
fn a_preset_written_to_a_file_is_no_other_model() {
    let shell = Shell::new();
    for name in ["v4-pro", "v4-flash:indexer=fp8,draft=on", "gpt-oss-20b", "gpt-oss-120b", "llama-3.1-8b"] {
        shell.write("model.toml", toml::to_string(&preset(name).unwrap()).unwrap());
        let line = "replay repo/tests/data/edges.jsonl --json --history-gib 0.2 --window-gib 0.05 --model";
        let (by_name, by_file) =
            (shell.run(&format!("{line} {name}")).exits(0), shell.run(&format!("{line} model.toml")).exits(0));
        assert_eq!(by_name.integers(), by_file.integers(), "{name}");
        assert_eq!(by_name.json()["groups"], by_file.json()["groups"], "{name}");
        assert!(by_name.number("matched_tokens") > 0, "{by_name}");
    }
}

#[test]
fn a_broken_model_file_is_refused_with_the_place() {
    let shell = Shell::new();
    let good = toml::to_string(&preset("v4-flash").unwrap()).unwrap();
    for (from, to, says) in [
        ("name = \"v4-flash\"", "name = ", "line 1"),
        ("ratio = 4", "ratio = \"four\"", "line 8"),
        ("ratio = 4", "ratoi = 4", "unknown field `ratoi`"),
        ("ratio = 4", "ratio = 0", "ratio is 0"),
        ("row-bytes = 584", "row-bytes = 0", "\"csa\""),
        ("groups = [", "groups = [\"spare\", ", "\"spare\""),
    ] {
        let broken = good.replacen(from, to, 1);
        assert_ne!(broken, good);
        shell.write("broken.toml", broken);
        let run = shell.run("replay --model broken.toml --store st").exits(2).says("broken.toml").says(says);
        assert!(run.out.is_empty() && !shell.exists("st"), "{run}");
    }
    shell.run("replay --model missing.toml").exits(2).says("reading missing.toml: No such file");
}

#[test]
fn a_model_nobody_knows_is_refused_with_those_there_are() {
    let shell = Shell::new();
    for (model, says) in [
        ("v5", "there is v4-pro, v4-flash, gpt-oss-20b, gpt-oss-120b, llama-3.1-8b"),
        ("v4-flash:rope=on", "there is rows, indexer, draft"),
        ("v4-flash:draft=perhaps", "takes off, on, not `perhaps`"),
        ("v4-flash:draft", "draft"),
        ("llama-3.1-8b:draft=on", "draft"),
    ] {
        shell.run(&format!("replay --model {model} --store st")).exits(2).says(says);
        assert!(!shell.exists("st"));
    }
}

/// Layers of another kind, no windows at all, a draft layer, longer blocks: on a store as in the books, each byte compared.
#[test]
fn another_kind_of_cache_does_not_come_back_wrong() {
    let shell = Shell::new();
    for (name, options) in [
        ("dense", "--model llama-3.1-8b --history-gib 0.2"),
        ("hybrid", "--model gpt-oss-20b --history-gib 0.1 --window-gib 0.02"),
        ("draft", "--model v4-flash:draft=on --history-gib 0.1 --window-gib 0.05"),
        ("long", "--block-tokens 256 --history-gib 0.1 --window-gib 0.05"),
    ] {
        let stored = shell.run(&format!("replay --json --limit 5 --store {name} {options}")).exits(0);
        let dry = shell.run(&format!("replay --json --limit 5 --dry-run {options}")).exits(0);
        assert_eq!(stored.integers(), dry.integers(), "{name}");
        let json = stored.json();
        let groups = json["groups"].as_object().unwrap();
        let loaded: u64 = groups.values().map(|group| group["counters"]["loaded-bytes"].as_u64().unwrap()).sum();
        assert!(loaded > 0 && stored.number("verified_bytes") == loaded, "{stored}");
        assert_eq!(json["groups"], dry.json()["groups"], "{name}");
        assert_eq!(groups.contains_key("window"), name != "dense");
        assert_eq!(groups.contains_key("draft"), name == "draft");
        shell.run(&format!("store verify {name}")).exits(0);
    }
    // Without windows there is nothing to replay and no checkpoint: what is found is adopted.
    let dense = shell.run("replay --json --dry-run --limit 5 --model llama-3.1-8b --history-gib 0.2").exits(0);
    assert_eq!(dense.number("adopted_tokens"), dense.number("matched_tokens"));
    assert_eq!((dense.number("replayed_tokens"), dense.number("written_window")), (0, 0));
}

/// A dry run on quotas of a data centre takes memory for what is resident, not for what could be.
#[test]
fn a_huge_quota_does_not_take_the_memory() {
    let shell = Shell::new();
    let run = shell.run("replay --json --dry-run --history-gib 10000 --window-gib 1000 --strict-policy").exits(0);
    assert!(run.number("groups/history/slots") > 20_000_000, "{run}");
    assert_eq!(run.number("evicted_history"), 0);
}

#[test]
fn a_pool_without_a_single_slot_is_not_an_error() {
    let shell = Shell::new();
    for options in ["--history-gib 0", "--window-gib 0", "--history-gib 0 --window-gib 0", "--history-gib 0.0004"] {
        for eviction in ["lru", "two-hit"] {
            let run =
                shell.run(&format!("replay --json --dry-run --strict-policy {options} --eviction {eviction}")).exits(0);
            assert_eq!(run.number("requests"), 36);
            let empty = options.contains("--history-gib");
            assert_eq!(run.number("written_history") == 0, empty, "{run}");
        }
    }
}
