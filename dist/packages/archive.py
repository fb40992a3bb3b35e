"""The archive: the directories `bin` and `share` for a prefix such as `/usr/local`, with its SHA-256."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .release import ARCHIVE_LIMIT, BINARY_LIMIT, OFFSET_TABLE_LIMIT, compress, content, sha256, tar, write, write_tree


def make(release):
    files = release.files
    check_manual({path: data for path, data in files.items() if path.endswith(".1")}, release)
    data = compress(tar({f"{release.name}/{path}": file for path, file in files.items()}, release.time), release)
    if release.final:
        for kind, size, limit in (
            ("binary", len(content(release.binary)), BINARY_LIMIT),
            ("archive", len(data), ARCHIVE_LIMIT),
        ):
            if size > limit:
                sys.exit(f"the {kind} has {size:,} bytes, more than {limit:,}")
        if release.target == "aarch64-unknown-linux-gnu" and (size := release.offset_table()) > OFFSET_TABLE_LIMIT:
            sys.exit(f"the global offset table has {size:,} bytes, more than {OFFSET_TABLE_LIMIT:,}")
    archive = release.out / f"{release.name}.tar.gz"
    return [
        write(archive, data),
        write(archive.with_name(archive.name + ".sha256"), f"{sha256(data)}  {archive.name}\n".encode()),
    ]


def check_manual(pages, release):
    """Fails if groff warns about a page."""
    if not shutil.which("groff"):
        print("groff is not installed: the pages of the manual are not checked", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as directory:
        write_tree(Path(directory), pages, release.time)
        names = sorted(str(path) for path in Path(directory).rglob("*.1"))
        groff = ["groff", "-ww", "-z", "-K", "utf8", "-T", "utf8", "-man", *names]
        warnings = subprocess.run(groff, capture_output=True, text=True).stderr
        if warnings:
            sys.exit(warnings)
