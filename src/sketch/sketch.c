/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sketch: making, recording, merging, clearing.
 *
 * Recording has a fast path, inlined here: the bin is inside the array and its counter has room.
 * Anything else (zeros, a new range, a wider counter, a fractional weight, overflow) is the slow
 * path, kept out of line so that the fast one stays short.
 *
 * Threads: owner. Memory: see state.h.
 */
#include "sketch/record.h"

#define MAX_BINS_LEAST 2u

static void reset(struct weir_sketch *sk)
{
    sk->flags &= (uint8_t) ~(WR_SK_LOOSE | WR_SK_DERIVED);
    sk->weight = 0;
    if (wr_sketch_grid(sk) == WEIR_GRID_NS) {
        sk->sum.ns = 0;
        sk->min.ns = INT64_MAX;
        sk->max.ns = INT64_MIN;
    } else {
        sk->sum.value.sum = 0;
        sk->sum.value.rest = 0;
        sk->min.value = HUGE_VAL;
        sk->max.value = -HUGE_VAL;
    }
}

/* Options of an older caller are shorter, of a newer one longer. */
int wr_sketch_opts_read(const struct weir_sketch_opts *opts, struct weir_sketch_opts *ret_opts)
{
    struct weir_sketch_opts o;
    memset(&o, 0, sizeof o);
    if (opts)
        memcpy(&o, opts,
               opts->struct_size && opts->struct_size < sizeof o ? opts->struct_size : sizeof o);
    if (!o.max_bins)
        o.max_bins = WEIR_SKETCH_BINS_DEFAULT;
    if (o.grid > WEIR_GRID_NS || o.max_bins < MAX_BINS_LEAST || o.max_bins > WR_STORE_BINS_MOST)
        return WEIR_EINVAL;
    o.alloc = wr_alloc_or_default(&o.alloc);
    if (!o.mapping)
        o.mapping = &wr_mapping_default;
    o.struct_size = sizeof o;
    *ret_opts = o;
    return WEIR_OK;
}

/* What a sketch has that was made without other options than a grid; never written to. */
static const struct wr_kind fixed_kinds[2] = {
    {.head = {.mapping = &wr_mapping_default,
              .max_bins = WEIR_SKETCH_BINS_DEFAULT,
              .grid = WEIR_GRID_VALUE,
              .fast = WR_FAST_VALUE},
     .alloc = {.fn = wr_heap}},
    {.head = {.mapping = &wr_mapping_default,
              .max_bins = WEIR_SKETCH_BINS_DEFAULT,
              .grid = WEIR_GRID_NS,
              .fast = WR_FAST_NS},
     .alloc = {.fn = wr_heap}},
};

/* A sketch of its own kind, right behind it. */
struct alone {
    struct weir_sketch sketch;
    struct wr_kind kind;
};

static bool all_defaults(const struct weir_sketch_opts *o)
{
    return o->mapping == &wr_mapping_default && o->alloc.fn == wr_heap &&
           o->max_bins == WEIR_SKETCH_BINS_DEFAULT;
}

void wr_sketch_init(struct weir_sketch *sk, const struct wr_kind *kind)
{
    memset(sk, 0, sizeof *sk);
    sk->of.kind = kind;
    if (kind->head.max_bins >= WR_LIST_SPAN)
        sk->flags = WR_SK_LIST;
    reset(sk);
}

int weir_sketch_new(const struct weir_sketch_opts *opts, struct weir_sketch **ret_sketch)
{
    struct weir_sketch_opts o;
    const int r = wr_sketch_opts_read(opts, &o);
    if (r != WEIR_OK)
        return r;
    if (all_defaults(&o)) {
        struct weir_sketch *const sk = wr_alloc(&o.alloc, sizeof *sk);
        if (!sk)
            return WEIR_ENOMEM;
        wr_sketch_init(sk, &fixed_kinds[o.grid]);
        *ret_sketch = sk;
        return WEIR_OK;
    }
    struct alone *const alone = wr_alloc(&o.alloc, sizeof *alone);
    if (!alone)
        return WEIR_ENOMEM;
    alone->kind =
        (struct wr_kind){.head = wr_kind_head_of(weir_mapping_ref(o.mapping), o.max_bins, o.grid),
                         .alloc = o.alloc,
                         .home = WR_KIND_BEHIND};
    wr_sketch_init(&alone->sketch, &alone->kind);
    *ret_sketch = &alone->sketch;
    return WEIR_OK;
}

