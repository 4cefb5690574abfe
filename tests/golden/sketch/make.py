#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make: the golden files of the sketch, from the definitions alone.

Written from docs/formats/sketch.md and the definition of a bin, (2^(i/64), 2^((i+1)/64)], with
fractions of integers; it shares no table and no code with the library.

Usage: make.py index > index.tsv; make.py form > form.tsv; make.py more > form2.tsv
"""
import decimal
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


# Version 2, and version 1 at other scales


decimal.getcontext().prec = 60


def index_log(v: float, gamma: float, offset: float) -> int:
    """floor(log_gamma v + offset); none of the values here is near a bound."""
    at = decimal.Decimal(v).ln() / decimal.Decimal(gamma).ln() + decimal.Decimal(offset)
    assert abs(at - at.to_integral_value()) > decimal.Decimal("1e-9")
    return int(at.to_integral_value(rounding=decimal.ROUND_FLOOR))


def coarser(i: int, scale: int) -> int:
    return i >> (6 - scale)


def fold(bins: dict[int, int], most: int) -> tuple[dict[int, int], bool]:
    """Each weight at max(i, highest - most + 1)."""
    if not bins:
        return bins, False
    floor = max(bins) - most + 1
    out = {}
    for i, w in bins.items():
        out[max(i, floor)] = out.get(max(i, floor), 0) + w
    return out, min(bins) < floor


def form_more(mapping: tuple, max_bins: int, samples: list[tuple[float, int]]) -> bytes:
    """Of the double grid."""

    def index(v: float) -> int:
        if mapping[0] == "base2":
            return coarser(index_value(v), mapping[1])
        return index_log(v, mapping[1], mapping[2])

    zero, pos, neg = 0, {}, {}
    for v, w in samples:
        if v == 0:
            zero += w
        else:
            side = pos if v > 0 else neg
            side[index(abs(v))] = side.get(index(abs(v)), 0) + w
    least, most = min(v for v, _ in samples), max(v for v, _ in samples)
    pos, pos_folded = fold(pos, max_bins)
    neg, neg_folded = fold(neg, max_bins)
    whole = all(w % ONE == 0 for w in [zero, *pos.values(), *neg.values()])
    unit = ONE if whole else 1
    exact = sum(Fraction(v) * w for v, w in samples) / ONE
    high = float(exact)
    low = float(exact - Fraction(high))
    flags = 0 if whole else 2
    body = varint(sum(w for _, w in samples) // unit)
    body += struct.pack("<4d", high, low, least, most)
    if zero:
        flags |= 4
        body += varint(zero // unit)
    for bins, here, as_pairs in ((neg, 16, 64), (pos, 8, 32)):
        if bins:
            b, is_pairs = block(bins, unit)
            flags |= here | (as_pairs if is_pairs else 0)
            body += b
    more = (1 if mapping[0] != "base2" else 0) | (2 if pos_folded else 0) | (4 if neg_folded else 0)
    alone = not zero and (not neg or not pos)  # then the extreme tells a collapse
    name = bytes([mapping[1] & 255]) if mapping[0] == "base2" else b"\1" + struct.pack("<2d", *mapping[1:])
    if more == 0 or (alone and mapping[0] == "base2"):
        return bytes([1, flags]) + name + body
    return bytes([2, flags, more]) + name + body


def more_rows() -> None:
    half = ONE // 2
    one_percent = 1.01 / 0.99
    few = [(float(k), ONE) for k in (3, 5, 8, 200)]
    wide = [(2.0**k * 1.1, ONE) for k in range(12)]
    cases = {
        "scale-0": (("base2", 0), 2048, few),
        "scale-minus-2": (("base2", -2), 2048, few + [(-7.0, ONE)]),
        "log-1-percent": (("log", one_percent, 0.0), 2048, few),
        "log-signs": (("log", one_percent, 0.0), 2048, few + [(-4.0, ONE), (0.0, 2 * ONE), (2.5, half)]),
        "log-backend": (("log", 1.015625, 1338.5), 2048, few),
        "collapse-that-shows": (("base2", 6), 64, wide),
        "collapse-with-a-zero": (("base2", 6), 64, wide + [(0.0, ONE)]),
        "collapse-of-negatives": (("base2", 6), 64, [(-v, w) for v, w in wide]),
        "collapse-of-both": (("base2", 6), 64, wide + [(-v, w) for v, w in wide]),
        "collapse-of-negatives-alone": (("base2", 6), 64, [(7.0, ONE)] + [(-v, w) for v, w in wide]),
        "log-collapse": (("log", one_percent, 0.0), 16, wide),
    }
    print("#id\tmapping\tmax_bins\tsamples value*weight\thex")
    for name, (mapping, max_bins, samples) in cases.items():
        spec = " ".join(m if isinstance(m, str) else m.hex() if isinstance(m, float) else str(m) for m in mapping)
        text = " ".join(f"{float(v).hex()}*{w}" for v, w in samples)
        print(f"{name}\t{spec}\t{max_bins}\t{text}\t{form_more(mapping, max_bins, samples).hex()}")


{"index": index_rows, "form": form_rows, "more": more_rows}[sys.argv[1]]()
