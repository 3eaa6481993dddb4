#!/usr/bin/env python3
"""A plain, slow model of the replay rules, to check `reprise replay` against.

It shares no code with the Rust implementation and has no cleverness: dictionaries, lists and two heaps. Policies that do more than
rank by one stamp are in policies.py. Names of steps
follow the rules ("step 3" is the choice of a plan, and so on). It prints the integers of a result as JSON.

    python3 replay.py TRACE --model v4-pro --history-gib 64 --window-gib 16 --checkpoints events --eviction lru

TRACE is Mooncake JSONL or the session re-coding, plain or gzip. Python 3.9 or newer, standard library only.
"""

import argparse
import gzip
import heapq
import itertools
import json
import math
import sys

import policies

PAGE = 4096

# Payload bytes for 128 tokens of history, payload bytes of one checkpoint, window layers x window tokens (Z of step 3),
# and the tokens a block must be a multiple of.
MODELS = {
    "v4-pro": {"history_per_128": 644_024, "window": 4_559_872 + 614_400, "replay": 61 * 128, "lcm": 128},
    "v4-flash": {"history_per_128": 449_824, "window": 3_214_336 + 430_080, "replay": 43 * 128, "lcm": 128},
}


class Incompatible(Exception):
    """Block sizes that do not divide each other, or a block the model cannot store: exit status 2."""


# ---------------------------------------------------------------------------------------------------- traces


def read_trace(path, session_gap_s=120.0):
    """Returns (S, requests), the requests as (arrival in us, scope, prompt tokens, ids) in order of arrival."""
    opener = gzip.open if open(path, "rb").read(2) == b"\x1f\x8b" else open
    gap_us = micros(session_gap_s)
    block_tokens, requests, session, decoded = 512, [], -1, []
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if not line.strip():
                continue
            record = json.loads(line)
            if "trace" in record:  # header of a session
                session, decoded, block_tokens = session + 1, [], record["block_size"]
            elif "hash_ids" in record:  # Mooncake: milliseconds, ids shared by all requests
                requests.append((micros(record["timestamp"] / 1000), 0, record["input_length"], record["hash_ids"]))
            else:
                shared = decoded[record["ref"]][: record["lcp"]] if record["ref"] >= 0 else []
                ids = shared + [first + i for first, count in record["new"] for i in range(count)]
                decoded.append(ids)
                requests.append((session * gap_us + micros(record["t"]), session + 1, record["in"], ids))
    requests.sort(key=lambda request: request[0])  # stable: ties stay in file order
    return block_tokens, requests


def micros(seconds):
    return math.floor(seconds * 1e6 + 0.5)


