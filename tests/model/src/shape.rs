/// What a layer attends to besides its sliding window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attention {
    /// Nothing.
    Window,
    /// Compressed sparse attention: the entries an indexer selects, one entry every `csa_ratio` tokens.
    Csa,
    /// Heavily compressed attention: all entries, one every `hca_ratio` tokens.
    Hca,
}

/// The sizes and constants of a model. Field names follow the published configuration where it has them.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Token ids are below this.
    pub vocab: usize,
    /// Width of a stream.
    pub hidden: usize,
    /// Query heads. There is one key-value head.
    pub heads: usize,
    /// Width of a head, and of a window row or compressed entry.
    pub head_dim: usize,
    /// Last channels of every head that are rotated by position; even, at most `head_dim` and `index_head_dim`.
    pub rope_dim: usize,
    /// Width of the query latent.
    pub q_lora_rank: usize,
    /// Groups of heads in the output projection; divides `heads`.
    pub o_groups: usize,
    /// Width of the latent of one group.
    pub o_lora_rank: usize,
    /// Keys of the sliding window, the token itself included.
    pub window: usize,
    /// Tokens of a CSA entry (m).
    pub csa_ratio: usize,
    /// Tokens of an HCA entry (m').
    pub hca_ratio: usize,
    /// Query heads of the indexer.
    pub index_heads: usize,
    /// Width of an indexer head and of an indexer entry.
    pub index_head_dim: usize,
    /// Entries a CSA token attends to at most.
    pub index_topk: usize,
    /// Streams of the hyper-connections.
    pub hc_mult: usize,
    /// Normalisations of columns in the Sinkhorn projection; one fewer of rows.
    pub hc_sinkhorn_iters: usize,
    /// Added to weights and sums of the hyper-connections.
    pub hc_eps: f64,
    /// Routed experts. There is one shared expert besides.
    pub experts: usize,
    /// Routed experts of one token.
    pub experts_per_token: usize,
    /// Width inside an expert.
    pub moe_intermediate: usize,
    /// Factor of the routed experts' weights, after they are scaled to sum 1.
    pub routed_scaling_factor: f64,
    /// Bound of an expert's gate (above) and up projection (both sides).
    pub swiglu_limit: f64,
    /// Added to the mean square of every RMS norm.
    pub rms_norm_eps: f64,
    /// Base of the rotation in window-only layers.
    pub rope_theta: f64,
    /// Base of the rotation in CSA and HCA layers.
    pub compress_rope_theta: f64,
    /// What each layer attends to.
    pub layers: Vec<Attention>,
    /// First layers whose experts are looked up by token id.
    pub hash_layers: usize,
    /// Whether there is a draft layer.
    pub draft: bool,
}

impl Shape {
    /// Seven layers arranged as in V4-Flash, window-only ones first, with a draft layer; m is 4. A window of 16 with an
    /// HCA ratio of 16 makes short tests; 128 with 128 are the published ones.
    pub fn small(window: usize, hca_ratio: usize) -> Self {
        use Attention::{Csa, Hca, Window};
        Self {
            vocab: 64,
            hidden: 24,
            heads: 2,
            head_dim: 16,
            rope_dim: 4,
            q_lora_rank: 16,
            o_groups: 2,
            o_lora_rank: 8,
            window,
            csa_ratio: 4,
            hca_ratio,
            index_heads: 4,
            index_head_dim: 8,
            index_topk: 8,
            hc_mult: 2,
            hc_sinkhorn_iters: 4,
            hc_eps: 1e-6,
            experts: 4,
            experts_per_token: 2,
            moe_intermediate: 16,
            routed_scaling_factor: 1.5,
            swiglu_limit: 10.0,
            rms_norm_eps: 1e-6,
            rope_theta: 10_000.0,
            compress_rope_theta: 160_000.0,
            layers: vec![Window, Window, Csa, Hca, Csa, Hca, Csa],
            hash_layers: 2,
            draft: true,
        }
    }

    /// Values of the streams of one token.
    pub(crate) fn streams(&self) -> usize {
        self.hc_mult * self.hidden
    }
}
