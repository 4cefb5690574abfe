/* SPDX-License-Identifier: Apache-2.0 */
/* Peer tags that change while producers publish (contracts: span-stats §1.11). */
#include "fixture.h"

#include <stdio.h>

static struct weir_stats_opts client_opts(struct fixture *f)
{
    struct weir_stats_opts o = f_opts(f);
    o.profile = WEIR_PROFILE_CLIENT;
    return o;
}

struct tagged {
    struct weir_span s;
    struct weir_value slots[WEIR_TAG_SLOTS_MAX];
};

/* As a tracer fills it: by the table. A name that no slot wants is left. */
static void tag(struct tagged *t, const struct weir_tags *tags, const char *name, const char *value)
{
    const struct weir_tag_match *m = weir_tags_find(tags, name, strlen(name));
    for (; m; m = weir_tags_next(tags, m)) {
        t->slots[m->slot] = (struct weir_value){
            .type = WEIR_VALUE_BYTES, .len = (uint32_t)strlen(value), .v = {.ptr = value}};
        t->s.present |= UINT64_C(1) << m->slot;
    }
    t->s.slots = t->slots;
}

static void publish(struct fixture *f, struct weir_producer *p, uint8_t kind, const char *name,
                    const char *value)
{
    struct tagged t = {.s = f_span("svc", "r", f->now, 100)};
    t.s.kind = kind;
    tag(&t, weir_producer_tags(p), name, value);
    const struct weir_source source = {.now_ns = f->now};
    T_OK(weir_stats_publish(p, &source, &t.s, 1));
}

/* Hits of rows that have the label, or with value NULL have none of that name. */
static uint64_t hits(const struct weir_batch *b, size_t rows, const char *name, const char *value)
{
    uint64_t n = 0;
    for (size_t i = 0; i < rows; i++) {
        struct weir_row row;
        weir_batch_get_row(b, i, &row);
        n += f_has(b, i, name, value) ? row.hits / WEIR_WEIGHT_ONE : 0;
    }
    return n;
}

static int set(struct fixture *f, const char *a, const char *b)
{
    const char *const names[] = {a, b};
    return weir_stats_set_peer_tags(f->st, names, b ? 2 : a ? 1 : 0);
}

static void open_client(struct fixture *f)
{
    const struct weir_stats_opts o = client_opts(f);
    f_open(f, &o);
}

TEST(new_peer_tags_hold_for_what_is_published_after_the_producer_has_asked)
{
    struct fixture f;
    open_client(&f);
    struct weir_producer *other;
    T_OK(weir_producer_new(f.st, 0, 0, &other));
    publish(&f, f.p, WEIR_KIND_CLIENT, "db.name", "a");
    T_OK(set(&f, "db.name", "peer.service"));
    publish(&f, f.p, WEIR_KIND_CLIENT, "db.name", "b");
    publish(&f, f.p, WEIR_KIND_SERVER, "db.name", "b"); /* not of that kind */
    publish(&f, other, WEIR_KIND_CLIENT, "peer.service", "p");
    T_OK(set(&f, "peer.service", NULL));
    publish(&f, f.p, WEIR_KIND_PRODUCER, "db.name", "c"); /* is none any more */
    publish(&f, f.p, WEIR_KIND_CONSUMER, "peer.service", "q");
    f_poll(&f);
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(hits(b, info.rows, "db_name", "a"), 0);
    T_EQ_U64(hits(b, info.rows, "db_name", "b"), 1);
    T_EQ_U64(hits(b, info.rows, "db_name", "c"), 0);
    T_EQ_U64(hits(b, info.rows, "peer_service", "p"), 1);
    T_EQ_U64(hits(b, info.rows, "peer_service", "q"), 1);
    T_EQ_U64(info.counts.aggregated, 6);
    weir_batch_release(b);
    weir_producer_free(other);
    f_close(&f);
}

