#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen-bounds: the tables of src/sketch/bounds.inc, from integers alone.

Usage: gen-bounds.py > src/sketch/bounds.inc

Bounds of bins are 2^(k/64), in seconds or unit-less, and 10^9 * 2^(k/64) in nanoseconds. The 64th
root of an integer is six integer square roots, each exact after flooring, so every fraction below
is the floor of the true bound and "above the bound" is one integer comparison: a bound is either
irrational, or a power of two (times 10^9) that 52 bits hold exactly. Doubles are rounded once,
from 80 decimal digits.
"""
import math
from decimal import Decimal, getcontext

SCALE = 6
SUB = 1 << SCALE
CELL_BITS = SCALE + 1  # a cell is narrower than the narrowest bin, so it holds one bound at most
FRACTION_BITS = 52

getcontext().prec = 80


def root(x: int) -> int:
    """floor(x^(1/SUB))"""
    for _ in range(SCALE):
        x = math.isqrt(x)
    return x


def fractions(unit: int) -> tuple[int, list[int]]:
    """The first i with unit * 2^(i/SUB) >= 1, and the fractions of the SUB bounds from it on."""
    first = 0
    while unit**SUB >= 1 << -(first - 1):
        first -= 1
    bounds = []
    for i in range(first, first + SUB):
        mantissa = root(unit**SUB << (i + FRACTION_BITS * SUB))
        assert mantissa >> FRACTION_BITS == 1
        bounds.append(mantissa - (1 << FRACTION_BITS))
    return first, bounds


def cells(bounds: list[int]) -> list[int]:
    """For each cell: (bounds below it) << 52, plus what carries into bit 52 above its own bound."""
    size = 1 << (FRACTION_BITS - CELL_BITS)
    out = []
    for c in range(1 << CELL_BITS):
        start = c * size
        below = sum(1 for b in bounds if b < start)
        inside = [b for b in bounds if start <= b < start + size]
        assert len(inside) <= 1
        carry = (1 << FRACTION_BITS) - 1 - inside[0] if inside else 0
        out.append((below << FRACTION_BITS) + carry)
    return out


def table(name: str, kind: str, rows: list[str], per_line: int) -> None:
    print(f"const {kind} {name}[{len(rows)}] = {{")
    for i in range(0, len(rows), per_line):
        print("    " + ", ".join(rows[i : i + per_line]) + ",")
    print("};")


def power(k: int) -> Decimal:
    return (Decimal(2).ln() * k / SUB).exp()


def main() -> None:
    first_value, value = fractions(1)
    first_ns, ns = fractions(10**9)
    gamma = power(1)
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print("/* Written by tools/gen-bounds.py; do not edit. */")
    print("/* clang-format off */")
    print(f"#define BOUNDS_SCALE {SCALE}")
    print(f"#define BOUNDS_CELL_BITS {CELL_BITS}")
    print(f"#define BOUNDS_VALUE_FIRST {first_value}")
    print(f"#define BOUNDS_NS_FIRST ({first_ns})")
    print("/* (g - 1) / (g + 1) */")
    print(f"#define BOUNDS_ACCURACY {float((gamma - 1) / (gamma + 1)).hex()}")
    table("wr_mapping_value_cells", "uint64_t", [f"0x{v:016x}" for v in cells(value)], 4)
    table("wr_mapping_ns_cells", "uint64_t", [f"0x{v:016x}" for v in cells(ns)], 4)
    print("/* 2^(k/64), k = 0..64 */")
    lower = [1.0] + [float(power(k)) for k in range(1, SUB)] + [2.0]
    table("wr_mapping_bounds", "double", [v.hex() for v in lower], 4)
    print("/* 2 g^(k+1) / (g + 1), k = 0..63 */")
    values = [float(2 * power(k + 1) / (gamma + 1)) for k in range(SUB)]
    table("wr_mapping_values", "double", [v.hex() for v in values], 4)


main()
