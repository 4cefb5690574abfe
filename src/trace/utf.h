/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_TRACE_UTF_H
#define WR_TRACE_UTF_H
/*
 * utf: UTF-8 checked and mended, UTF-16 transcoded.
 *
 * Most text is ASCII: eight units at a time are looked at and narrowed (SSE2, which every x86-64
 * has), 32 where the processor has AVX2 and the text is long enough to pay for the call. Elsewhere
 * a scalar loop does the same.
 *
 * Threads: any. Memory: none of its own.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/base.h>

/* Well-formed by the Unicode standard: no surrogates, nothing overlong, at most U+10FFFF. */
bool wr_utf8_ok(const char *text, size_t n);

/* Copy, each byte that begins nothing well-formed as U+FFFD. dst: 3 * n bytes. The end. */
char *wr_utf8_mend(char *dst, const char *text, size_t n);
size_t wr_utf8_mended_len(const char *text, size_t n);

/*
 * Transcode n units; each unpaired surrogate gives U+FFFD and counts in *mended.
 * src need not be aligned. dst: 3 * n bytes. The end.
 */
char *wr_utf16_to_utf8(char *dst, const void *src, size_t n, uint64_t *mended);
/* As above without SIMD: what the tests compare with. */
char *wr_utf16_to_utf8_scalar(char *dst, const void *src, size_t n, uint64_t *mended);
/* What wr_utf16_to_utf8 would write. */
size_t wr_utf16_len(const void *src, size_t n);
#endif
