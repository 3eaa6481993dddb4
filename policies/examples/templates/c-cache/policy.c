// `{{name}}`: leaves stand in a ring and a hand goes round. The leaf that it points at goes, unless it was used since the hand came
// by last: then it is passed over.
//
// To make another policy of it, change what an event means to the ranking (`learn`) and which leaf goes next (`step`).

#include <stdlib.h>
#include <string.h>

#include "bindings/cache_policy.h"

enum { INSERTED = 1, USED, EVICTED, KEPT, PINNED, UNPINNED };

// In place of an id: no record.
#define NONE UINT32_MAX

// How many leaves one call passes over before it takes them as they come: a call has to end in time.
#define PATIENCE 1000

// The one setting: `chances`, how often a record that was used is passed over.
#define DEFAULT_CHANCES 1
#define MOST_CHANCES 7

// What is known of the record with some id.
struct row {
    uint32_t parent, children, pins;
    // How often the hand will pass it over.
    uint32_t chances;
    uint32_t next, previous;
    bool resident, in_ring;
};

// What a used record is given.
static uint32_t chances;
// By id.
static struct row *rows;
static uint32_t row_count;
// The leaf that goes next, `NONE` if the ring is empty.
static uint32_t hand = NONE;

static struct row *row(uint32_t id) {
    if (id >= row_count) {
        uint32_t count = id < 512 ? 1024 : id * 2;
        rows = realloc(rows, count * sizeof *rows);
        // A trap: the host throws the instance away.
        if (!rows) abort();
        memset(rows + row_count, 0, (count - row_count) * sizeof *rows);
        while (row_count < count) rows[row_count++].parent = NONE;
    }
    return &rows[id];
}

// Puts a record that may go into the ring: under the hand, or where the hand comes last.
static void join(uint32_t id, bool under_the_hand) {
    struct row *joining = row(id);
    if (!joining->resident || joining->in_ring || joining->children > 0 || joining->pins > 0) return;
    joining->in_ring = true;
    joining->next = hand == NONE ? id : hand;
    joining->previous = hand == NONE ? id : rows[hand].previous;
    rows[joining->previous].next = id;
    rows[joining->next].previous = id;
    if (under_the_hand || hand == NONE) hand = id;
}

// Takes a record out of the ring if it is there.
static void leave(uint32_t id) {
    struct row *leaving = row(id);
    if (!leaving->in_ring) return;
    leaving->in_ring = false;
    rows[leaving->previous].next = leaving->next;
    rows[leaving->next].previous = leaving->previous;
    if (hand == id) hand = leaving->next == id ? NONE : leaving->next;
}

// Counted for a record that was named, too: if it is kept after all, it has that child.
static void gain_child(uint32_t id) {
    if (id == NONE) return;
    row(id)->children += 1;
    leave(id);
}

// The parent is next if this was its last child, so that a path goes as a whole.
static void take_out(uint32_t id) {
    leave(id);
    // The host may tell that a record went that was named at the same time.
    if (!rows[id].resident) return;
    rows[id].resident = false;
    uint32_t parent = rows[id].parent, inherited = rows[id].chances;
    if (parent == NONE) return;
    struct row *above = row(parent);
    if (above->children > 0) above->children -= 1;
    if (above->chances < inherited) above->chances = inherited;
    join(parent, true);
}

static void learn(uint32_t kind, uint32_t id, uint32_t parent) {
    switch (kind) {
    case INSERTED:
        leave(id);
        rows[id] = (struct row){.parent = parent, .resident = true};
        gain_child(parent);
        join(id, false);
        break;
    case USED:
        row(id)->chances = chances;
        break;
    case EVICTED:
        take_out(id);
        break;
    case KEPT:
        row(id)->resident = true;
        gain_child(rows[id].parent);
        join(id, false);
        break;
    case PINNED:
        row(id)->pins += 1;
        leave(id);
        break;
    case UNPINNED:
        if (row(id)->pins > 0) rows[id].pins -= 1;
        join(id, false);
        break;
    }
}

void exports_reprise_policy_cache_attach(exports_reprise_policy_cache_list_group_info_t *groups) {
    exports_reprise_policy_cache_list_group_info_free(groups);
}

