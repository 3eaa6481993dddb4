use crate::attention::{self, AttentionLayer, Place};
use crate::experts::{self, Experts};
use crate::hyper_connection::{self, HyperConnection};
use crate::norm::Norm;
use crate::shape::{Attention, Shape};
use crate::state::LayerCaches;
use crate::weights::Weights;

/// A decoder layer: attention, then experts, each within a hyper-connection.
pub(crate) struct Block {
    attention: AttentionLayer,
    attention_connection: HyperConnection,
    attention_norm: Norm,
    experts: Experts,
    experts_connection: HyperConnection,
    experts_norm: Norm,
}

/// Space for one token.
pub(crate) struct Scratch {
    input: Vec<f64>,
    output: Vec<f64>,
    attention: attention::Scratch,
    connection: hyper_connection::Scratch,
    experts: experts::Scratch,
}

impl Scratch {
    pub(crate) fn new(shape: &Shape) -> Self {
        Self {
            input: vec![0.0; shape.hidden],
            output: vec![0.0; shape.hidden],
            attention: attention::Scratch::new(shape),
            connection: hyper_connection::Scratch::new(shape),
            experts: experts::Scratch::new(shape),
        }
    }
}

impl Block {
    pub(crate) fn new(shape: &Shape, attention: Attention, hashed: bool, weights: &Weights) -> Self {
        let norm = |name: &str| Norm::new(weights.vector(name, shape.hidden), shape.rms_norm_eps);
        Self {
            attention: AttentionLayer::new(shape, attention, &weights.within("self_attn")),
            attention_connection: HyperConnection::new(shape, &weights.within("attn_hc")),
            attention_norm: norm("input_layernorm.weight"),
            experts: Experts::new(shape, hashed, &weights.within("mlp")),
            experts_connection: HyperConnection::new(shape, &weights.within("ffn_hc")),
            experts_norm: norm("post_attention_layernorm.weight"),
        }
    }

    /// Takes the streams of one token through the layer, in place.
    pub(crate) fn forward(
        &self,
        token: usize,
        place: &Place,
        caches: &mut LayerCaches,
        scratch: &mut Scratch,
        streams: &mut [f64],
    ) {
        let Scratch { input, output, attention, connection, experts } = scratch;
        self.attention_connection.collapse(streams, connection, input);
        self.attention_norm.apply(input);
        self.attention.forward(input, place, caches, attention, output);
        self.attention_connection.expand(output, connection, streams);

        self.experts_connection.collapse(streams, connection, input);
        self.experts_norm.apply(input);
        self.experts.forward(token, input, experts, output);
        self.experts_connection.expand(output, connection, streams);
    }
}
