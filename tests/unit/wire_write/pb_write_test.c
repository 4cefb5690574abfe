/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of protobuf.dev's "Encoding" page and what protoc --decode_raw reads. */
#include "t.h"
#include "wire/pb_write.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void expect(struct wr_out *o, const char *hex)
{
    uint8_t want[64];
    const size_t n = t_unhex(hex, want, sizeof want);
    T_OK(o->err);
    T_EQ_BYTES(o->ptr, o->len, want, n);
    wr_out_clear(o);
}

TEST(the_examples_of_the_specification_come_out_as_it_prints_them)
{
    struct wr_out o;
    wr_out_init(&o, NULL, 256);
    wr_pb_put_uint(&o, 1, 150);
    expect(&o, "089601");
    wr_pb_put_cstr(&o, 2, "testing");
    expect(&o, "120774657374696e67");
    const size_t m = wr_pb_begin(&o, 3);
    wr_pb_put_uint(&o, 1, 150);
    wr_pb_end(&o, m);
    expect(&o, "1a03089601");
    wr_pb_put_int(&o, 1, -2);
    expect(&o, "08feffffffffffffffff01");
    wr_pb_put_sint(&o, 1, -1);
    wr_pb_put_sint(&o, 1, 1);
    wr_pb_put_sint(&o, 1, INT64_MAX);
    wr_pb_put_sint(&o, 1, INT64_MIN);
    expect(&o, "0801 0802 08feffffffffffffffff01 08ffffffffffffffffff01");
    wr_pb_put_bool(&o, 16, true);
    wr_pb_put_fixed64(&o, 1, 0x0102030405060708u);
    wr_pb_put_fixed32(&o, 1, 0x01020304u);
    wr_pb_put_double(&o, 2, 1.0);
    expect(&o, "800101 090807060504030201 0d04030201 11000000000000f03f");
    wr_pb_put_varint(&o, UINT64_MAX);
    expect(&o, "ffffffffffffffffff01");
    wr_out_done(&o);
}

static size_t nested(struct wr_out *o, int depth, size_t leaf_bytes, const char *leaf)
{
    if (depth == 0) {
        wr_pb_put_bytes(o, 1, (struct weir_bytes){.ptr = leaf, .len = leaf_bytes});
        return 0;
    }
    const size_t m = wr_pb_begin(o, 2);
    (void)nested(o, depth - 1, leaf_bytes, leaf);
    wr_pb_end(o, m);
    return m;
}

/* Length of a message of depth levels around a leaf, computed from the format's rules. */
static size_t nested_bytes(int depth, size_t leaf_bytes)
{
    char b[WR_PB_VARINT_MAX];
    size_t n = 1 + (size_t)(wr_pb_raw_varint(b, leaf_bytes) - b) + leaf_bytes;
    for (int i = 0; i < depth; i++)
        n = 1 + (size_t)(wr_pb_raw_varint(b, n) - b) + n;
    return n;
}

TEST(nested_lengths_are_the_shortest_around_every_width)
{
    static const size_t leaves[] = {0,     1,     122,     123,     124,    125,   126,
                                    127,   128,   16376,   16380,   16383,  16384, 20000,
                                    65536, 99999, 2097146, 2097152, 2097160};
    char *const leaf = malloc(2097160);
    T_TRUE(leaf);
    memset(leaf, 7, 2097160);
    struct wr_out o;
    wr_out_init(&o, NULL, 4 << 20);
    for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++) {
        for (int depth = 0; depth < 5; depth++) {
            (void)nested(&o, depth, leaves[i], leaf);
            T_OK(o.err);
            T_EQ_U64(o.len, nested_bytes(depth, leaves[i]));
            if (leaves[i])
                T_EQ_BYTES(o.ptr + o.len - leaves[i], leaves[i], leaf, leaves[i]);
            wr_out_clear(&o);
        }
    }
    wr_out_done(&o);
    free(leaf);
}

TEST(a_message_whose_length_does_not_fit_the_bound_is_refused)
{
    struct wr_out o;
    wr_out_init(&o, NULL, 132);
    char leaf[130];
    memset(leaf, 1, sizeof leaf);
    const size_t m = wr_pb_begin(&o, 1);
    wr_out_put(&o, leaf, 130); /* full: the second byte of the length has no place */
    T_OK(o.err);
    wr_pb_end(&o, m);
    T_ERR(o.err, WEIR_EFULL);
    wr_out_done(&o);
}

static int message(const struct weir_alloc *a, void *ctx)
{
    (void)ctx;
    struct wr_out o;
    wr_out_init(&o, a, 1 << 20);
    char leaf[600];
    memset(leaf, 1, sizeof leaf);
    (void)nested(&o, 4, sizeof leaf, leaf);
    const int err = o.err;
    wr_out_done(&o);
    return err;
}

TEST(each_refused_allocation_is_an_error_and_no_leak)
{
    t_each_oom(message, NULL);
}

/* protoc reads the bytes from a file; its text is compared as a whole. */
TEST(protoc_reads_what_was_written)
{
    if (access("/usr/bin/protoc", X_OK) != 0)
        T_SKIP_MISSING("/usr/bin/protoc");
    struct wr_out o;
    wr_out_init(&o, NULL, 1024);
    const size_t m = wr_pb_begin(&o, 1);
    const size_t n = wr_pb_begin(&o, 2);
    wr_pb_put_fixed64(&o, 7, 5);
    wr_pb_put_cstr(&o, 3, "GET /cart");
    wr_pb_put_uint(&o, 536870911, 300);
    wr_pb_end(&o, n);
    wr_pb_end(&o, m);
    T_OK(o.err);
    char path[] = "/tmp/weir-pb-XXXXXX";
    const int fd = mkstemp(path);
    T_TRUE(fd >= 0 && write(fd, o.ptr, o.len) == (ssize_t)o.len);
    (void)close(fd);
    char command[128];
    (void)snprintf(command, sizeof command, "protoc --decode_raw <%s", path);
    FILE *const p = popen(command, "r");
    T_TRUE(p);
    char text[512];
    const size_t got = fread(text, 1, sizeof text - 1, p);
    text[got] = 0;
    T_EQ_I64(pclose(p), 0);
    (void)unlink(path);
    T_EQ_STR(text, "1 {\n  2 {\n    7: 0x0000000000000005\n    3: \"GET /cart\"\n"
                   "    536870911: 300\n  }\n}\n");
    wr_out_done(&o);
}
