/* SPDX-License-Identifier: Apache-2.0 */
/*
 * regex_parse: recursive descent over RE2's syntax: alternatives, concatenation, repeats, atoms.
 * A class collects ranges, which are sorted and merged, and negated, at its end.
 *
 * Threads: none inside. Memory: the arena; ranges of a class at most CLASS_MAX.
 */
#include "regex_parse.h"

#include <stdlib.h>
#include <string.h>

#define RUNE_MAX 0x10FFFF
#define CLASS_MAX 256

struct flags {
    bool fold;  /* i */
    bool lines; /* m */
    bool dot_all;
};

struct reader {
    struct query_arena *arena;
    struct query_error *error;
    size_t at_query;
    const char *begin;
    const char *p;
    const char *end;
    struct flags flags;
    uint32_t depth;
};

struct class
{
    struct regex_range ranges[CLASS_MAX];
    size_t count;
    bool full;
};

static struct regex_node *parse_alternate(struct reader *r);

static bool fail(struct reader *r, const char *what, const char *from, const char *to)
{
    struct query_quoted quoted;
    const char *const shown = query_quote(&quoted, from, (size_t)(to - from));
    const size_t len = strlen(shown);
    /* Between backticks, as RE2's wording has it. */
    return query_fail(r->error, QUERY_FAULT_PARSE, r->at_query, "error parsing regexp: %s: `%.*s`",
                      what, (int)(len >= 2 ? len - 2 : 0), shown + 1);
}

static struct regex_node *new_node(struct reader *r, enum regex_kind kind)
{
    struct regex_node *const node = query_arena_take(r->arena, sizeof *node);
    if (!node) {
        (void)query_fail_memory(r->error);
        return NULL;
    }
    node->kind = kind;
    return node;
}

static int peek(const struct reader *r)
{
    return r->p < r->end ? (unsigned char)*r->p : -1;
}

static int32_t next_rune(struct reader *r)
{
    size_t len;
    const int32_t rune = query_utf8_next(r->p, (size_t)(r->end - r->p), &len);
    r->p += len;
    return rune;
}

/* --- classes --------------------------------------------------------------------------------- */

static void add_range(struct class *c, int32_t first, int32_t last)
{
    if (c->count == CLASS_MAX) {
        c->full = true;
        return;
    }
    c->ranges[c->count++] = (struct regex_range){.first = first, .last = last};
}

/* The other case of the letters in first..last; k and s have one more outside ASCII. */
static void add_folded(struct class *c, int32_t first, int32_t last)
{
    add_range(c, first, last);
    for (int32_t letter = 'a'; letter <= 'z'; letter++) {
        const int32_t upper = letter - 'a' + 'A';
        const int32_t third = letter == 'k' ? 0x212A : letter == 's' ? 0x17F : -1;
        const bool has = (first <= letter && letter <= last) || (first <= upper && upper <= last) ||
                         (third >= 0 && first <= third && third <= last);
        if (!has)
            continue;
        add_range(c, letter, letter);
        add_range(c, upper, upper);
        if (third >= 0)
            add_range(c, third, third);
    }
}

static int compare_ranges(const void *a, const void *b)
{
    const struct regex_range *const x = a;
    const struct regex_range *const y = b;
    return (x->first > y->first) - (x->first < y->first);
}

static void normalize(struct class *c)
{
    qsort(c->ranges, c->count, sizeof *c->ranges, compare_ranges);
    size_t n = 0;
    for (size_t i = 0; i < c->count; i++) {
        if (n && c->ranges[i].first <= c->ranges[n - 1].last + 1) {
            if (c->ranges[i].last > c->ranges[n - 1].last)
                c->ranges[n - 1].last = c->ranges[i].last;
        } else {
            c->ranges[n++] = c->ranges[i];
        }
    }
    c->count = n;
}

