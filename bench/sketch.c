/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sketch: what one operation on a sketch costs, with the default mapping (base2) and with that of
 * DDSketch at 1 % (log1), beside other sketch libraries on the same values in the same order.
 *
 * Cases come in phases. Within a phase rounds are interleaved: a case of ours with either mapping,
 * then each peer, then the next case. Peers are processes that answer for one case after another
 * and keep their sketches in between. A million sketches each of ours and of all peers do not fit
 * into a common machine at once: there each peer in turn has rounds of ours beside its own.
 *
 * The first round of a phase is not reported: sketches grow, and pages come.
 */
#include "bench.h"
#include "sketch_cases.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAPPINGS = 2, ROUNDS = 5, ROUNDS_MAX = 1000, CASES_MAX = 12 };
static const char *const mapping_names[MAPPINGS] = {"base2", "log1"};

/* What peers can be asked for; several of our cases stand beside the same answer. */
enum ask {
    ASK_HOT = 0,
    ASK_30K,
    ASK_30K_LIST,
    ASK_1M,
    ASK_MERGE,
    ASK_P99,
    ASK_QUANTILES,
    ASK_CLEAR,
    ASK_ENCODE,
    ASK_DECODE,
    ASK_PROTO,
    ASK_BYTES,
    ASK_COUNT
};

static const char *const questions[ASK_COUNT] = {
    [ASK_HOT] = "insert_hot",
    [ASK_30K] = "insert_random_30k",
    [ASK_30K_LIST] = "insert_random_30k_list",
    [ASK_1M] = "insert_random_1m",
    [ASK_MERGE] = "merge",
    [ASK_P99] = "p99",
    [ASK_QUANTILES] = "quantiles_4",
    [ASK_CLEAR] = "clear",
    [ASK_ENCODE] = "encode_compact",
    [ASK_DECODE] = "decode_compact",
    [ASK_PROTO] = "encode_proto",
};

#define CAN(ask) (1u << ASK_##ask)
#define CAN_MANY (CAN(30K) | CAN(30K_LIST))
#define CAN_QUANTILES (CAN(P99) | CAN(QUANTILES))
#define CAN_COMPACT (CAN(ENCODE) | CAN(DECODE))
#define CAN_ONE (CAN(MERGE) | CAN_QUANTILES | CAN(CLEAR) | CAN_COMPACT | CAN(PROTO) | CAN(BYTES))

