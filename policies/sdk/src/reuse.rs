//! `reuse` on top of [`CheckpointPolicy`], for policies that learn.

use alloc::vec::Vec;

use bindings::exports::reprise::policy::reuse;
use reprise_core::policy::{CheckpointInfo, CheckpointPolicy, Prompt, Span};

use crate::slot::Resident;

/// What wit-bindgen makes of the interface.
#[expect(missing_docs, reason = "generated; the documentation is in wit/")]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package reprise:sdk-reuse; world reuse-part { export reprise:policy/reuse@0.1.0; }",
        world: "reprise:sdk-reuse/reuse-part",
        pub_export_macro: true,
        export_macro_name: "export_reuse",
    });
}

impl<R: Resident<Policy: CheckpointPolicy>> reuse::Guest for R {
    fn attach(info: reuse::CheckpointInfo) {
        let reuse::CheckpointInfo { capacity_checkpoints, checkpoint_bytes, block_bytes, replay_tokens } = info;
        let info = CheckpointInfo { capacity_checkpoints, checkpoint_bytes, block_bytes, replay_tokens };
        R::slot().with(|policy| policy.attach(&info));
    }

    fn choose_for(request: reuse::Request) -> Vec<u64> {
        let reuse::Request { now, start, end, prompt_tokens, matched, junction, block_tokens, .. } = request;
        let span = Span { now, start, end, prompt_tokens, matched, junction, block_tokens };
        let prompt = Prompt {
            namespace: request.namespace,
            replayed_tokens: request.replayed_tokens,
            matched_keys: &request.matched_keys,
            end_keys: &request.end_keys,
        };
        let mut positions = Vec::new();
        R::slot().with(|policy| policy.choose_for(&span, &prompt, &mut positions));
        positions.into_iter().map(u64::from).collect()
    }
}
