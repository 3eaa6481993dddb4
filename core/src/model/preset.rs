//! Models known by name: `v4-pro`, `v4-flash:indexer=fp8,draft=on`, …

use alloc::{borrow::ToOwned, string::String, vec, vec::Vec};
use core::fmt::Write;

use thiserror::Error;

use super::{CacheType, HISTORY, Kind, Layers, ModelSpec, WINDOW, v4};

/// A model that is known by name.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// For instance `v4-pro`.
    pub name: &'static str,
    /// One line for a reader.
    pub help: &'static str,
    /// What can be chosen.
    pub options: &'static [PresetOption],
    build: fn(&Chosen) -> (Vec<String>, Vec<CacheType>),
}

/// Something that can be chosen about a preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresetOption {
    /// As written in `v4-pro:key=value`.
    pub key: &'static str,
    /// One line for a reader.
    pub help: &'static str,
    /// The values it takes; the first is the default.
    pub values: &'static [&'static str],
}

/// Why text names no model.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PresetError {
    /// There is no such preset.
    #[error("no model is named `{given}`; there is {known}")]
    UnknownModel {
        /// What was given.
        given: String,
        /// What could have been given.
        known: String,
    },
    /// The preset has no such option.
    #[error("model `{model}` has no option `{given}`; there is {known}")]
    UnknownOption {
        /// The preset.
        model: &'static str,
        /// What was given.
        given: String,
        /// What could have been given.
        known: String,
    },
    /// The option does not take this value.
    #[error("option `{key}` of model `{model}` takes {known}, not `{given}`")]
    UnknownValue {
        /// The preset.
        model: &'static str,
        /// The option.
        key: &'static str,
        /// What was given.
        given: String,
        /// What could have been given.
        known: String,
    },
    /// Not of the form `key=value`.
    #[error("`{given}` after `{model}:` is not of the form KEY=VALUE")]
    Syntax {
        /// The preset.
        model: &'static str,
        /// What was given.
        given: String,
    },
    /// An option is given twice.
    #[error("option `{key}` of model `{model}` is given twice")]
    Twice {
        /// The preset.
        model: &'static str,
        /// The option.
        key: &'static str,
    },
}

/// The values chosen for a preset's options.
pub(super) struct Chosen(Vec<(&'static PresetOption, &'static str)>);

impl Chosen {
    /// The value of an option the preset declares.
    pub(super) fn get(&self, key: &str) -> &'static str {
        let chosen = self.0.iter().find(|(option, _)| option.key == key);
        chosen.expect("a preset asks only for options it declares").1
    }
}

static PRESETS: [Preset; 5] = [
    Preset {
        name: "v4-pro",
        help: "DeepSeek-V4-Pro: 61 layers of CSA and HCA, window 128",
        options: v4::OPTIONS,
        build: |chosen| v4::PRO.parts(chosen),
    },
    Preset {
        name: "v4-flash",
        help: "DeepSeek-V4-Flash: 43 layers of CSA and HCA, window 128",
        options: v4::OPTIONS,
        build: |chosen| v4::FLASH.parts(chosen),
    },
    Preset {
        name: "gpt-oss-20b",
        help: "gpt-oss-20b: 24 layers, full attention and window 128 in turn",
        options: &[],
        build: |_| gpt_oss("1-23/2", "0-22/2"),
    },
    Preset {
        name: "gpt-oss-120b",
        help: "gpt-oss-120b: 36 layers, full attention and window 128 in turn",
        options: &[],
        build: |_| gpt_oss("1-35/2", "0-34/2"),
    },
    Preset {
        name: "llama-3.1-8b",
        help: "Llama-3.1-8B: 32 layers of full attention, no window",
        options: &[],
        build: |_| dense("0-31", heads_row_bytes(8, 128)),
    },
];

/// All presets, for help and completion.
pub fn presets() -> &'static [Preset] {
    &PRESETS
}

