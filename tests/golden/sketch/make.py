#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make: the golden files of the sketch, from the definitions alone.

Written from docs/formats/sketch.md and the definition of a bin, (2^(i/64), 2^((i+1)/64)], with
fractions of integers; it shares no table and no code with the library.

Usage: make.py index > index.tsv; make.py form > form.tsv
"""
import struct
import sys
from fractions import Fraction

ONE = 1 << 20


def index_of(x: Fraction) -> int:
    """The i with 2^i < x^64 <= 2^(i+1)."""
    p, q = x.numerator**64, x.denominator**64
    i = p.bit_length() - q.bit_length() - 2
    while not (p * 2 ** max(0, -(i + 1)) <= q * 2 ** max(0, i + 1)):
        i += 1
    assert p * 2 ** max(0, -i) > q * 2 ** max(0, i)
    return i


def round_down(ns: int) -> int:
    spare = max(0, ns.bit_length() - 53)
    return ns >> spare << spare


def index_ns(ns: int) -> int:
    return index_of(Fraction(round_down(ns), 10**9))


def index_value(v: float) -> int:
    return index_of(Fraction(v))


def root64(x: int) -> int:
    """floor of the 64th root, by halving the interval"""
    lo, hi = 0, 1 << (x.bit_length() // 64 + 1)
    while lo < hi:
        mid = (lo + hi + 1) // 2
        if mid**64 <= x:
            lo = mid
        else:
            hi = mid - 1
    return lo


def index_rows() -> None:
    print("#grid\tvalue\tindex")
    durations = {1, 2, 3, 10, 99, 100, 101, 1000, 10**6, 5 * 10**6, 10**9 - 1, 10**9, 10**9 + 1}
    durations |= {2 * 10**9, 6 * 10**10, 2**53 - 1, 2**53, 2**53 + 1, 2**54 + 3, 2**62, 2**63 - 1}
    for i in range(-1900, 1400, 97):  # the last duration inside bin i - 1, the first inside bin i
        edge = root64(10**576 * 2 ** max(0, i) // 2 ** max(0, -i))
        if edge:
            durations |= {edge, edge + 1}
    for ns in sorted(durations):
        print(f"ns\t{ns}\t{index_ns(ns)}")
    values = [0.5, 1.0, 2.0, 4.0, 10.0, 100.0, 1000.0, 1e-9, 1e-300, 1e300, 3.14159, 0.1]
    values += [float.fromhex(h) for h in ("0x1.fffffffffffffp+1023", "0x1.0000000000001p-1022")]
    for k in range(1, 64, 7):
        edge = root64(2 ** (k + 52 * 64))  # floor(2^(k/64) * 2^52)
        for e in (-1000, -52, 0, 30, 900):
            values += [float(Fraction(edge + up, 2**52) * Fraction(2) ** e) for up in (0, 1)]
    for v in sorted(set(values)):
        print(f"value\t{v.hex()}\t{index_value(v)}")


def varint(v: int) -> bytes:
    out = b""
    while v >= 128:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])


def block(bins: dict[int, int], unit: int) -> tuple[bytes, bool]:
    """The shorter of run and pairs; a run when equal."""
    keys = sorted(bins)
    first = varint(2 * keys[0] if keys[0] >= 0 else -2 * keys[0] - 1)
    run = first + varint(keys[-1] - keys[0] + 1)
    for i in range(keys[0], keys[-1] + 1):
        run += varint(bins.get(i, 0) // unit)
    pairs = first + varint(len(keys)) + varint(bins[keys[0]] // unit)
    for before, i in zip(keys, keys[1:]):
        pairs += varint(i - before - 1) + varint(bins[i] // unit)
    return (pairs, True) if len(pairs) < len(run) else (run, False)


def form(grid: str, samples: list[tuple]) -> bytes:
    zero, pos, neg = 0, {}, {}
    total, exact = 0, Fraction(0)
    for v, w in samples:
        total += w
        exact += Fraction(v) * w
        if abs(v) <= 2.0**-1022:
            zero += w
        elif v > 0:
            i = index_ns(v) if grid == "ns" else index_value(v)
            pos[i] = pos.get(i, 0) + w
        else:
            i = index_value(-v)
            neg[i] = neg.get(i, 0) + w
    whole = all(w % ONE == 0 for w in [zero, *pos.values(), *neg.values()])
    unit = ONE if whole else 1
    flags = (1 if grid == "ns" else 0) | (0 if whole else 2)
    body = b""
    if samples:
        least, most = min(v for v, _ in samples), max(v for v, _ in samples)
        body += varint(total // unit)
        if grid == "ns":
            body += int(exact).to_bytes(16, "little") + varint(least) + varint(most - least)
        else:
            exact /= ONE
            high = float(exact)
            low = float(exact - Fraction(high))
            assert Fraction(high) + Fraction(low) == exact
            body += struct.pack("<4d", high, low, least + 0.0, most + 0.0)
    if zero:
        flags |= 4
        body += varint(zero // unit)
    if neg:
        b, is_pairs = block(neg, unit)
        flags |= 16 | (64 if is_pairs else 0)
        body += b
    if pos:
        b, is_pairs = block(pos, unit)
        flags |= 8 | (32 if is_pairs else 0)
        body += b
    return bytes([1, flags, 6]) + body


def form_rows() -> None:
    half = ONE // 2
    cases = {
        "ns-empty": ("ns", []),
        "value-empty": ("value", []),
        "ns-one": ("ns", [(100, ONE)]),
        "ns-one-second": ("ns", [(10**9, ONE)]),
        "ns-zeros": ("ns", [(0, ONE), (0, 2 * ONE)]),
        "ns-zero-and-one": ("ns", [(0, ONE), (1, ONE)]),
        "ns-run": ("ns", [(10**6 + 5000 * k, ONE) for k in range(20)]),
        "ns-pairs": ("ns", [(10**k, ONE) for k in range(19)]),
        "ns-longest": ("ns", [(2**63 - 1, ONE)]),
        "ns-300-in-one-bin": ("ns", [(5 * 10**6, ONE)] * 300),
        "ns-70000-in-one-bin": ("ns", [(5 * 10**6, 70000 * ONE)]),
        "ns-tie-is-a-run": ("ns", [(10**9, ONE), (1022000000, ONE)]),
        "ns-tenths": ("ns", [(1000, 104858), (2000, 104857)]),
        "ns-two-halves-are-one": ("ns", [(1000, half), (1000, half)]),
        "ns-half-of-odd": ("ns", [(1001, half), (0, half)]),
        "ns-greatest-weight": ("ns", [(7, 2**64 - 1)]),
        "value-one": ("value", [(1.0, ONE)]),
        "value-signs": ("value", [(-1.0, ONE), (0.0, ONE), (-0.0, ONE), (1.0, ONE), (2.5, half)]),
        "value-negatives": ("value", [(-5.0, ONE), (-3.0, ONE), (-4.0, ONE)]),
        "value-subnormal": ("value", [(5e-324, ONE), (2.0**-1022, ONE)]),
        "value-greatest": ("value", [(float.fromhex("0x1.fffffffffffffp+1023"), ONE)]),
        "value-weights": ("value", [(3.0, 4 * ONE), (2.0, ONE), (1.0, 2 * ONE)]),
        "value-sum-of-two-parts": ("value", [(1e16, ONE), (1.0, ONE), (-1.0, ONE), (0.5, ONE)]),
        "value-1-to-100": ("value", [(float(k), ONE) for k in range(1, 101)]),
    }
    print("#id\tgrid\tsamples value*weight\thex")
    for name, (grid, samples) in cases.items():
        text = " ".join(f"{v if grid == 'ns' else float(v).hex()}*{w}" for v, w in samples)
        print(f"{name}\t{grid}\t{text}\t{form(grid, samples).hex()}")


index_rows() if sys.argv[1] == "index" else form_rows()
