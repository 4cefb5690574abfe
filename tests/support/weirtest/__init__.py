# SPDX-License-Identifier: Apache-2.0
"""weirtest: what the tests of the running program share. Standard library only.

agent   starts the program on free ports with a store of its own, asks it, stops it
http    requests as bytes over TCP and unix sockets, and a tee that records what passes
spans   readers of Datadog v0.4 and v0.5 and OTLP trace bodies, and the rows they must become
run     skips (exit 77; a failure where CI is set) and the tests' main

Nothing here knows Weir's code: readers are written from the public formats, rows from what the
documentation promises.
"""
