"""Plain models of the shipped policies that do more than rank by one stamp, for the replay in replay.py.

As there, nothing is shared with the Rust implementation, and nothing is fast: where that walks runs of blocks, this marks every block.
A cache policy here is told `used`, `asked`, `inserted` and `gone`, and asked for one `victim` at a time; all victims of a request are
asked for before its blocks come in, as hosts do.
"""

import collections
import heapq


class Leaves:
    """Leaves by class and rank, then by id. A parent takes over the higher class and rank of the child that went."""

    def __init__(self, classes=1):
        self.parent, self.children, self.rank = {}, collections.Counter(), {}
        self.heaps = [[] for _ in range(classes)]

    def insert(self, id, parent, kind, rank):
        self.parent[id] = parent
        self.children[parent] += 1
        self.set(id, kind, rank)

    def set(self, id, kind, rank):
        self.rank[id] = kind, rank
        heapq.heappush(self.heaps[kind], (rank, id))

    def remove(self, id):
        parent, (kind, rank) = self.parent.pop(id), self.rank.pop(id)
        self.children[parent] -= 1
        if parent in self.rank:
            above, used = self.rank[parent]
            self.set(parent, max(above, kind), max(used, rank))

    def first(self, pinned, kind=0):
        """Rank and id of the leaf of a class with the lowest rank, unless it is the pinned one; None if there is none."""
        heap, passed, found = self.heaps[kind], [], None
        while heap and found is None:
            rank, id = heapq.heappop(heap)
            if self.rank.get(id) != (kind, rank) or self.children[id]:
                continue
            passed.append((rank, id))
            if id != pinned:
                found = rank, id
        for entry in passed:
            heapq.heappush(heap, entry)
        return found


class Segmented:
    """Probation and protected blocks; every block of a used path is protected, and what is remembered when it comes in."""

    def __init__(self, capacity, probation=10, ghosts=400):
        self.leaves = Leaves(2)
        self.share = capacity * probation // 100
        self.limit = capacity * ghosts // 100
        self.remembered = {}  # insertion-ordered
        self.protected = {}  # id -> whether
        self.parents = {}
        self.known = self.coming = self.on_probation = 0

    def used(self, id, depth, now):
        if id is None:
            return
        self.leaves.set(id, 1, now)
        while id in self.protected:
            self.on_probation -= not self.protected[id]
            self.protected[id] = True
            id = self.parents[id]

    def asked(self, digests, first, now):
        known = [depth for depth, digest in enumerate(digests, 1) if depth > first and digest in self.remembered]
        self.known = max(known, default=0)
        self.coming = len(digests) - max(self.known, first)
        for digest in digests[first:]:
            if digest not in self.remembered and self.limit:
                self.remembered[digest] = True
                if len(self.remembered) > self.limit:
                    del self.remembered[next(iter(self.remembered))]

    def inserted(self, id, parent, depth, now):
        self.coming = 0
        protected = depth <= self.known
        self.protected[id], self.parents[id] = protected, parent
        self.on_probation += not protected
        self.leaves.insert(id, parent, int(protected), now)

    def gone(self, id):
        self.on_probation -= not self.protected.pop(id)
        del self.parents[id]
        self.leaves.remove(id)

    def victim(self, pinned):
        first = 0 if self.on_probation + self.coming > self.share else 1
        for segment in (first, 1 - first):
            found = self.leaves.first(pinned, segment)
            if found:
                return found[1]
        return None


