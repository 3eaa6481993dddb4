use crate::matrix::{Matrix, add_scaled, sigmoid};
use crate::shape::Shape;
use crate::weights::Weights;

/// The mixture of experts of one layer: some routed experts and a shared one.
pub(crate) struct Experts {
    per_token: usize,
    scaling: f64,
    limit: f64,
    scorer: Matrix,
    routing: Routing,
    routed: Vec<Expert>,
    shared: Expert,
}

/// How a layer's experts are chosen. Their weights come from the scores either way.
enum Routing {
    /// By token id: `experts_per_token` experts for each.
    Hash(Vec<usize>),
    /// The best scores, after this bias per expert; of equal ones the lowest index.
    Scored(Vec<f64>),
}

struct Expert {
    gate: Matrix,
    up: Matrix,
    down: Matrix,
}

/// Space for one token.
pub(crate) struct Scratch {
    scores: Vec<f64>,
    chosen: Vec<usize>,
    gate: Vec<f64>,
    up: Vec<f64>,
    expert: Vec<f64>,
}

impl Scratch {
    pub(crate) fn new(shape: &Shape) -> Self {
        Self {
            scores: vec![0.0; shape.experts],
            chosen: Vec::new(),
            gate: vec![0.0; shape.moe_intermediate],
            up: vec![0.0; shape.moe_intermediate],
            expert: vec![0.0; shape.hidden],
        }
    }
}

impl Experts {
    pub(crate) fn new(shape: &Shape, hashed: bool, weights: &Weights) -> Self {
        let (inner, hidden, count) = (shape.moe_intermediate, shape.hidden, shape.experts);
        let router = weights.within("gate");
        let routing = match hashed {
            true => Routing::Hash(router.experts_of_tokens("tid2eid", shape.vocab, count, shape.experts_per_token)),
            false => Routing::Scored(router.vector("e_score_correction_bias", count)),
        };
        let shared = weights.within("shared_experts");
        // Gate and up projections of an expert are one tensor, gate first.
        let halves = weights.matrices("experts.gate_up_proj", 2 * count, inner, hidden);
        let down = weights.matrices("experts.down_proj", count, hidden, inner);
        let mut halves = halves.into_iter();
        let mut next_half = || halves.next().expect("two halves per expert");
        Self {
            per_token: shape.experts_per_token,
            scaling: shape.routed_scaling_factor,
            limit: shape.swiglu_limit,
            scorer: router.matrix("weight", count, hidden),
            routing,
            routed: down.into_iter().map(|down| Expert { gate: next_half(), up: next_half(), down }).collect(),
            shared: Expert {
                gate: shared.matrix("gate_proj.weight", inner, hidden),
                up: shared.matrix("up_proj.weight", inner, hidden),
                down: shared.matrix("down_proj.weight", hidden, inner),
            },
        }
    }

    /// Leaves the weighted sum of the token's experts in `output`.
    pub(crate) fn forward(&self, token: usize, input: &[f64], scratch: &mut Scratch, output: &mut [f64]) {
        self.scorer.project(input, &mut scratch.scores);
        scratch.scores.iter_mut().for_each(|score| *score = sqrt_softplus(*score));
        self.choose(token, &scratch.scores, &mut scratch.chosen);
        let total = scratch.chosen.iter().map(|&expert| scratch.scores[expert]).sum::<f64>() + 1e-20;
        self.apply(&self.shared, input, scratch);
        output.copy_from_slice(&scratch.expert);
        for k in 0..scratch.chosen.len() {
            let expert = scratch.chosen[k];
            self.apply(&self.routed[expert], input, scratch);
            add_scaled(output, scratch.scores[expert] / total * self.scaling, &scratch.expert);
        }
    }

    fn choose(&self, token: usize, scores: &[f64], chosen: &mut Vec<usize>) {
        chosen.clear();
        match &self.routing {
            Routing::Hash(experts) => chosen.extend_from_slice(&experts[token * self.per_token..][..self.per_token]),
            Routing::Scored(bias) => {
                chosen.extend(0..scores.len());
                let corrected = |expert: usize| scores[expert] + bias[expert];
                chosen.sort_by(|&left, &right| corrected(right).total_cmp(&corrected(left)));
                chosen.truncate(self.per_token);
                chosen.sort_unstable();
            }
        }
    }

    /// Leaves one expert's SwiGLU in `scratch.expert`.
    fn apply(&self, expert: &Expert, input: &[f64], scratch: &mut Scratch) {
        let Scratch { gate, up, expert: output, .. } = scratch;
        expert.gate.project(input, gate);
        expert.up.project(input, up);
        for (gate, up) in gate.iter_mut().zip(up) {
            let bounded = gate.min(self.limit);
            *gate = bounded * sigmoid(bounded) * up.clamp(-self.limit, self.limit);
        }
        expert.down.project(gate, output);
    }
}

fn sqrt_softplus(x: f64) -> f64 {
    (x.max(0.0) + (-x.abs()).exp().ln_1p()).sqrt()
}