void wr_sketch_strip(struct weir_sketch *sk)
{
    const struct wr_kind *const kind = wr_sketch_kind(sk);
    wr_free(&kind->alloc, sk->bins, wr_store_bytes(sk->size));
    if (sk->flags & WR_SK_REST) {
        wr_store_done(&sk->of.rest->neg, kind);
        wr_free(&kind->alloc, sk->of.rest, sizeof *sk->of.rest);
    }
    wr_sketch_init(sk, kind);
}

void weir_sketch_free(struct weir_sketch *sk)
{
    if (!sk)
        return;
    wr_sketch_strip(sk);
    const struct wr_kind *const kind = sk->of.kind;
    if (kind->home == WR_KIND_POOL) {
        wr_sketch_pool_take_back(kind->pool, sk);
        return;
    }
    const struct weir_alloc a = kind->alloc;
    const bool behind = kind->home == WR_KIND_BEHIND;
    weir_mapping_unref(kind->head.mapping);
    if (kind->home == WR_KIND_APART)
        wr_free(&a, (struct wr_kind *)(uintptr_t)kind, sizeof *kind);
    wr_free(&a, sk, behind ? sizeof(struct alone) : sizeof *sk);
}

/* A kind of sk's own that may be written to; NULL: no memory. */
static struct wr_kind *own_kind(struct weir_sketch *sk)
{
    const struct wr_kind *const kind = wr_sketch_kind(sk);
    if (kind->home != WR_KIND_FIXED)
        return (struct wr_kind *)(uintptr_t)kind;
    struct wr_kind *const own = wr_alloc(&kind->alloc, sizeof *own);
    if (!own)
        return NULL;
    *own = *kind;
    own->home = WR_KIND_APART;
    if (sk->flags & WR_SK_REST)
        sk->of.rest->kind = own;
    else
        sk->of.kind = own;
    return own;
}

int wr_sketch_set_mapping(struct weir_sketch *sk, const struct weir_mapping *mapping)
{
    const struct wr_kind *const kind = wr_sketch_kind(sk);
    if (weir_mapping_equal(kind->head.mapping, mapping))
        return WEIR_OK;
    if (kind->home == WR_KIND_POOL)
        return WEIR_EVERSION;
    struct wr_kind *const own = own_kind(sk);
    if (!own)
        return WEIR_ENOMEM;
    const struct weir_mapping *const old = own->head.mapping;
    own->head = wr_kind_head_of(weir_mapping_ref(mapping), own->head.max_bins, own->head.grid);
    if (sk->flags & WR_SK_REST)
        sk->of.rest->head = own->head;
    weir_mapping_unref(old);
    return WEIR_OK;
}

struct wr_rest *wr_sketch_rest(struct weir_sketch *sk)
{
    if (sk->flags & WR_SK_REST)
        return sk->of.rest;
    const struct wr_kind *const kind = sk->of.kind;
    struct wr_rest *const rest = wr_alloc_zero(&kind->alloc, sizeof *rest);
    if (!rest)
        return NULL;
    rest->head = kind->head;
    rest->kind = kind;
    rest->neg.shift = WR_STORE_SHIFT;
    sk->of.rest = rest;
    sk->flags |= WR_SK_REST;
    return rest;
}

double wr_sketch_inherited(const struct weir_sketch *sk)
{
    return sk->flags & WR_SK_REST ? sk->of.rest->error : 0;
}

int wr_sketch_inherit(struct weir_sketch *sk, double error)
{
    if (!(error > wr_sketch_inherited(sk)))
        return WEIR_OK;
    struct wr_rest *const rest = wr_sketch_rest(sk);
    if (!rest)
        return WEIR_ENOMEM;
    rest->error = error;
    return WEIR_OK;
}

