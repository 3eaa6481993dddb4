//! The component in wasmtime, called by the types that it declares: JSON in, JSON out, as a host in a dynamic language does it.

use std::fs;

use reprise_tests::repository;
use serde_json::{Map, Value, json};
use wasmtime::{
    Engine, Store,
    component::{Component, Instance, Linker, Type, Val},
};

/// The golden vectors of one kind.
pub fn vectors(kind: &str) -> Vec<Value> {
    match whole()[kind].take() {
        Value::Array(cases) if !cases.is_empty() => cases,
        other => panic!("no vectors of kind {kind}: {other}"),
    }
}

/// The whole file.
pub fn whole() -> Value {
    let path = repository("tests/portable/vectors.json");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("what vectors.py wrote")
}

/// A text of a vector.
pub fn words(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

struct Core {
    store: Store<()>,
    instance: Instance,
}

impl Core {
    fn new() -> Self {
        let engine = Engine::default();
        let bytes = reprise_policies_dist::component("core").expect("it is shipped");
        let component = Component::from_binary(&engine, bytes).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = Linker::new(&engine).instantiate(&mut store, &component).unwrap();
        Self { store, instance }
    }

    /// What a function answers: `{"ok": …}` or `{"err": …}` for a result.
    fn call(&mut self, interface: &str, name: &str, arguments: &[Value]) -> Value {
        let interface = format!("reprise:policy/{interface}@0.1.0");
        let interface = self.instance.get_export_index(&mut self.store, None, &interface).unwrap();
        let index = self.instance.get_export_index(&mut self.store, Some(&interface), name).unwrap();
        let function = self.instance.get_func(&mut self.store, index).unwrap();
        let ty = function.ty(&self.store);
        let arguments: Vec<Val> = ty.params().zip(arguments).map(|((_, ty), argument)| lower(argument, &ty)).collect();
        let mut answer = [Val::Bool(false)];
        function.call(&mut self.store, &arguments, &mut answer).unwrap();
        let [answer] = answer;
        lift(answer)
    }

    /// The same for a function that must not refuse.
    #[track_caller]
    fn ask(&mut self, interface: &str, name: &str, arguments: &[Value]) -> Value {
        let mut answer = self.call(interface, name, arguments);
        match answer.get_mut("ok") {
            Some(ok) => ok.take(),
            None => panic!("{interface}#{name}: {answer}"),
        }
    }
}

/// JSON as a value of this type. Fields may be in snake_case; a variant is `[case, payload]`.
fn lower(value: &Value, ty: &Type) -> Val {
    let number = || value.as_u64().unwrap_or_else(|| panic!("{value} is no {ty:?}"));
    match ty {
        Type::U8 => Val::U8(number() as u8),
        Type::U16 => Val::U16(number() as u16),
        Type::U32 => Val::U32(number() as u32),
        Type::U64 => Val::U64(number()),
        Type::String => Val::String(words(value)),
        Type::Option(ty) => Val::Option((!value.is_null()).then(|| Box::new(lower(value, &ty.ty())))),
        Type::List(ty) => Val::List(value.as_array().unwrap().iter().map(|element| lower(element, &ty.ty())).collect()),
        Type::Tuple(ty) => {
            Val::Tuple(ty.types().zip(value.as_array().unwrap()).map(|(ty, field)| lower(field, &ty)).collect())
        }
        Type::Record(ty) => {
            let field =
                |name: &str| value.get(name).or_else(|| value.get(name.replace('-', "_"))).unwrap_or(&Value::Null);
            Val::Record(ty.fields().map(|f| (f.name.to_owned(), lower(field(f.name), &f.ty))).collect())
        }
        Type::Variant(ty) => {
            let name = words(&value[0]);
            let case = ty.cases().find(|case| case.name == name).expect("a case of the variant");
            Val::Variant(name, case.ty.map(|ty| Box::new(lower(&value[1], &ty))))
        }
        unknown => panic!("the core takes no {unknown:?}"),
    }
}

/// A value as JSON, fields in snake_case.
fn lift(value: Val) -> Value {
    let payload = |value: Option<Box<Val>>| value.map_or(Value::Null, |value| lift(*value));
    match value {
        Val::Bool(value) => json!(value),
        Val::U8(value) => json!(value),
        Val::U16(value) => json!(value),
        Val::U32(value) => json!(value),
        Val::U64(value) => json!(value),
        Val::String(value) | Val::Enum(value) => json!(value),
        Val::List(values) | Val::Tuple(values) => values.into_iter().map(lift).collect(),
        Val::Record(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (name.replace('-', "_"), lift(value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Val::Variant(case, value) => json!([case, payload(value)]),
        Val::Option(value) => payload(value),
        Val::Result(Ok(value)) => json!({"ok": payload(value)}),
        Val::Result(Err(value)) => json!({"err": payload(value)}),
        unknown => panic!("the core gives no {unknown:?}"),
    }
}

fn hex(bytes: &Value) -> String {
    bytes.as_array().unwrap().iter().map(|byte| format!("{:02x}", byte.as_u64().unwrap())).collect()
}

#[test]
fn the_component_names_no_block_differently() {
    let mut core = Core::new();
    let blocks = whole()["blocks"].as_u64().unwrap() as u32;
    for case in vectors("digests") {
        let mut namespace = case["namespace"].clone();
        let block_tokens = namespace["block_tokens"].as_u64().unwrap() as u32;
        let pairs: Vec<_> = namespace["extensions"].as_object().unwrap().iter().map(|(k, v)| json!([k, v])).collect();
        namespace["extensions"] = Value::Array(pairs);
        let shift = case["shift"].as_u64().unwrap();
        let tokens: Vec<u32> = (0..blocks * block_tokens).map(|j| j.wrapping_mul(2_654_435_761) >> shift).collect();
        let extras: Value = case["extras"]
            .as_array()
            .unwrap()
            .iter()
            .map(|extra| json!({"position": extra[0], "bytes": words(&extra[1]).as_bytes()}))
            .collect();
        assert_eq!(case["root"], hex(&core.ask("prefix", "root", &[namespace.clone()])));
        let named = hex(&core.ask("prefix", "digests", &[namespace.clone(), Value::Null, json!(tokens), extras]));
        for digest in case["digests"].as_array().unwrap() {
            let start = 64 * digest[0].as_u64().unwrap() as usize;
            assert_eq!(digest[1], named[start..start + 64], "{}", case["name"]);
        }
        let key: Vec<u8> = (0..32).collect();
        assert_eq!(case["engine"], hex(&core.ask("prefix", "engine-digests", &[namespace, json!(key)])));
    }
}

#[test]
fn the_component_lays_no_model_out_differently() {
    let mut core = Core::new();
    for case in vectors("layouts") {
        let mut model = case["model"].clone();
        for cache_type in model["types"].as_array_mut().unwrap() {
            cache_type["kind"] = json!([cache_type["kind"], cache_type["parameter"]]);
        }
        let mut laid = core.ask("layout", "layout-of", &[model, case["block_tokens"].clone()]);
        for group in laid["groups"].as_array_mut().unwrap() {
            group["fingerprint"] = hex(&group["fingerprint"]).into();
        }
        for field in ["block_multiple", "zero_replay_tokens", "groups"] {
            assert_eq!(laid[field], case[field], "{field}");
        }
    }
    for case in vectors("presets") {
        let model = core.ask("layout", "preset", &[case["name"].clone()]);
        let laid = core.ask("layout", "layout-of", &[model, json!(128)]);
        let mut groups = laid["groups"].as_array().unwrap().iter();
        let group = groups.find(|group| group["name"] == case["group"]).unwrap();
        assert_eq!(group["record_bytes"], case["record_bytes"], "{case}");
        assert_eq!(case["fingerprint"], hex(&group["fingerprint"]), "{case}");
    }
}

#[test]
fn the_component_plans_and_prices_nothing_differently() {
    let mut core = Core::new();
    let named = |names: &[&str], values: &Value| -> Value {
        Value::Object(names.iter().zip(values.as_array().unwrap()).map(|(&n, v)| (n.to_owned(), v.clone())).collect())
    };
    let lookup = |case: &Value| {
        named(&["prompt_tokens", "matched_tokens", "checkpoint_tokens", "replay_tokens"], &case["lookup"])
    };
    let numbers = |plan: &Value| json!([plan["computed_tokens"], plan["adopted_tokens"], plan["replayed_tokens"]]);
    for case in vectors("plans") {
        let candidates = core.ask("plan", "candidates", &[lookup(&case)]);
        assert_eq!(case["candidates"], candidates.as_array().unwrap().iter().map(numbers).collect::<Value>());
        let taken = core.ask("plan", "min-compute", &[lookup(&case)]);
        assert_eq!(taken, candidates[case["min_compute"].as_u64().unwrap() as usize], "{case}");
    }
    for case in vectors("prices") {
        let prices = named(&["load_bytes_per_second", "load_record_ns", "token_ps", "context_ps"], &case["prices"]);
        let sizes = named(&["block_tokens", "block_bytes", "checkpoint_bytes", "checkpoint_records"], &case["sizes"]);
        let asked = [lookup(&case), prices, sizes];
        let priced = core.ask("pricing", "costs", &asked);
        let costs = priced.as_array().unwrap().iter().map(|priced| {
            let cost = &priced["cost"];
            [&cost["load_bytes"], &cost["load_ns"], &cost["prefill_ns"]].map(Value::to_string)
        });
        assert_eq!(case["costs"], costs.map(|cost| json!(cost)).collect::<Value>(), "{case}");
        let taken = core.ask("pricing", "min-time", &asked);
        assert_eq!(taken, priced[case["min_time"].as_u64().unwrap() as usize], "{case}");
    }
}

#[test]
fn what_cannot_be_priced_is_an_error_not_a_trap() {
    let mut core = Core::new();
    let lookup = |prompt: u32, matched: u32, checkpoint: u32| json!({"prompt_tokens": prompt, "matched_tokens": matched, "checkpoint_tokens": checkpoint});
    let sizes = |block_tokens: u32, block_bytes: u64| json!({"block_tokens": block_tokens, "block_bytes": block_bytes, "checkpoint_bytes": 1, "checkpoint_records": 1});
    for (lookup, sizes, refusal) in [
        (lookup(100, 100, 0), sizes(1, 1), "no-token-left"),
        (lookup(100, 50, 51), sizes(1, 1), "checkpoint-past-match"),
        (lookup(100, 50, 0), sizes(0, 1), "no-block-tokens"),
        (lookup(100, 50, 0), sizes(1, u64::MAX), "too-many-bytes"),
    ] {
        let prices = core.call("pricing", "default-prices", &[]);
        let asked = [lookup, prices, sizes];
        for function in ["costs", "min-time"] {
            assert_eq!(core.call("pricing", function, &asked), json!({"err": refusal}), "{function}");
        }
    }
}
