"""The package for Debian and Ubuntu, made with `dpkg-deb`."""

import os
import tempfile
from pathlib import Path

from .release import DESCRIPTION, PACKAGE, ROOT, content, run, write, write_tree


def make(release):
    files = {f"usr/{path}": file for path, file in release.files.items()}
    # Debian's policy names these places.
    files = {path.replace("/share/doc/kitbag/", f"/share/doc/{PACKAGE}/"): file for path, file in files.items()}
    files[f"usr/share/doc/{PACKAGE}/copyright"] = copyright_file()
    glibc = release.glibc()
    control = [
        f"Package: {PACKAGE}",
        f"Version: {release.version}",
        f"Architecture: {release.platform.debian}",
        "Maintainer: The kitbag developers <kitbag@localhost>",
        "Section: utils",
        "Priority: optional",
        f"Installed-Size: {sum(len(content(file)) for file in files.values()) // 1024 + 1}",
        *([f"Depends: libc6 (>= {glibc[0]}.{glibc[1]}), libgcc-s1"] if glibc else []),
        f"Description: {DESCRIPTION}",
        " One binary that runs tools for language models, each call in a WebAssembly",
        " sandbox with only the access that you granted.",
        "",
    ]
    files["DEBIAN/control"] = "\n".join(control).encode()
    package = release.out / f"{PACKAGE}_{release.version}_{release.platform.debian}.deb"
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "root"
        write_tree(root, files, release.time)
        compression = ["-Zxz"] if release.final else ["-Zgzip", "-z1"]
        made = Path(directory) / package.name
        run(
            "dpkg-deb", "--root-owner-group", *compression, "--build", root, made,
            env=os.environ | {"SOURCE_DATE_EPOCH": str(release.time)},
        )
        return [write(package, made.read_bytes())]


def copyright_file():
    """The text of all licences, in which Debian requires the licence of a package."""
    parts = ["kitbag is licensed under MIT or Apache-2.0, at your option.\n"]
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        parts.append((ROOT / name).read_text())
    parts.append("The tool `python` contains the standard library of Python:\n")
    parts.append((ROOT / "LICENSE-PYTHON").read_text())
    return "\n".join(parts).encode()