def chunks(scope, prompt_tokens, ids, block_tokens, trace_block):
    """What names each complete block of a prompt, given its parent."""
    if block_tokens >= trace_block:
        if block_tokens % trace_block:
            raise Incompatible(f"blocks of {block_tokens} tokens do not fit trace blocks of {trace_block}")
        k = block_tokens // trace_block
        count = min(prompt_tokens // block_tokens, len(ids) // k)
        names = [tuple(ids[i * k : (i + 1) * k]) for i in range(count)]
    else:
        if trace_block % block_tokens:
            raise Incompatible(f"blocks of {block_tokens} tokens do not fit trace blocks of {trace_block}")
        k = trace_block // block_tokens
        count = min(prompt_tokens // block_tokens, len(ids) * k)
        names = [(ids[i // k], i % k) for i in range(count)]
    if names:
        names[0] = (scope, names[0])  # sessions share nothing: not even equal first blocks
    return names


# ---------------------------------------------------------------------------------------------------- the cache


class Block:
    __slots__ = ("parent", "name", "depth", "children", "stamp", "inserted", "id")

    def __init__(self, parent, name, depth, now):
        self.parent, self.name, self.depth = parent, name, depth
        self.children = {}
        self.stamp = now  # last touch
        self.inserted = now
        self.id = None  # slot: the last that was freed, or the first never used


class Cache:
    """The prefix tree with its two pools. `now` is the number of the request."""

    def __init__(self, history_slots, window_slots, eviction):
        self.root = Block(None, None, 0, 0)
        self.history_slots, self.window_slots, self.eviction = history_slots, window_slots, eviction
        self.blocks = 0
        self.by_id, self.free = [], []
        self.leaves = []  # heap of (age, tie, block); entries that no longer hold are skipped when popped
        self.tie = itertools.count()
        self.window = {}  # block -> stamp of the checkpoint at its end
        self.window_ages = []  # heap of (stamp, depth, tie, block), likewise
        self.evicted_history = self.evicted_window = self.orphaned = 0

    def age(self, block):
        return block.inserted if self.eviction == "fifo" else block.stamp

    def path(self, names):
        """The longest resident prefix of a prompt, root first."""
        found, block = [], self.root
        for name in names:
            block = block.children.get(name)
            if block is None:
                break
            found.append(block)
        return found

    def touch(self, block, now):
        block.stamp = now
        if not block.children:
            heapq.heappush(self.leaves, (self.age(block), next(self.tie), block))

    def insert(self, parent, name, now):
        block = Block(parent, name, parent.depth + 1, now)
        parent.children[name] = block
        self.blocks += 1
        if not self.free:
            self.free.append(len(self.by_id))
            self.by_id.append(None)
        block.id = self.free.pop()
        self.by_id[block.id] = block
        heapq.heappush(self.leaves, (self.age(block), next(self.tie), block))
        return block

    def drop(self, block):
        del block.parent.children[block.name]
        self.free.append(block.id)
        self.blocks -= 1
        self.evicted_history += 1
        if self.window.pop(block, None) is not None:
            self.orphaned += 1

    def evict_leaf(self, protected):
        """Drops the oldest leaf that is not on the current path; False if there is none."""
        kept, done = [], False
        while self.leaves:
            entry = heapq.heappop(self.leaves)
            age, _, block = entry
            gone = block.parent.children.get(block.name) is not block
            if gone or block.children or age != self.age(block):
                continue
            if block in protected:
                kept.append(entry)
                continue
            self.drop(block)
            parent = block.parent
            if parent is not self.root and not parent.children:
                heapq.heappush(self.leaves, (self.age(parent), next(self.tie), parent))
            done = True
            break
        for entry in kept:
            heapq.heappush(self.leaves, entry)
        return done

    def stamp_checkpoint(self, block, now):
        self.window[block] = now
        heapq.heappush(self.window_ages, (now, block.depth, next(self.tie), block))

    def place_checkpoint(self, block, now):
        """Step 7. False if the pool cannot hold a single one."""
        if self.window_slots == 0:
            return False
        while len(self.window) >= self.window_slots:
            stamp, _, _, victim = heapq.heappop(self.window_ages)
            if self.window.get(victim) == stamp:
                del self.window[victim]
                self.evicted_window += 1
        self.stamp_checkpoint(block, now)
        return True


class Digests:
    """Names of blocks with all that is before them, as small integers."""

    def __init__(self):
        self.names = {}  # (name of the parent, chunk) -> name

    def of(self, names):
        out, name = [], 0
        for chunk in names:
            name = self.names.setdefault((name, chunk), len(self.names) + 1)
            out.append(name)
        return out


class Asked:
    """The memory of two-hit: the last 2 x capacity distinct blocks asked for, first in first out."""

    def __init__(self, limit):
        self.limit = limit
        self.memory = {}  # insertion-ordered

    def record(self, digests):
        for digest in digests:
            if digest not in self.memory:
                self.memory[digest] = True
                if len(self.memory) > self.limit:
                    del self.memory[next(iter(self.memory))]


# ---------------------------------------------------------------------------------------------------- the replay


def replay(
    trace_block,
    requests,
    history_bytes,
    window_bytes,
    replay_window_tokens,
    block_tokens=128,
    history_gib=64.0,
    window_gib=16.0,
    checkpoints="events",
    eviction="lru",
    allow_replay=True,
    limit=None,
):
    """Drives the cache with the requests and returns the integers of the result as a dict."""
    B = block_tokens
    if B % trace_block and trace_block % B:
        raise Incompatible(f"blocks of {B} tokens and trace blocks of {trace_block}: one must divide the other")
    history_slot = -(-history_bytes // PAGE) * PAGE
    window_slot = -(-window_bytes // PAGE) * PAGE
    history_slots = math.floor(history_gib * 2**30) // history_slot
    window_slots = math.floor(window_gib * 2**30) // window_slot if window_bytes else 0
    cache = Cache(history_slots, window_slots, eviction)
    asked = Asked(2 * history_slots) if eviction == "two-hit" else None
    ranking = ranking_of(eviction, history_slots, B)
    adaptive = policies.Adaptive(B, replay_window_tokens if allow_replay else math.inf) if checkpoints == "adaptive" else None
    named = Digests()
    period = int(checkpoints.split(":")[1]) if checkpoints.startswith("periodic:") else None
    r = dict.fromkeys(
        "requests hits prompt_tokens matched_tokens adopted_tokens replayed_tokens computed_tokens saved_tokens "
        "loaded_history loaded_window written_history written_window".split(),
        0,
    )

    for now, (_, scope, N, ids) in enumerate(requests[:limit], start=1):
        names = chunks(scope, N, ids, B, trace_block)
        nb = len(names)
        u = min(nb, max(N - 1, 0) // B)

        # Steps 1 and 2: look-up. `path` may be longer than M / B: the last block of a prompt is never a hit.
        path = cache.path(names)
        m = min(len(path), u)
        M = m * B
        c = 0
        if window_bytes == 0:
            c = M
        else:
            for i in range(m, 0, -1):
                if path[i - 1] in cache.window:
                    c = i * B
                    break
        # A junction is judged on the tree as it is now, before anything is saved.
        junction = 0 < M < nb * B and bool(path[m - 1].children) and names[m] not in path[m - 1].children

        # Step 3: fewest computed tokens, then fewest adopted.
        Z = replay_window_tokens
        choices = [(N, 0, 0)]
        if c > 0:
            choices.append((N - c, c, 0))
        if allow_replay and window_bytes and M > Z:
            choices.append((N - M + Z, M, Z))
        computed, adopted, replayed = min(choices)

        # Step 4.
        r["loaded_history"] += adopted // B * history_bytes
        if window_bytes and adopted > 0 and replayed == 0:
            r["loaded_window"] += window_bytes
            cache.stamp_checkpoint(path[adopted // B - 1], now)

        # Step 5.
        for block in path[:m]:
            cache.touch(block, now)
        protected = set(path)
        stored = path[:m]
        digests = named.of(names)
        if ranking:
            tip = path[-1].id if path else None
            ranking.used(tip, len(path), now)
            ranking.asked(digests, len(path), now)
            # All room is made before the first block comes in.
            for _ in range(nb - len(path) - (history_slots - cache.blocks)):
                victim = ranking.victim(tip)
                if victim is None:
                    break
                ranking.gone(victim)
                cache.drop(cache.by_id[victim])
        for i in range(m, nb):
            parent = stored[-1] if stored else cache.root
            block = parent.children.get(names[i])
            if block is not None:
                cache.touch(block, now)
            else:
                if cache.blocks >= history_slots:
                    if asked and digests[i] not in asked.memory:
                        break
                    if ranking or not cache.evict_leaf(protected):
                        break
                block = cache.insert(parent, names[i], now)
                if ranking:
                    ranking.inserted(block.id, parent.id, block.depth, now)
                r["written_history"] += history_bytes
                protected.add(block)
            stored.append(block)
        if asked:
            asked.record(digests)

        # Step 6, in ascending order; step 7 inside place_checkpoint.
        end = len(stored) * B
        if window_bytes == 0 or checkpoints == "zero":
            positions = []
        elif checkpoints == "full":
            positions = [p for p in range(B, end + 1, B) if p > adopted]
        elif period:
            positions = [p for p in range(B, end + 1, B) if p > adopted and p % period == 0]
        elif checkpoints == "events":
            positions = [M] if junction else []
            if end == nb * B and end > adopted:
                positions.append(end)
        elif adaptive:
            positions = []
            if nb * B > adopted or junction:
                chosen = adaptive.choose(digests, adopted, replayed, M, junction)
                positions = [p for p in chosen if p <= end]
        else:
            raise SystemExit(f"unknown checkpoint policy {checkpoints!r}")
        for p in positions:
            block = stored[p // B - 1]
            if block not in cache.window and cache.place_checkpoint(block, now):
                r["written_window"] += window_bytes

        r["requests"] += 1
        r["hits"] += adopted > 0
        r["prompt_tokens"] += N
        r["matched_tokens"] += M
        r["adopted_tokens"] += adopted
        r["replayed_tokens"] += replayed
        r["computed_tokens"] += computed
        r["saved_tokens"] += N - computed

    r["evicted_history"] = cache.evicted_history
    r["evicted_window"] = cache.evicted_window
    r["orphaned_window"] = cache.orphaned
    r["final_history_bytes"] = cache.blocks * history_slot
    r["final_window_bytes"] = len(cache.window) * window_slot
    return r


def ranking_of(eviction, capacity, block_tokens):
    """The cache policy of this name with its settings, `name:key=value,...`, if it is one of policies.py."""
    name, _, settings = eviction.partition(":")
    settings = dict(pair.split("=") for pair in settings.split(",") if pair)
    settings = {key.replace("-", "_"): int(value) for key, value in settings.items()}
    if name == "segmented":
        return policies.Segmented(capacity, **settings)
    if name == "ttl-priority":
        return policies.TtlPriority(capacity, **settings)
    if name == "flop-aware":
        return policies.FlopAware(capacity, block_tokens, **settings)
    return None


def run(trace, model="v4-pro", block_tokens=128, **options):
    """A replay of a decoded trace with a preset model; `trace` is what read_trace returned."""
    preset = MODELS[model]
    if block_tokens % preset["lcm"]:
        raise Incompatible(f"{model} needs blocks of a multiple of {preset['lcm']} tokens, not {block_tokens}")
    history = preset["history_per_128"] * block_tokens // 128
    return replay(*trace, history, preset["window"], preset["replay"], block_tokens=block_tokens, **options)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("trace")
    parser.add_argument("--model", choices=sorted(MODELS), default="v4-pro")
    parser.add_argument("--block-tokens", type=int, default=128)
    parser.add_argument("--history-gib", type=float, default=64.0)
    parser.add_argument("--window-gib", type=float, default=16.0)
    parser.add_argument("--checkpoints", default="events", help="full, periodic:P, events, zero or adaptive")
    parser.add_argument("--eviction", default="lru", help="lru, fifo, two-hit, segmented, ttl-priority or flop-aware, with settings")
    parser.add_argument("--no-replay", action="store_true")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--session-gap", type=float, default=120.0)
    options = vars(parser.parse_args())
    trace = read_trace(options.pop("trace"), options.pop("session_gap"))
    options["allow_replay"] = not options.pop("no_replay")
    try:
        print(json.dumps(run(trace, **options), indent=1))
    except Incompatible as problem:
        print(problem, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
