/* SPDX-License-Identifier: Apache-2.0 */
/* schema: see schema.h. */
#include "stats/schema.h"

#include "base/bits.h"
#include "stats/key.h"

/* Label names of the fixed fields (contracts: rows §2; OpenTelemetry span-metrics names). */
static const char *const fixed_names[WR_FIELD_FIXED] = {
    [WR_FIELD_ENV] = "env",
    [WR_FIELD_SERVICE] = "service_name",
    [WR_FIELD_OPERATION] = "operation_name",
    [WR_FIELD_RESOURCE] = "span_name",
    [WR_FIELD_TYPE] = "span_type",
    [WR_FIELD_KIND] = "span_kind",
    [WR_FIELD_HTTP_STATUS] = "http_response_status_code",
    [WR_FIELD_HTTP_METHOD] = "http_request_method",
    [WR_FIELD_HTTP_ROUTE] = "http_route",
    [WR_FIELD_GRPC_STATUS] = "rpc_grpc_status_code",
    [WR_FIELD_SYNTHETIC] = "synthetic",
    [WR_FIELD_BASE_SERVICE] = "_dd_base_service",
    [WR_FIELD_SERVICE_SOURCE] = "service_source",
    [WR_FIELD_TRACE_ROOT] = "trace_root",
    [WR_FIELD_HTTP_ENDPOINT] = "http_endpoint",
};

/* Contracts: rows §2: the first name labels, the others are read where it is absent. */
static const char *const default_peers[] = {
    "peer.service",
    "db.system,db.system.name",
    "db.name,db.namespace",
    "messaging.system",
    "messaging.destination.name,messaging.destination",
    "rpc.service",
    "server.address,net.peer.name,out.host",
};

static const char *const kind_values[] = {
    "SPAN_KIND_UNSPECIFIED", "SPAN_KIND_INTERNAL", "SPAN_KIND_SERVER",
    "SPAN_KIND_CLIENT",      "SPAN_KIND_PRODUCER", "SPAN_KIND_CONSUMER",
};

struct build {
    struct wr_schema *schema;
    struct weir_tag_name *names;
    size_t count;
    size_t cap;
    char *text; /* the names, NUL-terminated, for weir_tags_new to copy */
    size_t text_used;
    size_t text_cap;
};

static bool label_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static int own_name(struct wr_schema *schema, size_t field, const char *name, size_t len)
{
    char *const p = wr_alloc(&schema->alloc, len + 1);
    if (!p)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < len; i++)
        p[i] = label_char(name[i]) ? name[i] : '_';
    p[len] = 0;
    schema->names[field] = p;
    schema->name_bytes[field] = len;
    return WEIR_OK;
}

static int own_tag(struct wr_schema *schema, size_t field, const char *name, size_t len)
{
    char *const p = wr_alloc(&schema->alloc, len + 1);
    if (!p)
        return WEIR_ENOMEM;
    memcpy(p, name, len);
    p[len] = 0;
    schema->tags_text[field] = p;
    schema->name_bytes[field] = len;
    schema->tags_bound += len + 1 + 5; /* a colon, a head */
    return own_name(schema, field, name, len);
}

static bool name_taken(const struct wr_schema *schema, size_t field)
{
    for (size_t i = 0; i < field; i++) {
        /* A client's row has the one as a peer tag, or the other of an internal span, never both.
         */
        if (i == WR_FIELD_BASE_SERVICE && schema->client)
            continue;
        if (schema->name_bytes[i] == schema->name_bytes[field] &&
            memcmp(schema->names[i], schema->names[field], schema->name_bytes[i]) == 0)
            return true;
    }
    static const char status[] = "status_code";
    return schema->name_bytes[field] == sizeof status - 1 &&
           memcmp(schema->names[field], status, sizeof status - 1) == 0;
}

static void add_tag(struct build *b, const char *text, size_t slot, size_t rank, unsigned where)
{
    WR_ASSERT(b->count < b->cap);
    b->names[b->count++] = (struct weir_tag_name){
        .name = text, .slot = (uint8_t)slot, .rank = (uint8_t)rank, .where = (uint8_t)where};
}

/* One configured list "first,second,...": a field, a slot, a name each. */
static int add_list(struct build *b, const char *list, bool resource_too)
{
    struct wr_schema *const schema = b->schema;
    const size_t field = schema->fields;
    const size_t slot = WEIR_TAG_FIXED + (field - WR_FIELD_FIXED);
    if (field >= WR_FIELDS_MAX || slot >= WEIR_TAG_SLOTS_MAX)
        return WEIR_EFULL;
    size_t rank = 0;
    for (const char *at = list;; rank++) {
        const char *const comma = strchr(at, ',');
        const size_t len = comma ? (size_t)(comma - at) : strlen(at);
        if (len == 0 || len > WR_TAG_MAX ||
            rank > 100) /* far more than anybody lists, and within the ranks of weir_tag_name */
            return WEIR_EINVAL;
        char *const text = b->text + b->text_used;
        memcpy(text, at, len);
        text[len] = 0;
        b->text_used += len + 1;
        add_tag(b, text, slot, rank, WEIR_IN_DD_META | WEIR_IN_OTLP_SPAN);
        add_tag(b, text, slot, rank, WEIR_IN_DD_METRICS);
        if (resource_too)
            add_tag(b, text, slot, rank, WEIR_IN_OTLP_RESOURCE);
        if (rank == 0) {
            const int r = own_tag(schema, field, at, len);
            if (r != WEIR_OK)
                return r;
            schema->fields++;
            if (name_taken(schema, field))
                return WEIR_EINVAL;
        }
        if (!comma)
            return WEIR_OK;
        schema->plain = false;
        at = comma + 1;
    }
}

