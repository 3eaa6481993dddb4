#!/usr/bin/env python3
"""Cuts the bundled sample and the trace parts of the tests out of the full traces.

    python3 cut.py DIRECTORY

DIRECTORY holds `coding-agent-180.jsonl.gz` (the session re-coding of github.com/callanjfox/kv-cache-tester, `traces/`) and
`mooncake-conversation.jsonl.gz` (github.com/kvcache-ai/Mooncake, `FAST25-release/traces/conversation_trace.jsonl`).
The same input gives the same bytes. Python 3.9 or newer, standard library only.
"""

import gzip
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
DATA = HERE.parent / "data"
SAMPLE = HERE.parent.parent / "hosts" / "cli" / "sample" / "coding-agent-sample.jsonl"

# Which sessions, and how many of their first requests: found by search so that, with V4-Flash and quotas of 0.5 and
# 0.1 GiB, blocks are evicted, windows are orphaned and evicted, and some prefix is cheaper to replay than to recompute.
SAMPLE_SESSIONS = {"trace_0133": 4, "trace_0273": 7, "trace_0321": 11, "trace_0325": 3, "trace_0441": 11}
CODING_AGENT_SESSIONS = 12
CONVERSATION_REQUESTS = 1500


def sessions(path):
    """The sessions of a re-coded trace: lists of lines, the header first."""
    found = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if "trace" in json.loads(line):
                found.append([])
            found[-1].append(line)
    return found


def first_requests(session, count):
    header = json.loads(session[0])
    header["requests"] = count
    return [json.dumps(header) + "\n"] + session[1 : 1 + count]


def write_gz(path, text):
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
    print(path.name, path.stat().st_size)


def main():
    source = pathlib.Path(sys.argv[1])
    agent = sessions(source / "coding-agent-180.jsonl.gz")
    cut = []
    for session in agent:
        count = SAMPLE_SESSIONS.get(json.loads(session[0])["trace"])
        if count:
            cut += first_requests(session, count)
    SAMPLE.parent.mkdir(exist_ok=True)
    SAMPLE.write_text("".join(cut))
    write_gz(DATA / "coding-agent-part.jsonl.gz", "".join(line for s in agent[:CODING_AGENT_SESSIONS] for line in s))
    with gzip.open(source / "mooncake-conversation.jsonl.gz", "rt", encoding="utf-8") as lines:
        part = [line for _, line in zip(range(CONVERSATION_REQUESTS), lines)]
    write_gz(DATA / "conversation-part.jsonl.gz", "".join(part))


if __name__ == "__main__":
    main()
