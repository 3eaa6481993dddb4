// `{{name}}`: leaves stand in a ring and a hand goes round. The leaf that it points at goes, unless it was used since the hand
// came by last: then it is passed over.
//
// To make another policy of it, change what an event means to the ranking (`learn`) and which leaf goes next (`nameVictims`).

const INSERTED = 1, USED = 2, EVICTED = 3, KEPT = 4, PINNED = 5, UNPINNED = 6;

// In place of an id: no record.
const NONE = 0xffffffff;

// How many leaves one call passes over before it takes them as they come: a call has to end in time.
const PATIENCE = 1_000;

const SETTINGS = [
    { key: "chances", help: "how often a record that was used is passed over", default: 1, min: 0, max: 7 },
];

// What is known of the record with some id; `chances` is how often the hand will pass it over.
const row = (parent, resident) => ({
    parent, resident, children: 0, pins: 0, chances: 0, inRing: false, next: NONE, previous: NONE,
});

class Clock {
    constructor(chances) {
        // What a used record is given.
        this.chances = chances;
        // By id.
        this.rows = [];
        // The leaf that goes next, `NONE` if the ring is empty.
        this.hand = NONE;
    }

    row(id) {
        while (this.rows.length <= id) this.rows.push(row(NONE, false));
        return this.rows[id];
    }

    learn(kind, id, parent) {
        switch (kind) {
            case INSERTED:
                this.leave(id);
                this.rows[id] = row(parent, true);
                this.gainChild(parent);
                this.join(id, false);
                break;
            case USED:
                this.row(id).chances = this.chances;
                break;
            case EVICTED:
                this.remove(id);
                break;
            case KEPT:
                this.row(id).resident = true;
                this.gainChild(this.row(id).parent);
                this.join(id, false);
                break;
            case PINNED:
                this.row(id).pins += 1;
                this.leave(id);
                break;
            case UNPINNED:
                this.row(id).pins = Math.max(this.row(id).pins - 1, 0);
                this.join(id, false);
                break;
        }
    }

    // Counted for a record that was named, too: if it is kept after all, it has that child.
    gainChild(id) {
        if (id === NONE) return;
        this.row(id).children += 1;
        this.leave(id);
    }

    // The parent is next if this was its last child, so that a path goes as a whole.
    remove(id) {
        this.leave(id);
        const gone = this.row(id);
        // The host may tell that a record went that was named at the same time.
        if (!gone.resident) return;
        gone.resident = false;
        if (gone.parent === NONE) return;
        const above = this.row(gone.parent);
        above.children = Math.max(above.children - 1, 0);
        above.chances = Math.max(above.chances, gone.chances);
        this.join(gone.parent, true);
    }

    // Puts a record that may go into the ring: under the hand, or where the hand comes last.
    join(id, underTheHand) {
        const joining = this.row(id);
        if (!joining.resident || joining.inRing || joining.children > 0 || joining.pins > 0) return;
        joining.inRing = true;
        joining.next = this.hand === NONE ? id : this.hand;
        joining.previous = this.hand === NONE ? id : this.row(this.hand).previous;
        this.row(joining.previous).next = id;
        this.row(joining.next).previous = id;
        if (underTheHand || this.hand === NONE) this.hand = id;
    }

    // Takes a record out of the ring if it is there.
    leave(id) {
        const leaving = this.row(id);
        if (!leaving.inRing) return;
        leaving.inRing = false;
        this.row(leaving.previous).next = leaving.next;
        this.row(leaving.next).previous = leaving.previous;
        if (this.hand === id) this.hand = leaving.next === id ? NONE : leaving.next;
    }

    nameVictims(want) {
        const victims = [];
        let patience = PATIENCE;
        while (this.hand !== NONE && victims.length < want) {
            const pointedAt = this.rows[this.hand];
            if (pointedAt.chances > 0 && patience > 0) {
                pointedAt.chances -= 1;
                patience -= 1;
                this.hand = pointedAt.next;
            } else {
                victims.push(this.hand);
                this.remove(this.hand);
            }
        }
        return victims;
    }
}

// Made by `configure`.
let clock = null;

export const setup = {
    describe() {
        return { name: "{{name}}", version: "0.1.0", kind: "cache", admission: false, stateSchema: 0, settings: SETTINGS };
    },

    configure(settings) {
        const values = new Map(SETTINGS.map((setting) => [setting.key, setting.default]));
        for (const [key, value] of settings) {
            const setting = SETTINGS.find((setting) => setting.key === key);
            if (!setting) throw `no setting \`${key}\`; there is ${[...values.keys()].join(", ")}`;
            if (!/^[0-9]+$/.test(value)) throw `setting \`${key}\` takes a whole number, not \`${value}\``;
            const number = Number(value);
            if (number < setting.min || number > setting.max) {
                throw `setting \`${key}\` takes ${setting.min} to ${setting.max}, not ${value}`;
            }
            values.set(key, number);
        }
        clock = new Clock(values.get("chances"));
    },
};

export const cache = {
    attach(_groups) {},

    step(events, want) {
        // Words are numbers here, exact below 2^53: ids and depths below 2^21.
        for (let at = 0; at + 3 <= events.length; at += 3) {
            const head = events[at];
            clock.learn(head % 0x100, Math.floor(head / 0x1_0000_0000), events[at + 1] % 0x1_0000_0000);
        }
        return clock.nameVictims(want);
    },
};
