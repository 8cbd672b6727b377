import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Run } from "../harness/run";
import type { Installation } from "../harness/vscode";
import { createWorkspace } from "../harness/workspace";
import { Camera } from "./camera";
import { flow } from "./flow";
import { openFile, TIDY } from "./window";

/** One user's session; pictures go to `images`. The number of failures. */
export async function runSession(run: Run, installation: Installation, images: string): Promise<number> {
  const began = Date.now();
  const folder = createWorkspace(join(run.folder, "llama"), ["rms_norm.py"]);
  mkdirSync(images, { recursive: true });
  run.change(installation, TIDY);
  const server = await run.start(installation);
  const page = await openFile(run, server, folder, "rms_norm.py");
  const camera = new Camera(page, images);
  try {
    await flow(page, folder, camera);
    console.log(`✓ session (${((Date.now() - began) / 1000).toFixed(1)} s)`);
    return 0;
  } catch (error) {
    await camera.take("failed");
    console.log(`✗ session (${images})\n${error instanceof Error ? error.stack : String(error)}`);
    return 1;
  } finally {
    await run.endProcesses();
  }
}
