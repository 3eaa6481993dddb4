"""`{{name}}`: leaves stand in a ring and a hand goes round. The leaf that it points at goes, unless it was used since the hand came
by last: then it is passed over.

To make another policy of it, change what an event means to the ranking (`learn`) and which leaf goes next (`name_victims`).
"""

from collections import OrderedDict
from typing import List, Tuple

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.cache import GroupInfo
from wit_world.exports.setup import Description, Kind, Setting as Declared

INSERTED, USED, EVICTED, KEPT, PINNED, UNPINNED = range(1, 7)

# In place of an id: no record.
NONE = 0xFFFF_FFFF

# How many leaves one call passes over before it takes them as they come: a call has to end in time.
PATIENCE = 1_000

SETTINGS = [
    Declared("chances", "how often a record that was used is passed over", default=1, min=0, max=7),
]


class Row:
    """What is known of the record with this id."""

    __slots__ = ("parent", "children", "pins", "chances", "resident")

    def __init__(self, parent: int, resident: bool):
        self.parent = parent
        self.children = 0
        self.pins = 0
        # How often the hand will pass it over.
        self.chances = 0
        self.resident = resident


class Clock:
    def __init__(self, chances: int):
        # What a used record is given.
        self.chances = chances
        # By id.
        self.rows: List[Row] = []
        # The ring, from the hand on.
        self.ring: OrderedDict[int, None] = OrderedDict()

    def row(self, id: int) -> Row:
        while len(self.rows) <= id:
            self.rows.append(Row(NONE, False))
        return self.rows[id]

    def learn(self, kind: int, id: int, parent: int) -> None:
        if kind == INSERTED:
            self.ring.pop(id, None)
            self.row(id)
            self.rows[id] = Row(parent, True)
            self.gain_child(parent)
            self.join(id)
        elif kind == USED:
            self.row(id).chances = self.chances
        elif kind == EVICTED:
            self.remove(id)
        elif kind == KEPT:
            row = self.row(id)
            row.resident = True
            self.gain_child(row.parent)
            self.join(id)
        elif kind == PINNED:
            self.row(id).pins += 1
            self.ring.pop(id, None)
        elif kind == UNPINNED:
            row = self.row(id)
            row.pins = max(row.pins - 1, 0)
            self.join(id)

    def gain_child(self, id: int) -> None:
        """Counted for a record that was named, too: if it is kept after all, it has that child."""
        if id != NONE:
            self.row(id).children += 1
            self.ring.pop(id, None)

    def remove(self, id: int) -> None:
        """The parent is next if this was its last child, so that a path goes as a whole."""
        self.ring.pop(id, None)
        row = self.row(id)
        # The host may tell that a record went that was named at the same time.
        if not row.resident:
            return
        row.resident = False
        if row.parent != NONE:
            above = self.row(row.parent)
            above.children = max(above.children - 1, 0)
            above.chances = max(above.chances, row.chances)
            if self.join(row.parent):
                self.ring.move_to_end(row.parent, last=False)

    def join(self, id: int) -> bool:
        """Puts a record that may go into the ring, where the hand comes last."""
        row = self.row(id)
        joins = row.resident and row.children == 0 and row.pins == 0 and id not in self.ring
        if joins:
            self.ring[id] = None
        return joins

    def name_victims(self, want: int) -> List[int]:
        victims: List[int] = []
        patience = PATIENCE
        while self.ring and len(victims) < want:
            id = next(iter(self.ring))
            row = self.rows[id]
            if row.chances > 0 and patience > 0:
                row.chances -= 1
                patience -= 1
                self.ring.move_to_end(id)
            else:
                victims.append(id)
                self.remove(id)
        return victims


# Made by `configure`.
clock = Clock(0)


class Setup(exports.Setup):
    def describe(self) -> Description:
        return Description("{{name}}", "0.1.0", Kind.CACHE, admission=False, state_schema=0, settings=SETTINGS)

    def configure(self, settings: List[Tuple[str, str]]) -> None:
        global clock
        values = {declared.key: declared.default for declared in SETTINGS}
        for key, value in settings:
            declared = next((declared for declared in SETTINGS if declared.key == key), None)
            if declared is None:
                raise Err(f"no setting `{key}`; there is {', '.join(values)}")
            if not (value.isascii() and value.isdigit()):
                raise Err(f"setting `{key}` takes a whole number, not `{value}`")
            if not declared.min <= int(value) <= declared.max:
                raise Err(f"setting `{key}` takes {declared.min} to {declared.max}, not {value}")
            values[key] = int(value)
        clock = Clock(values["chances"])


class Cache(exports.Cache):
    def attach(self, groups: List[GroupInfo]) -> None:
        pass

    def step(self, events: List[int], want: int) -> List[int]:
        learn = clock.learn
        for at in range(0, len(events) - 2, 3):
            head = events[at]
            learn(head & 0xFF, head >> 32, events[at + 1] & NONE)
        return clock.name_victims(want)