static void negate(struct class *c)
{
    normalize(c);
    struct class out = {.count = 0};
    int32_t from = 0;
    for (size_t i = 0; i < c->count; i++) {
        if (c->ranges[i].first > from)
            add_range(&out, from, c->ranges[i].first - 1);
        from = c->ranges[i].last + 1;
    }
    if (from <= RUNE_MAX)
        add_range(&out, from, RUNE_MAX);
    out.full = out.full || c->full;
    *c = out;
}

static struct regex_node *class_node(struct reader *r, struct class *c)
{
    if (c->full) {
        (void)fail(r, "character class too large", r->begin, r->end);
        return NULL;
    }
    normalize(c);
    struct regex_node *const node = new_node(r, REGEX_RANGES);
    struct regex_range *const ranges = query_arena_take_array(r->arena, c->count, sizeof *ranges);
    if (!node || !ranges) {
        (void)query_fail_memory(r->error);
        return NULL;
    }
    memcpy(ranges, c->ranges, c->count * sizeof *ranges);
    node->ranges = ranges;
    node->range_count = c->count;
    return node;
}

struct named_class {
    const char *name;
    struct regex_range ranges[4];
    size_t count;
};

static const struct named_class posix_classes[] = {
    {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}, 3},
    {"alpha", {{'A', 'Z'}, {'a', 'z'}}, 2},
    {"ascii", {{0, 0x7F}}, 1},
    {"blank", {{'\t', '\t'}, {' ', ' '}}, 2},
    {"cntrl", {{0, 0x1F}, {0x7F, 0x7F}}, 2},
    {"digit", {{'0', '9'}}, 1},
    {"graph", {{'!', '~'}}, 1},
    {"lower", {{'a', 'z'}}, 1},
    {"print", {{' ', '~'}}, 1},
    {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}, 4},
    {"space", {{'\t', '\r'}, {' ', ' '}}, 2},
    {"upper", {{'A', 'Z'}}, 1},
    {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
    {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}, 3},
};
static const struct named_class perl_classes[] = {
    {"d", {{'0', '9'}}, 1},
    {"s", {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}}, 3},
    {"w", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
};

static void add_named(const struct reader *r, struct class *c, const struct named_class *named,
                      bool negated)
{
    struct class part = {.count = 0};
    for (size_t i = 0; i < named->count; i++) {
        if (r->flags.fold)
            add_folded(&part, named->ranges[i].first, named->ranges[i].last);
        else
            add_range(&part, named->ranges[i].first, named->ranges[i].last);
    }
    if (negated)
        negate(&part);
    for (size_t i = 0; i < part.count; i++)
        add_range(c, part.ranges[i].first, part.ranges[i].last);
}

/* \d \D \s \S \w \W at p (on the backslash). */
static bool take_perl_class(struct reader *r, struct class *c)
{
    if (r->end - r->p < 2)
        return false;
    const char letter = r->p[1];
    for (size_t i = 0; i < sizeof perl_classes / sizeof *perl_classes; i++) {
        const char lower = perl_classes[i].name[0];
        if (letter == lower || letter == lower - 'a' + 'A') {
            add_named(r, c, &perl_classes[i], letter != lower);
            r->p += 2;
            return true;
        }
    }
    return false;
}

/* [:name:] or [:^name:] inside a class. 1 taken, 0 not one, -1 an unknown name. */
static int take_posix_class(struct reader *r, struct class *c)
{
    const char *const from = r->p;
    if (r->end - from < 4 || from[0] != '[' || from[1] != ':')
        return 0;
    const char *const close = memmem(from + 2, (size_t)(r->end - from - 2), ":]", 2);
    if (!close)
        return 0;
    const bool negated = from[2] == '^';
    const char *const name = from + 2 + (negated ? 1 : 0);
    const size_t len = (size_t)(close - name);
    for (size_t i = 0; i < sizeof posix_classes / sizeof *posix_classes; i++) {
        const char *const known = posix_classes[i].name;
        if (strlen(known) == len && memcmp(known, name, len) == 0) {
            add_named(r, c, &posix_classes[i], negated);
            r->p = close + 2;
            return 1;
        }
    }
    (void)fail(r, "invalid character class range", from, close + 2);
    return -1;
}