struct wr_store wr_sketch_take(const struct weir_sketch *sk)
{
    return (struct wr_store){.bins = sk->bins,
                             .base = sk->base,
                             .cap = sk->cap,
                             .bytes = wr_store_bytes(sk->size),
                             .width = sk->flags & WR_SK_WIDTH,
                             .shift = sk->flags & WR_SK_FINE ? 0 : WR_STORE_SHIFT,
                             .collapsed = (sk->flags & WR_SK_COLLAPSED) != 0};
}

void wr_sketch_put(struct weir_sketch *sk, const struct wr_store *st)
{
    sk->bins = st->bins;
    sk->base = st->base;
    sk->cap = (uint16_t)st->cap;
    sk->size = wr_store_size(st->bytes);
    sk->flags &= (uint8_t) ~(WR_SK_SHAPE | WR_SK_COLLAPSED);
    sk->flags |=
        (uint8_t)(st->width | (st->shift ? 0 : WR_SK_FINE) | (st->collapsed ? WR_SK_COLLAPSED : 0));
}

/* The bytes of the block that may be other than 0: from where on, how many. */
struct dirt {
    size_t from;
    size_t n;
};

static WR_NOINLINE struct dirt dirt_between_extremes(const struct weir_sketch *sk)
{
    const struct wr_store st = wr_sketch_take(sk);
    int32_t lo;
    int32_t hi;
    if (!sk->cap || !wr_sketch_pos_range(sk, &st, &lo, &hi))
        return (struct dirt){0, 0};
    const int32_t last = st.base + (int32_t)(st.cap - 1);
    lo = lo > st.base ? lo : st.base;
    hi = hi < last ? hi : last;
    if (lo > hi)
        return (struct dirt){0, 0};
    const size_t from = (uint32_t)lo - (uint32_t)st.base;
    const size_t n = (uint32_t)hi - (uint32_t)lo + (size_t)1;
    return (struct dirt){from << st.width, n << st.width};
}

static WR_NOINLINE void clear_rest(struct weir_sketch *sk)
{
    struct wr_rest *const rest = sk->of.rest;
    int32_t lo;
    int32_t hi;
    if (!wr_sketch_neg_range(sk, &lo, &hi)) {
        lo = 0;
        hi = -1;
    }
    wr_store_clear(&rest->neg, rest->kind, lo, hi);
    rest->zero = 0;
    rest->error = 0;
}

/* Up to here zeroing a whole block takes less than finding out what of it is used. */
#define CLEAR_WHOLE 1024u

/* The block comes last: nothing then waits for it. */
void weir_sketch_clear(struct weir_sketch *sk)
{
    const uint32_t most = sk->of.head->max_bins;
    const uint32_t bytes = wr_store_bytes(sk->size);
    struct dirt dirt = {0, bytes};
    if (sk->flags & WR_SK_LIST)
        dirt.n = (size_t)sk->cap * 2;
    else if (bytes > CLEAR_WHOLE)
        dirt = dirt_between_extremes(sk);
    if (WR_UNLIKELY(sk->flags & WR_SK_REST))
        clear_rest(sk);
    const bool list = most >= WR_LIST_SPAN;
    sk->base = 0;
    sk->cap = (uint16_t)(list ? 0 : bytes < most ? bytes : most);
    sk->flags = (uint8_t)((sk->flags & WR_SK_REST) | (list ? WR_SK_LIST : 0));
    reset(sk);
    if (dirt.n)
        memset(sk->bins + dirt.from, 0, dirt.n);
}

int wr_sketch_count(struct weir_sketch *sk, int32_t index, uint64_t weight)
{
    if (wr_sketch_try_count(sk, index, weight))
        return WEIR_OK;
    if (sk->flags & WR_SK_LIST) {
        const int r = weight == WEIR_WEIGHT_ONE ? wr_list_room(sk, index) : wr_list_spread(sk);
        if (r != WEIR_OK)
            return r;
        if (sk->flags & WR_SK_LIST) {
            const uint16_t at = (uint16_t)((uint32_t)index - (uint32_t)sk->base);
            memcpy(sk->bins + (size_t)sk->cap * 2, &at, sizeof at);
            sk->cap++;
            return WEIR_OK;
        }
    }
    struct wr_store st = wr_sketch_take(sk);
    const int r = wr_store_add(&st, wr_sketch_kind(sk), index, weight);
    if (r == WEIR_OK)
        wr_sketch_put(sk, &st);
    return r;
}

