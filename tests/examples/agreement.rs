//! An example in another language is the same policy: same words, same answers, same victims.

use reprise_core::policy::{CheckpointPolicy, Description, Kind, Policy, Settings};
use reprise_policy_testing::{CAPACITY, CacheHarness, CheckpointHarness};
use reprise_wasm::Component;

use crate::{
    clock::Clock,
    geometric::Geometric,
    template::{RUST_CHECKPOINT, Template, cache_in},
};

/// What a component says of itself equals what the native policy says.
fn same_description(component: &Component, native: &Description) {
    let said = component.description();
    assert_eq!((said.name.as_str(), said.version.as_str(), said.kind), (native.name, native.version, native.kind));
    assert_eq!((said.admission, said.state_schema), (native.admission, native.state_schema));
    let settings: Vec<_> =
        said.settings.iter().map(|s| (s.key.as_str(), s.help.as_str(), s.default, s.min, s.max)).collect();
    let expected: Vec<_> = native.settings.iter().map(|s| (s.key, s.help, s.default, s.min, s.max)).collect();
    assert_eq!(settings, expected);
}

fn same_refusals(component: &Component) {
    for (key, value) in [
        ("chance", "1"),
        ("chances", ""),
        ("chances", "one"),
        ("chances", "-1"),
        ("chances", "8"),
        ("chances", "99999999999"),
    ] {
        let native = Settings::parse(Clock::DESCRIPTION.settings, [(key, value)]);
        let native = native.expect_err("the setting does not fit").to_string();
        let Err(refused) = component.cache(&[(key.to_owned(), value.to_owned())], &[]) else {
            panic!("{key}={value} is taken");
        };
        assert!(refused.to_string().contains(&native), "{refused}, not {native}");
    }
}

fn same_victims(component: &Component, requests: u32) {
    for (seed, settings) in [(1, &[][..]), (2, &[("chances", "0")]), (3, &[("chances", "7")]), (4, &[])] {
        let ours = CacheHarness::native_with::<Clock>(settings).random_requests(seed, requests);
        let theirs = CacheHarness::from_loaded(component, settings).random_requests(seed, requests);
        assert!(ours.len() as u32 > CAPACITY, "the requests are too tame to tell anything");
        let differing = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
        assert_eq!(differing, None, "seed {seed}, settings {settings:?}");
        assert_eq!(ours.len(), theirs.len());
    }
}

fn same_policy(template: &Template, requests: u32) {
    let Some(component) = template.load() else { return };
    same_description(&component, &Clock::DESCRIPTION);
    same_refusals(&component);
    same_victims(&component, requests);
}

#[test]
fn rust_as_a_component_names_no_other_victims_than_natively() {
    same_policy(cache_in("Rust"), 2_000);
}

#[test]
fn c_names_no_other_victims_than_rust() {
    same_policy(cache_in("C"), 2_000);
}

#[test]
fn python_names_no_other_victims_than_rust() {
    same_policy(cache_in("Python"), 1_000);
}

#[test]
fn javascript_names_no_other_victims_than_rust() {
    same_policy(cache_in("JavaScript"), 1_000);
}

#[test]
fn a_test_of_a_component_does_not_need_an_engine_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.wasm");
    if let Some(bytes) = cache_in("Rust").component() {
        std::fs::write(&file, bytes).unwrap();
        let victims = CacheHarness::from_component(&reprise_policy_testing::component(&file)).random_requests(5, 300);
        assert_eq!(victims, CacheHarness::native::<Clock>().random_requests(5, 300));
    }
    if let Some(bytes) = RUST_CHECKPOINT.component() {
        std::fs::write(&file, bytes).unwrap();
        let positions =
            CheckpointHarness::from_component(&reprise_policy_testing::component(&file)).random_spans(5, 300);
        assert_eq!(positions, CheckpointHarness::native::<Geometric>().random_spans(5, 300));
    }
}

/// An interpreter is refused where only compiled code may run, and says why; it does not run slowly by accident.
#[test]
fn an_interpreter_does_not_run_under_the_limits_of_compiled_code() {
    use reprise_wasm::{Engine, Limits};

    let engine = Engine::new(&Limits::default()).unwrap();
    for language in ["Python", "JavaScript"] {
        let Some(bytes) = cache_in(language).component() else { continue };
        assert!(engine.load(bytes, language, Kind::Cache).is_err(), "{language}");
    }
}

#[test]
fn the_checkpoint_example_names_no_other_positions_than_natively() {
    let Some(component) = RUST_CHECKPOINT.load() else { return };
    same_description(&component, &Geometric::DESCRIPTION);
    fn positions(mut host: CheckpointHarness) -> Vec<Vec<u32>> {
        host.random_spans(1, 1_000)
    }
    fn native<P: Policy + CheckpointPolicy + 'static>(settings: &[(&str, &str)]) -> Vec<Vec<u32>> {
        positions(CheckpointHarness::native_with::<P>(settings))
    }
    for settings in [&[][..], &[("first", "128"), ("growth", "10")]] {
        assert_eq!(positions(CheckpointHarness::from_loaded(&component, settings)), native::<Geometric>(settings));
    }
}
