/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan: one look at what is to be written, before it is: see encoder.h.
 */
#include "trace/encoder.h"

#include "trace/utf.h"

/* An attribute is three entries of an array; the encoder's own and a payload's come to them. */
#define TAGS_MAX ((size_t)UINT32_MAX / 16)
#define FEW_TAGS 16
#define SHORT_KEY 192 /* bytes of a key of 64 units at most */
/* A status outside three digits could not be sent as such. */
#define STATUS_MIN 100
#define STATUS_MAX 999
#define KIND_MAX 5 /* consumer */
/* Links and events, each with its fixed fields: ids, time, headers, keys. */
#define ITEM_BOUND 64

/* Add what s takes at most in any version, not mended; false: it is no string. */
WR_INLINE bool add_str(size_t *bound, struct weir_str s)
{
    if (WR_LIKELY(s.kind == WEIR_STR_TEXT)) {
        if (!s.ptr)
            return false;
        /* An index is at most 5 bytes, where a framed text may be one. */
        *bound += wr_text_of(s)->framed_len + WR_MP_HEAD_MAX;
        return true;
    }
    *bound += WR_MP_HEAD_MAX + (s.kind == WEIR_STR_UTF16 ? 3 * (size_t)s.len : s.len);
    return s.kind <= WEIR_STR_UTF16;
}

/* A field, which may be no string. */
static bool add_field(size_t *bound, struct weir_str s)
{
    return !s.ptr || add_str(bound, s);
}

WR_INLINE bool add_value(size_t *bound, const struct weir_trace_value *v)
{
    *bound += 1 + WR_MP_INT_MAX;
    switch (v->type) {
    case WEIR_TRACE_STR:
        return add_str(bound, v->v.str);
    case WEIR_TRACE_BOOL:
    case WEIR_TRACE_INT:
    case WEIR_TRACE_DOUBLE:
        return true;
    default:
        return false;
    }
}

/* A link's or an event's attribute, which may be an array. */
static bool add_typed(size_t *bound, const struct weir_trace_tag *tag)
{
    if (!add_str(bound, tag->key))
        return false;
    const struct weir_trace_value *const v = &tag->value;
    if (v->type != WEIR_TRACE_ARRAY)
        return add_value(bound, v);
    *bound += 1 + WR_MP_HEAD_MAX;
    if (v->count && !v->v.items)
        return false;
    for (uint32_t i = 0; i < v->count; i++) {
        if (!add_value(bound, &v->v.items[i]))
            return false;
    }
    return true;
}

static bool add_attributes(size_t *bound, const struct weir_trace_tag *tags, size_t count)
{
    if (count && !tags)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!add_typed(bound, &tags[i]))
            return false;
    }
    return true;
}

static bool add_blobs(size_t *bound, const struct weir_trace_extra *x)
{
    for (size_t i = 0; i < x->blob_count; i++) {
        const struct weir_bytes value = x->blobs[i].value;
        if (!add_str(bound, x->blobs[i].key) || (value.len && !value.ptr))
            return false;
        *bound += 1 + WR_MP_HEAD_MAX + value.len;
    }
    return true;
}

static bool counts_are_sane(const struct weir_trace_extra *x)
{
    return (!x->link_count || x->links) && (!x->event_count || x->events) &&
           (!x->blob_count || x->blobs);
}

static bool add_items(size_t *bound, const struct weir_trace_extra *x)
{
    bool ok = add_blobs(bound, x);
    for (size_t i = 0; ok && i < x->link_count; i++) {
        *bound += ITEM_BOUND;
        ok = add_field(bound, x->links[i].tracestate) &&
             add_attributes(bound, x->links[i].attributes, x->links[i].attribute_count);
    }
    for (size_t i = 0; ok && i < x->event_count; i++) {
        *bound += ITEM_BOUND;
        ok = add_field(bound, x->events[i].name) &&
             add_attributes(bound, x->events[i].attributes, x->events[i].attribute_count);
    }
    return ok;
}

/* These are checked and counted at once: they are few, and become JSON before anything is written.
 */
static int plan_extra(struct wr_trace_plan *p)
{
    const struct weir_trace_extra *const x = p->span->extra;
    if (!counts_are_sane(x))
        return WEIR_EINVAL;
    if (x->link_count > TAGS_MAX || x->event_count > TAGS_MAX || x->blob_count > TAGS_MAX)
        return WEIR_ERANGE;
    for (size_t i = 0; i < x->event_count; i++) {
        if (x->events[i].attribute_count > TAGS_MAX)
            return WEIR_ERANGE;
    }
    for (size_t i = 0; i < x->link_count; i++) {
        if (x->links[i].attribute_count > TAGS_MAX)
            return WEIR_ERANGE;
    }
    if (!add_items(&p->more, x))
        return WEIR_EINVAL;
    if (x->link_count)
        p->own |= WR_KNOWN_BIT(LINKS);
    if (x->event_count)
        p->own |= WR_KNOWN_BIT(EVENTS);
    return WEIR_OK;
}

