//! `reprise model`: what a model's cache takes.

use reprise_core::model::{ModelSpec, preset};
use serde_json::Value;

use crate::shell::Shell;

struct Published {
    model: &'static str,
    csa_bytes: f64,
    hca_bytes: f64,
    indexer_bytes: f64,
    csa_and_hca_bytes: f64,
    swa_bytes: f64,
    /// SWA for every token against CSA and HCA.
    ratio: &'static str,
    swa_checkpoint_bytes: u64,
    block_bytes: u64,
    /// Tokens between checkpoints that take as much as CSA and HCA.
    period: &'static str,
    replay_tokens: u64,
    exact_replay_tokens: u64,
}

const PRO: Published = Published {
    model: "v4-pro",
    csa_bytes: 4380.0,
    hca_bytes: 141.4375,
    indexer_bytes: 510.0,
    csa_and_hca_bytes: 4521.4375,
    swa_bytes: 35_624.0,
    ratio: "7.88",
    swa_checkpoint_bytes: 4_559_872,
    block_bytes: 644_024,
    period: "1009",
    replay_tokens: 7_808,
    exact_replay_tokens: 7_748,
};
const FLASH: Published = Published {
    model: "v4-flash",
    csa_bytes: 3066.0,
    hca_bytes: 91.25,
    indexer_bytes: 357.0,
    csa_and_hca_bytes: 3157.25,
    swa_bytes: 25_112.0,
    ratio: "7.95",
    swa_checkpoint_bytes: 3_214_336,
    block_bytes: 449_824,
    period: "1018",
    replay_tokens: 5_504,
    exact_replay_tokens: 5_462,
};
/// A row of the indexer has 132 bytes instead of 68.
const FP8_INDEXERS: [Published; 2] = [
    Published {
        model: "v4-pro:indexer=fp8",
        indexer_bytes: 990.0,
        block_bytes: PRO.block_bytes + 30 * 32 * (132 - 68),
        ..PRO
    },
    Published {
        model: "v4-flash:indexer=fp8",
        indexer_bytes: 693.0,
        block_bytes: FLASH.block_bytes + 21 * 32 * (132 - 68),
        ..FLASH
    },
];

fn show(shell: &Shell, model: &str) -> Value {
    shell.run(&format!("model show {model} --json")).exits(0).json()
}

fn of_type<'a>(shown: &'a Value, name: &str) -> &'a Value {
    let mut types = shown["types"].as_array().unwrap().iter();
    types.find(|cache_type| cache_type["name"] == name).unwrap_or_else(|| panic!("no {name}: {shown}"))
}

#[test]
fn no_figure_of_a_v4_model_differs_from_the_published_one() {
    let shell = Shell::new();
    for published in [PRO, FLASH].into_iter().chain(FP8_INDEXERS) {
        let shown = show(&shell, published.model);
        for (name, bytes) in [
            ("csa", published.csa_bytes),
            ("hca", published.hca_bytes),
            ("indexer", published.indexer_bytes),
            ("swa", published.swa_bytes),
        ] {
            assert_eq!(of_type(&shown, name)["bytes_per_token"], bytes, "{name}: {shown}");
        }
        assert_eq!(of_type(&shown, "swa")["record_bytes"], published.swa_checkpoint_bytes, "{shown}");
        assert_eq!(shown["groups"]["history"]["record_bytes"], published.block_bytes, "{shown}");
        assert_eq!(shown["block_multiple"], 128);

        let window = &shown["window"];
        assert_eq!(window["bytes_per_token"], published.swa_bytes, "{shown}");
        assert_eq!(window["replay_tokens"], published.replay_tokens, "{shown}");
        assert_eq!(window["exact_replay_tokens"], published.exact_replay_tokens, "{shown}");
        let (rows, whole) = (&window["comparisons"][0], &window["comparisons"][1]);
        assert_eq!(rows["compressed"], serde_json::json!(["csa", "hca"]), "{shown}");
        assert_eq!(rows["compressed_bytes_per_token"], published.csa_and_hca_bytes, "{shown}");
        assert_eq!(format!("{:.2}", rows["window_ratio"].as_f64().unwrap()), published.ratio, "{shown}");
        assert_eq!(format!("{:.0}", rows["break_even_tokens"].as_f64().unwrap()), published.period, "{shown}");
        let all_bytes = published.csa_and_hca_bytes + published.indexer_bytes;
        assert_eq!(whole["compressed_bytes_per_token"], all_bytes, "{shown}");
        assert_eq!(whole["checkpoint_bytes"], shown["groups"]["window"]["record_bytes"], "{shown}");

        let table = shell.run(&format!("model show {}", published.model)).exits(0).out;
        let (ratio, period) =
            (format!("  {} times csa + hca (", published.ratio), format!("at p = {}:", published.period));
        assert!(table.contains(&ratio) && table.contains(&period), "{table}");
        assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    }
    // 9.617 GiB, as vLLM publishes for 2^20 tokens in bf16.
    let bf16 = show(&shell, "v4-pro:rows=bf16,indexer=bf16");
    assert_eq!(bf16["prompt"]["record_bytes"], 9_848_u64 << 20);
}

