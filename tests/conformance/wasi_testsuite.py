"""Runs the programs of wasi-testsuite for WASI preview 1 and 0.3 with `kitbag run`.

    python3 wasi_testsuite.py KITBAG DIRECTORY [FILTER]

DIRECTORY is the folder `tests` of a checkout of WebAssembly/wasi-testsuite, branch
`prod/testsuite-base`. Each program has a JSON file beside it with its arguments, its directory and
what it must print. Programs that fail must be those in `expected-wasi-testsuite.txt`; the reasons
are in docs/lanes-tools.md.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

KITBAG, DIRECTORY = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
FILTER = sys.argv[3] if len(sys.argv) > 3 else ""
EXPECTED = pathlib.Path(__file__).with_name("expected-wasi-testsuite.txt")
TARGETS = {"wasm32-wasip1": "1", "wasm32-wasip3": "3"}


def operations(spec):
    """Returns the operations of a program. Those for preview 1 have keys instead."""
    if "operations" in spec:
        return spec["operations"]
    run = {"type": "run", "args": spec.get("args", []), "env": spec.get("env", {})}
    listed = [run, {"type": "wait", "exit_code": spec.get("exit_code", 0)}]
    if "stdout" in spec:
        listed.insert(1, {"type": "read", "id": "stdout", "payload": spec["stdout"]})
    return listed


def failure(program, cache):
    """Runs a program in a workspace of its own. Returns why it failed."""
    about = program.with_suffix(".json")
    spec = json.loads(about.read_text()) if about.exists() else {}
    listed = operations(spec)
    run = next((item for item in listed if item["type"] == "run"), {})
    wait = next((item for item in listed if item["type"] == "wait"), {})
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        (work / "home").mkdir()
        workspace = work / "workspace"
        (workspace / ".kitbag").mkdir(parents=True)
        shutil.copy(program, workspace / "program.wasm")
        grants = []
        root = spec.get("root") or next(iter(spec.get("dirs", [])), None)
        if root:
            shutil.copytree(program.parent / root, workspace / "root", symlinks=True)
            # A command also has its first directory as `/`, and programs for 0.3 expect only one.
            guest = "/" if "wasip3" in str(program) else "/root"
            grants.append(f'filesystem = [{{ host = "root", guest = "{guest}", mode = "rw" }}]')
        variables = run.get("env", {})
        grants.append(f"env = {json.dumps(list(variables))}")
        table = ["[tools.program]", 'wasm = "program.wasm"', "[tools.program.grants]", *grants]
        (workspace / ".kitbag/config.toml").write_text("\n".join(table) + "\n")
        arguments = {"args": run.get("args", [])}
        typed = [item["payload"] for item in listed if item["type"] == "write"]
        if typed:
            arguments["stdin"] = "".join(typed)
        environment = {
            **{key: os.environ[key] for key in ("PATH", "TMPDIR") if key in os.environ},
            **variables,
            "HOME": str(work / "home"),
            "KITBAG_CACHE_DIR": cache,
        }
        command = [KITBAG, "run", "program", "--trust-workspace", "--args", json.dumps(arguments)]
        ran = subprocess.run(
            command, cwd=workspace, env=environment, capture_output=True, text=True, timeout=120
        )
    must_fail = wait.get("exit_code", 0) != 0
    if (ran.returncode != 0) != must_fail:
        return (ran.stderr + ran.stdout).strip()[:300] or f"exit code {ran.returncode}"
    for item in listed:
        if item["type"] == "read" and item.get("id") == "stdout":
            if item["payload"].strip() not in ran.stdout + ran.stderr:
                return f"it printed {ran.stdout[:100]!r}, not {item['payload'][:100]!r}"
    return None


def main():
    passed, failed = 0, {}
    with tempfile.TemporaryDirectory() as cache:
        os.chmod(cache, 0o700)
        for target, release in TARGETS.items():
            for program in sorted(DIRECTORY.glob(f"*/testsuite/{target}/*.wasm")):
                language = program.relative_to(DIRECTORY).parts[0]
                name = f"{release} {language} {program.stem}"
                if FILTER not in name:
                    continue
                reason = failure(program, cache)
                if reason is None:
                    passed += 1
                else:
                    failed[name] = reason
    for name, reason in failed.items():
        print(f"{name}: {' | '.join(reason.splitlines())}")
    print(f"{passed} of {passed + len(failed)} programs pass")
    expected = {line for line in EXPECTED.read_text().splitlines() if FILTER in line}
    if expected != set(failed):
        print(f"not as in {EXPECTED.name}: {sorted(expected ^ set(failed))}")
        sys.exit(1)


main()
