//! A footprint as a table for a person and as one object for a program.

use std::fmt::Write;

use reprise_core::model::{CacheType, Group, Kind, Role};
use serde_json::{Value, json};

use super::{Comparison, Footprint, PROMPT_TOKENS, Records, bytes_per_token};
use crate::figures::{columns, decimal, grouped, human_bytes};

const HEADER: [&str; 8] = ["", "", "layers", "rows", "row B", "format", "B/token", "record B"];

impl Footprint {
    /// All figures. Bytes per token are exact where ratios are powers of two.
    pub fn json(&self) -> Value {
        let Self { model, layout } = self;
        let Records { blocks, record_bytes, slot_bytes } = self.records(PROMPT_TOKENS);
        json!({
            "model": model.name(),
            "layers": self.layers(),
            "block_tokens": layout.block_tokens(),
            "block_multiple": model.block_multiple(),
            "types": model.types().iter().map(|cache_type| self.type_json(cache_type)).collect::<Vec<_>>(),
            "groups": layout.groups().iter().map(|group| (group.name().to_owned(), json!({
                "role": group.role().name(),
                "record_bytes": group.record_bytes(),
                "slot_bytes": group.slot_bytes(),
            }))).collect::<serde_json::Map<_, _>>(),
            "compressed_bytes_per_token": self.compressed_bytes_per_token(),
            "window": self.exact_replay_tokens().map(|exact_replay_tokens| json!({
                "bytes_per_token": self.window_bytes_per_token(),
                "replay_tokens": model.zero_replay_tokens(),
                "exact_replay_tokens": exact_replay_tokens,
                "comparisons": self.comparisons().iter().map(comparison_json).collect::<Vec<_>>(),
            })),
            "prompt": {
                "tokens": PROMPT_TOKENS, "blocks": blocks, "record_bytes": record_bytes, "slot_bytes": slot_bytes,
            },
        })
    }

    fn type_json(&self, cache_type: &CacheType) -> Value {
        let block_tokens = self.layout.block_tokens();
        json!({
            "name": cache_type.name,
            "group": cache_type.group,
            "kind": json!(cache_type)["kind"],
            "layers": cache_type.layers.to_string(),
            "layer_count": cache_type.layers.count(),
            "rows": cache_type.kind.rows(block_tokens),
            "row_bytes": cache_type.row_bytes,
            "row_format": cache_type.row_format,
            "bytes_per_token": bytes_per_token(cache_type),
            "record_bytes": cache_type.bytes(block_tokens),
        })
    }

    /// The tables.
    pub fn table(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let Self { model, layout } = self;
        writeln!(
            out,
            "{}: {} layers; blocks of {} tokens, which must be a multiple of {}\n",
            model.name(),
            self.layers(),
            grouped(layout.block_tokens().into()),
            grouped(model.block_multiple().into())
        )?;
        self.write_types(out)?;
        writeln!(out)?;
        self.write_windows(out)?;
        let Records { blocks, record_bytes, slot_bytes } = self.records(PROMPT_TOKENS);
        writeln!(
            out,
            "a prompt of {} tokens: {} blocks, {:.3} GiB; {:.3} GiB in slots",
            grouped(PROMPT_TOKENS.into()),
            grouped(blocks.into()),
            gib(record_bytes),
            gib(slot_bytes)
        )
    }

    fn write_types(&self, out: &mut String) -> std::fmt::Result {
        let mut rows = vec![HEADER.map(str::to_owned)];
        rows.extend(self.model.groups().iter().flat_map(|group| self.model.types_of(group)).map(|row| self.row(row)));
        let mut lines = columns(&rows, &[0, 1, 2, 5]).into_iter();
        writeln!(out, "  {}", lines.next().unwrap_or_default())?;
        for (group, layout) in self.model.groups().iter().zip(self.layout.groups()) {
            let (record, slot) = (grouped(layout.record_bytes()), grouped(layout.slot_bytes()));
            writeln!(out, "{}: a record of {record} bytes {}, {slot} in its slot", group.name, self.each(group))?;
            for line in lines.by_ref().take(group.types.len()) {
                writeln!(out, "  {line}")?;
            }
        }
        Ok(())
    }

    fn each(&self, group: &Group) -> String {
        match group.role {
            Role::Block => format!("for {} tokens", grouped(self.layout.block_tokens().into())),
            Role::Checkpoint => "at a checkpoint".to_owned(),
            Role::Draft => "beside a checkpoint".to_owned(),
        }
    }

    fn row(&self, cache_type: &CacheType) -> [String; 8] {
        let block_tokens = self.layout.block_tokens();
        [
            cache_type.name.clone(),
            rows_are(cache_type.kind),
            format!("{}: {}", cache_type.layers.count(), cache_type.layers),
            grouped(cache_type.kind.rows(block_tokens).into()),
            grouped(cache_type.row_bytes.into()),
            cache_type.row_format.clone(),
            bytes_per_token(cache_type).map_or_else(|| "-".to_owned(), decimal),
            grouped(cache_type.bytes(block_tokens)),
        ]
    }

    fn write_windows(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "compressed rows: {} bytes a token", decimal(self.compressed_bytes_per_token()))?;
        let Some(exact) = self.exact_replay_tokens() else {
            return writeln!(out, "no windows: blocks alone are a hit, which needs no checkpoint and no replay");
        };
        let window = self.window_bytes_per_token();
        writeln!(out, "windows, if they were kept for every token: {} bytes a token", decimal(window))?;
        for Comparison { compressed, compressed_bytes_per_token: bytes, window_ratio, .. } in self.comparisons() {
            writeln!(out, "  {window_ratio:.2} times {} ({})", compressed.join(" + "), decimal(bytes))?;
        }
        writeln!(out, "checkpoints every p tokens take as many bytes as compressed rows")?;
        for Comparison { compressed, checkpoint_bytes: bytes, break_even_tokens, .. } in self.comparisons() {
            let whole = if bytes == self.checkpoint_bytes() { "all of a checkpoint" } else { "window rows" };
            let (bytes, compressed) = (grouped(bytes), compressed.join(" + "));
            writeln!(out, "  at p = {break_even_tokens:.0}: {whole} ({bytes}) against {compressed}")?;
        }
        writeln!(
            out,
            "replay without a checkpoint: {} tokens planned, {} would be exact",
            grouped(self.model.zero_replay_tokens().into()),
            grouped(exact.into())
        )?;
        writeln!(out, "a checkpoint: {}", human_bytes(self.checkpoint_bytes()))
    }
}

fn comparison_json(comparison: &Comparison) -> Value {
    json!({
        "compressed": comparison.compressed,
        "compressed_bytes_per_token": comparison.compressed_bytes_per_token,
        "window_ratio": comparison.window_ratio,
        "checkpoint_bytes": comparison.checkpoint_bytes,
        "break_even_tokens": comparison.break_even_tokens,
    })
}

fn rows_are(kind: Kind) -> String {
    match kind {
        Kind::Compressed { ratio: 1 } => "per token".to_owned(),
        Kind::Compressed { ratio } => format!("per {ratio} tokens"),
        Kind::Windowed { window_tokens } => format!("last {window_tokens}"),
        Kind::Draft { window_tokens } => format!("draft last {window_tokens}"),
        Kind::State { .. } => "state".to_owned(),
        Kind::DraftState { .. } => "draft state".to_owned(),
    }
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}