/* Links and events become JSON before v1.0. Both lie in one buffer, which moves while it grows. */
static int make_json(struct weir_trace_encoder *e, struct wr_trace_plan *p)
{
    const struct weir_trace_extra *const x = p->span->extra;
    struct wr_out *const json = &e->json;
    wr_out_clear(json);
    if (p->own & WR_KNOWN_BIT(LINKS))
        wr_trace_json_links(e, x);
    const size_t links = json->len;
    if (p->own & WR_KNOWN_BIT(EVENTS))
        wr_trace_json_events(e, x);
    if (json->err || e->err)
        return e->err ? e->err : json->err;
    p->links = weir_str_utf8(json->ptr, (uint32_t)links);
    p->events = weir_str_utf8(json->ptr + links, (uint32_t)(json->len - links));
    p->more += json->len + (size_t)2 * WR_MP_HEAD_MAX;
    return WEIR_OK;
}

static uint32_t kinds_of_keys(const struct weir_trace_tag *tags, size_t count)
{
    uint32_t kinds = 0;
    for (size_t i = 0; i < count; i++)
        kinds |= tags[i].key.kind;
    return kinds;
}

/* Copy tags behind *at; keys that are UTF-16 become UTF-8 in e->keys, where there is room. */
static bool copy_tags(struct weir_trace_encoder *e, struct weir_trace_tag *to,
                      const struct weir_trace_tag *tags, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = tags[i];
        if (tags[i].key.kind != WEIR_STR_UTF16)
            continue;
        if (tags[i].key.len && !tags[i].key.ptr)
            return false;
        char *const at = e->keys.ptr + e->keys.len;
        uint64_t mended = 0;
        char *const end = wr_utf16_to_utf8(at, tags[i].key.ptr, tags[i].key.len, &mended);
        e->counts.texts_mended += mended ? 1 : 0;
        wr_out_commit(&e->keys, end);
        to[i].key = weir_str_utf8(at, (uint32_t)(end - at));
    }
    return true;
}

static size_t key_units(const struct weir_trace_tag *tags, size_t count)
{
    size_t units = 0;
    for (size_t i = 0; i < count; i++)
        units += tags[i].key.kind == WEIR_STR_UTF16 ? tags[i].key.len : 0;
    return units;
}

struct tag_list {
    const struct weir_trace_tag *tags;
    size_t count;
};

/* Several lists as one, no key of which is UTF-16. */
static int gather(struct weir_trace_encoder *e, struct wr_trace_plan *p,
                  const struct tag_list *lists, size_t count)
{
    size_t total = 0;
    size_t units = 0;
    for (size_t i = 0; i < count; i++) {
        if (lists[i].count && !lists[i].tags)
            return WEIR_EINVAL;
        total += lists[i].count;
        units += key_units(lists[i].tags, lists[i].count);
    }
    wr_out_clear(&e->tags);
    wr_out_clear(&e->keys);
    void *const room = wr_out_reserve(&e->tags, total * sizeof(struct weir_trace_tag));
    if (!room || !wr_out_reserve(&e->keys, 3 * units))
        return e->tags.err ? e->tags.err : e->keys.err;
    struct weir_trace_tag *to = room;
    p->tags = to;
    for (size_t i = 0; i < count; i++) {
        if (!copy_tags(e, to, lists[i].tags, lists[i].count))
            return WEIR_EINVAL;
        to += lists[i].count;
    }
    p->tag_count = total;
    return WEIR_OK;
}

/* The lists that a span's tags are made of, when they are not simply its own. */
static WR_NOINLINE int gather_all(struct weir_trace_encoder *e, struct wr_trace_plan *p, bool first)
{
    const struct weir_trace_span *const s = p->span;
    const struct tag_list none = {.tags = NULL, .count = 0};
    const bool header = first && e->header && e->version != WEIR_TRACE_V1 && e->counts.spans == 0;
    const struct tag_list lists[] = {
        first ? (struct tag_list){.tags = p->trace->tags, .count = p->trace->tag_count} : none,
        header ? (struct tag_list){.tags = e->header->tags, .count = e->header->tag_count} : none,
        {.tags = s->tags, .count = s->tag_count},
    };
    if (lists[0].count > TAGS_MAX || lists[1].count > TAGS_MAX)
        return WEIR_ERANGE;
    p->lead = lists[0].count;
    return gather(e, p, lists, sizeof lists / sizeof *lists);
}

