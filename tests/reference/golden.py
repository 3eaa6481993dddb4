#!/usr/bin/env python3
"""Writes tests/model/data/*.json: logits and caches of tiny random DeepSeek-V4 models as `transformers` computes them.

    pip install torch transformers==5.24.0
    python3 golden.py

`transformers` is the judge of the Rust model in tests/model. Both draw the same random weights: a weight is a function of the
seed, its tensor's name and its place in it (tests/model/src/weights.rs). So the files hold a shape, a seed, tokens and results.

What is changed in `transformers`, in memory, before it is used:

- It computes norms, softmaxes, rotations and scores in float32 whatever the model's type. Here these are float64, so results
  agree to 1e-10 instead of 1e-5.
- `topk` leaves open which of equal index scores it takes. Here it is a stable sort: the lowest index. Rectified scores are
  exactly 0 if no head matches, so this happens in small models; the script prints how often it decides.

The draft layer is not in `transformers`. Its result is put together here from the judge's own decoder layer, norms and head.
"""

import importlib.machinery
import importlib.util
import json
import math
import pathlib
import platform
import sys

import numpy
import torch
import transformers
from transformers import DeepseekV4Config, DynamicCache

DATA = pathlib.Path(__file__).parent.parent / "model" / "data"
W, C, H = "window", "csa", "hca"
LAYER_TYPES = {W: "sliding_attention", C: "compressed_sparse_attention", H: "heavily_compressed_attention"}

# Shape::small of the Rust model.
SMALL = {
    "vocab": 64, "hidden": 24, "heads": 2, "head_dim": 16, "rope_dim": 4, "q_lora_rank": 16, "o_groups": 2,
    "o_lora_rank": 8, "window": 16, "csa_ratio": 4, "hca_ratio": 16, "index_heads": 4, "index_head_dim": 8,
    "index_topk": 8, "hc_mult": 2, "hc_sinkhorn_iters": 4, "hc_eps": 1e-6, "experts": 4, "experts_per_token": 2,
    "moe_intermediate": 16, "routed_scaling_factor": 1.5, "swiglu_limit": 10.0, "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0, "compress_rope_theta": 160000.0, "layers": [W, W, C, H, C, H, C], "hash_layers": 2,
    "draft": True,
}  # fmt: skip

# As V4-Pro begins, with other sizes everywhere and a limit that SwiGLU reaches.
OTHER = SMALL | {
    "vocab": 48, "hidden": 32, "heads": 4, "head_dim": 12, "rope_dim": 6, "q_lora_rank": 20, "o_groups": 2,
    "o_lora_rank": 6, "index_heads": 16, "index_head_dim": 10, "index_topk": 5, "hc_mult": 4, "hc_sinkhorn_iters": 20,
    "experts": 6, "experts_per_token": 3, "moe_intermediate": 10, "routed_scaling_factor": 2.5, "swiglu_limit": 0.7,
    "layers": [H, H, C, H, C, W], "hash_layers": 3,
}  # fmt: skip

PUBLISHED_RATIOS = SMALL | {"window": 128, "hca_ratio": 128}


def run(calls, caches_of=()):
    return {"calls": calls, "caches_of": list(caches_of)}


# The calls of a run are the numbers of tokens given to the model at once. 198 tokens end within an entry, 192 with one of each kind.
CASES = {
    "small": (SMALL, 1, 198, {
        "prefill": run([198]),
        "chunked": run([7, 1, 33, 2, 64, 91], [1, 2, 3]),
        "aligned": run([100, 92], [1, 2, 3]),
        "decode": run([150] + [1] * 48),
    }),
    "other": (OTHER, 2, 198, {
        "prefill": run([198]),
        "chunked": run([3, 5, 1, 50, 16, 123], [3, 4, 5]),
        "aligned": run([192], [3, 4]),
        "decode": run([61] + [1] * 137),
    }),
    "published-ratios": (PUBLISHED_RATIOS, 3, 300, {
        "prefill": run([300]),
        "chunked": run([130, 1, 1, 100, 68], [2, 3]),
        "decode": run([250] + [1] * 50),
    }),
}  # fmt: skip


# --------------------------------------------------------------------------------------------------- the judge


class InDouble(importlib.machinery.SourceFileLoader):
    """Loads a module of transformers with float64 for float32, and with ties of index scores decided."""

    def get_code(self, fullname):
        source = self.get_data(self.path).decode()
        tied = "index_scores.topk(top_k, dim=-1).indices"
        assert source.count(tied) == 2
        source = source.replace(tied, "_select(index_scores, top_k)")
        for single, double in (
            ("torch.float32", "torch.float64"),
            (".float()", ".double()"),
            ("dtype=torch.float)", "dtype=torch.float64)"),
        ):
            assert single in source
            source = source.replace(single, double)
        return compile(source, self.path, "exec")


ties = 0


