"""`server.json`, the entry in the MCP registry."""

from .npm import mcp_name
from .release import DESCRIPTION, PACKAGE, as_json, sha256, write

SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"


def make_index(release):
    stdio = {"transport": {"type": "stdio"}, "packageArguments": [{"type": "positional", "value": "serve"}]}
    packages = [{"registryType": "npm", "identifier": PACKAGE, "version": release.version, **stdio}]
    for bundle in sorted(release.out.glob(f"kitbag-{release.version}-*.mcpb")):
        packages.append({
            "registryType": "mcpb",
            "identifier": f"{release.url}/{bundle.name}",
            "fileSha256": sha256(bundle.read_bytes()),
            "transport": {"type": "stdio"},
        })
    server = {
        "$schema": SCHEMA,
        # Without a public repository the file can only be checked.
        "name": mcp_name(release) or f"localhost/{PACKAGE}",
        "title": "kitbag",
        "description": DESCRIPTION,
        **({"repository": {"url": release.repository, "source": "github"}} if mcp_name(release) else {}),
        "version": release.version,
        "packages": packages,
    }
    return [write(release.out / "server.json", as_json(server))]