class TtlPriority:
    """One lifetime and priority for the first blocks of a prompt, one for the others."""

    def __init__(self, capacity, priority=35, ttl=0, head_blocks=0, head_priority=100, head_ttl=0):
        forever = float("inf")
        rest, head = (priority, ttl or forever), (head_priority, head_ttl or forever)
        # What stands above other blocks is never less dear than they are.
        self.rules = [rest, max(head, rest)]
        self.head_blocks, self.now = head_blocks, 0
        self.leaves = Leaves(2)

    def used(self, id, depth, now):
        self.now = max(self.now, now)
        if id is not None:
            self.leaves.set(id, self.leaves.rank[id][0], now)

    def asked(self, digests, first, now):
        pass

    def inserted(self, id, parent, depth, now):
        self.now = max(self.now, now)
        self.leaves.insert(id, parent, int(depth <= self.head_blocks), now)

    def gone(self, id):
        self.leaves.remove(id)

    def victim(self, pinned):
        oldest = [(self.leaves.first(pinned, kind), rule) for kind, rule in enumerate(self.rules)]
        oldest = [(used, id, priority, life) for (used, id), (priority, life) in (pair for pair in oldest if pair[0])]
        expired = [(used + life, id) for used, id, _, life in oldest if used + life < self.now]
        if expired:
            return min(expired)[1]
        return min(((priority, used, id) for used, id, priority, _ in oldest), default=(None,))[-1]