int wr_sketch_count_negative(struct weir_sketch *sk, int32_t index, uint64_t weight)
{
    struct wr_rest *const rest = wr_sketch_rest(sk);
    return rest ? wr_store_add(&rest->neg, rest->kind, index, weight) : WEIR_ENOMEM;
}

int wr_sketch_count_zero(struct weir_sketch *sk, uint64_t weight)
{
    struct wr_rest *const rest = wr_sketch_rest(sk);
    if (!rest)
        return WEIR_ENOMEM;
    rest->zero += weight;
    return WEIR_OK;
}

/* The counters have it: now the exact numbers. */
WR_INLINE void account_ns(struct weir_sketch *sk, int64_t duration_ns, uint64_t weight,
                          uint64_t total)
{
    sk->weight = total;
    uint64_t high = (uint64_t)duration_ns >> 44;
    uint64_t low = (uint64_t)duration_ns << 20;
    if (weight != WEIR_WEIGHT_ONE)
        low = wr_mul64((uint64_t)duration_ns, weight, &high);
    sk->sum.ns += (wr_uint128)high << 64 | low;
    if (duration_ns < sk->min.ns)
        sk->min.ns = duration_ns;
    if (duration_ns > sk->max.ns)
        sk->max.ns = duration_ns;
}

static WR_NOINLINE int add_ns_slow(struct weir_sketch *sk, int64_t duration_ns, uint64_t weight)
{
    uint64_t total;
    if (__builtin_add_overflow(sk->weight, weight, &total))
        return WEIR_ERANGE;
    if (duration_ns < 0)
        duration_ns = 0;
    const int r = duration_ns ? wr_sketch_count(sk, wr_sketch_index_ns(sk, duration_ns), weight)
                              : wr_sketch_count_zero(sk, weight);
    if (r == WEIR_OK)
        account_ns(sk, duration_ns, weight, total);
    return r;
}

/* Nothing here but the fast path is called, so that nothing has to be kept on the stack for it. */
WR_INLINE int add_ns(struct weir_sketch *sk, int64_t duration_ns, uint64_t weight)
{
    uint64_t total;
    if (WR_UNLIKELY(duration_ns <= 0 || sk->of.head->fast != WR_FAST_NS ||
                    __builtin_add_overflow(sk->weight, weight, &total) ||
                    !wr_sketch_try_count(sk, wr_mapping_index_ns(duration_ns), weight)))
        return add_ns_slow(sk, duration_ns, weight);
    account_ns(sk, duration_ns, weight, total);
    return WEIR_OK;
}

static WR_NOINLINE int add_ns_weighted(struct weir_sketch *sk, int64_t duration_ns, uint64_t weight)
{
    return add_ns(sk, duration_ns, weight);
}

/* Most weigh one: shifts then stand for products, and nothing is left to ask of the weight. */
int wr_sketch_add_ns(struct weir_sketch *sk, int64_t duration_ns, uint64_t weight)
{
    if (WR_UNLIKELY(weight != WEIR_WEIGHT_ONE))
        return add_ns_weighted(sk, duration_ns, weight);
    return add_ns(sk, duration_ns, WEIR_WEIGHT_ONE);
}

int wr_sketch_add_ns_once(struct weir_sketch *sk, int64_t duration_ns, uint64_t weight)
{
    const int r = wr_sketch_add_ns(sk, duration_ns, WEIR_WEIGHT_ONE);
    if (r == WEIR_OK && duration_ns > 0) {
        sk->sum.ns -= (wr_uint128)(uint64_t)duration_ns << 20;
        sk->sum.ns += (wr_uint128)(uint64_t)duration_ns * weight;
    }
    return r;
}

void wr_sketch_prefetch_ns(const struct weir_sketch *sk, int64_t duration_ns)
{
    if (!sk->bins)
        return;
    if (sk->flags & WR_SK_LIST) {
        WR_PREFETCH_W(sk->bins + (size_t)sk->cap * 2);
        return;
    }
    if (duration_ns <= 0)
        return;
    const size_t at = (uint32_t)wr_sketch_index_ns(sk, duration_ns) - (uint32_t)sk->base;
    if (at < sk->cap)
        WR_PREFETCH_W(sk->bins + (at << (sk->flags & WR_SK_WIDTH)));
}

