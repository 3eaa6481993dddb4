//! `reprise store` and what it does to a store that a cache writes before and opens after.

use std::{collections::BTreeMap, fs, os::unix::fs::FileExt};

use reprise::{BlockSink, BlockSource, Cache, Config, Namespace, NamespaceHandle, Record};
use serde_json::Value;

use crate::shell::{Run, Shell};

const BLOCK: usize = 128;

/// The bytes of every record follow from its digest and group.
#[derive(Default)]
struct Kv {
    accepted: usize,
}

fn fill(record: &Record, bytes: &mut [u8]) {
    let digest = record.digest.0;
    (0..).zip(bytes).for_each(|(at, byte): (usize, _)| *byte = digest[at % 32] ^ (at / 32) as u8 ^ record.group as u8);
}

impl BlockSource for Kv {
    fn fill(&mut self, record: &Record, bytes: &mut [u8]) {
        fill(record, bytes);
    }
}

impl BlockSink for Kv {
    fn accept(&mut self, record: &Record, bytes: &[u8]) {
        let mut expected = vec![0; bytes.len()];
        fill(record, &mut expected);
        assert!(bytes == expected, "wrong bytes for {record:?}");
        self.accepted += 1;
    }
}

fn cache(shell: &Shell, store: &str, history_mib: u64) -> Cache {
    let config = Config {
        history_bytes: history_mib << 20,
        window_bytes: 24 << 20,
        store: Some(shell.path(store)),
        ..Config::new("v4-flash:draft=on").unwrap()
    };
    Cache::open(config).unwrap()
}

fn namespace(cache: &Cache, tenant: &str) -> NamespaceHandle {
    cache.namespace(&Namespace::new("served", "r1").tenant(tenant).adapter("sql@3").extension("rope", "x2")).unwrap()
}

fn prompt(seed: u32, blocks: usize) -> Vec<u32> {
    (0..(blocks * BLOCK + 40) as u32).map(|token| token * 7919 + seed).collect()
}

/// Saves a prompt with its checkpoints.
fn save(namespace: &NamespaceHandle, prompt: &[u32], now: u64) {
    let mut sequence = namespace.sequence(prompt);
    drop(sequence.plan(now).unwrap());
    sequence.save(&mut Kv::default()).unwrap();
    sequence.capture(&mut Kv::default()).unwrap();
}

/// How many tokens of a prompt come back and how many records bring them; every byte is compared.
fn restore(namespace: &NamespaceHandle, prompt: &[u32], now: u64) -> (u32, usize) {
    let mut sequence = namespace.sequence(prompt);
    let plan = sequence.plan(now).unwrap();
    let (restored, kv) = plan.restore(Kv::default()).unwrap().wait();
    assert_eq!(restored.adopted_tokens, plan.adopted_tokens, "a record cannot be read");
    (restored.adopted_tokens, kv.accepted)
}

/// Two tenants, `red` with two prompts and `blue` with one.
fn two_tenants(shell: &Shell, store: &str) {
    let cache = cache(shell, store, 32);
    for (tenant, seed, now) in [("red", 1, 10), ("blue", 1, 20), ("red", 2, 30)] {
        save(&namespace(&cache, tenant), &prompt(seed, 8), now);
    }
    cache.drain();
    drop(cache);
    shell.write("red", "red");
    shell.write("blue", "blue");
}

/// All files of a store but the lock, which names the process that took it last.
fn contents(shell: &Shell, store: &str) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(shell.path(store)).unwrap().map(Result::unwrap).filter(|file| file.file_name() != "LOCK");
    files.map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap())).collect()
}

fn damage(shell: &Shell, file: &str, at: u64) {
    let file = fs::File::options().write(true).open(shell.path(file)).unwrap();
    file.write_all_at(b"garbage", at).unwrap();
}

fn chunk(shell: &Shell, store: &str, group: &str) -> String {
    let name = contents(shell, store).into_keys().find(|name| name.starts_with(group) && name.ends_with("0000.chunk"));
    format!("{store}/{}", name.unwrap())
}

/// A number of the entry of a group.
#[track_caller]
fn of_group(run: &Run, list: &str, group: &str, field: &str) -> u64 {
    let json = run.json();
    let groups = json.pointer(list).and_then(Value::as_array).unwrap_or_else(|| panic!("no {list}: {run}"));
    let found = groups.iter().find(|entry| entry["group"] == group);
    found.and_then(|entry| entry[field].as_u64()).unwrap_or(0)
}

