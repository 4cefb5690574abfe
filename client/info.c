/* SPDX-License-Identifier: Apache-2.0 */
/* info: see info.h. One static function a member that is wanted. */
#include "info.h"

#include "base.h"

#include <string.h>

enum { NAME_BYTES = 64 };

static bool text_is(const char *text, size_t len, const char *want)
{
    return wr_bytes_are((struct weir_bytes){.ptr = text, .len = len}, want);
}

static void take_endpoint(struct wr_info *info, const char *path, size_t len)
{
    struct weir_client_agent *const a = &info->agent;
    if (len > 0 && path[0] == '/') {
        path++;
        len--;
    }
    a->stats = a->stats || text_is(path, len, "v0.6/stats");
    a->v1 = a->v1 || text_is(path, len, "v1.0/traces");
    a->v05 = a->v05 || text_is(path, len, "v0.5/traces");
    a->v04 = a->v04 || text_is(path, len, "v0.4/traces");
    a->v03 = a->v03 || text_is(path, len, "v0.3/traces");
}

static void on_endpoints(struct wr_json *j, struct wr_info *info)
{
    bool first = true;
    char path[NAME_BYTES];
    size_t len;
    if (wr_json_peek(j) != '[') {
        (void)wr_json_skip(j);
        return;
    }
    info->has_endpoints = wr_json_enter(j, '[');
    while (wr_json_element(j, &first)) {
        if (wr_json_peek(j) != '"')
            (void)wr_json_skip(j);
        else if (wr_json_string(j, path, sizeof path, &len))
            take_endpoint(info, path, len);
    }
}

static void on_version(struct wr_json *j, struct wr_info *info)
{
    size_t len;
    if (wr_json_peek(j) == '"')
        (void)wr_json_string(j, info->agent.version, sizeof info->agent.version, &len);
    else
        (void)wr_json_skip(j);
}

static void on_drop_p0s(struct wr_json *j, struct wr_info *info)
{
    info->agent.drop_p0s = wr_json_truth(j);
}

static bool has_tag(const struct wr_info *info, const char *name)
{
    for (uint32_t i = 0; i < info->agent.peer_tag_count; i++) {
        if (strcmp(info->peer_tags[i], name) == 0)
            return true;
    }
    return false;
}

static void on_peer_tags(struct wr_json *j, struct wr_info *info)
{
    bool first = true;
    uint32_t *const count = &info->agent.peer_tag_count;
    char name[WR_INFO_TAG_BYTES];
    size_t len;
    if (wr_json_peek(j) != '[') {
        (void)wr_json_skip(j);
        return;
    }
    (void)wr_json_enter(j, '[');
    while (wr_json_element(j, &first)) {
        if (wr_json_peek(j) != '"') {
            (void)wr_json_skip(j);
            continue;
        }
        /* A name with a NUL inside is none, and a comma would make it two. */
        if (wr_json_string(j, name, sizeof name, &len) && len > 0 && strlen(name) == len &&
            !strchr(name, ',') && *count < WEIR_CLIENT_PEER_TAGS_MAX && !has_tag(info, name))
            memcpy(info->peer_tags[(*count)++], name, len + 1);
    }
}

static void on_span_kinds(struct wr_json *j, struct wr_info *info)
{
    bool first = true;
    if (wr_json_peek(j) != '[') {
        (void)wr_json_skip(j);
        return;
    }
    (void)wr_json_enter(j, '[');
    while (wr_json_element(j, &first)) {
        if (wr_json_skip(j))
            info->agent.span_kind_count++;
    }
}

static void on_obfuscation(struct wr_json *j, struct wr_info *info)
{
    double version = 0;
    const char c = wr_json_peek(j);
    if (c < '0' || c > '9')
        (void)wr_json_skip(j);
    else if (wr_json_number(j, &version) && version >= 0 && version < 1e9)
        info->agent.obfuscation_version = (uint32_t)version;
}

static const struct {
    const char *name;
    void (*take)(struct wr_json *j, struct wr_info *info);
} members[] = {
    {"endpoints", on_endpoints},
    {"version", on_version},
    {"client_drop_p0s", on_drop_p0s},
    {"peer_tags", on_peer_tags},
    {"span_kinds_stats_computed", on_span_kinds},
    {"obfuscation_version", on_obfuscation},
};

static void take_member(struct wr_json *j, const char *name, size_t len, struct wr_info *info)
{
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (text_is(name, len, members[i].name)) {
            members[i].take(j, info);
            return;
        }
    }
    (void)wr_json_skip(j);
}

bool wr_info_parse(struct weir_bytes text, struct wr_info *ret_info)
{
    struct wr_json j = wr_json_begin(text);
    char name[NAME_BYTES];
    size_t len;
    bool first = true;
    memset(ret_info, 0, sizeof *ret_info);
    if (!wr_json_enter(&j, '{'))
        return false;
    while (wr_json_member(&j, &first, name, sizeof name, &len))
        take_member(&j, name, len, ret_info);
    ret_info->agent.known = wr_json_done(&j) && ret_info->has_endpoints;
    return ret_info->agent.known;
}

/* 7.65.0: before it agents did not merge clients' statistics rightly (contract: span stats §1.14).
 */
bool wr_info_is_recent(const char *version)
{
    static const uint32_t least[3] = {7, 65, 0};
    for (size_t part = 0; part < 3; part++) {
        const size_t len = strcspn(version, ".");
        uint32_t n;
        /* "7.65.0-rc.1" is a release candidate: its third part is no number. */
        if (!wr_read_decimal((struct weir_bytes){.ptr = version, .len = len}, &n) ||
            n < least[part])
            return false;
        if (n > least[part])
            return true;
        version += len;
        if (*version == '.')
            version++;
    }
    return true;
}
