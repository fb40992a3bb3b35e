"""The wheel: the binary as a script of the package, for `pip`, `uv` and `pipx`."""

import base64
import hashlib

from .release import DESCRIPTION, LICENSE, LICENSES, PACKAGE, ROOT, content, write, zipped

DISTRIBUTION = PACKAGE.replace("-", "_")


def tags(release):
    """The platforms of the binary. A static one runs with any C library of Linux."""
    if release.platform.system != "linux":
        return [release.platform.wheel]
    machine = release.platform.wheel
    glibc = release.glibc()
    if glibc:
        return [f"manylinux_{glibc[0]}_{glibc[1]}_{machine}"]
    return [f"manylinux_2_17_{machine}", f"manylinux2014_{machine}", f"musllinux_1_1_{machine}"]


def make(release):
    platforms = tags(release)
    information = f"{DISTRIBUTION}-{release.version}.dist-info"
    metadata = [
        "Metadata-Version: 2.4",
        f"Name: {PACKAGE}",
        f"Version: {release.version}",
        f"Summary: {DESCRIPTION}",
        f"License-Expression: {LICENSE}",
        *(f"License-File: {name}" for name in LICENSES),
        "Requires-Python: >=3.8",
        *([f"Project-URL: Source, {release.repository}"] if release.repository else []),
        "Description-Content-Type: text/markdown",
        "",
        (ROOT / "dist/packages/README.md").read_text(),
    ]
    wheel = [
        "Wheel-Version: 1.0",
        "Generator: kitbag",
        "Root-Is-Purelib: false",
        *(f"Tag: py3-none-{platform}" for platform in platforms),
        "",
    ]
    files = {
        f"{DISTRIBUTION}-{release.version}.data/scripts/kitbag": release.binary,
        f"{information}/METADATA": "\n".join(metadata).encode(),
        f"{information}/WHEEL": "\n".join(wheel).encode(),
        **{f"{information}/licenses/{name}": ROOT / name for name in LICENSES},
    }
    record = f"{information}/RECORD"
    lines = [*(line(path, content(file)) for path, file in files.items()), f"{record},,\n"]
    files[record] = "".join(lines).encode()
    name = f"{DISTRIBUTION}-{release.version}-py3-none-{'.'.join(platforms)}.whl"
    return [write(release.out / name, zipped(files, release))]


def line(path, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(data)}\n"
