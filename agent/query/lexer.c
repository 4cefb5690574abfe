/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lexer: three states (statements, inside braces, inside brackets), one small function a kind of
 * token. Brackets share the statements' function: since durations are expressions the two differ
 * in the colon only.
 *
 * Threads: none inside. Memory: none.
 */
#include "lexer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const token_texts[QUERY_TOKEN_KINDS] = {
#define TOKEN_TEXT(name, class, text) [QUERY_TOKEN_##name] = (text),
    QUERY_TOKEN_MAP(TOKEN_TEXT)
#undef TOKEN_TEXT
};
static const enum query_token_class token_classes[QUERY_TOKEN_KINDS] = {
#define TOKEN_CLASS(name, class, text) [QUERY_TOKEN_##name] = QUERY_CLASS_##class,
    QUERY_TOKEN_MAP(TOKEN_CLASS)
#undef TOKEN_CLASS
};

enum query_token_class query_token_class(enum query_token_kind kind)
{
    return token_classes[kind];
}

const char *query_token_text(enum query_token_kind kind)
{
    return token_texts[kind];
}

void query_lexer_init(struct query_lexer *lexer, struct weir_bytes text)
{
    *lexer = (struct query_lexer){.text = text};
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}
static bool is_alpha(int c)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static bool is_alnum(int c)
{
    return is_alpha(c) || is_digit(c);
}
static bool is_space(int c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* -1 at the end. */
static int peek_at(const struct query_lexer *lexer, size_t ahead)
{
    const size_t left = lexer->text.len - lexer->at;
    return ahead < left ? (unsigned char)lexer->text.ptr[lexer->at + ahead] : -1;
}
static int peek(const struct query_lexer *lexer)
{
    return peek_at(lexer, 0);
}

static struct query_token fail_token(struct query_lexer *lexer, size_t start, const char *format,
                                     ...) __attribute__((format(printf, 3, 4)));
static struct query_token fail_token(struct query_lexer *lexer, size_t start, const char *format,
                                     ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(lexer->error, sizeof lexer->error, format, args);
    va_end(args);
    return (struct query_token){.kind = QUERY_TOKEN_ERROR, .at = start};
}

static struct query_token token(const struct query_lexer *lexer, enum query_token_kind kind,
                                size_t start)
{
    return (struct query_token){.kind = kind, .at = start, .len = lexer->at - start};
}

static struct query_token take(struct query_lexer *lexer, enum query_token_kind kind, size_t len)
{
    const size_t start = lexer->at;
    lexer->at += len;
    return token(lexer, kind, start);
}

/* A rune as Go's %q shows it: 'x'. */
static const char *quote_rune(const struct query_lexer *lexer, size_t at, struct query_quoted *out)
{
    const size_t left = lexer->text.len - at;
    if (left == 0)
        return "end of input";
    size_t len;
    const int32_t rune = query_utf8_next(lexer->text.ptr + at, left, &len);
    if (rune < 0)
        return "'\xEF\xBF\xBD'";
    if (rune == '\'' || rune == '"') {
        (void)snprintf(out->text, sizeof out->text, rune == '"' ? "'\"'" : "'\\''");
        return out->text;
    }
    (void)query_quote(out, lexer->text.ptr + at, len);
    const size_t end = strlen(out->text);
    out->text[0] = '\'';
    out->text[end - 1] = '\'';
    return out->text;
}
#define RUNE(lexer, at) quote_rune((lexer), (at), &(struct query_quoted){{0}})

static void skip_blanks(struct query_lexer *lexer)
{
    for (;;) {
        while (is_space(peek(lexer)))
            lexer->at++;
        if (peek(lexer) != '#')
            return;
        while (peek(lexer) >= 0 && peek(lexer) != '\n')
            lexer->at++;
    }
}

static void skip_digits(struct query_lexer *lexer, bool hex)
{
    for (;;) {
        const int c = peek(lexer);
        const bool letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        if (!is_digit(c) && c != '_' && !(hex && letter))
            return;
        lexer->at++;
    }
}

/* True when what follows the number is no letter or digit. */
static bool scan_number(struct query_lexer *lexer)
{
    const bool hex = peek(lexer) == '0' && (peek_at(lexer, 1) | 0x20) == 'x';
    if (hex)
        lexer->at += 2;
    skip_digits(lexer, hex);
    if (peek(lexer) == '.')
        lexer->at++;
    skip_digits(lexer, hex);
    if (!hex && (peek(lexer) == 'e' || peek(lexer) == 'E')) {
        lexer->at++;
        if (peek(lexer) == '+' || peek(lexer) == '-')
            lexer->at++;
        skip_digits(lexer, false);
    }
    return !is_alnum(peek(lexer));
}

static bool accept_unit(struct query_lexer *lexer, const char *units)
{
    const int c = peek(lexer);
    if (c <= 0 || !strchr(units, c))
        return false;
    lexer->at++;
    if (peek(lexer) == 's') /* ms; what is no unit is refused when the value is read */
        lexer->at++;
    return true;
}

static bool scan_duration_rest(struct query_lexer *lexer)
{
    if (!accept_unit(lexer, "smhdwy"))
        return false;
    while (is_digit(peek(lexer))) {
        while (is_digit(peek(lexer)))
            lexer->at++;
        if (!accept_unit(lexer, "smhdw"))
            return false;
    }
    if (!is_alnum(peek(lexer)))
        return true;
    lexer->at++; /* the error text shows what spoilt it */
    return false;
}

static struct query_token lex_number(struct query_lexer *lexer)
{
    const size_t start = lexer->at;
    if (scan_number(lexer))
        return token(lexer, QUERY_TOKEN_NUMBER, start);
    if (scan_duration_rest(lexer))
        return token(lexer, QUERY_TOKEN_DURATION, start);
    return fail_token(lexer, start, "bad number or duration syntax: %s",
                      QUERY_QUOTE(lexer->text.ptr + start, lexer->at - start));
}

static int digit_value(int c)
{
    if (is_digit(c))
        return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
        return (c | 0x20) - 'a' + 10;
    return 16;
}

/* format has one %s: the character at hand as U+0071 'q'. Always false. */
static bool fail_escape(struct query_lexer *lexer, size_t start, const char *format)
{
    if (peek(lexer) < 0) {
        (void)fail_token(lexer, start, "escape sequence not terminated");
        return false;
    }
    size_t len;
    const char *const here = lexer->text.ptr + lexer->at;
    const int32_t rune = query_utf8_next(here, lexer->text.len - lexer->at, &len);
    char shown[64];
    (void)snprintf(shown, sizeof shown, "U+%04X %s", rune < 0 ? 0xFFFDU : (unsigned)rune,
                   RUNE(lexer, lexer->at));
    const char *const hole = strstr(format, "%s");
    (void)fail_token(lexer, start, "%.*s%s%s", (int)(hole - format), format, shown, hole + 2);
    return false;
}

/* After the backslash. False with the lexer's error set. */
static bool skip_escape(struct query_lexer *lexer, size_t start, int quote)
{
    const int c = peek(lexer);
    if (c > 0 && (strchr("abfnrtv\\", c) || c == quote)) {
        lexer->at++;
        return true;
    }
    int digits = 0;
    int base = 16;
    uint32_t max = 0x10FFFF;
    if (c >= '0' && c <= '7') {
        digits = 3;
        base = 8;
        max = 255;
    } else if (c == 'x' || c == 'u' || c == 'U') {
        digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        max = c == 'x' ? 255 : max;
        lexer->at++;
    } else {
        return fail_escape(lexer, start, "unknown escape sequence %s");
    }
    uint32_t value = 0;
    for (int i = 0; i < digits; i++, lexer->at++) {
        const int d = digit_value(peek(lexer));
        if (d >= base) {
            return fail_escape(lexer, start, "illegal character %s in escape sequence");
        }
        value = value * (uint32_t)base + (uint32_t)d;
    }
    if (value > max || (value >= 0xD800 && value < 0xE000)) {
        (void)fail_token(lexer, start, "escape sequence is an invalid Unicode code point");
        return false;
    }
    return true;
}

static bool is_utf8_here(const struct query_lexer *lexer, size_t *ret_len)
{
    return query_utf8_next(lexer->text.ptr + lexer->at, lexer->text.len - lexer->at, ret_len) >= 0;
}

static struct query_token lex_string(struct query_lexer *lexer, int quote)
{
    const size_t start = lexer->at++;
    for (;;) {
        const int c = peek(lexer);
        if (c < 0 || c == '\n')
            return fail_token(lexer, start, "unterminated quoted string");
        if (c == '\\') {
            lexer->at++;
            if (!skip_escape(lexer, start, quote))
                return (struct query_token){.kind = QUERY_TOKEN_ERROR, .at = start};
            continue;
        }
        size_t len;
        if (!is_utf8_here(lexer, &len))
            return fail_token(lexer, start, "invalid UTF-8 rune");
        lexer->at += len;
        if (c == quote)
            return token(lexer, QUERY_TOKEN_STRING, start);
    }
}

static struct query_token lex_raw_string(struct query_lexer *lexer)
{
    const size_t start = lexer->at++;
    for (;;) {
        const int c = peek(lexer);
        if (c < 0)
            return fail_token(lexer, start, "unterminated raw string");
        size_t len;
        if (!is_utf8_here(lexer, &len))
            return fail_token(lexer, start, "invalid UTF-8 rune");
        lexer->at += len;
        if (c == '`')
            return token(lexer, QUERY_TOKEN_STRING, start);
    }
}

static enum query_token_kind word_kind(const char *word, size_t len)
{
    for (int i = QUERY_TOKEN_LAND; i < QUERY_TOKEN_KINDS; i++) {
        const char *const text = token_texts[i];
        if (strlen(text) == len && strncasecmp(text, word, len) == 0)
            return (enum query_token_kind)i;
    }
    if (len == 3 && (strncasecmp(word, "inf", 3) == 0 || strncasecmp(word, "nan", 3) == 0))
        return QUERY_TOKEN_NUMBER;
    return memchr(word, ':', len) ? QUERY_TOKEN_METRIC_IDENTIFIER : QUERY_TOKEN_IDENTIFIER;
}

struct rune_range {
    int32_t first;
    int32_t last;
};
/* Blocks of Unicode without letters, by and large: punctuation (typographic quotes are a common
 * slip, and are to be refused where they stand), marks, symbols, private use, emoji. */
static const struct rune_range no_letters[] = {
    {0x80, 0xA9},        {0xAB, 0xB4},     {0xB6, 0xB9},     {0xBB, 0xBF},     {0xD7, 0xD7},
    {0xF7, 0xF7},        {0x2C2, 0x2DF},   {0x2E5, 0x36F},   {0x2000, 0x2BFF}, {0x2E00, 0x2E7F},
    {0x3000, 0x3004},    {0x3008, 0x3020}, {0xD800, 0xF8FF}, {0xFE00, 0xFE6F}, {0xFF00, 0xFF0F},
    {0xFF1A, 0xFF20},    {0xFF3B, 0xFF40}, {0xFF5B, 0xFF65}, {0xFFE0, 0xFFFF}, {0x1F000, 0x1FAFF},
    {0xE0000, 0x10FFFF},
};

/* A letter outside ASCII at hand: its length, else 0. */
static size_t wide_letter(const struct query_lexer *lexer)
{
    const size_t left = lexer->text.len - lexer->at;
    if (left == 0 || peek(lexer) < 0x80)
        return 0;
    size_t len;
    const int32_t rune = query_utf8_next(lexer->text.ptr + lexer->at, left, &len);
    if (rune < 0)
        return 0;
    for (size_t i = 0; i < sizeof no_letters / sizeof *no_letters; i++) {
        if (no_letters[i].first <= rune && rune <= no_letters[i].last)
            return 0;
    }
    return len;
}

static bool begins_word(const struct query_lexer *lexer)
{
    return is_alpha(peek(lexer)) || wide_letter(lexer) > 0;
}

/* Letters, digits, underscores and dots: Prometheus 3.16 takes such names without quotes. */
static void skip_word(struct query_lexer *lexer, bool colons)
{
    for (;;) {
        const int c = peek(lexer);
        const size_t wide = wide_letter(lexer);
        if (wide == 0 && !is_alnum(c) && c != '.' && !(colons && c == ':'))
            return;
        lexer->at += wide ? wide : 1;
    }
}

static struct query_token lex_word(struct query_lexer *lexer)
{
    const size_t start = lexer->at;
    /* A colon belongs to a word unless it parts a subquery's range from its step. */
    skip_word(lexer, !lexer->in_brackets);
    return token(lexer, word_kind(lexer->text.ptr + start, lexer->at - start), start);
}

struct sign {
    char text[3];
    enum query_token_kind kind;
};

/* Longer ones first. */
static const struct sign signs[] = {
    {"==", QUERY_TOKEN_EQLC},        {"!=", QUERY_TOKEN_NEQ},
    {"<=", QUERY_TOKEN_LTE},         {">=", QUERY_TOKEN_GTE},
    {"</", QUERY_TOKEN_TRIM_UPPER},  {">/", QUERY_TOKEN_TRIM_LOWER},
    {"<", QUERY_TOKEN_LSS},          {">", QUERY_TOKEN_GTR},
    {"+", QUERY_TOKEN_ADD},          {"-", QUERY_TOKEN_SUB},
    {"*", QUERY_TOKEN_MUL},          {"/", QUERY_TOKEN_DIV},
    {"%", QUERY_TOKEN_MOD},          {"^", QUERY_TOKEN_POW},
    {",", QUERY_TOKEN_COMMA},        {"@", QUERY_TOKEN_AT},
    {"=", QUERY_TOKEN_EQL},          {"(", QUERY_TOKEN_LEFT_PAREN},
    {")", QUERY_TOKEN_RIGHT_PAREN},  {"{", QUERY_TOKEN_LEFT_BRACE},
    {"[", QUERY_TOKEN_LEFT_BRACKET}, {"]", QUERY_TOKEN_RIGHT_BRACKET}};

static const struct sign *find_sign(const struct query_lexer *lexer)
{
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        const char *const text = signs[i].text;
        if (peek(lexer) == text[0] && (!text[1] || peek_at(lexer, 1) == text[1]))
            return &signs[i];
    }
    return NULL;
}

