use crate::attention::Place;
use crate::block::{Block, Scratch};
use crate::draft::DraftLayer;
use crate::head::Head;
use crate::matrix::Matrix;
use crate::rotary::Rotary;
use crate::shape::{Attention, Shape};
use crate::state::State;
use crate::weights::Weights;

/// A model: a shape and its weights.
pub struct Model {
    shape: Shape,
    embedding: Matrix,
    main_rotary: Rotary,
    compress_rotary: Rotary,
    blocks: Vec<Block>,
    head: Head,
    unembedding: Matrix,
    draft: Option<DraftLayer>,
}

/// What the model says about the token behind one token.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// `vocab` logits of the next token.
    pub logits: Vec<f64>,
    /// The draft layer's `vocab` logits of the next token, from this token and the main model's streams of the one
    /// before. None without a draft layer, for token 0, and where those streams are not known.
    pub draft_logits: Option<Vec<f64>>,
}

impl Model {
    /// Random weights, a function of the seed and of each tensor's name and size.
    pub fn random(shape: Shape, seed: u64) -> Self {
        let all = Weights::new(seed);
        let main = all.within("model");
        let layer = |(index, &attention): (usize, &Attention)| {
            let weights = main.within(&format!("layers.{index}"));
            Block::new(&shape, attention, index < shape.hash_layers, &weights)
        };
        Self {
            embedding: main.matrix("embed_tokens.weight", shape.vocab, shape.hidden),
            main_rotary: Rotary::new(shape.rope_theta, shape.rope_dim),
            compress_rotary: Rotary::new(shape.compress_rope_theta, shape.rope_dim),
            blocks: shape.layers.iter().enumerate().map(layer).collect(),
            head: Head::new(&shape, &main),
            unembedding: all.matrix("lm_head.weight", shape.vocab, shape.hidden),
            draft: shape.draft.then(|| DraftLayer::new(&shape, &all.within("mtp"))),
            shape,
        }
    }

    /// The model's shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Appends tokens to a sequence, whose state is of the model's shape: one output per token.
    ///
    /// Panics if a token is not below `vocab`.
    pub fn forward(&self, state: &mut State, tokens: &[u32]) -> Vec<Output> {
        let mut scratch = Scratch::new(&self.shape);
        tokens.iter().map(|&token| self.step(state, token as usize, &mut scratch)).collect()
    }

    /// One token through all layers. Calls of any length are steps, so how tokens are cut into calls cannot change a
    /// bit.
    fn step(&self, state: &mut State, token: usize, scratch: &mut Scratch) -> Output {
        let State { position, write_floor, .. } = *state;
        let main_rotation = self.main_rotary.at(position);
        let compress_rotation = self.compress_rotary.at(position);
        let embedding = self.embedding.row(token);
        let mut streams = embedding.repeat(self.shape.hc_mult);
        for ((block, attention), layer) in self.blocks.iter().zip(&self.shape.layers).zip(&mut state.layers) {
            let rotation = if *attention == Attention::Window { &main_rotation } else { &compress_rotation };
            let place = Place { position, write_floor, rotation };
            block.forward(token, &place, &mut layer.caches(), scratch, &mut streams);
        }
        let logits = self.head.logits(&streams, &self.unembedding, self.shape.vocab);
        let mut draft_logits = None;
        if let (Some(draft), Some(drafted)) = (&self.draft, &mut state.draft) {
            let streams = draft.forward(token, embedding, position, &main_rotation, drafted, scratch);
            draft_logits = streams.map(|streams| draft.head.logits(&streams, &self.unembedding, self.shape.vocab));
        }
        if let Some(drafted) = &mut state.draft {
            drafted.hidden = Some(streams);
        }
        state.position += 1;
        Output { logits, draft_logits }
    }
}