/// A model that is no V4: windows of several lengths in rows of a format of their own, a ratio that is no power of two.
#[test]
fn a_model_of_a_file_is_not_taken_for_a_preset() {
    let shell = Shell::new();
    let row = "row-format = \"bf16\"\n[[types]]\n";
    shell.write(
        "mine.toml",
        format!(
            "name = \"mine\"\ngroups = [\"history\", \"window\"]\n[[types]]\n\
             name = \"kv\"\ngroup = \"history\"\nkind = \"compressed\"\nratio = 3\nlayers = \"0-3\"\nrow-bytes = 100\n{row}\
             name = \"near\"\ngroup = \"window\"\nkind = \"windowed\"\nwindow-tokens = 10\nlayers = \"0-1\"\nrow-bytes = 50\n{row}\
             name = \"far\"\ngroup = \"window\"\nkind = \"windowed\"\nwindow-tokens = 30\nlayers = \"2\"\nrow-bytes = 50\nrow-format = \"bf16\"\n"
        ),
    );
    let shown = show(&shell, "mine.toml --block-tokens 6");
    assert_eq!((&shown["layers"], &shown["block_multiple"]), (&4.into(), &3.into()));
    assert_eq!(shown["compressed_bytes_per_token"], 400.0 / 3.0);
    assert_eq!(shown["groups"]["history"]["record_bytes"], 800);
    // Two layers of 10 rows, one of 30; exact without one row each, and with one more.
    assert_eq!((&shown["window"]["replay_tokens"], &shown["window"]["exact_replay_tokens"]), (&50.into(), &48.into()));
    // No compressed row looks like the window's, so there is one comparison: 2500 bytes against all there is.
    let comparisons = shown["window"]["comparisons"].as_array().unwrap();
    assert_eq!(comparisons.len(), 1, "{shown}");
    assert_eq!(comparisons[0]["break_even_tokens"], 2500.0 / (400.0 / 3.0), "{shown}");

    let flash: ModelSpec = preset("v4-flash:draft=on").unwrap();
    shell.write("flash.toml", toml::to_string(&flash).unwrap());
    assert_eq!(show(&shell, "flash.toml"), show(&shell, "v4-flash:draft=on"));
}

#[test]
fn a_model_without_windows_is_not_given_any() {
    let shell = Shell::new();
    let shown = show(&shell, "llama-3.1-8b");
    assert_eq!((&shown["window"], &shown["compressed_bytes_per_token"]), (&Value::Null, &131_072.0.into()));
    let table = shell.run("model show llama-3.1-8b").exits(0);
    assert!(table.out.contains("no windows") && !table.out.contains("checkpoints every"), "{table}");
}

#[test]
fn a_model_that_is_not_there_is_not_shown() {
    let shell = Shell::new();
    for (words, says) in [
        ("v5", "no model is named `v5`; there is v4-pro"),
        ("v4-pro:indexer=fp2", "takes fp4, fp8, bf16, not `fp2`"),
        ("missing.toml", "reading missing.toml: No such file"),
        ("v4-pro --block-tokens 100", "multiple of 128"),
    ] {
        let run = shell.run(&format!("model show {words}")).exits(2).says(says);
        assert_eq!(run.out, "");
    }
    let list = shell.run("model list").exits(0).out;
    let names: Vec<&str> =
        list.lines().filter(|line| !line.starts_with(' ')).map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(names, ["v4-pro", "v4-flash", "gpt-oss-20b", "gpt-oss-120b", "llama-3.1-8b"]);
    names.into_iter().for_each(|name| assert_eq!(show(&shell, name)["model"], name));
}
