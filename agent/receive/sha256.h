/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_RECEIVE_SHA256_H
#define AGENT_RECEIVE_SHA256_H
/* sha256: the digest of the /info body, which tracers compare with their own (FIPS 180-4).
 * Our own for its size: docs/decisions/0001-resident-memory.md. Not for secrets. */
#include <stddef.h>

#define SHA256_BYTES 32

void receive_sha256(const void *bytes, size_t n, unsigned char digest[SHA256_BYTES]);
#endif