TEST(a_payload_is_read_by_the_table_that_it_was_begun_with)
{
    struct fixture f;
    open_client(&f);
    T_OK(set(&f, "a", "b"));
    const struct weir_tags *const before = weir_producer_tags(f.p);
    const struct weir_source source = {.now_ns = f.now};
    struct tagged t[2] = {{.s = f_span("svc", "r", f.now, 100)},
                          {.s = f_span("svc", "r", f.now, 100)}};
    t[0].s.kind = t[1].s.kind = WEIR_KIND_CLIENT;
    tag(&t[0], before, "b", "1");
    weir_stats_begin(f.p, &source);
    T_OK(weir_stats_add(f.p, &t[0].s));
    T_OK(weir_stats_trace_end(f.p));
    T_OK(set(&f, "b", NULL)); /* whose slot is that of a */
    T_TRUE(weir_producer_tags(f.p) == before);
    tag(&t[1], weir_producer_tags(f.p), "b", "2");
    T_OK(weir_stats_add(f.p, &t[1].s));
    T_OK(weir_stats_trace_end(f.p));
    weir_stats_commit(f.p);
    T_TRUE(weir_producer_tags(f.p) != before);
    publish(&f, f.p, WEIR_KIND_CLIENT, "b", "3");
    f_poll(&f);
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(info.rows, 3);
    T_EQ_U64(hits(b, info.rows, "b", "1"), 1);
    T_EQ_U64(hits(b, info.rows, "b", "2"), 1);
    T_EQ_U64(hits(b, info.rows, "b", "3"), 1);
    T_EQ_U64(hits(b, info.rows, "a", NULL), 3);
    weir_batch_release(b);
    f_close(&f);
}

TEST(the_same_set_in_another_order_or_twice_changes_nothing)
{
    struct fixture f;
    open_client(&f);
    T_OK(set(&f, "a", "b"));
    const struct weir_tags *const t = weir_producer_tags(f.p);
    const char *const again[] = {"b", "a", "b"};
    T_OK(weir_stats_set_peer_tags(f.st, again, 3));
    T_TRUE(weir_producer_tags(f.p) == t);
    T_OK(set(&f, "a", NULL));
    T_TRUE(weir_producer_tags(f.p) != t);
    T_OK(set(&f, "b", "a")); /* it is still there, and is taken again */
    T_TRUE(weir_producer_tags(f.p) == t);
    T_OK(weir_stats_set_peer_tags(f.st, NULL, 0)); /* that is what it was made with */
    T_TRUE(weir_producer_tags(f.p) == weir_stats_tags(f.st));
    f_close(&f);
}

TEST(names_that_make_no_sense_are_refused_and_leave_what_was)
{
    struct fixture f;
    open_client(&f);
    T_OK(set(&f, "a", NULL));
    const struct weir_tags *const t = weir_producer_tags(f.p);
    char longest[202];
    memset(longest, 'x', sizeof longest);
    longest[201] = 0;
    T_ERR(set(&f, "", NULL), WEIR_EINVAL);
    T_ERR(set(&f, "a,b", NULL), WEIR_EINVAL);
    T_ERR(set(&f, longest, NULL), WEIR_EINVAL);
    T_ERR(set(&f, "a\xff", NULL), WEIR_EINVAL);
    T_ERR(set(&f, "x.y", "x_y"), WEIR_EINVAL);         /* one label */
    T_ERR(set(&f, "service.name", NULL), WEIR_EINVAL); /* that of a field */
    static const char *const hole[1];
    T_ERR(weir_stats_set_peer_tags(f.st, hole, 1), WEIR_EINVAL);
    char text[47][8];
    const char *many[47];
    for (size_t i = 0; i < 47; i++) {
        (void)snprintf(text[i], sizeof text[i], "n%zu", i);
        many[i] = text[i];
    }
    T_ERR(weir_stats_set_peer_tags(f.st, many, 47), WEIR_EFULL);
    T_TRUE(weir_producer_tags(f.p) == t);
    longest[200] = 0;
    T_OK(set(&f, longest, NULL));
    T_OK(weir_stats_set_peer_tags(f.st, many, 46));
    publish(&f, f.p, WEIR_KIND_CLIENT, "n45", "last");
    f_poll(&f);
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(hits(b, info.rows, "n45", "last"), 1);
    weir_batch_release(b);
    f_close(&f);
}

