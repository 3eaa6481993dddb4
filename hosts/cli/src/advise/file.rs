//! What was chosen, as a configuration file.

use std::fmt::Write;

use reprise::Config;
use serde::Serialize;

use super::{Advice, Question, trial::configuration};
use crate::figures::{grouped, human_bytes};

/// A configuration that [`Config::from_toml`] loads, with what it is expected to do as comments.
///
/// `model` is what the model was called on the command line, and is kept if it names a preset; a model from a file is written out, so that
/// the file made here needs no other. `replay` is the command that shows the same figures again.
///
/// # Errors
/// When a number is beyond what TOML holds (2^63 - 1).
pub fn toml(advice: &Advice, question: &Question<'_>, model: &str, replay: &str) -> Result<String, toml::ser::Error> {
    #[derive(Serialize)]
    struct Entry<T> {
        value: T,
    }
    fn entry(key: &str, value: impl Serialize) -> Result<String, toml::ser::Error> {
        Ok(::toml::to_string(&Entry { value })?.replacen("value", key, 1))
    }
    let best = advice.best();
    let config = configuration(question, &best.pair, best.window_share);
    let Config { prices, .. } = &config;
    let named = Config::new(model).is_ok_and(|of_name| of_name.model == config.model) && !model.ends_with(".toml");

    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "# A cache for {}, chosen by `reprise advise` from {} replays.\n\
         # On {} requests it saves {} of {} prompt tokens. To see it again:\n#   {}\n",
        question.trace.name.replace(char::is_control, "?"),
        grouped(advice.replays as u64),
        grouped(best.integers.requests),
        grouped(best.integers.saved_tokens),
        grouped(best.integers.prompt_tokens),
        replay.replace(char::is_control, "?"),
    );
    if named {
        text += &entry("model", model)?;
    }
    text += "\n# Tokens per block; a store that was written with another number starts empty.\n";
    text += &entry("block-tokens", config.block_tokens)?;
    let _ = write!(
        text,
        "\n# The budget of {} in bytes: compressed entries, and window checkpoints ({:.1} %).\n",
        human_bytes(question.budget_bytes),
        f64::from(best.window_share) / 10.0
    );
    text += &entry("history-bytes", config.history_bytes)?;
    text += &entry("window-bytes", config.window_bytes)?;
    text +=
        "\n# A directory keeps records on disk; without one only books are kept.\n# store = \"/var/cache/reprise\"\n";
    text += "\n# What is admitted and evicted, and where windows are kept.\n";
    text += &entry("eviction", &config.eviction)?;
    text += &entry("checkpoints", &config.checkpoints)?;
    text += "\n# Whether plans may compute tokens again to rebuild windows, and which of several plans is taken.\n";
    text += &entry("replay", config.replay)?;
    text += &entry("planner", config.planner)?;
    text += "\n[prices]\n# Bytes a second that loads come at: the slower of disk and PCIe. Nanoseconds more for each record.\n";
    text += &entry("load-bytes-per-second", prices.load_bytes_per_second)?;
    text += &entry("load-record-ns", prices.load_record_ns)?;
    text += "# Picoseconds to prefill a token, and more for each 1,024 tokens before it.\n";
    text += &entry("token-ps", prices.token_ps)?;
    text += &entry("context-ps", prices.context_ps)?;
    if !named {
        #[derive(Serialize)]
        struct Model<'a> {
            model: &'a reprise_core::model::ModelSpec,
        }
        text += "\n";
        text += &::toml::to_string(&Model { model: &config.model })?;
    }
    Ok(text)
}
