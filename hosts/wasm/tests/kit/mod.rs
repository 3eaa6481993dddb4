//! Components written by hand in WAT, against the WIT of the repository.

use std::path::Path;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// A cache policy that knows nothing: the bodies of `step` (whose parameters are the events' address and count, and `$want`,
/// and whose result is the address of the answer) and of the `start` function, its imports, its memory, and further fields
/// of the module.
pub struct CachePolicy<'a> {
    pub step: &'a str,
    pub start: &'a str,
    pub imports: &'a str,
    pub memory: &'a str,
    pub fields: &'a str,
}

impl Default for CachePolicy<'_> {
    fn default() -> Self {
        Self { step: "i32.const 64", start: "", imports: "", memory: r#"(memory (export "memory") 4)"#, fields: "" }
    }
}

impl CachePolicy<'_> {
    /// The core module.
    pub fn module(&self) -> Vec<u8> {
        let Self { step, start, imports, memory, fields } = self;
        let text = format!(
            r#"(module
                {imports}
                {memory}
                (global $top (mut i32) (i32.const 4096))
                {fields}
                (func $start {start})
                (start $start)
                ;; A ring: what was given out is forgotten once the memory is used up.
                (func (export "cabi_realloc") (param i32 i32 i32) (param $bytes i32) (result i32)
                    (local $address i32)
                    (if (i32.gt_u (i32.add (global.get $top) (local.get $bytes)) (i32.const 262144))
                        (then (global.set $top (i32.const 4096))))
                    (local.set $address (global.get $top))
                    (global.set $top
                        (i32.and (i32.add (i32.add (global.get $top) (local.get $bytes)) (i32.const 7)) (i32.const -8)))
                    (local.get $address))
                ;; Description: name, version, kind `cache`, no admission, schema 0, no settings.
                (data (i32.const 0) "\20\00\00\00\04\00\00\00\24\00\00\00\05\00\00\00\01\00\00\00\00\00\00\00")
                (data (i32.const 32) "none0.1.0")
                (func (export "reprise:policy/setup@0.1.0#describe") (result i32) (i32.const 0))
                (func (export "reprise:policy/setup@0.1.0#configure") (param i32 i32) (result i32) (i32.const 64))
                (func (export "reprise:policy/cache@0.1.0#attach") (param i32 i32))
                (func (export "reprise:policy/cache@0.1.0#step")
                    (param $events i32) (param $words i32) (param $want i32) (result i32) {step}))"#
        );
        wat::parse_str(text).expect("the module is valid text")
    }

    /// The component, of world `cache-policy`.
    pub fn component(&self) -> Vec<u8> {
        component(self.module(), "cache-policy", str::to_owned)
    }
}

/// Makes a component of a core module and a world of the contract, whose text may be changed first.
pub fn component(mut module: Vec<u8>, world: &str, change: impl Fn(&str) -> String) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
    let folder = tempfile::tempdir().expect("a folder");
    for entry in std::fs::read_dir(wit).expect("the contract is there") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("text");
        std::fs::write(folder.path().join(path.file_name().expect("a name")), change(&text)).expect("a copy");
    }
    let (package, _) = resolve.push_dir(folder.path()).expect("the contract is valid WIT");
    let world = resolve.select_world(&[package], Some(world)).expect("the world is in the contract");
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false).expect("metadata fits");
    let mut encoder = ComponentEncoder::default();
    encoder.module(&module).and_then(|encoder| encoder.encode()).expect("the module fits the world")
}