int weir_sketch_add_ns(struct weir_sketch *sk, int64_t duration_ns, uint64_t weight)
{
    if (wr_sketch_grid(sk) != WEIR_GRID_NS)
        return WEIR_EINVAL;
    return wr_sketch_add_ns(sk, duration_ns, weight ? weight : WEIR_WEIGHT_ONE);
}

/* value * weight, within DBL_MAX. */
WR_INLINE double weighted(double value, uint64_t weight)
{
    if (WR_LIKELY(weight == WEIR_WEIGHT_ONE))
        return value;
    const double v = value * ((double)weight * 0x1p-20);
    return fabs(v) <= DBL_MAX ? v : copysign(DBL_MAX, value);
}

/* The bins have it: now the exact numbers. */
WR_INLINE void account_value(struct weir_sketch *sk, double value, uint64_t weight, uint64_t total)
{
    sk->weight = total;
    wr_sum_add(sk, weighted(value, weight));
    if (value < sk->min.value)
        sk->min.value = value;
    if (value > sk->max.value)
        sk->max.value = value;
}

static WR_NOINLINE int add_slow(struct weir_sketch *sk, double value, uint64_t weight)
{
    if (wr_sketch_grid(sk) != WEIR_GRID_VALUE)
        return WEIR_EINVAL;
    uint64_t total;
    const double magnitude = fabs(value);
    if (!(magnitude <= DBL_MAX) || __builtin_add_overflow(sk->weight, weight, &total))
        return WEIR_ERANGE;
    int r;
    if (magnitude <= WR_MAPPING_ZERO_MAX) {
        value += 0.0; /* -0 would make the answer depend on the order */
        r = wr_sketch_count_zero(sk, weight);
    } else {
        const int32_t index = wr_index_value(wr_sketch_mapping(sk), magnitude);
        r = value > 0 ? wr_sketch_count(sk, index, weight)
                      : wr_sketch_count_negative(sk, index, weight);
    }
    if (r == WEIR_OK)
        account_value(sk, value, weight, total);
    return r;
}

/* As for durations above: each is compiled for one way to find a bin. */
WR_INLINE int add_by(enum wr_fast way, struct weir_sketch *sk, double value)
{
    uint64_t total;
    int32_t index;
    if (WR_UNLIKELY(!wr_index_moderate(way, sk->of.head, value, &index) ||
                    __builtin_add_overflow(sk->weight, WEIR_WEIGHT_ONE, &total) ||
                    !wr_sketch_try_count(sk, index, WEIR_WEIGHT_ONE)))
        return add_slow(sk, value, WEIR_WEIGHT_ONE);
    wr_account_moderate(sk, value, total);
    return WEIR_OK;
}

int weir_sketch_add(struct weir_sketch *sk, double value, uint64_t weight)
{
    if (WR_UNLIKELY(weight && weight != WEIR_WEIGHT_ONE))
        return add_slow(sk, value, weight);
    const uint32_t fast = sk->of.head->fast;
    if (WR_LIKELY(fast == WR_FAST_VALUE))
        return add_by(WR_FAST_VALUE, sk, value);
    if (fast == WR_FAST_TABLE)
        return add_by(WR_FAST_TABLE, sk, value);
    return add_slow(sk, value, WEIR_WEIGHT_ONE);
}

static void merge_exact(struct weir_sketch *dst, const struct weir_sketch *src)
{
    if (wr_sketch_grid(dst) == WEIR_GRID_NS) {
        dst->sum.ns += src->sum.ns;
        if (src->min.ns < dst->min.ns)
            dst->min.ns = src->min.ns;
        if (src->max.ns > dst->max.ns)
            dst->max.ns = src->max.ns;
        return;
    }
    dst->sum.value.rest += src->sum.value.rest;
    wr_sum_add(dst, src->sum.value.sum);
    if (src->min.value < dst->min.value)
        dst->min.value = src->min.value;
    if (src->max.value > dst->max.value)
        dst->max.value = src->max.value;
}

/* What both of dst's stores need to take src's. */
struct merge {
    struct wr_store pos; /* of dst */
    struct wr_store_change pos_change;
    struct wr_store_change neg_change;
};

