/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping: making one, and the way back from an index. See mapping.h, formula.h.
 *
 * Threads: any; a mapping is written before it is handed out, and after that only its count of
 * holders is. Memory: one block: the struct, then its table and the bounds.
 */
#include "sketch/mapping.h"

#include "sketch/formula.h"
#include "sketch/log_table.h"

#include <float.h>

extern const uint64_t wr_exp2_mantissas[256];

#include "sketch/bounds.inc"

/* NOLINTBEGIN(misc-redundant-expression): two files have to say the same */
_Static_assert(BOUNDS_SCALE == WR_MAPPING_SCALE, "bounds.inc is of another scale");
_Static_assert(BOUNDS_CELL_BITS == WR_MAPPING_CELL_BITS, "bounds.inc has other cells");
_Static_assert(!BOUNDS_VALUE_FIRST, "an octave of values starts at a bound");
_Static_assert(BOUNDS_NS_FIRST == WR_MAPPING_NS_FIRST, "bounds.inc is of another grid");
_Static_assert(BOUNDS_FINE_SCALE == WR_MAPPING_FINE_SCALE, "bounds.inc is of another scale");
_Static_assert(BOUNDS_FINE_CELL_BITS == WR_MAPPING_FINE_CELL_BITS, "bounds.inc has other cells");
_Static_assert(!BOUNDS_FINE_VALUE_FIRST, "an octave of values starts at a bound");
_Static_assert(BOUNDS_FINE_NS_FIRST == WR_MAPPING_FINE_NS_FIRST, "bounds.inc is of another grid");
/* NOLINTEND(misc-redundant-expression) */

const struct weir_mapping wr_mapping_base2s[WEIR_SCALE_MAX - WEIR_SCALE_MIN + 1] = {
#define X(s, g, a)                                                                                 \
    [(s)-WEIR_SCALE_MIN] = {.kind = WEIR_MAPPING_BASE2,                                            \
                            .scale = (s),                                                          \
                            .gamma = (g),                                                          \
                            .multiplier = (s) < 0 ? 1.0 / (1 << ((s) < 0 ? -(s) : 0))              \
                                                  : 1 << ((s) < 0 ? 0 : (s)),                      \
                            .accuracy = (a),                                                       \
                            .mantissa_bits = -1,                                                   \
                            .fixed = true},
    BOUNDS_BASE2(X)
#undef X
};

int weir_mapping_base2(const struct weir_alloc *alloc, int32_t scale,
                       struct weir_mapping **ret_mapping)
{
    (void)alloc; /* all of them are there already */
    if (scale < WEIR_SCALE_MIN || scale > WEIR_SCALE_MAX)
        return WEIR_EINVAL;
    *ret_mapping = (struct weir_mapping *)(uintptr_t)&wr_mapping_base2s[scale - WEIR_SCALE_MIN];
    return WEIR_OK;
}

static bool arguments_are_right(uint32_t kind, double gamma, double offset)
{
    return kind >= WEIR_MAPPING_LOG && kind <= WEIR_MAPPING_QUARTIC && gamma > 1 &&
           gamma <= DBL_MAX && fabs(offset) <= DBL_MAX;
}

enum table { TABLE_NONE, TABLE_FULL };

static int make(const struct weir_alloc *alloc, struct weir_mapping *from, enum table table,
                struct weir_mapping **ret_mapping)
{
    const int r = wr_formula_init(from);
    if (r != WEIR_OK)
        return r;
    const struct weir_alloc a = wr_alloc_or_default(alloc);
    const uint32_t cells = table == TABLE_FULL ? wr_log_table_cells(from) : 0;
    const uint32_t bounds = cells ? wr_log_table_bounds(from) : 0;
    const size_t bytes = sizeof *from + cells * sizeof(uint64_t) + bounds * sizeof(double);
    struct weir_mapping *const m = wr_alloc(&a, bytes);
    if (!m)
        return WEIR_ENOMEM;
    memcpy(m, from, sizeof *m);
    m->alloc = a;
    m->bytes = bytes;
    atomic_init(&m->refs, 1);
    if (cells)
        wr_log_table_fill(m, (uint64_t *)(m + 1), cells, bounds);
    *ret_mapping = m;
    return WEIR_OK;
}

static int make_of(const struct weir_alloc *alloc, uint32_t kind, double gamma, double offset,
                   enum table table, struct weir_mapping **ret_mapping)
{
    if (!arguments_are_right(kind, gamma, offset))
        return WEIR_EINVAL;
    struct weir_mapping m = {.kind = kind, .gamma = gamma, .offset = offset};
    return make(alloc, &m, table, ret_mapping);
}

int weir_mapping_new(const struct weir_alloc *alloc, uint32_t kind, double gamma, double offset,
                     struct weir_mapping **ret_mapping)
{
    return make_of(alloc, kind, gamma, offset, TABLE_FULL, ret_mapping);
}

int wr_mapping_read_only(const struct weir_alloc *alloc, uint32_t kind, double gamma, double offset,
                         struct weir_mapping **ret_mapping)
{
    return make_of(alloc, kind, gamma, offset, TABLE_NONE, ret_mapping);
}