/// The model that `text` names: a preset's name, or `NAME:KEY=VALUE,KEY=VALUE`. The model's name is `text` without the options
/// that have their default value, so that equal models have equal names.
///
/// ```
/// use reprise_core::model::preset;
///
/// let model = preset("v4-pro:indexer=fp4,draft=on")?;
/// assert_eq!(model.name(), "v4-pro:draft=on");
/// assert_eq!(model.zero_replay_tokens(), 7_936);
/// # Ok::<(), reprise_core::model::PresetError>(())
/// ```
///
/// # Errors
/// When there is no such preset, option or value, or an option is given twice; the message lists what there is.
pub fn preset(text: &str) -> Result<ModelSpec, PresetError> {
    let (name, options) = text.split_once(':').map_or((text, None), |(name, options)| (name, Some(options)));
    let preset = PRESETS.iter().find(|preset| preset.name == name).ok_or_else(|| PresetError::UnknownModel {
        given: name.to_owned(),
        known: join(PRESETS.iter().map(|preset| preset.name)),
    })?;
    let chosen = choose(preset, options)?;
    let mut full_name = preset.name.to_owned();
    let mut separator = ':';
    for (option, value) in chosen.0.iter().filter(|(option, value)| *value != option.values[0]) {
        write!(full_name, "{separator}{}={value}", option.key).expect("a String takes any text");
        separator = ',';
    }
    let (groups, types) = (preset.build)(&chosen);
    Ok(ModelSpec::new(full_name, groups, types)
        .expect("presets are valid models: a test builds each with every option"))
}

fn choose(preset: &Preset, options: Option<&str>) -> Result<Chosen, PresetError> {
    let model = preset.name;
    let mut chosen: Vec<Option<&'static str>> = vec![None; preset.options.len()];
    for part in options.into_iter().flat_map(|options| options.split(',')) {
        let syntax = || PresetError::Syntax { model, given: part.to_owned() };
        let (key, value) = part.split_once('=').ok_or_else(syntax)?;
        let unknown_option = || PresetError::UnknownOption {
            model,
            given: key.to_owned(),
            known: join(preset.options.iter().map(|option| option.key)),
        };
        let index = preset.options.iter().position(|option| option.key == key).ok_or_else(unknown_option)?;
        let PresetOption { key, values, .. } = preset.options[index];
        let unknown_value =
            || PresetError::UnknownValue { model, key, given: value.to_owned(), known: join(values.iter().copied()) };
        let value = values.iter().copied().find(|&known| known == value).ok_or_else(unknown_value)?;
        if chosen[index].replace(value).is_some() {
            return Err(PresetError::Twice { model, key });
        }
    }
    let with_defaults = preset.options.iter().zip(chosen);
    Ok(Chosen(with_defaults.map(|(option, value)| (option, value.unwrap_or(option.values[0]))).collect()))
}

fn join(names: impl Iterator<Item = &'static str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Bytes of one token's keys and values in one layer, in bf16.
const fn heads_row_bytes(kv_heads: u32, head_dim: u32) -> u32 {
    kv_heads * head_dim * 2 * 2
}

/// gpt-oss alternates window-128 layers (even) with full attention (odd); 8 KV heads of 64 in either. Source: the `config.json`
/// published with the weights (`layer_types`, `sliding_window`, `num_key_value_heads`, `head_dim`).
fn gpt_oss(full_layers: &str, window_layers: &str) -> (Vec<String>, Vec<CacheType>) {
    let row_bytes = heads_row_bytes(8, 64);
    let full = bf16("full", HISTORY, Kind::Compressed { ratio: 1 }, full_layers, row_bytes);
    let window = bf16("swa", WINDOW, Kind::Windowed { window_tokens: 128 }, window_layers, row_bytes);
    (vec![HISTORY.to_owned(), WINDOW.to_owned()], vec![full, window])
}

fn dense(layers: &str, row_bytes: u32) -> (Vec<String>, Vec<CacheType>) {
    (vec![HISTORY.to_owned()], vec![bf16("kv", HISTORY, Kind::Compressed { ratio: 1 }, layers, row_bytes)])
}

fn bf16(name: &str, group: &str, kind: Kind, layers: &str, row_bytes: u32) -> CacheType {
    CacheType {
        name: name.to_owned(),
        group: group.to_owned(),
        kind,
        layers: preset_layers(layers),
        row_bytes,
        row_format: "bf16".to_owned(),
    }
}

/// Layers of a preset's table.
///
/// # Panics
/// When the text is none; a test builds every preset.
pub(super) fn preset_layers(text: &str) -> Layers {
    text.parse().expect("layers of a preset are well formed")
}