static WR_NOINLINE void note_known(struct wr_trace_plan *p, uint32_t known,
                                   const struct weir_trace_tag *tag)
{
    p->seen |= UINT32_C(1) << known;
    p->found[known] = tag;
}

enum key_is { KEY_OK, KEY_TO_GATHER, KEY_INVALID };

/* What is compared and looked for of a key. */
struct key_view {
    uint64_t high; /* as in struct weir_text */
    uint64_t low;
    uint32_t known;
};

static WR_NOINLINE struct key_view view_bytes(const char *key, size_t len)
{
    const uint64_t mark = wr_text_mark(key, len);
    return (struct key_view){
        .high = wr_mark_high(mark), .low = wr_mark_low(mark), .known = wr_known_find(key, len)};
}

/* A short UTF-16 key that is ASCII; false: it is another. */
static WR_NOINLINE bool view_utf16(struct weir_str key, struct key_view *ret)
{
    char ascii[SHORT_KEY];
    uint64_t mended = 0;
    if (!key.ptr || key.len > SHORT_KEY / 3)
        return false;
    const char *const end = wr_utf16_to_utf8(ascii, key.ptr, key.len, &mended);
    *ret = view_bytes(ascii, key.len);
    return end == ascii + key.len;
}

/* A key that is a text or UTF-8; false: it is none. */
WR_INLINE bool view_key(struct weir_str key, struct key_view *ret)
{
    if (WR_LIKELY(key.kind == WEIR_STR_TEXT && key.ptr)) {
        const struct weir_text *const t = wr_text_of(key);
        *ret = (struct key_view){.high = t->high, .low = t->low, .known = t->known};
        return true;
    }
    if (key.kind != WEIR_STR_UTF8 || (key.len && !key.ptr))
        return false;
    *ret = view_bytes(key.ptr, key.len);
    return true;
}

/* Of a span's tag; its strings are looked at when they are written, but for this. */
WR_INLINE bool value_is_ok(const struct weir_trace_value *v)
{
    if (v->type != WEIR_TRACE_STR)
        return v->type <= WEIR_TRACE_DOUBLE;
    return v->v.str.ptr || v->v.str.kind != WEIR_STR_TEXT;
}

/* A key that is no text. */
static WR_NOINLINE enum key_is view_other(struct weir_str key, struct key_view *ret)
{
    if (key.kind == WEIR_STR_UTF16)
        return view_utf16(key, ret) ? KEY_OK : KEY_TO_GATHER;
    return view_key(key, ret) ? KEY_OK : KEY_INVALID;
}

/*
 * The usual case in one pass: few tags, which are the span's own, no key of which repeats. Each key
 * marks two sets of 64 bits; only where both were marked before may it repeat. *ret_done false: it
 * is not that; start again.
 */
static inline int plan_few_tags(struct wr_trace_plan *p, bool *ret_done)
{
    const size_t count = p->span->tag_count;
    const struct weir_trace_tag *const tags = p->span->tags;
    uint64_t high = 0;
    uint64_t low = 0;
    uint32_t numbers = 0;
    for (size_t i = 0; i < count; i++) {
        const struct weir_trace_tag *const tag = &tags[i];
        struct key_view view;
        if (WR_LIKELY(tag->key.kind == WEIR_STR_TEXT && tag->key.ptr)) {
            const struct weir_text *const t = wr_text_of(tag->key);
            view = (struct key_view){.high = t->high, .low = t->low, .known = t->known};
        } else {
            const enum key_is is = view_other(tag->key, &view);
            if (is != KEY_OK)
                return is == KEY_INVALID ? WEIR_EINVAL : WEIR_OK;
        }
        if (WR_UNLIKELY(!value_is_ok(&tag->value)))
            return WEIR_EINVAL;
        if (WR_UNLIKELY(view.known))
            note_known(p, view.known, tag);
        numbers += tag->value.type >= WEIR_TRACE_INT;
        if (WR_UNLIKELY(high & view.high && low & view.low))
            return WEIR_OK;
        high |= view.high;
        low |= view.low;
    }
    *ret_done = true;
    p->metrics = numbers;
    p->meta = (uint32_t)count - numbers;
    p->tag_count = count;
    return WEIR_OK;
}