/* --- escapes --------------------------------------------------------------------------------- */

static int hex_value(int c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
        return (c | 0x20) - 'a' + 10;
    return -1;
}

/* After \x: two digits, or any number in braces. */
static bool take_hex(struct reader *r, const char *from, int32_t *ret_rune)
{
    int32_t value = 0;
    int digits = 0;
    const bool braces = peek(r) == '{';
    r->p += braces ? 1 : 0;
    while ((braces || digits < 2) && hex_value(peek(r)) >= 0 && value <= RUNE_MAX) {
        value = value * 16 + hex_value(peek(r));
        r->p++;
        digits++;
    }
    const bool closed = !braces || peek(r) == '}';
    if (!closed || value > RUNE_MAX || digits < (braces ? 1 : 2))
        return fail(r, "invalid escape sequence", from, r->p < r->end ? r->p + 1 : r->end);
    r->p += braces ? 1 : 0;
    *ret_rune = value;
    return true;
}

/* One escaped code point; p is on the backslash. */
static bool take_escape(struct reader *r, int32_t *ret_rune)
{
    static const char letters[] = "afnrtv";
    static const char values[] = "\a\f\n\r\t\v";
    const char *const from = r->p++;
    if (r->p == r->end)
        return fail(r, "trailing backslash at end of expression", r->p, r->p);
    const int32_t c = next_rune(r);
    if (c < 0)
        return fail(r, "invalid UTF-8", from, r->end);
    const char *const letter = c > 0 && c < 0x80 ? strchr(letters, c) : NULL;
    if (letter) {
        *ret_rune = values[letter - letters];
        return true;
    }
    if (c == 'x')
        return take_hex(r, from, ret_rune);
    /* \1 to \7 need a second octal digit: a single one would be a back-reference elsewhere. */
    if (c == '0' || (c >= '1' && c <= '7' && peek(r) >= '0' && peek(r) <= '7')) {
        int32_t value = c - '0';
        for (int i = 1; i < 3 && peek(r) >= '0' && peek(r) <= '7'; i++)
            value = value * 8 + (*r->p++ - '0');
        *ret_rune = value;
        return true;
    }
    const bool alnum =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80;
    if (alnum)
        return fail(r, "invalid escape sequence", from, r->p);
    *ret_rune = c;
    return true;
}

/* --- atoms ----------------------------------------------------------------------------------- */

static bool add_literal(struct reader *r, struct class *c, int32_t first, int32_t last)
{
    if (!r->flags.fold) {
        add_range(c, first, last);
        return true;
    }
    if (last >= 0x80 && first != last)
        return fail(r, "ignoring case outside ASCII is not supported", r->begin, r->end);
    if (first >= 0x80 && first != 0x212A && first != 0x17F)
        return fail(r, "ignoring case outside ASCII is not supported", r->begin, r->end);
    add_folded(c, first, last);
    return true;
}

static struct regex_node *literal_node(struct reader *r, int32_t rune)
{
    struct class c = {.count = 0};
    return add_literal(r, &c, rune, rune) ? class_node(r, &c) : NULL;
}

static bool take_class_rune(struct reader *r, const char *open, int32_t *ret_rune)
{
    if (r->p == r->end)
        return fail(r, "missing closing ]", open, r->end);
    if (*r->p == '\\')
        return take_escape(r, ret_rune);
    *ret_rune = next_rune(r);
    return *ret_rune >= 0 || fail(r, "invalid UTF-8", open, r->end);
}

