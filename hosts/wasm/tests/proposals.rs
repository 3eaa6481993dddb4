//! Every WebAssembly proposal that is switched off is switched off: one smallest use of each, inside a policy that is otherwise taken.

use reprise_core::policy::Kind;
use reprise_wasm::{Engine, Limits, LoadError, Profile};
use wasmparser::{Validator, WasmFeatures};

mod kit;

/// A smallest use of a proposal, and the same without it. Both are a module or a component by themselves.
struct Case {
    feature: WasmFeatures,
    /// Features that bring this one along.
    implied_by: WasmFeatures,
    with: &'static str,
    without: &'static str,
}

macro_rules! cases {
    ($($feature:ident $(<= $by:ident)?: $with:literal, $without:literal;)*) => {
        &[$(Case {
            feature: WasmFeatures::$feature,
            implied_by: WasmFeatures::empty()$(.union(WasmFeatures::$by))?,
            with: $with,
            without: $without,
        }),*]
    };
}

const SWITCHED_OFF: &[Case] = cases! {
    THREADS: "(module (func (atomic.fence)))", "(module (func (nop)))";
    SHARED_EVERYTHING_THREADS: "(module (global (shared mut i32) (i32.const 0)))", "(module (global (mut i32) (i32.const 0)))";
    SIMD: "(module (func (drop (v128.const i64x2 0 0))))", "(module (func (drop (i64.const 0))))";
    RELAXED_SIMD:
        "(module (func (param v128) (drop (i32x4.relaxed_trunc_f32x4_s (local.get 0)))))",
        "(module (func (param f32) (drop (i32.trunc_sat_f32_s (local.get 0)))))";
    TAIL_CALL: "(module (func $f (return_call $f)))", "(module (func $f (call $f)))";
    MULTI_MEMORY: "(module (memory 1) (memory 1))", "(module (memory 1))";
    MEMORY64: "(module (memory i64 1))", "(module (memory i32 1))";
    CUSTOM_PAGE_SIZES: "(module (memory 1 (pagesize 1)))", "(module (memory 1))";
    MEMORY_CONTROL:
        "(module (memory 1) (func (memory.discard (i32.const 0) (i32.const 0))))",
        "(module (memory 1) (func (memory.fill (i32.const 0) (i32.const 0) (i32.const 0))))";
    FUNCTION_REFERENCES <= GC: "(module (type $f (func)) (func (param (ref null $f))))", "(module (type $f (func)) (func (param funcref)))";
    GC: "(module (type (struct (field i32))))", "(module (type (func (param i32))))";
    GC_TYPES: "(module (table 1 externref))", "(module (table 1 funcref))";
    CUSTOM_DESCRIPTORS:
        "(module (rec (type $a (descriptor $b) (struct)) (type $b (describes $a) (struct))))",
        "(module (type (func)))";
    EXCEPTIONS: "(module (tag))", "(module (func))";
    LEGACY_EXCEPTIONS: "(module (func try end))", "(module (func block end))";
    EXTENDED_CONST: "(module (global i32 (i32.add (i32.const 1) (i32.const 2))))", "(module (global i32 (i32.const 3)))";
    WIDE_ARITHMETIC:
        "(module (func (param i64 i64) (result i64 i64) (i64.mul_wide_u (local.get 0) (local.get 1))))",
        "(module (func (param i64 i64) (result i64) (i64.mul (local.get 0) (local.get 1))))";
    STACK_SWITCHING: "(module (type $f (func)) (type (cont $f)))", "(module (type $f (func)))";
    COMPACT_IMPORTS: "(module (import \"m\" (item \"a\" (func)) (item \"b\" (func))))", "(module (import \"m\" \"a\" (func)))";
    CM_VALUES: "(component (type (component (import \"v\" (value string)))))", "(component (type (component (import \"v\" (func)))))";
    CM_NESTED_NAMES: "(component (import \"a:b:c/d\" (instance)))", "(component (import \"a:b/d\" (instance)))";
    CM_ASYNC: "(component (core func (canon backpressure.inc)))", "(component)";
    CM_ASYNC_STACKFUL:
        "(component (core module $m (func (export \"f\"))) (core instance $i (instantiate $m)) \
         (func async (canon lift (core func $i \"f\") async)))",
        "(component (core module $m (func (export \"f\"))) (core instance $i (instantiate $m)) \
         (func (canon lift (core func $i \"f\"))))";
    CM_MORE_ASYNC_BUILTINS: "(component (core func (canon subtask.cancel async)))", "(component)";
    CM_THREADING: "(component (core func (canon thread.index)))", "(component)";
    CM_ERROR_CONTEXT: "(component (core func (canon error-context.drop)))", "(component)";
    CM_FIXED_LENGTH_LISTS: "(component (type (list u32 4)))", "(component (type (list u32)))";
    CM_MAP: "(component (type (map string u32)))", "(component (type (list (tuple string u32))))";
    CM_GC:
        "(component (core type $t (func)) (core module $m (func (export \"f\"))) (core instance $i (instantiate $m)) \
         (func (canon lift (core func $i \"f\") gc)))",
        "(component (core module $m (func (export \"f\"))) (core instance $i (instantiate $m)) \
         (func (canon lift (core func $i \"f\"))))";
    CM64: "(component (core func (canon context.get i64 0)))", "(component)";
    CM_IMPLEMENTS:
        "(component (import \"a\" (implements \"b:c/d\") (instance)))",
        "(component (import \"a\" (instance)))";
    CM_CANON_NAMES:
        "(component (import \"a:b/c@0.1\" (version-suffix \".2\") (instance)))",
        "(component (import \"a:b/c@0.1.2\" (instance)))";
};

