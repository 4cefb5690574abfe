#!/usr/bin/env python3
"""Between the text of a corpus and the files libFuzzer works on.

    corpus.py unpack CORPUS.hex FOLDER        one file an input
    corpus.py pack FOLDER CORPUS.hex          replace what follows MARK by the files of FOLDER
    corpus.py line FILE...                    a file as the line to add to a corpus

What stands before MARK was put there by hand (seeds, findings with their story) and is kept.
"""

import hashlib
import pathlib
import sys

MARK = "# minimised"
LINES_MAX = 200
BYTES_MAX = 4096


def inputs(corpus):
    for line in corpus.read_text().splitlines():
        if line and not line.startswith("#"):
            yield bytes.fromhex(line)


def unpack(corpus, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for data in inputs(corpus):
        (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)


def pack(folder, corpus):
    lines = corpus.read_text().splitlines() if corpus.exists() else []
    kept = lines[: lines.index(MARK)] if MARK in lines else lines
    known = {line for line in kept if line and not line.startswith("#")}
    found = [f.read_bytes() for f in folder.iterdir() if f.is_file()]
    found = [data for data in found if len(data) <= BYTES_MAX and data.hex() not in known]
    found.sort(key=lambda data: (len(data), data))
    new = [data.hex() for data in found if data][: LINES_MAX - len(known)]
    if len(new) < len(found):
        print(f"corpus: {len(found) - len(new)} inputs left out", file=sys.stderr)
    corpus.write_text("\n".join(kept + [MARK] + new) + "\n")


def main(arguments):
    verb, *paths = [arguments[0]] + [pathlib.Path(p) for p in arguments[1:]]
    if verb == "unpack" and len(paths) == 2:
        unpack(*paths)
    elif verb == "pack" and len(paths) == 2:
        pack(*paths)
    elif verb == "line" and paths:
        for path in paths:
            print(path.read_bytes().hex())
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:] or [""])
