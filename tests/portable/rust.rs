//! The core in Rust. (Its digests are held to the vectors in core/tests/prefix/golden.rs.)

use reprise_core::{
    layout::{GroupLayout, Layout},
    model::{CacheType, Kind, Layers, ModelSpec, preset},
    plan::{Candidates, Cost, Lookup, Prices, RecordSizes},
};
use serde_json::{Value, from_value, json};

use crate::host::{vectors, words};

fn layout(case: &Value) -> (ModelSpec, Layout) {
    let model = &case["model"];
    let types = model["types"].as_array().unwrap().iter().map(|given| {
        let number = |name: &str| given[name].as_u64().unwrap() as u32;
        let parameter = number("parameter");
        CacheType {
            name: words(&given["name"]),
            group: words(&given["group"]),
            kind: match words(&given["kind"]).as_str() {
                "compressed" => Kind::Compressed { ratio: parameter },
                "windowed" => Kind::Windowed { window_tokens: parameter },
                "state" => Kind::State { rows: parameter },
                "draft" => Kind::Draft { window_tokens: parameter },
                "draft-state" => Kind::DraftState { rows: parameter },
                unknown => panic!("{unknown}"),
            },
            layers: Layers::new(from_value::<Vec<u16>>(given["layers"].clone()).unwrap()).unwrap(),
            row_bytes: number("row_bytes"),
            row_format: words(&given["row_format"]),
        }
    });
    let groups: Vec<String> = from_value(model["groups"].clone()).unwrap();
    let model = ModelSpec::new(words(&model["name"]), groups, types.collect::<Vec<_>>()).unwrap();
    let layout = Layout::new(&model, case["block_tokens"].as_u64().unwrap() as u32).unwrap();
    (model, layout)
}

fn group(group: &GroupLayout) -> Value {
    let types = group.types().iter().map(|laid| {
        json!({
            "name": laid.name(),
            "layers": laid.layers().iter().collect::<Vec<_>>(),
            "start": laid.bytes().start,
            "rows": laid.rows(),
            "row_bytes": laid.row_bytes(),
        })
    });
    json!({
        "name": group.name(),
        "role": format!("{:?}", group.role()).to_lowercase(),
        "fingerprint": group.fingerprint().to_string(),
        "record_bytes": group.record_bytes(),
        "slot_bytes": group.slot_bytes(),
        "types": types.collect::<Vec<_>>(),
        "sections": group.sections(),
    })
}

#[test]
fn rust_lays_no_model_out_differently() {
    for case in vectors("layouts") {
        let (model, layout) = layout(&case);
        assert_eq!(case["block_multiple"], model.block_multiple());
        assert_eq!(case["zero_replay_tokens"], model.zero_replay_tokens());
        assert_eq!(case["groups"], Value::Array(layout.groups().iter().map(group).collect()));
    }
    for case in vectors("presets") {
        let layout = Layout::new(&preset(&words(&case["name"])).unwrap(), 128).unwrap();
        let group = layout.group(&words(&case["group"])).unwrap();
        assert_eq!(case["record_bytes"], group.record_bytes());
        assert_eq!(case["fingerprint"], group.fingerprint().to_string());
    }
}

fn lookup(case: &Value) -> Lookup {
    let (prompt_tokens, matched_tokens, checkpoint_tokens, replay_tokens) = from_value(case["lookup"].clone()).unwrap();
    Lookup { prompt_tokens, matched_tokens, checkpoint_tokens, replay_tokens }
}

#[test]
fn rust_plans_and_prices_nothing_differently() {
    for case in vectors("plans") {
        let candidates = Candidates::new(&lookup(&case));
        let numbers: Vec<_> = candidates
            .as_slice()
            .iter()
            .map(|plan| json!([plan.computed_tokens, plan.adopted_tokens, plan.replayed_tokens]))
            .collect();
        assert_eq!(case["candidates"], Value::Array(numbers));
        let taken = candidates.as_slice()[case["min_compute"].as_u64().unwrap() as usize];
        assert_eq!(candidates.min_compute(), taken, "{case}");
    }
    for case in vectors("prices") {
        let candidates = Candidates::new(&lookup(&case));
        let (load_bytes_per_second, load_record_ns, token_ps, context_ps) = from_value(case["prices"].clone()).unwrap();
        let prices = Prices { load_bytes_per_second, load_record_ns, token_ps, context_ps };
        let (block_tokens, block_bytes, checkpoint_bytes, checkpoint_records) =
            from_value(case["sizes"].clone()).unwrap();
        let sizes = RecordSizes { block_tokens, block_bytes, checkpoint_bytes, checkpoint_records };
        let costs = candidates.as_slice().iter().map(|plan| {
            let Cost { load_bytes, load_ns, prefill_ns } = prices.cost(plan, &sizes);
            json!([load_bytes.to_string(), load_ns.to_string(), prefill_ns.to_string()])
        });
        assert_eq!(case["costs"], Value::Array(costs.collect()), "{case}");
        let taken = candidates.as_slice()[case["min_time"].as_u64().unwrap() as usize];
        assert_eq!(candidates.min_time(&prices, &sizes), taken, "{case}");
    }
}
