/* SPDX-License-Identifier: Apache-2.0 */
/*
 * regex: pattern → syntax tree (regex_parse.c) → program (here) → set of states.
 *
 * The program is Thompson's: RANGES takes one code point, SPLIT goes two ways, the asserts look at
 * the place. The machine keeps the set of instructions it may be at, each at most once, so a text
 * of n bytes costs at most n times the program. Counted repeats are unrolled, which the program's
 * bound keeps in check.
 *
 * Threads: see the header. Memory: see the header; a match keeps its two sets on the stack.
 */
#include "regex.h"
#include "regex_parse.h"

#include <string.h>

enum op { OP_RANGES, OP_SPLIT, OP_JUMP, OP_ASSERT, OP_MATCH };

struct instruction {
    enum op op;
    uint32_t x; /* SPLIT, JUMP: where to; ASSERT: which */
    uint32_t y; /* SPLIT: the other way */
    const struct regex_range *ranges;
    size_t range_count;
};

enum shape {
    SHAPE_PROGRAM = 0,
    SHAPE_WORDS, /* a|b|c */
    SHAPE_ANY,   /* .* */
    SHAPE_SOME,  /* .+ */
    SHAPE_PREFIX,
    SHAPE_SUFFIX,
    SHAPE_INFIX
};

struct query_regex {
    enum shape shape;
    struct weir_bytes text; /* the words with their bars, or the one literal */
    const struct instruction *program;
    uint32_t count;
};

/* --- shapes that need no program ------------------------------------------------------------- */

static bool is_plain(const char *p, size_t len, bool bars)
{
    for (size_t i = 0; i < len; i++) {
        if (p[i] == '|' && bars)
            continue;
        if (p[i] == '\0' || strchr("\\.+*?()|[]{}^$", p[i]) || (unsigned char)p[i] >= 0x80)
            return false;
    }
    return true;
}

static bool begins_any(struct weir_bytes b)
{
    return b.len >= 2 && b.ptr[0] == '.' && b.ptr[1] == '*';
}
static bool ends_any(struct weir_bytes b)
{
    return b.len >= 2 && b.ptr[b.len - 2] == '.' && b.ptr[b.len - 1] == '*';
}

static bool take_shape(struct query_regex *regex, struct weir_bytes pattern)
{
    struct weir_bytes rest = pattern;
    if (is_plain(pattern.ptr, pattern.len, true)) {
        regex->shape = SHAPE_WORDS;
    } else if (pattern.len == 2 && memcmp(pattern.ptr, ".+", 2) == 0) {
        regex->shape = SHAPE_SOME;
    } else if (pattern.len == 2 && begins_any(pattern)) {
        regex->shape = SHAPE_ANY;
    } else {
        const bool begins = begins_any(pattern);
        if (begins)
            rest = (struct weir_bytes){.ptr = rest.ptr + 2, .len = rest.len - 2};
        const bool ends = ends_any(rest);
        if (ends)
            rest.len -= 2;
        if ((!begins && !ends) || !is_plain(rest.ptr, rest.len, false))
            return false;
        regex->shape = begins && ends ? SHAPE_INFIX : begins ? SHAPE_SUFFIX : SHAPE_PREFIX;
    }
    regex->text = rest;
    return true;
}

static bool is_one_of(struct weir_bytes words, struct weir_bytes text)
{
    const char *at = words.ptr;
    const char *const end = words.ptr + words.len;
    for (;;) {
        const char *const bar = at < end ? memchr(at, '|', (size_t)(end - at)) : NULL;
        const size_t len = (size_t)((bar ? bar : end) - at);
        if (len == text.len && (len == 0 || memcmp(at, text.ptr, len) == 0))
            return true;
        if (!bar)
            return false;
        at = bar + 1;
    }
}

static bool match_shape(const struct query_regex *regex, struct weir_bytes text)
{
    const struct weir_bytes want = regex->text;
    const bool fits = text.len >= want.len;
    switch (regex->shape) {
    case SHAPE_WORDS:
        return is_one_of(want, text);
    case SHAPE_ANY:
        return true;
    case SHAPE_SOME:
        return text.len > 0;
    case SHAPE_PREFIX:
        return fits && (want.len == 0 || memcmp(text.ptr, want.ptr, want.len) == 0);
    case SHAPE_SUFFIX:
        return fits &&
               (want.len == 0 || memcmp(text.ptr + text.len - want.len, want.ptr, want.len) == 0);
    case SHAPE_INFIX:
        return fits && (want.len == 0 || memmem(text.ptr, text.len, want.ptr, want.len) != NULL);
    case SHAPE_PROGRAM:
        break;
    }
    return false;
}