/* The lexer keeps count of what is open, so that the end of the input can say what is not closed.
 */
static struct query_token lex_sign(struct query_lexer *lexer, const struct sign *sign)
{
    const size_t start = lexer->at;
    if (sign->kind == QUERY_TOKEN_EQL && peek_at(lexer, 1) == '~')
        return fail_token(lexer, start, "unexpected character after '=': '~'");
    if (sign->kind == QUERY_TOKEN_LEFT_PAREN)
        lexer->paren_depth++;
    if (sign->kind == QUERY_TOKEN_RIGHT_PAREN && lexer->paren_depth-- == 0) {
        lexer->paren_depth = 0;
        /* One past it, where Prometheus points too. */
        return fail_token(lexer, start + 1, "unexpected right parenthesis ')'");
    }
    if (sign->kind == QUERY_TOKEN_LEFT_BRACE)
        lexer->in_braces = true;
    if (sign->kind == QUERY_TOKEN_LEFT_BRACKET) {
        if (lexer->in_brackets)
            return fail_token(lexer, start, "unexpected left bracket '['");
        lexer->in_brackets = true;
        lexer->got_colon = false;
    }
    if (sign->kind == QUERY_TOKEN_RIGHT_BRACKET) {
        if (!lexer->in_brackets)
            return fail_token(lexer, start, "unexpected right bracket ']'");
        lexer->in_brackets = false;
    }
    return take(lexer, sign->kind, strlen(sign->text));
}

