/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping: the tables, and the way back from an index. See mapping.h.
 * Threads: any. Memory: none.
 */
#include "sketch/mapping.h"

#include <float.h>
#include <math.h>

extern const double wr_mapping_bounds[WR_MAPPING_SUB + 1];
extern const double wr_mapping_values[WR_MAPPING_SUB];

#include "sketch/bounds.inc"

/* NOLINTBEGIN(misc-redundant-expression): two files have to say the same */
_Static_assert(BOUNDS_SCALE == WR_MAPPING_SCALE, "bounds.inc is of another scale");
_Static_assert(BOUNDS_CELL_BITS == WR_MAPPING_CELL_BITS, "bounds.inc has other cells");
_Static_assert(!BOUNDS_VALUE_FIRST, "an octave of values starts at a bound");
_Static_assert(BOUNDS_NS_FIRST == WR_MAPPING_NS_FIRST, "bounds.inc is of another grid");
/* NOLINTEND(misc-redundant-expression) */

/* floor(index / 64), also below zero. */
static int32_t octave_of(int32_t index)
{
    return (index - (int32_t)((uint32_t)index % WR_MAPPING_SUB)) / WR_MAPPING_SUB;
}

/* 2^e for a normal exponent. */
static double power_of_two(int32_t e)
{
    const uint64_t bits = (uint64_t)(e + 1023) << 52;
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* g^i at scale 6, exact to half an ulp; past DBL_MAX it is DBL_MAX. */
static double base2_lower(int32_t index)
{
    if (index > WR_MAPPING_VALUE_MAX)
        return DBL_MAX;
    return wr_mapping_bounds[(uint32_t)index % WR_MAPPING_SUB] * power_of_two(octave_of(index));
}

const struct weir_mapping wr_mapping_default = {
    .kind = WEIR_MAPPING_BASE2,
    .scale = WR_MAPPING_SCALE,
    .gamma = 0x1.02c9a3e778061p+0, /* 2^(1/64) */
    .multiplier = WR_MAPPING_SUB,
    .accuracy = BOUNDS_ACCURACY,
    .fixed = true,
};

static int make(const struct weir_alloc *alloc, const struct weir_mapping *from,
                struct weir_mapping **ret_mapping)
{
    const struct weir_alloc a = wr_alloc_or_default(alloc);
    struct weir_mapping *const m = wr_alloc(&a, sizeof *m);
    if (!m)
        return WEIR_ENOMEM;
    *m = *from;
    m->alloc = a;
    atomic_init(&m->refs, 1);
    *ret_mapping = m;
    return WEIR_OK;
}

int weir_mapping_base2(const struct weir_alloc *alloc, int32_t scale,
                       struct weir_mapping **ret_mapping)
{
    if (scale < WEIR_SCALE_MIN || scale > WR_MAPPING_SCALE)
        return WEIR_EINVAL;
    const double gamma = exp2(exp2(-scale));
    const struct weir_mapping m = {.kind = WEIR_MAPPING_BASE2,
                                   .scale = scale,
                                   .gamma = gamma,
                                   .multiplier = exp2(scale),
                                   .accuracy = (gamma - 1) / (gamma + 1)};
    return make(alloc, &m, ret_mapping);
}

int weir_mapping_new(const struct weir_alloc *alloc, uint32_t kind, double gamma, double offset,
                     struct weir_mapping **ret_mapping)
{
    if (kind != WEIR_MAPPING_LOG || !(gamma > 1 && gamma <= DBL_MAX) || !(fabs(offset) <= DBL_MAX))
        return WEIR_EINVAL;
    const struct weir_mapping m = {.kind = kind,
                                   .gamma = gamma,
                                   .offset = offset,
                                   .multiplier = 1 / log(gamma),
                                   .accuracy = (gamma - 1) / (gamma + 1)};
    if (!(m.multiplier * 745 + fabs(offset) < INT32_MAX))
        return WEIR_ERANGE;
    return make(alloc, &m, ret_mapping);
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
        wr_free(&a, mine, sizeof *mine);
    }
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fmax(fabs(a), fabs(b));
}

bool weir_mapping_equal(const struct weir_mapping *a, const struct weir_mapping *b)
{
    if (a == b)
        return true;
    return a->kind == b->kind && a->scale == b->scale && near(a->gamma, b->gamma) &&
           near(a->offset, b->offset);
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

/* floor(fine / 2^(6 - scale)), also below zero. */
static int32_t coarser(const struct weir_mapping *m, int32_t fine)
{
    const uint32_t down = (uint32_t)(WR_MAPPING_SCALE - m->scale);
    return fine >= 0 ? fine >> down : -((-fine - 1) >> down) - 1;
}

int32_t wr_mapping_index_duration(const struct weir_mapping *m, int64_t duration_ns)
{
    if (m->kind == WEIR_MAPPING_BASE2)
        return coarser(m, wr_mapping_index_ns(duration_ns));
    return wr_mapping_index(m, (double)duration_ns);
}

int32_t wr_mapping_index(const struct weir_mapping *m, double value)
{
    if (m->kind == WEIR_MAPPING_BASE2)
        return coarser(m, wr_mapping_index_value(value));
    return (int32_t)floor(log(value) * m->multiplier + m->offset);
}

int weir_mapping_index(const struct weir_mapping *m, double value, int32_t *ret_index)
{
    if (!(value > WR_MAPPING_ZERO_MAX && value <= DBL_MAX))
        return WEIR_ERANGE;
    *ret_index = wr_mapping_index(m, value);
    return WEIR_OK;
}

double weir_mapping_lower(const struct weir_mapping *m, int32_t index)
{
    if (m->kind == WEIR_MAPPING_BASE2) {
        const int64_t fine = (int64_t)index * (1 << (WR_MAPPING_SCALE - m->scale));
        return base2_lower(fine > WR_MAPPING_VALUE_MAX ? WR_MAPPING_VALUE_MAX + 1 : (int32_t)fine);
    }
    return fmin(exp((index - m->offset) / m->multiplier), DBL_MAX);
}

double weir_mapping_value(const struct weir_mapping *m, int32_t index)
{
    if (m->kind == WEIR_MAPPING_BASE2 && m->scale == WR_MAPPING_SCALE)
        return wr_mapping_values[(uint32_t)index % WR_MAPPING_SUB] * power_of_two(octave_of(index));
    return fmin(weir_mapping_lower(m, index) * (1 + m->accuracy), DBL_MAX);
}
