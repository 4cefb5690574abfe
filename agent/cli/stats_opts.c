/* SPDX-License-Identifier: Apache-2.0 */
/* stats_opts: see stats_opts.h. */
#include "cli/stats_opts.h"

#include "plat/plat.h"

#include <stdlib.h>
#include <string.h>

/* The enums go over as numbers. */
_Static_assert((int)CONFIG_LATE_FOLD == (int)WEIR_LATE_FOLD &&
                   (int)CONFIG_LATE_DROP == (int)WEIR_LATE_DROP &&
                   (int)CONFIG_LATE_CORRECT == (int)WEIR_LATE_CORRECT,
               "aggregation.late");
_Static_assert((int)CONFIG_PROFILE_ALL == (int)WEIR_PROFILE_ALL &&
                   (int)CONFIG_PROFILE_DATADOG == (int)WEIR_PROFILE_DATADOG,
               "aggregation.profile");
_Static_assert((int)CONFIG_OVERFLOW_HEAVY == (int)WEIR_CAP_HEAVY &&
                   (int)CONFIG_OVERFLOW_FIRST == (int)WEIR_CAP_FIRST &&
                   (int)CONFIG_OVERFLOW_DROP == (int)WEIR_CAP_DROP,
               "aggregation.overflow");

/* 0 is no limit here, and to the library its default. */
static void take_limits(const struct config *config, uint32_t limits[WEIR_LIMIT_SLOTS])
{
    const struct {
        enum weir_limit limit;
        int64_t value;
    } rows[] = {
        {WEIR_LIMIT_RESOURCE, config->aggregation_limits_resource},
        {WEIR_LIMIT_SERVICE, config->aggregation_limits_service},
        {WEIR_LIMIT_OPERATION, config->aggregation_limits_operation},
        {WEIR_LIMIT_TYPE, config->aggregation_limits_type},
        {WEIR_LIMIT_HTTP_METHOD, config->aggregation_limits_http_method},
        {WEIR_LIMIT_HTTP_ENDPOINT, config->aggregation_limits_http_route},
        {WEIR_LIMIT_PEER_TAGS, config->aggregation_limits_peer_tag},
        {WEIR_LIMIT_ADDITIONAL, config->aggregation_limits_dimension},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        limits[rows[i].limit] = rows[i].value ? (uint32_t)rows[i].value : WEIR_LIMIT_OFF;
}

/* The library joins names by commas, which separate the items of a list here. */
static char **names_of(const struct config_list *list)
{
    char **const names = calloc(list->count + 1, sizeof *names);
    for (size_t i = 0; names && i < list->count; i++) {
        names[i] = strdup(list->items[i]);
        if (!names[i])
            return names;
        for (char *s = names[i]; *s; s++)
            *s = *s == '|' ? ',' : *s;
    }
    return names;
}

static bool is_whole(char *const *names, size_t count)
{
    return names && (count == 0 || names[count - 1]);
}

int cli_stats_opts_init(const struct config *config, struct cli_stats_opts *ret_opts)
{
    struct cli_stats_opts *const o = ret_opts;
    const struct config_list *const peers = &config->aggregation_peer_tags;
    const struct config_list *const dimensions = &config->aggregation_dimensions;
    memset(o, 0, sizeof *o);
    o->peer_tags = names_of(peers);
    o->dimensions = names_of(dimensions);
    if (!is_whole(o->peer_tags, peers->count) || !is_whole(o->dimensions, dimensions->count))
        return -1;
    o->opts.struct_size = sizeof o->opts;
    o->opts.profile = (uint32_t)config->aggregation_profile;
    o->opts.late = (uint32_t)config->aggregation_late;
    o->opts.window_for_ns = config->aggregation_window;
    /* 0 would be the library's default. */
    o->opts.lateness_for_ns = config->aggregation_lateness ? config->aggregation_lateness : -1;
    o->opts.max_keys = (uint32_t)config->aggregation_max_keys;
    o->opts.cap = (uint32_t)config->aggregation_overflow;
    static const uint32_t infer[] = {0, WEIR_STATS_INFER_ENDPOINT, WEIR_STATS_SIMPLIFY_ENDPOINT};
    o->opts.flags = infer[config->aggregation_infer_endpoints];
    take_limits(config, o->opts.limits);
    o->opts.peer_tags = (const char *const *)o->peer_tags;
    o->opts.peer_tag_count = peers->count;
    o->opts.dimensions = (const char *const *)o->dimensions;
    o->opts.dimension_count = dimensions->count;
    plat_random(&o->opts.seed, sizeof o->opts.seed);
    return 0;
}

static void names_free(char **names)
{
    for (size_t i = 0; names && names[i]; i++)
        free(names[i]);
    free(names);
}

void cli_stats_opts_done(struct cli_stats_opts *o)
{
    names_free(o->peer_tags);
    names_free(o->dimensions);
    o->peer_tags = NULL;
    o->dimensions = NULL;
}

int cli_stats_opts_check(const struct config *config)
{
    struct cli_stats_opts o;
    struct weir_stats *stats = NULL;
    const int r =
        cli_stats_opts_init(config, &o) == 0 ? weir_stats_new(&o.opts, &stats) : WEIR_ENOMEM;
    weir_stats_free(stats);
    cli_stats_opts_done(&o);
    return r;
}
