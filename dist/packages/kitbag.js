#!/usr/bin/env node
// Starts the binary that npm installed for this platform.
"use strict";

const { spawn } = require("node:child_process");
const os = require("node:os");

const name = `kitbag-cli-${process.platform}-${process.arch}`;
let binary;
try {
  binary = require.resolve(`${name}/bin/kitbag`);
} catch {
  console.error(
    `kitbag: the package \`${name}\` is not installed: either kitbag has no binary for this ` +
      "platform, or npm omitted optional dependencies",
  );
  process.exit(1);
}

const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`kitbag: \`${binary}\` cannot be started: ${error.message}`);
  process.exit(1);
});
// A terminal sends its signals to both processes, a client only to this one.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("exit", (code, signal) => process.exit(signal ? 128 + os.constants.signals[signal] : code));
