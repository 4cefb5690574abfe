/* SPDX-License-Identifier: Apache-2.0 */
#include "receive/sha256.h"
#include "t.h"

#include <openssl/sha.h>

TEST(every_length_around_a_block_gives_what_openssl_gives)
{
    unsigned char bytes[300];
    struct t_rng rng = t_rng(t_seed());
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)t_next(&rng);
    for (size_t n = 0; n <= sizeof bytes; n++) {
        unsigned char got[SHA256_BYTES];
        unsigned char want[SHA256_DIGEST_LENGTH];
        receive_sha256(bytes, n, got);
        (void)SHA256(bytes, n, want);
        T_EQ_BYTES(got, sizeof got, want, sizeof want);
    }
}
