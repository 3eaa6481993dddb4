//! The host of a checkpoint policy.

use reprise_core::policy::{CheckpointInfo, CheckpointPolicy, Policy, Prompt, Settings, Span, TOLD_KEYS};

use crate::random::Random;

/// Tokens of a block in random spans.
const BLOCK_TOKENS: u32 = 128;

/// What a policy that learns is told: a replay takes more than most random spans have.
const INFO: CheckpointInfo = CheckpointInfo {
    capacity_checkpoints: 64,
    checkpoint_bytes: 4 << 20,
    block_bytes: 512 << 10,
    replay_tokens: 60 * BLOCK_TOKENS,
};

type Choose = dyn FnMut(&Span, &Prompt<'_>, &mut Vec<u32>) -> Result<(), String>;

/// A host that asks where windows are to be kept and panics when an answer breaks the contract.
pub struct CheckpointHarness {
    choose: Box<Choose>,
}

impl CheckpointHarness {
    /// A host of a policy in this process, with its default settings.
    pub fn native<P: Policy + CheckpointPolicy + 'static>() -> Self {
        Self::native_with::<P>(&[])
    }

    /// The same with settings as an operator writes them.
    ///
    /// # Panics
    /// When they are refused.
    #[track_caller]
    pub fn native_with<P: Policy + CheckpointPolicy + 'static>(settings: &[(&str, &str)]) -> Self {
        let settings = Settings::parse(P::DESCRIPTION.settings, settings.iter().copied());
        let mut policy = P::new(&settings.unwrap_or_else(|error| panic!("{error}")));
        policy.attach(&INFO);
        Self {
            choose: Box::new(move |span, prompt, positions| {
                policy.choose_for(span, prompt, positions);
                Ok(())
            }),
        }
    }

    /// A host of a component, compiled here under the default limits, with its default settings.
    ///
    /// # Panics
    /// When the component is not eligible; the message says why.
    #[cfg(feature = "wasm")]
    #[track_caller]
    pub fn from_component(bytes: &[u8]) -> Self {
        let engine = reprise_wasm::Engine::new(&reprise_wasm::Limits::default()).expect("a thread for the clock");
        let component = engine.load(bytes, "the component", reprise_core::policy::Kind::Checkpoint);
        Self::from_loaded(&component.unwrap_or_else(|error| panic!("{error}")), &[])
    }

    /// A host of a component that an engine of the test's own has loaded, with settings as an operator writes them.
    ///
    /// # Panics
    /// When they are refused.
    #[cfg(feature = "wasm")]
    #[track_caller]
    pub fn from_loaded(component: &reprise_wasm::Component, settings: &[(&str, &str)]) -> Self {
        let settings: Vec<_> = settings.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        let mut policy = component.checkpoint(&settings).unwrap_or_else(|error| panic!("{error}"));
        policy.attach(&INFO).unwrap_or_else(|error| panic!("{error}"));
        Self {
            choose: Box::new(move |span, prompt, positions| {
                policy.choose_for(span, prompt, positions).map_err(|error| error.to_string())
            }),
        }
    }

    /// The positions that the policy names in a span.
    #[track_caller]
    pub fn choose(&mut self, span: &Span) -> Vec<u32> {
        self.choose_for(span, &Prompt::default())
    }

    /// The positions that the policy names in a span of which it is told what a policy that learns is told.
    #[track_caller]
    pub fn choose_for(&mut self, span: &Span, prompt: &Prompt<'_>) -> Vec<u32> {
        let mut positions = Vec::new();
        if let Err(error) = (self.choose)(span, prompt, &mut positions) {
            panic!("the policy fails: {error}");
        }
        assert!(positions.is_sorted_by(|a, b| a < b), "the policy names positions that do not ascend: {positions:?}");
        if let Some(wrong) = positions.iter().find(|&&position| !span.allows(position)) {
            panic!("the policy names {positions:?}, and {wrong} is not one that {span:?} allows");
        }
        positions
    }

    /// Asks about random spans, empty ones and ones with junctions among them, of prompts that come back now and then, and checks every
    /// answer. Returns all answers; the same seed gives the same spans.
    #[track_caller]
    pub fn random_spans(&mut self, seed: u64, spans: u32) -> Vec<Vec<u32>> {
        let mut random = Random::new(seed);
        let mut ask = |number: u32| {
            let start = random.below(40) * BLOCK_TOKENS;
            let blocks = random.below(100);
            let end = start + blocks * BLOCK_TOKENS;
            let matched = start + random.below(blocks + 1) * BLOCK_TOKENS;
            let span = Span {
                now: number.into(),
                start,
                end,
                prompt_tokens: end + random.below(BLOCK_TOKENS),
                matched,
                junction: if random.below(2) == 0 { 0 } else { matched },
                block_tokens: BLOCK_TOKENS,
            };
            // Few conversations, so that they meet again.
            let conversation = u64::from(random.below(20) + 1) << 32;
            let keys = |position: u32| -> Vec<u64> {
                let blocks = position / BLOCK_TOKENS;
                let told = blocks.saturating_sub(TOLD_KEYS as u32)..blocks;
                told.map(|block| conversation + u64::from(block)).collect()
            };
            let prompt = Prompt {
                namespace: random.below(3) as u16,
                replayed_tokens: start.min(random.below(2) * INFO.replay_tokens),
                matched_keys: &keys(span.matched),
                end_keys: &keys(span.end),
            };
            self.choose_for(&span, &prompt)
        };
        (1..=spans).map(&mut ask).collect()
    }
}
