/* SPDX-License-Identifier: Apache-2.0 */
#ifndef T_TRANSCODE_H
#define T_TRANSCODE_H
/*
 * transcode: a v0.4 payload written again as v0.7 or v1.0, for tests and benches that want the same
 * spans by several formats. Everything a v0.4 span has is carried over, wanted or not.
 *
 * As the tracers write them: env, version, component and span.kind are members of a v1.0 span, the
 * trace id stands behind the spans, and every further string is a number.
 */
#include "wire/out.h"

/* Add the payload to out, which the caller has initialised. False: not a v0.4 payload. */
bool t_transcode_v07(struct weir_bytes v04, struct wr_out *out);
bool t_transcode_v1(struct weir_bytes v04, struct wr_out *out);
#endif
