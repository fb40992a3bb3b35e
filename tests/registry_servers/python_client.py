"""The Python SDK as a client of five servers at once behind one `kitbag serve --http`, and of the
same server by a second client, which shares the processes."""

import asyncio
import os
import subprocess
import sys
import warnings

import anyio
from mcp import Client

KITBAG, ROOT = sys.argv[1:]
PATIENCE = 120
CALLS = {
    "everything_echo": ({"message": "hello"}, "hello"),
    "files_read_text_file": ({"path": f"{ROOT}/data/known.txt"}, "Everybody knows this."),
    "git_git_log": ({"repo_path": ROOT, "max_count": 1}, "The first commit"),
    "db_read_query": ({"query": "SELECT text FROM notes"}, "kept"),
    "memory_read_graph": ({}, "writes programs"),
}


def children(process):
    """All processes below a process, by their numbers."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            fields = open(f"/proc/{entry}/stat").read().rpartition(")")[2].split()
        except (OSError, NotADirectoryError):
            continue
        if entry.isdigit() and int(fields[1]) == process:
            found += [int(entry), *children(int(entry))]
    return sorted(found)


def servers(process):
    """The processes of the servers below a process, by the names of their programs."""
    found = {}
    for child in children(process):
        try:
            words = open(f"/proc/{child}/cmdline").read().split("\0")
        except OSError:
            continue
        name = next((word.rpartition("/")[2] for word in words if "/mcp-server-" in word), None)
        if name:
            found.setdefault(name, []).append(child)
    return found


async def use(url, mode):
    async with Client(url, mode=mode) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        missing = set(CALLS) - names
        assert not missing, f"not listed: {missing}"

        async def call(name):
            arguments, expected = CALLS[name]
            result = await client.call_tool(name, arguments)
            text = "".join(block.text for block in result.content if block.type == "text")
            assert not result.is_error and expected in text, (name, text)

        async with anyio.create_task_group() as group:
            for name in CALLS:
                group.start_soon(call, name)
        steps = []

        async def step(done, total, _message):
            steps.append((done, total))

        await client.call_tool(
            "everything_trigger-long-running-operation" if "everything_trigger-long-running-operation" in names
            else "everything_longRunningOperation",
            {"duration": 1, "steps": 2},
            progress_callback=step,
        )
        assert steps, "no progress arrived"
        return client.protocol_version


async def main():
    command = [KITBAG, "serve", "--http", "127.0.0.1:0", "--no-token", "--log", "warn"]
    server = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        while not (line := server.stderr.readline()).startswith("listening at "):
            assert line, "kitbag ended"
        url = line.split()[-1]
        with anyio.fail_after(PATIENCE):
            first = await use(url, "auto")
            started = servers(server.pid)
            assert len(started) >= len(CALLS), f"too few servers: {started}"
            second = await use(url, "legacy")
            now = servers(server.pid)
            assert {name: now.get(name) for name in started} == started, (started, now)
        print(f"Python SDK: {first} and {second}, {len(started)} servers shared")
    finally:
        server.kill()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asyncio.run(main())
