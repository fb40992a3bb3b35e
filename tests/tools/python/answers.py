#!/usr/bin/env python3
"""Writes CPython's answers into `features/*.txt`.

A feature is a snippet without empty lines; the lines that begin with `=> ` are its answer. An
empty line separates features. The answers must not depend on the version of CPython; those of
`recent.txt` need at least 3.13 and are kept otherwise.
"""

import pathlib
import sys

sys.dont_write_bytecode = True

from run_feature import run_feature

for path in sorted(pathlib.Path(__file__).parent.glob("features/*.txt")):
    if path.stem == "recent" and sys.version_info < (3, 13):
        continue
    written = []
    for feature in path.read_text().strip().split("\n\n"):
        lines = [line for line in feature.split("\n") if not line.startswith("=> ")]
        snippet = "\n".join(lines).strip("\n")
        answer = run_feature(snippet)
        if "raised " in answer or " at 0x" in answer:
            sys.exit(f"{path.name}: no feature:\n{snippet}\n{answer}")
        answers = "".join(f"\n=> {line}" for line in answer.split("\n"))
        written.append(f"{snippet}{answers}\n")
    path.write_text("\n".join(written))
