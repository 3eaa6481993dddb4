"""Flat caches of libCacheSim on one file of keys, in its own loop.

    python3 caches.py KEYS TURNS SIZE...

KEYS is in libCacheSim's binary format oracleGeneral. Prints one JSON object: "requests", and for "LRU" and "S3FIFO" a list with
[size, misses, best seconds of TURNS runs] for each size. What is timed is `process_trace`, which reads the mapped file and
simulates; a cache is made before that.
"""

import json
import sys
import time

import libcachesim as lcs


def run(kind, size, path, turns, requests):
    best, misses = float("inf"), set()
    # The table of 2^24 buckets that is the default does not fit a processor's cache: where time counts, one that fits the trace is
    # tried, too.
    for hashpower in (24,) if turns == 1 else (24, max(requests.bit_length() - 1, 10)):
        for _ in range(turns):
            reader = lcs.TraceReader(path, lcs.TraceType.ORACLE_GENERAL_TRACE)
            cache = kind(cache_size=size, hashpower=hashpower)
            start = time.perf_counter()
            ratio, _ = cache.process_trace(reader)
            best = min(best, time.perf_counter() - start)
            misses.add(round(ratio * requests))
    if len(misses) != 1:
        raise SystemExit(f"{kind.__name__} with {size}: not one result but {misses}")
    return [size, misses.pop(), best]


def main():
    path, turns, sizes = sys.argv[1], int(sys.argv[2]), [int(size) for size in sys.argv[3:]]
    requests = lcs.TraceReader(path, lcs.TraceType.ORACLE_GENERAL_TRACE).get_num_of_req()
    results = {
        kind.__name__: [run(kind, size, path, turns, requests) for size in sizes] for kind in (lcs.LRU, lcs.S3FIFO)
    }
    print(json.dumps({"requests": requests, **results}))


if __name__ == "__main__":
    main()
