"""The MCP bundle, which desktop clients install with a click."""

import json

from .release import DESCRIPTION, LICENSE, LICENSES, ROOT, as_json, write, zipped


def make(release):
    tools = json.loads(release.kitbag("list", "--json"))
    manifest = {
        "manifest_version": "0.3",
        "name": "kitbag",
        "display_name": "kitbag",
        "version": release.version,
        "description": DESCRIPTION,
        "author": {"name": "The kitbag developers"},
        **({"repository": {"type": "git", "url": release.repository}} if release.repository else {}),
        "license": LICENSE,
        "server": {
            "type": "binary",
            "entry_point": "server/kitbag",
            "mcp_config": {
                "command": "${__dirname}/server/kitbag",
                "args": ["serve", "--workspace", "${user_config.workspace}"],
                "env": {},
            },
        },
        # The workspace decides which of these tools are on, and may add others.
        "tools": [{"name": tool["name"], "description": tool["description"]} for tool in tools],
        "tools_generated": True,
        "user_config": {
            "workspace": {
                "type": "directory",
                "title": "Workspace",
                "description": "The directory that the tools may read. It needs a directory `.kitbag` or `.git`.",
                "required": True,
            },
        },
        "compatibility": {"platforms": [release.platform.system]},
    }
    files = {
        "manifest.json": as_json(manifest),
        "server/kitbag": release.binary,
        **{name: ROOT / name for name in LICENSES},
    }
    return [write(release.out / f"{release.name}.mcpb", zipped(files, release))]