static int look_at_tag(struct wr_trace_plan *p, const struct weir_trace_tag *tag)
{
    struct key_view view;
    if (!view_key(tag->key, &view) || !value_is_ok(&tag->value))
        return WEIR_EINVAL;
    if (view.known)
        note_known(p, view.known, tag);
    const bool number = tag->value.type >= WEIR_TRACE_INT;
    p->metrics += number;
    p->meta += !number;
    return WEIR_OK;
}

static WR_NOINLINE int plan_many_tags(struct weir_trace_encoder *e, struct wr_trace_plan *p,
                                      bool first)
{
    p->metrics = 0;
    p->meta = 0;
    p->seen = 0;
    p->tags = p->span->tags;
    p->tag_count = p->span->tag_count;
    if (p->tag_count > TAGS_MAX)
        return WEIR_ERANGE;
    int err = WEIR_OK;
    if (first || kinds_of_keys(p->tags, p->tag_count) & WEIR_STR_UTF16)
        err = gather_all(e, p, first);
    if (!err)
        err = wr_trace_unique_scan(&e->unique, p->tags, p->tag_count, &p->drop);
    for (size_t i = 0; i < p->tag_count && !err; i++) {
        if (!(p->drop && p->drop[i]))
            err = look_at_tag(p, &p->tags[i]);
    }
    return err;
}

static inline int plan_tags(struct weir_trace_encoder *e, struct wr_trace_plan *p, bool first)
{
    const size_t count = p->span->tag_count;
    if (WR_UNLIKELY(count && !p->span->tags))
        return WEIR_EINVAL;
    const bool gathers = first && (p->trace->tag_count || e->header);
    p->tags = p->span->tags;
    p->tag_count = 0;
    if (WR_LIKELY(count == 0 && !gathers))
        return WEIR_OK;
    if (WR_LIKELY(count <= FEW_TAGS && !gathers)) {
        bool done = false;
        const int err = plan_few_tags(p, &done);
        if (WR_LIKELY(done || err))
            return err;
    }
    return plan_many_tags(e, p, gathers);
}

/* v1.0: a tag "events" of JSON becomes the span's events. */
static int plan_events_tag(struct weir_trace_encoder *e, struct wr_trace_plan *p)
{
    const struct weir_trace_tag *const tag = p->found[WR_KNOWN_EVENTS];
    if (tag->value.type != WEIR_TRACE_STR)
        return WEIR_OK;
    const struct weir_bytes json = wr_trace_utf8(e, tag->value.v.str);
    if (e->err)
        return e->err;
    if (!wr_trace_events_ok(json))
        return WEIR_OK; /* an attribute like another */
    wr_out_clear(&e->json);
    wr_out_put(&e->json, json.ptr, json.len);
    if (e->json.err)
        return e->json.err;
    p->events_json = (struct weir_bytes){.ptr = e->json.ptr, .len = json.len};
    p->more += json.len * WR_EVENTS_GROWTH + ITEM_BOUND;
    p->meta--;
    return WEIR_OK;
}

static WR_NOINLINE int plan_rare(struct weir_trace_encoder *e, struct wr_trace_plan *p)
{
    int err = p->span->extra ? plan_extra(p) : WEIR_OK;
    p->own &= ~p->seen;
    if (err)
        return err;
    if (e->version == WEIR_TRACE_V1)
        return p->seen & WR_KNOWN_BIT(EVENTS) ? plan_events_tag(e, p) : WEIR_OK;
    return p->span->extra ? make_json(e, p) : WEIR_OK;
}

_Static_assert(WR_KNOWN_TOP_LEVEL == WR_KNOWN_MEASURED + 1 &&
                   WEIR_TRACE_TOP_LEVEL == WEIR_TRACE_MEASURED << 1,
               "two flags become two bits by one shift");

static inline uint32_t own_of(const struct weir_trace *t, const struct weir_trace_span *s,
                              bool first, bool last)
{
    const uint32_t marks = s->flags & (WEIR_TRACE_MEASURED | WEIR_TRACE_TOP_LEVEL);
    uint32_t own = marks << WR_KNOWN_MEASURED;
    if (s->flags & WEIR_TRACE_THREAD)
        own |= WR_KNOWN_BIT(THREAD_ID);
    if (t->flags & WEIR_TRACE_PRIORITY && (first || last || marks & WEIR_TRACE_TOP_LEVEL))
        own |= WR_KNOWN_BIT(PRIORITY);
    if (s->thread_name.ptr)
        own |= WR_KNOWN_BIT(THREAD_NAME);
    if (t->origin.ptr)
        own |= WR_KNOWN_BIT(ORIGIN);
    return own;
}