static struct peer {
    const char *name;
    const char *program;
    const char *kind;    /* its first argument; NULL: it has none */
    const char *mapping; /* the only one it stands beside; NULL: all */
    const char *note;    /* what it does not do that ours does; NULL: nothing */
    uint32_t can;        /* a bit a question */
    struct bench_answerer a;
    struct bench_peer answers[ASK_COUNT];
} peers[] = {
    {.name = "hdr_c",
     .program = "hdr_c",
     .note = "no sum",
     .can =
         CAN(HOT) | CAN_MANY | CAN(MERGE) | CAN_QUANTILES | CAN(CLEAR) | CAN_COMPACT | CAN(BYTES)},
    {.name = "sketches_go",
     .program = "sketches_go",
     .note = "sum, min, max of its bins",
     .kind = "paginated",
     .can = CAN(HOT) | CAN_MANY | CAN(1M) | CAN_ONE},
    {.name = "sketches_go_dense",
     .program = "sketches_go",
     .note = "sum, min, max of its bins",
     .kind = "dense",
     .can = CAN(HOT) | CAN_MANY | CAN(1M) | CAN_ONE},
    {.name = "sketches_go_s6",
     .program = "sketches_go",
     .note = "sum, min, max of its bins",
     .kind = "paginated_s6",
     .mapping = "base2",
     .can = CAN_ONE},
    {.name = "expohisto",
     .program = "sketches_go",
     .note = "coarser: 2.2 to 4.3 %",
     .kind = "expohisto_160",
     .can = CAN(HOT) | CAN_MANY | CAN(1M) | CAN(MERGE) | CAN(CLEAR) | CAN(BYTES)},
    {.name = "expohisto_1024",
     .program = "sketches_go",
     .kind = "expohisto_1024",
     .mapping = "base2",
     .can = CAN(HOT) | CAN(30K) | CAN(MERGE) | CAN(BYTES)},
    {.name = "sketches_ddsketch",
     .program = "sketches_rust",
     .kind = "ddsketch",
     .can = CAN(HOT) | CAN_MANY | CAN(1M) | CAN(MERGE) | CAN_QUANTILES | CAN_COMPACT | CAN(BYTES)},
    {.name = "libdd_ddsketch",
     .program = "sketches_rust",
     .note = "no sum, min, max",
     .kind = "libdd",
     .can = CAN(HOT) | CAN_MANY | CAN(1M) | CAN(PROTO) | CAN(BYTES)},
    {.name = "tdigest",
     .program = "sketches_rust",
     .note = "bound on ranks",
     .kind = "tdigest",
     .can = CAN(HOT) | CAN_MANY | CAN(MERGE) | CAN_QUANTILES | CAN(BYTES)},
    {.name = "kll",
     .program = "sketches_rust",
     .note = "no sum; bound on ranks",
     .kind = "kll",
     .can =
         CAN(HOT) | CAN_MANY | CAN(MERGE) | CAN_QUANTILES | CAN(CLEAR) | CAN_COMPACT | CAN(BYTES)},
    {.name = "sketches_java",
     .program = "sketches_java",
     .note = "sum, min, max of its bins",
     .kind = "log",
     .can = CAN(HOT) | CAN_MANY | CAN(1M) | CAN_ONE},
    {.name = "sketches_java_bitwise",
     .program = "sketches_java",
     .note = "sum, min, max of its bins",
     .kind = "bitwise",
     .can = CAN(HOT) | CAN(30K) | CAN(MERGE) | CAN(BYTES)},
};
enum { PEERS = sizeof peers / sizeof *peers };

struct one_case {
    const char *name;
    bench_case_fn *run;
    enum ask ask;
    bool fresh; /* of the sketches that are cleared before */
};

struct phase {
    const char *metric;
    size_t count;
    struct one_case cases[CASES_MAX]; /* those beside the same answer follow each other */
};

static const struct phase on_one = {
    .metric = "ns_per_call",
    .count = 7,
    .cases = {{.name = "merge", .run = bench_merge, .ask = ASK_MERGE},
              {.name = "p99", .run = bench_p99, .ask = ASK_P99},
              {.name = "quantiles_4", .run = bench_quantiles_4, .ask = ASK_QUANTILES},
              {.name = "clear", .run = bench_clear, .ask = ASK_CLEAR},
              {.name = "encode_compact", .run = bench_encode_compact, .ask = ASK_ENCODE},
              {.name = "decode_compact", .run = bench_decode_compact, .ask = ASK_DECODE},
              {.name = "encode_proto", .run = bench_encode_proto, .ask = ASK_PROTO}}};

static const struct phase hot = {
    .metric = "ns_per_value",
    .count = 2,
    .cases = {{.name = "insert_hot", .run = bench_insert_hot, .ask = ASK_HOT},
              {.name = "insert_batch", .run = bench_insert_batch, .ask = ASK_HOT}}};

static const struct phase random_30k = {
    .metric = "ns_per_value",
    .count = 2,
    .cases = {
        {.name = "insert_random_30k", .run = bench_insert_random, .ask = ASK_30K},
        {.name = "insert_random_30k_batch", .run = bench_insert_random_batch, .ask = ASK_30K}}};

static const struct phase random_30k_list = {.metric = "ns_per_value",
                                             .count = 2,
                                             .cases = {{.name = "insert_random_30k_list",
                                                        .run = bench_insert_random,
                                                        .ask = ASK_30K_LIST,
                                                        .fresh = true},
                                                       {.name = "insert_random_30k_list_batch",
                                                        .run = bench_insert_random_batch,
                                                        .ask = ASK_30K_LIST,
                                                        .fresh = true}}};

