"""Writes vectors.rs: the definition in core/src/prefix/mod.rs once more, on the `blake3` package from PyPI.

    pip install blake3 && python core/tests/prefix/vectors.py && rustfmt --edition 2024 core/tests/prefix/vectors.rs
"""

import json
from pathlib import Path

from blake3 import blake3

NAMESPACE_CONTEXT = "reprise 2026-11 namespace v1"
ENGINE_CONTEXT = "reprise 2026-11 engine keys v1"
SHOWN = (0, 1, 8, 16, 36)
BLOCKS = 37

# name, namespace, shift of the token rule, extras as (position, text)
CASES = [
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
        {
            "block_tokens": 64,
            "tenant": b"salt",
            "adapter": "a",
            "rank": 3,
            "ranks": 4,
            "extensions": {"k": "v"},
        },
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

    out = field(1, namespace["model"].encode())
    out += field(2, namespace["revision"].encode())
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


def text(value):
    return json.dumps(value, ensure_ascii=False)


def case(name, changes, shift, extras):
    namespace = {
        "model": "deepseek-v4-flash",
        "revision": "9b1f00d",
        "block_tokens": 128,
        "tenant": b"",
        "adapter": "",
        "rank": 0,
        "ranks": 1,
        "extensions": {},
    } | changes
    block_tokens = namespace["block_tokens"]
    root = blake3(material(namespace), derive_key_context=NAMESPACE_CONTEXT).digest()
    engine_key = blake3(material(namespace), derive_key_context=ENGINE_CONTEXT).digest()
    tokens = [(j * 2654435761) % 2**32 >> shift for j in range(BLOCKS * block_tokens)]
    digests = list(chain(root, block_tokens, tokens, extras))
    engine = blake3(bytes(range(32)), key=engine_key).digest()
    extensions = ", ".join(f"({text(k)}, {text(v)})" for k, v in namespace["extensions"].items())
    extra_list = ", ".join(f"({position}, {text(value)})" for position, value in extras)
    shown = ", ".join(f'({i}, "{digests[i].hex()}")' for i in SHOWN)
    return f"""Vector {{
        name: {text(name)},
        block_tokens: {block_tokens},
        tenant: &{list(namespace["tenant"])},
        adapter: {text(namespace["adapter"])},
        rank: ({namespace["rank"]}, {namespace["ranks"]}),
        extensions: &[{extensions}],
        shift: {shift},
        extras: &[{extra_list}],
        root: "{root.hex()}",
        digests: &[{shown}],
        engine: "{engine.hex()}",
    }},"""


HEADER = f"""//! Golden vectors, written by vectors.py with an independent implementation.

/// The digests of one sequence of {BLOCKS} blocks in one namespace of model `deepseek-v4-flash`, revision `9b1f00d`.
pub struct Vector {{
    pub name: &'static str,
    pub block_tokens: u32,
    pub tenant: &'static [u8],
    pub adapter: &'static str,
    pub rank: (u32, u32),
    pub extensions: &'static [(&'static str, &'static str)],
    /// Token j is (j * 2654435761 mod 2^32) >> shift.
    pub shift: u32,
    /// Position in tokens, and what is attached there, in order of the calls.
    pub extras: &'static [(u64, &'static str)],
    pub root: &'static str,
    /// Index of a block and its digest.
    pub digests: &'static [(usize, &'static str)],
    /// The digest for the engine's key 00 01 … 1f.
    pub engine: &'static str,
}}

/// Blocks of each sequence.
pub const BLOCKS: u32 = {BLOCKS};

"""

body = "\n    ".join(case(*c) for c in CASES)
path = Path(__file__).parent / "vectors.rs"
path.write_text(f"{HEADER}pub const VECTORS: &[Vector] = &[\n    {body}\n];\n", encoding="utf-8")
