import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ROOT, torchPython } from "../harness/paths";
import type { Run } from "../harness/run";
import type { Installation } from "../harness/vscode";
import { createWorkspace } from "../harness/workspace";
import { Camera } from "./camera";
import { Film } from "./film";
import { flow, JOB } from "./flow";
import { lensLink, openFile, TIDY } from "./window";

/** The buttons of editors, which a tidy window does without. VS Code looks at the folder's settings while it runs. */
const BUTTONS = { "workbench.editor.editorActionsLocation": "default" };

/** One user's session; pictures go to `images`, and the frames of a film to `frames`. The number of failures. */
export async function runSession(run: Run, installation: Installation, images: string, frames?: string): Promise<number> {
  const began = Date.now();
  const folder = createWorkspace(join(run.folder, "llama"), ["rms_norm.py"]);
  mkdirSync(images, { recursive: true });
  symlinkSync(dirname(dirname(torchPython())), join(folder, ".venv"));
  mkdirSync(join(folder, ".vscode"));
  const settings = join(folder, ".vscode", "settings.json");
  writeFileSync(settings, documentedSettings());
  run.change(installation, TIDY);
  // What the Python extension has selected does not run, so that the settings decide.
  const server = await run.start(installation, { TEST_PYTHON: join(folder, "no-python") });
  const page = await openFile(run, server, folder, "rms_norm.py");
  const camera = new Camera(page, images);
  try {
    await lensLink(page, /^Generate Triton kernel/).waitFor({ timeout: JOB }); // the film leaves out how the server is installed
    const film = frames === undefined ? undefined : await Film.start(page, frames);
    const showButtons = (): void => writeFileSync(settings, JSON.stringify({ ...JSON.parse(documentedSettings()), ...BUTTONS }));
    await flow(page, folder, camera, showButtons);
    await film?.stop();
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

/** The configuration for VS Code in docs/editors.md, as written. */
function documentedSettings(): string {
  const text = readFileSync(join(ROOT, "docs", "editors.md"), "utf8");
  const block = /## VS Code[\s\S]*?```json\n([\s\S]*?)```/.exec(text)?.[1];
  if (block === undefined) throw new Error("docs/editors.md has no configuration for VS Code");
  return block;
}
