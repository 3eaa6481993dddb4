//! Models as TOML files.

use proptest::prelude::*;
use reprise_core::model::{ModelSpec, preset, presets};

use super::random;

#[test]
fn a_written_preset_reads_well() {
    let text = toml::to_string(&preset("v4-pro:draft=on").unwrap()).unwrap();
    assert_eq!(
        text,
        r#"name = "v4-pro:draft=on"
groups = ["history", "window", "draft"]

[[types]]
name = "csa"
group = "history"
kind = "compressed"
ratio = 4
layers = "2-60/2"
row-bytes = 584
row-format = "fp8+bf16-rope"

[[types]]
name = "hca"
group = "history"
kind = "compressed"
ratio = 128
layers = "0-1,3-59/2"
row-bytes = 584
row-format = "fp8+bf16-rope"

[[types]]
name = "indexer"
group = "history"
kind = "compressed"
ratio = 4
layers = "2-60/2"
row-bytes = 68
row-format = "mxfp4"

[[types]]
name = "swa"
group = "window"
kind = "windowed"
window-tokens = 128
layers = "0-60"
row-bytes = 584
row-format = "fp8+bf16-rope"

[[types]]
name = "csa-overlap"
group = "window"
kind = "state"
rows = 4
layers = "2-60/2"
row-bytes = 5120
row-format = "fp32"

[[types]]
name = "mtp-swa"
group = "draft"
kind = "draft"
window-tokens = 128
layers = "61"
row-bytes = 584
row-format = "fp8+bf16-rope"

[[types]]
name = "mtp-hidden"
group = "draft"
kind = "draft-state"
rows = 1
layers = "61"
row-bytes = 57344
row-format = "bf16"
"#
    );
}

#[test]
fn no_preset_is_changed_by_a_file() {
    for known in presets() {
        let model = preset(known.name).unwrap();
        assert_eq!(toml::from_str::<ModelSpec>(&toml::to_string(&model).unwrap()).unwrap(), model);
    }
}

proptest! {
    #[test]
    fn no_model_is_changed_by_a_file(model in random::model()) {
        let text = toml::to_string_pretty(&model).unwrap();
        prop_assert_eq!(toml::from_str::<ModelSpec>(&text).unwrap(), model);
    }
}

/// A file of one type; each case below replaces one line.
const FILE: &str = r#"
name = "m"
groups = ["history"]
[[types]]
name = "kv"
group = "history"
kind = "compressed"
ratio = 1
layers = "0-31"
row-bytes = 4096
row-format = "bf16"
"#;

#[test]
fn a_file_with_a_mistake_is_refused_with_its_reason() {
    let cases = [
        ("ratio = 1", "", "type \"kv\": kind compressed needs `ratio`"),
        ("ratio = 1", "ratio = 1\nrows = 4", "type \"kv\": kind compressed takes `ratio`, not `rows`"),
        ("ratio = 1", "ratoi = 1", "unknown field `ratoi`"),
        ("ratio = 1", "ratio = 0", "type \"kv\" (types[0]): ratio is 0;"),
        ("ratio = 1", "ratio = -1", "invalid value: integer `-1`"),
        ("\"compressed\"", "\"sliding\"", "unknown variant `sliding`, expected one of `compressed`, `windowed`"),
        ("\"0-31\"", "32", "expected layer numbers as text, such as \"0-31\""),
        ("\"0-31\"", "\"0-31/2\"", "range `0-31/2` must step from its first layer up to exactly its last"),
        ("row-format = \"bf16\"", "", "missing field `row-format`"),
        ("name = \"m\"", "name = \"m\"\nversion = 2", "unknown field `version`"),
        (
            "groups = [\"history\"]",
            "groups = [\"window\"]",
            "names the group \"history\", which the model does not list",
        ),
    ];
    assert!(toml::from_str::<ModelSpec>(FILE).is_ok());
    for (line, replacement, message) in cases {
        let error = toml::from_str::<ModelSpec>(&FILE.replacen(line, replacement, 1)).unwrap_err().to_string();
        assert!(error.contains(message), "{replacement:?}: expected {message:?}, found {error}");
    }
}