static struct query_token lex_end(struct query_lexer *lexer)
{
    if (lexer->paren_depth)
        return fail_token(lexer, lexer->at, "unclosed left parenthesis");
    if (lexer->in_brackets)
        return fail_token(lexer, lexer->at, "unclosed left bracket");
    return take(lexer, QUERY_TOKEN_EOF, 0);
}

static struct query_token lex_colon(struct query_lexer *lexer)
{
    if (lexer->got_colon)
        return fail_token(lexer, lexer->at, "unexpected colon ':'");
    lexer->got_colon = true;
    return take(lexer, QUERY_TOKEN_COLON, 1);
}

static struct query_token lex_statement(struct query_lexer *lexer)
{
    const int c = peek(lexer);
    if (c < 0)
        return lex_end(lexer);
    if (is_digit(c) || (c == '.' && is_digit(peek_at(lexer, 1))))
        return lex_number(lexer);
    if (c == '"' || c == '\'')
        return lex_string(lexer, c);
    if (c == '`')
        return lex_raw_string(lexer);
    if (c == ':' && lexer->in_brackets)
        return lex_colon(lexer);
    if (begins_word(lexer) || c == ':')
        return lex_word(lexer);
    if (c == '!' && peek_at(lexer, 1) != '=')
        return fail_token(lexer, lexer->at, "unexpected character after '!': %s",
                          RUNE(lexer, lexer->at + 1));
    const struct sign *const sign = find_sign(lexer);
    if (sign && sign->text[0] != '}')
        return lex_sign(lexer, sign);
    return fail_token(lexer, lexer->at, "unexpected character: %s", RUNE(lexer, lexer->at));
}