class FlopAware:
    """Last use plus what depth is worth. Only for capacities at which the miniatures hold every block, up to 512."""

    WEIGHTS = (0, 2, 8, 32, 128)  # eighths
    DOUBLING = 17_900_000 * 1024 // 61_700

    def __init__(self, capacity, block_tokens):
        if capacity > 512:
            raise SystemExit("flop-aware samples blocks by their digests, which this model does not have")
        self.capacity, self.block_tokens = capacity, block_tokens
        self.leaves = Leaves()
        self.weight = self.turnover = self.began = self.count = 0
        self.deepest = [0, 0]
        self.saved = [0] * len(self.WEIGHTS)
        self.small = [{"leaves": Leaves(), "ids": {}, "names": {}, "free": list(range(capacity))[::-1]} for _ in self.WEIGHTS]

    def of(self, weight, depth, now):
        deepest = max(*self.deepest, 1)
        return now + weight * self.turnover // 8 * min(depth, deepest) // deepest

    def used(self, id, depth, now):
        if id is not None:
            self.leaves.set(id, 0, self.of(self.weight, depth, now))

    def inserted(self, id, parent, depth, now):
        self.deepest[0] = max(self.deepest[0], depth)
        self.leaves.insert(id, parent, 0, self.of(self.weight, depth, now))
        self.count += 1
        if self.count >= self.capacity:
            self.count, self.turnover, self.began = 0, now - self.began, now
            self.deepest = [0, self.deepest[0]]
            saved = dict(zip(self.WEIGHTS, self.saved))
            best = max(self.WEIGHTS, key=lambda weight: (saved[weight], -weight))
            if saved[best] - saved[self.weight] > saved[self.weight] // 64:
                self.weight = best
            self.saved = [saved - saved // 64 for saved in self.saved]

    def gone(self, id):
        self.leaves.remove(id)

    def victim(self, pinned):
        found = self.leaves.first(pinned)
        return found and found[1]

    def asked(self, digests, first, now):
        for index, weight in enumerate(self.WEIGHTS):
            found = self.rehearse(self.small[index], weight, digests, now)
            for depth in range(1, found + 1):
                context = depth * self.block_tokens
                self.saved[index] += self.block_tokens * (self.DOUBLING + context) // self.DOUBLING

    def rehearse(self, small, weight, digests, now):
        leaves, ids, names, free = small["leaves"], small["ids"], small["names"], small["free"]
        found = 0
        while found < len(digests) and digests[found] in ids:
            found += 1
        tip = ids[digests[found - 1]] if found else None
        if found:
            leaves.set(tip, 0, self.of(weight, found, now))
        for _ in range(min(len(digests) - found, self.capacity) - len(free)):
            first = leaves.first(tip)
            if first is None:
                break
            id = first[1]
            leaves.remove(id)
            del ids[names.pop(id)]
            free.append(id)
        for depth, digest in enumerate(digests[found:], found + 1):
            if not free:
                break
            id = free.pop()
            ids[digest], names[id] = id, digest
            leaves.insert(id, tip, 0, self.of(weight, depth, now))
            tip = id
        return found


class Adaptive:
    """Checkpoints near the end of a prompt and at junctions, by what such positions would have saved."""

    PLACES = [("back", 0), ("back", 1), ("back", 2), ("back", 3), ("down", 2), ("down", 4), ("down", 8), ("down", 16)]
    JUNCTION, NEW, RETURNED = range(3)
    PRIOR, HALVED_AT, SETTLED = 16, 1024, 64

    def __init__(self, block_tokens, replay_tokens, prompts=16384):
        self.B, self.Z, self.limit = block_tokens, replay_tokens, prompts
        self.classes = collections.defaultdict(lambda: [0] + [0] * len(self.PLACES))
        self.remembered = {}  # number -> prompt
        self.latest = {}  # digest -> number of the last prompt that has it as a place
        self.number = self.placed = self.lost = 0

    def place(self, index, end):
        how, blocks = self.PLACES[index]
        return max(end - blocks, 0) if how == "back" else end // blocks * blocks

    def value(self, kind, length, index):
        of_kind, own = self.classes[kind], self.classes[kind, length]
        prior = of_kind[1 + index] // max(of_kind[0], 1)
        return (own[1 + index] + prior * self.PRIOR) // (own[0] + self.PRIOR)

    def count(self, kind, length):
        for counts in (self.classes[kind], self.classes[kind, length]):
            counts[0] += 1
            if counts[0] >= self.HALVED_AT:
                counts[:] = [count // 2 for count in counts]

    def remember(self, prompt):
        self.remembered[self.number] = prompt
        for digest in prompt["places"]:
            if digest is not None:
                self.latest[digest] = self.number
        if self.number >= self.limit:
            for digest in self.remembered.pop(self.number - self.limit)["places"]:
                if self.latest.get(digest) == self.number - self.limit:
                    del self.latest[digest]
        self.number += 1

    def learn(self, digests, M, start):
        """Whether this request goes on from the end of an earlier one."""
        m = M // self.B
        known = [digest for digest in digests[max(m - 16, 0) : m][::-1] if digest in self.latest]
        if not known:
            return False
        was = self.remembered[self.latest[known[0]]]
        without = min(max(M - was["start"], 0), self.Z)

        def saves(block):
            return max(without - (m - block) * self.B, 0) if 0 < block <= m else 0

        places = 1 if was["kind"] == self.JUNCTION else len(self.PLACES)
        for counts in (self.classes[was["kind"]], self.classes[was["kind"], was["length"]]):
            for index in range(places):
                counts[1 + index] += saves(self.place(index, was["end"]))
        if was["chosen"] > start // self.B:
            self.lost += saves(was["chosen"])
        return was["kind"] != self.JUNCTION

    def choose(self, digests, adopted, replayed, M, junction):
        """Positions in tokens. The prompt's blocks are `digests`."""
        B, end = self.B, len(digests)
        start = adopted - replayed
        came_back = self.learn(digests, M, start)
        threshold = self.lost // (self.placed + self.SETTLED)
        positions = []
        if junction:
            length = min(max((M - start) // B, 1).bit_length() - 1, 11)
            takes = self.value(self.JUNCTION, length, 0) >= threshold
            self.count(self.JUNCTION, length)
            self.remember(
                {"end": M // B, "start": start, "kind": self.JUNCTION, "length": length,
                 "chosen": M // B if takes else 0, "places": [digests[M // B - 1]]}
            )  # fmt: skip
            if takes:
                positions.append(M)
        if end * B > adopted:
            kind = self.RETURNED if came_back else self.NEW
            length = min(max((end * B - start) // B, 1).bit_length() - 1, 11)
            lawful = [
                index for index in range(len(self.PLACES))
                if self.place(index, end) * B > max(adopted, M if junction else 0)
            ]  # fmt: skip
            best = max(lawful, key=lambda index: (self.value(kind, length, index), -index), default=None)
            chosen = 0
            if best is not None and self.value(kind, length, best) >= threshold:
                chosen = self.place(best, end)
                positions.append(chosen * B)
            self.count(kind, length)
            places = [self.place(index, end) for index in range(len(self.PLACES))]
            self.remember(
                {"end": end, "start": start, "kind": kind, "length": length, "chosen": chosen,
                 "places": [digests[block - 1] if block > 0 else None for block in places]}
            )  # fmt: skip
        self.placed += len(positions)
        if self.placed >= self.HALVED_AT:
            self.placed, self.lost = self.placed // 2, self.lost // 2
        return positions
