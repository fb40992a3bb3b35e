"""What `benches/baseline/main.rs` does, as a script."""

import os
import sys


def subjects(directory, prefix=""):
    for entry in os.scandir(directory):
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from subjects(entry.path, prefix + entry.name + "/")
        else:
            yield prefix + os.path.splitext(entry.name)[0]


directory = sys.argv[1]
if len(sys.argv) > 2:
    with open(os.path.join(directory, sys.argv[2] + ".md"), encoding="utf-8") as file:
        sys.stdout.write(file.read())
else:
    listed = "".join(f"- {slug}\n" for slug in sorted(subjects(directory)))
    sys.stdout.write(
        f"# Topic: topic\n\n## Available subjects:\n\n{listed}\n"
        "Use the `learn` tool with the `subjects` argument to learn specific subjects.\n"
    )