fn lines(run: &Run) -> Vec<Value> {
    run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_look_at_a_store_in_use_does_not_change_a_byte_and_tells_what_is_there() {
    let shell = Shell::new();
    two_tenants(&shell, "st");
    let owner = cache(&shell, "st", 32);
    let blocks = owner.recovery().blocks;
    assert_eq!(blocks, 24);
    let before = contents(&shell, "st");

    let info = shell.run("store info st --json").exits(0);
    assert_eq!(info.number("format/version"), 1);
    assert!(
        info.json()["owner"].as_str().unwrap().starts_with(&format!("process {} on ", std::process::id())),
        "{info}"
    );
    assert_eq!((info.number("oldest_use"), info.number("newest_use")), (10, 30), "{info}");
    assert_eq!(of_group(&info, "/groups", "history", "records"), blocks, "{info}");
    assert_eq!(
        (info.number("namespaces/0/groups/history/records"), info.number("namespaces/1/groups/history/records")),
        (16, 8)
    );
    assert_eq!(info.json()["namespaces"][0]["extensions"], serde_json::json!(["rope=x2"]), "{info}");
    let table = shell.run("store info st").exits(0);
    assert!(table.out.contains("in use by process") && table.out.contains("served (rope=x2)"), "{table}");
    assert!(!table.out.contains("red"), "a salt is shown: {table}");

    let all = lines(&shell.run("store ls st --json").exits(0));
    let count = |is: fn(&Value) -> bool| all.iter().filter(|line| is(line)).count() as u64;
    assert_eq!(count(|line| line["group"] == "history"), blocks);
    assert_eq!(count(|line| line["group"] == "window"), owner.recovery().checkpoints);
    assert_eq!(count(|line| line["group"] == "draft"), owner.recovery().checkpoints);
    let of = |options: &str| lines(&shell.run(&format!("store ls st --json {options}")).exits(0)).len();
    let digest = all[0]["digest"].as_str().unwrap();
    let same_digest = all.iter().filter(|line| line["digest"] == digest).count();
    for (options, expected) in [
        ("--group history --tenant-file blue".to_owned(), 8),
        ("--group history --namespace 0 --position 128..384".to_owned(), 4),
        ("--group history --position 1024..".to_owned(), 3),
        ("--model served --revision r1 --adapter sql@3 --limit 5".to_owned(), 5),
        (format!("--digest {}", &digest[..20]), same_digest),
        ("--digest ffffffffffffffff".to_owned(), 0),
        ("--limit 0".to_owned(), 0),
    ] {
        assert_eq!(of(&options), expected, "{options}");
    }
    let text = shell.run("store ls st --limit 3").exits(0);
    assert!(text.out.lines().count() == 4 && text.out.contains(&digest[..16]) && !text.out.contains(digest), "{text}");

    shell.run("store purge st --tenant-file blue --dry-run").exits(0);
    shell.run("store verify st").exits(0);
    shell.run("store export st all.reprise").exits(0);
    assert!(contents(&shell, "st") == before);

    // What changes a store is refused while it is in use.
    for line in ["purge st --tenant-file blue", "evict st --records 30", "verify st --repair", "import st all.reprise"]
    {
        shell.run(&format!("store {line}")).exits(2).says("in use by process");
    }
    assert!(contents(&shell, "st") == before);
}

#[test]
fn a_purge_of_one_tenant_does_not_cost_another_a_hit() {
    let shell = Shell::new();
    two_tenants(&shell, "st");
    let before = shell.allocated_bytes("st");
    let planned = shell.run("store purge st --tenant-file blue --dry-run --json").exits(0);
    let purged = shell.run("store purge st --tenant-file blue --json").exits(0);
    assert_eq!(planned.json()["groups"], purged.json()["groups"]);
    assert_eq!(
        (of_group(&purged, "/groups", "history", "named"), of_group(&purged, "/groups", "history", "behind")),
        (8, 0)
    );
    let returned = purged.number("returned_bytes");
    assert!(returned >= 8 * 449_824 && shell.allocated_bytes("st") <= before - returned, "{purged}");
    assert_eq!(shell.run("store purge st --tenant-file blue --json").exits(0).number("records"), 0);
    shell.run("store verify st").exits(0);

    let cache = cache(&shell, "st", 32);
    assert_eq!((cache.recovery().blocks, cache.recovery().unreachable, cache.recovery().dropped), (16, 0, 0));
    assert_eq!(restore(&namespace(&cache, "blue"), &prompt(1, 8), 40).0, 0);
    for seed in [1, 2] {
        assert_eq!(restore(&namespace(&cache, "red"), &prompt(seed, 8), 40).0, 1024);
    }
    // The holes are filled again.
    save(&namespace(&cache, "blue"), &prompt(3, 8), 50);
    cache.drain();
    assert_eq!(restore(&namespace(&cache, "blue"), &prompt(3, 8), 51).0, 1024);
}

/// Into a new directory as a file, compressed, and through a pipe; and into a smaller store.
#[test]
fn what_is_exported_and_imported_is_not_missed_by_a_cache() {
    let shell = Shell::new();
    two_tenants(&shell, "st");
    let plans = |store: &str, history_mib: u64| {
        let cache = cache(&shell, store, history_mib);
        assert_eq!((cache.recovery().unreachable, cache.recovery().dropped), (0, 0), "{store}");
        let requests = [("red", 1), ("blue", 1), ("red", 2)];
        requests.map(|(tenant, seed)| restore(&namespace(&cache, tenant), &prompt(seed, 8), 100))
    };
    shell.run("store export st all.reprise --json").exits(0);
    shell.run("store export st all.zst").exits(0);
    assert!(
        fs::metadata(shell.path("all.zst")).unwrap().len() < fs::metadata(shell.path("all.reprise")).unwrap().len()
    );
    for (archive, store) in [("all.reprise", "plain"), ("all.zst", "compressed")] {
        let run = shell.run(&format!("store import {store} {archive} --json")).exits(0);
        assert_eq!(of_group(&run, "/groups", "history", "imported"), 24, "{run}");
        assert_eq!(of_group(&run, "/groups", "window", "imported"), of_group(&run, "/groups", "draft", "imported"));
        let again = shell.run(&format!("store import {store} {archive} --json")).exits(0);
        assert_eq!(of_group(&again, "/groups", "history", "present"), 24, "{again}");
        shell.run(&format!("store verify {store}")).exits(0);
    }
    let mut pipe = std::process::Command::new("bash");
    let reprise = env!("CARGO_BIN_EXE_reprise");
    pipe.args([
        "-c",
        &format!(
            "set -o pipefail; {reprise} store export st - --tenant-file red --json | {reprise} store import piped -"
        ),
    ]);
    let piped = shell.start_command("export | import", pipe).wait().exits(0).says("\"namespaces\": 1");
    assert!(piped.out.contains("imported"), "{piped}");
    shell.run("store verify piped").exits(0);

    // A store of a quarter of the room takes the prompt used last, and as much of the next as fits.
    {
        let small = cache(&shell, "small", 5);
        save(&namespace(&small, "green"), &prompt(9, 2), 1);
        small.drain();
    }
    let run = shell.run("store import small all.reprise --json").exits(0);
    let full = of_group(&run, "/groups", "history", "full");
    assert!(full > 0 && of_group(&run, "/groups", "history", "imported") + full <= 24, "{run}");
    assert!(shell.run("store import small all.reprise").exits(0).out.contains("a group is full"));

    let whole = plans("st", 32);
    assert!(whole.iter().all(|(adopted, records)| *adopted == 1024 && *records > 8), "checkpoints, too: {whole:?}");
    assert_eq!(plans("plain", 32), whole);
    assert_eq!(plans("compressed", 32), whole);
    assert_eq!(plans("piped", 32), [whole[0], (0, 0), whole[2]]);
    assert_eq!(plans("small", 5)[2], whole[2]);
}

#[test]
fn a_repair_does_not_leave_what_a_cache_would_stumble_over() {
    let shell = Shell::new();
    two_tenants(&shell, "st");
    let history = chunk(&shell, "st", "history");
    damage(&shell, &history, 2 * 450_560 + 70_000);
    let found = shell.run("store verify st --json").exits(1).says("damaged records");
    let bad = found.json()["classes"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|class| class["bad"].as_array().unwrap().clone())
        .collect::<Vec<_>>();
    let [bad] = &bad[..] else { panic!("{found}") };
    assert!(
        history.ends_with(bad["file"].as_str().unwrap()) && bad["fault"].as_str().unwrap().starts_with("section "),
        "{bad}"
    );
    assert_eq!(bad["record"]["position"], 384);
    let table = shell.run("store verify st").exits(1);
    assert!(table.out.contains("slot 2, namespace 0, position 384, digest "), "{table}");

    let repaired = shell.run("store verify st --repair --json").exits(0);
    let of = |field| of_group(&repaired, "/repaired/groups", "history", field);
    assert_eq!((of("named"), of("behind")), (1, 5), "{repaired}");
    shell.run("store verify st").exits(0);
    assert!(shell.run("store verify st --repair").exits(0).out.contains("no records freed"));
    let cache = cache(&shell, "st", 32);
    assert_eq!((cache.recovery().blocks, cache.recovery().unreachable, cache.recovery().dropped), (18, 0, 0));
    assert_eq!(restore(&namespace(&cache, "red"), &prompt(2, 8), 100).0, 1024);
}

#[test]
fn an_eviction_does_not_stop_short_nor_take_what_was_used_last() {
    let shell = Shell::new();
    two_tenants(&shell, "st");
    let info = shell.run("store info st --json").exits(0);
    let (slots, slot_bytes) =
        (of_group(&info, "/groups", "history", "slots"), of_group(&info, "/groups", "history", "slot_bytes"));
    let free = |records: u64| slots - records;
    shell.run(&format!("store evict st --records {} --json", free(24))).exits(0);
    let evicted = shell.run(&format!("store evict st --bytes {} --json", free(10) * slot_bytes)).exits(0);
    assert_eq!(of_group(&evicted, "/groups", "history", "named"), 14, "{evicted}");
    shell.run("store evict st --bytes 1TiB").exits(2).says("cannot be free");
    shell.run("store evict st --group window --records 1").exits(0);
    let cache = cache(&shell, "st", 32);
    assert_eq!((cache.recovery().blocks, cache.recovery().unreachable), (10, 0));
    assert_eq!(restore(&namespace(&cache, "red"), &prompt(2, 8), 100).0, 1024);
    assert_eq!(restore(&namespace(&cache, "red"), &prompt(1, 8), 100).0, 0);
}

/// Nothing is touched by what is refused.
#[test]
fn a_command_that_makes_no_sense_does_not_touch_a_store() {
    let shell = Shell::new();
    two_tenants(&shell, "st");
    shell.run("store export st all.reprise").exits(0);
    shell.write("none.reprise", "no archive");
    let archive = fs::read(shell.path("all.reprise")).unwrap();
    shell.write("cut.reprise", &archive[..archive.len() / 2]);
    shell.write("stranger", "stranger");
    let before = contents(&shell, "st");
    for (line, says) in [
        ("purge st", "say which records are to go"),
        ("purge st --model other", "no namespace of the store in st fits"),
        ("purge st --tenant-file stranger", "no namespace of the store in st fits"),
        ("purge st --tenant-file missing", "reading the tenant's salt in missing: No such file"),
        ("purge st --namespace 7", "has no namespace 7"),
        ("purge st --group spare", "its groups are: draft, history, window"),
        ("purge missing --namespace 0", "missing does not exist"),
        ("ls st --position 8..8", "positions are written A..B"),
        ("ls st --digest xyz", "hexadecimal digits"),
        ("evict st", "<--bytes <BYTES>|--records <N>>"),
        ("evict st --bytes 10GB", "for instance 10GiB"),
        ("evict st --bytes 1 --records 1", "cannot be used with"),
        ("import st none.reprise", "this is no archive"),
        ("import st missing.reprise", "reading missing.reprise: No such file"),
        ("export st nowhere/all.reprise", "making nowhere/all.reprise: No such file"),
        ("info missing", "missing does not exist"),
    ] {
        let run = shell.run(&format!("store {line}")).exits(2).says(says);
        assert_eq!(run.out, "", "{run}");
    }
    assert!(contents(&shell, "st") == before);
    assert!(!shell.exists("missing"));

    let cut = shell.run("store import cut cut.reprise --json").exits(1).says("it is cut off");
    assert!(of_group(&cut, "/groups", "history", "imported") > 0, "{cut}");
    shell.run("store verify cut").exits(0);
    // Another model's store.
    shell
        .run("replay --json --limit 1 --history-gib 0.02 --window-gib 0.01 --model gpt-oss-20b --store other")
        .exits(0);
    shell.run("store import other all.reprise").exits(2).says("another layout");
}