void exports_reprise_policy_cache_step(cache_policy_list_u64_t *events, uint32_t want, cache_policy_list_u32_t *victims) {
    for (size_t at = 0; at + 3 <= events->len; at += 3) {
        uint64_t head = events->ptr[at];
        learn(head & 0xff, head >> 32, (uint32_t)events->ptr[at + 1]);
    }
    cache_policy_list_u64_free(events);

    // Freed by the bindings once the host has read it. No more than there are records can be named.
    uint32_t most = want < row_count ? want : row_count;
    victims->ptr = most > 0 ? malloc(most * sizeof *victims->ptr) : NULL;
    victims->len = 0;
    if (most > 0 && !victims->ptr) abort();
    uint32_t patience = PATIENCE;
    while (hand != NONE && victims->len < most) {
        if (rows[hand].chances > 0 && patience > 0) {
            rows[hand].chances -= 1;
            patience -= 1;
            hand = rows[hand].next;
        } else {
            victims->ptr[victims->len++] = hand;
            take_out(hand);
        }
    }
    if (victims->len == 0) free(victims->ptr);
}

void exports_reprise_policy_setup_describe(exports_reprise_policy_setup_description_t *description) {
    cache_policy_string_dup(&description->name, "{{name}}");
    cache_policy_string_dup(&description->version, "0.1.0");
    description->kind = EXPORTS_REPRISE_POLICY_SETUP_KIND_CACHE;
    description->admission = false;
    description->state_schema = 0;
    exports_reprise_policy_setup_setting_t *setting = calloc(1, sizeof *setting);
    if (!setting) abort();
    cache_policy_string_dup(&setting->key, "chances");
    cache_policy_string_dup(&setting->help, "how often a record that was used is passed over");
    setting->default_ = DEFAULT_CHANCES;
    setting->max = MOST_CHANCES;
    description->settings.ptr = setting;
    description->settings.len = 1;
}

// A sentence for the operator; what does not fit is left out.
struct sentence {
    char text[160];
    size_t len;
};

static void say(struct sentence *sentence, const void *bytes, size_t len) {
    size_t room = sizeof sentence->text - 1 - sentence->len;
    if (len > room) len = room;
    memcpy(sentence->text + sentence->len, bytes, len);
    sentence->len += len;
}

static void refuse(struct sentence *problem, const char *before, cache_policy_string_t given, const char *after) {
    say(problem, before, strlen(before));
    say(problem, given.ptr, given.len < 64 ? given.len : 64);
    say(problem, after, strlen(after));
}

// Takes the value of `chances`, or says what is wrong with it.
static void take_chances(cache_policy_string_t value, struct sentence *problem) {
    bool whole = value.len > 0;
    chances = 0;
    for (size_t at = 0; at < value.len; at++) {
        uint8_t digit = value.ptr[at] - '0';
        whole = whole && digit <= 9;
        // Past the range it stays there, however many digits follow.
        if (chances <= MOST_CHANCES) chances = chances * 10 + digit;
    }
    if (!whole) {
        refuse(problem, "setting `chances` takes a whole number, not `", value, "`");
    } else if (chances > MOST_CHANCES) {
        refuse(problem, "setting `chances` takes 0 to 7, not ", value, "");
    }
}

bool exports_reprise_policy_setup_configure(cache_policy_list_tuple2_string_string_t *settings, cache_policy_string_t *error) {
    struct sentence problem = {0};
    chances = DEFAULT_CHANCES;
    for (size_t at = 0; at < settings->len && problem.len == 0; at++) {
        cache_policy_string_t key = settings->ptr[at].f0;
        if (key.len == strlen("chances") && memcmp(key.ptr, "chances", key.len) == 0) {
            take_chances(settings->ptr[at].f1, &problem);
        } else {
            refuse(&problem, "no setting `", key, "`; there is chances");
        }
    }
    cache_policy_list_tuple2_string_string_free(settings);
    if (problem.len > 0) cache_policy_string_dup_n(error, problem.text, problem.len);
    return problem.len == 0;
}
