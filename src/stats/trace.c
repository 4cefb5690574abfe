/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace: what only the whole trace can tell (contracts: rows §3).
 *
 * Top level: said by the span, else computed: parent id 0, or the parent is in the same trace with
 * another service; in profile datadog also when the parent is absent. With the header
 * Datadog-Client-Computed-Top-Level the flags alone count. Whole groups are refused for a zero id
 * or a foreign trace id (contracts: wire §2.9), when spans come grouped by trace.
 *
 * Parents are found in an open-addressed table of span ids, made only for traces of more than a few
 * spans; of several spans with one id the first is the parent, and the others are not in the table.
 * Its hash is seeded: strangers choose the ids, and could choose them all for one place.
 */
#include "base/hash.h"
#include "stats/stats.h"

enum { LINEAR_MAX = 8 };

static size_t home_of(const struct weir_producer *p, uint64_t trace_id, uint64_t span_id)
{
    const uint64_t ids[2] = {trace_id, span_id};
    return (size_t)wr_hash(ids, sizeof ids, p->stats->seed) & (p->parents_cap - 1);
}

/* true: another span has the id. */
static bool parents_put(struct weir_producer *p, size_t i)
{
    const struct wr_traced *const t = &p->trace[i];
    size_t at = home_of(p, t->trace_id, t->span_id);
    while (p->parents[at]) {
        const struct wr_traced *const c = &p->trace[p->parents[at] - 1];
        if (c->span_id == t->span_id && c->trace_id == t->trace_id)
            return true;
        at = (at + 1) & (p->parents_cap - 1);
    }
    p->parents[at] = (uint32_t)i + 1;
    return false;
}

static int parents_make(struct weir_producer *p)
{
    const size_t want = wr_pow2_ceil(p->trace_count * 2);
    if (p->parents_cap < want) {
        uint32_t *const t =
            wr_realloc(&p->stats->alloc, p->parents, p->parents_cap * sizeof *t, want * sizeof *t);
        if (!t)
            return WEIR_ENOMEM;
        p->parents = t;
        p->parents_cap = want;
    }
    memset(p->parents, 0, p->parents_cap * sizeof *p->parents);
    for (size_t i = 0; i < p->trace_count; i++)
        p->notes.duplicate_ids += parents_put(p, i);
    return WEIR_OK;
}

/* Of a short trace. Most need no compare: their ids fall on different bits. */
static void count_duplicates(struct weir_producer *p)
{
    uint64_t seen = 0;
    for (size_t i = 0; i < p->trace_count; i++) {
        const struct wr_traced *const t = &p->trace[i];
        const uint64_t bit = UINT64_C(1) << (t->span_id * UINT64_C(0x9E3779B97F4A7C15) >> 58);
        bool same = false;
        if (WR_UNLIKELY(seen & bit)) {
            for (size_t k = 0; k < i && !same; k++)
                same = p->trace[k].span_id == t->span_id && p->trace[k].trace_id == t->trace_id;
        }
        seen |= bit;
        p->notes.duplicate_ids += same;
    }
}

static bool is_parent(const struct wr_traced *t, const struct wr_traced *of)
{
    return t->span_id == of->parent_id && t->trace_id == of->trace_id;
}

/* What was found for the span before: siblings come one after the other. */
struct found {
    const struct wr_traced *of; /* NULL: nothing was looked for */
    const struct wr_traced *parent;
};

static const struct wr_traced *parent_find(const struct weir_producer *p, const struct wr_traced *t)
{
    if (p->trace_count <= LINEAR_MAX) {
        for (size_t i = 0; i < p->trace_count; i++) {
            if (is_parent(&p->trace[i], t))
                return &p->trace[i];
        }
        return NULL;
    }
    size_t at = home_of(p, t->trace_id, t->parent_id);
    while (p->parents[at]) {
        const struct wr_traced *const c = &p->trace[p->parents[at] - 1];
        if (is_parent(c, t))
            return c;
        at = (at + 1) & (p->parents_cap - 1);
    }
    return NULL;
}

static const struct wr_traced *parent_of(const struct weir_producer *p, const struct wr_traced *t,
                                         struct found *last)
{
    if (!last->of || last->of->parent_id != t->parent_id || last->of->trace_id != t->trace_id)
        *last = (struct found){.of = t, .parent = parent_find(p, t)};
    return last->parent;
}

static bool computed_top_level(const struct weir_producer *p, const struct wr_traced *t,
                               struct found *last)
{
    /* A span that names itself as its parent is a root (contracts: wire §2.9). */
    if (t->parent_id == 0 || t->parent_id == t->span_id)
        return true;
    const struct wr_traced *const parent = parent_of(p, t, last);
    if (!parent)
        return p->stats->profile != WEIR_PROFILE_ALL;
    if (p->stats->profile == WEIR_PROFILE_CLIENT && parent->service_bytes == 0)
        return true; /* contracts: span-stats §1.2: the service of the parent is not known */
    return parent->service_bytes != t->service_bytes ||
           (t->service_bytes > 0 && memcmp(parent->service, t->service, t->service_bytes) != 0);
}