TEST(base_service_is_a_peer_tag_of_outgoing_kinds_only_where_it_is_asked_for)
{
    struct fixture f;
    open_client(&f);
    T_OK(set(&f, "_dd.base_service", NULL));
    publish(&f, f.p, WEIR_KIND_CLIENT, "_dd.base_service", "c");
    publish(&f, f.p, WEIR_KIND_INTERNAL, "_dd.base_service", "i");
    publish(&f, f.p, WEIR_KIND_SERVER, "_dd.base_service", "s");
    T_OK(set(&f, "x", NULL));
    publish(&f, f.p, WEIR_KIND_CLIENT, "_dd.base_service", "d");
    publish(&f, f.p, WEIR_KIND_INTERNAL, "_dd.base_service", "j");
    f_poll(&f);
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(hits(b, info.rows, "_dd_base_service", "c"), 1);
    T_EQ_U64(hits(b, info.rows, "_dd_base_service", "i"), 1);
    T_EQ_U64(hits(b, info.rows, "_dd_base_service", "s"), 0);
    T_EQ_U64(hits(b, info.rows, "_dd_base_service", "d"), 0);
    T_EQ_U64(hits(b, info.rows, "_dd_base_service", "j"), 1);
    weir_batch_release(b);
    f_close(&f);
}

/* Next window; what it sealed is given back. */
static void turn(struct fixture *f)
{
    struct weir_batch_info info;
    f_poll(f);
    f->now += 10 * f_second;
    f_poll(f);
    for (struct weir_batch *b; (b = f_take(f, &info)) != NULL;)
        weir_batch_release(b);
    f_poll(f);
}

TEST(any_number_of_sets_follow_each_other_when_windows_are_sealed_between_them)
{
    struct fixture f;
    open_client(&f);
    char name[16];
    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof name, "tag%d", i);
        T_OK(set(&f, name, NULL));
        publish(&f, f.p, WEIR_KIND_CLIENT, name, "v");
        f_poll(&f);
        for (int k = 0; k < 3; k++) {
            f.now += 30 * f_second; /* entries leave after six windows without spans */
            turn(&f);
        }
    }
    f_close(&f);
}

TEST(eight_sets_in_use_refuse_a_ninth_until_a_producer_has_let_go_and_windows_are_sealed)
{
    struct fixture f;
    open_client(&f);
    struct weir_producer *p[8];
    char name[16];
    for (int i = 1; i < 8; i++) {
        T_OK(weir_producer_new(f.st, 4096, 0, &p[i]));
        (void)snprintf(name, sizeof name, "tag%d", i);
        T_OK(set(&f, name, NULL));
        publish(&f, p[i], WEIR_KIND_CLIENT, name, "v");
    }
    T_ERR(set(&f, "ninth", NULL), WEIR_EBUSY);
    f_poll(&f);
    T_ERR(set(&f, "ninth", NULL), WEIR_EBUSY);
    T_OK(set(&f, "tag3", NULL)); /* one of the eight is no ninth */
    (void)weir_producer_tags(p[7]);
    f_seal(&f); /* a batch that is not given back holds its names */
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    for (int i = 0; i < 10; i++) {
        publish(&f, f.p, WEIR_KIND_SERVER, "x", "y");
        turn(&f);
    }
    T_ERR(set(&f, "ninth", NULL), WEIR_EBUSY);
    T_EQ_U64(hits(b, info.rows, "tag7", "v"), 1);
    weir_batch_release(b);
    publish(&f, f.p, WEIR_KIND_SERVER, "x", "y");
    turn(&f);
    T_OK(set(&f, "ninth", NULL));
    for (int i = 1; i < 8; i++)
        weir_producer_free(p[i]);
    f_close(&f);
}