int weir_mapping_log(const struct weir_alloc *alloc, double alpha,
                     struct weir_mapping **ret_mapping)
{
    if (!(alpha >= 1e-5 && alpha <= 0.5))
        return WEIR_EINVAL;
    return weir_mapping_new(alloc, WEIR_MAPPING_LOG, (1 + alpha) / (1 - alpha), 0, ret_mapping);
}

const struct weir_mapping *weir_mapping_ref(const struct weir_mapping *m)
{
    if (m && !m->fixed)
        atomic_fetch_add_explicit(&((struct weir_mapping *)(uintptr_t)m)->refs, 1,
                                  memory_order_relaxed);
    return m;
}

void weir_mapping_unref(const struct weir_mapping *m)
{
    if (!m || m->fixed)
        return;
    struct weir_mapping *const mine = (struct weir_mapping *)(uintptr_t)m;
    if (atomic_fetch_sub_explicit(&mine->refs, 1, memory_order_acq_rel) == 1) {
        const struct weir_alloc a = mine->alloc;
        wr_free(&a, mine, mine->bytes);
    }
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fmax(fabs(a), fabs(b));
}

bool wr_mapping_is(const struct weir_mapping *m, uint32_t kind, double gamma, double offset)
{
    return kind != WEIR_MAPPING_BASE2 && m->kind == kind && near(m->gamma, gamma) &&
           near(m->offset, offset);
}

bool weir_mapping_equal(const struct weir_mapping *a, const struct weir_mapping *b)
{
    if (a == b)
        return true;
    if (a->kind == WEIR_MAPPING_BASE2)
        return b->kind == WEIR_MAPPING_BASE2 && a->scale == b->scale;
    return wr_mapping_is(b, a->kind, a->gamma, a->offset);
}

uint32_t weir_mapping_kind(const struct weir_mapping *m)
{
    return m->kind;
}

int32_t weir_mapping_scale(const struct weir_mapping *m)
{
    return m->scale;
}

double weir_mapping_gamma(const struct weir_mapping *m)
{
    return m->gamma;
}

double weir_mapping_offset(const struct weir_mapping *m)
{
    return m->offset;
}

double weir_mapping_accuracy(const struct weir_mapping *m)
{
    return m->accuracy;
}

int32_t wr_mapping_index_fine_ns(int64_t duration_ns)
{
    const unsigned zeros = wr_clz64((uint64_t)duration_ns);
    const uint64_t fraction = ((uint64_t)duration_ns << zeros << 1) >> 12;
    return (int32_t)(63 - zeros) * WR_MAPPING_FINE_SUB + (WR_MAPPING_FINE_NS_FIRST - 1) +
           wr_mapping_below(wr_mapping_fine_ns_cells, WR_MAPPING_FINE_CELL_BITS, fraction);
}

int32_t wr_mapping_index_fine_value(double value)
{
    const uint64_t bits = wr_mapping_bits(value);
    const int32_t octave = (int32_t)(bits >> 52) - 1023;
    return octave * WR_MAPPING_FINE_SUB - 1 +
           wr_mapping_below(wr_mapping_fine_value_cells, WR_MAPPING_FINE_CELL_BITS,
                            bits & (((uint64_t)1 << 52) - 1));
}

int32_t wr_mapping_index_slow(const struct weir_mapping *m, double value)
{
    return wr_formula_index(m, value);
}

int weir_mapping_index(const struct weir_mapping *m, double value, int32_t *ret_index)
{
    if (!(value > WR_MAPPING_ZERO_MAX && value <= DBL_MAX))
        return WEIR_ERANGE;
    *ret_index = wr_mapping_index(m, value);
    return WEIR_OK;
}

void wr_mapping_limits(const struct weir_mapping *m, bool durations, int32_t *ret_min,
                       int32_t *ret_max)
{
    if (durations) {
        *ret_min = wr_mapping_index_duration(m, 1);
        *ret_max = wr_mapping_index_duration(m, INT64_MAX);
    } else {
        *ret_min = wr_mapping_index(m, WR_MAPPING_ZERO_MAX * (1 + DBL_EPSILON));
        *ret_max = wr_mapping_index(m, DBL_MAX);
    }
}

/* 2^(index / 2^scale) */
static double base2_lower(int32_t scale, int32_t index)
{
    const int64_t fine = (int64_t)index * (1 << (WR_MAPPING_FINE_SCALE - scale));
    const int64_t octave =
        (fine - (int64_t)((uint64_t)fine % WR_MAPPING_FINE_SUB)) / WR_MAPPING_FINE_SUB;
    return wr_exp2(octave, (uint64_t)fine << (64 - WR_MAPPING_FINE_SCALE));
}

double wr_mapping_lower_slow(const struct weir_mapping *m, int32_t index)
{
    if (m->kind == WEIR_MAPPING_BASE2)
        return base2_lower(m->scale, index);
    return wr_formula_bound(m, index);
}

double wr_mapping_value_slow(const struct weir_mapping *m, int32_t index)
{
    return fmin(wr_mapping_lower_slow(m, index) * (1 + m->accuracy), DBL_MAX);
}

double weir_mapping_lower(const struct weir_mapping *m, int32_t index)
{
    return wr_mapping_lower(m, index);
}

double weir_mapping_value(const struct weir_mapping *m, int32_t index)
{
    return wr_mapping_value(m, index);
}
