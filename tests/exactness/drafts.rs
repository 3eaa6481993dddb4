//! Speculative decoding: the draft layer has a window of its own, and its next row is made of the main model's last streams.

use reprise::Config;
use reprise_model::{Model, Shape};

use crate::{
    comparison::Cold,
    engine::{Broken, Engine, config},
    lengths::{FOLLOWING, tokens},
};

const PROMPT: usize = 12 * 16 + 5;

/// sglang#31600: the draft's rows are not stored, and drafts are rejected after every hit.
#[test]
fn a_hit_does_not_lose_the_draft_window() {
    let shape = Shape::small(16, 16);
    let model = Model::random(shape.clone(), 13);
    let cold = Cold::new(&model, tokens(&shape, 60, PROMPT + FOLLOWING));
    let (prompt, following) = cold.tokens.split_at(PROMPT);
    for checkpoints in ["events", "zero"] {
        let directory = tempfile::tempdir().unwrap();
        let config = Config { checkpoints: checkpoints.parse().unwrap(), ..config(&shape, 20, 4, directory.path()) };
        let engine = Engine::open(&model, config);
        engine.serve(prompt, &[], 1);
        let served = engine.serve(prompt, following, 2);
        assert_eq!((served.restored.adopted_tokens, served.plan.drafts), (192, true), "{checkpoints}");
        assert!(served.outputs.iter().all(|output| output.draft_logits.is_some()));
        cold.compare(&served).unwrap();
    }
}

/// A model that declares no draft group: the main model is exact, and the plan says that drafts are off.
#[test]
fn a_plan_does_not_claim_drafts_that_are_not_stored() {
    let with_drafts = Shape::small(16, 16);
    let shape = Shape { draft: false, ..with_drafts.clone() };
    let model = Model::random(with_drafts.clone(), 13);
    let cold = Cold::new(&model, tokens(&shape, 61, PROMPT + FOLLOWING));
    let (prompt, following) = cold.tokens.split_at(PROMPT);
    for checkpoints in ["events", "zero"] {
        let directory = tempfile::tempdir().unwrap();
        let config = Config { checkpoints: checkpoints.parse().unwrap(), ..config(&shape, 20, 4, directory.path()) };
        let engine = Engine::open(&model, config);
        let first = engine.serve(prompt, &[], 1);
        assert!(first.plan.drafts, "nothing is adopted, so nothing is missing");
        let served = engine.serve(prompt, following, 2);
        assert_eq!((served.restored.adopted_tokens, served.plan.drafts), (192, false), "{checkpoints}");
        cold.compare(&served).unwrap();
        let drafts = |served: &crate::engine::Served| served.outputs[0].draft_logits.clone();
        assert_ne!(drafts(&served), cold.outputs()[192].draft_logits, "they are off indeed");
    }
}

/// vLLM drops one more block of a hit where drafts are on, and aligns again. The checkpoint at a prompt's end would be out of reach;
/// kept one block earlier it is found.
#[test]
fn the_block_that_engines_drop_with_drafts_on_does_not_cost_the_checkpoint() {
    let shape = Shape::small(16, 16);
    let model = Model::random(shape.clone(), 14);
    let cold = Cold::new(&model, tokens(&shape, 62, PROMPT + 64 + FOLLOWING));
    for (checkpoints, found) in [("events:back=1", Some(176)), ("events", None)] {
        let directory = tempfile::tempdir().unwrap();
        let config = Config {
            checkpoints: checkpoints.parse().unwrap(),
            replay: false,
            ..config(&shape, 20, 4, directory.path())
        };
        let engine = Engine::open(&model, config);
        engine.serve(&cold.tokens[..PROMPT], &[], 1);
        let longer = PROMPT + 64;
        let mut request = engine.plan(&cold.tokens[..longer], 2);
        let dropped = request.plan.matched_tokens - 16;
        assert_eq!(request.sequence.restorable().into_iter().rfind(|&position| position <= dropped), found);
        request.plan = request.sequence.plan_at_most(3, dropped).unwrap();
        assert_eq!(request.plan.adopted_tokens, found.unwrap_or(0), "{}", request.plan.explain());
        let restoring = engine.restore(&request.plan);
        let served =
            engine.finish(&mut request, restoring, &cold.tokens[..longer], &cold.tokens[longer..longer + FOLLOWING]);
        cold.compare(&served).unwrap();
    }
}

#[test]
fn a_draft_window_or_its_streams_that_are_not_restored_do_not_go_unnoticed() {
    let shape = Shape::small(16, 16);
    let model = Model::random(shape.clone(), 15);
    let cold = Cold::new(&model, tokens(&shape, 63, PROMPT + FOLLOWING));
    let (prompt, following) = cold.tokens.split_at(PROMPT);
    let directory = tempfile::tempdir().unwrap();
    let mut engine = Engine::open(&model, config(&shape, 20, 4, directory.path()));
    engine.serve(prompt, &[], 1);
    for (now, broken) in [(2, Broken::NoDraftWindow), (3, Broken::NoDraftStreams)] {
        engine.broken = Some(broken.clone());
        let served = engine.serve(prompt, following, now);
        assert!(served.restored.checkpoint);
        let difference = cold.compare(&served).unwrap_err();
        assert!(matches!(difference, crate::comparison::Difference::DraftLogits(192)), "{broken:?}: {difference}");
    }
}