static const struct phase random_1m = {
    .metric = "ns_per_value",
    .count = 4,
    .cases = {
        {.name = "insert_random_1m", .run = bench_insert_random, .ask = ASK_1M},
        {.name = "insert_random_1m_batch", .run = bench_insert_random_batch, .ask = ASK_1M},
        {.name = "insert_random_1m_list", .run = bench_insert_random, .ask = ASK_1M, .fresh = true},
        {.name = "insert_random_1m_list_batch",
         .run = bench_insert_random_batch,
         .ask = ASK_1M,
         .fresh = true}}};

enum { ONLY_MAX = 16 };

struct run {
    struct bench b;
    const char *only[ONLY_MAX]; /* cases that are asked for; none: all */
    size_t only_count;
    struct bench_data data;
    char dir[256];
    struct bench_ours full[MAPPINGS];
    struct bench_ours fresh[MAPPINGS]; /* of many sketches alone */
    double values[CASES_MAX][MAPPINGS][ROUNDS_MAX];
};

static void peer_start(struct run *r, struct peer *p)
{
    char kind[32];
    (void)snprintf(kind, sizeof kind, "%s", p->kind ? p->kind : "");
    char *argv[] = {NULL, p->kind ? kind : r->dir, p->kind ? r->dir : NULL, NULL};
    bench_answerer_start(&p->a, p->program, argv);
    for (size_t i = 0; i < ASK_COUNT; i++) {
        p->answers[i].name = p->name;
        p->answers[i].note = p->note;
        (void)snprintf(p->answers[i].why, sizeof p->answers[i].why, "%s", p->a.why);
    }
}

static bool can(const struct peer *p, enum ask ask)
{
    return p->can >> ask & 1;
}

/* Its answer of a round that counts is kept; one without a number will not be asked again. */
static void peer_ask(struct peer *p, enum ask ask, bool counts)
{
    struct bench_peer *const to = &p->answers[ask];
    if (!can(p, ask) || to->why[0])
        return;
    const bool answered = bench_answerer_ask(&p->a, questions[ask]);
    const double value = answered ? bench_json_number(p->a.answer, questions[ask]) : -1;
    if (value < 0)
        (void)snprintf(to->why, sizeof to->why, "%s", p->a.why[0] ? p->a.why : "no answer");
    else if (counts)
        to->values[to->count++] = value;
}

static struct bench_ours *ours_of(struct run *r, const struct one_case *c, size_t mapping)
{
    return c->fresh ? &r->fresh[mapping] : &r->full[mapping];
}

static bool is_wanted(const struct run *r, const char *name)
{
    for (size_t i = 0; i < r->only_count; i++) {
        if (strcmp(r->only[i], name) == 0)
            return true;
    }
    return r->only_count == 0;
}

static bool is_any_wanted(const struct run *r, const struct phase *ph)
{
    for (size_t at = 0; at < ph->count; at++) {
        if (is_wanted(r, ph->cases[at].name))
            return true;
    }
    return false;
}

/* One round of a case, and the answers that stand beside it. */
static void round_of(struct run *r, const struct phase *ph, size_t at, int round,
                     struct peer *asked, size_t count)
{
    const struct one_case *const c = &ph->cases[at];
    if (!is_wanted(r, c->name))
        return;
    for (size_t m = 0; m < MAPPINGS; m++) {
        struct bench_ours *const o = ours_of(r, c, m);
        if (c->fresh)
            bench_many_clear(o);
        const double value = c->run(o);
        if (round >= 0)
            r->values[at][m][round] = value;
    }
    if (at > 0 && ph->cases[at - 1].ask == c->ask && is_wanted(r, ph->cases[at - 1].name))
        return;
    for (size_t i = 0; i < count; i++)
        peer_ask(&asked[i], c->ask, round >= 0);
}