static struct query_token lex_matcher_sign(struct query_lexer *lexer)
{
    const int first = peek(lexer);
    const int second = peek_at(lexer, 1);
    if (second == '~')
        return take(lexer, first == '=' ? QUERY_TOKEN_EQL_REGEX : QUERY_TOKEN_NEQ_REGEX, 2);
    if (first == '=')
        return take(lexer, QUERY_TOKEN_EQL, 1);
    if (second == '=')
        return take(lexer, QUERY_TOKEN_NEQ, 2);
    return fail_token(lexer, lexer->at, "unexpected character after '!' inside braces: %s",
                      RUNE(lexer, lexer->at + 1));
}

static struct query_token lex_inside_braces(struct query_lexer *lexer)
{
    const int c = peek(lexer);
    if (c < 0)
        return fail_token(lexer, lexer->at, "unexpected end of input inside braces");
    if (begins_word(lexer)) {
        const size_t start = lexer->at;
        skip_word(lexer, false);
        return token(lexer, QUERY_TOKEN_IDENTIFIER, start);
    }
    if (c == '"' || c == '\'')
        return lex_string(lexer, c);
    if (c == '`')
        return lex_raw_string(lexer);
    if (c == '=' || c == '!')
        return lex_matcher_sign(lexer);
    if (c == ',')
        return take(lexer, QUERY_TOKEN_COMMA, 1);
    if (c == '}') {
        lexer->in_braces = false;
        return take(lexer, QUERY_TOKEN_RIGHT_BRACE, 1);
    }
    if (c == '{')
        return fail_token(lexer, lexer->at, "unexpected left brace '{'");
    return fail_token(lexer, lexer->at, "unexpected character inside braces: %s",
                      RUNE(lexer, lexer->at));
}

