//! What is no policy of the wanted world is refused, with a message that says what it is.

use reprise_core::policy::Kind;
use reprise_wasm::{Budget, Component, Engine, Limits, LoadError};

mod kit;

fn engine() -> Engine {
    Engine::new(&Limits { budget: Budget::FUEL, ..Limits::default() }).unwrap()
}

fn refused(loaded: Result<Component, LoadError>) -> LoadError {
    match loaded {
        Ok(_) => panic!("it was taken"),
        Err(error) => error,
    }
}

#[test]
fn files_that_are_no_components_are_not_taken_for_some() {
    let module = kit::CachePolicy::default().module();
    let cases: [(&[u8], &str); 5] = [
        (b"", "it is empty"),
        (b"\x7fELF\x02\x01\x01\x00", "it begins with 7f 45 4c 46"),
        (b"GIF", "it begins with 47 49 46"),
        (b"\0asm\x0e\0\x02\0", "unknown version 0e 00 02 00"),
        (&module, "is a core WebAssembly module, not a component: it does not export `reprise:policy/cache@0.1.0`"),
    ];
    for (bytes, said) in cases {
        let error = refused(engine().load(bytes, "some.wasm", Kind::Cache)).to_string();
        assert!(error.contains(said) && error.starts_with("some.wasm"), "{error}");
    }
}

#[test]
fn a_damaged_component_is_not_run() {
    let component = reprise_policies_dist::component("lru").unwrap();
    for cut in [9, component.len() / 2, component.len() - 1] {
        let error = refused(engine().load(&component[..cut], "cut.wasm", Kind::Cache));
        assert!(matches!(error, LoadError::Invalid { .. } | LoadError::Missing { .. }), "{error}");
    }
}

#[test]
fn a_component_over_the_size_limit_is_not_compiled() {
    let limits = Limits { component_bytes: 1000, budget: Budget::FUEL, ..Limits::default() };
    let component = reprise_policies_dist::component("lru").unwrap();
    let error = refused(Engine::new(&limits).unwrap().load(component, "big.wasm", Kind::Cache));
    assert_eq!(error, LoadError::TooLarge { origin: "big.wasm".into(), bytes: component.len(), limit: 1000 });
}

#[test]
fn a_policy_of_the_other_kind_is_not_taken_and_the_missing_export_is_named() {
    let lru = reprise_policies_dist::component("lru").unwrap();
    let error = refused(engine().load(lru, "lru.wasm", Kind::Checkpoint)).to_string();
    for said in [
        "does not export `reprise:policy/checkpoints@0.1.0`",
        "checkpoint-policy@0.1.0",
        "`reprise:policy/cache@0.1.0`",
    ] {
        assert!(error.contains(said), "{error}");
    }
    let events = reprise_policies_dist::component("events").unwrap();
    let error = refused(engine().load(events, "events.wasm", Kind::Cache)).to_string();
    assert!(error.contains("does not export `reprise:policy/cache@0.1.0`"), "{error}");
}

/// The text of a module with another version of the contract.
fn of_version(version: &str) -> Vec<u8> {
    let module = renamed(&kit::CachePolicy::default().module(), "0.1.0", version);
    kit::component(module, "cache-policy", |wit| wit.replace("0.1.0", version))
}

/// Export names carry the version; versions of equal length leave every other byte where it is.
fn renamed(module: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut module = module.to_vec();
    let found = |module: &[u8]| module.windows(from.len()).position(|window| window == from.as_bytes());
    while let Some(at) = found(&module) {
        module[at..at + from.len()].copy_from_slice(to.as_bytes());
    }
    module
}

#[test]
fn a_component_of_another_version_is_not_taken_and_the_version_is_named() {
    let error = refused(engine().load(&of_version("0.2.0"), "new.wasm", Kind::Cache)).to_string();
    for said in ["does not export `reprise:policy/cache@0.1.0`", "`reprise:policy/cache@0.2.0`"] {
        assert!(error.contains(said), "{error}");
    }
    // A patch of the same version fits.
    assert!(engine().load(&of_version("0.1.7"), "patch.wasm", Kind::Cache).is_ok());
}

