/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H
/* weir: all of libweir's public headers. */
#include <weir/base.h>
#include <weir/batch.h>
#include <weir/codec.h>
#include <weir/decode.h>
#include <weir/mapping.h>
#include <weir/payload.h>
#include <weir/sketch.h>
#include <weir/span.h>
#include <weir/stats.h>
#include <weir/text.h>
#include <weir/trace.h>
#endif
