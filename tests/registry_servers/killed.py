"""Kills `kitbag serve` while five servers run; no process of them remains."""

import asyncio
import os
import signal
import subprocess
import sys
import time
import warnings

from mcp import Client

from python_client import CALLS, children

KITBAG, ROOT = sys.argv[1:]


async def main():
    command = [KITBAG, "serve", "--http", "127.0.0.1:0", "--no-token", "--log", "warn"]
    server = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    while not (line := server.stderr.readline()).startswith("listening at "):
        assert line, "kitbag ended"
    async with Client(line.split()[-1]) as client:
        for name, (arguments, _) in CALLS.items():
            await client.call_tool(name, arguments)
        started = children(server.pid)
        assert len(started) >= len(CALLS), started
        os.kill(server.pid, signal.SIGKILL)
        server.wait()
        deadline = time.monotonic() + 10
        while left := [process for process in started if is_running(process)]:
            assert time.monotonic() < deadline, f"still running: {left}"
            time.sleep(0.05)
        print(f"{len(started)} processes ended with kitbag")
        # The connection is lost.
        os._exit(0)


def is_running(process):
    try:
        state = open(f"/proc/{process}/stat").read().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asyncio.run(main())
