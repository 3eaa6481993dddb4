#!/usr/bin/env python3
"""Writes tests/data/expected.json: what the model in replay.py gives for the trace parts, under many options.

    python3 expected.py

Every case names its trace (a path from the root of the repository), its options in full, and either the integers of the
result or the exit status of a run that must be refused. Takes about two minutes.
"""

import json
import pathlib
import sys

sys.dont_write_bytecode = True
import replay  # noqa: E402

ROOT = pathlib.Path(__file__).parent.parent.parent
SAMPLE = "hosts/cli/sample/coding-agent-sample.jsonl"
AGENT = "tests/data/coding-agent-part.jsonl.gz"
CHAT = "tests/data/conversation-part.jsonl.gz"
EDGES = "tests/data/edges.jsonl"

# Quotas small enough that each part evicts blocks and checkpoints.
SMALL = {
    SAMPLE: {"model": "v4-flash", "history_gib": 0.5, "window_gib": 0.1},
    AGENT: {"model": "v4-pro", "history_gib": 2.0, "window_gib": 0.25},
    CHAT: {"model": "v4-pro", "history_gib": 8.0, "window_gib": 0.5},
    EDGES: {"model": "v4-flash", "history_gib": 0.06, "window_gib": 0.03},
}
DEFAULTS = {
    "block_tokens": 128,
    "checkpoints": "events",
    "eviction": "lru",
    "allow_replay": True,
    "limit": None,
    "session_gap_s": 120.0,
}


def cases():
    for trace in SMALL:
        for checkpoints in ("full", "periodic:2048", "events", "zero"):
            for eviction in ("lru", "fifo", "two-hit"):
                yield trace, {"checkpoints": checkpoints, "eviction": eviction}
        for checkpoints in ("events", "zero"):
            yield trace, {"checkpoints": checkpoints, "allow_replay": False}
        for block_tokens in (256, 512, 1024):
            yield trace, {"block_tokens": block_tokens}
        # Nothing fits, or one record only.
        yield trace, {"history_gib": 0.0}
        yield trace, {"history_gib": 0.0007}
        yield trace, {"history_gib": 0.0007, "eviction": "two-hit"}
        yield trace, {"window_gib": 0.0}
        yield trace, {"window_gib": 0.005, "checkpoints": "full"}
        yield trace, {"history_gib": 64.0, "window_gib": 16.0}
        yield trace, {"limit": 20}
        yield trace, {"limit": 0}
        # Blocks that the model cannot store.
        yield trace, {"block_tokens": 64}
        yield trace, {"block_tokens": 192}
        # 384 is six trace blocks of 64, and neither a multiple nor a part of 512.
        yield trace, {"block_tokens": 384}
    for model in ("v4-pro", "v4-flash"):
        yield CHAT, {"model": model, "checkpoints": "periodic:512", "limit": 500}
        yield AGENT, {"model": model, "checkpoints": "periodic:8192", "limit": 300}
    for trace in SMALL:
        yield trace, {"checkpoints": "adaptive"}
        yield trace, {"checkpoints": "adaptive", "window_gib": 0.06}
        yield trace, {"checkpoints": "adaptive", "allow_replay": False, "block_tokens": 512}
        for eviction in (
            "segmented",
            "segmented:probation=50,ghosts=100",
            "ttl-priority",
            "ttl-priority:ttl=40",
            "ttl-priority:head-blocks=8,head-ttl=200,ttl=20",
            "ttl-priority:head-blocks=8,head-priority=10",
        ):
            yield trace, {"eviction": eviction}
        # So few blocks that the miniatures hold them all.
        yield trace, {"eviction": "flop-aware", "history_gib": min(SMALL[trace]["history_gib"], 0.2)}
        yield trace, {"eviction": "segmented", "checkpoints": "adaptive", "block_tokens": 256}
    for gap in (0.0, 0.5, 3600.0):
        yield AGENT, {"session_gap_s": gap}
        yield SAMPLE, {"session_gap_s": gap}
    yield AGENT, {"block_tokens": 8192}


def main():
    traces, out = {}, []
    for trace, changes in cases():
        options = {**DEFAULTS, **SMALL[trace], **changes}
        gap = options["session_gap_s"]
        if (trace, gap) not in traces:
            traces[trace, gap] = replay.read_trace(ROOT / trace, gap)
        arguments = {name: value for name, value in options.items() if name != "session_gap_s"}
        case = {"trace": trace, "options": options}
        try:
            case["result"] = replay.run(traces[trace, gap], **arguments)
        except replay.Incompatible:
            case["exit"] = 2
        out.append(case)
    path = ROOT / "tests" / "data" / "expected.json"
    about = "Written by tests/reference/expected.py from the model in replay.py. Do not edit."
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in out)
    path.write_text(f'{{"about":{json.dumps(about)},\n"cases":[\n{lines}\n]}}\n')
    print(f"{len(out)} cases")


if __name__ == "__main__":
    main()
