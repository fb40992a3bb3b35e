"""Uses an installed kitbag: runs tools, and serves a client over standard input and output."""

import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path

TIMEOUT = 60


def fail(message):
    sys.exit(f"dist/try: {message}")


def make_workspace(directory):
    """Writes a workspace with one document, and returns its path."""
    workspace = Path(directory) / "workspace"
    (workspace / ".kitbag").mkdir(parents=True)
    (workspace / "notes").mkdir()
    (workspace / "notes/hello.md").write_text("Say hello to the team.\n")
    return workspace


def environment(home, workspace):
    return {"HOME": str(home), "PATH": os.environ["PATH"], "KITBAG_WORKSPACE": str(workspace)}


def expect(command, expected, env, cwd=None):
    """A command must print exactly this, and nothing to standard error."""
    done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT)
    if (done.returncode, done.stdout.strip(), done.stderr) != (0, expected, ""):
        fail(f"{command} ended with {done.returncode} and printed:\n{done.stdout}{done.stderr}instead of:\n{expected}")


def use(kitbag, version, env, cwd=None):
    """`kitbag` is the command with which the installed program starts."""
    expect([*kitbag, "--version"], f"kitbag {version}", env, cwd)
    expect([*kitbag, "run", "calculate", "expression=1/3+1/6"], '{"result":"0.5","exact":true}', env, cwd)
    expect([*kitbag, "run", "python", "code=3+4"], "7", env, cwd)
    serve([*kitbag, "serve", "--log", "off"], version, env, cwd)


def serve(command, version, env, cwd=None):
    """A client connects, lists the tools and calls one; the server ends when its input does."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=env, cwd=cwd, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as server:
        lines = queue.Queue()
        threading.Thread(target=lambda: [lines.put(line) for line in server.stdout], daemon=True).start()

        def send(**message):
            print(json.dumps({"jsonrpc": "2.0", **message}), file=server.stdin, flush=True)

        def ask(id, method, **params):
            send(id=id, method=method, params=params)
            while True:
                try:
                    answer = json.loads(lines.get(timeout=TIMEOUT))
                except queue.Empty:
                    server.kill()
                    fail(f"{command} does not answer {method}: {server.stderr.read()}")
                if answer.get("id") == id:
                    return answer.get("result") or fail(f"{method}: {answer}")

        client = {"name": "try", "version": "1"}
        begun = ask(1, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
        if (begun["serverInfo"]["name"], begun["serverInfo"]["version"]) != ("kitbag", version):
            fail(f"the server is {begun['serverInfo']}")
        send(method="notifications/initialized")
        if "read_file" not in [tool["name"] for tool in ask(2, "tools/list")["tools"]]:
            fail("the server has no tool `read_file`")
        read = ask(3, "tools/call", name="read_file", arguments={"path": "notes/hello.md"})
        if "Say hello to the team." not in read["content"][0]["text"]:
            fail(f"`read_file` answered {read}")
        server.stdin.close()
        if server.wait(TIMEOUT):
            fail(f"{command} ended with {server.returncode}: {server.stderr.read()}")


def copy_libraries(binary, root):
    """Copies the libraries of a development build to a root; a release has none."""
    listed = subprocess.run(["ldd", str(binary)], capture_output=True, text=True).stdout
    for library in (word for word in listed.split() if word.startswith("/")):
        to = Path(f"{root}{library}")
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(Path(library).read_bytes())
        to.chmod(0o755)