static struct wr_record *record_at(const struct weir_producer *p, const struct wr_traced *t)
{
    return (struct wr_record *)(void *)(p->ring->bytes + (t->ring_at & p->ring->mask));
}

/* WEIR_DROP_COUNT: the group stands. */
static enum weir_drop refusal_of(const struct weir_producer *p)
{
    if (p->trace_count == 0 || (p->trace[0].span_flags & WEIR_SPAN_LOOSE))
        return WEIR_DROP_COUNT;
    for (size_t i = 0; i < p->trace_count; i++) {
        if (p->trace[i].trace_id == 0 || p->trace[i].span_id == 0)
            return WEIR_DROP_ID_ZERO;
        if (p->trace[i].trace_id != p->trace[0].trace_id)
            return WEIR_DROP_FOREIGN_TRACE;
    }
    return WEIR_DROP_COUNT;
}

/* Contracts: span-stats §1.2: the first span that would count and is ignored ends the trace. Then
 * what it says for the sampler. */
static void settle_kept(struct weir_producer *p)
{
    const struct wr_ignored *const ignored = &p->stats->ignored;
    size_t i = 0;
    uint64_t counted = 0;
    bool keep = false;
    for (; i < p->trace_count; i++) {
        struct wr_record *const rec = record_at(p, &p->trace[i]);
        if (rec->klass != WR_CLASS_COUNTED && rec->klass != WR_CLASS_UNWEIGHTED)
            continue;
        if (ignored->count && wr_ignored_has(ignored, wr_key_resource(wr_record_key(rec))))
            break;
        counted++;
        keep |= (rec->flags & WR_RECORD_ERROR) != 0;
    }
    for (; i < p->trace_count; i++)
        record_at(p, &p->trace[i])->klass = WR_CLASS_INELIGIBLE;
    p->keep |= keep;
    p->kept.traces++;
    p->kept.spans += counted;
    p->kept.free_traces += !keep;
    p->kept.free_spans += keep ? 0 : p->trace_count;
}

/* Records whose sketch does not take their weight. */
static void settle_unweighted(struct weir_producer *p)
{
    for (size_t i = 0; i < p->trace_count; i++) {
        struct wr_record *const rec = record_at(p, &p->trace[i]);
        if (rec->klass == WR_CLASS_COUNTED && rec->weight != WEIR_WEIGHT_ONE)
            rec->klass = WR_CLASS_UNWEIGHTED;
    }
}

static void refuse(struct weir_producer *p, enum weir_drop reason)
{
    for (size_t i = 0; i < p->trace_count; i++) {
        struct wr_record *const rec = record_at(p, &p->trace[i]);
        rec->klass = WR_CLASS_DROPPED;
        rec->flags = (uint8_t)reason;
    }
}

int wr_trace_settle(struct weir_producer *p)
{
    const bool client = p->stats->profile == WEIR_PROFILE_CLIENT;
    /* A host's own traces are whole: their ids tell parents, no more. */
    const enum weir_drop reason = client ? WEIR_DROP_COUNT : refusal_of(p);
    if (reason != WEIR_DROP_COUNT) {
        refuse(p, reason);
        return WEIR_OK;
    }
    const bool flags_only = p->source.flags & WEIR_SOURCE_TOP_LEVEL_COMPUTED;
    if (!flags_only && p->trace_count > LINEAR_MAX) {
        if (parents_make(p) != WEIR_OK)
            return WEIR_ENOMEM;
    } else if (!flags_only && p->trace_count > 1) {
        count_duplicates(p);
    }
    struct found last = {0};
    for (size_t i = 0; i < p->trace_count; i++) {
        const struct wr_traced *const t = &p->trace[i];
        struct wr_record *const rec = record_at(p, t);
        const bool top =
            (t->marks & WR_MARK_TOP_LEVEL) || (!flags_only && computed_top_level(p, t, &last));
        if (top)
            rec->flags |= WR_RECORD_TOP_LEVEL;
        if (rec->klass == WR_CLASS_COUNTED && !wr_is_eligible(p->stats->profile, t->marks, top))
            rec->klass = WR_CLASS_INELIGIBLE;
    }
    if (p->stats->schema.flags & WEIR_STATS_UNWEIGHTED_SKETCHES)
        settle_unweighted(p);
    if (client && p->trace_count > 0)
        settle_kept(p);
    return WEIR_OK;
}