static void rounds_of(struct run *r, const struct phase *ph, struct peer *asked, size_t count)
{
    for (int round = -1; round < r->b.rounds; round++) {
        for (size_t at = 0; at < ph->count; at++)
            round_of(r, ph, at, round, asked, count);
    }
}

static bool stands_beside(const struct peer *p, enum ask ask, size_t mapping)
{
    return can(p, ask) && (!p->mapping || strcmp(p->mapping, mapping_names[mapping]) == 0);
}

static void report_peers(struct run *r, const struct phase *ph, const struct peer *asked,
                         size_t count)
{
    for (size_t at = 0; at < ph->count; at++) {
        const struct one_case *const c = &ph->cases[at];
        for (size_t m = 0; m < MAPPINGS && is_wanted(r, c->name); m++) {
            r->b.mapping = mapping_names[m];
            for (size_t i = 0; i < count; i++) {
                if (stands_beside(&asked[i], c->ask, m))
                    bench_report_peer(&r->b, c->name, ph->metric, "ns", BENCH_LOWER,
                                      r->values[at][m], (size_t)r->b.rounds,
                                      &asked[i].answers[c->ask]);
            }
        }
    }
}

static void run_phase(struct run *r, const struct phase *ph)
{
    rounds_of(r, ph, peers, PEERS);
    report_peers(r, ph, peers, PEERS);
}

/* What a list or counters of a byte hold: it tells which of the two was measured. */
static void report_many(struct run *r, const char *name, const struct bench_ours *of)
{
    for (size_t m = 0; m < MAPPINGS; m++) {
        r->b.mapping = mapping_names[m];
        bench_report_one(&r->b, name, "bytes_each", "B", bench_many_bytes(&of[m]));
    }
}

static void run_30k(struct run *r)
{
    if (!is_any_wanted(r, &random_30k) && !is_any_wanted(r, &random_30k_list))
        return;
    for (size_t m = 0; m < MAPPINGS; m++)
        bench_many_full(&r->full[m], BENCH_MANY);
    run_phase(r, &random_30k);
    report_many(r, "insert_random_30k", r->full);
    for (size_t m = 0; m < MAPPINGS; m++) {
        bench_many_free(&r->full[m]);
        bench_many_fresh(&r->fresh[m], BENCH_MANY);
    }
    run_phase(r, &random_30k_list);
    report_many(r, "insert_random_30k_list", r->fresh);
    for (size_t m = 0; m < MAPPINGS; m++)
        bench_many_free(&r->fresh[m]);
}

/* Each peer in turn; those that cannot run stand beside what was measured last. */
static void run_1m(struct run *r)
{
    if (!is_any_wanted(r, &random_1m))
        return;
    for (size_t m = 0; m < MAPPINGS; m++) {
        bench_many_full(&r->full[m], BENCH_MILLION);
        bench_many_fresh(&r->fresh[m], BENCH_MILLION);
    }
    bool measured = false;
    for (size_t i = 0; i < PEERS; i++) {
        if (!can(&peers[i], ASK_1M) || peers[i].a.why[0])
            continue;
        peer_start(r, &peers[i]);
        rounds_of(r, &random_1m, &peers[i], 1);
        bench_answerer_stop(&peers[i].a);
        report_peers(r, &random_1m, &peers[i], 1);
        measured = true;
    }
    if (!measured)
        rounds_of(r, &random_1m, NULL, 0);
    for (size_t i = 0; i < PEERS; i++) {
        if (peers[i].a.why[0] && peers[i].answers[ASK_1M].count == 0)
            report_peers(r, &random_1m, &peers[i], 1);
    }
    report_many(r, "insert_random_1m", r->full);
    report_many(r, "insert_random_1m_list", r->fresh);
}

