/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan: one look at what is to be written, before it is: see encoder.h. Every pointer and length of
 * the caller's is checked here, and nowhere after.
 */
#include "trace/encoder.h"

#include "trace/utf.h"

/* A status outside three digits could not be sent as such. */
#define STATUS_MIN 100
#define STATUS_MAX 999
#define KIND_MAX 5 /* consumer */
/* Links and events, each with its fixed fields: ids, time, headers, keys. */
#define ITEM_BOUND 64

/*
 * Add what s takes at most in any version; false: it is no string. Mending, which triples a string,
 * is left out: see wide in encoder.c.
 */
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
    return s.kind <= WEIR_STR_UTF16 && (s.len == 0 || s.ptr);
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

static int plan_extra(struct weir_trace_encoder *e, struct wr_trace_plan *p)
{
    const struct weir_trace_extra *const x = p->span->extra;
    if (!counts_are_sane(x))
        return WEIR_EINVAL;
    if (x->link_count > UINT32_MAX / 3 || x->event_count > UINT32_MAX / 3 ||
        x->blob_count > UINT32_MAX / 3)
        return WEIR_ERANGE;
    size_t bound = 0;
    bool ok = add_blobs(&bound, x);
    for (size_t i = 0; ok && i < x->link_count; i++) {
        bound += ITEM_BOUND;
        ok = add_str(&bound, x->links[i].tracestate) &&
             add_attributes(&bound, x->links[i].attributes, x->links[i].attribute_count);
    }
    for (size_t i = 0; ok && i < x->event_count; i++) {
        if (x->events[i].attribute_count > UINT32_MAX / 3)
            return WEIR_ERANGE;
        bound += ITEM_BOUND;
        ok = add_str(&bound, x->events[i].name) &&
             add_attributes(&bound, x->events[i].attributes, x->events[i].attribute_count);
    }
    p->bound += bound;
    if (x->link_count)
        p->own |= WR_KNOWN_BIT(LINKS);
    if (x->event_count)
        p->own |= WR_KNOWN_BIT(EVENTS);
    (void)e;
    return ok ? WEIR_OK : WEIR_EINVAL;
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
    p->bound += json->len + (size_t)2 * WR_MP_HEAD_MAX;
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

static int choose_tags(struct weir_trace_encoder *e, struct wr_trace_plan *p, bool first)
{
    const struct weir_trace_span *const s = p->span;
    if (WR_UNLIKELY(s->tag_count && !s->tags))
        return WEIR_EINVAL;
    p->tags = s->tags;
    p->tag_count = s->tag_count;
    const struct tag_list none = {.tags = NULL, .count = 0};
    const bool header = first && e->header && e->version != WEIR_TRACE_V1 && e->counts.spans == 0;
    const struct tag_list lists[] = {
        first ? (struct tag_list){.tags = p->trace->tags, .count = p->trace->tag_count} : none,
        header ? (struct tag_list){.tags = e->header->tags, .count = e->header->tag_count} : none,
        {.tags = s->tags, .count = s->tag_count},
    };
    const size_t total = lists[0].count + lists[1].count + lists[2].count;
    if (WR_UNLIKELY(total > UINT32_MAX / 3 - 64)) /* an attribute is three entries of an array */
        return WEIR_ERANGE;
    if (WR_LIKELY(!lists[0].count && !lists[1].count &&
                  !(kinds_of_keys(s->tags, s->tag_count) & WEIR_STR_UTF16)))
        return WEIR_OK;
    p->lead = lists[0].count;
    return gather(e, p, lists, sizeof lists / sizeof *lists);
}

static int look_at_tag(struct wr_trace_plan *p, const struct weir_trace_tag *tag)
{
    if (!add_str(&p->bound, tag->key) || !add_value(&p->bound, &tag->value))
        return WEIR_EINVAL;
    const uint32_t known = tag->key.kind == WEIR_STR_TEXT
                               ? wr_text_of(tag->key)->known
                               : wr_known_find(tag->key.ptr, tag->key.len);
    if (known) {
        p->seen |= UINT32_C(1) << known;
        p->found[known] = tag;
    }
    const bool number = tag->value.type >= WEIR_TRACE_INT;
    p->metrics += number;
    p->meta += !number;
    return WEIR_OK;
}

static int plan_tags(struct weir_trace_encoder *e, struct wr_trace_plan *p)
{
    int err = wr_trace_unique_scan(&e->unique, p->tags, p->tag_count, &p->drop);
    for (size_t i = 0; i < p->tag_count && !err; i++) {
        if (!(p->drop && p->drop[i]))
            err = look_at_tag(p, &p->tags[i]);
    }
    return err;
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
    p->bound += json.len * WR_EVENTS_GROWTH + ITEM_BOUND;
    p->meta--;
    return WEIR_OK;
}

static uint32_t own_of(const struct weir_trace *t, const struct weir_trace_span *s, bool first,
                       bool last)
{
    uint32_t own = 0;
    if (t->flags & WEIR_TRACE_PRIORITY && (first || last || s->flags & WEIR_TRACE_TOP_LEVEL))
        own |= WR_KNOWN_BIT(PRIORITY);
    if (s->flags & WEIR_TRACE_TOP_LEVEL)
        own |= WR_KNOWN_BIT(TOP_LEVEL);
    if (s->flags & WEIR_TRACE_MEASURED)
        own |= WR_KNOWN_BIT(MEASURED);
    if (s->long_running_version)
        own |= s->long_running_version > 0 ? WR_KNOWN_BIT(PARTIAL) : WR_KNOWN_BIT(WAS_LONG);
    if (s->flags & WEIR_TRACE_THREAD)
        own |= WR_KNOWN_BIT(THREAD_ID);
    if (s->thread_name.ptr)
        own |= WR_KNOWN_BIT(THREAD_NAME);
    if (t->origin.ptr)
        own |= WR_KNOWN_BIT(ORIGIN);
    if (s->http_status)
        own |= WR_KNOWN_BIT(HTTP_STATUS);
    if (s->kind)
        own |= WR_KNOWN_BIT(SPAN_KIND);
    if (first && t->trace_id_hi)
        own |= WR_KNOWN_BIT(P_TID);
    return own;
}

static bool add_fields(struct wr_trace_plan *p)
{
    const struct weir_trace_span *const s = p->span;
    return add_str(&p->bound, s->service) && add_str(&p->bound, s->name) &&
           add_str(&p->bound, s->resource) && add_str(&p->bound, s->type) &&
           add_str(&p->bound, s->thread_name) && add_str(&p->bound, p->trace->origin) &&
           s->kind <= KIND_MAX &&
           (!s->http_status || (s->http_status >= STATUS_MIN && s->http_status <= STATUS_MAX));
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
    p->bound = WR_PIECE_FIXED;
    p->events_json.ptr = NULL;
    p->own = own_of(t, s, i == 0, i + 1 == t->span_count);
    if (!add_fields(p))
        return WEIR_EINVAL;
    int err = choose_tags(e, p, i == 0);
    if (!err && p->tag_count)
        err = plan_tags(e, p);
    if (!err && s->extra)
        err = plan_extra(e, p);
    p->own &= ~p->seen;
    if (err)
        return err;
    if (e->version == WEIR_TRACE_V1)
        return WR_UNLIKELY(p->seen & WR_KNOWN_BIT(EVENTS)) ? plan_events_tag(e, p) : WEIR_OK;
    return WR_UNLIKELY(s->extra != NULL) ? make_json(e, p) : WEIR_OK;
}

int wr_trace_plan_chunk(struct weir_trace_encoder *e, const struct weir_trace *t,
                        struct wr_trace_plan *p)
{
    *p = (struct wr_trace_plan){.trace = t, .bound = WR_PIECE_FIXED};
    (void)e;
    const bool ok = add_str(&p->bound, t->origin) && add_str(&p->bound, t->service) &&
                    add_str(&p->bound, t->spans[0].service);
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
        if (!add_str(&p->bound, fields[i]))
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