TEST(an_identity_keeps_the_labels_it_was_prepared_with)
{
    struct fixture f;
    open_client(&f);
    T_OK(set(&f, "a", NULL));
    struct tagged t = {.s = f_span("svc", "r", f.now, 100)};
    t.s.kind = WEIR_KIND_CLIENT;
    tag(&t, weir_producer_tags(f.p), "a", "1");
    const struct weir_source source = {.now_ns = f.now};
    struct weir_stats_identity *id;
    T_OK(weir_producer_identity_new(f.p, &source, &t.s, &id));
    T_OK(set(&f, "b", NULL));
    (void)weir_producer_tags(f.p);
    for (int i = 0; i < 10; i++) { /* nothing of the old set but the identity */
        publish(&f, f.p, WEIR_KIND_SERVER, "x", "y");
        turn(&f);
    }
    T_OK(weir_stats_publish_identity(f.p, id, f.now, 100, 0, 0));
    f_poll(&f);
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(info.rows, 1);
    T_EQ_U64(hits(b, 1, "a", "1"), 1);
    weir_batch_release(b);
    weir_stats_identity_free(id);
    f_close(&f);
}

TEST(each_set_has_budgets_of_its_own_and_shares_those_of_fixed_fields)
{
    struct fixture f;
    struct weir_stats_opts o = client_opts(&f);
    o.limits[WEIR_LIMIT_PEER_TAGS] = 1;
    o.limits[WEIR_LIMIT_SERVICE] = 1;
    f_open(&f, &o);
    T_OK(set(&f, "a", NULL));
    publish(&f, f.p, WEIR_KIND_CLIENT, "a", "1");
    publish(&f, f.p, WEIR_KIND_CLIENT, "a", "2");
    T_OK(set(&f, "b", "a"));
    publish(&f, f.p, WEIR_KIND_CLIENT, "b", "1");
    publish(&f, f.p, WEIR_KIND_CLIENT, "b", "2");
    struct weir_span s = f_span("another", "r", f.now, 100);
    f_publish(&f, &s, 1);
    f_seal(&f);
    struct weir_stats_health h;
    weir_stats_get_health(f.st, &h);
    T_EQ_U64(h.collapsed[WEIR_LIMIT_PEER_TAGS], 2);
    T_EQ_U64(h.collapsed[WEIR_LIMIT_SERVICE], 1);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(hits(b, info.rows, "a", "1"), 1);
    T_EQ_U64(hits(b, info.rows, "a", "tracer_blocked_value"), 1);
    T_EQ_U64(hits(b, info.rows, "b", "tracer_blocked_value"), 1);
    weir_batch_release(b);
    f_close(&f);
}

TEST(the_overflow_row_has_the_tags_of_the_set_that_is_current_once_its_window_was_sealed)
{
    struct fixture f;
    struct weir_stats_opts o = client_opts(&f);
    o.max_keys = 1;
    f_open(&f, &o);
    T_OK(set(&f, "a", NULL));
    publish(&f, f.p, WEIR_KIND_CLIENT, "a", "1");
    f_poll(&f);
    turn(&f);
    publish(&f, f.p, WEIR_KIND_CLIENT, "a", "1");
    publish(&f, f.p, WEIR_KIND_CLIENT, "a", "2");
    f_poll(&f);
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(info.counts.overflow, 1);
    T_EQ_U64(hits(b, info.rows, "a", "tracer_blocked_value"), 1);
    weir_batch_release(b);
    f_close(&f);
}

TEST(no_memory_for_a_set_leaves_the_one_before)
{
    struct fixture f;
    open_client(&f);
    T_OK(set(&f, "a", NULL));
    const struct weir_tags *const t = weir_producer_tags(f.p);
    int r = WEIR_ENOMEM;
    for (long i = 0; r != WEIR_OK; i++) {
        f.heap.fail_at = f.heap.seen + i;
        r = set(&f, "b", "c");
        T_TRUE(r == WEIR_OK || r == WEIR_ENOMEM);
        T_TRUE((weir_producer_tags(f.p) == t) == (r != WEIR_OK));
        T_TRUE(i < 100);
    }
    f.heap.fail_at = -1;
    f_close(&f);
}
