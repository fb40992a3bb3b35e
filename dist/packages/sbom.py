"""The software bill of materials, CycloneDX 1.5: the crates in the binary and in its built-in tools."""

import json
import tomllib
import uuid
from datetime import UTC, datetime

from .release import ROOT, as_json, content, run, sha256, write

# The workspaces whose crates are in the binary: the directory, the target of its crates, and the
# packages to begin with (None: all members with a `describe.json`).
WORKSPACES = (
    (ROOT, None, ["kitbag"]),
    (ROOT / "guest-tools", "wasm32-wasip2", None),
    (ROOT / "guest-tools/python", "wasm32-wasip2", None),
)


def make(release):
    components, dependencies = {}, {}
    for directory, target, roots in WORKSPACES:
        add(directory, target or release.target, roots, components, dependencies)
    binary = content(release.binary)
    own = {
        "type": "application",
        "bom-ref": "kitbag",
        "name": "kitbag",
        "version": release.version,
        "licenses": [{"expression": "MIT OR Apache-2.0"}],
        "hashes": [{"alg": "SHA-256", "content": sha256(binary)}],
    }
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, sha256(binary))}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(release.time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": own,
        },
        "components": [components[key] for key in sorted(components)],
        "dependencies": [
            {"ref": "kitbag", "dependsOn": sorted(key for key in components if key.startswith("pkg:cargo/kitbag"))},
            *({"ref": key, "dependsOn": sorted(dependencies[key])} for key in sorted(dependencies)),
        ],
    }
    return [write(release.out / f"{release.name}.cdx.json", as_json(bom))]


def add(directory, target, roots, components, dependencies):
    """Adds the crates that are linked into a workspace's programs: no tests, no build scripts."""
    manifest = directory / "Cargo.toml"
    metadata = json.loads(run(
        "cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target,
        "--manifest-path", manifest, cwd=ROOT,
    ))
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    locked = tomllib.loads((directory / "Cargo.lock").read_text())["package"]
    checksums = {(package["name"], package["version"]): package.get("checksum") for package in locked}

    def is_root(package):
        if roots is not None:
            return package["name"] in roots
        return package["id"] in metadata["workspace_members"] and \
            (ROOT / "guest-tools" / package["name"].removeprefix("kitbag-") / "describe.json").exists()

    todo = [package["id"] for package in metadata["packages"] if is_root(package)]
    seen = set()
    while todo:
        identity = todo.pop()
        if identity in seen:
            continue
        seen.add(identity)
        package = packages[identity]
        if any("proc-macro" in kind for each in package["targets"] for kind in each["kind"]):
            continue
        linked = [
            dependency["pkg"] for dependency in nodes[identity]["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        ]
        key = reference(package)
        components[key] = component(key, package, checksums.get((package["name"], package["version"])))
        dependencies.setdefault(key, set()).update(
            reference(packages[each]) for each in linked
            if not any("proc-macro" in kind for one in packages[each]["targets"] for kind in one["kind"])
        )
        todo += linked


def reference(package):
    return f"pkg:cargo/{package['name']}@{package['version'].replace('+', '%2B')}"


def component(key, package, checksum):
    found = {"type": "library", "bom-ref": key, "name": package["name"], "version": package["version"], "purl": key}
    if package["license"]:
        # The older form separates alternatives with a slash.
        found["licenses"] = [{"expression": package["license"].replace(" / ", " OR ").replace("/", " OR ")}]
    if checksum:
        found["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return found