struct query_token query_lexer_next(struct query_lexer *lexer)
{
    if (lexer->failed)
        return (struct query_token){.kind = QUERY_TOKEN_ERROR, .at = lexer->failed_at};
    skip_blanks(lexer);
    const struct query_token t = lexer->in_braces ? lex_inside_braces(lexer) : lex_statement(lexer);
    lexer->failed = t.kind == QUERY_TOKEN_ERROR;
    lexer->failed_at = t.at;
    return t;
}

/* At most ten characters of a long string or number are shown. */
static void put_text_token(struct query_buf *buf, struct weir_bytes text, struct query_token t)
{
    const bool whole =
        t.kind == QUERY_TOKEN_IDENTIFIER || t.kind == QUERY_TOKEN_METRIC_IDENTIFIER || t.len <= 10;
    size_t len = t.len;
    if (!whole) {
        len = 0;
        for (int i = 0; i < 10 && len < t.len; i++) {
            size_t step;
            (void)query_utf8_next(text.ptr + t.at + len, t.len - len, &step);
            len += step;
        }
    }
    query_buf_put_format(buf, "%s ", token_texts[t.kind]);
    query_buf_put_quoted(buf, text.ptr + t.at, len < 180 ? len : 180);
    if (len < t.len)
        query_buf_put_text(buf, "...");
}

static void put_described(struct query_buf *buf, struct weir_bytes text, struct query_token t)
{
    const int len = (int)t.len;
    const char *const word = text.ptr + t.at;
    switch (token_classes[t.kind]) {
    case QUERY_CLASS_END:
    case QUERY_CLASS_ERROR:
        query_buf_put_text(buf, token_texts[t.kind]);
        break;
    case QUERY_CLASS_TEXT:
        put_text_token(buf, text, t);
        break;
    case QUERY_CLASS_SYMBOL:
    case QUERY_CLASS_PREPROCESSOR:
        query_buf_put_quoted(buf, word, t.len);
        break;
    case QUERY_CLASS_OPERATOR:
        query_buf_put_format(buf, "<op:%.*s>", len, word);
        break;
    case QUERY_CLASS_AGGREGATOR:
        query_buf_put_format(buf, "<aggr:%.*s>", len, word);
        break;
    case QUERY_CLASS_KEYWORD:
        query_buf_put_format(buf, "<%.*s>", len, word);
        break;
    }
}

const char *query_token_describe(struct weir_bytes text, struct query_token t,
                                 struct query_quoted *quoted)
{
    struct query_buf buf;
    query_buf_init(&buf, 4096);
    put_described(&buf, text, t);
    const size_t room = sizeof quoted->text - 1;
    const size_t kept = buf.len < room ? buf.len : room;
    if (kept)
        memcpy(quoted->text, buf.ptr, kept);
    quoted->text[kept] = '\0';
    query_buf_done(&buf);
    return quoted->text;
}