def select(scores, k):
    global ties
    ordered = scores.sort(dim=-1, descending=True, stable=True)
    if 0 < k < scores.shape[-1]:
        last, next_one = ordered.values[..., k - 1], ordered.values[..., k]
        ties += int(((last == next_one) & last.isfinite()).sum())
    return ordered.indices[..., :k]


def load_judge():
    name = "transformers.models.deepseek_v4.modeling_deepseek_v4"
    path = importlib.util.find_spec(name).origin
    spec = importlib.util.spec_from_file_location(name, path, loader=InDouble(name, path))
    module = importlib.util.module_from_spec(spec)
    module._select = select
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def config_of(shape, layers, hash_layers):
    return DeepseekV4Config(
        vocab_size=shape["vocab"],
        hidden_size=shape["hidden"],
        moe_intermediate_size=shape["moe_intermediate"],
        num_hidden_layers=len(layers),
        num_attention_heads=shape["heads"],
        head_dim=shape["head_dim"],
        partial_rotary_factor=shape["rope_dim"] / shape["head_dim"],
        q_lora_rank=shape["q_lora_rank"],
        num_experts_per_tok=shape["experts_per_token"],
        n_routed_experts=shape["experts"],
        routed_scaling_factor=shape["routed_scaling_factor"],
        rope_theta=shape["rope_theta"],
        compress_rope_theta=shape["compress_rope_theta"],
        layer_types=[LAYER_TYPES[layer] for layer in layers],
        mlp_layer_types=["hash_moe" if i < hash_layers else "moe" for i in range(len(layers))],
        compress_rates={LAYER_TYPES[C]: shape["csa_ratio"], LAYER_TYPES[H]: shape["hca_ratio"]},
        hc_mult=shape["hc_mult"],
        hc_sinkhorn_iters=shape["hc_sinkhorn_iters"],
        hc_eps=shape["hc_eps"],
        swiglu_limit=shape["swiglu_limit"],
        sliding_window=shape["window"],
        o_groups=shape["o_groups"],
        o_lora_rank=shape["o_lora_rank"],
        index_n_heads=shape["index_heads"],
        index_head_dim=shape["index_head_dim"],
        index_topk=shape["index_topk"],
        rms_norm_eps=shape["rms_norm_eps"],
        max_position_embeddings=4096,
        attn_implementation="eager",
        experts_implementation="eager",
    )


# --------------------------------------------------------------------------------------------------- weights

MASK = (1 << 64) - 1


