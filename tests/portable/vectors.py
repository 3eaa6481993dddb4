"""Writes vectors.json: what the core must give in every host, computed by another implementation of its documentation, on the
`blake3` package from PyPI.

    pip install blake3==1.0.11 && python tests/portable/vectors.py

Definitions: core/src/prefix/mod.rs (digests), core/src/layout and core/src/model/fingerprint.rs (layouts), core/src/plan (plans and
prices).
"""

import json
from math import lcm
from pathlib import Path

from blake3 import blake3

NAMESPACE_CONTEXT = "reprise 2026-11 namespace v1"
ENGINE_CONTEXT = "reprise 2026-11 engine keys v1"
MODEL, REVISION = "deepseek-v4-flash", "9b1f00d"
SHOWN = (0, 1, 8, 16, 36)
BLOCKS = 37

# name, namespace, shift of the token rule, extras as (position, text)
DIGESTS = [
    ("plain", {}, 12, []),
    ("blocks of one token, full width", {"block_tokens": 1}, 0, []),
    ("blocks of 4", {"block_tokens": 4}, 12, []),
    ("blocks of 16", {"block_tokens": 16}, 12, []),
    ("blocks of 32", {"block_tokens": 32}, 12, []),
    ("blocks of 48", {"block_tokens": 48}, 12, []),
    ("blocks of 64", {"block_tokens": 64}, 12, []),
    ("blocks of 128, full width", {"block_tokens": 128}, 0, []),
    ("blocks of 256", {"block_tokens": 256}, 12, []),
    ("blocks of 512", {"block_tokens": 512}, 12, []),
    ("a tenant", {"tenant": bytes(range(32))}, 12, []),
    ("an adapter", {"adapter": "sql@3f2a"}, 12, []),
    ("the second of eight ranks", {"rank": 1, "ranks": 8}, 12, []),
    ("extensions", {"extensions": {"rope-scaling": "yarn:40", "kv": "fp8", "é": ""}}, 12, []),
    (
        "all at once, with extras",
        {"block_tokens": 64, "tenant": b"salt", "adapter": "a", "rank": 3, "ranks": 4, "extensions": {"k": "v"}},
        12,
        [(70, "second in block 1"), (64, "first in block 1"), (64, "at the same place"), (1024, ""), (1087, "the last token of block 16")],
    ),
    ("extras in large blocks", {"block_tokens": 512}, 12, [(0, "image"), (18431, "at the end of block 35")]),
]


def material(namespace):
    def field(tag, value):
        return bytes([tag]) + len(value).to_bytes(8, "little") + value

    def u32(value):
        return value.to_bytes(4, "little")

    out = field(1, MODEL.encode())
    out += field(2, REVISION.encode())
    out += field(3, u32(namespace["block_tokens"]))
    out += field(4, namespace["tenant"])
    out += field(5, namespace["adapter"].encode())
    out += field(6, u32(namespace["rank"]))
    out += field(7, u32(namespace["ranks"]))
    for key, value in sorted((k.encode(), v.encode()) for k, v in namespace["extensions"].items()):
        out += field(8, key) + field(9, value)
    return out


