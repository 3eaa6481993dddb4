//! Components made here, as a host sees them.

use reprise_components_build::{CONTRACT, Error, Metadata, make};
use reprise_core::policy::Kind;
use reprise_wasm::{Form, Profile, inspect};

/// A checkpoint policy that names no position, as a compiler without bindings leaves it: a core module and no word of its world.
fn module() -> Vec<u8> {
    wat::parse_str(
        r#"(module
            (memory (export "memory") 2)
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
            (data (i32.const 0) "\20\00\00\00\04\00\00\00\24\00\00\00\05\00\00\00\00\00\00\00\00\00\00\00")
            (data (i32.const 32) "none0.1.0")
            (func (export "reprise:policy/setup@0.1.0#describe") (result i32) (i32.const 0))
            (func (export "reprise:policy/setup@0.1.0#configure") (param i32 i32) (result i32) (i32.const 64))
            (func (export "reprise:policy/checkpoints@0.1.0#choose")
                (param i64 i32 i32 i32 i32 i32 i32) (result i32) (i32.const 64)))"#,
    )
    .unwrap()
}

#[test]
fn what_is_embedded_is_not_lost_on_the_way_to_a_host() {
    let text = |text: &str| Some(text.to_owned());
    let metadata = Metadata {
        name: text("none"),
        version: text("1.2.3"),
        description: text("names nothing"),
        authors: text("Ada"),
        licenses: text("Apache-2.0"),
        source: text("https://example.org/none"),
        revision: text("4f0d"),
        language: Some(("WAT".to_owned(), "1".to_owned())),
    };
    let component = make(&module(), Some("checkpoint-policy"), &metadata).unwrap();
    let seen = inspect(&component).unwrap();
    assert_eq!((seen.form, seen.kind, seen.profile), (Form::Component, Some(Kind::Checkpoint), Ok(Profile::Integer)));
    assert_eq!((seen.modules, seen.memory_bytes, seen.contract.as_deref()), (1, 2 << 16, Some("0.1.0")));
    let said = seen.metadata;
    assert_eq!(said.languages.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["WAT"]);
    let embedded = Metadata {
        name: said.name,
        version: said.version,
        description: said.description,
        authors: said.authors,
        licenses: said.licenses,
        source: said.source,
        revision: said.revision,
        language: said.languages.into_iter().next().map(|tool| (tool.name, tool.version)),
    };
    assert_eq!(embedded, metadata);
    // What another tool made keeps what it says, but for what is given.
    let renamed = Metadata { version: text("1.2.4"), ..Metadata::default() };
    let again = inspect(&make(&component, None, &renamed).unwrap()).unwrap();
    assert_eq!((again.metadata.name.as_deref(), again.metadata.version.as_deref()), (Some("none"), Some("1.2.4")));
    assert_eq!(again.metadata.source.as_deref(), Some("https://example.org/none"));
}

#[test]
fn a_module_without_a_world_is_not_made_into_something() {
    let made = |bytes: &[u8], world: Option<&str>| make(bytes, world, &Metadata::default());
    assert!(matches!(made(&module(), None), Err(Error::NoWorld)));
    assert!(matches!(made(&module(), Some("cache")), Err(Error::UnknownWorld { .. })));
    let error = made(&module(), Some("cache-policy")).unwrap_err();
    assert!(matches!(&error, Error::Misfit(said) if said.contains("reprise:policy/cache@0.1.0")), "{error}");
    assert!(matches!(made(b"#!/bin/sh", None), Err(Error::NotWasm)));
}

#[test]
fn no_file_of_the_contract_is_left_out() {
    let mut files: Vec<_> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../wit"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let mut embedded: Vec<_> = CONTRACT.iter().map(|(name, _)| *name).collect();
    embedded.sort_unstable();
    assert_eq!(files, embedded);
}