static bool take_class_item(struct reader *r, const char *open, struct class *c)
{
    const int posix = take_posix_class(r, c);
    if (posix)
        return posix > 0;
    if (take_perl_class(r, c))
        return true;
    const char *const from = r->p;
    int32_t first = 0;
    if (!take_class_rune(r, open, &first))
        return false;
    int32_t last = first;
    if (r->end - r->p >= 2 && r->p[0] == '-' && r->p[1] != ']') {
        r->p++;
        if (!take_class_rune(r, open, &last))
            return false;
        if (last < first)
            return fail(r, "invalid character class range", from, r->p);
    }
    return add_literal(r, c, first, last);
}

static struct regex_node *parse_class(struct reader *r)
{
    struct class c = {.count = 0};
    const char *const open = r->p++;
    const bool negated = peek(r) == '^';
    r->p += negated ? 1 : 0;
    for (bool first = true; first || peek(r) != ']'; first = false) {
        if (r->p == r->end) {
            (void)fail(r, "missing closing ]", open, r->end);
            return NULL;
        }
        /* RE2 takes a '-' at the ends only. */
        if (*r->p == '-' && !first && r->end - r->p >= 2 && r->p[1] != ']') {
            (void)fail(r, "invalid character class range", r->p, r->p + 2);
            return NULL;
        }
        if (!take_class_item(r, open, &c))
            return NULL;
    }
    r->p++;
    if (negated)
        negate(&c);
    return class_node(r, &c);
}

static struct regex_node *assert_node(struct reader *r, enum regex_assert which)
{
    struct regex_node *const node = new_node(r, REGEX_ASSERT);
    if (node)
        node->min = (uint32_t)which;
    return node;
}

/* \Q...\E: all of it literal. */
static struct regex_node *parse_quote(struct reader *r)
{
    r->p += 2;
    struct regex_node *const node = new_node(r, REGEX_CONCAT);
    if (!node)
        return NULL;
    struct regex_node **tail = &node->first;
    while (r->p < r->end) {
        if (r->end - r->p >= 2 && r->p[0] == '\\' && r->p[1] == 'E') {
            r->p += 2;
            break;
        }
        const int32_t rune = next_rune(r);
        if (rune < 0) {
            (void)fail(r, "invalid UTF-8", r->begin, r->end);
            return NULL;
        }
        *tail = literal_node(r, rune);
        if (!*tail)
            return NULL;
        tail = &(*tail)->next;
    }
    return node;
}

static struct regex_node *parse_escape(struct reader *r)
{
    struct class c = {.count = 0};
    if (take_perl_class(r, &c))
        return class_node(r, &c);
    switch (r->end - r->p >= 2 ? r->p[1] : 0) {
    case 'A':
        r->p += 2;
        return assert_node(r, REGEX_AT_BEGIN);
    case 'z':
        r->p += 2;
        return assert_node(r, REGEX_AT_END);
    case 'b':
        r->p += 2;
        return assert_node(r, REGEX_AT_WORD);
    case 'B':
        r->p += 2;
        return assert_node(r, REGEX_NOT_AT_WORD);
    case 'Q':
        return parse_quote(r);
    case 'p':
    case 'P':
    case 'C':
        (void)fail(r, "not supported here", r->p, r->p + 2);
        return NULL;
    default:
        break;
    }
    int32_t rune = 0;
    return take_escape(r, &rune) ? literal_node(r, rune) : NULL;
}

static bool set_flag(struct flags *flags, char letter, bool on)
{
    switch (letter) {
    case 'i':
        flags->fold = on;
        return true;
    case 'm':
        flags->lines = on;
        return true;
    case 's':
        flags->dot_all = on;
        return true;
    case 'U': /* greed does not change whether all of a text matches */
        return true;
    default:
        return false;
    }
}

/* After "(?": flags up to ':' or ')'. True with *ret_group saying whether a body follows. */
static bool take_flags(struct reader *r, const char *open, bool *ret_group)
{
    bool on = true;
    bool some = false;
    for (; r->p < r->end; r->p++) {
        const char c = *r->p;
        if ((c == ':' || c == ')') && (on || some)) {
            *ret_group = c == ':';
            r->p++;
            return true;
        }
        if (c == '-' && on) {
            on = false;
            some = false;
        } else if (set_flag(&r->flags, c, on)) {
            some = true;
        } else {
            break;
        }
    }
    return fail(r, "invalid or unsupported Perl syntax", open, r->p < r->end ? r->p + 1 : r->end);
}

