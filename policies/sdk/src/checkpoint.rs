//! `checkpoints` on top of [`CheckpointPolicy`].

use alloc::vec::Vec;

use bindings::exports::reprise::policy::checkpoints;
use reprise_core::policy::{CheckpointPolicy, Span};

use crate::slot::Resident;

/// What wit-bindgen makes of the interface.
#[expect(missing_docs, reason = "generated; the documentation is in wit/")]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package reprise:sdk-checkpoint; world checkpoint-part { export reprise:policy/checkpoints@0.1.0; }",
        world: "reprise:sdk-checkpoint/checkpoint-part",
        pub_export_macro: true,
        export_macro_name: "export_checkpoints",
    });
}

impl<R: Resident<Policy: CheckpointPolicy>> checkpoints::Guest for R {
    fn choose(span: checkpoints::Span) -> Vec<u64> {
        let checkpoints::Span { now, start, end, prompt_tokens, matched, junction, block_tokens } = span;
        let span = Span { now, start, end, prompt_tokens, matched, junction, block_tokens };
        let mut positions = Vec::new();
        R::slot().with(|policy| policy.choose(&span, &mut positions));
        positions.into_iter().map(u64::from).collect()
    }
}
