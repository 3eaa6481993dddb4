//! A checkpoint policy that misbehaves on demand: a fixture of the tests, never shipped.
//!
//! With `mode=0` it keeps the last block of each span.
#![cfg_attr(target_arch = "wasm32", no_std)]

extern crate alloc;

use alloc::vec::Vec;
use core::hint::black_box;

use reprise_core::policy::{CheckpointPolicy, Description, Kind, Policy, Setting, Settings, Span};

reprise_policy_sdk::export_checkpoint_policy!(HostileCheckpoints);

const TRAP: u64 = 1;
const LOOP: u64 = 2;
const OUT_OF_RANGE: u64 = 3;
const MISALIGNED: u64 = 4;
const UNSORTED: u64 = 5;
const TOO_MANY: u64 = 6;

/// See the module.
pub struct HostileCheckpoints {
    mode: u64,
}

impl Policy for HostileCheckpoints {
    const DESCRIPTION: Description = Description {
        name: "hostile-checkpoints",
        version: "0.1.0",
        kind: Kind::Checkpoint,
        admission: false,
        state_schema: 0,
        settings: &[Setting {
            key: "mode",
            help: "0 honest, 1 trap, 2 endless loop, 3 past the span, 4 not a multiple of the block, 5 descending, 6 a million",
            default: 0,
            min: 0,
            max: 6,
        }],
    };

    fn new(settings: &Settings) -> Self {
        Self { mode: settings.get("mode") }
    }
}

impl CheckpointPolicy for HostileCheckpoints {
    fn choose(&mut self, span: &Span, positions: &mut Vec<u32>) {
        match self.mode {
            TRAP => panic!("as asked"),
            LOOP => loop {
                black_box(());
            },
            OUT_OF_RANGE => positions.push(span.end + span.block_tokens),
            MISALIGNED => positions.push(span.end.saturating_sub(1)),
            UNSORTED => {
                let blocks = (span.end - span.start) / span.block_tokens;
                positions.extend((1..=blocks).rev().map(|block| span.start + block * span.block_tokens));
            }
            TOO_MANY => positions.extend(0..1 << 20),
            _ => positions.extend(span.allows(span.end).then_some(span.end)),
        }
    }
}