static int add_lists(struct build *b, const char *const *lists, size_t count, bool resource_too)
{
    for (size_t i = 0; i < count; i++) {
        const int r = lists[i] ? add_list(b, lists[i], resource_too) : WEIR_EINVAL;
        if (r != WEIR_OK)
            return r;
    }
    return WEIR_OK;
}

/* A name gives at most three tag names and its own length of text; each comma one more. */
static void measure(struct build *b, const char *const *lists, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!lists[i])
            continue;
        b->cap += 3;
        for (const char *at = lists[i]; *at; at++)
            b->cap += *at == ',' ? 3 : 0;
        b->text_cap += strlen(lists[i]) + 1;
    }
}

static int name_cmp(const struct wr_schema *s, uint8_t a, uint8_t b)
{
    const size_t n = s->name_bytes[a] < s->name_bytes[b] ? s->name_bytes[a] : s->name_bytes[b];
    const int d = memcmp(s->names[a], s->names[b], n);
    if (d != 0)
        return d;
    return s->name_bytes[a] < s->name_bytes[b] ? -1 : s->name_bytes[a] > s->name_bytes[b];
}

static void sort_names(struct wr_schema *s)
{
    for (size_t i = 0; i < s->fields; i++) {
        size_t j = i;
        for (; j > 0 && name_cmp(s, s->by_name[j - 1], (uint8_t)i) > 0; j--)
            s->by_name[j] = s->by_name[j - 1];
        s->by_name[j] = (uint8_t)i;
    }
}

/* Contracts: span-stats §1.5: by name, four of them. Their number; the others are counted. */
static size_t client_dimensions(struct wr_schema *schema, const struct weir_stats_opts *opts,
                                const char *ret_first[WR_CLIENT_DIMENSIONS])
{
    size_t count = 0;
    for (size_t i = 0; i < opts->dimension_count; i++) {
        const char *name = opts->dimensions[i];
        size_t at = 0;
        while (name && at < count && strcmp(ret_first[at], name) < 0)
            at++;
        if (!name || !*name || strchr(name, ':') ||
            (at < count && strcmp(ret_first[at], name) == 0)) {
            schema->ignored++;
            continue;
        }
        for (; at < count; at++) {
            const char *const moved = ret_first[at];
            ret_first[at] = name;
            name = moved;
        }
        if (count < WR_CLIENT_DIMENSIONS)
            ret_first[count++] = name;
        else
            schema->ignored++;
    }
    return count;
}

/* Slots of a client's fields, and of what an endpoint is inferred from. */
static void add_own_tags(struct build *b)
{
    const unsigned where = WEIR_IN_DD_META | WEIR_IN_OTLP_SPAN;
    const struct wr_schema *const schema = b->schema;
    if (schema->flags & (WEIR_STATS_INFER_ENDPOINT | WEIR_STATS_SIMPLIFY_ENDPOINT)) {
        add_tag(b, "http.url", WEIR_TAG_HTTP_URL, 0, where);
        add_tag(b, "url.full", WEIR_TAG_HTTP_URL, 1, where);
    }
    if (schema->client) {
        add_tag(b, "_dd.svc_src", WEIR_TAG_SERVICE_SOURCE, 0, where);
        add_tag(b, "http.endpoint", WEIR_TAG_HTTP_ENDPOINT, 0, where);
    }
}
enum { OWN_TAGS_MAX = 4 };