/* After "(?P<" or "(?<": a name up to '>'. */
static bool take_group_name(struct reader *r, const char *open)
{
    const char *const from = r->p;
    while (r->p < r->end && (peek(r) == '_' || (peek(r) >= '0' && peek(r) <= '9') ||
                             ((peek(r) | 0x20) >= 'a' && (peek(r) | 0x20) <= 'z')))
        r->p++;
    if (r->p == from || peek(r) != '>')
        return fail(r, "invalid named capture", open, r->p < r->end ? r->p + 1 : r->end);
    r->p++;
    return true;
}

/* p is behind "("; *ret_body: a body and ")" follow. */
static bool take_group_head(struct reader *r, const char *open, bool *ret_body)
{
    *ret_body = true;
    if (peek(r) != '?')
        return true;
    r->p++;
    const ptrdiff_t left = r->end - r->p;
    if (left >= 2 && r->p[0] == 'P' && r->p[1] == '<') {
        r->p += 2;
        return take_group_name(r, open);
    }
    if (left >= 2 && r->p[0] == '<' && r->p[1] != '=' && r->p[1] != '!') {
        r->p++;
        return take_group_name(r, open);
    }
    return take_flags(r, open, ret_body);
}

static struct regex_node *parse_group(struct reader *r)
{
    const char *const open = r->p++;
    const struct flags outside = r->flags;
    bool body;
    if (!take_group_head(r, open, &body))
        return NULL;
    if (!body) /* (?i): the flags hold to the end of the enclosing group */
        return new_node(r, REGEX_EMPTY);
    if (++r->depth > QUERY_REGEX_DEPTH_MAX) {
        (void)fail(r, "expression nests too deeply", r->begin, r->end);
        return NULL;
    }
    struct regex_node *const node = parse_alternate(r);
    r->depth--;
    if (!node)
        return NULL;
    if (peek(r) != ')') {
        (void)fail(r, "missing closing )", r->begin, r->end);
        return NULL;
    }
    r->p++;
    r->flags = outside;
    return node;
}

static struct regex_node *parse_dot(struct reader *r)
{
    struct class c = {.count = 0};
    r->p++;
    if (!r->flags.dot_all) {
        add_range(&c, 0, '\n' - 1);
        add_range(&c, '\n' + 1, RUNE_MAX);
    } else {
        add_range(&c, 0, RUNE_MAX);
    }
    return class_node(r, &c);
}

static struct regex_node *parse_atom(struct reader *r)
{
    switch (*r->p) {
    case '(':
        return parse_group(r);
    case '[':
        return parse_class(r);
    case '.':
        return parse_dot(r);
    case '^':
        r->p++;
        return assert_node(r, r->flags.lines ? REGEX_AT_LINE_BEGIN : REGEX_AT_BEGIN);
    case '$':
        r->p++;
        return assert_node(r, r->flags.lines ? REGEX_AT_LINE_END : REGEX_AT_END);
    case '\\':
        return parse_escape(r);
    case '*':
    case '+':
    case '?':
        (void)fail(r, "missing argument to repetition operator", r->p, r->p + 1);
        return NULL;
    default:
        break;
    }
    const int32_t rune = next_rune(r);
    if (rune < 0) {
        (void)fail(r, "invalid UTF-8", r->begin, r->end);
        return NULL;
    }
    return literal_node(r, rune);
}

/* --- repeats, concatenation, alternatives ---------------------------------------------------- */

