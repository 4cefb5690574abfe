/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml: see yaml.h. libfyaml reads the file; here its nodes become option names and texts, each
 * with line and column. Threads: none inside. Memory: libfyaml's tree of one file, freed here.
 */
#include "config/yaml.h"

#include "config/lookup.h"
#include "config/value.h"
#include "log/utf8.h"

#include <libfyaml.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 128
#define PLACE_BYTES 512
#define LIST_TEXT_BYTES 8192

struct walk {
    struct config *config;
    const char *file;
    struct config_error *error;
};

/* file:line:column of the node, from 1. */
static void place_of(const struct walk *w, struct fy_node *node, char place[PLACE_BYTES],
                     struct config_origin *ret_origin)
{
    struct fy_token *const token = fy_node_get_scalar_token(node);
    const struct fy_mark *const mark = token ? fy_token_start_mark(token) : NULL;
    struct config_origin origin = {.source = CONFIG_FROM_FILE, .line = 0, .column = 0};
    if (mark) {
        origin.line = mark->line + 1;
        origin.column = mark->column + 1;
        (void)snprintf(place, PLACE_BYTES, "%.400s:%d:%d", w->file, origin.line, origin.column);
    } else {
        (void)snprintf(place, PLACE_BYTES, "%.400s", w->file);
    }
    if (ret_origin)
        *ret_origin = origin;
}

/* The text of a scalar that is no alias and holds no NUL; freed by the caller. */
static char *text_of(struct fy_node *node)
{
    size_t n = 0;
    if (!fy_node_is_scalar(node) || fy_node_is_alias(node))
        return NULL;
    const char *const text = fy_node_get_scalar(node, &n);
    if (!text || memchr(text, 0, n))
        return n == 0 ? strdup("") : NULL;
    return strndup(text, n);
}

/* "key:" with nothing behind it. */
static bool is_empty(struct fy_node *node)
{
    size_t n = 0;
    if (!node)
        return true;
    if (!fy_node_is_scalar(node) || fy_node_is_alias(node) || fy_node_get_style(node) != FYNS_PLAIN)
        return false;
    (void)fy_node_get_scalar(node, &n);
    return n == 0;
}

/* The items of a sequence, joined as the other sources write a list. */
static int join_items(const struct walk *w, struct fy_node *node, const char *place,
                      char text[LIST_TEXT_BYTES])
{
    void *at = NULL;
    size_t used = 0;
    text[0] = 0;
    for (;;) {
        struct fy_node *const item = fy_node_sequence_iterate(node, &at);
        if (!item)
            return 0;
        char item_place[PLACE_BYTES];
        place_of(w, item, item_place, NULL);
        char *const item_text = text_of(item);
        const size_t n = item_text ? strlen(item_text) : 0;
        if (n == 0 || strchr(item_text, ',')) {
            free(item_text);
            return config_refuse(w->error, item_place,
                                 "an item must be one name, or names joined by |");
        }
        if (used + n + 2 > LIST_TEXT_BYTES) {
            free(item_text);
            return config_refuse(w->error, place, "the list is too long");
        }
        if (used > 0)
            text[used++] = ',';
        memcpy(text + used, item_text, n + 1);
        used += n;
        free(item_text);
    }
}

static int set_option(const struct walk *w, size_t option, const char *key_place,
                      struct config_origin origin, struct fy_node *value)
{
    const char *const name = config_options[option].name;
    struct config_origin *const old = &w->config->origins[option];
    char list_text[LIST_TEXT_BYTES];
    char why[CONFIG_WHY_BYTES];
    char place[PLACE_BYTES];
    char *text = NULL;
    if (old->source == CONFIG_FROM_FILE)
        return config_refuse(w->error, key_place, "%s is set twice: first at line %d", name,
                             old->line);
    if (option == CONFIG_AT_config_file)
        return config_refuse(w->error, key_place, "%s cannot be set in the file itself", name);
    if (is_empty(value))
        return config_refuse(w->error, key_place, "%s has no value: write \"\" for an empty one",
                             name);
    place_of(w, value, place, NULL);
    if (fy_node_is_sequence(value) && config_options[option].type == CONFIG_LIST) {
        (void)snprintf(place, sizeof place, "%s", key_place);
        if (join_items(w, value, key_place, list_text) != 0)
            return -1;
    } else {
        text = text_of(value);
        if (!text)
            return config_refuse(w->error, key_place, "%s needs one value", name);
    }
    const int r = config_value_set(w->config, option, text ? text : list_text, why);
    free(text);
    if (r != 0)
        return config_refuse(w->error, place, "%s: %s", name, why);
    *old = origin;
    return 0;
}

static int unknown_key(const struct walk *w, const char *place, const char *path)
{
    char quoted[80];
    char meant[64];
    const char *const found = config_meant(path, meant);
    return found ? config_refuse(w->error, place, "unknown key %s: did you mean %s?",
                                 config_quote(path, quoted), found)
                 : config_refuse(w->error, place, "unknown key %s", config_quote(path, quoted));
}

