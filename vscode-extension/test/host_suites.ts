// The suites of test/host, each in a VS Code of its own over the same installation.

import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runSuite } from "./harness/host_tests";
import type { Run } from "./harness/run";
import type { Installation } from "./harness/vscode";
import { createWorkspace } from "./harness/workspace";

const CLOSED = "http://127.0.0.1:9/"; // the discard port: nothing listens there

/** The number of suites that failed. */
export async function runHostSuites(run: Run, installation: Installation, only: string[] = []): Promise<number> {
  const wanted = (name: string): boolean => only.length === 0 || only.includes(name);
  let failed = 0;
  if (wanted("installing")) {
    const workspace = createWorkspace(join(run.folder, "first"));
    const impostors = createImpostors(join(run.folder, "impostors"));
    const environment = { PIP_INDEX_URL: CLOSED, PIP_EXTRA_INDEX_URL: "", PIP_FIND_LINKS: "", PYTHONPATH: impostors };
    failed += await runSuite(run, installation, { name: "installing", workspace, seconds: 600, environment });
  }
  if (wanted("trusted")) {
    const workspace = createWorkspace(join(run.folder, "trusted"));
    failed += await runSuite(run, installation, { name: "trusted", workspace, seconds: 3000 });
  }
  if (wanted("untrusted")) {
    const workspace = createUntrusted(join(run.folder, "untrusted"));
    run.change(installation, { "security.workspace.trust.enabled": true, "security.workspace.trust.startupPrompt": "never" });
    failed += await runSuite(run, installation, { name: "untrusted", workspace, seconds: 600 });
  }
  return failed;
}

/** Modules that the installation and the server must not take for the real ones, though PYTHONPATH names them. */
function createImpostors(folder: string): string {
  mkdirSync(folder);
  for (const name of ["venv", "ensurepip", "pip", "pygls", "lsprotocol"]) {
    writeFileSync(join(folder, `${name}.py`), `open(${JSON.stringify(join(folder, "ran"))}, "w").close()\n`);
  }
  return folder;
}

/** A folder that would like to run its own things: a sample that tells when it is imported, settings that name a program. */
function createUntrusted(folder: string): string {
  createWorkspace(folder, ["rms_norm.py"]);
  appendFileSync(join(folder, "rms_norm.py"), `\nopen(${JSON.stringify(join(folder, "imported"))}, "w").close()\n`);
  mkdirSync(join(folder, ".vscode"));
  const settings = { "kernelLsp.interpreter": join(folder, "python"), "kernelLsp.inlayHints": true };
  writeFileSync(join(folder, ".vscode", "settings.json"), JSON.stringify(settings));
  return folder;
}