/* A decimal number without leading zeros; *ret past the limit for a longer one. */
static bool take_count(struct reader *r, uint32_t *ret)
{
    const char *const from = r->p;
    uint32_t value = 0;
    for (; peek(r) >= '0' && peek(r) <= '9'; r->p++) {
        if (value <= QUERY_REGEX_REPEAT_MAX)
            value = value * 10 + (uint32_t)(*r->p - '0');
    }
    *ret = value;
    return r->p > from && (*from != '0' || r->p == from + 1);
}

/* {n} {n,} {n,m}; false without having moved when it is none of them, and then a literal. */
static bool take_braces(struct reader *r, uint32_t *ret_min, uint32_t *ret_max)
{
    const char *const from = r->p++;
    bool ok = take_count(r, ret_min);
    *ret_max = *ret_min;
    if (ok && peek(r) == ',') {
        r->p++;
        if (peek(r) == '}')
            *ret_max = REGEX_UNBOUNDED;
        else
            ok = take_count(r, ret_max);
    }
    if (ok && peek(r) == '}') {
        r->p++;
        return true;
    }
    r->p = from;
    return false;
}

static bool take_repeat(struct reader *r, uint32_t *ret_min, uint32_t *ret_max)
{
    switch (peek(r)) {
    case '*':
        *ret_min = 0;
        *ret_max = REGEX_UNBOUNDED;
        break;
    case '+':
        *ret_min = 1;
        *ret_max = REGEX_UNBOUNDED;
        break;
    case '?':
        *ret_min = 0;
        *ret_max = 1;
        break;
    case '{':
        return take_braces(r, ret_min, ret_max);
    default:
        return false;
    }
    r->p++;
    return true;
}

static struct regex_node *parse_repeat(struct reader *r)
{
    struct regex_node *const atom = parse_atom(r);
    const char *const from = r->p;
    uint32_t min;
    uint32_t max;
    if (!atom || !take_repeat(r, &min, &max))
        return atom;
    const bool over = min > QUERY_REGEX_REPEAT_MAX ||
                      (max != REGEX_UNBOUNDED && (max > QUERY_REGEX_REPEAT_MAX || max < min));
    if (over) {
        (void)fail(r, "invalid repeat count", from, r->p);
        return NULL;
    }
    if (peek(r) == '?') /* lazy: the same texts match */
        r->p++;
    uint32_t ignored;
    if (take_repeat(r, &ignored, &ignored)) {
        (void)fail(r, "invalid nested repetition operator", from, r->p);
        return NULL;
    }
    struct regex_node *const node = new_node(r, REGEX_REPEAT);
    if (!node)
        return NULL;
    node->first = atom;
    node->min = min;
    node->max = max;
    return node;
}

static struct regex_node *parse_concat(struct reader *r)
{
    struct regex_node *const node = new_node(r, REGEX_CONCAT);
    if (!node)
        return NULL;
    struct regex_node **tail = &node->first;
    while (r->p < r->end && *r->p != '|' && *r->p != ')') {
        *tail = parse_repeat(r);
        if (!*tail)
            return NULL;
        tail = &(*tail)->next;
    }
    return node;
}

static struct regex_node *parse_alternate(struct reader *r)
{
    struct regex_node *const node = new_node(r, REGEX_ALTERNATE);
    if (!node)
        return NULL;
    struct regex_node **tail = &node->first;
    for (;;) {
        *tail = parse_concat(r);
        if (!*tail)
            return NULL;
        tail = &(*tail)->next;
        if (peek(r) != '|')
            return node;
        r->p++;
    }
}

bool regex_parse(struct query_arena *arena, struct weir_bytes pattern, size_t at,
                 struct regex_node **ret_root, struct query_error *error)
{
    struct reader r = {.arena = arena,
                       .error = error,
                       .at_query = at,
                       .begin = pattern.ptr,
                       .p = pattern.ptr,
                       .end = pattern.ptr + pattern.len,
                       .flags = {.dot_all = true}};
    *ret_root = parse_alternate(&r);
    if (!*ret_root)
        return false;
    if (r.p < r.end)
        return fail(&r, "unexpected )", r.begin, r.end);
    return true;
}
