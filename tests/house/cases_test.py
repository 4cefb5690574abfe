#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cases_test.py: each test that tests/unit/stats/cases.tsv names exists, and no row of the list is missing or twice.

The rows that must be there are written out here, so that one cannot fall out of the table unseen.
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TABLE = os.path.join("tests", "unit", "stats", "cases.tsv")
NAME = re.compile(r"\bTEST\((\w+)\)|\bdef (test_\w+)\(")
# A long one may stand on two lines.
SPLIT = re.compile(r"\bTEST\(\s*(\w+)\s*\)")


def ids(letter, numbers):
    return [letter + ("%02d" % n if letter in "CTSK" else str(n)) for n in numbers]


WANTED = (ids("J", [1, 2, 3, 5, 6, 7, 9, 10, 12, 13, 14, 15, 16, 17, 18, 20, 22])
          + ids("C", [1, 3, 4, 6, 8, 10, 11, 12, 13, 15])
          + ids("T", [1, 2, 3, 4, 6, 8, 11, 12, 13, 14, 16, 17, 18, 19, 21])
          + ids("S", [2, 3, 4, 7, 8, 9, 10, 11, 13, 14, 17, 18, 19, 21, 22])
          + ids("K", range(1, 23)) + ids("V", range(1, 15)))


def tests_of(root):
    """Names of all tests, in C and in Python."""
    found = set()
    for folder, _, files in os.walk(os.path.join(root, "tests")):
        for name in files:
            if not name.endswith((".c", ".py")):
                continue
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                text = f.read()
            for pattern in (NAME, SPLIT):
                for match in pattern.finditer(text):
                    found.update(group for group in match.groups() if group)
    return found


def faults_of(lines, tests, wanted):
    faults, seen = [], set()
    for number, line in enumerate(lines, 1):
        if line.startswith("#"):
            continue
        row, tab, what = line.rstrip("\n").partition("\t")
        if not tab or not what.strip():
            faults.append("line %d says nothing of %s" % (number, row))
            continue
        if row in seen:
            faults.append("%s is there twice" % row)
        seen.add(row)
        if what.startswith("n/a:"):
            if len(what) < 12:
                faults.append("%s does not say why it does not apply" % row)
            continue
        faults += ["%s: there is no test %s" % (row, name) for name in what.split() if name not in tests]
    return faults + ["%s is missing" % row for row in wanted if row not in seen]


def main():
    # A check that finds nothing anywhere is no check.
    seeded = faults_of(["J1\tno_such_test\n", "J1\tn/a: x\n", "J2\t\n"], {"other"}, ["J1", "J3"])
    if len(seeded) != 5:
        sys.exit("the check does not see seeded faults: %s" % seeded)
    with open(os.path.join(ROOT, TABLE), encoding="utf-8") as f:
        faults = faults_of(f, tests_of(ROOT), WANTED)
    for fault in faults:
        print("FAILED: %s: %s" % (TABLE, fault))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
