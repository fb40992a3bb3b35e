"""`install.sh`, which has the SHA-256 of each archive."""

from .formula import archives
from .release import ROOT, write


def make_index(release):
    script = (ROOT / "dist/packages/install.sh").read_text()
    found = archives(release).items()
    cases = "\n".join(f"    {target}) digest={digest} ;;" for target, (_, digest) in found)
    for name, value in {"VERSION": release.version, "URL": release.url, "    # ARCHIVES": cases}.items():
        marker = name if name.startswith(" ") else f"@{name}@"
        script = script.replace(marker, value)
    path = write(release.out / "install.sh", script.encode())
    path.chmod(0o755)
    return [path]
