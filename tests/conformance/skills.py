"""A client of skills: finds them, and compares the digest of each file, in both eras.

Every check compares content, so that a missing skill cannot pass.
"""

import asyncio
import base64
import hashlib
import os
import pathlib
import sys
import warnings

import anyio
import mcp_types
from mcp import Client, StdioServerParameters

from expect import check

KITBAG, URL = sys.argv[1:]
SKILLS = pathlib.Path(".kitbag/skills")
ROOT = "skill://workspace-skills/refunds"
EXTENSION = "io.modelcontextprotocol/skills"
FILES = ["SKILL.md", "assets/logo.png", "references/limits.md"]
PATIENCE = 60


class Answer(mcp_types.Result):
    """A result of the extension, which the SDK does not know."""

    model_config = {"extra": "allow"}


class Parameters(mcp_types.RequestParams):
    """Parameters of the extension."""

    model_config = {"extra": "allow"}


async def ask(client, method, **parameters):
    request = mcp_types.Request(method=method, params=Parameters(**parameters))
    return (await client.session.send_request(request, Answer)).model_dump()


def content(contents):
    text = getattr(contents, "text", None)
    return base64.b64decode(contents.blob) if text is None else text.encode()


async def skills(client):
    check(EXTENSION in client.server_capabilities.extensions, True)
    (skill,) = (await ask(client, "skills/list"))["skills"]
    check(skill["uri"], f"{ROOT}/SKILL.md")
    check(skill["frontmatter"]["name"], "refunds")
    check(skill["frontmatter"]["description"], "Refund an order. Use it when a customer wants money back.")
    check(sorted(file["uri"] for file in skill["resources"]), [f"{ROOT}/{name}" for name in FILES])
    for file in skill["resources"]:
        (contents,) = (await client.read_resource(file["uri"])).contents
        check(content(contents), (SKILLS / "refunds" / file["uri"].removeprefix(f"{ROOT}/")).read_bytes())
        check(file["digest"], "sha256:" + hashlib.sha256(content(contents)).hexdigest())
    check((await ask(client, "skills/get", uri=skill["uri"]))["skill"], skill)


async def other_ways(client):
    """Clients without the extension list resources, and models call `learn`."""
    listed = {resource.uri for resource in (await client.list_resources()).resources}
    check({f"{ROOT}/{name}" for name in FILES} <= listed, True)
    result = await client.call_tool("learn", {"topic": "workspace-skills", "subjects": ["refunds"]})
    check("Check the date first." in result.content[0].text, True)
    check("- refunds (workspace-skills): Refund an order." in client.instructions, True)


async def main():
    for mode, era in (("auto", "2026"), ("legacy", "2025")):
        stdio = StdioServerParameters(command=KITBAG, args=["serve", "--log", "warn"], env=ENVIRONMENT)
        for transport, server in (("stdio", stdio), ("http", URL)):
            with anyio.fail_after(PATIENCE):
                async with Client(server, mode=mode) as client:
                    await skills(client)
                    await other_ways(client)
                    print(f"{transport}-{era}: {client.protocol_version}, all as expected")


if __name__ == "__main__":
    # The newer era deprecates the older one.
    warnings.simplefilter("ignore")
    ENVIRONMENT = {name: os.environ[name] for name in ("HOME", "KITBAG_CACHE_DIR", "KITBAG_TRUST_WORKSPACE")}
    asyncio.run(main())
