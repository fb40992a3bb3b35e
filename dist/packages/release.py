"""The release that is packed: its binary, its names, and files that are the same on every run."""

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from datetime import UTC
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# The name of packages in all registries. The command is `kitbag`; docs/releasing.md has the reason.
PACKAGE = "kitbag-cli"
DESCRIPTION = "Sandboxed WebAssembly tools for language models, served over MCP"
LICENSE = "MIT OR Apache-2.0"
LICENSES = ("LICENSE-MIT", "LICENSE-APACHE", "LICENSE-PYTHON")

# A release binary is refused above these sizes.
BINARY_LIMIT = 90_000_000
ARCHIVE_LIMIT = 55_000_000
# Code of the C library of ARM64 reaches 32 KB from the page where the table begins.
OFFSET_TABLE_LIMIT = 28 << 10


@dataclass(frozen=True)
class Platform:
    """The names that package formats have for a target of Rust."""

    system: str  # of npm and .mcpb
    npm: str
    wheel: str
    debian: str
    rpm: str
    image: str


PLATFORMS = {
    "x86_64-unknown-linux-gnu": Platform("linux", "x64", "x86_64", "amd64", "x86_64", "amd64"),
    "aarch64-unknown-linux-gnu": Platform("linux", "arm64", "aarch64", "arm64", "aarch64", "arm64"),
    "x86_64-apple-darwin": Platform("darwin", "x64", "macosx_10_12_x86_64", "", "", ""),
    "aarch64-apple-darwin": Platform("darwin", "arm64", "macosx_11_0_arm64", "", "", ""),
}

# Programs that run binaries of another processor.
EMULATORS = {"aarch64-unknown-linux-gnu": "qemu-aarch64-static"}


@dataclass(frozen=True)
class Release:
    """A binary and what its packages say about it."""

    binary: Path
    version: str
    target: str
    # Seconds since 1970, the time of every packed file.
    time: int
    # The directory of all artifacts.
    out: Path
    # The base URL of published archives.
    url: str
    # The public repository, if `Cargo.toml` has one.
    repository: str
    # False for a development build, which is packed with little compression and without limits.
    final: bool

    @property
    def platform(self):
        return PLATFORMS[self.target]

    @property
    def name(self):
        """The name of the archive without its suffix, and of the directory in it."""
        return f"kitbag-{self.version}-{self.target}"

    @property
    def level(self):
        return 9 if self.final else 1

    def kitbag(self, *arguments):
        """Runs the binary and returns its standard output."""
        home = {"HOME": "/nonexistent", "PATH": os.environ["PATH"], "NO_COLOR": "1"}
        return run(*emulator(self.target), self.binary, *arguments, env=home)

    def glibc(self):
        """The newest version of glibc that the binary requires: (2, 36), or None if it is static."""
        if self.platform.system != "linux":
            return None
        if "(NEEDED)" not in run("readelf", "--wide", "--dynamic", self.binary):
            return None
        versions = re.findall(r"GLIBC_(\d+)\.(\d+)", run("readelf", "--wide", "--version-info", self.binary))
        return max((int(major), int(minor)) for major, minor in versions)

    def offset_table(self):
        """The size of the global offset table of a binary for Linux."""
        sections = run("readelf", "--wide", "--section-headers", self.binary)
        found = re.search(r" \.got +\S+ +\S+ +\S+ +(\S+)", sections)
        return int(found[1], 16) if found else 0

    @cached_property
    def files(self):
        """The files below a prefix such as `/usr`: path to bytes or the path of a file."""
        files = {"bin/kitbag": self.binary}
        documents = "share/doc/kitbag"
        for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", *LICENSES):
            files[f"{documents}/{name}"] = ROOT / name
        for pattern in ("docs/*.md", "docs/*.json", "wit/tool.wit"):
            for path in ROOT.glob(pattern):
                files[f"{documents}/{path.relative_to(ROOT)}"] = path
        for name in ("bytes", "embed", "native"):
            files[f"{documents}/examples/{name}.rs"] = ROOT / f"examples/{name}.rs"
        files["share/man/man1/kitbag.1"] = self.kitbag("man").encode()
        listed = re.search(r"^Commands:\n(.*?)^$", self.kitbag("--help"), re.M | re.S)[1]
        for command in re.findall(r"^  ([a-z-]+) ", listed, re.M):
            if command != "help":
                files[f"share/man/man1/kitbag-{command}.1"] = self.kitbag("man", command).encode()
        # The paths below a prefix in which each shell looks; PowerShell has no such path.
        for shell, path in {
            "bash": "bash-completion/completions/kitbag",
            "elvish": "elvish/lib/kitbag.elv",
            "fish": "fish/vendor_completions.d/kitbag.fish",
            "powershell": "powershell/kitbag.ps1",
            "zsh": "zsh/site-functions/_kitbag",
        }.items():
            files[f"share/{path}"] = self.kitbag("completions", shell).encode()
        return files


