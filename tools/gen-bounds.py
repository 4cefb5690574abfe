#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen-bounds: the tables of src/sketch/bounds.inc, from integers alone.

Usage: gen-bounds.py > src/sketch/bounds.inc

Bounds of bins are 2^(k/n), in seconds or unit-less, and 10^9 * 2^(k/n) in nanoseconds, n = 64 for
scale 6 and 256 for scale 8. A root of order 2^s of an integer is s integer square roots, each exact
after flooring, so every fraction below is the floor of the true bound and "above the bound" is one
integer comparison: a bound is either irrational, or a power of two (times 10^9) that 52 bits hold
exactly. Doubles are rounded once, from 80 decimal digits.
"""
import math
import sys
from decimal import Decimal, getcontext

SCALES = {"": 6, "fine_": 8}
FRACTION_BITS = 52
SCALE_MIN = -10

getcontext().prec = 80


def root(x: int, scale: int) -> int:
    """floor(x^(1/2^scale))"""
    for _ in range(scale):
        x = math.isqrt(x)
    return x


def fractions(unit: int, scale: int) -> tuple[int, list[int]]:
    """The first i with unit * 2^(i/n) >= 1, and the fractions of the n bounds from it on."""
    sub = 1 << scale
    first = 0
    while unit**sub >= 1 << -(first - 1):
        first -= 1
    bounds = []
    for i in range(first, first + sub):
        mantissa = root(unit**sub << (i + FRACTION_BITS * sub), scale)
        assert mantissa >> FRACTION_BITS == 1
        bounds.append(mantissa - (1 << FRACTION_BITS))
    return first, bounds


def cells(bounds: list[int], cell_bits: int) -> list[int]:
    """For each cell: (bounds below it) << 52, plus what carries into bit 52 above its own bound."""
    size = 1 << (FRACTION_BITS - cell_bits)
    out = []
    for c in range(1 << cell_bits):
        start = c * size
        below = sum(1 for b in bounds if b < start)
        inside = [b for b in bounds if start <= b < start + size]
        assert len(inside) <= 1
        carry = (1 << FRACTION_BITS) - 1 - inside[0] if inside else 0
        out.append((below << FRACTION_BITS) + carry)
    return out


def steps(bounds: list[int], scale: int) -> list[int]:
    """The same in steps of 1/n octave, for all the bits of a double: what to add so that those above
    the lowest 52 - scale are the bin, and the octave n times as much."""
    low = FRACTION_BITS - scale
    out = []
    for c, cell in enumerate(cells(bounds, scale + 1)):
        step = c >> 1
        carry = cell & ((1 << FRACTION_BITS) - 1)
        if carry:  # the bound was 2^52 - 1 - carry
            carry = ((step + 1) << low) - ((1 << FRACTION_BITS) - carry)
        out.append((((cell >> FRACTION_BITS) - step) << low) + carry)
    return out


def table(name: str, kind: str, rows: list[str], per_line: int) -> None:
    print(f"const {kind} {name}[{len(rows)}] = {{")
    for i in range(0, len(rows), per_line):
        print("    " + ", ".join(rows[i : i + per_line]) + ",")
    print("};")


def power(k: int, sub: int) -> Decimal:
    """2^(k/sub)"""
    return (Decimal(2).ln() * k / sub).exp()


def mantissas(scale: int) -> list[int]:
    """floor(2^63 * 2^(k/n)); rounding one to a double gives the double nearest to the true bound."""
    sub = 1 << scale
    out = []
    for k in range(sub):
        m = root(2 ** (k + 63 * sub), scale)
        assert float(m) == float(power(k, sub) * 2**63) or k == 0
        out.append(m)
    return out


def base2_rows() -> list[str]:
    """scale, g, (g - 1) / (g + 1); a g past the greatest double is that double."""
    rows = []
    for scale in range(SCALE_MIN, SCALES["fine_"] + 1):
        g = Decimal(2) ** (1 << -scale) if scale <= 0 else power(1, 1 << scale)
        gamma = min(g, Decimal(sys.float_info.max))
        rows.append(f"X({scale}, {float(gamma).hex()}, {float((g - 1) / (g + 1)).hex()})")
    return rows


def main() -> None:
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print("/* Written by tools/gen-bounds.py; do not edit. */")
    print("/* clang-format off */")
    for name, scale in SCALES.items():
        cell_bits = scale + 1  # a cell is narrower than the narrowest bin: one bound at most
        first_value, value = fractions(1, scale)
        first_ns, ns = fractions(10**9, scale)
        upper = name.upper()
        print(f"#define BOUNDS_{upper}SCALE {scale}")
        print(f"#define BOUNDS_{upper}CELL_BITS {cell_bits}")
        print(f"#define BOUNDS_{upper}VALUE_FIRST {first_value}")
        print(f"#define BOUNDS_{upper}NS_FIRST ({first_ns})")
        for grid, bounds in (("value", value), ("ns", ns)):
            rows = [f"0x{v:016x}" for v in cells(bounds, cell_bits)]
            table(f"wr_mapping_{name}{grid}_cells", "uint64_t", rows, 4)
    rows = [f"0x{v:016x}" for v in steps(fractions(1, SCALES[""])[1], SCALES[""])]
    table("wr_mapping_value_steps", "uint64_t", rows, 4)
    sub = 1 << SCALES[""]
    gamma = power(1, sub)
    print("/* 2 g^(k+1) / (g + 1) at scale 6, k = 0..63 */")
    values = [float(2 * power(k + 1, sub) / (gamma + 1)) for k in range(sub)]
    table("wr_mapping_values", "double", [v.hex() for v in values], 4)
    print("/* 2^63 * 2^(k/256), rounded down */")
    table("wr_exp2_mantissas", "uint64_t", [f"0x{m:016x}" for m in mantissas(SCALES["fine_"])], 4)
    print("/* scale, g, accuracy */")
    print("#define BOUNDS_BASE2(X) \\\n    " + " \\\n    ".join(base2_rows()))


main()