/// Parts of features that are on: they cannot be used without these.
const PARTS: WasmFeatures = WasmFeatures::CALL_INDIRECT_OVERLONG.union(WasmFeatures::BULK_MEMORY_OPT);

/// What a policy may use, profile by profile.
const FLOATS: WasmFeatures = WasmFeatures::FLOATS;
const SWITCHED_ON: WasmFeatures = FLOATS
    .union(WasmFeatures::COMPONENT_MODEL)
    .union(WasmFeatures::MUTABLE_GLOBAL)
    .union(WasmFeatures::SIGN_EXTENSION)
    .union(WasmFeatures::SATURATING_FLOAT_TO_INT)
    .union(WasmFeatures::MULTI_VALUE)
    .union(WasmFeatures::BULK_MEMORY)
    .union(WasmFeatures::REFERENCE_TYPES);

/// A policy that is taken, with a module or a component put into it that nothing uses.
fn policy_with(part: &str) -> Vec<u8> {
    const MODULE_SECTION: u8 = 1;
    const COMPONENT_SECTION: u8 = 4;
    let part = wat::parse_str(part).unwrap_or_else(|error| panic!("{part}: {error}"));
    let mut policy = kit::CachePolicy::default().component();
    policy.push(if part[4] == 1 { MODULE_SECTION } else { COMPONENT_SECTION });
    // LEB128 of two bytes is enough for all of them.
    let size = part.len();
    policy.extend([size as u8 | 0x80, u8::try_from(size >> 7).unwrap()]);
    policy.extend(part);
    policy
}

fn engine(profile: Profile) -> Engine {
    Engine::new(&Limits::of(profile)).unwrap()
}

#[test]
fn proposals_that_are_switched_off_are_not_let_in() {
    let engines = Profile::ALL.map(engine);
    for Case { feature, implied_by, with, without } in SWITCHED_OFF {
        let (refused, taken) = (policy_with(with), policy_with(without));
        // The case is what it claims to be: valid where everything is on, and not where this proposal alone is off.
        let valid = |features: WasmFeatures| Validator::new_with_features(features).validate_all(&refused).map(drop);
        valid(WasmFeatures::all()).unwrap_or_else(|error| panic!("`{with}`: {error}"));
        let rest = WasmFeatures::all().difference(feature.union(*implied_by));
        assert!(valid(rest).is_err(), "`{with}` does not use {feature:?}");
        for engine in &engines {
            let profile = engine.limits().profile;
            let floats = ["f32", "f64"].iter().any(|float| without.contains(float));
            let loaded = engine.load(&taken, "without.wasm", Kind::Cache);
            assert_eq!(loaded.is_ok(), !floats || profile != Profile::Integer, "`{without}` under {profile}");
            let loaded = engine.load(&refused, "with.wasm", Kind::Cache);
            let let_in = *feature == WasmFeatures::EXTENDED_CONST && profile == Profile::Interpreted;
            match loaded {
                Ok(_) => assert!(let_in, "`{with}` was let in under {profile}"),
                Err(error) => {
                    assert!(matches!(error, LoadError::Invalid { .. }) && !let_in, "`{with}` under {profile}: {error}");
                }
            }
        }
    }
}

#[test]
fn a_float_is_not_let_into_the_profile_of_integers() {
    let with = policy_with("(module (func (param f64) (drop (f64.add (local.get 0) (local.get 0)))))");
    let loads = |profile: Profile| engine(profile).load(&with, "floats.wasm", Kind::Cache).is_ok();
    assert_eq!(Profile::ALL.map(loads), [false, true, true]);
}

#[test]
fn shipped_policies_do_not_need_more_than_integers() {
    let engine = engine(Profile::Integer);
    for name in reprise_policies_dist::NAMES.iter().filter(|&&name| name != "core") {
        let bytes = reprise_policies_dist::component(name).unwrap();
        let seen = reprise_wasm::inspect(bytes).unwrap();
        assert_eq!(seen.profile, Ok(Profile::Integer), "{name}");
        engine.load(bytes, name, seen.kind.unwrap()).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn a_proposal_that_a_later_wasmtime_brings_is_not_forgotten_here() {
    let off = SWITCHED_OFF.iter().map(|case| case.feature).fold(WasmFeatures::empty(), WasmFeatures::union);
    let spoken_of = off.union(SWITCHED_ON).union(PARTS);
    assert_eq!(WasmFeatures::all().difference(spoken_of), WasmFeatures::empty(), "add a case");
}