static int build_tags(struct build *b, const struct weir_stats_opts *opts)
{
    struct wr_schema *const schema = b->schema;
    const bool defaults = !opts->peer_tags && !schema->client;
    const char *const *const peers = defaults ? default_peers : opts->peer_tags;
    const size_t peer_count = defaults          ? sizeof default_peers / sizeof *default_peers
                              : opts->peer_tags ? opts->peer_tag_count
                                                : 0;
    const char *first[WR_CLIENT_DIMENSIONS];
    const char *const *dimensions = opts->dimensions;
    size_t dimension_count = opts->dimension_count;
    if (schema->client) {
        dimension_count = client_dimensions(schema, opts, first);
        dimensions = first;
    }
    measure(b, peers, peer_count);
    measure(b, dimensions, dimension_count);
    b->cap += OWN_TAGS_MAX;
    b->names = wr_alloc(&schema->alloc, (b->cap + 1) * sizeof *b->names);
    b->text = wr_alloc(&schema->alloc, b->text_cap + 1);
    if (!b->names || !b->text)
        return WEIR_ENOMEM;
    add_own_tags(b);
    schema->plain = true;
    int r = add_lists(b, peers, peer_count, false);
    const bool plain = schema->plain;
    schema->peers = schema->fields - WR_FIELD_FIXED;
    if (r == WEIR_OK)
        r = add_lists(b, dimensions, dimension_count, true);
    schema->plain = plain;
    schema->dimensions = schema->fields - WR_FIELD_FIXED - schema->peers;
    if (r == WEIR_OK)
        r = weir_tags_new(&schema->alloc, b->names, b->count, &schema->tags);
    return r;
}

int wr_schema_init(struct wr_schema *schema, const struct weir_stats_opts *opts)
{
    memset(schema, 0, sizeof *schema);
    schema->alloc = wr_alloc_or_default(&opts->alloc);
    schema->client = opts->profile == WEIR_PROFILE_CLIENT;
    schema->flags = opts->flags;
    struct build b = {.schema = schema};
    int r = WEIR_OK;
    for (size_t i = 0; i < WR_FIELD_FIXED && r == WEIR_OK; i++) {
        r = own_name(schema, i, fixed_names[i], strlen(fixed_names[i]));
        schema->fields += r == WEIR_OK;
    }
    if (r == WEIR_OK)
        r = build_tags(&b, opts);
    wr_free(&schema->alloc, b.names, (b.cap + 1) * sizeof *b.names);
    wr_free(&schema->alloc, b.text, b.text_cap + 1);
    if (r != WEIR_OK) {
        wr_schema_done(schema);
        return r;
    }
    sort_names(schema);
    return WEIR_OK;
}

void wr_schema_done(struct wr_schema *schema)
{
    for (size_t i = 0; i < WR_FIELDS_MAX; i++) {
        wr_free(&schema->alloc, schema->names[i], schema->name_bytes[i] + 1);
        wr_free(&schema->alloc, schema->tags_text[i], schema->name_bytes[i] + 1);
    }
    weir_tags_free(schema->tags);
    memset(schema, 0, sizeof *schema);
}

enum weir_kind wr_schema_kind(const struct wr_schema *schema, struct weir_bytes field)
{
    if (!schema->client)
        return field.len == 1 && field.ptr[0] >= '1' && field.ptr[0] <= '5'
                   ? (enum weir_kind)(field.ptr[0] - '0')
                   : WEIR_KIND_NONE;
    for (int k = WEIR_KIND_INTERNAL; k <= WEIR_KIND_CONSUMER; k++) {
        const struct weir_bytes t = wr_kind_text((enum weir_kind)k);
        if (t.len == field.len && memcmp(t.ptr, field.ptr, t.len) == 0)
            return (enum weir_kind)k;
    }
    return WEIR_KIND_NONE;
}

static struct weir_bytes kind_label(const struct wr_schema *schema, struct weir_bytes field)
{
    const enum weir_kind k = wr_schema_kind(schema, field);
    if (k == WEIR_KIND_NONE && schema->client && field.len > 0)
        return field; /* a kind of the tracer's own */
    return (struct weir_bytes){.ptr = kind_values[k], .len = strlen(kind_values[k])};
}

void wr_schema_fields(const struct wr_schema *schema, const char *key, size_t key_bytes,
                      struct weir_bytes fields[WR_FIELDS_MAX])
{
    WR_ASSERT(key_bytes >= 8 && schema->fields >= WR_FIELD_FIXED);
    const uint64_t present = wr_load64le(key);
    size_t at = 8;
    for (size_t i = 0; i < schema->fields; i++) {
        fields[i] = (struct weir_bytes){0};
        if (!(present >> i & 1))
            continue;
        const size_t len = wr_load16le(key + at);
        fields[i] = (struct weir_bytes){.ptr = key + at + 2, .len = len};
        at += 2 + len;
        WR_ASSERT(at <= key_bytes);
    }
    (void)key_bytes;
}

size_t wr_schema_labels(const struct wr_schema *schema, const char *key, size_t key_bytes,
                        struct weir_label *labels, size_t cap)
{
    struct weir_bytes fields[WR_FIELDS_MAX];
    wr_schema_fields(schema, key, key_bytes, fields);
    fields[WR_FIELD_KIND] = kind_label(schema, fields[WR_FIELD_KIND]);
    size_t count = 0;
    for (size_t k = 0; k < schema->fields; k++) {
        const size_t i = schema->by_name[k];
        if (fields[i].len == 0)
            continue;
        if (count < cap)
            labels[count] =
                (struct weir_label){.name = {.ptr = schema->names[i], .len = schema->name_bytes[i]},
                                    .value = fields[i]};
        count++;
    }
    return count;
}