/* --- compiling ------------------------------------------------------------------------------- */

struct compiler {
    struct instruction *program; /* QUERY_REGEX_PROGRAM_MAX of them */
    uint32_t count;
    uint32_t visits; /* bounds repeats of bodies that emit nothing */
    bool full;
};

static uint32_t emit(struct compiler *c, struct instruction instruction)
{
    if (c->count >= QUERY_REGEX_PROGRAM_MAX) {
        c->full = true;
        return 0;
    }
    c->program[c->count] = instruction;
    return c->count++;
}

static void compile(struct compiler *c, const struct regex_node *node);

/* x* and x?: SPLIT over the body, and back for the star. */
static void compile_optional(struct compiler *c, const struct regex_node *body, bool star)
{
    const uint32_t split = emit(c, (struct instruction){.op = OP_SPLIT});
    compile(c, body);
    if (star)
        (void)emit(c, (struct instruction){.op = OP_JUMP, .x = split});
    c->program[split].x = split + 1;
    c->program[split].y = c->count;
}

static void compile_repeat(struct compiler *c, const struct regex_node *node)
{
    for (uint32_t i = 0; i < node->min && !c->full; i++)
        compile(c, node->first);
    if (node->max == REGEX_UNBOUNDED) {
        compile_optional(c, node->first, true);
        return;
    }
    for (uint32_t i = node->min; i < node->max && !c->full; i++)
        compile_optional(c, node->first, false);
}

static void compile_alternate(struct compiler *c, const struct regex_node *node)
{
    /* Each way ends in a jump to behind the last; the jumps are chained through y until then. */
    uint32_t pending = UINT32_MAX;
    for (const struct regex_node *way = node->first; way && !c->full; way = way->next) {
        if (!way->next) {
            compile(c, way);
            break;
        }
        const uint32_t split = emit(c, (struct instruction){.op = OP_SPLIT});
        compile(c, way);
        const uint32_t jump = emit(c, (struct instruction){.op = OP_JUMP, .y = pending});
        pending = jump;
        c->program[split].x = split + 1;
        c->program[split].y = c->count;
    }
    while (pending != UINT32_MAX && !c->full) {
        const uint32_t before = c->program[pending].y;
        c->program[pending].x = c->count;
        pending = before;
    }
}

static void compile(struct compiler *c, const struct regex_node *node)
{
    if (++c->visits > 8 * QUERY_REGEX_PROGRAM_MAX)
        c->full = true;
    if (c->full)
        return;
    switch (node->kind) {
    case REGEX_EMPTY:
        break;
    case REGEX_RANGES:
        (void)emit(c, (struct instruction){.op = OP_RANGES,
                                           .ranges = node->ranges,
                                           .range_count = node->range_count});
        break;
    case REGEX_ASSERT:
        (void)emit(c, (struct instruction){.op = OP_ASSERT, .x = node->min});
        break;
    case REGEX_CONCAT:
        for (const struct regex_node *part = node->first; part; part = part->next)
            compile(c, part);
        break;
    case REGEX_ALTERNATE:
        compile_alternate(c, node);
        break;
    case REGEX_REPEAT:
        compile_repeat(c, node);
        break;
    }
}

bool query_regex_compile(struct query_arena *arena, struct weir_bytes pattern, size_t at,
                         struct query_regex **ret_regex, struct query_error *error)
{
    struct query_regex *const regex = query_arena_take(arena, sizeof *regex);
    if (!regex)
        return query_fail_memory(error);
    *ret_regex = regex;
    if (take_shape(regex, pattern))
        return true;
    struct regex_node *root;
    if (!regex_parse(arena, pattern, at, &root, error))
        return false;
    struct compiler c = {.program = query_arena_take_array(arena, QUERY_REGEX_PROGRAM_MAX,
                                                           sizeof(struct instruction))};
    if (!c.program)
        return query_fail_memory(error);
    compile(&c, root);
    (void)emit(&c, (struct instruction){.op = OP_MATCH});
    if (c.full)
        return query_fail(error, QUERY_FAULT_PARSE, at,
                          "error parsing regexp: expression too large: %s",
                          QUERY_QUOTE(pattern.ptr, pattern.len));
    regex->program = c.program;
    regex->count = c.count;
    return true;
}

