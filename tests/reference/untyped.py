#!/usr/bin/env python3
"""Writes tests/data/untyped.json: what the public simulator kvcache-simulator 0.1.3 gives for the trace parts and for small
made-up traces, which `reprise replay --untyped` must give too.

    pip install kvcache-simulator==0.1.3
    python3 tests/reference/untyped.py

The simulator reports 0 for a pool that was not full before the measured half. The true figure, `unfilled_hit_tokens`, is
put together from its own parts: until the pool has been full nothing is evicted, so every policy finds what the
simulator's ceiling finds; after that, the simulator is asked to measure from there on.

Python 3.9 or newer. Takes about a minute.
"""

import dataclasses
import gzip
import importlib.metadata
import json
import pathlib
import random

from kvcache_sim.plan import build_execution_plan
from kvcache_sim.policies import simulate_ceiling, simulate_policy
from kvcache_sim.trace import parse_trace_file, parse_trace_lines

VERSION = "0.1.3"
ROOT = pathlib.Path(__file__).parent.parent.parent
POLICIES = ("fifo", "lru", "optimal")
AGENT = "tests/data/coding-agent-part.jsonl.gz"
CHAT = "tests/data/conversation-part.jsonl.gz"
EDGES = "tests/data/edges.jsonl"
CAPACITIES = {
    CHAT: (0, 50, 439, 1756, 7027, 20000, 1000000),
    AGENT: (100, 1000, 3000, 10000, 1000000),
    EDGES: (0, 1, 2, 5, 13, 20, 40, 60, 100, 1000),
}
MADE_UP = 40


def session_lines(path):
    """The requests of a re-coded trace as Mooncake lines, in file order, ids made unique per session."""
    session, unique = -1, {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            if "trace" in record:
                session, decoded, block_size = session + 1, [], record["block_size"]
                continue
            shared = decoded[record["ref"]][: record["lcp"]] if record["ref"] >= 0 else []
            ids = shared + [first + i for first, count in record["new"] for i in range(count)]
            decoded.append(ids)
            named = [unique.setdefault((session, i), len(unique)) for i in ids]
            yield json.dumps({"input_length": record["in"], "hash_ids": named, "block_size": block_size})


def made_up(number):
    """A small trace of prompts that grow from each other, some with too few or too many ids: (S, [(N, ids)])."""
    rng = random.Random(number)
    block_tokens, names, length = rng.choice((1, 4, 64)), rng.choice((2, 3, 5)), rng.choice((1, 3, 6))
    prompts, requests = [[]], []
    for _ in range(rng.choice((1, 2, 5, 12, 20))):
        before = rng.choice(prompts)
        ids = before[: rng.randint(0, len(before))] + [rng.randint(1, names) for _ in range(rng.randint(0, length))]
        prompts.append(ids)
        complete = len(ids) * block_tokens
        tokens = rng.choice((complete, complete - rng.randint(0, block_tokens - 1), rng.randint(1, complete + 9)))
        requests.append((max(tokens, 1), ids))
    return block_tokens, requests


def starting_at(plan, request):
    return dataclasses.replace(plan, warmup_requests=request)


def found(plan, policy, capacity):
    """Tokens found in the measured half, whether or not the pool had been full before."""
    half = plan.warmup_requests
    for full in range(half, plan.request_count):
        rest = simulate_policy(starting_at(plan, full), policy, capacity)
        if rest.measurementMode == "fixed_window":
            filling = simulate_ceiling(plan).hitTokens - simulate_ceiling(starting_at(plan, full)).hitTokens
            return filling + rest.hitTokens
    return simulate_ceiling(plan).hitTokens


def results(plan, capacities):
    for capacity in capacities:
        for policy in POLICIES:
            point = simulate_policy(plan, policy, capacity)
            result = {
                "eviction": policy,
                "capacity_blocks": capacity,
                "mode": point.measurementMode,
                "hit_tokens": point.hitTokens,
                "measured_tokens": point.totalTokens,
            }
            if point.measurementMode != "fixed_window":
                # A pool larger than the trace is never full: the search for when it is would be long and in vain.
                beyond = capacity > plan.unique_blocks
                result["unfilled_hit_tokens"] = (
                    simulate_ceiling(plan).hitTokens if beyond else found(plan, policy, capacity)
                )
            yield result


def case(head, plan, capacities):
    rows = ",\n  ".join(json.dumps(row, separators=(",", ":")) for row in results(plan, capacities))
    return "{" + json.dumps(head, separators=(",", ":"))[1:-1] + f',"results":[\n  {rows}]' + "}"


def main():
    installed = importlib.metadata.version("kvcache-simulator")
    if installed != VERSION:
        raise SystemExit(f"this needs kvcache-simulator {VERSION}, not {installed}")
    cases = []
    for path, capacities in CAPACITIES.items():
        trace = (
            parse_trace_lines(session_lines(ROOT / path))
            if path == AGENT
            else parse_trace_file(ROOT / path, block_size=512)
        )
        cases.append(case({"trace": path}, build_execution_plan(trace), capacities))
    for number in range(MADE_UP):
        block_tokens, requests = made_up(number)
        lines = [json.dumps({"input_length": tokens, "hash_ids": ids}) for tokens, ids in requests]
        if not any(ids for _, ids in requests):
            continue
        plan = build_execution_plan(parse_trace_lines(lines, block_size=block_tokens))
        blocks = plan.unique_blocks
        capacities = sorted({1, 1 + blocks // 4, 1 + blocks // 2})
        cases.append(case({"block_tokens": block_tokens, "requests": requests}, plan, capacities))
    about = f"Written by tests/reference/untyped.py with kvcache-simulator {VERSION}. Do not edit."
    text = '{"about":' + json.dumps(about) + ',\n"cases":[\n' + ",\n".join(cases) + "\n]}\n"
    (ROOT / "tests/data/untyped.json").write_text(text)
    print(len(cases), "traces,", len(text), "bytes")


if __name__ == "__main__":
    main()
