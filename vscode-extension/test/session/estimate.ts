// What a kernel is estimated to gain, above a class that has none, and the hover that says why. No GPU is needed.

import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT, torchPython } from "../harness/paths";
import type { Run } from "../harness/run";
import type { Installation } from "../harness/vscode";
import { Camera } from "./camera";
import { lensLink, openFile, TIDY, word } from "./window";

const LOOK = 400_000;

/** A picture of lens and hover goes to `images`. The number of failures. */
export async function runEstimate(run: Run, installation: Installation, images: string): Promise<number> {
  const began = Date.now();
  const folder = join(run.folder, "estimate");
  mkdirSync(join(folder, ".vscode"), { recursive: true });
  mkdirSync(images, { recursive: true });
  writeFileSync(join(folder, "pyproject.toml"), '[project]\nname = "estimate"\nversion = "1.0"\n');
  // With the shapes of the sample itself, since small ones promise nothing: their tensors are never allocated.
  copyFileSync(join(ROOT, "samples", "rms_norm.py"), join(folder, "rms_norm.py"));
  const settings = { "kernelLsp.interpreter": torchPython(), "kernelLsp.validateWhenIdle": 1 };
  writeFileSync(join(folder, ".vscode", "settings.json"), JSON.stringify(settings));
  run.change(installation, { ...TIDY, "editor.hover.above": false }); // which would hide the lens
  const server = await run.start(installation);
  const page = await openFile(run, server, folder, "rms_norm.py");
  const camera = new Camera(page, images);
  try {
    await lensLink(page, /^Generate Triton kernel · est\. \d+\.\d×$/).waitFor({ timeout: LOOK });
    await word(page, "RMSNorm").hover();
    const hover = page.locator(".monaco-hover:not(.hidden)", { hasText: "launches" }).first();
    await hover.waitFor({ timeout: LOOK });
    assert.match(await hover.innerText(), /\d+ launches, \d+\.\d× the least traffic/);
    await camera.take("estimate");
    console.log(`✓ estimate (${((Date.now() - began) / 1000).toFixed(1)} s)`);
    return 0;
  } catch (error) {
    await camera.take("failed-estimate");
    console.log(`✗ estimate (${images})\n${error instanceof Error ? error.stack : String(error)}`);
    return 1;
  } finally {
    await run.endProcesses();
  }
}
