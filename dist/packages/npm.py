"""The npm package of one platform, and the main package, which starts the binary of the platform."""

from .release import DESCRIPTION, LICENSE, LICENSES, PACKAGE, PLATFORMS, ROOT, as_json, compress, tar, write


def platform_name(platform):
    return f"{PACKAGE}-{platform.system}-{platform.npm}"


def package(release, name, extra):
    value = {"name": name, "version": release.version, "description": DESCRIPTION, "license": LICENSE}
    if release.repository:
        value["repository"] = {"type": "git", "url": f"git+{release.repository}.git"}
    return value | extra


def pack(release, name, manifest, files):
    files = {"package.json": as_json(manifest), **files, **{license: ROOT / license for license in LICENSES}}
    data = tar({f"package/{path}": file for path, file in files.items()}, release.time)
    return write(release.out / f"{name}-{release.version}.tgz", compress(data, release))


def make(release):
    platform = release.platform
    name = platform_name(platform)
    extra = {"os": [platform.system], "cpu": [platform.npm], "preferUnplugged": True}
    # A static binary also runs with musl.
    if release.glibc():
        extra["libc"] = ["glibc"]
    return [pack(release, name, package(release, name, extra), {"bin/kitbag": release.binary})]


def make_index(release):
    names = [platform_name(platform) for platform in PLATFORMS.values()]
    built = [name for name in names if (release.out / f"{name}-{release.version}.tgz").exists()]
    manifest = package(release, PACKAGE, {
        "bin": {"kitbag": "kitbag.js"},
        "engines": {"node": ">=18"},
        "optionalDependencies": dict.fromkeys(built, release.version),
    })
    name = mcp_name(release)
    if name:
        manifest["mcpName"] = name
    files = {"kitbag.js": ROOT / "dist/packages/kitbag.js", "README.md": ROOT / "dist/packages/README.md"}
    return [pack(release, PACKAGE, manifest, files)]


def mcp_name(release):
    """The name in the MCP registry, which belongs to the owner of the repository on GitHub."""
    prefix = "https://github.com/"
    if not release.repository.startswith(prefix):
        return None
    owner, name = release.repository.removeprefix(prefix).split("/")
    return f"io.github.{owner}/{name}"