def mix(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def stream_of(seed, name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return mix(value ^ mix(seed))


def draw(stream, k):
    return mix((stream + (k + 1) * 0x9E3779B97F4A7C15) & MASK)


def range_of(name, inputs):
    if name.endswith("norm.weight"):
        return 1.0, 0.5
    constants = {
        "scale": (1.0, 0.5),
        "hc_scale": (1.0, 0.5),
        "base": (0.0, 0.5),
        "hc_base": (0.0, 0.5),
        "sinks": (0.0, 1.0),
        "position_bias": (0.0, 1.0),
        "e_score_correction_bias": (0.0, 0.2),
    }
    return constants.get(name.rsplit(".")[-1], (0.0, 1.5 * math.sqrt(3.0 / inputs)))


def fill(name, tensor, seed, experts):
    stream = stream_of(seed, name)
    if name.endswith("tid2eid"):
        firsts = [(draw(stream, token) >> 32) % experts for token in range(tensor.shape[0])]
        rows = [[(first + k) % experts for k in range(tensor.shape[1])] for first in firsts]
        tensor.copy_(torch.tensor(rows))
        return
    centre, spread = range_of(name, tensor.shape[-1])
    fractions = numpy.array([draw(stream, k) >> 11 for k in range(tensor.numel())], dtype=numpy.float64) / 2.0**53
    tensor.copy_(torch.from_numpy(centre + spread * (2.0 * fractions - 1.0)).reshape(tensor.shape))


@torch.no_grad()
def fill_module(module, prefix, seed, experts):
    module.double().eval()
    for name, tensor in module.state_dict().items():
        fill(prefix + name, tensor, seed, experts)


# --------------------------------------------------------------------------------------------------- results


def numbers(tensor):
    return [float(f"{x:.12g}") for x in tensor.double().flatten().tolist()]


def rows(tensor):
    """Rows of [1, n, width] or [1, 1, n, width]; no rows for None."""
    return [] if tensor is None else [numbers(row) for row in tensor.reshape(-1, tensor.shape[-1])]


def compressor_caches(cache, name):
    overlaps = getattr(cache, "overlap_kv", None) is not None
    return {
        "entries": rows(cache.compressed_kv[name]),
        "buffer_kv": rows(cache.buffer_kv[name]),
        "buffer_gate": rows(cache.buffer_gate[name]),
        "overlap_kv": rows(cache.overlap_kv[name]) if overlaps else [],
        "overlap_gate": rows(cache.overlap_gate[name]) if overlaps else [],
    }


def layer_caches(cache):
    result = {"window": rows(cache.keys)}
    for name in getattr(cache, "compressed_kv", ()):
        result[name] = compressor_caches(cache, name)
    return result


def recorded(calls, window):
    """Positions whose logits are kept: the first and last ones, ends of the first calls, and round the first full window."""
    total = sum(calls)
    ends = [sum(calls[: i + 1]) for i in range(min(len(calls), 5))]
    wanted = {0, 1, 3, 4, window - 1, window, total // 2, total - 2, total - 1}
    wanted |= {end - 1 for end in ends} | {end for end in ends}
    return sorted(position for position in wanted if 0 <= position < total)


@torch.no_grad()
def results(model, tokens, plan, window):
    cache = DynamicCache(config=model.config)
    logits, start = [], 0
    for length in plan["calls"]:
        ids = torch.tensor([tokens[start : start + length]])
        logits.append(model(input_ids=ids, cache=cache, use_cache=True).logits[0])
        start += length
    logits = torch.cat(logits)
    positions = recorded(plan["calls"], window)
    caches = {str(layer): layer_caches(cache.layers[layer]) for layer in plan["caches_of"]}
    record = {"calls": plan["calls"], "logits": {str(p): numbers(logits[p]) for p in positions}, "caches": caches}
    return record, logits


@torch.no_grad()
def draft_results(judge, model, shape, seed, tokens):
    """Draft logits of the tokens from 1 on, from one call over all of them."""
    hidden, experts = shape["hidden"], shape["experts"]
    parts = torch.nn.ModuleDict({
        "enorm": judge.DeepseekV4RMSNorm(hidden, shape["rms_norm_eps"]),
        "hnorm": judge.DeepseekV4RMSNorm(hidden, shape["rms_norm_eps"]),
        "norm": judge.DeepseekV4RMSNorm(hidden, shape["rms_norm_eps"]),
        "e_proj": torch.nn.Linear(hidden, hidden, bias=False),
        "h_proj": torch.nn.Linear(hidden, hidden, bias=False),
        "hc_head": judge.DeepseekV4HyperHead(model.config),
    })  # fmt: skip
    layer = judge.DeepseekV4DecoderLayer(config_of(shape, [W], 0), 0)
    fill_module(parts, "mtp.", seed, experts)
    fill_module(layer, "mtp.", seed, experts)

    streams = []
    hook = model.model.layers[-1].register_forward_hook(lambda module, inputs, output: streams.append(output))
    model(input_ids=torch.tensor([tokens]), use_cache=False)
    hook.remove()

    ids = torch.tensor([tokens[1:]])
    positions = torch.arange(1, len(tokens)).unsqueeze(0)
    embedded = parts["e_proj"](parts["enorm"](model.model.embed_tokens(ids)))
    x = embedded.unsqueeze(2) + parts["h_proj"](parts["hnorm"](streams[0][:, :-1]))
    distance = positions.unsqueeze(-1) - positions.unsqueeze(-2)
    hidden_from = (distance < 0) | (distance >= shape["window"])
    mask = torch.zeros(distance.shape, dtype=torch.float64).masked_fill(hidden_from, -math.inf).unsqueeze(1)
    rotation = {"main": model.model.rotary_emb(embedded, position_ids=positions, layer_type="main")}
    x = layer(x, position_embeddings=rotation, position_ids=positions, attention_mask=mask, input_ids=ids)
    logits = model.lm_head(parts["norm"](parts["hc_head"](x)))[0]
    return {str(p): numbers(logits[p - 1]) for p in recorded([len(tokens)], shape["window"]) if p > 0}


def write_case(judge, name):
    global ties
    ties = 0
    shape, seed, length, runs = CASES[name]
    stream = stream_of(seed, "tokens")
    tokens = [(draw(stream, i) >> 32) % shape["vocab"] for i in range(length)]
    model = judge.DeepseekV4ForCausalLM(config_of(shape, shape["layers"], shape["hash_layers"]))
    fill_module(model, "", seed, shape["experts"])

    records, complete = {}, {}
    for run_name, plan in runs.items():
        records[run_name], complete[run_name] = results(model, tokens, plan, shape["window"])
    for run_name, logits in complete.items():
        gap = (logits - complete["prefill"][: len(logits)]).abs().amax().item()
        print(f"{name}: {run_name} differs from prefill by at most {gap:.2g}")
    print(f"{name}: {ties} selections decided by the order of equal scores")

    case = {
        "about": "written by tests/reference/golden.py; see README.md",
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
        "shape": shape,
        "seed": seed,
        "tokens": tokens,
        "runs": records,
        "draft": draft_results(judge, model, shape, seed, tokens),
    }
    path = DATA / f"{name}.json"
    path.write_text(json.dumps(case, separators=(",", ":")).replace('],"', '],\n"') + "\n")
    print(f"{name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    torch.set_num_threads(1)
    judge = load_judge()
    for case_name in CASES:
        write_case(judge, case_name)