/* One that did not run is named once a size. */
static void report_size(struct run *r, const char *name, const char *metric, size_t mapping,
                        double ours, const struct peer *p, const char *key)
{
    struct bench_peer beside = {.name = p->name, .note = p->note, .count = 1};
    (void)snprintf(beside.why, sizeof beside.why, "%s", p->a.why);
    beside.values[0] = bench_json_number(p->a.answer, key);
    if (!stands_beside(p, ASK_BYTES, mapping) ||
        (beside.why[0] ? key != name : beside.values[0] < 0))
        return;
    bench_report_peer(&r->b, name, metric, "B", BENCH_LOWER, &ours, 1, &beside);
}

static void report_sizes(struct run *r, const char *name, size_t samples)
{
    if (!is_wanted(r, name))
        return;
    for (size_t i = 0; i < PEERS; i++) {
        if (can(&peers[i], ASK_BYTES))
            (void)bench_answerer_ask(&peers[i].a, name);
    }
    for (size_t m = 0; m < MAPPINGS; m++) {
        struct bench_sizes s;
        bench_sizes_of(&r->full[m], samples, &s);
        r->b.mapping = mapping_names[m];
        for (size_t i = 0; i < PEERS; i++)
            report_size(r, name, "bytes_held", m, s.held, &peers[i], name);
        for (size_t i = 0; i < PEERS; i++)
            report_size(r, name, "bytes_compact", m, s.compact, &peers[i], "compact");
        for (size_t i = 0; i < PEERS; i++)
            report_size(r, name, "bytes_proto", m, s.proto, &peers[i], "proto");
    }
}

static void run_all(struct run *r)
{
    for (size_t i = 0; i < PEERS; i++)
        peer_start(r, &peers[i]);
    run_phase(r, &hot);
    run_phase(r, &on_one);
    report_sizes(r, "bytes_100", 100);
    report_sizes(r, "bytes_1000", 1000);
    report_sizes(r, "bytes_1m", BENCH_VALUES);
    run_30k(r);
    for (size_t i = 0; i < PEERS; i++)
        bench_answerer_stop(&peers[i].a);
    run_1m(r);
}

/*
 * With pages of 4 KiB a random sketch of a million costs walks through page tables before anything
 * else. glibc's malloc asks for large ones when it is told so before a program starts; peers that
 * use it inherit that.
 */
static void ask_for_large_pages(char **argv)
{
    static const char name[] = "GLIBC_TUNABLES";
    if (!getenv(name) && setenv(name, "glibc.malloc.hugetlb=1", 0) == 0)
        (void)execv("/proc/self/exe", argv); /* or it goes on with small ones */
}

/* Take --case NAME out of the arguments; how many are left. */
static int take_cases(struct run *r, int argc, char **argv)
{
    int left = 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--case") == 0 && i + 1 < argc && r->only_count < ONLY_MAX)
            r->only[r->only_count++] = argv[++i];
        else
            argv[left++] = argv[i];
    }
    return left;
}

int main(int argc, char **argv)
{
    static struct run r;
    ask_for_large_pages(argv);
    argc = take_cases(&r, argc, argv);
    bench_begin(&r.b, "sketch",
                "One operation on a sketch, beside other sketch libraries.\n"
                "--case NAME, up to 16 times: only these.",
                argc, argv);
    if (r.b.rounds == 7)
        r.b.rounds = ROUNDS; /* a dozen peers take their time */
    bench_pin(0);
    bench_data_make(&r.data);
    (void)snprintf(r.dir, sizeof r.dir, "%s/sketch", bench_peers_dir());
    if (access(bench_peers_dir(), W_OK) == 0) /* or there is nobody to read them */
        bench_data_write(&r.data, r.dir);
    for (size_t m = 0; m < MAPPINGS; m++) {
        bench_ours_begin(&r.full[m], &r.data, mapping_names[m]);
        bench_ours_begin(&r.fresh[m], &r.data, mapping_names[m]);
    }
    run_all(&r);
    for (size_t m = 0; m < MAPPINGS; m++) {
        bench_ours_end(&r.full[m]);
        bench_ours_end(&r.fresh[m]);
    }
    return 0;
}
