#!/usr/bin/env python3
"""Writes `cases.txt`: what ripgrep answers on the tree of `tree.json`.

    python3 recorded/record.py      in guest-tools/search, with `rg` on the path

Each case is what `search_files` or `find_files` takes and the arguments of `rg` that mean
the same. `--no-require-git`, since the tools cannot see whether what was granted lies in a
repository. Globs and types of `rg` also show what is hidden, and globs what is ignored; those
of the tools do not. So a case with either has a third part: the arguments of `rg` for
everything that is not hidden and not ignored, and what both commands find is recorded. A
glob that names a hidden file stands for `--hidden`, and `rg` has to be told of Latin-1.
"""

import json
import os
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
COUNT = ["--count", "--no-require-git", "--no-ignore-global", "--sort=path", "--smart-case", "--crlf"]
LIST = ["--files", "--no-require-git", "--no-ignore-global", "--sort=path"]

CASES = [
    ({"pattern": "needle"}, ["needle"]),
    ({"pattern": "needle", "hidden": True}, ["--hidden", "needle"]),
    ({"pattern": "needle", "ignored": True}, ["--no-ignore", "needle"]),
    ({"pattern": "needle", "hidden": True, "ignored": True}, ["--hidden", "--no-ignore", "needle"]),
    ({"pattern": "needle", "path": "web"}, ["needle", "web"]),
    ({"pattern": "needle", "path": "web/sub"}, ["needle", "web/sub"]),
    ({"pattern": "needle", "path": "build"}, ["needle", "build"]),
    ({"pattern": "needle", "path": "ig"}, ["needle", "ig"]),
    ({"pattern": "needle", "path": "nested"}, ["needle", "nested"]),
    ({"pattern": "needle", "path": "x.log"}, ["--with-filename", "needle", "x.log"]),
    ({"pattern": "needle", "globs": ["*.txt"]}, ["-g", "*.txt", "needle"], ["needle"]),
    ({"pattern": "needle", "globs": ["*.log"]}, ["-g", "*.log", "needle"], ["needle"]),
    ({"pattern": "needle", "globs": ["!*.txt"]}, ["-g", "!*.txt", "needle"], ["needle"]),
    ({"pattern": "needle", "globs": ["*.txt", "!web/**"]}, ["-g", "*.txt", "-g", "!web/**", "needle"], ["needle"]),
    ({"pattern": "needle", "globs": ["src/**/*.rs"]}, ["-g", "src/**/*.rs", "needle"], ["needle"]),
    ({"pattern": "needle", "globs": ["*.{rs,py}"]}, ["-g", "*.{rs,py}", "needle"], ["needle"]),
    ({"pattern": "needle", "globs": [".dot*"]}, ["--hidden", "-g", ".dot*", "needle"]),
    ({"pattern": "needle", "globs": [".hidden/**"]}, ["--hidden", "-g", ".hidden/**", "needle"]),
    ({"pattern": "needle", "globs": ["*"]}, ["-g", "*", "needle"], ["needle"]),
    ({"pattern": "needle", "globs": ["*.rs"], "hidden": True}, ["-g", "*.rs", "needle"], ["--hidden", "needle"]),
    ({"pattern": "needle", "globs": ["*.log"], "ignored": True}, ["-g", "*.log", "needle"], ["--no-ignore", "needle"]),
    ({"pattern": "needle", "globs": ["/a.rs"]}, ["-g", "/a.rs", "needle"], ["needle"]),
    ({"pattern": "needle", "types": ["rust"]}, ["-t", "rust", "needle"], ["needle"]),
    ({"pattern": "needle", "types": ["rust", "py"]}, ["-t", "rust", "-t", "py", "needle"], ["needle"]),
    ({"pattern": "needle", "types": ["!rust"]}, ["-T", "rust", "needle"], ["needle"]),
    ({"pattern": "needle", "types": ["make", "cmake"]}, ["-t", "make", "-t", "cmake", "needle"], ["needle"]),
    ({"pattern": "Needle"}, ["Needle"]),
    ({"pattern": "NEEDLE"}, ["NEEDLE"]),
    ({"pattern": "Needle", "case": "insensitive"}, ["-i", "Needle"]),
    ({"pattern": "needle", "case": "sensitive"}, ["-s", "needle"]),
    ({"pattern": "n\u00e4del"}, ["n\u00e4del"]),
    ({"pattern": "a.b"}, ["a.b"]),
    ({"pattern": "a.b", "literal": True}, ["-F", "a.b"]),
    ({"pattern": "(x) [y] \\d", "literal": True}, ["-F", "(x) [y] \\d"]),
    ({"pattern": "\\b\\d{4}\\b"}, ["\\b\\d{4}\\b"]),
    ({"pattern": "^needle$"}, ["^needle$"]),
    ({"pattern": "needle$"}, ["needle$"]),
    ({"pattern": "^$"}, ["^$"]),
    ({"pattern": "\\p{Cyrillic}+"}, ["\\p{Cyrillic}+"]),
    ({"pattern": "start\\n(middle\\n)?end"}, ["-U", "start\\n(middle\\n)?end"]),
    ({"pattern": "caf.", "path": "latin.txt"}, ["--with-filename", "-E", "latin1", "caf.", "latin.txt"]),
    ({"pattern": "nowhere at all"}, ["nowhere at all"]),
    ({}, []),
    ({"hidden": True}, ["--hidden"]),
    ({"ignored": True}, ["--no-ignore"]),
    ({"path": "web"}, ["web"]),
    ({"globs": ["*.js"]}, ["-g", "*.js"], []),
    ({"globs": ["web/**"]}, ["-g", "web/**"], []),
    ({"globs": ["!*.txt", "!*.log"]}, ["-g", "!*.txt", "-g", "!*.log"], []),
    ({"types": ["md", "ts"]}, ["-t", "md", "-t", "ts"], []),
    ({"depth": 2}, ["--max-depth", "2"]),
    ({"depth": 1, "hidden": True}, ["--max-depth", "1", "--hidden"]),
]


def main():
    with open(f"{HERE}/tree.json") as file:
        tree = json.load(file)
    with tempfile.TemporaryDirectory() as root:
        for path, content in tree.items():
            # Each character of the file stands for a byte.
            path = os.fsdecode(f"{root}/{path}".encode("latin-1"))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content.encode("latin-1"))
        version = run(["--version"], root).splitlines()[0]
        blocks = [f"# {version}, by record.py"]
        for arguments, *commands in CASES:
            found = find(arguments, commands[0], root)
            for within in commands[1:]:
                others = set(find(arguments, within, root))
                found = [line for line in found if line in others]
            blocks.append("\n".join([json.dumps(arguments), *found]))
    with open(f"{HERE}/cases.txt", "w") as file:
        file.write("\n\n".join(blocks) + "\n")


def find(arguments, rg, root):
    command = (COUNT if "pattern" in arguments else LIST) + rg
    if "pattern" in arguments and "path" not in arguments:
        command.append("./")
    return [line.removeprefix("./") for line in run(command, root).splitlines()]


def run(arguments, root):
    done = subprocess.run(["rg", "--no-config", *arguments], cwd=root, capture_output=True, text=True)
    return done.stdout


main()