/* What few spans have. */
static WR_NOINLINE int plan_seldom(struct wr_trace_plan *p)
{
    const struct weir_trace_span *const s = p->span;
    if (s->kind > KIND_MAX ||
        (s->http_status && (s->http_status < STATUS_MIN || s->http_status > STATUS_MAX)))
        return WEIR_EINVAL;
    if (s->long_running_version)
        p->own |= s->long_running_version > 0 ? WR_KNOWN_BIT(PARTIAL) : WR_KNOWN_BIT(WAS_LONG);
    if (s->http_status)
        p->own |= WR_KNOWN_BIT(HTTP_STATUS);
    if (s->kind)
        p->own |= WR_KNOWN_BIT(SPAN_KIND);
    return WEIR_OK;
}

int wr_trace_bound_span(struct wr_trace_plan *p)
{
    const struct weir_trace_span *const s = p->span;
    size_t bound = WR_PIECE_FIXED + p->more;
    bool ok = add_field(&bound, s->service) && add_field(&bound, s->name) &&
              add_field(&bound, s->resource) && add_field(&bound, s->type) &&
              add_field(&bound, s->thread_name) && add_field(&bound, p->trace->origin);
    for (size_t i = 0; ok && i < p->tag_count; i++)
        ok = add_str(&bound, p->tags[i].key) && add_value(&bound, &p->tags[i].value);
    p->bound = bound;
    return ok ? WEIR_OK : WEIR_EINVAL;
}

int wr_trace_plan_span(struct weir_trace_encoder *e, const struct weir_trace *t, size_t i,
                       struct wr_trace_plan *p)
{
    const struct weir_trace_span *const s = &t->spans[i];
    p->trace = t;
    p->span = s;
    p->lead = 0;
    p->drop = NULL;
    p->metrics = 0;
    p->meta = 0;
    p->seen = 0;
    p->more = 0;
    p->events_json.ptr = NULL;
    p->own = own_of(t, s, i == 0, i + 1 == t->span_count);
    if (WR_UNLIKELY(t->trace_id_hi && i == 0))
        p->own |= WR_KNOWN_BIT(P_TID);
    int err = plan_tags(e, p, i == 0);
    if (WR_UNLIKELY(s->kind || s->http_status || s->long_running_version))
        err = err ? err : plan_seldom(p);
    if (WR_UNLIKELY(s->extra || p->seen))
        err = err ? err : plan_rare(e, p);
    if (WR_UNLIKELY(p->own != e->counted_own)) {
        e->counted_own = p->own;
        e->own_metrics = (uint32_t)__builtin_popcount(p->own & WR_OWN_METRICS);
        e->own_meta = (uint32_t)__builtin_popcount(p->own & WR_OWN_META);
        e->own_v1 = (uint32_t)__builtin_popcount(p->own & WR_OWN_V1);
    }
    return err;
}

int wr_trace_plan_chunk(struct weir_trace_encoder *e, const struct weir_trace *t,
                        struct wr_trace_plan *p)
{
    *p = (struct wr_trace_plan){.trace = t, .bound = WR_PIECE_FIXED};
    (void)e;
    const bool ok = add_field(&p->bound, t->origin) && add_field(&p->bound, t->service) &&
                    add_field(&p->bound, t->spans[0].service);
    return ok && !(t->tag_count && !t->tags) ? WEIR_OK : WEIR_EINVAL;
}

int wr_trace_plan_header(struct weir_trace_encoder *e, struct wr_trace_plan *p)
{
    *p = (struct wr_trace_plan){.bound = WR_PIECE_FIXED};
    const struct weir_trace_header *const h = e->header;
    if (!h)
        return WEIR_OK;
    const struct weir_str fields[] = {h->container_id,   h->language,   h->language_version,
                                      h->tracer_version, h->runtime_id, h->env,
                                      h->hostname,       h->app_version};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (!add_field(&p->bound, fields[i]))
            return WEIR_EINVAL;
    }
    if (h->tag_count && !h->tags)
        return WEIR_EINVAL;
    if (h->tag_count > UINT32_MAX / 3)
        return WEIR_ERANGE;
    p->tags = h->tags;
    p->tag_count = h->tag_count;
    for (size_t i = 0; i < h->tag_count; i++) {
        if (!add_str(&p->bound, h->tags[i].key) || !add_value(&p->bound, &h->tags[i].value))
            return WEIR_EINVAL;
    }
    return WEIR_OK;
}