/* --- running --------------------------------------------------------------------------------- */

/* A sparse set: a member's place in dense is in sparse, whatever stale values stand there. */
struct state_set {
    uint32_t count;
    uint32_t dense[QUERY_REGEX_PROGRAM_MAX];
    uint32_t sparse[QUERY_REGEX_PROGRAM_MAX];
};

struct machine {
    const struct query_regex *regex;
    struct weir_bytes text;
    size_t at;
};

static bool is_word_byte(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool assert_holds(const struct machine *m, uint32_t which)
{
    const bool first = m->at == 0;
    const bool last = m->at == m->text.len;
    const bool before = !first && is_word_byte(m->text.ptr[m->at - 1]);
    const bool after = !last && is_word_byte(m->text.ptr[m->at]);
    switch (which) {
    case REGEX_AT_BEGIN:
        return first;
    case REGEX_AT_END:
        return last;
    case REGEX_AT_LINE_BEGIN:
        return first || m->text.ptr[m->at - 1] == '\n';
    case REGEX_AT_LINE_END:
        return last || m->text.ptr[m->at] == '\n';
    case REGEX_AT_WORD:
        return before != after;
    default: /* REGEX_NOT_AT_WORD */
        return before == after;
    }
}

static void insert(struct state_set *set, uint32_t state)
{
    const uint32_t place = set->sparse[state];
    if (place < set->count && set->dense[place] == state)
        return;
    set->sparse[state] = set->count;
    set->dense[set->count++] = state;
}

/* Close the set under the instructions that take nothing: it grows while it is walked. */
static void close_set(const struct machine *m, struct state_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const struct instruction *const in = &m->regex->program[set->dense[i]];
        switch (in->op) {
        case OP_SPLIT:
            insert(set, in->x);
            insert(set, in->y);
            break;
        case OP_JUMP:
            insert(set, in->x);
            break;
        case OP_ASSERT:
            if (assert_holds(m, in->x))
                insert(set, set->dense[i] + 1);
            break;
        case OP_RANGES:
        case OP_MATCH:
            break;
        }
    }
}

static bool in_ranges(const struct instruction *in, int32_t rune)
{
    size_t low = 0;
    size_t high = in->range_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (rune < in->ranges[middle].first)
            high = middle;
        else if (rune > in->ranges[middle].last)
            low = middle + 1;
        else
            return true;
    }
    return false;
}

static bool has_match(const struct query_regex *regex, const struct state_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        if (regex->program[set->dense[i]].op == OP_MATCH)
            return true;
    }
    return false;
}

static int run(struct machine *m, struct state_set *now, struct state_set *next, uint64_t *budget)
{
    now->count = 0;
    insert(now, 0);
    close_set(m, now);
    while (m->at < m->text.len && now->count) {
        if (*budget < now->count)
            return -1;
        *budget -= now->count;
        size_t step;
        int32_t rune = query_utf8_next(m->text.ptr + m->at, m->text.len - m->at, &step);
        if (rune < 0)
            rune = 0xFFFD;
        m->at += step;
        next->count = 0;
        for (uint32_t i = 0; i < now->count; i++) {
            const uint32_t state = now->dense[i];
            const struct instruction *const in = &m->regex->program[state];
            if (in->op == OP_RANGES && in_ranges(in, rune))
                insert(next, state + 1);
        }
        close_set(m, next);
        struct state_set *const swap = now;
        now = next;
        next = swap;
    }
    return m->at == m->text.len && has_match(m->regex, now);
}

int query_regex_match(const struct query_regex *regex, struct weir_bytes text, uint64_t *budget)
{
    if (regex->shape != SHAPE_PROGRAM)
        return match_shape(regex, text);
    struct state_set sets[2];
    memset(sets[0].sparse, 0, regex->count * sizeof sets[0].sparse[0]);
    memset(sets[1].sparse, 0, regex->count * sizeof sets[1].sparse[0]);
    struct machine m = {.regex = regex, .text = text};
    return run(&m, &sets[0], &sets[1], budget);
}