def workspace(target=None):
    """Returns the package `kitbag` of `cargo metadata`, the target, and the directory of artifacts.

    The default target is that of this machine.
    """
    metadata = json.loads(run("cargo", "metadata", "--locked", "--no-deps", "--format-version", "1", cwd=ROOT))
    [package] = [package for package in metadata["packages"] if package["name"] == "kitbag"]
    target = target or own_target()
    if target not in PLATFORMS:
        sys.exit(f"there are no packages for {target}, only for {', '.join(PLATFORMS)}")
    return package, target, Path(metadata["target_directory"]) / "dist"


@cache
def own_target():
    return next(line[6:] for line in run("rustc", "-vV").splitlines() if line.startswith("host: "))


def emulator(target):
    """The beginning of a command that runs a binary of this target: nothing on the same processor."""
    if target == own_target():
        return []
    if target not in EMULATORS:
        sys.exit(f"binaries for {target} do not run here")
    return [EMULATORS[target]]


def run(*command, **options):
    """Runs a program and returns its standard output; ends the script if it fails."""
    command = [str(part) for part in command]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, **options)
    except FileNotFoundError:
        sys.exit(f"{command[0]} is not installed")
    except subprocess.CalledProcessError as error:
        sys.exit(f"`{' '.join(command)}` failed: {error.returncode}")
    return done.stdout


def content(source):
    return source if isinstance(source, bytes) else Path(source).read_bytes()


def mode_of(path):
    """Programs are executable; everything else is not."""
    return 0o755 if path.endswith("bin/kitbag") or path.endswith(("scripts/kitbag", "server/kitbag")) else 0o644


def as_json(value):
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def tar(files, time, owners=None):
    """Returns a tar archive of files and their directories, sorted, with fixed modes and owners.

    A path that ends with `/` is an empty directory. `owners` maps a path to (user id, mode).
    """
    owners = owners or {}
    entries = dict(files)
    for path in files:
        for parent in Path(path).parents:
            if parent != Path("."):
                entries.setdefault(f"{parent}/", None)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(entries):
            entry = tarfile.TarInfo(path.rstrip("/"))
            entry.mtime = time
            if path.endswith("/"):
                entry.type = tarfile.DIRTYPE
                entry.uid, entry.mode = owners.get(path, (0, 0o755))
                entry.gid = entry.uid
                archive.addfile(entry)
            else:
                data = content(entries[path])
                entry.size, entry.mode = len(data), mode_of(path)
                archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def compress(data, release):
    return gzip.compress(data, compresslevel=release.level, mtime=0)


def zipped(files, release):
    """Returns a ZIP file of files in the given order, with fixed modes and times."""
    from datetime import datetime

    # The oldest time that a ZIP file can have is 1980.
    time = datetime.fromtimestamp(max(release.time, 315532800), UTC).timetuple()[:6]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=release.level) as archive:
        for path, source in files.items():
            entry = zipfile.ZipInfo(path, time)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, for the modes
            entry.external_attr = (stat.S_IFREG | mode_of(path)) << 16
            archive.writestr(entry, content(source))
    return buffer.getvalue()


def write_tree(directory, files, time):
    """Writes files below a directory for a program that packs directories."""
    for path, source in files.items():
        to = directory / path
        to.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(source, bytes):
            to.write_bytes(source)
        else:
            shutil.copyfile(source, to)
        to.chmod(mode_of(path))
    for path in [*directory.rglob("*"), directory]:
        if path.is_dir():
            path.chmod(0o755)
        os.utime(path, (time, time))


def write(path, data):
    """Writes an artifact atomically."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_bytes(data)
    beside.replace(path)
    return path
