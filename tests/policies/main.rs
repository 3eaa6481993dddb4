//! Policies come and go while a cache serves: swapped, made anew, rolled back, run in the shadow, pinned.

mod division;
mod pins;
mod restarts;
mod shadows;
mod swaps;

use reprise::{Cache, Namespace, NamespaceHandle, Restored};
use reprise_tests::{
    engine::{BLOCK_TOKENS, Kv},
    repository,
};

fn namespace(cache: &Cache) -> NamespaceHandle {
    cache.namespace(&Namespace::new("small", "1").block_tokens(BLOCK_TOKENS)).unwrap()
}

/// One request as an engine serves it; every byte that comes back is checked.
fn serve(namespace: &NamespaceHandle, tokens: &[u32], now: u64) -> Restored {
    let mut sequence = namespace.sequence(tokens);
    let plan = sequence.plan(now).unwrap();
    let (restored, _) = plan.restore(Kv::new(tokens)).unwrap().wait();
    drop(plan);
    sequence.save(&mut Kv::new(tokens)).unwrap();
    sequence.capture(&mut Kv::new(tokens)).unwrap();
    restored
}

/// The component that misbehaves as its settings say.
fn hostile(settings: &str) -> String {
    format!("{}:{settings}", repository("tests/fixtures/hostile.wasm").display())
}
