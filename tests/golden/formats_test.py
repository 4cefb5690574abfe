#!/usr/bin/env python3
"""formats_test.py ROOT: the annotated hex in docs/formats is that of the golden files.

A code block is hex up to two blanks (the note), a row of the golden file that is named above it: the
last `NAME` in backquotes that begins a paragraph.
"""

import pathlib
import re
import sys

PAGES = {
    "otlp-histograms.md": ["histogram/otlp_exp.tsv", "histogram/otlp_hist.tsv"],
    "prometheus-histogram.md": ["histogram/prometheus.tsv"],
    "sketchlib.md": ["asap/sketchlib.tsv"],
    "asapv1.md": ["asap/asapv1.tsv"],
}


def rows(path):
    for line in path.read_text().splitlines():
        cells = line.split("\t")
        if line and not line.startswith("#"):
            yield cells[0], next(c for c in cells[1:] if re.fullmatch("([0-9a-f]{2}){2,}", c))


def blocks(page):
    name, text = "", None
    for line in page.read_text().splitlines():
        if line.startswith("```"):
            if text is not None:
                yield name, text
            text = None if text is not None else ""
        elif text is not None:
            text += re.sub(r"(?<=\S)  .*", "", line.strip()).replace(" ", "")
        elif re.match("`[a-z0-9_-]+`", line):
            name = line.split("`")[1]


def main(root):
    golden = root / "tests/golden"
    failed = seen = 0
    for page, files in PAGES.items():
        known = dict(row for f in files for row in rows(golden / f))
        for name, text in blocks(root / "docs/formats" / page):
            seen += 1
            if known.get(name) != text:
                failed += 1
                print(f"{page}: {name}\n  page   {text}\n  golden {known.get(name)}")
    print(f"{seen} blocks, {failed} differ")
    return failed or seen < 6


if __name__ == "__main__":
    sys.exit(1 if main(pathlib.Path(sys.argv[1])) else 0)
