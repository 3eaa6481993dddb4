//! What a cold run gives, and how a restored one is held against it.

use std::fmt;

use reprise_model::{Model, Output, Rows, State};

use crate::engine::Served;

/// Tokens between the states that a cold run keeps.
const STRIDE: usize = 16;

/// One stream of tokens computed from its start, without a cache.
pub struct Cold<'a> {
    model: &'a Model,
    pub tokens: Vec<u32>,
    outputs: Vec<Output>,
    states: Vec<State>,
}

/// Where a restored run first differs from the cold one.
#[derive(Debug, PartialEq, Eq)]
pub enum Difference {
    /// The logits that follow this token.
    Logits(usize),
    /// The draft layer's.
    DraftLogits(usize),
    /// What is cached in the end.
    State(String),
    /// The engine computed another number of tokens than the plan said.
    Computed { planned: u32, computed: u32 },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl<'a> Cold<'a> {
    pub fn new(model: &'a Model, tokens: Vec<u32>) -> Self {
        let mut state = State::new(model.shape());
        let (mut outputs, mut states) = (Vec::new(), Vec::new());
        for chunk in tokens.chunks(STRIDE) {
            states.push(state.clone());
            outputs.extend(model.forward(&mut state, chunk));
        }
        states.push(state);
        Self { model, tokens, outputs, states }
    }

    /// The model that computed it.
    pub fn model(&self) -> &'a Model {
        self.model
    }

    /// What followed each token.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// The state behind the first `position` tokens.
    pub fn state_at(&self, position: usize) -> State {
        let kept = (position / STRIDE).min(self.states.len() - 1);
        let mut state = self.states[kept].clone();
        let rest = &self.tokens[state.position..position];
        self.model.forward(&mut state, rest);
        state
    }

    /// Whether a run whose tokens are the first of this one's gave the same, in every bit, at the cost that was planned.
    pub fn compare(&self, served: &Served) -> Result<(), Difference> {
        let planned = served.restored.computed_tokens;
        if served.computed_tokens != planned {
            return Err(Difference::Computed { planned, computed: served.computed_tokens });
        }
        self.compare_bits(served)
    }

    /// The same, at whatever cost.
    pub fn compare_bits(&self, served: &Served) -> Result<(), Difference> {
        for (token, output) in (served.first_output..).zip(&served.outputs) {
            let cold = &self.outputs[token];
            if !same_bits(&output.logits, &cold.logits) {
                return Err(Difference::Logits(token));
            }
            let drafts = (output.draft_logits.as_deref(), cold.draft_logits.as_deref());
            if served.drafts && !same_optional_bits(drafts.0, drafts.1) {
                return Err(Difference::DraftLogits(token));
            }
        }
        compare_states(&served.state, &self.state_at(served.state.position), served.drafts).map_err(Difference::State)
    }
}

fn compare_states(restored: &State, cold: &State, drafts: bool) -> Result<(), String> {
    for (number, (restored, cold)) in restored.layers.iter().zip(&cold.layers).enumerate() {
        let of = |what: &str| format!("{what} of layer {number}");
        compare_rows(&restored.window, &cold.window).map_err(|_| of("window"))?;
        let pairs =
            [("compressor", &restored.compressor, &cold.compressor), ("indexer", &restored.indexer, &cold.indexer)];
        for (what, restored, cold) in pairs {
            let (Some(restored), Some(cold)) = (restored, cold) else { continue };
            compare_rows(&restored.entries, &cold.entries).map_err(|_| of(&format!("entries of the {what}")))?;
            compare_rows(&restored.buffer, &cold.buffer).map_err(|_| of(&format!("buffer of the {what}")))?;
            compare_rows(&restored.overlap, &cold.overlap).map_err(|_| of(&format!("overlap of the {what}")))?;
        }
    }
    let (Some(restored), Some(cold), true) = (&restored.draft, &cold.draft, drafts) else { return Ok(()) };
    compare_rows(&restored.window, &cold.window).map_err(|_| "window of the draft layer".to_owned())?;
    if !same_optional_bits(restored.hidden.as_deref(), cold.hidden.as_deref()) {
        return Err("streams for the draft layer".to_owned());
    }
    Ok(())
}

fn compare_rows(restored: &Rows, cold: &Rows) -> Result<(), ()> {
    let same = restored.len() == cold.len()
        && (cold.is_empty() || restored.first == cold.first)
        && same_bits(&restored.values, &cold.values);
    if same { Ok(()) } else { Err(()) }
}

fn same_optional_bits(a: Option<&[f64]>, b: Option<&[f64]>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => same_bits(a, b),
        (None, None) => true,
        _ => false,
    }
}

fn same_bits(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}