def chain(root, block_tokens, tokens, extras):
    digest = root
    for i in range(len(tokens) // block_tokens):
        leaf = blake3(key=root)
        for token in tokens[i * block_tokens : (i + 1) * block_tokens]:
            leaf.update(token.to_bytes(4, "little"))
        for position, text in sorted(extras, key=lambda extra: extra[0]):
            if position // block_tokens == i:
                leaf.update(len(text).to_bytes(8, "little") + text.encode())
        digest = blake3(digest + leaf.digest()).digest()
        yield digest


def digests(name, changes, shift, extras):
    plain = {"block_tokens": 128, "tenant": b"", "adapter": "", "rank": 0, "ranks": 1, "extensions": {}}
    namespace = plain | changes
    block_tokens = namespace["block_tokens"]
    root = blake3(material(namespace), derive_key_context=NAMESPACE_CONTEXT).digest()
    engine_key = blake3(material(namespace), derive_key_context=ENGINE_CONTEXT).digest()
    tokens = [(j * 2654435761) % 2**32 >> shift for j in range(BLOCKS * block_tokens)]
    named = list(chain(root, block_tokens, tokens, extras))
    shown = namespace | {"tenant": list(namespace["tenant"])}
    return {
        "name": name,
        "namespace": {"model": MODEL, "revision": REVISION} | shown,
        "shift": shift,
        "extras": extras,
        "root": root.hex(),
        "digests": [(i, named[i].hex()) for i in SHOWN],
        "engine": blake3(bytes(range(32)), key=engine_key).hexdigest(),
    }


PAGE_BYTES = 4096
SECTION_BYTES = 64 << 10
KINDS = {"compressed": 1, "windowed": 2, "state": 3, "draft": 4, "draft-state": 5}
ROLES = {"block": 1, "checkpoint": 2, "draft": 3}


def cache_type(name, group, kind, parameter, layers, row_bytes, row_format="bf16"):
    return {
        "name": name,
        "group": group,
        "kind": kind,
        "parameter": parameter,
        "layers": list(layers),
        "row_bytes": row_bytes,
        "row_format": row_format,
    }


HYBRID = [
    cache_type("sparse", "history", "compressed", 4, range(2, 60, 2), 584, "fp8+bf16-rope"),
    cache_type("index", "history", "compressed", 4, range(2, 60, 2), 68, "fp4"),
    cache_type("heavy", "history", "compressed", 128, range(3, 60, 2), 584, "fp8+bf16-rope"),
    cache_type("swa", "window", "windowed", 128, range(60), 584, "fp8+bf16-rope"),
    cache_type("tail", "window", "state", 3, [5, 7, 1000], 1024),
    cache_type("draft", "draft", "draft", 128, [60], 584, "fp8+bf16-rope"),
    cache_type("draft-tail", "draft", "draft-state", 1, [60], 12),
]
PLAIN = [cache_type("kv", "history", "compressed", 1, range(3), 100)]

# name, groups with their roles, types, tokens of a block
LAYOUTS = [
    ("hybrid", {"history": "block", "window": "checkpoint", "draft": "draft"}, HYBRID, 128),
    ("hybrid", {"history": "block", "window": "checkpoint", "draft": "draft"}, HYBRID, 1024),
    ("plain", {"history": "block"}, PLAIN, 7),
]


def rows(kind, parameter, block_tokens):
    return block_tokens // parameter if kind == "compressed" else parameter


def fingerprint(role, block_tokens, types):
    def u32(value):
        return value.to_bytes(4, "little")

    def text(value):
        return u32(len(value.encode())) + value.encode()

    out = text("reprise layout") + u32(1) + bytes([ROLES[role]]) + u32(block_tokens) + u32(len(types))
    for t in types:
        out += text(t["name"]) + bytes([KINDS[t["kind"]]]) + u32(t["parameter"]) + u32(t["row_bytes"]) + text(t["row_format"])
        out += u32(len(t["layers"])) + b"".join(u32(layer) for layer in t["layers"])
    return blake3(out).hexdigest()


def sections(placed, record_bytes):
    """A section is a run of whole layers of at least 64 KiB that ends at a page; what would leave too small a rest goes on."""
    ends, start = [], 0
    for t in placed:
        layer_bytes = t["rows"] * t["row_bytes"]
        type_end = (t["start"] + layer_bytes * len(t["layers"])) // PAGE_BYTES * PAGE_BYTES
        for index in range(len(t["layers"])):
            cut = (t["start"] + layer_bytes * (index + 1)) // PAGE_BYTES * PAGE_BYTES
            rest = record_bytes - cut if cut == type_end else type_end - cut
            if cut - start >= SECTION_BYTES and rest >= SECTION_BYTES:
                ends.append(cut)
                start = cut
    return ends + [record_bytes]


def group(name, role, types, block_tokens):
    placed, record_bytes = [], 0
    for t in types:
        count = rows(t["kind"], t["parameter"], block_tokens)
        placed.append(
            {"name": t["name"], "layers": t["layers"], "start": record_bytes, "rows": count, "row_bytes": t["row_bytes"]}
        )
        record_bytes += count * t["row_bytes"] * len(t["layers"])
    return {
        "name": name,
        "role": role,
        "fingerprint": fingerprint(role, block_tokens, types),
        "record_bytes": record_bytes,
        "slot_bytes": -(-record_bytes // PAGE_BYTES) * PAGE_BYTES,
        "types": placed,
        "sections": sections(placed, record_bytes),
    }


def layout(name, groups, types, block_tokens):
    windowed = [t for t in types if t["kind"] in ("windowed", "draft")]
    return {
        "model": {"name": name, "groups": list(groups), "types": types},
        "block_tokens": block_tokens,
        "block_multiple": lcm(*(t["parameter"] for t in types if t["kind"] == "compressed")),
        "zero_replay_tokens": sum(t["parameter"] * len(t["layers"]) for t in windowed),
        "groups": [group(g, role, [t for t in types if t["group"] == g], block_tokens) for g, role in groups.items()],
    }


# Name of a preset, group, bytes of a record with blocks of 128 tokens: the numbers that DeepSeek and others have published.
PRESETS = [
    ("v4-pro", "history", 644_024, "275b360982e113cc3eef069c7e5831175334dc17db4910f48120689b2beaf2b3"),
    ("llama-3.1-8b", "history", 128 * 32 * 4_096, "970e503d3333b3e53e758e0f52f3e1d3a5ca3eee1610623bd704a9d16c520c7d"),
    ("gpt-oss-20b", "window", 128 * 12 * 2_048, "2ca1bc90624f6251c4bb00494408a44ccf5f88b2dc4a6e2d2445624d07c88d09"),
]

# Prompt, matched, checkpoint, Z
LOOKUPS = [
    (1_000, 0, 0, None),
    (20_000, 12_800, 12_800, None),
    (20_000, 12_800, 6_400, None),
    (20_000, 12_800, 1_280, 7_808),
    (20_000, 12_800, 4_992, 7_808),
    (20_000, 12_800, 0, 7_808),
    (20_000, 7_808, 0, 7_808),
    (4_294_967_295, 4_294_967_168, 128, 7_808),
]
# Load bytes a second, nanoseconds a record, picoseconds a token, picoseconds for 1,024 tokens of context
PRICES = [
    (712_000_000, 49_000, 17_900_000, 61_700),
    (285_000_000, 20_000, 17_900_000, 61_700),
    (0, 1, 1, 0),
]
# Block tokens, block bytes, checkpoint bytes, checkpoint records
SIZES = [(128, 644_024, 5_174_272, 1), (64, 100, 0, 0)]
MOST = 2**64 - 1


def plans(prompt, matched, checkpoint, replay):
    """Computed, adopted and replayed tokens of each exact plan."""
    found = [(prompt, 0, 0)]
    if checkpoint > 0:
        found.append((prompt - checkpoint, checkpoint, 0))
    if replay is not None and matched > replay:
        found.append((prompt - matched + replay, matched, replay))
    return found


def cost(plan, prices, sizes):
    """Bytes to load, nanoseconds to load them, nanoseconds to compute the rest."""
    computed, adopted, replayed = plan
    bytes_a_second, record_ns, token_ps, context_ps = prices
    block_tokens, block_bytes, checkpoint_bytes, checkpoint_records = sizes
    checkpoints = 1 if adopted > 0 and replayed == 0 else 0
    blocks = adopted // block_tokens
    load_bytes = blocks * block_bytes + checkpoints * checkpoint_bytes
    records = blocks + checkpoints * checkpoint_records
    load_ns = load_bytes * 10**9 // max(bytes_a_second, 1) + records * record_ns
    start = adopted - replayed
    end = min(start + computed, 2**32 - 1)
    places = (end - start) * max(start + end - 1, 0) // 2
    prefill_ps = (end - start) * token_ps + places * context_ps // 1024
    return load_bytes, min(load_ns, MOST), min(prefill_ps // 1000, MOST)


def priced(lookup, prices, sizes):
    candidates = plans(*lookup)
    costs = [cost(plan, prices, sizes) for plan in candidates]
    least = min(range(len(costs)), key=lambda i: (min(costs[i][1] + costs[i][2], MOST), candidates[i][1]))
    # As text: JSON readers may take numbers for floats.
    texts = [[str(number) for number in cost] for cost in costs]
    return {"lookup": lookup, "prices": prices, "sizes": sizes, "costs": texts, "min_time": least}


def planned(lookup):
    candidates = plans(*lookup)
    least = min(range(len(candidates)), key=lambda i: (candidates[i][0], candidates[i][1]))
    return {"lookup": lookup, "candidates": candidates, "min_compute": least}


vectors = {
    "blocks": BLOCKS,
    "digests": [digests(*case) for case in DIGESTS],
    "layouts": [layout(*case) for case in LAYOUTS],
    "presets": [dict(zip(("name", "group", "record_bytes", "fingerprint"), preset)) for preset in PRESETS],
    "plans": [planned(lookup) for lookup in LOOKUPS],
    "prices": [priced(lookup, prices, sizes) for lookup in LOOKUPS for prices in PRICES for sizes in SIZES],
}


def lines(value, depth=0):
    """JSON with one line for each case."""
    if depth == 2 or not isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    pad = " " * (depth + 1)
    if isinstance(value, dict):
        inner = [f"{pad}{json.dumps(key)}: {lines(item, depth + 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(inner) + "\n" + " " * depth + "}"
    return "[\n" + ",\n".join(pad + lines(item, depth + 1) for item in value) + "\n" + " " * depth + "]"


Path(__file__).with_name("vectors.json").write_text(lines(vectors) + "\n", encoding="utf-8")
