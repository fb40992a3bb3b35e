"""The package for Fedora, openSUSE and others, made with `rpmbuild`."""

import os
import tempfile
from pathlib import Path

from .release import DESCRIPTION, LICENSE, PACKAGE, run, write, write_tree

# rpmbuild changes no packed file, searches no dependencies, and writes no time or host of its own.
SPEC = """\
%global debug_package %{{nil}}
%global __os_install_post %{{nil}}
%global _build_id_links none
%global _buildhost kitbag
%global use_source_date_epoch_as_buildtime 1
%global clamp_mtime_to_source_date_epoch 1
%global source_date_epoch_from_changelog 0
%global _binary_payload {compression}
Name: {name}
Version: {version}
Release: 1
Summary: {summary}
License: {license}
AutoReqProv: no
{requires}

%description
One binary that runs tools for language models, each call in a WebAssembly
sandbox with only the access that you granted.

%install
cp --archive {files}/. %{{buildroot}}

%files
%defattr(-,root,root)
{paths}
"""


def make(release):
    files = {f"usr/{path}": file for path, file in release.files.items()}
    platform, glibc = release.platform, release.glibc()
    # A version of RPM has no hyphen; `~` sorts before the version without it.
    version = release.version.replace("-", "~")
    with tempfile.TemporaryDirectory() as directory:
        directory = Path(directory)
        write_tree(directory / "files", files, release.time)
        spec = directory / "kitbag.spec"
        spec.write_text(SPEC.format(
            name=PACKAGE, version=version, summary=DESCRIPTION, license=LICENSE,
            compression="w19.zstdio" if release.final else "w1.gzdio",
            requires=f"Requires: glibc >= {glibc[0]}.{glibc[1]}" if glibc else "",
            files=directory / "files", paths="\n".join(f"/{path}" for path in sorted(files)),
        ))
        run(
            "rpmbuild", "--quiet", "-bb", "--target", f"{platform.rpm}-linux", "--define", f"_topdir {directory}/top",
            "--define", f"_tmppath {directory}", spec, env=os.environ | {"SOURCE_DATE_EPOCH": str(release.time)},
        )
        [made] = directory.glob("top/RPMS/*/*.rpm")
        return [write(release.out / made.name, made.read_bytes())]
