//! The DeepSeek-V4 models. Source: arXiv:2606.19348, sections 2.3, 3.5.1 and 4.2.1.

use alloc::{borrow::ToOwned, string::String, vec, vec::Vec};

use super::{
    CacheType, DRAFT, HISTORY, Kind, WINDOW,
    preset::{Chosen, PresetOption, preset_layers},
};

/// What can be chosen about a V4 model.
pub(super) const OPTIONS: &[PresetOption] = &[
    PresetOption { key: "rows", help: "format of CSA, HCA and SWA rows", values: &["fp8", "bf16"] },
    PresetOption { key: "indexer", help: "format of indexer rows", values: &["fp4", "fp8", "bf16"] },
    PresetOption { key: "draft", help: "whether the MTP layer's window is kept", values: &["off", "on"] },
];

/// What distinguishes the models of the family.
pub(super) struct V4 {
    csa_layers: &'static str,
    hca_layers: &'static str,
    window_layers: &'static str,
    draft_layer: &'static str,
    hidden: u32,
}

/// 61 layers: two HCA, then CSA and HCA in turn. All have a window.
pub(super) const PRO: V4 =
    V4 { csa_layers: "2-60/2", hca_layers: "0-1,3-59/2", window_layers: "0-60", draft_layer: "61", hidden: 7168 };

/// 43 layers: two with a window only, then CSA and HCA in turn. All have a window.
pub(super) const FLASH: V4 =
    V4 { csa_layers: "2-42/2", hca_layers: "3-41/2", window_layers: "0-42", draft_layer: "43", hidden: 4096 };

/// Tokens of the sliding window, the token itself included.
const WINDOW_TOKENS: u32 = 128;
/// Tokens a CSA row, and an indexer row, covers.
const CSA_RATIO: u32 = 4;
/// Tokens an HCA row covers.
const HCA_RATIO: u32 = 128;

/// A CSA row also mixes the four tokens before its own, so a restored prefix goes on exactly only with the compressors' state of
/// its last four tokens.
const OVERLAP_TOKENS: u32 = 4;
/// Streams of the residual (hyper-connections).
const STREAMS: u32 = 4;
/// Compressor state of one token: a key and a gate in fp32 for each of 512 dimensions (main) and 128 (indexer). Inferred from the
/// shapes, not published.
const OVERLAP_ROW_BYTES: u32 = (512 + 128) * 2 * 4;

impl V4 {
    /// Groups and types of the model with these options.
    pub(super) fn parts(&self, chosen: &Chosen) -> (Vec<String>, Vec<CacheType>) {
        let row = match chosen.get("rows") {
            // 448 values without position in fp8 with 7 scales and a byte of padding, 64 with RoPE in bf16.
            "fp8" => (448 + 64 * 2 + 7 + 1, "fp8+bf16-rope"),
            _ => (512 * 2, "bf16"),
        };
        // 128 values; fp8 and MXFP4 with their scales.
        let indexer_row = match chosen.get("indexer") {
            "fp4" => (68, "mxfp4"),
            "fp8" => (132, "fp8"),
            _ => (256, "bf16"),
        };
        let csa = Kind::Compressed { ratio: CSA_RATIO };
        let hca = Kind::Compressed { ratio: HCA_RATIO };
        let window = Kind::Windowed { window_tokens: WINDOW_TOKENS };
        let overlap = Kind::State { rows: OVERLAP_TOKENS };
        let mut groups = vec![HISTORY.to_owned(), WINDOW.to_owned()];
        let mut types = vec![
            cache_type("csa", HISTORY, csa, self.csa_layers, row),
            cache_type("hca", HISTORY, hca, self.hca_layers, row),
            cache_type("indexer", HISTORY, csa, self.csa_layers, indexer_row),
            cache_type("swa", WINDOW, window, self.window_layers, row),
            cache_type("csa-overlap", WINDOW, overlap, self.csa_layers, (OVERLAP_ROW_BYTES, "fp32")),
        ];
        if chosen.get("draft") == "on" {
            groups.push(DRAFT.to_owned());
            let draft = Kind::Draft { window_tokens: WINDOW_TOKENS };
            types.push(cache_type("mtp-swa", DRAFT, draft, self.draft_layer, row));
            // The head's row of token N is made of the main model's last streams at N - 1, which no other record holds.
            let hidden = (STREAMS * self.hidden * 2, "bf16");
            types.push(cache_type("mtp-hidden", DRAFT, Kind::DraftState { rows: 1 }, self.draft_layer, hidden));
        }
        (groups, types)
    }
}

fn cache_type(name: &str, group: &str, kind: Kind, layers: &str, (row_bytes, row_format): (u32, &str)) -> CacheType {
    CacheType {
        name: name.to_owned(),
        group: group.to_owned(),
        kind,
        layers: preset_layers(layers),
        row_bytes,
        row_format: row_format.to_owned(),
    }
}