/* Recursion ends with the groups of the table: what is below an unknown key is never entered. */
static int walk_mapping(const struct walk *w, struct fy_node *node, const char *prefix)
{
    void *at = NULL;
    for (;;) {
        struct fy_node_pair *const pair = fy_node_mapping_iterate(node, &at);
        if (!pair)
            return 0;
        struct fy_node *const key = fy_node_pair_key(pair);
        struct fy_node *const value = fy_node_pair_value(pair);
        char place[PLACE_BYTES];
        char path[PATH_BYTES];
        struct config_origin origin;
        place_of(w, key, place, &origin);
        char *const text = key ? text_of(key) : NULL;
        if (!text)
            return config_refuse(w->error, place, "a key must be one word");
        (void)snprintf(path, sizeof path, "%s%s%.60s", prefix, *prefix ? "." : "", text);
        const bool cut = strlen(text) > 60;
        free(text);
        const size_t option = cut ? CONFIG_OPTION_COUNT : config_find(path);
        int r;
        if (option < CONFIG_OPTION_COUNT)
            r = set_option(w, option, place, origin, value);
        else if (cut || !config_is_group(path))
            r = unknown_key(w, place, path);
        else if (is_empty(value))
            r = 0; /* all of the group is commented out */
        else if (!fy_node_is_mapping(value))
            r = config_refuse(w->error, place, "%s is a group: its settings go below it", path);
        else
            r = walk_mapping(w, value, path);
        if (r != 0)
            return r;
    }
}

/* What libfyaml found wrong, first of all. */
static int refuse_syntax(const struct walk *w, struct fy_diag *diag)
{
    void *at = NULL;
    char place[PLACE_BYTES];
    const struct fy_diag_error *const e = fy_diag_errors_iterate(diag, &at);
    if (!e)
        return config_refuse(w->error, w->file, "not well-formed YAML");
    (void)snprintf(place, sizeof place, "%.400s:%d:%d", w->file, e->line, e->column);
    return config_refuse(w->error, place, "%s", e->msg);
}

static int walk_documents(const struct walk *w, struct fy_parser *parser, struct fy_diag *diag)
{
    struct fy_document *const document = fy_parse_load_document(parser);
    int r = 0;
    if (!document)
        return fy_parser_get_stream_error(parser) || fy_diag_got_error(diag)
                   ? refuse_syntax(w, diag)
                   : 0;
    struct fy_node *const root = fy_document_root(document);
    if (!is_empty(root))
        r = fy_node_is_mapping(root)
                ? walk_mapping(w, root, "")
                : config_refuse(w->error, w->file, "the file must be keys and values");
    fy_parse_document_destroy(parser, document);
    if (r != 0)
        return r;
    struct fy_document *const second = fy_parse_load_document(parser);
    if (second) {
        fy_parse_document_destroy(parser, second);
        return config_refuse(w->error, w->file, "a second document follows the first");
    }
    return fy_parser_get_stream_error(parser) || fy_diag_got_error(diag) ? refuse_syntax(w, diag)
                                                                         : 0;
}

/*
 * libfyaml takes a byte that is not UTF-8 for the end of the file, without an error: half a file
 * would be in effect. So it never sees one.
 */
static int check_text(const struct walk *w, const char *text, size_t bytes)
{
    char place[PLACE_BYTES];
    int line = 1;
    int column = 1;
    for (size_t i = 0; i < bytes;) {
        const size_t n = log_utf8_length(text + i, bytes - i);
        const bool control = n == 1 && (unsigned char)text[i] < 0x20 && !strchr("\t\n\r", text[i]);
        if (n == 0 || control || text[i] == 0) {
            (void)snprintf(place, sizeof place, "%.400s:%d:%d", w->file, line, column);
            return config_refuse(w->error, place, "a byte that is not UTF-8 text");
        }
        column = text[i] == '\n' ? 1 : column + 1;
        line += text[i] == '\n';
        i += n;
    }
    return 0;
}

int config_yaml_read(struct config *config, const char *file, const char *text, size_t bytes,
                     struct config_error *ret_error)
{
    const struct walk w = {.config = config, .file = file, .error = ret_error};
    struct fy_diag_cfg diag_cfg;
    if (check_text(&w, text, bytes) != 0)
        return -1;
    fy_diag_cfg_default(&diag_cfg);
    diag_cfg.fp = NULL;
    diag_cfg.colorize = false;
    struct fy_diag *const diag = fy_diag_create(&diag_cfg);
    if (!diag)
        return config_refuse(ret_error, file, "out of memory");
    fy_diag_set_collect_errors(diag, true);
    const struct fy_parse_cfg cfg = {.flags = FYPCF_QUIET, .diag = diag};
    struct fy_parser *const parser = fy_parser_create(&cfg);
    int r;
    if (!parser || fy_parser_set_string(parser, text, bytes) != 0)
        r = config_refuse(ret_error, file, "out of memory");
    else
        r = walk_documents(&w, parser, diag);
    if (parser)
        fy_parser_destroy(parser);
    fy_diag_destroy(diag);
    return r;
}