#[test]
fn a_component_with_an_import_is_not_linked() {
    let import = "interface clock { now: func() -> u64; }\nworld clocked { import clock; include cache-policy; }";
    let module = kit::CachePolicy {
        imports: r#"(func $now (import "reprise:policy/clock@0.1.0" "now") (result i64))"#,
        start: "(drop (call $now))",
        ..Default::default()
    };
    let change =
        |wit: &str| if wit.contains("world cache-policy {") { format!("{wit}\n{import}") } else { wit.to_owned() };
    let component = kit::component(module.module(), "clocked", change);
    let error = refused(engine().load(&component, "clocked.wasm", Kind::Cache));
    assert_eq!(error.to_string(), "clocked.wasm imports `reprise:policy/clock@0.1.0`; a policy imports nothing");
}

#[test]
fn a_function_of_another_type_is_not_called() {
    // The same core function, whose ABI would even fit, lifted with other types.
    let change = |wit: &str| {
        wit.replace("events: list<u64>, want: u32) -> list<u32>", "events: list<s64>, want: u32) -> list<u32>")
    };
    let component = kit::component(kit::CachePolicy::default().module(), "cache-policy", change);
    let error = refused(engine().load(&component, "other.wasm", Kind::Cache));
    assert!(matches!(&error, LoadError::Type { export, .. } if export == "reprise:policy/cache@0.1.0#step"), "{error}");
}

#[test]
fn a_description_that_promises_a_missing_interface_is_not_believed() {
    let module = described(17, 1);
    let component = kit::component(module, "cache-policy", str::to_owned);
    let error = refused(engine().load(&component, "boast.wasm", Kind::Cache)).to_string();
    assert!(error.contains("does not export `reprise:policy/admission@0.1.0#admit`"), "{error}");
}

#[test]
fn a_description_of_another_kind_is_not_believed() {
    let honest = kit::CachePolicy::default().component();
    engine().load(&honest, "honest.wasm", Kind::Cache).unwrap_or_else(|error| panic!("the template itself: {error}"));
    let component = kit::component(described(16, 0), "cache-policy", str::to_owned);
    let error = refused(engine().load(&component, "kind.wasm", Kind::Cache));
    assert!(matches!(error, LoadError::Description { .. }), "{error}");
}

/// The module with one byte of its description changed by its start function.
fn described(address: u32, value: u8) -> Vec<u8> {
    let start = format!("(i32.store8 (i32.const {address}) (i32.const {value}))");
    kit::CachePolicy { start: &start, ..Default::default() }.module()
}

#[test]
fn a_description_that_an_operator_could_not_read_is_not_taken() {
    // Bytes of the name and of the version: an escape that commands a terminal, a space, a line end.
    for (address, byte) in [(33, 0x1b), (33, b' '), (37, b'\n')] {
        let component = kit::component(described(address, byte), "cache-policy", str::to_owned);
        let error = refused(engine().load(&component, "odd.wasm", Kind::Cache));
        assert!(matches!(error, LoadError::Description { .. }), "{error}");
        assert!(!error.to_string().contains(char::is_control), "{error:?}");
    }
}

/// Two inner components that hand a string from one memory to another: what wasmtime makes between them uses both.
const TWO_MEMORIES: &str = r#"(component
    (component $taker
        (core module $m
            (memory (export "memory") 1)
            (func (export "take") (param i32 i32))
            (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 0))
        (core instance $i (instantiate $m))
        (alias core export $i "memory" (core memory $memory))
        (alias core export $i "realloc" (core func $realloc))
        (func (export "take") (param "text" string)
            (canon lift (core func $i "take") (memory $memory) (realloc $realloc))))
    (component $giver
        (import "take" (func $take (param "text" string)))
        (core module $memory (memory (export "memory") 1))
        (core instance $its (instantiate $memory))
        (alias core export $its "memory" (core memory $its))
        (core func $lowered (canon lower (func $take) (memory $its)))
        (core module $m
            (import "" "take" (func $take (param i32 i32)))
            (func (export "give") i32.const 0 i32.const 0 call $take))
        (core instance $i (instantiate $m (with "" (instance (export "take" (func $lowered))))))
        (func (export "give") (canon lift (core func $i "give"))))
    (instance $taker (instantiate $taker))
    (instance $giver (instantiate $giver (with "take" (func $taker "take"))))
    (export "give" (func $giver "give")))"#;

#[test]
fn a_component_of_components_does_not_take_the_host_down() {
    let component = wat::parse_str(TWO_MEMORIES).unwrap();
    for profile in reprise_wasm::Profile::ALL {
        let engine = Engine::new(&Limits::of(profile).fuelled()).unwrap();
        let error = refused(engine.load(&component, "two.wasm", Kind::Cache));
        assert!(matches!(error, LoadError::Missing { .. }), "{profile}: {error}");
    }
}
