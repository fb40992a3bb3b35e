"""Runs the commands of a page of `docs/` literally, in order, and answers every question with yes.

    page.py PAGE KITBAG PACKAGES

PACKAGES is the directory of `install`. The working directory is the workspace, and `HOME` is empty.
A remote server on this machine takes the place of `https://mcp.example.com/mcp`. A command that does
not end by itself (`kitbag serve`) runs until the end of its block.
"""

import os
import pathlib
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

page, kitbag, packages = sys.argv[1:]
packages = pathlib.Path(packages)
home, workspace = pathlib.Path.home(), pathlib.Path.cwd()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(port):
    for _ in range(300):
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
    sys.exit(f"nothing listens at port {port}")


def programs():
    """Returns a directory with the programs that the page expects in `PATH`."""
    directory = home / "bin"
    directory.mkdir()
    (directory / "kitbag").symlink_to(kitbag)
    (directory / "mcp-server-sqlite").symlink_to(packages / "venv-sqlite/bin/mcp-server-sqlite")
    return directory


PORT = free_port()
URL = f"http://127.0.0.1:{PORT}/mcp"
ENVIRONMENT = {
    **os.environ,
    "PATH": f"{programs()}:{os.environ['PATH']}",
    "DOCS_TOKEN": "a-token-of-the-page-0123456789",
    "TERM": "dumb",
}


def run(command, expected=0):
    """Runs one command on a terminal and answers its questions with yes."""
    child, terminal = pty.fork()
    if child == 0:
        os.execve("/bin/bash", ["bash", "-c", command], ENVIRONMENT)
    text, answered = "", 0
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                read = os.read(terminal, 1 << 16)
            except OSError:
                break
            if not read:
                break
            text += read.decode(errors="replace")
        questions = len(re.findall(r"\[y\]es[^\n]*: ?", text))
        if questions > answered:
            answered = questions
            os.write(terminal, b"y\n")
    else:
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(f"$ {command} ({code})")
    if code != expected:
        sys.exit(text)
    return text


def prepare():
    """Creates what the page takes for granted: a repository, files, and a client's configuration."""
    run("git init --quiet . && git -c user.name=a -c user.email=a@b.example commit --quiet --allow-empty -m first")
    for directory in ("data", ".cursor", "services"):
        (workspace / directory).mkdir(exist_ok=True)
    (home / "notes").mkdir()
    server = packages / "venv/bin/mcp-server-time"
    configuration = '{ "mcpServers": { "github": { "command": "%s", "args": ["--local-timezone", "UTC"] } } }'
    (home / ".claude.json").write_text(configuration % server)
    run(f"kitbag secret set docs --variable DOCS_TOKEN --to {URL}")
    run("kitbag secret set db --variable DOCS_TOKEN")


def after(block):
    """Prepares the blocks that follow."""
    if "kitbag run db_read_query" in block:
        run("kitbag run db_create_table 'query=CREATE TABLE notes (text TEXT)'")
        run("kitbag run db_write_query \"query=INSERT INTO notes VALUES ('kept')\"")


def shell_block(block):
    block = block.replace("\\\n", " ").replace("https://mcp.example.com/mcp", URL)
    running = []
    for line in filter(None, (line.strip() for line in block.splitlines())):
        if line.startswith("kitbag serve"):
            running.append(subprocess.Popen(line.split(), env=ENVIRONMENT, stderr=subprocess.DEVNULL))
            wait_for(int(line.rsplit(":", 1)[1]))
        else:
            run(line)
    for process in running:
        process.terminate()
        process.wait(timeout=30)
    after(block)


def configuration_block(block):
    """Checks a block of `config.toml` in a workspace of its own, where nothing is recorded yet."""
    directory = home / "checked"
    shutil.rmtree(directory, ignore_errors=True)
    (directory / ".kitbag").mkdir(parents=True)
    (directory / "data").mkdir()
    (directory / ".kitbag/config.toml").write_text(block)
    shown = run(f"kitbag --trust-workspace -w {directory} config --show")
    tables = re.findall(r"^\[(servers\.\w+)\]", block, re.M)
    if not tables or not all(table in shown for table in tables):
        sys.exit(f"{tables} are not in effect:\n{shown}")


def script_block(block):
    (workspace / "page.py").write_text(block)
    if "True" not in run("kitbag run python code=@page.py"):
        sys.exit("the script printed something else")


prepare()
everything = packages / "node_modules/.bin/mcp-server-everything"
remote = subprocess.Popen(
    [everything, "streamableHttp"],
    env={**ENVIRONMENT, "PORT": str(PORT)},
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
)
try:
    wait_for(PORT)
    kinds = {"sh": shell_block, "toml": configuration_block, "python": script_block}
    for kind, block in re.findall(r"^```(\w+)\n(.*?)^```", pathlib.Path(page).read_text(), re.M | re.S):
        kinds[kind](block)
finally:
    remote.terminate()
