"""An agent in a clone of a real repository with only the tools of `kitbag serve`:
it finds a function, reads it, renames it in every file with one patch, undoes that with
another, validates a JSON file against its schema and converts a saved web page.

The client is from the official Python SDK. The first argument is the program, the
second the repository.
"""

import asyncio
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import anyio
from mcp import Client, StdioServerParameters

from expect import check

KITBAG, REPOSITORY = sys.argv[1:]
PATIENCE = 60

# The function.
FUNCTION = "repository_above"
RENAMED = "repository_around"

PAGE = """<!doctype html><html><head><title>Release notes</title></head><body>
<nav><a href="/">Home</a> <a href="/about">About</a></nav>
<main><h1>Release notes</h1><p>Version <b>2</b> reads <a href="formats.html">more formats</a>.</p>
<table><tr><th>Format</th><th>Since</th></tr><tr><td>YAML</td><td>2</td></tr></table></main>
<footer>Some rights reserved</footer></body></html>
"""


async def call(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    text = "\n".join(block.text for block in result.content if block.type == "text")
    if result.is_error:
        raise AssertionError(f"{tool}: {text}")
    # In the newest revision the text only refers to structured content.
    return text if result.structured_content is None else json.dumps(result.structured_content)


def git(clone, *arguments):
    return subprocess.run(["git", *arguments], cwd=clone, check=True, capture_output=True, text=True).stdout


async def work(client, clone):
    # The files that contain the function, according to git.
    files = git(clone, "grep", "--files-with-matches", FUNCTION, "--", "crates/**/*.rs").split()
    defined = git(clone, "grep", "--files-with-matches", f"fn {FUNCTION}", "--", "crates").strip()
    check(len(files) > 2 and defined in files, True)

    # Find the function and read it.
    found = await call(client, "search_files", pattern=f"fn {FUNCTION}", types=["rust"])
    check(defined in found, True)
    line = next(int(line.split(":")[0]) for line in found.splitlines() if f"fn {FUNCTION}" in line)
    text = await call(client, "read_file", path=defined, start_line=line, end_line=line + 2)
    check(f"pub fn {FUNCTION}(directory: &Path)" in text, True)

    # Rename it in all of these files with one patch.
    patch = ["*** Begin Patch"]
    for file in files:
        lines = pathlib.Path(clone, file).read_text().splitlines()
        patch.append(f"*** Update File: {file}")
        for old in [line for line in lines if FUNCTION in line]:
            patch += ["@@", f"-{old}", f"+{old.replace(FUNCTION, RENAMED)}"]
    patch.append("*** End Patch\n")
    await call(client, "apply_patch", patch="\n".join(patch))
    check(git(clone, "diff", "--name-only").split(), files)
    left = await call(client, "search_files", pattern=FUNCTION, literal=True, show="files", globs=["crates/**/*.rs"])
    check([file for file in files if file in left], [])

    # Undo it with the reversed difference.
    await call(client, "apply_patch", patch=git(clone, "diff", "-R"))
    check(git(clone, "status", "--porcelain"), "")

    # Validate a JSON file against its schema, first invalid and then valid.
    pathlib.Path(clone, "settings.json").write_text('{ "tools": { "a": { "enable": "yes" } } }\n')
    wrong = await call(client, "validate_data", path="settings.json", schema_path="docs/config.schema.json")
    check("/tools/a/enable" in wrong, True)
    await call(client, "edit_file", path="settings.json", edits=[{"old_text": '"yes"', "new_text": "true"}])
    right = await call(client, "validate_data", path="settings.json", schema_path="docs/config.schema.json")
    check(json.loads(right)["valid"], True)

    # Convert a saved web page.
    pathlib.Path(clone, "page.html").write_text(PAGE)
    page = await call(client, "html_to_markdown", path="page.html", base="https://example.org/docs/")
    for part in ("# Release notes", "[more formats](https://example.org/docs/formats.html)", "| YAML"):
        check(part in page, True)
    check("About" in page or "rights reserved" in page, False)


async def main():
    with tempfile.TemporaryDirectory() as directory:
        clone, settings = f"{directory}/clone", f"{directory}/config.toml"
        git(directory, "clone", "--quiet", REPOSITORY, clone)
        pathlib.Path(settings).write_text("[toolsets]\nwrite = true\n")
        environment = {
            "HOME": directory,
            "KITBAG_CACHE_DIR": os.environ.get("KITBAG_CACHE_DIR", f"{directory}/cache"),
            "KITBAG_CONFIG": settings,
        }
        server = StdioServerParameters(
            command=KITBAG, args=["serve", "--log", "warn", "--workspace", clone], env=environment
        )
        with anyio.fail_after(PATIENCE):
            async with Client(server) as client:
                await work(client, clone)
    print("found, read, changed, undone, validated and converted")


if __name__ == "__main__":
    asyncio.run(main())
