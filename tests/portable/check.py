"""Holds the core in Python to the golden vectors: python check.py core.wasm vectors.json"""

import json
import sys
from types import SimpleNamespace

from wasmtime import Engine, Store
from wasmtime.component import Component, Linker, Record, Variant


class Core:
    """The component's functions, by interface and name."""

    def __init__(self, path):
        engine = Engine()
        self.store = Store(engine)
        self.instance = Linker(engine).instantiate(self.store, Component.from_file(engine, path))

    def __call__(self, interface, name, *arguments):
        interface = self.instance.get_export_index(self.store, f"reprise:policy/{interface}@0.1.0")
        function = self.instance.get_func(self.store, self.instance.get_export_index(self.store, name, interface))
        return function(self.store, *arguments)


def record(**fields):
    """A record; its fields are in kebab-case on the other side."""
    made = Record()
    made.__dict__.update({name.replace("_", "-"): value for name, value in fields.items()})
    return made


def fields(made):
    """The fields of a record in snake_case."""
    return SimpleNamespace(**{name.replace("-", "_"): value for name, value in vars(made).items()})


def same(found, expected, what):
    assert found == expected, f"{what}: {found} instead of {expected}"


def digests(core, vectors):
    for case in vectors["digests"]:
        given = case["namespace"] | {
            "tenant": bytes(case["namespace"]["tenant"]),
            "extensions": list(case["namespace"]["extensions"].items()),
        }
        block_tokens, namespace = given["block_tokens"], record(**given)
        tokens = [(j * 2654435761) % 2**32 >> case["shift"] for j in range(vectors["blocks"] * block_tokens)]
        extras = [record(position=position, bytes=text.encode()) for position, text in case["extras"]]
        same(core("prefix", "root", namespace).hex(), case["root"], case["name"])
        named = core("prefix", "digests", namespace, None, tokens, extras)
        for block, digest in case["digests"]:
            same(named[32 * block : 32 * block + 32].hex(), digest, f"{case['name']}, block {block}")
        # The second half from where the first one ends.
        if not extras:
            mark = record(digest=named[32 * 8 : 32 * 9], blocks=9)
            same(core("prefix", "digests", namespace, mark, tokens[9 * block_tokens :], []), named[32 * 9 :], case["name"])
        same(core("prefix", "engine-digests", namespace, bytes(range(32))).hex(), case["engine"], case["name"])
    nobody = record(**(given | {"model": ""}))
    same(core("prefix", "root", nobody).tag, "namespace", "a namespace without a model")


def layouts(core, vectors):
    for case in vectors["layouts"]:
        model = case["model"]
        types = [
            record(
                name=t["name"],
                group=t["group"],
                kind=Variant(t["kind"], t["parameter"]),
                layers=t["layers"],
                row_bytes=t["row_bytes"],
                row_format=t["row_format"],
            )
            for t in model["types"]
        ]
        given = record(name=model["name"], groups=model["groups"], types=types)
        laid = fields(core("layout", "layout-of", given, case["block_tokens"]))
        same(laid.block_multiple, case["block_multiple"], "block-multiple")
        same(laid.zero_replay_tokens, case["zero_replay_tokens"], "zero-replay-tokens")
        same(len(laid.groups), len(case["groups"]), "groups")
        for found, expected in zip(map(fields, laid.groups), case["groups"]):
            found.fingerprint = found.fingerprint.hex()
            found.types = [vars(fields(t)) for t in found.types]
            same(vars(found), expected, f"group {expected['name']} of {model['name']}")
    for preset in vectors["presets"]:
        laid = fields(core("layout", "layout-of", core("layout", "preset", preset["name"]), 128))
        found = next(group for group in map(fields, laid.groups) if group.name == preset["group"])
        same(found.record_bytes, preset["record_bytes"], preset["name"])
        same(found.fingerprint.hex(), preset["fingerprint"], preset["name"])
    same(core("layout", "preset", "v5").tag, "name", "an unknown preset")


def lookup(numbers):
    return record(**dict(zip(("prompt_tokens", "matched_tokens", "checkpoint_tokens", "replay_tokens"), numbers)))


def plan(made):
    made = fields(made)
    return [made.computed_tokens, made.adopted_tokens, made.replayed_tokens]


def plans(core, vectors):
    for case in vectors["plans"]:
        candidates = [plan(made) for made in core("plan", "candidates", lookup(case["lookup"]))]
        same(candidates, case["candidates"], case["lookup"])
        taken = plan(core("plan", "min-compute", lookup(case["lookup"])))
        same(taken, case["candidates"][case["min_compute"]], case["lookup"])
    same(core("plan", "min-compute", lookup((100, 100, 0, None))), "no-token-left", "a prompt that is found whole")
    for case in vectors["prices"]:
        prices = record(**dict(zip(("load_bytes_per_second", "load_record_ns", "token_ps", "context_ps"), case["prices"])))
        sizes = record(**dict(zip(("block_tokens", "block_bytes", "checkpoint_bytes", "checkpoint_records"), case["sizes"])))
        asked = (lookup(case["lookup"]), prices, sizes)
        priced = [fields(made) for made in core("pricing", "costs", *asked)]
        costs = [fields(made.cost) for made in priced]
        same([[str(c.load_bytes), str(c.load_ns), str(c.prefill_ns)] for c in costs], case["costs"], case["lookup"])
        taken = fields(core("pricing", "min-time", *asked))
        same(plan(taken.plan), plan(priced[case["min_time"]].plan), f"{case['lookup']} at {case['prices']}")


core = Core(sys.argv[1])
with open(sys.argv[2], encoding="utf-8") as file:
    vectors = json.load(file)
for check in (digests, layouts, plans):
    check(core, vectors)
print(f"{sum(len(vectors[kind]) for kind in ('digests', 'layouts', 'presets', 'plans', 'prices'))} vectors hold")
