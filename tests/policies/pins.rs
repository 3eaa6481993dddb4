//! A name that is pinned to a component.

use reprise::{Cache, Config, OpenError, Pin, PolicyError, Role};
use reprise_tests::engine::small;

use crate::hostile;

fn pin(name: &str, component: &[u8]) -> Pin {
    let digest = reprise::Digest(blake3::hash(component).into());
    Pin { name: name.to_owned(), digest }
}

fn lru() -> &'static [u8] {
    reprise_policies_dist::component("lru").unwrap()
}

#[test]
fn another_component_under_a_pinned_name_is_not_loaded() {
    let wrong = Config { pins: [pin("lru", b"another")].into_iter().collect(), ..small(16, 0) };
    let Err(OpenError::Policy(error @ PolicyError::Pinned { .. })) = Cache::open(wrong) else { panic!("it opened") };
    let said = error.to_string();
    let (wanted, found) = (pin("lru", b"another").digest.to_string(), pin("lru", lru()).digest.to_string());
    assert!(said.contains(&wanted) && said.contains(&found) && said.contains("`lru`"), "{said}");
}

#[test]
fn a_pinned_component_is_not_refused_and_others_are_not_touched() {
    let pins = [pin("lru", lru()), pin("hostile", b"another")].into_iter().collect();
    let cache = Cache::open(Config { pins, ..small(16, 0) }).unwrap();
    cache.policies().swap(Role::Eviction, &"fifo".parse().unwrap()).unwrap();
    cache.policies().swap_bytes(Role::Eviction, lru(), "from memory", &[]).unwrap();
    // Neither by file nor from memory, and not in the shadow.
    let file = hostile("mode=0").parse().unwrap();
    assert!(matches!(cache.policies().swap(Role::Eviction, &file), Err(PolicyError::Pinned { .. })));
    let shadowing = reprise::Shadowing { eviction: Some(file), ..Default::default() };
    assert!(matches!(cache.policies().shadow(&shadowing), Err(PolicyError::Pinned { .. })));
    assert_eq!(cache.policies().status()[0].name, "lru");
}
