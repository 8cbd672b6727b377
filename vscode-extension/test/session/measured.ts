// The hover of a kernel that was measured on an H100: kernel file and verdict were brought from there, since there may be no GPU here.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT, torchPython } from "../harness/paths";
import type { Run } from "../harness/run";
import type { Installation } from "../harness/vscode";
import { Camera } from "./camera";
import { lensLink, openFile, TIDY, word } from "./window";

const LOOK = 200_000;
const BROUGHT = join(ROOT, "vscode-extension", "test", "session", "measured");

/** A picture of the hover's table goes to `images`. The number of failures. */
export async function runMeasured(run: Run, installation: Installation, images: string): Promise<number> {
  const began = Date.now();
  const folder = join(run.folder, "measured");
  mkdirSync(join(folder, "kernels"), { recursive: true });
  mkdirSync(images, { recursive: true });
  writeFileSync(join(folder, "pyproject.toml"), '[project]\nname = "measured"\nversion = "1.0"\n');
  copyFileSync(join(ROOT, "samples", "rms_norm.py"), join(folder, "rms_norm.py"));
  copyFileSync(join(BROUGHT, "rms_norm_triton.py"), join(folder, "kernels", "rms_norm_triton.py"));
  const store = join(run.folder, "measured.sqlite");
  const python = silentPython(run.folder);
  execFileSync(torchPython(), [join(ROOT, "tools", "measured_store.py"), join(BROUGHT, "store.jsonl"), store, python]);
  mkdirSync(join(folder, ".vscode"));
  writeFileSync(join(folder, ".vscode", "settings.json"), JSON.stringify({ "kernelLsp.interpreter": python }));
  run.change(installation, TIDY);
  // What the Python extension has selected does not run, so that the setting decides.
  const server = await run.start(installation, { KERNEL_LSP_STORE: store, TEST_PYTHON: join(folder, "no-python") });
  const page = await openFile(run, server, folder, "rms_norm.py");
  const camera = new Camera(page, images);
  try {
    await lensLink(page, /^✓/).waitFor({ timeout: LOOK });
    await word(page, "RMSNorm").hover();
    const hover = page.locator(".monaco-hover:not(.hidden)", { hasText: "RMSNormTriton" }).first();
    const table = hover.locator("table");
    await table.waitFor({ timeout: LOOK });
    assert.match(await table.innerText(), /µs/);
    assert.match(await hover.innerText(), /H100/);
    await camera.take("measured");
    console.log(`✓ measured (${((Date.now() - began) / 1000).toFixed(1)} s)`);
    return 0;
  } catch (error) {
    await camera.take("failed-measured");
    console.log(`✗ measured (${images})\n${error instanceof Error ? error.stack : String(error)}`);
    return 1;
  } finally {
    await run.endProcesses();
  }
}

/** An interpreter that says nothing of this machine's devices, so that those hold which its worker named in the store. */
function silentPython(folder: string): string {
  const path = join(folder, "silent-python");
  writeFileSync(path, "#!/bin/sh\nexec cat >/dev/null\n");
  chmodSync(path, 0o755);
  return path;
}