/* Pay for it; nothing of dst's contents is changed. */
static int merge_prepare(struct weir_sketch *dst, const struct wr_store *pos,
                         const struct wr_store *neg, uint64_t total, struct merge *m)
{
    const struct wr_kind *const kind = wr_sketch_kind(dst);
    m->pos = wr_sketch_take(dst);
    int r = wr_store_merge_prepare(&m->pos, kind, pos, total, &m->pos_change);
    if (r != WEIR_OK || !neg)
        return r;
    r = wr_store_merge_prepare(&dst->of.rest->neg, kind, neg, total, &m->neg_change);
    if (r != WEIR_OK)
        wr_store_change_drop(kind, &m->pos_change);
    return r;
}

/* Counters alone, and dst's are as they must be: no need to prepare anything. */
static bool merge_inside(struct weir_sketch *dst, const struct weir_sketch *src)
{
    if (dst->flags & WR_SK_LIST || src->flags & WR_SK_REST)
        return false;
    if (src->flags & WR_SK_LIST)
        return wr_list_merge_inside(dst, src);
    const struct wr_store to = wr_sketch_take(dst);
    const struct wr_store from = wr_sketch_take(src);
    if (!wr_store_merge_inside(&to, &from))
        return false;
    dst->flags |= src->flags & WR_SK_COLLAPSED;
    return true;
}

/* Bins and zeros of src into dst. */
static int merge_bins(struct weir_sketch *dst, const struct weir_sketch *src, uint64_t total)
{
    const struct wr_kind *const kind = wr_sketch_kind(dst);
    const struct wr_store *const neg = wr_sketch_negative(src);
    if (neg && !wr_sketch_rest(dst))
        return WEIR_ENOMEM;
    const bool joined =
        dst->flags & src->flags & WR_SK_LIST && (!neg || !neg->cap) && wr_list_join(dst, src);
    if (!joined) {
        struct wr_spread spread;
        struct merge m;
        const struct wr_store *const pos = wr_sketch_positive(src, &spread);
        int r = dst->flags & WR_SK_LIST ? wr_list_spread(dst) : WEIR_OK;
        if (r == WEIR_OK)
            r = merge_prepare(dst, pos, neg, total, &m);
        if (r != WEIR_OK)
            return r;
        wr_store_merge_commit(&m.pos, kind, pos, &m.pos_change);
        wr_sketch_put(dst, &m.pos);
        if (neg)
            wr_store_merge_commit(&dst->of.rest->neg, kind, neg, &m.neg_change);
    }
    if (neg) {
        dst->of.rest->zero += wr_sketch_zero(src);
        dst->of.rest->error = fmax(dst->of.rest->error, src->of.rest->error);
    }
    return WEIR_OK;
}

/* It has collapsed bins that are not dst's lowest: those of a lesser limit. */
static bool collapsed_elsewhere(const struct weir_sketch *dst, const struct weir_sketch *src)
{
    const struct wr_store *const neg = wr_sketch_negative(src);
    return src->of.head->max_bins < dst->of.head->max_bins &&
           (src->flags & WR_SK_COLLAPSED || (neg && neg->collapsed));
}

int weir_sketch_merge(struct weir_sketch *dst, const struct weir_sketch *src)
{
    const struct wr_kind *const kind = wr_sketch_kind(dst);
    const struct wr_kind *const other = wr_sketch_kind(src);
    if (dst == src)
        return WEIR_EINVAL;
    if (kind->head.grid != other->head.grid ||
        !weir_mapping_equal(kind->head.mapping, other->head.mapping))
        return WEIR_EVERSION;
    uint64_t total;
    if (__builtin_add_overflow(dst->weight, src->weight, &total))
        return WEIR_ERANGE;
    if (!merge_inside(dst, src)) {
        const int r = merge_bins(dst, src, total);
        if (r != WEIR_OK)
            return r;
    }
    dst->weight = total;
    dst->flags |= src->flags & (WR_SK_LOOSE | WR_SK_DERIVED);
    if (collapsed_elsewhere(dst, src))
        dst->flags |= WR_SK_LOOSE;
    merge_exact(dst, src);
    return WEIR_OK;
}
