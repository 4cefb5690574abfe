/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regular expressions of label matchers: known cases of RE2's syntax and meaning, refusals, a
 * comparison with a naive backtracking matcher over random small expressions, and expressions
 * that are exponential for backtrackers.
 */
#include "t.h"

#include "query/regex.h"

#include <stdlib.h>
#include <string.h>

struct fixture {
    struct query_arena arena;
    struct query_error error;
    struct query_regex *regex;
};

static bool compile(struct fixture *f, const char *pattern)
{
    *f = (struct fixture){.regex = NULL};
    query_arena_init(&f->arena, (size_t)16 * 1024 * 1024);
    const struct weir_bytes bytes = {.ptr = pattern, .len = strlen(pattern)};
    return query_regex_compile(&f->arena, bytes, 0, &f->regex, &f->error);
}

static int match(const struct fixture *f, const char *text)
{
    uint64_t budget = UINT64_C(1) << 40;
    return query_regex_match(f->regex, (struct weir_bytes){.ptr = text, .len = strlen(text)},
                             &budget);
}

struct row {
    const char *pattern;
    const char *text;
    int want;
};

TEST(the_whole_text_must_match)
{
    static const struct row rows[] = {
        {"", "", 1},
        {"", "a", 0},
        {"a", "a", 1},
        {"a", "ab", 0},
        {"a", "ba", 0},
        {"a|b|cd", "cd", 1},
        {"a|b|cd", "c", 0},
        {"a|", "", 1},
        {"GET|POST", "GET", 1},
        {".*", "", 1},
        {".*", "a\nb", 1},
        {".+", "", 0},
        {".+", "x", 1},
        {"ab.*", "ab", 1},
        {"ab.*", "abc", 1},
        {"ab.*", "xab", 0},
        {".*ab", "xab", 1},
        {".*ab", "abx", 0},
        {".*ab.*", "xabx", 1},
        {".*ab.*", "a-b", 0},
        {"a.c", "a\nc", 1},
        {"(?-s)a.c", "a\nc", 0},
        {"a.c",
         "a\xC3\xA9"
         "c",
         1},
        {"a..c",
         "a\xC3\xA9"
         "c",
         0},
        {"a.c",
         "a\xff"
         "c",
         1},
        {"\xC3\xA9+", "\xC3\xA9\xC3\xA9", 1},
        {"[a-c]+", "abcab", 1},
        {"[^a-c]+", "xyz", 1},
        {"[^a-c]+", "xaz", 0},
        {"[]a]+", "]a", 1},
        {"[a-]+", "a-a", 1},
        {"[\\d.]+", "1.2", 1},
        {"[[:alpha:]_]+", "ab_C", 1},
        {"[[:^alpha:]]+", "12", 1},
        {"[\xC3\xA0-\xC3\xBF]", "\xC3\xA9", 1},
        {"\\d+\\D\\w\\W\\s\\S", "12xy- z", 1},
        {"\\x41\\x{e9}\\101\\.\\t",
         "A\xC3\xA9"
         "A.\t",
         1},
        {"\\Qa.b*\\E+", "a.b*+", 0},
        {"\\Qa.b*\\E", "a.b*", 1},
        {"a{3}", "aaa", 1},
        {"a{3}", "aa", 0},
        {"a{2,}", "aaaa", 1},
        {"a{2,}", "a", 0},
        {"a{1,2}", "aaa", 0},
        {"a{,2}", "a{,2}", 1},
        {"a{", "a{", 1},
        {"(ab)*", "abab", 1},
        {"(ab)*", "aba", 0},
        {"(?:a|b)+c?", "abbac", 1},
        {"(?P<n>a)(?<m>b)", "ab", 1},
        {"a*?b+?", "aab", 1},
        {"(?i)get", "GeT", 1},
        {"(?i)k", "\xE2\x84\xAA", 1},
        {"(?i:a)b", "AB", 0},
        {"(?i:a)b", "Ab", 1},
        {"(?i)[a-c]+", "aBC", 1},
        {"(?i)[^a]", "A", 0},
        {"(a(?i)b)c", "aBc", 1},
        {"(a(?i)b)c", "aBC", 0},
        {"^a$", "a", 1},
        {"a^b", "ab", 0},
        {"(?m)a$\n^b", "a\nb", 1},
        {"\\Aa\\z", "a", 1},
        {"a\\b-\\bb", "a-b", 1},
        {"a\\Bb", "ab", 1},
        {"a\\bb", "ab", 0},
        {"5..", "503", 1},
        {"SPAN_KIND_(SERVER|CLIENT)", "SPAN_KIND_CLIENT", 1},
        {"SPAN_KIND_(SERVER|CLIENT)", "SPAN_KIND_", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture f;
        if (!compile(&f, rows[i].pattern))
            T_FAIL("%s was refused: %s", rows[i].pattern, f.error.text);
        if (match(&f, rows[i].text) != rows[i].want)
            T_FAIL("%s on \"%s\": want %d", rows[i].pattern, rows[i].text, rows[i].want);
        query_arena_done(&f.arena);
    }
}

TEST(what_re2_refuses_is_refused_in_its_words)
{
    static const struct {
        const char *pattern;
        const char *want;
    } rows[] = {
        {"[", "missing closing ]: `[`"},
        {"[a", "missing closing ]: `[a`"},
        {"(a", "missing closing ): `(a`"},
        {"a)", "unexpected ): `a)`"},
        {"*a", "missing argument to repetition operator: `*`"},
        {"a**", "invalid nested repetition operator: `**`"},
        {"a{2}{3}", "invalid nested repetition operator: `{2}{3}`"},
        {"a{1001}", "invalid repeat count: `{1001}`"},
        {"a{3,2}", "invalid repeat count: `{3,2}`"},
        {"[z-a]", "invalid character class range: `z-a`"},
        {"[[:nope:]]", "invalid character class range: `[:nope:]`"},
        {"\\q", "invalid escape sequence: `\\\\q`"},
        {"(a)\\1", "invalid escape sequence: `\\\\1`"},
        {"a\\", "trailing backslash at end of expression: ``"},
        {"(?=a)", "invalid or unsupported Perl syntax: `(?=`"},
        {"(?<!a)", "invalid or unsupported Perl syntax: `(?<`"},
        {"(?P<1a", "invalid named capture: `(?P<1a`"},
        {"\\pL", "not supported here: `\\\\p`"},
        {"(?i)\xC3\xA9", "ignoring case outside ASCII is not supported: `(?i)\xC3\xA9`"},
        {"\xff.", "invalid UTF-8: `\\xff.`"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture f;
        char want[200];
        (void)snprintf(want, sizeof want, "error parsing regexp: %s", rows[i].want);
        if (compile(&f, rows[i].pattern))
            T_FAIL("%s was taken", rows[i].pattern);
        T_EQ_STR(f.error.text, want);
        query_arena_done(&f.arena);
    }
}

TEST(programs_and_nesting_are_bounded)
{
    static const char *const too_large[] = {"((a{100}){100}){100}", "(((){1000}){1000}){1000}",
                                            "((a?){1000}){1000}",
                                            "[ab]{1000}[ab]{1000}[ab]{1000}[ab]{1000}[ab]{1000}"};
    for (size_t i = 0; i < sizeof too_large / sizeof *too_large; i++) {
        struct fixture f;
        T_TRUE(!compile(&f, too_large[i]));
        T_TRUE(strstr(f.error.text, "expression too large") != NULL);
        query_arena_done(&f.arena);
    }
    char deep[2001];
    memset(deep, '(', 2000);
    deep[2000] = '\0';
    struct fixture f;
    T_TRUE(!compile(&f, deep));
    T_TRUE(strstr(f.error.text, "nests too deeply") != NULL);
    query_arena_done(&f.arena);
}

TEST(exponential_expressions_take_linear_time)
{
    static const char *const patterns[] = {"(a*)*b", "(a|a)*b", "(a+)+b", "((a?){20}a{20})*b",
                                           "(.*)(.*)(.*)(.*)b"};
    char text[4001];
    memset(text, 'a', 4000);
    text[4000] = '\0';
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        struct fixture f;
        T_TRUE(compile(&f, patterns[i]));
        uint64_t budget = 4000 * 400;
        const struct weir_bytes bytes = {.ptr = text, .len = 4000};
        T_EQ_I64(query_regex_match(f.regex, bytes, &budget), 0);
        text[3999] = 'b';
        budget = 4000 * 400;
        T_EQ_I64(query_regex_match(f.regex, bytes, &budget), 1);
        text[3999] = 'a';
        budget = 1000;
        T_EQ_I64(query_regex_match(f.regex, bytes, &budget), -1);
        query_arena_done(&f.arena);
    }
}

/*
 * The naive side: a random tree over {a, b} is printed as a pattern and matched by trying every
 * split of the text, straight from the definition.
 */
enum tree_kind {
    TREE_CHAR,
    TREE_ANY,
    TREE_CONCAT,
    TREE_EITHER,
    TREE_STAR,
    TREE_OPTIONAL,
    TREE_TWICE
};
struct tree {
    enum tree_kind kind;
    char c;
    const struct tree *left;
    const struct tree *right;
};

static const struct tree *grow(struct t_rng *r, struct tree *pool, size_t *used, int depth)
{
    struct tree *const t = &pool[(*used)++];
    t->kind = depth == 0 ? (enum tree_kind)t_below(r, 2) : (enum tree_kind)t_below(r, 7);
    t->c = t_below(r, 2) ? 'a' : 'b';
    t->left = NULL;
    t->right = NULL;
    if (t->kind >= TREE_CONCAT)
        t->left = grow(r, pool, used, depth - 1);
    if (t->kind == TREE_CONCAT || t->kind == TREE_EITHER)
        t->right = grow(r, pool, used, depth - 1);
    return t;
}

static void print(const struct tree *t, char *out)
{
    static const char *const suffix[] = {"", "", "", "", "*", "?", "{2}"};
    if (t->kind == TREE_CHAR || t->kind == TREE_ANY) {
        const char text[2] = {t->kind == TREE_ANY ? '.' : t->c, '\0'};
        strcat(out, text);
        return;
    }
    strcat(out, "(");
    print(t->left, out);
    if (t->right) {
        strcat(out, t->kind == TREE_EITHER ? "|" : "");
        print(t->right, out);
    }
    strcat(out, ")");
    strcat(out, suffix[t->kind]);
}

static bool naive(const struct tree *t, const char *s, size_t len)
{
    switch (t->kind) {
    case TREE_CHAR:
        return len == 1 && s[0] == t->c;
    case TREE_ANY:
        return len == 1;
    case TREE_CONCAT:
    case TREE_TWICE:
        for (size_t i = 0; i <= len; i++) {
            const struct tree *const right = t->right ? t->right : t->left;
            if (naive(t->left, s, i) && naive(right, s + i, len - i))
                return true;
        }
        return false;
    case TREE_EITHER:
        return naive(t->left, s, len) || naive(t->right, s, len);
    case TREE_OPTIONAL:
        return len == 0 || naive(t->left, s, len);
    case TREE_STAR:
        if (len == 0)
            return true;
        for (size_t i = 1; i <= len; i++) {
            if (naive(t->left, s, i) && naive(t, s + i, len - i))
                return true;
        }
        return false;
    }
    return false;
}

TEST(random_expressions_match_as_their_definition_says)
{
    struct t_rng r = t_rng(t_seed());
    size_t yes = 0;
    for (int round = 0; round < 3000; round++) {
        struct tree pool[64];
        size_t used = 0;
        const struct tree *const t = grow(&r, pool, &used, 4);
        char pattern[1024] = "";
        print(t, pattern);
        struct fixture f;
        if (!compile(&f, pattern))
            T_FAIL("%s was refused: %s", pattern, f.error.text);
        for (int i = 0; i < 8; i++) {
            char text[8];
            const size_t len = (size_t)t_below(&r, 7);
            for (size_t k = 0; k < len; k++)
                text[k] = t_below(&r, 2) ? 'a' : 'b';
            text[len] = '\0';
            const int want = naive(t, text, len) ? 1 : 0;
            yes += (size_t)want;
            if (match(&f, text) != want)
                T_FAIL("%s on \"%s\": want %d", pattern, text, want);
        }
        query_arena_done(&f.arena);
    }
    T_TRUE(yes > 1000);
}
