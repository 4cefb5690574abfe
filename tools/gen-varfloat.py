#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen-varfloat.py: writes src/codec/varfloat.inc, the bytes of whole counts below 8192 in DDSketch's compact
encoding, from the rule in docs/formats/ddsketch-compact.md.

  tools/gen-varfloat.py > src/codec/varfloat.inc

An entry has the bytes in its low three, the first one lowest, and how many they are in the highest one.
"""
import struct

COUNTS = 8192


def encode(count):
    bits = struct.unpack(">Q", struct.pack(">d", count + 1.0))[0] - struct.unpack(">Q", struct.pack(">d", 1.0))[0]
    bits = (bits << 6 | bits >> 58) & (2**64 - 1)
    out = []
    while True:
        out.append(bits >> 57)
        bits = bits << 7 & (2**64 - 1)
        if not bits:
            return bytes(out)
        out[-1] |= 0x80


print("/* SPDX-License-Identifier: Apache-2.0 */")
print("/* Written by tools/gen-varfloat.py; do not edit. */")
for first in range(0, COUNTS, 8):
    row = [encode(count) for count in range(first, first + 8)]
    assert all(len(b) <= 3 for b in row)
    print(" ".join("0x%02x%06x," % (len(b), int.from_bytes(b, "little")) for b in row))
