/* SPDX-License-Identifier: Apache-2.0 */
/* base: see base.h. The only object of libweir-client that reads a clock or random bytes. */
#include "base.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>

enum { FORK_MAP_BYTES = 4096 }; /* the kernel rounds up to its page */

size_t wr_decimal(uint64_t n, char *dst)
{
    char digits[WR_DECIMAL_BYTES];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    for (size_t i = 0; i < count; i++)
        dst[i] = digits[count - 1 - i];
    dst[count] = 0;
    return count;
}

bool wr_bytes_are(struct weir_bytes b, const char *text)
{
    return b.len == strlen(text) && (b.len == 0 || memcmp(b.ptr, text, b.len) == 0);
}

bool wr_read_decimal(struct weir_bytes b, uint32_t *ret_number)
{
    uint64_t n = 0;
    if (b.len == 0 || b.len > 10)
        return false;
    for (size_t i = 0; i < b.len; i++) {
        if (b.ptr[i] < '0' || b.ptr[i] > '9')
            return false;
        n = n * 10 + (uint64_t)(b.ptr[i] - '0');
    }
    if (n > UINT32_MAX)
        return false;
    *ret_number = (uint32_t)n;
    return true;
}

int64_t wr_sat_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return b < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

static int64_t read_ns(clockid_t clock)
{
    struct timespec t = {0};
    (void)clock_gettime(clock, &t); /* both are always there */
    return (int64_t)t.tv_sec * WR_S_NS + t.tv_nsec;
}

void wr_client_clock(void *ctx, int64_t *ret_wall_ns, int64_t *ret_mono_ns)
{
    (void)ctx;
    *ret_wall_ns = read_ns(CLOCK_REALTIME);
    *ret_mono_ns = read_ns(CLOCK_MONOTONIC);
}

static void fill_random(unsigned char *dst, size_t n)
{
    if (getrandom(dst, n, GRND_NONBLOCK) == (ssize_t)n)
        return;
    uint64_t state = (uint64_t)read_ns(CLOCK_REALTIME) ^ ((uint64_t)(uintptr_t)dst << 20) ^
                     (uint64_t)read_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (size_t i = 0; i < n; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        dst[i] = (unsigned char)(state >> 32);
    }
}

uint64_t wr_client_random(void)
{
    uint64_t n;
    unsigned char bytes[sizeof n];
    fill_random(bytes, sizeof bytes);
    memcpy(&n, bytes, sizeof n);
    return n;
}

void wr_client_uuid(char dst[37])
{
    static const char hex[] = "0123456789abcdef";
    unsigned char bytes[16];
    fill_random(bytes, sizeof bytes);
    bytes[6] = (unsigned char)((bytes[6] & 0x0fu) | 0x40u); /* RFC 9562, version 4 */
    bytes[8] = (unsigned char)((bytes[8] & 0x3fu) | 0x80u);
    size_t at = 0;
    for (size_t i = 0; i < sizeof bytes; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            dst[at++] = '-';
        dst[at++] = hex[bytes[i] >> 4];
        dst[at++] = hex[bytes[i] & 15u];
    }
    dst[at] = 0;
}

struct wr_fork_page *wr_fork_page_new(void)
{
    void *const page =
        mmap(NULL, FORK_MAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
#ifdef MADV_WIPEONFORK
    /* A kernel that does not know it leaves forks unseen, as the header says. */
    (void)madvise(page, FORK_MAP_BYTES, MADV_WIPEONFORK);
#endif
    return page;
}

void wr_fork_page_free(struct wr_fork_page *page)
{
    if (page)
        (void)munmap(page, FORK_MAP_BYTES);
}
