//! A file is told of without being run, whatever it is.

use reprise_core::policy::Kind;
use reprise_wasm::{Engine, Form, Limits, LoadError, Profile, inspect};

mod kit;

#[test]
fn a_shipped_policy_does_not_hide_what_it_is() {
    for name in reprise_policies_dist::NAMES {
        let bytes = reprise_policies_dist::component(name).unwrap();
        let seen = inspect(bytes).unwrap();
        assert_eq!((seen.form, seen.bytes, seen.imports.len()), (Form::Component, bytes.len(), 0), "{name}");
        assert_eq!(seen.digest.0, *blake3::hash(bytes).as_bytes());
        assert_eq!(seen.contract.as_deref(), Some("0.1.0"));
        assert!(seen.modules >= 1 && seen.memory_bytes >= 1 << 16, "{seen:?}");
        assert_eq!(seen.profile.as_ref().map(|profile| *profile <= Profile::Compiled), Ok(true), "{name}");
        let kind = match *name {
            "core" => None,
            "full" | "periodic" | "zero" | "events" | "adaptive" => Some(Kind::Checkpoint),
            _ => Some(Kind::Cache),
        };
        assert_eq!(seen.kind, kind, "{name}");
        assert_eq!(seen.world().is_some(), kind.is_some());
        let said = &seen.metadata;
        assert_eq!(said.name.as_deref(), Some(*name));
        assert_eq!(said.licenses.as_deref(), Some("Apache-2.0"));
        assert!(said.version.is_some() && said.description.is_some(), "{said:?}");
        assert!(said.source.as_ref().is_some_and(|source| source.starts_with("policies/components/src/")), "{said:?}");
        assert!(said.processed_by.iter().any(|tool| tool.name == "wit-component"), "{said:?}");
        assert!(said.languages.iter().any(|tool| tool.name == "Rust"), "{said:?}");
    }
}

#[test]
fn what_would_be_refused_is_told_of_all_the_same() {
    let engine = Engine::new(&Limits::default()).unwrap();
    // A core module: its world is seen, its form is not that of a policy.
    let module = kit::CachePolicy::default().module();
    let seen = inspect(&module).unwrap();
    assert_eq!((seen.form, seen.modules, seen.memory_bytes), (Form::Module, 1, 4 << 16));
    assert!(seen.exports.contains(&"reprise:policy/cache@0.1.0#step".to_owned()), "{:?}", seen.exports);
    assert!(matches!(engine.load(&module, "module", Kind::Cache), Err(LoadError::Module { .. })));
    // Of another version: no kind that this host can load, and the version says why.
    let newer = kit::component(renamed(&module, "0.1.0", "0.2.0"), "cache-policy", |wit| wit.replace("0.1.0", "0.2.0"));
    let seen = inspect(&newer).unwrap();
    assert_eq!((seen.kind, seen.contract.as_deref()), (None, Some("0.2.0")));
    assert!(engine.load(&newer, "newer", Kind::Cache).is_err());
    // With a proposal that is off.
    let fields = "(memory $second 1)";
    let new = kit::CachePolicy { fields, ..Default::default() }.component();
    let seen = inspect(&new).unwrap();
    assert_eq!((seen.kind, seen.memory_bytes), (Some(Kind::Cache), 5 << 16));
    assert!(seen.profile.unwrap_err().contains("multiple memories"));
    assert!(engine.load(&new, "new", Kind::Cache).is_err());
    // With an import.
    let import = "interface clock { now: func() -> u64; }\nworld clocked { import clock; include cache-policy; }";
    let clocked = kit::CachePolicy {
        imports: r#"(func $now (import "reprise:policy/clock@0.1.0" "now") (result i64))"#,
        start: "(drop (call $now))",
        ..Default::default()
    };
    let change =
        |wit: &str| if wit.contains("world cache-policy {") { format!("{wit}\n{import}") } else { wit.to_owned() };
    let seen = inspect(&kit::component(clocked.module(), "clocked", change)).unwrap();
    assert_eq!(seen.imports, ["reprise:policy/clock@0.1.0"]);
}

/// Versions of equal length leave every other byte where it is.
fn renamed(module: &[u8], from: &str, to: &str) -> Vec<u8> {
    let mut module = module.to_vec();
    while let Some(at) = module.windows(from.len()).position(|window| window == from.as_bytes()) {
        module[at..at + from.len()].copy_from_slice(to.as_bytes());
    }
    module
}

#[test]
fn a_version_before_a_release_is_not_taken_for_the_release() {
    let of = |version: &str| {
        let wit = version.to_owned();
        let module = wat::parse_str(format!("(module (memory (export \"memory\") 1) {})", exports(version))).unwrap();
        inspect(&kit::component(module, "cache-policy", move |text| text.replace("0.1.0", &wit))).unwrap().kind
    };
    assert_eq!(
        ["0.1.0", "0.1.9", "0.1.0-rc.1", "0.2.0", "1.1.0"].map(of),
        [Some(Kind::Cache), Some(Kind::Cache), None, None, None]
    );
}

/// The functions of world `cache-policy`, without sense.
fn exports(version: &str) -> String {
    format!(
        r#"(func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 0))
           (func (export "reprise:policy/setup@{version}#describe") (result i32) (i32.const 0))
           (func (export "reprise:policy/setup@{version}#configure") (param i32 i32) (result i32) (i32.const 0))
           (func (export "reprise:policy/cache@{version}#attach") (param i32 i32))
           (func (export "reprise:policy/cache@{version}#step") (param i32 i32 i32) (result i32) (i32.const 0))"#
    )
}

#[test]
fn no_damage_stops_the_telling() {
    let whole = reprise_policies_dist::component("lru").unwrap();
    for cut in (8..whole.len()).step_by(97) {
        let seen = inspect(&whole[..cut]).unwrap();
        assert_eq!(seen.form, Form::Component);
        assert!(seen.profile.is_err() || seen.kind.is_none(), "cut at {cut}");
    }
    for at in (8..whole.len()).step_by(53) {
        let mut damaged = whole.to_vec();
        damaged[at] ^= 0xff;
        assert_eq!(inspect(&damaged).unwrap().bytes, whole.len());
    }
}

#[test]
fn what_is_no_webassembly_is_not_told_of() {
    for (bytes, said) in [
        (&b""[..], "it is empty"),
        (b"\x7fELF\x02\x01\x01\0", "7f 45 4c 46"),
        (b"\0asm\x0e\0\x02\0", "unknown version"),
    ] {
        let error = inspect(bytes).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}
