#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen-varfloat.py: writes the tables of counts in DDSketch's compact encoding, from the rule in
docs/formats/ddsketch-compact.md.

  tools/gen-varfloat.py > src/codec/varfloat.inc
  tools/gen-varfloat.py lanes > src/codec/varfloat_lanes.inc

The first has the bytes of whole counts below 8192: an entry has the bytes in its low three, the first one lowest,
and how many they are in the highest one.

The second moves bytes between four counts that lie one behind the other, of one to three bytes each, and four lanes
of 32 bits: `close_up` from lanes that have the first byte lowest, by the bits of the lanes that have a second byte
and, 4 higher, of those that have a third; `spread` into lanes that have the first byte highest; `ends` says which
row of spread, from the bits of the last bytes among twelve, and how many bytes; 0 where one of four is longer.
"""
import itertools
import struct
import sys

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


def put_rows(rows):
    for row in rows:
        print("{" + ", ".join("%d" % b for b in row) + "},")


def close_up(bits):
    row = []
    for lane in range(4):
        size = 1 + (bits >> lane & 1) + (bits >> lane + 4 & 1)
        row += [4 * lane + k for k in range(size)]
    return row + [128] * (16 - len(row))


def spread(sizes):
    row = []
    at = 0
    for size in sizes:
        row += [128] + [at + k if k < size else 128 for k in (2, 1, 0)]
        at += size
    return row


def put_lanes():
    combos = list(itertools.product((1, 2, 3), repeat=4))
    ends = [(0, 0)] * 4096
    for number, sizes in enumerate(combos):
        total = sum(sizes)
        mask = sum(1 << sum(sizes[: k + 1]) - 1 for k in range(4))
        for high in range(1 << 12 - total):
            ends[mask | high << total] = (number, total)
    print("static const uint8_t close_up[256][16] = {")
    put_rows(close_up(bits) for bits in range(256))
    print("};")
    print("static const uint8_t spread[%d][16] = {" % len(combos))
    put_rows(spread(sizes) for sizes in combos)
    print("};")
    print("static const uint8_t ends[4096][2] = {")
    for first in range(0, 4096, 16):
        print(" ".join("{%d, %d}," % e for e in ends[first : first + 16]))
    print("};")


def put_bytes():
    for first in range(0, COUNTS, 8):
        row = [encode(count) for count in range(first, first + 8)]
        assert all(len(b) <= 3 for b in row)
        print(" ".join("0x%02x%06x," % (len(b), int.from_bytes(b, "little")) for b in row))


print("/* SPDX-License-Identifier: Apache-2.0 */")
print("/* Written by tools/gen-varfloat.py; do not edit. */")
if sys.argv[1:] == ["lanes"]:
    put_lanes()
else:
    put_bytes()
