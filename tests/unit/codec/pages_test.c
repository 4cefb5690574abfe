/* SPDX-License-Identifier: Apache-2.0 */
/* pages: the annotated bytes in docs/formats are the golden ones. */
#include "support.h"

#include <ctype.h>
#include <stdio.h>

struct wanted {
    const char *id;
    char *hex;
};

static void find_row(void *ctx, char *cells[T_CELLS])
{
    struct wanted *const w = ctx;
    if (strcmp(cells[0], w->id) == 0)
        w->hex = strdup(cells[2]);
}

/* The bytes of a line: pairs of digits and single blanks between them, up to two blanks or a word.
 */
static size_t line_bytes(const char *line, const char *end, char *hex)
{
    size_t n = 0;
    while (line < end && *line == ' ')
        line++;
    while (line < end) {
        const char *word = line;
        while (line < end && isxdigit((unsigned char)*line))
            line++;
        if ((line < end && *line != ' ') || (line - word) % 2 != 0 || line == word)
            break; /* prose */
        memcpy(hex + n, word, (size_t)(line - word));
        n += (size_t)(line - word);
        const char *const blanks = line;
        while (line < end && *line == ' ')
            line++;
        if (line - blanks >= 3 || (line - blanks == 2 && line - word > 4))
            break;
    }
    return n;
}

/* The block of bytes behind `text`; its digits in hex. */
static void block_bytes(const char *text, char *hex)
{
    size_t n = 0;
    const char *at = strstr(text, "\n```\n");
    T_TRUE(at != NULL);
    for (at += 5; strncmp(at, "```", 3) != 0;) {
        const char *const end = strchr(at, '\n');
        T_TRUE(end != NULL);
        n += line_bytes(at, end, hex + n);
        at = end + 1;
    }
    hex[n] = '\0';
}

/* Every (`id` ...) behind "## Annotated" names a row, and the block behind it has its bytes. */
static void expect_page(const char *page, const char *golden, unsigned examples)
{
    char path[512];
    size_t bytes;
    (void)snprintf(path, sizeof path, T_SOURCE_DIR "/docs/formats/%s", page);
    char *const text = (char *)t_read_file(path, &bytes);
    T_TRUE(text != NULL && bytes > 0);
    text[bytes - 1] = '\0';
    (void)snprintf(path, sizeof path, CODEC_GOLDEN "%s", golden);
    unsigned found = 0;
    const char *at = strstr(text, "## Annotated");
    while (at && (at = strstr(at, "(`")) != NULL) {
        char id[100];
        char hex[4096];
        T_TRUE(sscanf(at + 2, "%99[^`]", id) == 1);
        struct wanted w = {.id = id};
        (void)t_rows(path, find_row, &w);
        T_TRUE(w.hex != NULL);
        block_bytes(at, hex);
        T_EQ_STR(hex, w.hex);
        free(w.hex);
        found++;
        at++;
    }
    T_EQ_U64(found, examples);
    free(text);
}

TEST(annotated_bytes_of_the_pages_are_the_golden_ones)
{
    expect_page("ddsketch-proto.md", "ddsketch.tsv", 3);
    expect_page("ddsketch-compact.md", "ddsketch.tsv", 4);
    expect_page("dogsketch.md", "dogsketch.tsv", 2);
}
